// What real runs meet, by the numbers of cases.md where they have one: memory that ends, data that change, gradients that overflow, a stop.
// Each has a state, an event that says what and where, advice, and loses nothing that was learned.
#include "engine/checkpoint/manifest.h"
#include "models/store/index.h"
#include "models/store/run_lock.h"
#include "tests/app/token_run_helper.h"

#include <QScopeGuard>
#include <csignal>
#include <fstream>
#include <sys/resource.h>

using namespace celloom;
using namespace celloom::test;
using nlohmann::json;

class TestFailures : public QObject {
    Q_OBJECT
    RunWorkspace m_workspace;
    TokenFiles m_files;

    json recipe(const json& patch = json::object()) const { return m_files.recipe(patch); }
    static QString failureOf(const store::RunFolder& folder) {
        const auto said = events(folder, "failed");
        return said.size() == 1 ? QString::fromStdString(said[0].message + " " + said[0].hint) : QString("%1 events").arg(said.size());
    }
    static bool isWhole(const store::RunFolder& folder, std::int64_t step) {
        return engine::verifyManifest(folder.checkpoints() / engine::checkpointName(step)).has_value();
    }

private Q_SLOTS:
    void init() { m_files.writeRows(); }

    void case20MemoryThatEndsInAStepNamesStageAmountsAndSettings() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        QSKIP("a sanitizer's shadow memory needs more addresses than the limit leaves");
#endif
        // One row of logits has 60 000 numbers: 40 rows of 512 tokens are 4.9 GB, and the process may have 4.
        m_files.writeRows(at::remainder(at::arange(40 * 512, at::kLong), 61).reshape({40, 512}));
        const auto folder = m_workspace.create(recipe({{"model", {{"overrides", {"vocab=60000", "hidden=16", "layers=1", "heads=2", "intermediate=24"}}}},
                                                       {"train", {{"batch_size", 40}, {"accumulation", 1}}}, {"evaluate", {{"every_steps", 0}}}}));
        rlimit before{}, limited{};
        QCOMPARE(::getrlimit(RLIMIT_AS, &before), 0);
        limited = before;
        limited.rlim_cur = 4ull << 30;
        QCOMPARE(::setrlimit(RLIMIT_AS, &limited), 0); // the child inherits it
        const auto restore = qScopeGuard([&] { ::setrlimit(RLIMIT_AS, &before); });
        const ChildEnd end = m_workspace.run(folder);
        QVERIFY2(!end.isKilled && end.code == int(protocol::OutOfMemory), qPrintable(end.output + end.messages));
        QVERIFY(progress(folder).state == store::RunState::Failed);
        const QString said = failureOf(folder);
        static const QRegularExpression amounts("([\\d.]+) GB more were asked for, ([\\d.]+) GB of memory are available");
        const auto match = amounts.match(said);
        QVERIFY2(said.contains("training") && match.hasMatch(), qPrintable(said));
        QVERIFY(match.captured(1).toDouble() > 1 && match.captured(2).toDouble() < 4); // what this process may have, not the machine
        for (const char* part : {"train.batch_size", "train.accumulation", "train.sequence_length"}) QVERIFY2(said.contains(part), qPrintable(said));
    }

    void aFileThatChangesWhileItIsReadEndsTheRunAndKeepsItsSteps() {
        const auto expected = m_workspace.create(recipe()), folder = m_workspace.create(recipe({{"checkpoint", {{"every_steps", 100}}}}));
        Script alone, link;
        QCOMPARE(runInProcess(m_workspace, expected, alone).code, protocol::Ok);
        link.act[5] = [&] { std::ofstream(m_files.at("rows.safetensors"), std::ios::app | std::ios::binary) << "more"; };
        QCOMPARE(runInProcess(m_workspace, folder, link).code, protocol::Failure);
        QVERIFY2(failureOf(folder).contains("rows.safetensors: was changed while the run read it"), qPrintable(failureOf(folder)));
        QVERIFY2(failureOf(folder).contains("A resume goes on from step-000005."), qPrintable(failureOf(folder)));
        QVERIFY(isWhole(folder, 5));
        const ChildEnd refused = m_workspace.run(folder);
        QCOMPARE(refused.code, int(protocol::BadInput));
        QVERIFY2(refused.output.contains("rows.safetensors"), qPrintable(refused.output));
        m_files.writeRows();
        QCOMPARE(m_workspace.run(folder).code, 0);
        QVERIFY(exactRows(folder) == exactRows(expected));
    }

    void aFileThatIsDeletedWhileItIsReadHarmsNothing() {
        const auto folder = m_workspace.create(recipe());
        Script link;
        link.act[3] = [&] { fs::remove(m_files.at("rows.safetensors")); };
        QCOMPARE(runInProcess(m_workspace, folder, link).code, protocol::Ok);
        QCOMPARE(events(folder, "data_gone").size(), std::size_t(1));
        QCOMPARE(progress(folder).step, TokenFiles::kSteps);
    }

    void aTokenOutsideTheVocabularyIsNamedByRowAndPosition() {
        at::Tensor rows = TokenFiles::rows();
        rows[7][3] = 64;
        m_files.writeRows(rows);
        const auto folder = m_workspace.create(recipe());
        const ChildEnd end = m_workspace.run(folder);
        QCOMPARE(end.code, int(protocol::BadInput));
        QVERIFY2(failureOf(folder).contains("has the id 64 in input_ids, row 7, position 3"), qPrintable(failureOf(folder)));
    }

    void aStormOfOverflowsIsSaidEarlyAndEndsTheRun() {
        const auto folder = m_workspace.create(recipe({{"precision", {{"amp_level", "O2"}, {"half_type", "float16"}, {"loss_scale", "fixed"}, {"loss_scale_value", 1e30}}},
                                                       {"train", {{"max_steps", 2000}}}, {"evaluate", {{"every_steps", 0}}}, {"checkpoint", {{"every_steps", 400}}}}));
        const ChildEnd end = m_workspace.run(folder);
        QCOMPARE(end.code, int(protocol::Diverged));
        QVERIFY(progress(folder).state == store::RunState::Failed);
        QVERIFY2(failureOf(folder).contains("More than 1000 steps in a row overflowed.") && failureOf(folder).contains("learning rate"), qPrintable(failureOf(folder)));
        QVERIFY(events(folder, "overflow").size() < 50); // not a thousand lines
        const auto storms = events(folder, "overflow_storm");
        QVERIFY(!storms.empty() && storms.front().step <= 50);
        QVERIFY(isWhole(folder, 800)); // the last regular one
        QCOMPARE(engine::listCheckpoints(folder.checkpoints()).size(), std::size_t(2));
    }

    void case12DivergenceMarksTheChartAndARunWithALowerRateGoesOn() {
        const auto folder = m_workspace.create(recipe({{"optimizer", {{"lr", 1e6}, {"clip_norm", 0}}}, {"schedule", {{"warmup_steps", 0}, {"type", "constant"}}},
                                                       {"train", {{"max_steps", 300}}}, {"checkpoint", {{"every_steps", 1}}}, {"evaluate", {{"every_steps", 0}}}}));
        QCOMPARE(m_workspace.run(folder).code, int(protocol::Diverged));
        const auto said = events(folder, "diverged");
        QCOMPARE(said.size(), std::size_t(1));
        const std::int64_t done = progress(folder).step;
        QVERIFY2(QString::fromStdString(said[0].hint).contains("The last good checkpoint is " + QString::fromStdString(engine::checkpointName(done))), said[0].hint.c_str());
        const auto rows = exactRows(folder);
        QVERIFY(!std::isfinite(rows.at({"train/loss", done + 1})) || !std::isfinite(rows.at({"train/grad_norm", done + 1})));
        for (const auto& [key, value] : rows) QVERIFY2(key.first != "train/loss" || value != 0, "NaN is never 0");
    }

    void case19StopAndSaveLeavesNoProcessAndAWholeCheckpoint() {
        const QString workspace = QString::fromStdString(m_workspace.path().string());
        QTemporaryDir runtime;
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert("XDG_RUNTIME_DIR", runtime.path());
        const auto start = [&](QProcess& process, const QStringList& arguments) {
            process.setProcessEnvironment(environment);
            process.start(QStringLiteral(CELLOOM_BIN "/celloom-engine"), QStringList{"--workspace", workspace} + arguments);
        };
        const fs::path file = m_files.at("stopped.json");
        QVERIFY(writeFileAtomically(file, recipe({{"train", {{"max_steps", 1000000}}}, {"checkpoint", {{"every_steps", 0}}}}).dump()));
        QProcess run, stop;
        start(run, {"run", QString::fromStdString(file.string())});
        const auto newest = [&] { return store::Workspace::open(m_workspace.path())->findRun("last").value(); };
        QTRY_VERIFY_WITH_TIMEOUT(store::isHeld(newest()) && progressOf(newest()).step > 2, 60000 * CELLOOM_TEST_TIME_FACTOR);
        const store::RunFolder folder = newest();
        const auto process = store::readProcess(folder);
        start(stop, {"stop", "last", "--wait"});
        QVERIFY(stop.waitForFinished(60000 * CELLOOM_TEST_TIME_FACTOR) && run.waitForFinished(60000 * CELLOOM_TEST_TIME_FACTOR));
        QCOMPARE(stop.exitCode(), 0);
        QCOMPARE(run.exitCode(), int(protocol::Interrupted));
        QVERIFY(!store::isHeld(folder));
        QTRY_VERIFY(::kill(-static_cast<pid_t>((*process)->child), 0) != 0 && errno == ESRCH); // the child's whole group
        QTRY_VERIFY(!fs::exists("/proc/" + std::to_string((*process)->supervisor) + "/exe"));
        QVERIFY(isWhole(folder, progressOf(folder).step));
        QCOMPARE(store::readRecord(folder)->outcome, "stopped at step " + std::to_string(progressOf(folder).step));
        const auto lock = readFile(m_workspace.path() / "broker.lock"); // an idle broker would end by itself, later
        if (lock) ::kill(json::parse(*lock).value("pid", 0), SIGTERM);
    }

private:
    /// Where the run may not have begun.
    static store::Progress progressOf(const store::RunFolder& folder) {
        const auto reader = store::RunReader::open(folder.database());
        const auto now = reader ? (*reader)->progress() : Result<store::Progress>(store::Progress{});
        return now ? *now : store::Progress{};
    }
};

QTEST_GUILESS_MAIN(TestFailures)
#include "tst_failures.moc"
