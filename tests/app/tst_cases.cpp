// Cases of training arithmetic through the child program, by their numbers in cases.md: what a run writes against what other runs,
// or the rule itself, say.
#include "models/protocol/protocol.h"
#include "tests/app/token_run_helper.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <fstream>

using namespace celloom;
using namespace celloom::test;
using nlohmann::json;

namespace {

const std::string kSmallBase = CELLOOM_SOURCE "/resources/models/internlm-small-sanguo";

std::map<std::string, at::Tensor> tensorsOf(const fs::path& file) {
    const auto opened = engine::SafetensorsFile::open(file);
    if (!opened) qFatal("%s", opened.error().text().c_str());
    std::map<std::string, at::Tensor> out;
    for (const std::string& name : (*opened)->names()) {
        const auto tensor = (*opened)->tensor(name);
        if (!tensor) qFatal("%s", tensor.error().text().c_str());
        out.emplace(name, tensor->clone()); // the file is closed with the reader
    }
    return out;
}

} // namespace

class TestCases : public QObject {
    Q_OBJECT
    RunWorkspace m_workspace;
    TokenFiles m_files;

    fs::path at(const std::string& name) const { return m_files.at(name); }
    store::RunFolder done(const json& recipe) {
        const auto folder = m_workspace.create(recipe);
        const ChildEnd end = m_workspace.run(folder);
        if (end.isKilled || end.code != 0) qFatal("%s%s", qPrintable(end.output), qPrintable(end.messages));
        return folder;
    }
    static fs::path checkpoint(const store::RunFolder& folder, std::int64_t step) { return folder.checkpoints() / engine::checkpointName(step); }
    /// The last evaluation: mean loss and number of tokens.
    static std::pair<double, std::int64_t> measured(const store::RunFolder& folder) {
        const json event = json::parse(events(folder, "evaluation").back().data);
        return {event.at("loss"), event.at("tokens")};
    }
    static at::Tensor ids(const std::vector<std::vector<std::int64_t>>& rows) {
        std::vector<at::Tensor> out;
        for (const auto& row : rows) out.push_back(at::tensor(row, at::kLong));
        return at::stack(out);
    }

private Q_SLOTS:
    void case7AccumulationWeighsByValidTokens() {
        const auto one = ids({{1, 2, 3, 4}}), other = ids({{5, 6, 7, 8}}), otherLabels = ids({{-100, -100, 7, -100}}); // 3 and 1 labels
        QVERIFY(engine::writeSafetensors(at("both.safetensors"), {{"input_ids", at::cat({one, other})}, {"labels", at::cat({one, otherLabels})}}));
        QVERIFY(engine::writeSafetensors(at("one.safetensors"), {{"input_ids", one}, {"labels", one}}));
        QVERIFY(engine::writeSafetensors(at("other.safetensors"), {{"input_ids", other}, {"labels", otherLabels}}));
        const auto train = [&](int batch, int accumulation) {
            return done(m_files.recipe({{"model", {{"source", "baichuan-tiny"}}}, // no dropout
                                        {"data", {{"train", {at("both.safetensors").string()}}, {"validation", json::array()}, {"validation_fraction", 0}}},
                                        {"train", {{"batch_size", batch}, {"accumulation", accumulation}, {"max_steps", 3}}},
                                        {"optimizer", {{"type", "SGD"}, {"lr", 0.5}, {"clip_norm", 0}}},
                                        {"schedule", {{"warmup_steps", 0}, {"type", "constant"}}},
                                        {"checkpoint", {{"every_steps", 1}, {"keep_max", 5}}}}));
        };
        const auto together = train(2, 1), apart = train(1, 2);
        const auto lossOf = [&](const char* rows) {
            return measured(done({{"kind", "evaluate"}, {"model", {{"weights", checkpoint(apart, 1).string()}}}, {"data", {{"validation", {at(rows).string()}}}},
                                  {"train", {{"batch_size", 1}}}, {"device", "cpu"}, {"threads", 1}}));
        };
        const auto [first, labels] = lossOf("one.safetensors");
        const auto [second, label] = lossOf("other.safetensors");
        QCOMPARE(labels, std::int64_t(3));
        QCOMPARE(label, std::int64_t(1));
        const auto rows = exactRows(together), rowsApart = exactRows(apart);
        const double step2 = rowsApart.at({"train/loss", 2}), expected = (3 * first + second) / 4;
        QVERIFY2(std::abs(step2 - expected) < 1e-5, qPrintable(QString("%1, not %2 of %3 and %4").arg(step2, 0, 'g', 9).arg(expected, 0, 'g', 9).arg(first, 0, 'g', 9).arg(second, 0, 'g', 9)));
        QVERIFY(std::abs(first - second) > 0.01); // a mean of means would be seen
        for (int step = 1; step <= 3; ++step) QVERIFY(std::abs(rows.at({"train/loss", step}) - rowsApart.at({"train/loss", step})) < 1e-5);
        const auto weights = tensorsOf(checkpoint(together, 3) / "model.safetensors"), weightsApart = tensorsOf(checkpoint(apart, 3) / "model.safetensors"),
                   weightsBefore = tensorsOf(checkpoint(apart, 1) / "model.safetensors");
        QCOMPARE(weights.size(), weightsApart.size());
        double moved = 0;
        for (const auto& [name, tensor] : weights) {
            QVERIFY2(tensor.sub(weightsApart.at(name)).abs().max().item<double>() < 1e-5, name.c_str());
            moved = std::max(moved, tensor.sub(weightsBefore.at(name)).abs().max().item<double>());
        }
        QVERIFY(moved > 1e-3);
    }

    void case8TheTotalShownEqualsTheStepsRun_data() {
        QTest::addColumn<bool>("drops");
        QTest::addColumn<int>("steps");
        QTest::newRow("each epoch's tail is flushed") << false << 4;
        QTest::newRow("it is dropped") << true << 2;
    }
    void case8TheTotalShownEqualsTheStepsRun() { // 10 samples, batch 2, accumulation 4, 2 epochs
        QFETCH(bool, drops);
        QFETCH(int, steps);
        const auto folder = m_workspace.create(m_files.recipe({{"train", {{"accumulation", 4}, {"max_steps", 0}, {"epochs", 2}, {"drop_last", drops}}}, {"schedule", {{"warmup_steps", 0}}}}));
        Script link;
        QCOMPARE(runInProcess(m_workspace, folder, link).code, protocol::Ok);
        int shown = 0;
        for (const store::Progress& now : link.seen)
            if (now.totalSteps > 0) { // known once the data are read
                QVERIFY(now.totalSteps == steps && now.step <= steps);
                ++shown;
            }
        QVERIFY(shown >= steps);
        QCOMPARE(progress(folder).step, std::int64_t(steps));
        QCOMPARE(progress(folder).totalSteps, std::int64_t(steps));
    }

    void case9OverflowsFollowTheRuleAndChangeNothing() {
        constexpr std::int64_t kSteps = 40, kWindow = 3;
        constexpr double kFirst = 1 << 30;
        const auto folder = done(m_files.recipe({{"precision", {{"amp_level", "O2"}, {"half_type", "float16"}, {"loss_scale", "dynamic"}, {"loss_scale_value", kFirst},
                                                                {"loss_scale_factor", 2}, {"loss_scale_window", kWindow}}},
                                                 {"train", {{"max_steps", kSteps}}}, {"evaluate", {{"every_steps", 0}}}, {"checkpoint", {{"every_steps", 1}, {"keep_max", 100}}}}));
        std::set<std::int64_t> overflowed;
        for (const auto& event : events(folder, "overflow")) overflowed.insert(json::parse(event.data).at("step").get<std::int64_t>());
        QVERIFY(overflowed.size() > 5 && overflowed.size() < kSteps - 5); // 2^30 is too much, and each growth past the bearable overflows again
        const auto rows = exactRows(folder);
        double scale = kFirst;
        std::int64_t changed = 0, updates = 0;
        for (std::int64_t step = 1; step <= kSteps; ++step) {
            const bool isOverflow = overflowed.contains(step);
            if (isOverflow) { // the rule as cases.md has it, a window after the last change
                scale /= 2;
                changed = step;
            } else if (step - changed >= kWindow) {
                scale *= 2;
                changed = step;
            }
            const json state = json::parse(*readFile(checkpoint(folder, step) / "state.json"));
            QCOMPARE(state.at("loss_scale").at("value").get<double>(), scale);
            QCOMPARE(state.at("step").get<std::int64_t>(), step); // goes on
            updates += !isOverflow;
            const auto trainer = tensorsOf(checkpoint(folder, step) / "trainer.safetensors");
            QCOMPARE(trainer.at("steps").item<double>(), static_cast<double>(updates));
            if (step == 1) continue;
            const auto weights = [&](std::int64_t of) { return *sha256OfFile(checkpoint(folder, of) / "model.safetensors"); };
            const auto moments = [&](std::int64_t of) { return *sha256OfFile(checkpoint(folder, of) / "trainer.safetensors"); };
            QVERIFY2((weights(step) == weights(step - 1)) == isOverflow && (moments(step) == moments(step - 1)) == isOverflow, qPrintable(QString::number(step)));
            QVERIFY(rows.contains({"train/loss_scale", step}));
        }
    }

    void case11AdaptersTrainInFloat32WhateverTheBasesType() {
        const auto tuned = [&](const char* type) {
            return done({{"kind", "finetune"},
                         {"model", {{"source", kSmallBase}, {"weights", kSmallBase}}},
                         {"data", {{"train", {CELLOOM_SOURCE "/resources/instructions/closing-mark-train.jsonl"}}, {"validation", json::array()},
                                   {"validation_fraction", 0}, {"template", "plain"}}},
                         {"lora", {{"targets", {"q_proj", "v_proj"}}, {"base_type", type}}},
                         {"precision", {{"amp_level", std::string(type) == "float32" ? "O0" : "O2"}, {"half_type", "float16"}, {"loss_scale", "none"}}},
                         {"train", {{"batch_size", 4}, {"sequence_length", 64}, {"max_steps", 8}}},
                         {"optimizer", {{"lr", 0.005}}},
                         {"device", "cpu"},
                         {"threads", 1}});
        };
        const auto half = tuned("float16"), whole = tuned("float32");
        int adapters = 0;
        const auto learned = tensorsOf(checkpoint(half, 8) / "adapter_model.safetensors"), inFloat = tensorsOf(checkpoint(whole, 8) / "adapter_model.safetensors");
        for (const auto& [name, tensor] : learned) {
            QCOMPARE(tensor.scalar_type(), at::kFloat);
            QVERIFY2(tensor.sub(tensor.to(at::kHalf).to(at::kFloat)).abs().max().item<double>() > 0, name.c_str()); // not rounded to the base's type
            ++adapters;
        }
        QVERIFY(adapters > 0 && learned.size() == inFloat.size());
        for (const auto& [name, tensor] : tensorsOf(checkpoint(half, 8) / "trainer.safetensors"))
            if (tensor.is_floating_point()) QVERIFY2(tensor.scalar_type() != at::kHalf, name.c_str());
        const auto rows = exactRows(half), rowsInFloat = exactRows(whole);
        for (int step = 1; step <= 8; ++step) QVERIFY(std::abs(rows.at({"train/loss", step}) - rowsInFloat.at({"train/loss", step})) < 0.03 * rowsInFloat.at({"train/loss", step}));
    }

    void case13APackedDocumentEqualsTheDocumentAlone() {
        std::ofstream(at("a.txt")) << "却说曹操引军追赶，玄德走入新野。";
        std::ofstream(at("b.txt")) << "次日，孔明升帐，众将皆至。";
        const auto lossOf = [&](const std::vector<std::string>& files, const char* attention) {
            json paths = json::array();
            for (const std::string& file : files) paths.push_back(at(file).string());
            return measured(done({{"kind", "evaluate"}, {"model", {{"weights", kSmallBase}}}, {"data", {{"validation", paths}, {"attention", attention}}},
                                  {"train", {{"batch_size", 1}, {"sequence_length", 64}}}, {"device", "cpu"}, {"threads", 1}}));
        };
        const auto [a, labelsA] = lossOf({"a.txt"}, "document");
        const auto [b, labelsB] = lossOf({"b.txt"}, "document");
        const auto [both, labels] = lossOf({"a.txt", "b.txt"}, "document");
        const auto [through, labelsThrough] = lossOf({"a.txt", "b.txt"}, "full");
        const auto count = [](std::int64_t number) { return static_cast<double>(number); };
        QCOMPARE(labels, labelsA + labelsB); // b's first label is ignored
        QVERIFY(std::abs(both - (a * count(labelsA) + b * count(labelsB)) / count(labels)) < 1e-5);
        QCOMPARE(labelsThrough, labels + 1); // one context: b's first token follows a's end
        QVERIFY(std::abs(through * count(labelsThrough) - both * count(labels)) > 1e-2);
    }

    void case13PackedConversationsEqualThemselvesAlone() {
        const auto lossOf = [&](bool isPacked) {
            return measured(done({{"kind", "evaluate"}, {"model", {{"weights", kSmallBase}}},
                                  {"data", {{"validation", {CELLOOM_SOURCE "/resources/instructions/closing-mark-held-out.jsonl"}}, {"template", "plain"}, {"packing", isPacked}}},
                                  {"train", {{"batch_size", isPacked ? 1 : 4}, {"sequence_length", isPacked ? 256 : 64}}}, {"device", "cpu"}, {"threads", 1}}));
        };
        const auto [packed, labels] = lossOf(true);
        const auto [alone, labelsAlone] = lossOf(false);
        QCOMPARE(labels, labelsAlone);
        QVERIFY2(std::abs(packed - alone) < 1e-5, qPrintable(QString::number(packed - alone)));
    }
};

QTEST_GUILESS_MAIN(TestCases)
#include "tst_cases.moc"
