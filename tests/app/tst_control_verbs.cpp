// What the command line can tell a run that is going on, with the real broker and the real child.
#include "models/protocol/protocol.h"
#include "models/store/index.h"
#include "tests/app/run_helper.h"

#include <fstream>

using namespace celloom;
using namespace celloom::test;
using nlohmann::json;

class TestControlVerbs : public QObject {
    Q_OBJECT
    QTemporaryDir m_folder;
    QProcess m_broker;

    struct Outcome {
        int code = -1;
        QString out, err;
    };
    QProcessEnvironment environment() const {
        QProcessEnvironment out = QProcessEnvironment::systemEnvironment();
        out.insert("XDG_RUNTIME_DIR", m_folder.path());
        out.insert("CELLOOM_WORKSPACE", m_folder.filePath("workspace"));
        return out;
    }
    Outcome engine(const QStringList& arguments) const {
        QProcess process;
        process.setProcessEnvironment(environment());
        process.start(QStringLiteral(CELLOOM_BIN "/celloom-engine"), arguments);
        if (!process.waitForFinished(120000 * CELLOOM_TEST_TIME_FACTOR)) process.kill();
        return {process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1, QString::fromUtf8(process.readAllStandardOutput()),
                QString::fromUtf8(process.readAllStandardError())};
    }
    QString begin(json recipe) const {
        const QString path = m_folder.filePath("recipe.json");
        if (!writeFileAtomically(path.toStdString(), recipe.dump())) qFatal("the recipe cannot be written");
        const Outcome outcome = engine({"run", path, "--detach"});
        if (outcome.code != 0) qFatal("%s", qPrintable(outcome.err));
        return outcome.out.trimmed();
    }
    store::RunFolder folderOf(const QString& run) const { return {fs::path(m_folder.filePath("workspace/runs").toStdString()) / run.toStdString()}; }
    store::RunState stateOf(const QString& run) const {
        const auto record = store::readRecord(folderOf(run));
        return record ? record->state : store::RunState::Queued;
    }
    /// A training that nobody waits for.
    static json endless() {
        json recipe = smallRecipe();
        recipe["train"]["max_steps"] = 1000000;
        recipe["evaluate"]["every_steps"] = 0;
        recipe["checkpoint"]["every_steps"] = 0;
        recipe["schedule"]["warmup_steps"] = 0;
        recipe["sample"] = {{"prompts", {"却说"}}, {"max_new_tokens", 4}};
        return recipe;
    }

private Q_SLOTS:
    void initTestCase() {
        QFile::setPermissions(m_folder.path(), QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
        m_broker.setProcessEnvironment(environment());
        m_broker.start(QStringLiteral(CELLOOM_BIN "/celloom-engine"), {"serve", "--parallel", "2"});
        QVERIFY(m_broker.waitForStarted());
        QTRY_VERIFY(QFile::exists(m_folder.filePath("workspace/broker.lock")));
    }
    void cleanupTestCase() {
        m_broker.terminate();
        QVERIFY(m_broker.waitForFinished(30000 * CELLOOM_TEST_TIME_FACTOR));
    }

    void eachCommandIsAnsweredWithWhatHappened() {
        const QString run = begin(endless());
        const Outcome measured = engine({"evaluate-now", run, "--json"});
        QVERIFY2(measured.code == 0, qPrintable(measured.err));
        const json evaluation = json::parse(json::parse(measured.out.toStdString())["event"]["data"].get<std::string>());
        QVERIFY(evaluation["loss"].get<double>() > 0 && evaluation["tokens"].get<int>() > 0);
        const Outcome sample = engine({"sample-now", "last"});
        QVERIFY2(sample.code == 0 && sample.out.contains(QStringLiteral("却说 | ")), qPrintable(sample.out + sample.err));
        const Outcome rate = engine({"set-lr", run, "1e-4"});
        QVERIFY2(rate.code == 0 && rate.out.contains("the learning rate is 0.0001"), qPrintable(rate.out + rate.err));
        const Outcome pause = engine({"pause", run});
        QVERIFY2(pause.code == 0 && pause.out.startsWith("Paused after step"), qPrintable(pause.out + pause.err));
        QVERIFY(stateOf(run) == store::RunState::Paused);
        QVERIFY(engine({"sample-now", run}).code == 0); // while it is paused, too
        QVERIFY(stateOf(run) == store::RunState::Paused);
        const Outcome saved = engine({"save", run}), again = engine({"save", run});
        QVERIFY2(saved.code == 0 && saved.out.startsWith("Saved step-"), qPrintable(saved.out + saved.err));
        QVERIFY2(again.code == 0 && again.out.contains("is saved already"), qPrintable(again.out + again.err));
        QCOMPARE(engine({"continue", run}).code, 0);
        QTRY_VERIFY(stateOf(run) == store::RunState::Running);
        QCOMPARE(engine({"stop", run, "--wait"}).code, 0);
        QVERIFY(stateOf(run) == store::RunState::Stopped);
        const auto reader = store::RunReader::open(folderOf(run).database());
        QVERIFY(reader);
        const auto rows = (*reader)->latest();
        QVERIFY(rows);
        for (const store::MetricRow& row : *rows)
            if (row.name == "train/lr") QCOMPARE(row.value, 1e-4);

        const Outcome over = engine({"evaluate-now", run});
        QCOMPARE(over.code, int(protocol::BadInput));
        QVERIFY2(over.err.contains("is not running: it is stopped") && over.err.contains("resume"), qPrintable(over.err));
    }

    void whatARunCannotDoIsSaid() {
        json recipe = endless();
        const std::string rows = m_folder.filePath("rows.safetensors").toStdString();
        std::vector<std::int64_t> ids(8 * 16);
        for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i * 37 % 100);
        const std::string header = R"({"input_ids":{"dtype":"I64","shape":[8,16],"data_offsets":[0,1024]}})";
        std::ofstream file(rows, std::ios::binary);
        const std::uint64_t length = header.size();
        file.write(reinterpret_cast<const char*>(&length), 8).write(header.data(), static_cast<std::streamsize>(length));
        file.write(reinterpret_cast<const char*>(ids.data()), 1024).flush();
        recipe["data"] = {{"train", {rows}}, {"validation_fraction", 0}};
        recipe.erase("sample");
        recipe["checkpoint"]["keep_best"] = false;
        const QString run = begin(recipe);
        const Outcome evaluate = engine({"evaluate-now", run}), sample = engine({"sample-now", run});
        QCOMPARE(evaluate.code, int(protocol::BadInput));
        QVERIFY2(evaluate.err.contains("no validation data"), qPrintable(evaluate.err));
        QCOMPARE(sample.code, int(protocol::BadInput));
        QVERIFY2(sample.err.contains("no tokenizer"), qPrintable(sample.err));
        QCOMPARE(engine({"pause", run, "--no-wait"}).code, 0);
        QCOMPARE(engine({"stop", run, "--wait"}).code, 0);
    }

    void ratesThatAreNoneAreRefused_data() {
        QTest::addColumn<QString>("rate");
        for (const char* rate : {"0", "-1e-3", "nan", "inf", "1e400", "fast", "1e-4x"}) QTest::newRow(rate) << rate;
    }
    void ratesThatAreNoneAreRefused() {
        QFETCH(QString, rate);
        const Outcome outcome = engine({"set-lr", "last", rate});
        QCOMPARE(outcome.code, int(protocol::Usage));
        QVERIFY(!outcome.err.isEmpty());
    }

    void aPredictionCanBePausedAndStopped() {
        std::ofstream prompts(m_folder.filePath("prompts.txt").toStdString());
        for (int i = 0; i < 5000; ++i) prompts << "第" << i << "回\n";
        prompts.close();
        const QString run = begin({{"kind", "predict"},
                                   {"model", {{"weights", CELLOOM_SOURCE "/resources/models/internlm-small-sanguo"}}},
                                   {"predict", {{"input", m_folder.filePath("prompts.txt").toStdString()}, {"max_new_tokens", 20}, {"batch_size", 4}}},
                                   {"threads", 1}});
        const Outcome pause = engine({"pause", run}), save = engine({"save", run});
        QVERIFY2(pause.code == 0 && pause.out.startsWith("Paused."), qPrintable(pause.out + pause.err));
        QCOMPARE(save.code, int(protocol::BadInput));
        QVERIFY2(save.err.contains("cannot obey \"save\""), qPrintable(save.err));
        QCOMPARE(engine({"continue", run}).code, 0);
        QCOMPARE(engine({"stop", run, "--wait"}).code, 0);
        const auto record = store::readRecord(folderOf(run));
        QVERIFY(record && record->kind == "predict" && record->state == store::RunState::Stopped);
        QVERIFY2(record->outcome.starts_with("stopped after ") && record->outcome.ends_with(" of 5000"), record->outcome.c_str());
    }
};

QTEST_GUILESS_MAIN(TestControlVerbs)
#include "tst_control_verbs.moc"
