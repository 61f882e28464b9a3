// Whole runs through the child program: killed anywhere and resumed, resumed with what has changed, stopped, diverged, out of disk.
#include "engine/checkpoint/manifest.h"
#include "engine/train/checkpoint.h"
#include "engine/train/llm_trainer.h"
#include "tests/app/run_helper.h"

#include <QDir>
#include <cmath>
#include <csignal>
#include <fstream>
#include <sys/mount.h>
#include <unistd.h>

using namespace celloom;
using namespace celloom::test;
using nlohmann::json;

namespace {

constexpr const char* kLast = "step-000012";

std::string hashOf(const store::RunFolder& folder, const char* file) {
    const auto hash = sha256OfFile(folder.checkpoints() / kLast / file);
    return hash ? *hash : hash.error().text();
}

} // namespace

class TestChild : public QObject {
    Q_OBJECT
    RunWorkspace m_workspace;
    store::RunFolder m_reference; // the same recipe, uninterrupted

    void verifyEqualsTheReference(const store::RunFolder& folder) {
        QCOMPARE(hashOf(folder, "model.safetensors"), hashOf(m_reference, "model.safetensors"));
        QCOMPARE(hashOf(folder, "trainer.safetensors"), hashOf(m_reference, "trainer.safetensors"));
        const auto rows = exactRows(folder), expected = exactRows(m_reference);
        QCOMPARE(rows.size(), expected.size());
        for (const auto& [key, value] : expected) {
            QVERIFY2(rows.contains(key), key.first.c_str());
            QVERIFY2(rows.at(key) == value, qPrintable(QString("%1 of step %2").arg(key.first.c_str()).arg(key.second))); // bit for bit
        }
        QVERIFY(progress(folder).state == store::RunState::Finished);
    }

private Q_SLOTS:
    void initTestCase() {
        m_reference = m_workspace.create(smallRecipe());
        const ChildEnd end = m_workspace.run(m_reference);
        QVERIFY2(!end.isKilled && end.code == 0, qPrintable(end.messages + end.output));
        QCOMPARE(exactRows(m_reference).size(), std::size_t(12 * 3 + 3 * 2 + 1));
    }

    void eventsCarryTheirNumbersAsData() {
        const auto dataOf = [&](const char* kind) {
            const auto all = events(m_reference, kind);
            return all.empty() ? json() : json::parse(all.front().data, nullptr, false);
        };
        QVERIFY(dataOf("data") == (json{{"files", 3}, {"encodings", {{"UTF-8", 3}}}, {"documents", 2}, {"held_out", 1}}));
        QVERIFY(dataOf("tokenizer")["sequence_length"] == json(32));
        QVERIFY(dataOf("checkpoint") == (json{{"checkpoint", "step-000004"}}));
        QVERIFY(dataOf("finished") == (json{{"step", 12}}));
        const auto rows = exactRows(m_reference);
        QVERIFY(dataOf("evaluation")["loss"] == json(rows.at({"eval/loss", 4})));
        QVERIFY(dataOf("baseline")["perplexity"] == json(rows.at({"baseline/bigram_perplexity", 0})));
        QVERIFY(dataOf("comparison")["bigram"] == dataOf("baseline")["perplexity"]);
    }

    void theLogHoldsMindSporesLinesAndTheComparison() {
        const ChildEnd end = m_workspace.run(m_workspace.create(smallRecipe()));
        QVERIFY2(end.output.contains(QRegularExpression("epoch: 1 step: 12, loss is \\d+\\.\\d+")), qPrintable(end.output));
        QVERIFY2(end.output.contains(QRegularExpression("Validation perplexity [\\d.]+; an interpolated bigram model over the same tokens has [\\d.]+\\.")),
                 qPrintable(end.output));
    }

    void case10KilledAnywhereAndResumedEqualsTheUninterruptedRun_data() {
        QTest::addColumn<QString>("killAt");
        QTest::newRow("in a step after a checkpoint") << "step:7";
        QTest::newRow("in an evaluation") << "evaluation:5";
        QTest::newRow("in the first checkpoint's write") << "checkpoint-write:1";
        QTest::newRow("in a later checkpoint's write") << "checkpoint-write:2";
        QTest::newRow("in the first commit") << "commit:1";
        QTest::newRow("in a later commit") << "commit:5";
        QTest::newRow("before the first checkpoint") << "before-first-checkpoint:2";
    }
    void case10KilledAnywhereAndResumedEqualsTheUninterruptedRun() {
        QFETCH(QString, killAt);
        const auto folder = m_workspace.create(smallRecipe());
        const ChildEnd killed = m_workspace.run(folder, killAt);
        QVERIFY2(killed.isKilled, qPrintable(killed.output + killed.messages)); // the kill took effect …
        QCOMPARE(killed.code, SIGKILL);
        QVERIFY2(killed.messages.contains("killed at " + killAt.section(':', 0, 0)), qPrintable(killed.messages)); // … and there
        const ChildEnd resumed = m_workspace.run(folder);
        QVERIFY2(!resumed.isKilled && resumed.code == 0, qPrintable(resumed.output + resumed.messages));
        verifyEqualsTheReference(folder);
        QCOMPARE(events(folder, "resumed").size(), std::size_t(1));
        for (const auto& entry : fs::directory_iterator(folder.checkpoints()))
            QVERIFY2(!entry.path().filename().string().starts_with("."), entry.path().c_str()); // nothing half-written is left
    }

    void killedTwiceEqualsTheUninterruptedRun() {
        const auto folder = m_workspace.create(smallRecipe());
        QVERIFY(m_workspace.run(folder, "step:6").isKilled);
        QVERIFY(m_workspace.run(folder, "step:6").isKilled); // the sixth step of this process
        QCOMPARE(m_workspace.run(folder).code, 0);
        verifyEqualsTheReference(folder);
    }

    void aDamagedNewestCheckpointIsReportedAndTheOneBeforeUsed() {
        const auto folder = m_workspace.create(smallRecipe());
        QVERIFY(m_workspace.run(folder, "step:10").isKilled);
        {
            std::fstream file(folder.checkpoints() / "step-000008" / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
            file.seekp(-5, std::ios::end);
            file.put('\x55');
        }
        QCOMPARE(m_workspace.run(folder).code, 0);
        QCOMPARE(events(folder, "damaged_checkpoint").size(), std::size_t(1));
        QVERIFY(QString::fromStdString(events(folder, "resumed")[0].message).contains("step-000004"));
        verifyEqualsTheReference(folder);
    }

    void case10AFinishedRunSaysThatItIsComplete() {
        const ChildEnd end = m_workspace.run(m_reference);
        QCOMPARE(end.code, 0);
        QVERIFY2(end.output.contains("All 12 steps are done already") && end.output.contains("more epochs"), qPrintable(end.output));
        QCOMPARE(exactRows(m_reference).size(), std::size_t(12 * 3 + 3 * 2 + 1)); // nothing is lost by asking
    }

    void aLongerRunGoesOnFromTheFinishedOne() {
        const auto folder = m_workspace.create(smallRecipe());
        QCOMPARE(m_workspace.run(folder).code, 0);
        json recipe = smallRecipe();
        recipe["train"]["max_steps"] = 14;
        QVERIFY(writeFileAtomically(folder.recipe(), recipe.dump()));
        QCOMPARE(m_workspace.run(folder).code, 0);
        QCOMPARE(progress(folder).step, std::int64_t(14));
    }

    void aFieldThatMovesTheDataMustStayOnResume() {
        const auto folder = m_workspace.create(smallRecipe());
        QVERIFY(m_workspace.run(folder, "step:6").isKilled);
        json recipe = smallRecipe();
        recipe["train"]["batch_size"] = 4;
        QVERIFY(writeFileAtomically(folder.recipe(), recipe.dump()));
        const ChildEnd end = m_workspace.run(folder);
        QCOMPARE(end.code, int(protocol::BadInput));
        QVERIFY2(end.output.contains("train.batch_size: was 2"), qPrintable(end.output));
    }

    void aChangedCorpusIsNamedOnResume_data() {
        QTest::addColumn<QString>("killAt");
        QTest::newRow("before the first checkpoint") << "before-first-checkpoint:1";
        QTest::newRow("after it") << "step:6";
    }
    void aChangedCorpusIsNamedOnResume() {
        QFETCH(QString, killAt);
        QTemporaryDir corpus;
        const std::string copy = (corpus.path() + "/chapter.txt").toStdString();
        QVERIFY(QFile::copy(QStringLiteral(CELLOOM_SOURCE "/resources/corpora/sanguo/001.txt"), QString::fromStdString(copy)));
        json recipe = smallRecipe();
        recipe["data"]["train"] = {copy};
        recipe["tokenizer"]["vocab_size"] = 1900;
        const auto folder = m_workspace.create(recipe);
        const ChildEnd killed = m_workspace.run(folder, killAt);
        QVERIFY2(killed.isKilled, qPrintable(killed.output + killed.messages));
        QFile(QString::fromStdString(copy)).setPermissions(QFile::ReadOwner | QFile::WriteOwner);
        std::ofstream(copy, std::ios::app) << "多了一句。\n";
        const ChildEnd end = m_workspace.run(folder);
        QCOMPARE(end.code, int(protocol::BadInput));
        QVERIFY2(end.output.contains(QString::fromStdString(copy)) && end.output.contains("has changed since the run began"), qPrintable(end.output));
    }

    void badInputIsOneSentenceWithPlaceAndHint_data() {
        QTest::addColumn<QString>("change"); // a JSON merge patch
        QTest::addColumn<QString>("says");
        QTest::newRow("missing file") << R"({"data": {"train": ["/nowhere/a.txt"]}})" << "/nowhere/a.txt";
        QTest::newRow("unknown field") << R"({"optimizer": {"learning_rate": 1}})" << "optimizer.learning_rate";
        QTest::newRow("non-integer expression") << R"({"model": {"overrides": ["hidden=33", "heads=2"]}})" << "expected a whole number";
        QTest::newRow("unknown hyper-parameter") << R"({"model": {"overrides": ["depth=3"]}})" << "depth";
        QTest::newRow("a step too large") << R"({"train": {"batch_size": 100000, "drop_last": true}})" << "train.batch_size";
        QTest::newRow("rule that matches nothing") << R"({"rules": ["layers.9.**: freeze"]})" << "layers.9";
    }
    void badInputIsOneSentenceWithPlaceAndHint() {
        QFETCH(QString, change);
        QFETCH(QString, says);
        json recipe = smallRecipe();
        recipe.merge_patch(json::parse(change.toStdString()));
        const ChildEnd end = m_workspace.run(m_workspace.create(recipe));
        QCOMPARE(end.code, int(protocol::BadInput));
        QVERIFY2((end.output + end.messages).contains(says), qPrintable(end.output + end.messages));
    }

    void case20MemoryThatIsNotThereHasItsExitCodeStageAndAdvice() { // cases.md 20
        json recipe = smallRecipe();
        recipe["model"]["overrides"] = {"layers=1", "hidden=1024", "heads=2", "intermediate=1000000000"}; // a matrix of 4 TB
        const auto folder = m_workspace.create(recipe);
        const ChildEnd end = m_workspace.run(folder);
        QVERIFY2(!end.isKilled, qPrintable(end.messages));
        QCOMPARE(end.code, int(protocol::OutOfMemory));
        const auto said = events(folder, "failed");
        QCOMPARE(said.size(), std::size_t(1));
        const QString text = QString::fromStdString(said[0].message);
        for (const char* part : {"building the network", "layers.0.mlp", "4096 GB more were asked for", "available"}) QVERIFY2(text.contains(part), qPrintable(text));
        for (const char* raw : {"enforce", ".cpp", "Allocator"}) QVERIFY2(!text.contains(raw), qPrintable(text));
        QVERIFY(!said[0].hint.empty());
    }

    void anUnreadableEncodingNamesTheByte() {
        QTemporaryDir corpus;
        const std::string path = (corpus.path() + "/bad.txt").toStdString();
        std::ofstream(path, std::ios::binary) << "abc\xFF\xFF";
        json recipe = smallRecipe();
        recipe["data"]["train"] = {path};
        const auto folder = m_workspace.create(recipe);
        const ChildEnd end = m_workspace.run(folder);
        QCOMPARE(end.code, int(protocol::BadInput));
        QVERIFY2(end.output.contains("byte 3"), qPrintable(end.output));
        QVERIFY(progress(folder).state == store::RunState::Failed);
        QVERIFY(!fs::exists(folder.tokenizer()));
    }

    void case12DivergenceStopsBeforeTheBadUpdate() { // cases.md 12
        json recipe = smallRecipe();
        recipe["optimizer"]["lr"] = 1e6;
        recipe["schedule"]["warmup_steps"] = 0;
        recipe["checkpoint"]["every_steps"] = 1;
        recipe["train"]["max_steps"] = 500;
        recipe["evaluate"]["every_steps"] = 0;
        const auto folder = m_workspace.create(recipe);
        const ChildEnd end = m_workspace.run(folder);
        QCOMPARE(end.code, int(protocol::Diverged));
        QVERIFY(progress(folder).state == store::RunState::Failed);
        const auto said = events(folder, "diverged");
        QCOMPARE(said.size(), std::size_t(1));
        const std::int64_t step = progress(folder).step + 1; // the one that could not be made
        QVERIFY2(QString::fromStdString(said[0].message).contains(QString("Step %1:").arg(step)), said[0].message.c_str());
        QVERIFY2(QString::fromStdString(said[0].hint).contains(QString::fromStdString(engine::checkpointName(step - 1))), said[0].hint.c_str());
        const auto rows = exactRows(folder);
        const bool isMarked = !std::isfinite(rows.at({"train/loss", step})) || !std::isfinite(rows.at({"train/grad_norm", step}));
        QVERIFY(isMarked); // NaN or Inf on the chart, never 0
        QVERIFY(engine::verifyManifest(folder.checkpoints() / engine::checkpointName(step - 1)));
    }

    void halfPrecisionTrains_data() {
        QTest::addColumn<QString>("precision");
        QTest::newRow("bfloat16") << R"({"amp_level": "O2"})";
        QTest::newRow("float16, dynamic scale") << R"({"amp_level": "O2", "half_type": "float16", "loss_scale": "dynamic", "loss_scale_value": 1024})";
    }
    void halfPrecisionTrains() {
        QFETCH(QString, precision);
        json recipe = smallRecipe();
        recipe["precision"] = json::parse(precision.toStdString());
        const auto folder = m_workspace.create(recipe);
        const ChildEnd end = m_workspace.run(folder);
        QVERIFY2(end.code == 0, qPrintable(end.output + end.messages));
        const auto rows = exactRows(folder), full = exactRows(m_reference);
        for (const std::int64_t step : {1, 12}) // the loss of float32 within what eight bits of mantissa leave
            QVERIFY(std::abs(rows.at({"train/loss", step}) - full.at({"train/loss", step})) < 0.05);
    }

    void case19StopBeforeTheFirstStepIsHonoured() { // cases.md 19
        const auto folder = m_workspace.create(smallRecipe());
        const auto writer = store::RunWriter::open(folder.database());
        QVERIFY(writer);
        const std::atomic<bool> stop{true};
        engine::LLMTrainer trainer({folder, m_workspace.path() / "cache", **writer, nullptr, &stop, [](const std::string&) {}},
                                   *recipe::Recipe::load(folder.recipe()));
        const engine::RunResult result = trainer.run();
        QCOMPARE(result.code, protocol::Interrupted);
        QVERIFY(progress(folder).state == store::RunState::Stopped);
        QCOMPARE(progress(folder).step, std::int64_t(0));
        QVERIFY(engine::listCheckpoints(folder.checkpoints()).empty());
    }

    void aSignalSavesAndAResumeEqualsTheUninterruptedRun() {
        const auto folder = m_workspace.create(smallRecipe());
        const auto writer = store::RunWriter::open(folder.database());
        std::atomic<bool> stop{false};
        engine::LLMTrainer trainer({folder, m_workspace.path() / "cache", **writer, nullptr, &stop,
                                    [&](const std::string& line) {
                                        if (line.starts_with("epoch: 1 step: 6,")) stop = true; // as the handler does
                                    }},
                                   *recipe::Recipe::load(folder.recipe()));
        QCOMPARE(trainer.run().code, protocol::Interrupted);
        QVERIFY(engine::verifyManifest(folder.checkpoints() / "step-000006"));
        QCOMPARE(m_workspace.run(folder).code, 0);
        verifyEqualsTheReference(folder);
    }

    void stoppedInAnEvaluationAndResumedEqualsTheUninterruptedRun() {
        struct StopWhileEvaluating : protocol::ChildLink {
            std::atomic<bool>& stop;
            explicit StopWhileEvaluating(std::atomic<bool>& flag) : stop(flag) {}
            std::vector<protocol::Command> take() override { return {}; }
            bool waitForCommand(std::chrono::milliseconds) override { return false; }
            void progress(const store::Progress& now, std::int64_t) override {
                if (now.stage == "evaluating" && now.step == 8) stop = true;
            }
            void message(std::int64_t, const std::string&, const std::string&, const std::string&, const std::string&) override {}
        };
        const auto folder = m_workspace.create(smallRecipe());
        std::atomic<bool> stop{false};
        StopWhileEvaluating link(stop);
        {
            const auto writer = store::RunWriter::open(folder.database());
            QVERIFY(writer);
            engine::LLMTrainer trainer({folder, m_workspace.path() / "cache", **writer, &link, &stop, [](const std::string&) {}},
                                       *recipe::Recipe::load(folder.recipe()));
            QCOMPARE(trainer.run().code, protocol::Interrupted);
        }
        QVERIFY(!exactRows(folder).contains({"eval/loss", 8})); // it was cut short …
        QCOMPARE(m_workspace.run(folder).code, 0);
        verifyEqualsTheReference(folder); // … and made up for
    }

    void case21AFullDiskFailsVisiblyAndLeavesTheCheckpointBefore() { // cases.md 21
        if (::geteuid() != 0) QSKIP("needs root, to mount a small file system");
        QTemporaryDir place;
        if (::mount("tmpfs", place.path().toUtf8().constData(), "tmpfs", 0, "size=9m") != 0) QSKIP("this system allows no mount");
        json recipe = smallRecipe();
        recipe["model"]["overrides"] = {"hidden=64", "layers=2", "heads=2", "intermediate=96"}; // about 5 MB a checkpoint
        {
            RunWorkspace small(fs::path(place.path().toStdString()) / "workspace");
            const auto folder = small.create(recipe);
            const ChildEnd end = small.run(folder);
            const QString said = end.output + end.messages;
            const auto checkpoints = engine::listCheckpoints(folder.checkpoints());
            const bool isIntact = checkpoints.size() == 1 && checkpoints[0].filename() == "step-000004" && engine::verifyManifest(checkpoints[0]);
            const auto state = progress(folder).state;
            const auto failures = events(folder, "failed");
            ::umount2(place.path().toUtf8().constData(), MNT_DETACH);
            QCOMPARE(end.code, int(protocol::DiskFull));
            QVERIFY2(said.contains("disk is full", Qt::CaseInsensitive) || said.contains("No space left"), qPrintable(said));
            QCOMPARE(failures.size(), std::size_t(1));
            QVERIFY(isIntact);
            QVERIFY(state == store::RunState::Failed);
        }
    }
};

QTEST_GUILESS_MAIN(TestChild)
#include "tst_child.moc"
