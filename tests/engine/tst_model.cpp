// Model: order of events as MindSpore gives them, accumulation, packed documents, evaluation, and control from outside.
#include "engine/data/packed.h"
#include "engine/train/model.h"
#include "engine/train/llm_trainer.h"
#include "models/base/files.h"
#include "models/families/families.h"
#include "train_helper.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/log_softmax.h>
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

namespace {

/// Keeps the loss of the last step.
struct LambdaLoss : Callback {
    double* loss;
    explicit LambdaLoss(double* target) : loss(target) {}
    Status stepEnd(RunContext& context) override {
        *loss = context.originalArgs().netOutputs;
        return {};
    }
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

    void wrongArgumentsAreRefused_data() { // the reference's error kinds (mindspore-semantics.md, §3); differences are named
        QTest::addColumn<QString>("what");
        QTest::addColumn<QString>("place");
        QTest::addColumn<QString>("said"); // empty: accepted
        const auto row = [](const char* what, const char* place, const char* said) { QTest::newRow(what) << QString(what) << QString(place) << QString(said); };
        row("epoch 0", "epoch", "number of epochs is 0");                    // ValueError
        row("epoch -1", "epoch", "number of epochs is -1");                  // ValueError
        row("epoch not above initial_epoch", "epoch", "not above initial_epoch"); // ValueError
        row("initial_epoch -1", "initial_epoch", "initial_epoch is -1");
        row("valid_frequency 0", "valid_frequency", "valid_frequency is 0");
        row("sink_size 2", "sink_size", "sink_size is 2");                   // difference: an epoch is all of the data
        row("no loss", "loss", "no loss");
        row("no optimizer", "optimizer", "no optimizer");                    // ValueError
        row("optimizer of another network", "optimizer", "not those of this network");
        row("callback that is null", "callbacks", "is null");                // TypeError: a list that holds no Callback
        row("evaluate without metrics", "metrics", "no metrics");            // ValueError
        row("fit without metrics", "metrics", "no metrics");                 // ValueError
        row("one column", "data", "no column \"label\"");                    // ValueError: not exactly two columns
        row("three columns", "data", "\"more\" is neither an input of the graph nor a label"); // ValueError
        row("no column for the graph", "data", "no column \"features\"");
        row("data that fill no step", "train.batch_size", "fills no step");
        row("unknown metric", "evaluate.metrics", "\"acuracy\" is not known");
        row("old callback names in fit", "", "");                            // difference: MindSpore raises ValueError
        row("data used by another Model", "", "");                           // difference: MindSpore raises RuntimeError
        row("loss scale on the CPU", "", "");                                // difference: MindSpore raises ValueError
    }
    void wrongArgumentsAreRefused() {
        QFETCH(QString, what);
        QFETCH(QString, place);
        QFETCH(QString, said);
        Small small, other;
        const auto loss = std::make_shared<MSELoss>();
        const Metrics metrics = must(metricsNamed({"loss"}));
        const auto rows = numbers(4);
        const at::Tensor features = drawn({4, 3}, 1), label = drawn({4, 1}, 2);
        Model model(*small.network, loss, small.optimizer.get(), metrics, Small::options(2, 1e-2));
        Model bare(*small.network, loss, small.optimizer.get(), {}, Small::options(2, 1e-2));
        const auto status = [&]() -> Status {
            const auto of = [](const auto& result) { return result.map([](const auto&) {}); };
            const auto on = [&](std::map<std::string, at::Tensor> columns) { return of(model.train(1, *must(TensorDataset::create(std::move(columns))))); };
            if (what == "epoch 0") return of(model.train(0, *rows));
            if (what == "epoch -1") return of(model.train(-1, *rows));
            if (what.startsWith("epoch not")) return of(model.train(2, *rows, {}, {.initialEpoch = 2}));
            if (what == "initial_epoch -1") return of(model.train(2, *rows, {}, {.initialEpoch = -1}));
            if (what == "valid_frequency 0") return of(model.fit(2, *rows, *rows, {}, {.validFrequency = 0}));
            if (what == "sink_size 2") return of(model.train(2, *rows, {}, {.datasetSinkMode = true, .sinkSize = 2}));
            if (what == "no loss") return of(Model(*small.network, nullptr, small.optimizer.get(), metrics, Small::options(2, 1e-2)).train(1, *rows));
            if (what == "no optimizer") return of(Model(*small.network, loss, nullptr, metrics, Small::options(2, 1e-2)).train(1, *rows));
            if (what.startsWith("optimizer of")) return of(Model(*small.network, loss, other.optimizer.get(), metrics, Small::options(2, 1e-2)).train(1, *rows));
            if (what.startsWith("callback that")) return of(model.train(1, *rows, {nullptr}));
            if (what.startsWith("evaluate without")) return of(bare.evaluate(*rows));
            if (what.startsWith("fit without")) return of(bare.fit(1, *rows, *rows));
            if (what == "one column") return on({{"features", features}});
            if (what == "three columns") return on({{"features", features}, {"label", label}, {"more", label}});
            if (what == "no column for the graph") return on({{"label", label}});
            if (what == "data that fill no step") {
                ModelOptions options = Small::options(8, 1e-2);
                options.tail = EpochTail::Drop;
                return of(Model(*small.network, loss, small.optimizer.get(), metrics, options).train(1, *rows));
            }
            if (what == "unknown metric") return of(metricsNamed({"acuracy"}));
            if (what.startsWith("old callback")) {
                struct Old : Callback {
                    int steps = 0;
                    Status stepEnd(RunContext&) override { return ++steps, Status(); }
                } old;
                auto result = of(model.fit(1, *rows, *rows, {&old}));
                return old.steps == 2 ? result : fail("the old name fired for the evaluation too"); // difference: for training only
            }
            if (what.startsWith("data used")) {
                CELLOOM_TRY_STATUS(of(model.train(1, *rows)));
                return of(other.model(loss).train(1, *rows));
            }
            ModelOptions options = Small::options(2, 1e-2);
            options.lossScale = *LossScale::dynamic(1024, 2, 1000);
            return of(Model(*small.network, loss, small.optimizer.get(), {}, options).train(1, *rows));
        }();
        QVERIFY2(status.has_value() == said.isEmpty(), status ? "accepted" : status.error().text().c_str());
        if (status) return;
        QVERIFY2(QString::fromStdString(status.error().message).contains(said), status.error().message.c_str());
        QCOMPARE(QString::fromStdString(status.error().place), place);
        QVERIFY(!status.error().hint.empty());
        QCOMPARE(model.step(), std::int64_t(0)); // nothing was begun
    }

    void whatLibTorchRefusesIsAnError() { // and no exception: probabilities outside of 0 to 1
        Small small;
        const auto rows = must(TensorDataset::create({{"features", drawn({4, 3}, 1).mul(9)}, {"label", drawn({4, 1}, 2).gt(0)}}));
        Model model = small.model(std::make_shared<BCELoss>(), must(metricsNamed({"loss"})));
        const auto trained = model.train(1, *rows);
        QVERIFY(!trained && !trained.error().message.empty());
        QVERIFY(!model.evaluate(*rows));
    }

    void trainingAgainGoesOnWithTheSchedule() {
        Small small;
        ModelOptions options = Small::options(2, 1);
        options.schedule.type = "linear";
        options.schedule.totalSteps = 8;
        Model model(*small.network, std::make_shared<MSELoss>(), small.optimizer.get(), {}, options);
        struct Watch : Callback {
            std::vector<double> rates;
            std::vector<std::int64_t> steps, epochs;
            Status stepEnd(RunContext& context) override {
                const CallbackParams& params = context.originalArgs();
                rates.push_back(params.learningRate);
                steps.push_back(params.curStepNum);
                epochs.push_back(params.curEpochNum);
                return {};
            }
        } watch;
        QVERIFY(model.train(2, *numbers(4), {&watch}) && model.train(1, *numbers(4), {&watch}) && model.train(4, *numbers(4), {&watch}, {.initialEpoch = 3}));
        for (std::size_t i = 0; i < 8; ++i) QVERIFY(std::abs(watch.rates[i] - options.schedule.rateAt(static_cast<std::int64_t>(i))) < 1e-12);
        QVERIFY((watch.steps == std::vector<std::int64_t>{1, 2, 3, 4, 1, 2, 1, 2}));  // cur_step_num begins anew with each call, as in MindSpore
        QVERIFY((watch.epochs == std::vector<std::int64_t>{1, 1, 2, 2, 1, 1, 4, 4})); // initial_epoch 3: epoch 4
    }

    void trainingInTwoPartsIsTrainingAtOnce() {
        Small whole, parts;
        ModelOptions options = Small::options(2, 1e-2);
        options.shuffle = true;
        options.seed = 5;
        const auto rows = numbers(6);
        const auto loss = std::make_shared<MSELoss>();
        Model one(*whole.network, loss, whole.optimizer.get(), {}, options), two(*parts.network, loss, parts.optimizer.get(), {}, options);
        QVERIFY(one.train(4, *rows) && two.train(1, *rows) && two.train(4, *rows, {}, {.initialEpoch = 1}));
        for (std::size_t p = 0; p < whole.network->parameters().size(); ++p)
            QVERIFY(whole.network->parameters()[p].tensor.detach().equal(parts.network->parameters()[p].tensor.detach()));
    }

    void aSubclassMayMakeTheStep() { // an L2 penalty in the loss, and steps that are counted
        struct Mine : Model {
            using Model::Model;
            int steps = 0;
            Result<LossValues> forward(const Batch& batch, const ForwardOptions& options) override {
                CELLOOM_TRY(values, Model::forward(batch, options));
                for (const Parameter& parameter : network().parameters()) values.sums[0] = values.sums[0].add(parameter.tensor.square().sum());
                return values;
            }
            Result<StepResult> trainStep(const std::vector<Batch>& batches, double learningRate) override {
                ++steps;
                return Model::trainStep(batches, learningRate);
            }
        };
        Small small, plain;
        double penalty = 0;
        for (const Parameter& parameter : small.network->parameters()) penalty += parameter.tensor.detach().square().sum().item<double>();
        Mine model(*small.network, std::make_shared<MSELoss>(TermOptions{.reduction = Reduction::Sum}), small.optimizer.get(), Metrics{}, Small::options(4, 1e-2));
        std::vector<double> losses;
        struct Watch : Callback {
            std::vector<double>* losses;
            Status stepEnd(RunContext& context) override { return losses->push_back(context.originalArgs().netOutputs), Status(); }
        } watch;
        watch.losses = &losses;
        QVERIFY(model.train(3, *numbers(4), {&watch}));
        QCOMPARE(model.steps, 3);
        QVERIFY(plain.model(std::make_shared<MSELoss>(TermOptions{.reduction = Reduction::Sum}), {}, 4).train(1, *numbers(4), {&watch}));
        QVERIFY(std::abs(losses[0] - losses[3] - penalty) < 1e-4);
    }

    void termsOfSeveralOutputsAreWeighedOverTheStep() { // two terms; batches 2 x 1 equal 1 x 2
        const auto terms = [] {
            return std::make_shared<WeightedLoss>(std::vector<std::shared_ptr<const Loss>>{
                std::make_shared<MSELoss>(TermOptions{.name = "near"}), std::make_shared<L1Loss>(TermOptions{.name = "far", .weight = 0.25})});
        };
        Small together, apart;
        const auto rows = numbers(3); // the step's second batch is smaller
        double loss = 0;
        LambdaLoss watch{&loss};
        QVERIFY(together.model(terms(), {}, 3).train(1, *rows, {&watch}));
        const double first = loss;
        QVERIFY(apart.model(terms(), {}, 2, 1e-2, 2).train(1, *rows, {&watch}));
        QVERIFY(std::abs(first - loss) < 1e-6);
        for (std::size_t p = 0; p < together.network->parameters().size(); ++p)
            QVERIFY(together.network->parameters()[p].tensor.detach().sub(apart.network->parameters()[p].tensor.detach()).abs().max().item<double>() < 1e-5);
        Small fresh;
        const at::Tensor error = must(fresh.network->forward(collate(*rows, 0, 3))).at("logits").sub(rows->column("label"));
        QVERIFY(std::abs(first - (error.square().mean().item<double>() + 0.25 * error.abs().mean().item<double>())) < 1e-6);
    }

    void labelSmoothingIsOfTrainingAlone() {
        const ListDataset data = rows(4);
        Training smooth(options(4, 1), 1e-2, 1, {.labelSmoothing = 0.1}), plain(options(4, 1));
        RunContext context;
        QVERIFY(std::abs(must(smooth.model->evaluate(data, context))->loss - must(plain.model->evaluate(data, context))->loss) < 1e-6);
        const Batch batch = collate(data, 0, 4);
        const at::Tensor logits = must(plain.network->forward(batch)).at("logits").slice(1, 0, 3);
        const double mean = at::log_softmax(logits.to(at::kDouble), -1).mean().neg().item<double>();
        const double hard = plain.losses(1, data)[0];
        QVERIFY(std::abs(smooth.losses(1, data)[0] - (0.9 * hard + 0.1 * mean)) < 1e-5); // (1 - s) of the label and s / V of every word
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
        settings.lossScale = *LossScale::dynamic(3e38, 2, 1000); // loss × 3e38 overflows float32 until it was halved often enough
        Training training(settings), untouched(options(2, 1));
        Recorder recorder;
        QVERIFY(must(training.model->trainTo(1, rows(4), {&recorder})) == Model::End::Finished);
        QCOMPARE(training.largestDifference(untouched), 0.0); // no weight
        QCOMPARE(training.optimizer->state().at("steps").item<double>(), 0.0); // no optimizer step
        QCOMPARE(training.model->step(), std::int64_t(1)); // the count of steps goes on
        QCOMPARE(training.model->state().lossScale.value, 1.5e38);
    }

    void overflowsChangeTheScaleAndNothingElse() { // cases.md 9
        const std::vector<int> flags{0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1};
        const std::vector<double> scales{1024, 1024, 2048, 2048, 1024, 1024, 1024, 2048, 2048, 2048, 4096, 2048, 1024};
        ModelOptions settings = options(2, 1);
        settings.lossScale = *LossScale::dynamic(1024, 2, 3);
        Training training(settings);
        struct Watcher : Callback {
            Training& training;
            const std::vector<int>& flags;
            const std::vector<double>& scales;
            std::size_t step = 0;
            std::map<std::string, at::Tensor> before;

            Watcher(Training& training, const std::vector<int>& flags, const std::vector<double>& scales)
                : training(training), flags(flags), scales(scales) {}
            std::map<std::string, at::Tensor> everything() const {
                std::map<std::string, at::Tensor> out;
                for (const auto& [name, tensor] : training.optimizer->state()) out[name] = tensor.clone();
                for (const Parameter& parameter : training.network->parameters()) out["weight " + parameter.path] = parameter.tensor.detach().clone();
                return out;
            }
            Status onTrainStepBegin(RunContext& context) override {
                step = static_cast<std::size_t>(context.originalArgs().curStepNum) - 1;
                before = everything();
                return {};
            }
            Status onTrainStepEnd(RunContext& context) override {
                if (context.originalArgs().isOverflow != (flags[step] == 1)) return fail("step " + std::to_string(step + 1) + " is marked wrongly.");
                for (const auto& [name, tensor] : everything())
                    if (flags[step] == 1 && !tensor.equal(before.at(name))) return fail(name + " changed in step " + std::to_string(step + 1) + ".");
                const double counted = training.optimizer->state().at("steps").item<double>() - before.at("steps").item<double>();
                if (counted != 1 - flags[step]) return fail("step " + std::to_string(step + 1) + " was counted wrongly.");
                if (training.model->state().lossScale.value != scales[step]) return fail("the scale after step " + std::to_string(step + 1) + " is wrong.");
                return {};
            }
        } watcher(training, flags, scales);
        training.network->parameters().front().tensor.register_hook(
            [&](const at::Tensor& gradient) { return flags[watcher.step] == 1 ? gradient.mul(INFINITY) : gradient; });
        const auto end = training.model->trainTo(static_cast<std::int64_t>(flags.size()), rows(4), {&watcher});
        QVERIFY2(end && *end == Model::End::Finished, end ? "" : end.error().text().c_str());
        QCOMPARE(training.model->step(), std::int64_t(13)); // cur_step_num went on
        QCOMPARE(training.optimizer->state().at("steps").item<double>(), 10.0);
    }

    void aFixedScaleThatDropsNothingEndsTheRun() {
        for (const bool drops : {true, false}) {
            ModelOptions settings = options(2, 1);
            settings.lossScale = *LossScale::fixed(1024, drops);
            Training training(settings), untouched(options(2, 1));
            training.network->parameters().front().tensor.register_hook([](const at::Tensor& gradient) { return gradient.mul(INFINITY); });
            QVERIFY(must(training.model->trainTo(2, rows(4), {})) == (drops ? Model::End::Finished : Model::End::Diverged));
            QCOMPARE(training.model->step(), std::int64_t(drops ? 2 : 0));
            QCOMPARE(training.largestDifference(untouched), 0.0);
            QCOMPARE(training.model->state().lossScale.value, 1024.0);
        }
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
