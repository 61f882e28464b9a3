// What cells do to the network around them: buffers that training changes and checkpoints keep, a Branch whose arm is left out, losses that
// cells add.
#include "engine/checkpoint/adapter_folder.h"
#include "engine/checkpoint/model_folder.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/exec/memory.h"
#include "engine/exec/runtime.h"
#include "engine/train/checkpoint_files.h"
#include "models/recipe/memory_plan.h"
#include "train_helper.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/tensor.h>
#include <QTemporaryDir>
#include <QTest>
#include <cmath>
#include <limits>

using namespace celloom;
using namespace celloom::engine;

namespace {

graph::Cell cellOf(const char* name, const char* type, std::map<std::string, graph::ParamValue> params = {}) {
    return {name, type, std::move(params), {}, {}, {}};
}

/// "a.out" to "b.x"; a name without a dot is a port of the graph.
void wire(graph::Graph& graph, const std::string& from, const std::string& to) {
    const auto end = [](const std::string& text) {
        const auto dot = text.find('.');
        return dot == std::string::npos ? graph::Endpoint{"", text} : graph::Endpoint{text.substr(0, dot), text.substr(dot + 1)};
    };
    graph.wires.push_back({end(from), end(to)});
}

/// image [B,2,4,4] -> Conv2d -> BatchNorm2d -> ReLU -> Flatten -> Dense -> "logits" [B,1]. Cells stand in "layers.0" where they are
/// recomputed.
graph::Document images() {
    graph::Document document;
    document.main.inputs = {{"image", {"B", "2", "4", "4"}}};
    document.main.outputs = {{"logits", {}}};
    document.main.cells = {
        cellOf("conv", "Conv2d",
               {{"in_channels", std::int64_t{2}}, {"out_channels", std::int64_t{3}}, {"kernel_size", "3"}, {"pad_mode", "same"}}),
        cellOf("norm", "BatchNorm2d", {{"num_features", std::int64_t{3}}}), cellOf("act", "ReLU"), cellOf("flat", "Flatten"),
        cellOf("last", "Dense", {{"in_channels", std::int64_t{48}}, {"out_channels", std::int64_t{1}}})};
    wire(document.main, "image", "conv.x");
    wire(document.main, "conv.out", "norm.x");
    wire(document.main, "norm.out", "act.x");
    wire(document.main, "act.out", "flat.x");
    wire(document.main, "flat.out", "last.x");
    wire(document.main, "last.out", "logits");
    return document;
}

std::shared_ptr<TensorDataset> imageRows(std::int64_t rows) {
    return must(TensorDataset::create({{"image", drawn({rows, 2, 4, 4}, 3)}, {"label", drawn({rows, 1}, 4)}}));
}

const std::map<std::string, graph::ParamValue> kFourToFour{{"in_channels", std::int64_t{4}}, {"out_channels", std::int64_t{4}}};

/// x [B,4] and gate [B]: shared = Dense(x); where gate > 0, Tanh(yes(shared)), else no(shared); the inner branch of `no` asks the same gate
/// the other way round, so that "never" is never taken.
graph::Document branching() {
    graph::Document document;
    document.main.inputs = {{"gate", {"B"}}, {"x", {"B", "4"}}};
    document.main.outputs = {{"logits", {}}};
    document.main.cells = {cellOf("shared", "Dense", kFourToFour),
                           cellOf("yes", "Dense", kFourToFour),
                           cellOf("act", "Tanh"),
                           cellOf("no", "Dense", kFourToFour),
                           cellOf("never", "Dense", kFourToFour),
                           cellOf("inner", "Branch"),
                           cellOf("choose", "Branch")};
    graph::Graph& graph = document.main;
    wire(graph, "x", "shared.x");
    for (const char* arm : {"yes", "no", "never"}) wire(graph, "shared.out", std::string(arm) + ".x");
    wire(graph, "yes.out", "act.x");
    wire(graph, "gate", "inner.condition");
    wire(graph, "never.out", "inner.when_true");
    wire(graph, "no.out", "inner.when_false");
    wire(graph, "gate", "choose.condition");
    wire(graph, "act.out", "choose.when_true");
    wire(graph, "inner.out", "choose.when_false");
    wire(graph, "choose.out", "logits");
    return document;
}

/// tokens x [B,T,4] -> MixtureOfExperts -> "logits".
graph::Document experts() {
    graph::Document document;
    document.main.inputs = {{"x", {"B", "3", "4"}}};
    document.main.outputs = {{"logits", {}}};
    document.main.cells = {cellOf(
        "moe", "MixtureOfExperts",
        {{"hidden_size", std::int64_t{4}}, {"intermediate_size", std::int64_t{5}}, {"num_experts", std::int64_t{3}}, {"balance", 0.5}})};
    wire(document.main, "x", "moe.x");
    wire(document.main, "moe.out", "logits");
    return document;
}

struct Net {
    recipe::TreatmentTable treatment;
    std::unique_ptr<Network> network;
    std::unique_ptr<Optimizer> optimizer;

    explicit Net(const graph::Document& document, const std::vector<std::string>& rules = {}, AmpLevel level = AmpLevel::O0) {
        graph::Expansion expansion = graph::expand(document);
        if (!expansion.ok()) qFatal("%s", expansion.firstError().text().c_str());
        std::vector<recipe::Rule> parsed;
        for (const std::string& rule : rules) parsed.push_back(must(recipe::parseRule(rule)));
        treatment = must(recipe::resolve(expansion.model, parsed));
        NetworkOptions options;
        options.seed = 3;
        options.initStd = 0.5;
        options.ampLevel = level;
        options.baseType = at::kBFloat16;
        network = must(Network::create(std::move(expansion.model), treatment, options));
        optimizer = must(makeOptimizer(recipe::Recipe(), network->parameters(), treatment));
    }
    at::Tensor named(const std::string& path) const {
        for (const Parameter& parameter : network->parameters())
            if (parameter.path == path) return parameter.tensor;
        qFatal("no %s", path.c_str());
    }
    Model model(std::int64_t batch, std::int64_t accumulation = 1) {
        return {*network, std::make_shared<MSELoss>(), optimizer.get(), must(metricsNamed({"loss"})),
                Small::options(batch, 1e-2, accumulation)};
    }
    std::map<std::string, at::Tensor> copies() const {
        std::map<std::string, at::Tensor> out;
        for (const Parameter& parameter : network->parameters()) out[parameter.path] = parameter.tensor.detach().clone();
        return out;
    }
};

bool areEqual(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b) {
    for (const auto& [name, tensor] : a)
        if (!b.contains(name) || !tensor.equal(b.at(name))) return false;
    return a.size() == b.size();
}

std::vector<std::string> cellsThatRun(Network& network, const Batch& batch, bool isTraining = false) {
    std::vector<std::string> out;
    ForwardOptions options;
    options.training = isTraining;
    options.observer = [&](const graph::CellInstance& cell, const std::vector<at::Tensor>&) { out.push_back(cell.path); };
    must(network.forward(batch, options));
    std::sort(out.begin(), out.end());
    return out;
}

Batch gated(const std::vector<double>& gate) {
    Batch batch;
    batch.columns = {{"gate", at::tensor(gate, at::kFloat)}, {"x", drawn({std::ssize(gate), 4}, 9)}};
    return batch;
}

} // namespace

class TestDynamicCells : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { setThreads(1); }

    // ---- buffers ----

    void buffersAreNoParametersAndStayFloat32() {
        const Net net(images(), {"norm: freeze"}, AmpLevel::O3);
        QCOMPARE(net.network->model().parameterCount(), std::int64_t{3 * 2 * 9 + 3 + 3 + 48});
        for (const Parameter& parameter : net.network->parameters()) {
            QCOMPARE(parameter.isBuffer, parameter.path.starts_with("norm.running"));
            if (parameter.isBuffer)
                QVERIFY(parameter.isFrozen && parameter.tensor.scalar_type() == at::kFloat && !parameter.tensor.requires_grad());
            else if (parameter.path.starts_with("norm"))
                QVERIFY(parameter.tensor.scalar_type() == at::kBFloat16); // a frozen base in its own type
        }
        for (const ParameterGroup& group : net.optimizer->groups())
            for (const std::string& path : group.paths) QVERIFY(path.find("running") == std::string::npos);
    }

    void trainingMovesRunningStatisticsOncePerPass() {
        Net net(images());
        const auto rows = imageRows(4);
        Batch batch = collate(*rows, 0, 4);
        at::Tensor seen;
        ForwardOptions options;
        options.training = true;
        options.observer = [&](const graph::CellInstance& cell, const std::vector<at::Tensor>& out) {
            if (cell.path == "conv") seen = out[0].detach();
        };
        must(net.network->forward(batch, options));
        const at::Tensor mean = seen.mean(at::IntArrayRef{0, 2, 3}), variance = seen.transpose(0, 1).flatten(1).var(1); // of N - 1
        QVERIFY(at::allclose(net.named("norm.running_mean"), 0.1 * mean, 1e-5, 1e-6));
        QVERIFY(at::allclose(net.named("norm.running_var"), 0.9 + 0.1 * variance, 1e-5, 1e-6));
        const auto before = net.copies();
        must(net.network->forward(batch)); // an evaluation moves nothing
        QVERIFY(areEqual(before, net.copies()));
    }

    void aFrozenNormUsesItsRunningStatisticsAndKeepsThem() {
        Net net(images(), {"norm: freeze"});
        const auto rows = imageRows(4);
        const Batch batch = collate(*rows, 0, 4);
        ForwardOptions training;
        training.training = true;
        const auto before = net.copies();
        const at::Tensor trained = must(net.network->forward(batch, training)).at("logits"),
                         evaluated = must(net.network->forward(batch)).at("logits");
        QVERIFY(trained.detach().equal(evaluated));
        QVERIFY(areEqual(before, net.copies()));
    }

    void recomputedLayersMoveThemOnceAndGiveTheSameGradients() {
        Net plain(images()), again(images(), {"*: recompute"});
        const auto rows = imageRows(4);
        for (Net* net : {&plain, &again}) {
            ForwardOptions options;
            options.training = true;
            const Batch batch = collate(*rows, 0, 4);
            at::mse_loss(must(net->network->forward(batch, options)).at("logits"), batch.columns.at("label")).backward();
        }
        QVERIFY(areEqual(plain.copies(), again.copies()));
        for (std::size_t p = 0; p < plain.network->parameters().size(); ++p)
            if (!plain.network->parameters()[p].isFrozen)
                QVERIFY(plain.network->parameters()[p].tensor.grad().equal(again.network->parameters()[p].tensor.grad()));
    }

    void aResumedTrainingEqualsTheUninterruptedOneBitForBit() {
        QTemporaryDir folder;
        const auto rows = imageRows(8);
        Net whole(images()), first(images()), second(images());
        Model a = whole.model(2), b = first.model(2), c = second.model(2);
        must(a.trainTo(7, *rows, {}));
        CheckpointFiles files("net", folder.path().toStdString(), {.saveCheckpointSteps = 3});
        must(b.trainTo(3, *rows, {&files}));
        const auto status = loadCheckpointFile(files.latest(), *second.network, second.optimizer.get());
        QVERIFY2(status.has_value(), status ? "" : status.error().text().c_str());
        QVERIFY(areEqual(first.copies(), second.copies()));
        c.restore(b.state());
        must(c.trainTo(7, *rows, {}));
        QVERIFY(areEqual(whole.copies(), second.copies()));
        QVERIFY(!whole.named("norm.running_mean").equal(first.named("norm.running_mean")));
    }

    void anExportInHalfKeepsBuffersInFloat32() {
        QTemporaryDir folder;
        const graph::Document document = images();
        Net net(document);
        {
            at::NoGradGuard guard;
            net.named("norm.running_var").fill_(1.0001); // bfloat16 would make it 1
        }
        const std::filesystem::path path = folder.path().toStdString();
        const auto written = writeModelFiles(*net.network, document, {}, path, at::kBFloat16);
        QVERIFY2(written.has_value(), written ? "" : written.error().text().c_str());
        const auto network = must(loadNetwork(must(openModelFolder(path)), {}));
        for (const Parameter& parameter : network->parameters()) {
            if (parameter.path == "norm.running_var") QVERIFY(parameter.tensor.equal(at::full({3}, 1.0001f)));
            if (parameter.path == "conv.weight")
                QVERIFY(parameter.tensor.equal(net.named("conv.weight").detach().to(at::kBFloat16).to(at::kFloat)));
        }
    }

    void anAdapterThatSavesANormHoldsItsBuffers() {
        QTemporaryDir folder;
        const std::vector<std::string> rules{"**: freeze", "last: lora r=2", "norm: save"};
        Net trained(images(), rules), other(images(), rules);
        const auto rows = imageRows(4);
        Model model = trained.model(2);
        must(model.trainTo(2, *rows, {}));
        QVERIFY(!areEqual(trained.copies(), other.copies()));
        const std::filesystem::path path = folder.path().toStdString();
        const auto written = writeAdapterFiles(*trained.network, "", path);
        QVERIFY2(written.has_value(), written ? "" : written.error().text().c_str());
        const auto loaded = loadTrainedAdapter(*other.network, must(openAdapterFolder(path)));
        QVERIFY2(loaded.has_value(), loaded ? "" : loaded.error().text().c_str());
        QVERIFY(areEqual(trained.copies(), other.copies()));
    }

    void aStepThatIsNotFiniteLeavesBuffersAsTheyWere() {
        Net net(images());
        at::Tensor image = drawn({2, 2, 4, 4}, 3);
        image[1][0][0][0].fill_(std::numeric_limits<float>::infinity());
        const auto rows = must(TensorDataset::create({{"image", image}, {"label", drawn({2, 1}, 4)}}));
        const auto before = net.copies();
        Model model = net.model(2);
        QCOMPARE(must(model.trainTo(1, *rows, {})), Model::End::Diverged);
        QVERIFY(areEqual(before, net.copies()));
    }

    void oneNumberHasNoVariance() {
        graph::Document document = images();
        document.main.inputs[0].shape = {"B", "2", "1", "1"};
        document.main.cells[4].params["in_channels"] = std::int64_t{3};
        Net net(document);
        Batch batch;
        batch.columns["image"] = drawn({1, 2, 1, 1}, 3);
        ForwardOptions options;
        options.training = true;
        const auto out = net.network->forward(batch, options);
        QVERIFY(!out);
        QCOMPARE(out.error().place, std::string("norm"));
        QVERIFY2(out.error().message.find("no variance") != std::string::npos, out.error().message.c_str());
    }

    // ---- Branch ----

    void onlyTheArmsThatRowsTakeRun_data() {
        QTest::addColumn<std::vector<double>>("gate");
        QTest::addColumn<std::vector<std::string>>("cells");
        using List = std::vector<std::string>;
        QTest::newRow("all rows true") << std::vector<double>{1, 2} << List{"act", "choose", "shared", "yes"};
        QTest::newRow("all rows false; 0 is") << std::vector<double>{-1, 0} << List{"choose", "inner", "no", "shared"};
        QTest::newRow("both") << std::vector<double>{-1, 1} << List{"act", "choose", "inner", "never", "no", "shared", "yes"};
    }
    void onlyTheArmsThatRowsTakeRun() {
        QFETCH(std::vector<double>, gate);
        QFETCH(std::vector<std::string>, cells);
        Net net(branching()), recomputing(branching(), {"*: recompute"});
        const Batch batch = gated(gate);
        for (const bool isTraining : {false, true}) QVERIFY(cellsThatRun(*net.network, batch, isTraining) == cells);
        QVERIFY(cellsThatRun(*recomputing.network, batch, true) == cells);
        const at::Tensor out = must(net.network->forward(batch)).at("logits");
        const auto dense = [&](const at::Tensor& x, const char* name) {
            return x.matmul(net.named(std::string(name) + ".weight").detach().t());
        };
        const at::Tensor shared = dense(batch.columns.at("x"), "shared");
        for (std::int64_t row = 0; row < out.size(0); ++row) {
            const at::Tensor expected =
                gate[static_cast<std::size_t>(row)] > 0 ? dense(shared[row], "yes").tanh() : dense(shared[row], "no");
            QVERIFY(at::allclose(out[row], expected, 1e-5, 1e-6));
        }
    }

    void recomputedArmsGiveTheSameGradients() {
        for (const std::vector<double>& gate : {std::vector<double>{1, 2}, {-1, 0}, {-1, 1}}) {
            Net plain(branching()), again(branching(), {"*: recompute"});
            for (Net* net : {&plain, &again}) {
                ForwardOptions options;
                options.training = true;
                must(net->network->forward(gated(gate), options)).at("logits").square().sum().backward();
            }
            for (std::size_t p = 0; p < plain.network->parameters().size(); ++p) {
                const at::Tensor a = plain.network->parameters()[p].tensor.grad(), b = again.network->parameters()[p].tensor.grad();
                QCOMPARE(a.defined(), b.defined());
                if (a.defined()) QVERIFY(a.equal(b));
            }
        }
    }

    /// An arm that a step leaves out learns from a gradient of zeros: AdamW's decay and moments go on, and a resumed run does the same.
    void anArmThatIsLeftOutGoesOnWithZeroGradients() {
        QTemporaryDir folder;
        const auto rows = must(TensorDataset::create({{"gate", at::tensor(std::vector<double>{1, 2, -1, -2, 3, 1, -2, -1}, at::kFloat)},
                                                      {"x", drawn({8, 4}, 9)},
                                                      {"label", drawn({8, 4}, 5)}}));
        Net whole(branching()), first(branching()), second(branching());
        QVERIFY(whole.network->hasBranches());
        Model a = whole.model(2), b = first.model(2), c = second.model(2);
        const auto start = whole.copies();
        must(a.trainTo(4, *rows, {}));
        CheckpointFiles files("net", folder.path().toStdString(), {.saveCheckpointSteps = 1});
        must(b.trainTo(1, *rows, {&files}));
        // the first batch takes "yes" alone: "no" has only decayed, by rate * decay
        const double decay = recipe::Recipe().real("optimizer.weight_decay");
        QVERIFY(at::allclose(first.named("no.weight").detach(), start.at("no.weight") * (1 - 1e-2 * decay), 1e-6, 1e-7));
        QVERIFY(!at::allclose(first.named("yes.weight").detach(), start.at("yes.weight") * (1 - 1e-2 * decay), 1e-6, 1e-7));
        const auto status = loadCheckpointFile(files.latest(), *second.network, second.optimizer.get());
        QVERIFY2(status.has_value(), status ? "" : status.error().text().c_str());
        c.restore(b.state());
        must(c.trainTo(4, *rows, {}));
        QVERIFY(areEqual(whole.copies(), second.copies()));
    }

    // ---- memory ----

    void memoryIsForetold_data() {
        QTest::addColumn<int>("which");
        QTest::newRow("images with batch norm and pool") << 0;
        QTest::newRow("experts") << 1;
        QTest::newRow("shapes and a formula") << 2;
    }
    /// What planTraining foretells for a step against what the allocator counts, within 15 percent as for language models.
    void memoryIsForetold() {
        QFETCH(int, which);
        const std::int64_t rows = 16;
        graph::Document document;
        graph::Graph& graph = document.main;
        std::vector<std::int64_t> labels;
        if (which == 0) {
            graph.inputs = {{"image", {"B", "3", "32", "32"}}};
            graph.cells = {
                cellOf("conv", "Conv2d",
                       {{"in_channels", std::int64_t{3}}, {"out_channels", std::int64_t{16}}, {"kernel_size", "3"}, {"padding", "1"}}),
                cellOf("norm", "BatchNorm2d", {{"num_features", std::int64_t{16}}}),
                cellOf("act", "ReLU"),
                cellOf("pool", "MaxPool2d", {{"kernel_size", "2"}}),
                cellOf("second", "Conv2d",
                       {{"in_channels", std::int64_t{16}}, {"out_channels", std::int64_t{32}}, {"kernel_size", "3"}, {"padding", "1"}}),
                cellOf("mean", "ReduceMean", {{"axis", "2, 3"}}),
                cellOf("last", "Dense", {{"in_channels", std::int64_t{32}}, {"out_channels", std::int64_t{1}}})};
            labels = {rows, 1};
        } else if (which == 1) {
            graph.inputs = {{"image", {"B", "64", "64"}}};
            graph.cells = {
                cellOf("moe", "MixtureOfExperts",
                       {{"hidden_size", std::int64_t{64}}, {"intermediate_size", std::int64_t{128}}, {"num_experts", std::int64_t{4}}}),
                cellOf("last", "Dense", {{"in_channels", std::int64_t{64}}, {"out_channels", std::int64_t{64}}})};
            labels = {rows, 64, 64};
        } else {
            graph.inputs = {{"image", {"B", "64", "64"}}};
            graph.cells = {cellOf("first", "Dense", {{"in_channels", std::int64_t{64}}, {"out_channels", std::int64_t{256}}}),
                           cellOf("turn", "Transpose", {{"perm", "0, 2, 1"}}),
                           cellOf("part", "Reshape", {{"shape", "0, 4, 64, 64"}}),
                           cellOf("formula", "Expression", {{"formula", "in0 / (1 + exp(-in0))"}}),
                           cellOf("mean", "ReduceMean", {{"axis", "1"}}),
                           cellOf("last", "Dense", {{"in_channels", std::int64_t{64}}, {"out_channels", std::int64_t{64}}})};
            labels = {rows, 64, 64};
        }
        graph.outputs = {{"logits", {}}};
        std::string before = "image";
        for (const graph::Cell& cell : graph.cells) {
            wire(graph, before, cell.name + ".x");
            if (cell.type == "Expression") graph.wires.back().to.port = "in0";
            before = cell.name + ".out";
        }
        wire(graph, before, "logits");
        std::vector<std::int64_t> inputs{rows};
        for (std::size_t i = 1; i < graph.inputs[0].shape.size(); ++i) inputs.push_back(std::stoll(graph.inputs[0].shape[i]));

        countTensorMemory();
        const std::int64_t start = tensorMemory(at::kCPU).current;
        Net net(document);
        const auto data = must(TensorDataset::create({{"image", drawn(inputs, 3)}, {"label", drawn(labels, 4)}}));
        Model model = net.model(rows);
        must(model.trainTo(1, *data, {})); // moments are there now
        const std::int64_t corpus = (data->column("image").numel() + data->column("label").numel()) * 4;
        resetTensorMemoryPeak(at::kCPU);
        must(model.trainTo(2, *data, {}));
        const double counted = static_cast<double>(tensorMemory(at::kCPU).peak - start - corpus);
        recipe::MemoryOptions options;
        options.symbols = {{"B", rows}};
        options.optimizer = recipe::optimizerMemoryOf(recipe::Recipe());
        const double foretold = static_cast<double>(recipe::planTraining(net.network->model(), net.treatment, options).peak.total());
        QVERIFY2(std::abs(foretold / counted - 1) < 0.15, qPrintable(QStringLiteral("foretold %1, counted %2").arg(foretold).arg(counted)));
    }

    // ---- losses that cells add ----

    void theModelAddsWhatCellsAddAndShowsIt() {
        struct Listener : Callback {
            std::vector<double> losses, auxiliaries;
            Status stepEnd(RunContext& context) override {
                losses.push_back(context.originalArgs().netOutputs);
                auxiliaries.push_back(context.originalArgs().auxiliaryLoss.value_or(-1));
                return {};
            }
        };
        // three rows, in batches of 2 and 1 that make one step: each batch's mean counts by its rows
        const at::Tensor x = drawn({3, 3, 4}, 5), label = drawn({3, 3, 4}, 6);
        const auto rows = must(TensorDataset::create({{"x", x}, {"label", label}}));
        Net net(experts());
        double expected = 0;
        ForwardOptions training;
        training.training = true;
        for (const auto& [from, count] : {std::pair{0, 2}, std::pair{2, 1}}) {
            Batch batch;
            batch.columns["x"] = x.narrow(0, from, count);
            expected += must(net.network->forward(batch, training)).at(Network::kAuxiliaryLoss).item<double>() * count / 3;
        }
        Batch all;
        all.columns["x"] = x;
        const auto outputs = must(net.network->forward(all));
        QVERIFY(!outputs.contains(Network::kAuxiliaryLoss)); // an evaluation has none
        const double plain = at::mse_loss(outputs.at("logits"), label).item<double>();
        Model model = net.model(2, 2);
        const auto evaluation = must(model.evaluate(*rows));
        QVERIFY(std::abs(evaluation->loss - plain) < 1e-5);
        Listener listener;
        must(model.trainTo(1, *rows, {&listener}));
        QVERIFY(expected > 0.5 * 2 * 0.9); // about top_k times its weight
        QVERIFY(std::abs(listener.auxiliaries.at(0) - expected) < 1e-5);
        QVERIFY(std::abs(listener.losses.at(0) - (plain + expected)) < 1e-5);
    }

    void aRecomputedLayerAddsItOnceWithItsGradient() {
        Net plain(experts()), again(experts(), {"*: recompute"});
        at::Tensor added[2];
        int i = 0;
        for (Net* net : {&plain, &again}) {
            ForwardOptions options;
            options.training = true;
            Batch batch;
            batch.columns["x"] = drawn({2, 3, 4}, 5);
            const auto outputs = must(net->network->forward(batch, options));
            added[i] = outputs.at(Network::kAuxiliaryLoss);
            (outputs.at("logits").square().sum() + added[i]).backward();
            added[i] = added[i].detach();
            ++i;
        }
        QVERIFY(added[0].equal(added[1]));
        for (std::size_t p = 0; p < plain.network->parameters().size(); ++p)
            QVERIFY(plain.network->parameters()[p].tensor.grad().equal(again.network->parameters()[p].tensor.grad()));
    }

    void trainingBalancesTheExperts() {
        // Every token prefers the first expert at the start; the loss alone moves the router until the experts share.
        Net net(experts());
        {
            at::NoGradGuard guard;
            net.named("moe.router").zero_();
            net.named("moe.router").select(0, 0).fill_(1);
        }
        Batch batch;
        batch.columns["x"] = drawn({16, 3, 4}, 5).abs();
        ForwardOptions training;
        training.training = true;
        double first = 0, last = 0;
        for (int step = 0; step < 300; ++step) {
            net.optimizer->zeroGrad();
            const at::Tensor loss = must(net.network->forward(batch, training)).at(Network::kAuxiliaryLoss);
            (step == 0 ? first : last) = loss.item<double>();
            loss.backward();
            net.optimizer->step(1e-2);
        }
        QVERIFY2(last < first && last < 0.5 * 2 * 1.05, qPrintable(QString("%1 to %2; balanced is 1").arg(first).arg(last)));
    }

    void anOutputCannotTakeItsName() {
        graph::Document document = experts();
        document.main.outputs[0].name = document.main.wires[1].to.port = Network::kAuxiliaryLoss;
        graph::Expansion expansion = graph::expand(document);
        recipe::TreatmentTable plain;
        plain.cells.resize(expansion.model.cells.size());
        const auto network = Network::create(expansion.model, plain, {});
        QVERIFY(!network);
        QCOMPARE(network.error().place, std::string("auxiliary_loss"));
    }
};

QTEST_GUILESS_MAIN(TestDynamicCells)
#include "tst_dynamic_cells.moc"
