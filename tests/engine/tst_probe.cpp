// Probes: statistics, wires, attention maps and gradients against what is derived here from the tensors themselves.
#include "engine/data/random_batch.h"
#include "engine/exec/memory.h"
#include "engine/exec/probe_report.h"
#include "train_helper.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

using namespace celloom;
using namespace celloom::engine;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

bool isNear(double a, double b, double tolerance = 1e-6) { return std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b)); }

/// Against LibTorch's own reductions in double.
bool describes(const ValueStatistics& found, const at::Tensor& tensor) {
    const at::Tensor values = tensor.detach().to(at::kDouble);
    return found.count == values.numel() && isNear(found.mean, values.mean().item<double>()) && isNear(found.deviation, values.std(false).item<double>()) &&
           isNear(found.minimum, values.min().item<double>()) && isNear(found.maximum, values.max().item<double>()) &&
           std::accumulate(found.histogram.begin(), found.histogram.end(), std::int64_t{0}) == found.count;
}

/// "q" [B,T,heads*D], "k" and "v" [B,S,kvHeads*D], perhaps "mask" [B,T,S] -> an Attention cell -> "out".
graph::Document attention(std::int64_t heads, std::int64_t kvHeads, std::int64_t dim, bool isCausal, bool hasMask, const char* position = "none") {
    graph::Document document;
    const std::string wide = std::to_string(heads * dim), narrow = std::to_string(kvHeads * dim);
    document.main.inputs = {{"q", {"B", "T", wide}}, {"k", {"B", isCausal ? "T" : "S", narrow}}, {"v", {"B", isCausal ? "T" : "S", narrow}}};
    document.main.outputs = {{"out", {"B", "T", wide}}};
    document.main.cells = {{"attention", "Attention", {{"num_heads", heads}, {"num_kv_heads", kvHeads}, {"head_dim", dim}, {"causal", isCausal}, {"position", std::string(position)}}, {}, {}, {}}};
    document.main.wires = {{{"", "q"}, {"attention", "q"}}, {{"", "k"}, {"attention", "k"}}, {{"", "v"}, {"attention", "v"}}, {{"attention", "out"}, {"", "out"}}};
    if (!hasMask) return document;
    document.main.inputs.push_back({"mask", {"B", "T", "S"}, "bool"});
    document.main.wires.push_back({{"", "mask"}, {"attention", "mask"}});
    return document;
}

std::unique_ptr<Network> networkOf(const graph::Document& document) {
    graph::Expansion expansion = graph::expand(document);
    if (!expansion.ok()) qFatal("%s", expansion.firstError().text().c_str());
    const auto treatment = must(recipe::resolve(expansion.model, {}));
    return must(Network::create(std::move(expansion.model), treatment, {}));
}

struct Seen {
    std::vector<ProbedWire> inputs, gradients;
    std::vector<ProbedCell> cells;
    ProbeListener listener() {
        return {[this](const ProbedWire& wire) { inputs.push_back(wire); }, [this](const ProbedCell& cell) { cells.push_back(cell); },
                [this](const ProbedWire& wire) { gradients.push_back(wire); }};
    }
};

at::Tensor weightsOf(const AttentionMap& map) {
    return at::from_blob(const_cast<float*>(map.weights.data()), {map.heads, map.rows, map.columns}, at::kFloat).clone();
}

} // namespace

class TestProbe : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void statisticsOfFewNumbers() { // 0 1 2 3 4: mean 2, variance (4 + 1 + 0 + 1 + 4) / 5 = 2
        const auto found = statisticsOf(at::tensor({1.0, kNaN, 2.0, kInfinity, 3.0, 0.0, -kInfinity, 4.0, kNaN}), 4);
        QVERIFY(found.count == 9 && found.nan == 2 && found.positiveInfinity == 1 && found.negativeInfinity == 1 && found.zeros == 1 && found.finite() == 5);
        QVERIFY(isNear(found.mean, 2) && isNear(found.deviation, std::sqrt(2.0)) && found.minimum == 0 && found.maximum == 4);
        QVERIFY((found.histogram == std::vector<std::int64_t>{1, 1, 1, 2})); // 4 lies at the end of the last step
    }

    void statisticsOfManyNumbersInAnyType() {
        const at::Tensor numbers = drawn({700, 1100}, 3) * 3 + 1; // several chunks
        QVERIFY(describes(statisticsOf(numbers), numbers));
        QVERIFY(describes(statisticsOf(numbers.t()), numbers));
        QVERIFY(describes(statisticsOf(numbers.to(at::kBFloat16)), numbers.to(at::kBFloat16)));
        QVERIFY(describes(statisticsOf(numbers.mul(100).to(at::kLong)), numbers.mul(100).to(at::kLong)));
        const auto flags = statisticsOf(at::tensor({1, 0, 1, 1}).to(at::kBool));
        QVERIFY(isNear(flags.mean, 0.75) && flags.zeros == 1 && flags.maximum == 1);
        const at::Tensor far = at::tensor({1e9, 1e9 + 1});
        QVERIFY(isNear(statisticsOf(far).deviation, 0.5)); // no cancellation
        const at::Tensor wide = at::tensor({-1.7e308, 0.0, 1.7e308});
        QCOMPARE(statisticsOf(wide, 2).histogram[0], std::int64_t(1)); // the range itself would be infinite
        QCOMPARE(statisticsOf(at::ones({1}).expand({3'000'000})).histogram, (std::vector<std::int64_t>{3'000'000})); // all equal: one step
    }

    void nothingFiniteHasNoMean() {
        const auto found = statisticsOf(at::tensor({kNaN, kInfinity}));
        QVERIFY(found.finite() == 0 && found.histogram.empty());
        QCOMPARE(statisticsOf(at::zeros({0})).count, std::int64_t(0));
    }

    void everyWireIsThereWithItsOwnNumbers() {
        Small small(3, 8, 2);
        Batch batch;
        batch.columns["features"] = drawn({5, 3}, 1);
        Seen seen;
        const ProbeSummary summary = must(probe(*small.network, batch, nullptr, {}, seen.listener()));
        const auto weights = [&](std::size_t i) { return small.network->parameters()[i].tensor.detach(); };
        const at::Tensor first = at::matmul(batch.columns["features"], weights(0).t()) + weights(1), act = first.tanh(),
                         last = at::matmul(act, weights(2).t()) + weights(3);
        QCOMPARE(seen.inputs.size(), std::size_t(1));
        QVERIFY(describes(seen.inputs[0].values, batch.columns["features"]));
        QCOMPARE(seen.cells.size(), std::size_t(3));
        QCOMPARE(summary.cells, std::size_t(3));
        QVERIFY(summary.notComputed.empty());
        const at::Tensor expected[] = {first, act, last};
        const char* names[] = {"first.out", "act.out", "last.out"};
        for (std::size_t i = 0; i < 3; ++i) {
            const ProbedWire& wire = seen.cells[i].wires.at(0);
            QCOMPARE(wire.name, std::string(names[i]));
            QCOMPARE(wire.port, std::string("out"));
            QVERIFY(wire.shape == expected[i].sizes().vec() && wire.type == "float32" && seen.cells[i].index == i && seen.cells[i].count == 3);
            QVERIFY2(describes(wire.values, expected[i]), names[i]);
        }
    }

    void valuesThatAreNoNumbersAreCounted() {
        Small small(3, 8, 1);
        at::Tensor weight = small.network->parameters()[0].tensor.detach();
        weight[2].fill_(kNaN); // one of eight units
        Batch batch;
        batch.columns["features"] = drawn({5, 3}, 1);
        Seen seen;
        must(probe(*small.network, batch, nullptr, {}, seen.listener()));
        QCOMPARE(seen.cells[0].wires[0].values.nan, std::int64_t(5));
        QCOMPARE(seen.cells[2].wires[0].values.nan, std::int64_t(5)); // and so is all that reads it
        const auto line = nlohmann::json::parse(cellLine(seen.cells[2]));
        QVERIFY(line["wires"][0]["nan"] == 5 && line["wires"][0]["mean"].is_null());
        QVERIFY(ProbeTable(small.network->model()).row(seen.cells[0].wires[0]).find("!! 5 NaN") != std::string::npos);
    }

    void gradientsOfAMeanSquare() { // of (p - t)² / n: 2 (p - t) / n
        Small small(3, 8, 1);
        Batch batch;
        batch.columns["features"] = drawn({5, 3}, 1);
        batch.columns["label"] = drawn({5, 1}, 2);
        Seen seen;
        const MSELoss loss;
        const ProbeSummary summary = must(probe(*small.network, batch, &loss, {.gradients = true}, seen.listener()));
        const auto outputs = must(small.network->forward(batch));
        const at::Tensor difference = outputs.at("logits") - batch.columns["label"];
        QVERIFY(isNear(summary.loss, difference.square().mean().item<double>()));
        QCOMPARE(seen.gradients.size(), std::size_t(4)); // from the loss back to the input
        QCOMPARE(seen.gradients[0].name, std::string("last.out"));
        QVERIFY(describes(seen.gradients[0].values, difference * 2 / 5));
        QCOMPARE(seen.gradients[3].name, std::string("features"));
        const at::Tensor back = at::matmul(difference * 2 / 5, small.network->parameters()[2].tensor.detach()); // of act.out
        QVERIFY(describes(seen.gradients[1].values, back));
        const auto refused = probe(*small.network, batch, nullptr, {.gradients = true}, {});
        QVERIFY(!refused && refused.error().place == "--gradients");
    }

    void mapsAreWhatTheCellMultipliedBy_data() {
        QTest::addColumn<bool>("causal");
        QTest::addColumn<bool>("mask");
        QTest::addColumn<QString>("position");
        QTest::addColumn<bool>("padded");
        QTest::newRow("all see all") << false << false << "none" << false;
        QTest::newRow("causal") << true << false << "none" << false;
        QTest::newRow("ALiBi") << true << false << "alibi" << false;
        QTest::newRow("a mask of its own") << false << true << "none" << false;
        QTest::newRow("padding and document borders") << true << false << "none" << true;
        QTest::newRow("ALiBi, padding and document borders") << true << false << "alibi" << true;
    }
    void mapsAreWhatTheCellMultipliedBy() {
        QFETCH(bool, causal);
        QFETCH(bool, mask);
        QFETCH(QString, position);
        QFETCH(bool, padded);
        constexpr std::int64_t B = 2, T = 7, H = 4, K = 2, D = 6;
        const std::int64_t S = causal ? T : 9;
        const auto network = networkOf(attention(H, K, D, causal, mask, position.toLatin1().constData()));
        Batch batch;
        batch.columns = {{"q", drawn({B, T, H * D}, 1)}, {"k", drawn({B, S, K * D}, 2)}, {"v", drawn({B, S, K * D}, 3)}};
        if (mask) batch.columns["mask"] = drawn({B, T, S}, 4).gt(-0.5);
        if (padded) {
            batch.attentionMask = at::ones({B, T}, at::kLong);
            batch.attentionMask[1].narrow(0, 0, 2).fill_(0);
            batch.segments = at::zeros({B, T}, at::kLong);
            batch.segments[1].narrow(0, 5, 2).fill_(1);
        }
        Seen seen;
        must(probe(*network, batch, nullptr, {.mapRow = 1}, seen.listener()));
        const AttentionMap& map = seen.cells.at(0).attention.at(0);
        QVERIFY(map.heads == H && map.queries == T && map.keys == S && map.rows == T && map.columns == S && map.batchRow == 1);
        const at::Tensor weights = weightsOf(map); // [H,T,S]
        // Whatever mask there is: these weights times the values are what the cell gave.
        const at::Tensor values = batch.columns["v"][1].view({S, K, D}).permute({1, 0, 2}).repeat_interleave(H / K, 0);
        const at::Tensor given = must(network->forward(batch)).at("out")[1].view({T, H, D}).permute({1, 0, 2});
        QVERIFY(at::allclose(at::matmul(weights, values), given, 1e-5, 1e-5));
        if (mask || padded || position == "alibi") return;
        const at::Tensor q = batch.columns["q"][1].view({T, H, D}).permute({1, 0, 2}), k = batch.columns["k"][1].view({S, K, D}).permute({1, 0, 2}).repeat_interleave(H / K, 0);
        at::Tensor scores = at::matmul(q, k.transpose(1, 2)) / std::sqrt(6.0);
        if (causal) scores = scores.masked_fill(at::ones({T, S}).triu(1).to(at::kBool), -kInfinity);
        QVERIFY(at::allclose(weights, at::softmax(scores, -1), 1e-5, 1e-6));
    }

    void longSequencesAreAveragedAndTakeLittleMemory() {
        constexpr std::int64_t T = 3000;
        const auto network = networkOf(attention(2, 2, 8, true, false));
        Batch batch;
        for (const auto& [name, seed] : {std::pair("q", 1), std::pair("k", 2), std::pair("v", 3)}) batch.columns[name] = drawn({1, T, 16}, static_cast<std::uint64_t>(seed));
        countTensorMemory();
        resetTensorMemoryPeak(at::kCPU);
        const std::int64_t before = tensorMemory(at::kCPU).peak;
        Seen seen;
        must(probe(*network, batch, nullptr, {}, seen.listener()));
        const std::int64_t more = tensorMemory(at::kCPU).peak - before;
        QVERIFY2(more < 24 << 20, qPrintable(QString::number(more))); // all weights of one head alone would be 36 MB
        const AttentionMap& map = seen.cells.at(0).attention.at(0);
        QVERIFY(map.rows == 64 && map.columns == 64 && map.queries == T);
        const at::Tensor weights = weightsOf(map);
        QVERIFY(at::allclose(weights.sum(-1), at::ones({2, 64}), 1e-4, 1e-4));
        const auto edge = [](std::int64_t i) { return i * T / 64; };
        const at::Tensor q = batch.columns["q"][0].narrow(1, 8, 8), k = batch.columns["k"][0].narrow(1, 8, 8); // head 1
        const at::Tensor scores = at::matmul(q, k.t()) / std::sqrt(8.0);
        const at::Tensor full = at::softmax(scores.masked_fill(at::ones({T, T}).triu(1).to(at::kBool), -kInfinity), -1);
        for (const auto& [row, column] : {std::pair(0, 0), std::pair(63, 5), std::pair(40, 40), std::pair(10, 20)}) {
            const at::Tensor block = full.slice(0, edge(row), edge(row + 1)).slice(1, edge(column), edge(column + 1));
            QVERIFY(isNear(weights[1][row][column].item<double>(), block.sum(1).mean().item<double>(), 1e-5));
        }
    }

    void inputsThatDoNotFitAreRefusedAtThatInput() {
        Small small(3, 8, 1);
        const auto errorOf = [&](const at::Tensor& features) {
            Batch batch;
            batch.columns["features"] = features;
            const auto found = probe(*small.network, batch, nullptr, {}, {});
            return found ? QString() : QString::fromStdString(found.error().text());
        };
        QVERIFY(errorOf(drawn({5, 4}, 1)).contains("input features: is [5, 4], the graph's input is [B, 3]"));
        QVERIFY(errorOf(drawn({5}, 1)).contains("input features"));
        QVERIFY(errorOf(drawn({0, 3}, 1)).contains("holds nothing"));
        QVERIFY(errorOf(at::ones({5, 3}, at::kLong)).contains("int64"));
        const auto network = networkOf(attention(1, 1, 4, true, false));
        Batch batch;
        batch.columns = {{"q", drawn({1, 3, 4}, 1)}, {"k", drawn({1, 5, 4}, 2)}, {"v", drawn({1, 3, 4}, 3)}};
        const auto found = probe(*network, batch, nullptr, {}, {});
        QVERIFY(!found && found.error().text().find("where T is 3 already") != std::string::npos);
    }

    void anErrorInACellIsSaidThereAfterAllBeforeIt() {
        graph::Document document;
        document.main.inputs = {{"ids", {"B", "T"}, "int64"}};
        document.main.outputs = {{"out", {"B", "T", "4"}}};
        document.main.cells = {{"words", "Embedding", {{"vocab_size", std::int64_t{10}}, {"embedding_size", std::int64_t{4}}}, {}, {}, {}}, {"act", "Tanh", {}, {}, {}, {}}};
        document.main.wires = {{{"", "ids"}, {"words", "ids"}}, {{"words", "out"}, {"act", "x"}}, {{"act", "out"}, {"", "out"}}};
        const auto network = networkOf(document);
        Batch batch;
        batch.columns["ids"] = at::tensor({3, 99}).to(at::kLong).unsqueeze(0);
        Seen seen;
        const auto found = probe(*network, batch, nullptr, {}, seen.listener());
        QVERIFY(!found);
        QCOMPARE(found.error().place, std::string("words"));
        QVERIFY(seen.inputs.size() == 1 && seen.cells.empty());
        const Batch good = must(randomBatch(network->model(), {.rows = 2, .length = 5, .seed = 3})); // below the embedding's rows
        QVERIFY(good.columns.at("ids").max().item<std::int64_t>() < 10 && (good.columns.at("ids").sizes() == at::IntArrayRef{2, 5}));
        QVERIFY(probe(*network, good, nullptr, {}, {}));
    }

    void anArmThatNoRowTakesIsNotComputed() {
        graph::Document document;
        document.main.inputs = {{"x", {"B", "3"}}, {"condition", {"B"}}};
        document.main.outputs = {{"out", {"B", "3"}}};
        const std::map<std::string, graph::ParamValue> square{{"in_channels", std::int64_t{3}}, {"out_channels", std::int64_t{3}}};
        document.main.cells = {{"left", "Dense", square, {}, {}, {}}, {"right", "Dense", square, {}, {}, {}}, {"branch", "Branch", {}, {}, {}, {}}};
        document.main.wires = {{{"", "x"}, {"left", "x"}},           {{"", "x"}, {"right", "x"}},          {{"", "condition"}, {"branch", "condition"}}, {{"left", "out"}, {"branch", "when_true"}},
                               {{"right", "out"}, {"branch", "when_false"}}, {{"branch", "out"}, {"", "out"}}};
        const auto network = networkOf(document);
        const auto reached = [&](const at::Tensor& condition) {
            Batch batch;
            batch.columns = {{"x", drawn({2, 3}, 1)}, {"condition", condition}};
            Seen seen;
            auto summary = must(probe(*network, batch, nullptr, {}, seen.listener()));
            return std::pair(seen.cells.size(), summary.notComputed);
        };
        QVERIFY(reached(at::ones({2})) == std::pair(std::size_t(2), std::vector<std::string>{"right"}));
        QVERIFY(reached(-at::ones({2})) == std::pair(std::size_t(2), std::vector<std::string>{"left"}));
        QVERIFY(reached(at::tensor({1.0f, -1.0f})) == std::pair(std::size_t(3), std::vector<std::string>{}));
    }

    void onlyTheCellsAskedForAreTold() {
        Small small(3, 8, 1);
        Batch batch;
        batch.columns["features"] = drawn({5, 3}, 1);
        Seen seen;
        must(probe(*small.network, batch, nullptr, {.cells = {must(recipe::PathPattern::parse("a*"))}}, seen.listener()));
        QVERIFY(seen.cells.size() == 1 && seen.cells[0].path == "act" && seen.cells[0].index == 1);
        const auto pattern = must(recipe::PathPattern::parse("layers.{1..2}"));
        QVERIFY(liesUnder("layers.1.mlp.up", pattern) && !liesUnder("layers.0.mlp", pattern) && !liesUnder("layers", pattern));
    }

    void batchesAreDrawnFromTheirSeedAlone() {
        const auto network = networkOf(attention(1, 1, 4, false, true));
        const auto batch = [&](std::uint64_t seed) { return must(randomBatch(network->model(), {.rows = 3, .length = 4, .symbols = {{"S", 6}}, .seed = seed})); };
        QVERIFY(at::allclose(batch(1).columns.at("q"), batch(1).columns.at("q")) && !at::allclose(batch(1).columns.at("q"), batch(2).columns.at("q")));
        QVERIFY((batch(1).columns.at("mask").sizes() == at::IntArrayRef{3, 4, 6}) && batch(1).columns.at("mask").scalar_type() == at::kBool);
        const auto huge = randomBatch(network->model(), {.rows = 1 << 16, .length = 1 << 20});
        QVERIFY(!huge && huge.error().text().find("fewer rows") != std::string::npos);
        QVERIFY(!randomBatch(network->model(), {.symbols = {{"Z", 3}}}));
    }
};

QTEST_GUILESS_MAIN(TestProbe)
#include "tst_probe.moc"
