// cases.md 10: a run killed at any step and resumed equals the one left alone, whatever it trains with; and what a resume with changed
// settings means, is said before and in an event, and refuses.
#include "engine/checkpoint/manifest.h"
#include "models/recipe/resume.h"
#include "models/store/resume_plan.h"
#include "tests/app/token_run_helper.h"
#include "tests/slow_builds.h"

#include <cmath>

using namespace celloom;
using namespace celloom::test;
using nlohmann::json;

namespace {

constexpr std::int64_t kSteps = TokenFiles::kSteps;

} // namespace

class TestResume : public QObject {
    Q_OBJECT
    RunWorkspace m_workspace;
    TokenFiles m_files;
    std::string m_base; // a checkpoint, for adapters to stand beside
    std::map<std::string, store::RunFolder> m_leftAlone; // by what is changed in the recipe

    json recipe(const json& patch = json::object()) const { return m_files.recipe(patch); }

    static std::string hashOf(const store::RunFolder& folder, std::int64_t step, const char* file) {
        const auto hash = sha256OfFile(folder.checkpoints() / engine::checkpointName(step) / file);
        return hash ? *hash : hash.error().text();
    }

    static void compare(const store::RunFolder& folder, const store::RunFolder& expected, std::int64_t steps) {
        const char* weights = fs::exists(expected.checkpoints() / engine::checkpointName(steps) / "adapter_model.safetensors") ? "adapter_model.safetensors" : "model.safetensors";
        QCOMPARE(hashOf(folder, steps, weights), hashOf(expected, steps, weights));
        QCOMPARE(hashOf(folder, steps, "trainer.safetensors"), hashOf(expected, steps, "trainer.safetensors"));
        const auto rows = exactRows(folder), wanted = exactRows(expected);
        QCOMPARE(rows.size(), wanted.size());
        for (const auto& [key, value] : wanted) {
            const bool isSame = rows.contains(key) && (rows.at(key) == value || (std::isnan(value) && std::isnan(rows.at(key))));
            QVERIFY2(isSame, qPrintable(QString("%1 of step %2").arg(key.first.c_str()).arg(key.second)));
        }
    }

    store::RunFolder trained(const json& recipe) {
        const auto folder = m_workspace.create(recipe);
        const ChildEnd end = m_workspace.run(folder);
        if (end.code != 0) qWarning("%s%s", qPrintable(end.output), qPrintable(end.messages));
        return folder;
    }

    /// Of one recipe there is one run that is left alone: what many killed ones are compared with.
    store::RunFolder leftAlone(const json& patch) {
        const auto [found, isNew] = m_leftAlone.try_emplace(patch.dump());
        if (isNew) found->second = trained(recipe(patch));
        return found->second;
    }

    engine::RunResult inProcess(const store::RunFolder& folder, protocol::ChildLink& link) { return runInProcess(m_workspace, folder, link); }

    static void set(const store::RunFolder& folder, const json& patch) {
        json recipe = json::parse(*readFile(folder.recipe()));
        recipe.merge_patch(patch);
        QVERIFY(writeFileAtomically(folder.recipe(), recipe.dump()));
    }

private Q_SLOTS:
    void initTestCase() {
        m_base = (leftAlone(json::object()).checkpoints() / engine::checkpointName(kSteps)).string();
        QVERIFY(engine::verifyManifest(m_base));
    }

    void case10ResumeIsExact_data() {
        QTest::addColumn<QString>("patch");
        QTest::addColumn<QString>("killAt");
        for (const char* at : {"step:1", "step:3", "step:4", "step:7", "step:10", "evaluation:1", "evaluation:4", "checkpoint-write:1", "checkpoint-write:4",
                               "commit:1", "commit:3", "commit:7", "before-first-checkpoint:1"})
            QTest::newRow(at) << "{}" << at;
        const auto add = [](const QString& name, const json& patch) { QTest::newRow(qPrintable(name)) << QString::fromStdString(patch.dump()) << "step:6"; };
        const auto choices = [](const char* key) { return recipe::findField(key)->choices; };
        for (const std::string& type : choices("schedule.type"))
            if (type != "cosine") add(QString::fromStdString("schedule " + type), {{"schedule", {{"type", type}, {"decay_steps", 3}, {"pieces", {"4=1e-3", "12=1e-4"}}}}});
        for (const std::string& type : choices("optimizer.type"))
            if (type != "AdamW") add(QString::fromStdString("optimizer " + type), {{"optimizer", {{"type", type}}}});
        for (const char* scale : {"fixed", "dynamic"})
            add(QString("float16 with a %1 scale").arg(scale), {{"precision", {{"amp_level", "O2"}, {"half_type", "float16"}, {"loss_scale", scale},
                                                                              {"loss_scale_value", 1024}, {"loss_scale_window", 3}}}});
        add("a dynamic scale that overflows at first", {{"precision", {{"amp_level", "O2"}, {"half_type", "float16"}, {"loss_scale", "dynamic"}, {"loss_scale_value", 1e12},
                                                                       {"loss_scale_factor", 100}}}});
        add("bfloat16", {{"precision", {{"amp_level", "O2"}}}});
        add("the last batches dropped", {{"train", {{"drop_last", true}}}});
        add("not shuffled", {{"data", {{"shuffle", false}}}});
        add("recomputed", {{"train", {{"recompute", true}}}});
        add("adapters", {{"kind", "finetune"}, {"model", {{"source", "BASE"}, {"weights", "BASE"}, {"overrides", nullptr}}}, {"lora", {{"rank", 2}, {"dropout", 0.1}}}});
    }
    void case10ResumeIsExact() {
        CELLOOM_EVERY_NTH_ROW();
        QFETCH(QString, patch);
        QFETCH(QString, killAt);
        const json changed = json::parse(patch.replace("BASE", QString::fromStdString(m_base)).toStdString());
        const auto expected = leftAlone(changed), folder = m_workspace.create(recipe(changed));
        const ChildEnd killed = m_workspace.run(folder, killAt);
        QVERIFY2(killed.isKilled, qPrintable(killed.output + killed.messages));
        const ChildEnd resumed = m_workspace.run(folder);
        QVERIFY2(resumed.code == 0, qPrintable(resumed.output + resumed.messages));
        QVERIFY(events(folder, "changed").empty());
        compare(folder, expected, kSteps);
    }

    // BatchNorm2d's running mean and variance are moved by every step, though by no optimizer; pictures are cropped at random.
    void runningAveragesAndCroppedPicturesGoOnExactly() {
        const auto shipped = recipe::Recipe::load(CELLOOM_SOURCE "/resources/recipes/image-classifier-digits.json");
        QVERIFY(shipped);
        json pictures = json::parse(shipped->withAbsolutePaths().toJson());
        pictures.merge_patch({{"train", {{"max_steps", kSteps}}}, {"schedule", {{"warmup_steps", 2}}}, {"evaluate", {{"every_steps", 3}, {"max_batches", 2}}},
                              {"checkpoint", {{"every_steps", 2}, {"keep_max", 2}}}, {"threads", 1}, {"device", "cpu"}});
        const auto expected = trained(pictures), folder = m_workspace.create(pictures);
        QVERIFY(m_workspace.run(folder, "step:7").isKilled);
        const ChildEnd resumed = m_workspace.run(folder);
        QVERIFY2(resumed.code == 0, qPrintable(resumed.output + resumed.messages));
        compare(folder, expected, kSteps);
        const auto averages = [](const store::RunFolder& of, std::int64_t step) {
            const auto file = engine::SafetensorsFile::open(of.checkpoints() / engine::checkpointName(step) / "model.safetensors");
            std::map<std::string, at::Tensor> out;
            for (const std::string& name : file ? (*file)->names() : std::vector<std::string>{})
                if (name.ends_with("running_mean")) out[name] = (*file)->tensor(name)->clone();
            return out;
        };
        const auto before = averages(folder, kSteps - 2), after = averages(folder, kSteps);
        QVERIFY(before.size() >= 3 && before.size() == after.size());
        for (const auto& [name, mean] : before) QVERIFY2(!mean.equal(after.at(name)), name.c_str());
    }

    void aRateSetWhileRunningSurvivesAKillBitForBit() {
        const auto script = [](std::int64_t stopAfter) {
            Script link;
            link.after[3] = {{protocol::Action::SetLearningRate, 0.004}};
            if (stopAfter > 0) link.after[stopAfter] = {{protocol::Action::Stop, 0}};
            return link;
        };
        const auto expected = m_workspace.create(recipe()), folder = m_workspace.create(recipe());
        Script alone = script(0), stopped = script(5);
        QCOMPARE(inProcess(expected, alone).code, protocol::Ok);
        QCOMPARE(inProcess(folder, stopped).code, protocol::Interrupted);
        QVERIFY(m_workspace.run(folder, "step:3").isKilled);
        QCOMPARE(m_workspace.run(folder).code, 0);
        compare(folder, expected, kSteps);
        QCOMPARE(exactRows(folder).at({"train/lr", kSteps}), 0.004);
    }

    void aFixedRateStaysUntilRateOrScheduleAreChanged_data() {
        QTest::addColumn<QString>("patch");
        QTest::addColumn<bool>("stays");
        QTest::newRow("evaluation") << R"({"evaluate": {"every_steps": 5}})" << true;
        QTest::newRow("rate") << R"({"optimizer": {"lr": 0.02}})" << false;
        QTest::newRow("schedule") << R"({"schedule": {"type": "constant"}})" << false;
    }
    void aFixedRateStaysUntilRateOrScheduleAreChanged() {
        QFETCH(QString, patch);
        QFETCH(bool, stays);
        const auto folder = m_workspace.create(recipe());
        Script link;
        link.after[3] = {{protocol::Action::SetLearningRate, 0.004}};
        link.after[5] = {{protocol::Action::Stop, 0}};
        QCOMPARE(inProcess(folder, link).code, protocol::Interrupted);
        set(folder, json::parse(patch.toStdString()));
        QCOMPARE(m_workspace.run(folder).code, 0);
        QCOMPARE(exactRows(folder).at({"train/lr", 5}), 0.004);
        QCOMPARE(exactRows(folder).at({"train/lr", 6}) == 0.004, stays);
        const auto said = events(folder, "changed");
        QCOMPARE(said.size(), std::size_t(1));
        const json data = json::parse(said[0].data);
        QCOMPARE(data["step"].get<int>(), 6);
        QCOMPARE(data["keeps_fixed_rate"].get<bool>(), stays);
        QVERIFY2(QString::fromStdString(said[0].message).contains(stays ? "stays at 0.004" : "is in force again"), said[0].message.c_str());
    }

    void aLongerRunLaysItsScheduleOutOverAllSteps() {
        const auto folder = trained(recipe());
        set(folder, {{"train", {{"max_steps", 20}}}});
        QCOMPARE(m_workspace.run(folder).code, 0);
        const json data = json::parse(events(folder, "changed").at(0).data);
        QVERIFY(data["changes"] == json::array({{{"key", "train.max_steps"}, {"before", "10"}, {"now", "20"}}}));
        QCOMPARE(data["total_steps"].get<int>(), 20);
        QCOMPARE(data["total_steps_before"].get<int>(), 10);
        // Cosine of 20 steps with 2 of warm-up and a minimum of 0: s = 10 is (10 - 2) / (20 - 1 - 2) of the way down.
        const double expected = 0.01 * 0.5 * (1 + std::cos(std::acos(-1.0) * 8 / 17));
        QVERIFY(std::abs(exactRows(folder).at({"train/lr", 11}) - expected) < 1e-12);
        QCOMPARE(data["rate"].get<double>(), exactRows(folder).at({"train/lr", 11}));
    }

    void changedTwiceBeforeACheckpointIsToldAgainstTheCheckpoint() {
        const auto folder = m_workspace.create(recipe());
        QVERIFY(m_workspace.run(folder, "step:6").isKilled); // step-000004
        set(folder, {{"optimizer", {{"lr", 0.02}}}});
        QVERIFY(m_workspace.run(folder, "step:1").isKilled);
        QCOMPARE(m_workspace.run(folder).code, 0);
        const auto said = events(folder, "changed");
        QCOMPARE(said.size(), std::size_t(2));
        for (const auto& event : said) QVERIFY2(QString::fromStdString(event.message).contains("Changed from step 5 on: optimizer.lr: 0.01 -> 0.02."), event.message.c_str());
    }

    void fewerStepsThanAreDoneAreRefused() {
        const auto folder = trained(recipe());
        auto fewer = recipe::Recipe::load(folder.recipe());
        QVERIFY(fewer->setFromText("train.max_steps", "7"));
        const auto plan = store::planResume(folder, *fewer);
        QVERIFY(!plan);
        QCOMPARE(QString::fromStdString(plan.error().text()).section('.', 0, 2),
                 QString("train.max_steps: 10 steps are done already, more than the 7 asked for. Give more than are done, or start a new run whose model"));
        set(folder, {{"train", {{"max_steps", 7}}}}); // by hand: the run itself refuses as well
        const ChildEnd end = m_workspace.run(folder);
        QCOMPARE(end.code, int(protocol::BadInput));
        QVERIFY2(end.output.contains("10 steps are done already, more than the 7 asked for."), qPrintable(end.output));
        QVERIFY(engine::verifyManifest(folder.checkpoints() / engine::checkpointName(kSteps)));
    }

    void aPlanKnowsWhereTheRunGoesOn() {
        const auto folder = m_workspace.create(recipe({{"train", {{"max_steps", 0}, {"epochs", 4}}}})); // 3 steps each
        QVERIFY(m_workspace.run(folder, "step:8").isKilled);
        auto changed = recipe::Recipe::load(folder.recipe());
        QVERIFY(changed->setFromText("train.epochs", "5") && changed->setFromText("optimizer.lr", "0.005"));
        const auto plan = store::planResume(folder, *changed);
        QVERIFY2(plan.has_value(), plan ? "" : plan.error().text().c_str());
        QCOMPARE(plan->checkpoint, engine::checkpointName(6));
        QCOMPARE(plan->effect.step, std::int64_t(6));
        QCOMPARE(plan->effect.totalBefore, std::int64_t(12));
        QCOMPARE(plan->effect.total, std::int64_t(15));
        QCOMPARE(plan->effect.changes.size(), std::size_t(2));
        QVERIFY(!plan->effect.isComplete());
    }

    void allCheckpointsDamagedIsRefusedAndTouchesNothing() {
        const auto folder = m_workspace.create(recipe());
        QVERIFY(m_workspace.run(folder, "step:8").isKilled);
        const auto all = engine::listCheckpoints(folder.checkpoints());
        QCOMPARE(all.size(), std::size_t(2));
        for (const fs::path& checkpoint : all) fs::resize_file(checkpoint / "trainer.safetensors", 100);
        const ChildEnd end = m_workspace.run(folder);
        QCOMPARE(end.code, int(protocol::BadInput));
        QVERIFY2(end.output.contains("All 2 checkpoints of the run are damaged."), qPrintable(end.output));
        QVERIFY(engine::listCheckpoints(folder.checkpoints()) == all);
        QVERIFY(exactRows(folder).contains({"train/loss", 6})); // nothing was superseded
    }

    void aDamagedCheckpointNeverPushesAGoodOneOut() { // keep_max 1: under its own name it would be the one that is kept
        const auto folder = m_workspace.create(recipe({{"checkpoint", {{"keep_best", false}}}}));
        QVERIFY(m_workspace.run(folder, "step:8").isKilled); // step-000004 and step-000006
        fs::resize_file(folder.checkpoints() / engine::checkpointName(6) / "model.safetensors", 100);
        set(folder, {{"checkpoint", {{"keep_max", 1}, {"every_steps", 5}}}});
        QVERIFY(m_workspace.run(folder, "step:3").isKilled); // step-000005 was saved, in the third step it dies
        const auto left = engine::listCheckpoints(folder.checkpoints());
        QCOMPARE(left.size(), std::size_t(1));
        QCOMPARE(left[0].filename().string(), engine::checkpointName(5));
        QVERIFY(fs::exists(folder.checkpoints() / "damaged-step-000006"));
        QCOMPARE(m_workspace.run(folder).code, 0);
    }

    void case08TimeLeftSurvivesAResume() {
        const auto folder = m_workspace.create(recipe());
        QVERIFY(m_workspace.run(folder, "step:6").isKilled);
        Script link;
        QCOMPARE(inProcess(folder, link).code, protocol::Ok);
        const auto first = std::find_if(link.seen.begin(), link.seen.end(), [](const store::Progress& now) { return now.totalSteps > 0; });
        QVERIFY(first != link.seen.end());
        QCOMPARE(first->step, std::int64_t(4));
        QVERIFY(first->remainingSeconds > 0 && first->elapsedSeconds > 0); // before its first own step
        for (const store::Progress& now : link.seen) QVERIFY(now.totalSteps == 0 || now.totalSteps == kSteps);
    }

    void case08StepsShownAreTheStepsRun_data() {
        QTest::addColumn<bool>("dropsLast");
        QTest::addColumn<int>("steps");
        QTest::newRow("flushed") << false << 4;
        QTest::newRow("dropped") << true << 2;
    }
    void case08StepsShownAreTheStepsRun() { // 10 samples, batch 2, accumulation 4, 2 epochs
        QFETCH(bool, dropsLast);
        QFETCH(int, steps);
        const auto folder = m_workspace.create(recipe({{"train", {{"batch_size", 2}, {"accumulation", 4}, {"max_steps", 0}, {"epochs", 2}, {"drop_last", dropsLast}}},
                                                       {"schedule", {{"warmup_steps", 1}}}}));
        Script link;
        QCOMPARE(inProcess(folder, link).code, protocol::Ok);
        for (const store::Progress& now : link.seen) QVERIFY(now.totalSteps == 0 || now.totalSteps == steps);
        QCOMPARE(progress(folder).step, std::int64_t(steps));
        QVERIFY(exactRows(folder).contains({"train/loss", steps}) && !exactRows(folder).contains({"train/loss", steps + 1}));
    }
};

QTEST_GUILESS_MAIN(TestResume)
#include "tst_resume.moc"
