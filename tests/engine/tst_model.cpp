// Model: order of events as MindSpore gives them, accumulation, packed documents, evaluation, and control from outside.
#include "engine/data/packed.h"
#include "engine/train/model.h"
#include "engine/train/llm_trainer.h"
#include "models/base/files.h"
#include "models/families/families.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>

#include <QTemporaryDir>
#include <QTest>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

using namespace celloom;
using namespace celloom::engine;
using nlohmann::json;

namespace {

template <class T> T must(Result<T> result) {
    if (!result) qFatal("%s", result.error().text().c_str());
    return std::move(*result);
}

class ListDataset : public Dataset {
public:
    explicit ListDataset(std::vector<Row> rows) : m_rows(std::move(rows)) {}
    std::int64_t size() const override { return static_cast<std::int64_t>(m_rows.size()); }
    Row get(std::int64_t index) const override { return m_rows[static_cast<std::size_t>(index)]; }

private:
    std::vector<Row> m_rows;
};

Row row(const std::vector<std::int64_t>& ids, const std::vector<std::int64_t>& labels) { return {at::tensor(ids, at::kLong), at::tensor(labels, at::kLong), {}, {}}; }

/// Rows of four tokens below 20, all different.
ListDataset rows(int count) {
    std::vector<Row> out;
    for (std::int64_t i = 0; i < count; ++i) {
        const std::vector<std::int64_t> ids{1 + i % 19, 1 + (i * 3) % 19, 1 + (i * 5 + 2) % 19, 1 + (i * 7 + 1) % 19};
        out.push_back(row(ids, ids));
    }
    return ListDataset(std::move(out));
}

/// A small network with its optimizer and model.
struct Training {
    std::unique_ptr<Network> network;
    std::unique_ptr<Optimizer> optimizer;
    std::unique_ptr<Model> model;

    explicit Training(ModelOptions options, double rate = 1e-2, std::uint64_t seed = 1, LanguageModelOptions loss = {}) {
        graph::Expansion expansion = graph::expand(must(families::buildPreset("baichuan-tiny")), {{"vocab", std::int64_t(20)}, {"hidden", std::int64_t(16)}, {"layers", std::int64_t(2)}, {"heads", std::int64_t(2)}, {"intermediate", std::int64_t(24)}});
        if (!expansion.ok()) qFatal("%s", expansion.firstError().text().c_str());
        const auto treatment = must(recipe::resolve(expansion.model, {}));
        NetworkOptions networkOptions;
        networkOptions.seed = seed;
        networkOptions.initStd = 0.2;
        network = must(Network::create(std::move(expansion.model), treatment, networkOptions));
        optimizer = must(makeOptimizer(recipe::Recipe(), network->parameters(), treatment));
        options.schedule.type = "constant";
        options.schedule.peak = rate;
        model = std::make_unique<Model>(*network, std::make_shared<LanguageModelLoss>(loss), optimizer.get(), must(metricsNamed({"loss"})), options);
    }
    std::vector<double> losses(std::int64_t steps, const Dataset& data) {
        struct Listener : Callback {
            std::vector<double> values;
            Status stepEnd(RunContext& context) override {
                values.push_back(context.originalArgs().netOutputs);
                return {};
            }
        } listener;
        if (must(model->trainTo(steps, data, {&listener})) != Model::End::Finished) qFatal("not finished");
        return listener.values;
    }
    double largestDifference(const Training& other) const {
        double out = 0;
        for (std::size_t p = 0; p < network->parameters().size(); ++p)
            out = std::max(out, network->parameters()[p].tensor.detach().sub(other.network->parameters()[p].tensor.detach()).abs().max().item<double>());
        return out;
    }
};

ModelOptions options(std::int64_t batch, std::int64_t accumulation) {
    ModelOptions out;
    out.batchSize = batch;
    out.accumulation = accumulation;
    out.shuffle = false;
    return out;
}

/// Writes events down as the fixture has them: [event, cur_epoch_num, cur_step_num].
class Recorder : public Callback {
public:
    json trace = json::array();
    std::int64_t stopAtStep = 0;

#define RECORD(method, name)                                                                                                               \
    Status method(RunContext& context) override {                                                                                          \
        const CallbackParams& params = context.originalArgs();                                                                             \
        const bool hasEpoch = std::string(name) != "on_train_begin"; /* MindSpore's cur_epoch_num does not exist yet */                    \
        trace.push_back({name, hasEpoch ? json(params.curEpochNum) : json(), params.curStepNum});                                          \
        if (std::string(name) == "on_train_step_end" && params.curStepNum == stopAtStep) context.requestStop();                            \
        return {};                                                                                                                         \
    }
    RECORD(onTrainBegin, "on_train_begin")
    RECORD(onTrainEpochBegin, "on_train_epoch_begin")
    RECORD(onTrainStepBegin, "on_train_step_begin")
    RECORD(onTrainStepEnd, "on_train_step_end")
    RECORD(onTrainEpochEnd, "on_train_epoch_end")
    RECORD(onTrainEnd, "on_train_end")
    RECORD(onEvalBegin, "on_eval_begin")
    RECORD(onEvalEpochBegin, "on_eval_epoch_begin")
    RECORD(onEvalStepBegin, "on_eval_step_begin")
    RECORD(onEvalStepEnd, "on_eval_step_end")
    RECORD(onEvalEpochEnd, "on_eval_epoch_end")
    RECORD(onEvalEnd, "on_eval_end")
#undef RECORD
};

json semantics() { return json::parse(*readFile(std::filesystem::path(CELLOOM_FIXTURES) / "mindspore_semantics.json")); }

/// Hands out commands after chosen lines of the log, as a window would send them.
class ScriptedLink : public protocol::ChildLink {
public:
    std::vector<protocol::Command> next;
    std::vector<protocol::Command> whilePaused; // one for each wait
    std::vector<store::RunState> states;

    std::vector<protocol::Command> take() override { return std::exchange(next, {}); }
    bool waitForCommand(std::chrono::milliseconds) override {
        if (whilePaused.empty()) return false;
        next.push_back(whilePaused.front());
        whilePaused.erase(whilePaused.begin());
        return true;
    }
    void progress(const store::Progress& progress, std::int64_t) override {
        if (states.empty() || states.back() != progress.state) states.push_back(progress.state);
    }
    void message(std::int64_t, const std::string&, const std::string&, const std::string&, const std::string&) override {}
};

} // namespace

class TestModel : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void eventsComeInMindSporesOrder() {
        Training training(options(1, 1));
        Recorder recorder;
        QVERIFY(training.model->train(2, rows(3), {&recorder}));
        const json fixture = semantics();
        json expected = json::array();
        for (const json& entry : fixture["callback_trace_2_epochs_of_3_steps"])
            if (entry[0] == "A") expected.push_back({entry[1], entry[2], entry[3]});
        QCOMPARE(recorder.trace.dump(), expected.dump());
    }
    void fitEvaluatesAtEpochEndsInMindSporesOrder() {
        Training training(options(1, 1));
        Recorder recorder;
        QVERIFY(training.model->fit(2, rows(2), rows(2), {&recorder}));
        QCOMPARE(recorder.trace.dump(), semantics()["fit_trace"].dump());
    }
    void requestStopEndsAfterTheStep() {
        Training training(options(1, 1));
        Recorder recorder;
        recorder.stopAtStep = 2;
        QVERIFY(must(training.model->train(3, rows(3), {&recorder})) == Model::End::Stopped);
        QCOMPARE(recorder.trace.dump(), semantics()["request_stop_at_step_2_of_3"].dump());
    }

    void accumulationWeighsByValidTokens() { // cases.md 7: micro-batches with 3 and 1 valid tokens; (sum 1 + sum 2) / 4
        const ListDataset data({row({1, 2, 3, 4}, {1, 2, 3, 4}), row({5, 6, 7, 8}, {-100, -100, 7, -100})});
        Training together(options(2, 1)), apart(options(1, 2));
        const LossSum three = languageModelLoss(must(apart.network->forward(collate(data, 0, 1))).at("logits"), collate(data, 0, 1).labels);
        const LossSum one = languageModelLoss(must(apart.network->forward(collate(data, 1, 1))).at("logits"), collate(data, 1, 1).labels);
        QCOMPARE(three.count, std::int64_t(3));
        QCOMPARE(one.count, std::int64_t(1));
        const double expected = (three.sum.item<double>() + one.sum.item<double>()) / 4;
        const auto lossesTogether = together.losses(3, data), lossesApart = apart.losses(3, data);
        QVERIFY(std::abs(lossesApart[0] - expected) < 1e-6);
        for (std::size_t s = 0; s < 3; ++s) QVERIFY(std::abs(lossesTogether[s] - lossesApart[s]) < 1e-5);
        QVERIFY(together.largestDifference(apart) < 1e-5);
    }

    void zLossIsTheMeanOverThePositionsOfTheStep() {
        const ListDataset data({row({1, 2, 3, 4}, {1, 2, 3, 4}), row({5, 6, 7, 8}, {-100, -100, 7, -100})});
        Training together(options(2, 1), 1e-2, 1, {.zLossWeight = 0.3}), apart(options(1, 2), 1e-2, 1, {.zLossWeight = 0.3}), without(options(2, 1));
        const Batch batch = collate(data, 0, 2);
        const at::Tensor logits = must(together.network->forward(batch)).at("logits");
        double squares = 0; // by the definition: six positions predict a token, ignored labels too
        for (int b = 0; b < 2; ++b)
            for (int t = 0; t < 3; ++t) squares += std::pow(logits[b][t].max().item<double>(), 2);
        const auto plain = without.losses(3, data), lossesTogether = together.losses(3, data), lossesApart = apart.losses(3, data);
        QVERIFY(std::abs(lossesTogether[0] - (plain[0] + 0.3 * squares / 6)) < 1e-5);
        for (std::size_t s = 0; s < 3; ++s) QVERIFY(std::abs(lossesTogether[s] - lossesApart[s]) < 1e-5);
        QVERIFY(together.largestDifference(apart) < 1e-5);
        QVERIFY(together.largestDifference(without) > 1e-4); // it is learned from
        RunContext context;
        const auto evaluation = must(together.model->evaluate(data, context));
        const LossSum crossEntropy = languageModelLoss(must(together.network->forward(batch)).at("logits"), batch.labels);
        QVERIFY(std::abs(evaluation->loss - crossEntropy.sum.item<double>() / 4) < 1e-5);
    }

    void totalStepsShownEqualTheStepsRun() { // cases.md 8
        const ListDataset data = rows(10);
        for (const auto& [tail, steps] : {std::pair{EpochTail::Run, 4}, {EpochTail::Drop, 2}}) {
            ModelOptions settings = options(2, 4);
            settings.tail = tail;
            Training training(settings);
            QCOMPARE(2 * training.model->planOf(data).stepsPerEpoch(), std::int64_t(steps));
            QCOMPARE(training.losses(steps, data).size(), std::size_t(steps));
        }
    }

    void numbersThatCannotBeCountedWithAreRefused() {
        const ListDataset data = rows(4);
        // 0 divides, and a product past 2^63 - 1 wraps: a recipe's ranges hold both off, a caller of the library meets Model alone.
        for (const ModelOptions& wrong : {options(0, 1), options(1, 0), options(-1, 1), options(std::int64_t{1} << 62, 4)}) {
            Training training(wrong);
            const auto trained = training.model->train(1, data, {});
            QVERIFY(!trained && trained.error().place == "options");
            QVERIFY(!training.model->evaluate(data));
        }
        Training training(options(1, 1));
        const auto trained = training.model->train(std::numeric_limits<std::int64_t>::max(), data, {}); // times 4 steps
        QVERIFY(!trained);
        QCOMPARE(trained.error().place, std::string("epoch"));
        QCOMPARE(training.model->step(), std::int64_t{0});
    }

    void aPackedDocumentEqualsTheDocumentAlone() { // cases.md 13
        Training training(options(1, 1));
        const std::vector<std::int64_t> a{3, 5, 7, 2}, b{11, 4, 9, 2};
        const TokenStream packed{at::tensor(std::vector<std::int32_t>{3, 5, 7, 2, 11, 4, 9, 2}, at::kInt), at::tensor(std::vector<std::int64_t>{0, 4, 8}, at::kLong)};
        const PackedDataset data(packed, 8, DocumentAttention::Document, 0);
        const at::Tensor both = must(training.network->forward(collate(data, 0, 1))).at("logits");
        Batch alone;
        alone.inputIds = at::tensor(b, at::kLong).unsqueeze(0);
        const at::Tensor single = must(training.network->forward(alone)).at("logits");
        QVERIFY(both.slice(1, 4).sub(single).abs().max().item<double>() < 1e-5);
        QCOMPARE(validLabels(collate(data, 0, 1)), std::int64_t(6));
    }

    void evaluationIsTheMeanOverAllTokensWhateverTheBatches() {
        const ListDataset data = rows(5);
        Training big(options(5, 1)), small(options(2, 1));
        RunContext context;
        const auto one = must(big.model->evaluate(data, context)), other = must(small.model->evaluate(data, context));
        QVERIFY(one && other);
        QCOMPARE(one->items, std::int64_t(15));
        QCOMPARE(other->items, std::int64_t(15));
        QVERIFY(std::abs(one->loss - other->loss) < 1e-6);
        QVERIFY(std::abs(one->perplexity() - std::exp(one->loss)) < 1e-9);
    }

    void aDivergedStepChangesNothing() {
        Training training(options(2, 1)), untouched(options(2, 1));
        {
            at::Tensor weight = training.network->parameters().back().tensor.detach();
            weight.fill_(INFINITY);
        }
        at::Tensor before = training.network->parameters().front().tensor.detach().clone();
        QVERIFY(must(training.model->train(3, rows(4), {})) == Model::End::Diverged);
        QCOMPARE(training.model->step(), std::int64_t(0));
        QCOMPARE(training.model->divergence().step, std::int64_t(1));
        QVERIFY(training.network->parameters().front().tensor.detach().equal(before));
    }

    void anOverflowUnderALossScaleSkipsTheUpdateAndGoesOn() { // cases.md 9
        ModelOptions settings = options(2, 1);
        settings.lossScale = LossScale::dynamic(3e38, 2, 1000); // loss × 3e38 overflows float32 until it was halved often enough
        Training training(settings), untouched(options(2, 1));
        Recorder recorder;
        QVERIFY(must(training.model->trainTo(1, rows(4), {&recorder})) == Model::End::Finished);
        QCOMPARE(training.largestDifference(untouched), 0.0); // no weight
        QCOMPARE(training.optimizer->state().at("steps").item<double>(), 0.0); // no optimizer step
        QCOMPARE(training.model->step(), std::int64_t(1)); // the count of steps goes on
        QCOMPARE(training.model->state().lossScale.value, 1.5e38);
    }

    void aRunObeysItsCommands() {
        QTemporaryDir temporary;
        const auto workspace = must(store::Workspace::open(temporary.path().toStdString()));
        const auto folder = must(workspace.createRun("controlled"));
        const std::string chapters = CELLOOM_SOURCE "/resources/corpora/sanguo/";
        const json recipe = {{"model", {{"overrides", {"hidden=16", "layers=1", "heads=2", "intermediate=24"}}}},
                             {"tokenizer", {{"vocab_size", 1900}}},
                             {"data", {{"train", {chapters + "001.txt"}}, {"validation", {chapters + "002.txt"}}}},
                             {"train", {{"batch_size", 2}, {"sequence_length", 32}, {"max_steps", 20}}},
                             {"evaluate", {{"max_batches", 1}}},
                             {"sample", {{"max_new_tokens", 4}}},
                             {"threads", 1}};
        ScriptedLink link;
        const auto print = [&](const std::string& line) {
            using protocol::Action;
            if (line.starts_with("epoch: 1 step: 3,")) {
                link.next = {{Action::Pause, 0}};
                link.whilePaused = {{Action::Save, 0}, {Action::Evaluate, 0}, {Action::Sample, 0}, {Action::SetLearningRate, 0.125}, {Action::Continue, 0}};
            }
            if (line.starts_with("epoch: 1 step: 6,")) link.next = {{Action::Stop, 0}};
        };
        {
            const auto writer = must(store::RunWriter::open(folder.database()));
            LLMTrainer trainer({folder, workspace.cache(), *writer, &link, nullptr, print}, must(recipe::Recipe::fromJson(recipe.dump())));
            const RunResult result = trainer.run();
            QVERIFY2(result.code == protocol::Interrupted, result.error.text().c_str());
        }
        using enum store::RunState;
        QVERIFY((link.states == std::vector<store::RunState>{Preparing, Running, Paused, Running, Stopping, Stopped}));
        QCOMPARE(checkpointStep(listCheckpoints(folder.checkpoints()).front()), std::int64_t(3)); // saved while paused
        QCOMPARE(checkpointStep(listCheckpoints(folder.checkpoints()).back()), std::int64_t(6));  // saved by the stop
        const auto reader = must(store::RunReader::open(folder.database()));
        QCOMPARE(must(reader->samplesAfter(0, 10)).size(), std::size_t(1));
        std::map<std::string, std::map<std::int64_t, double>> metrics;
        for (const auto& metric : must(reader->metricsAfter(0, 1000))) metrics[metric.name][metric.step] = metric.value;
        QVERIFY(metrics["eval/loss"].contains(3));
        QCOMPARE(metrics["train/lr"][4], 0.125);
        QCOMPARE(metrics["train/loss"].size(), std::size_t(6));
        QCOMPARE(*must(verifyCheckpoint(folder.checkpoints() / "step-000006")).model.fixedRate, 0.125);
    }
};

QTEST_GUILESS_MAIN(TestModel)
#include "tst_model.moc"
