// Each cell's computation: the registry holds the catalogue's types, gradients equal finite differences, values equal derivations.
#include "engine/exec/runtime.h"
#include "tests/engine/cell_helpers.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <QTest>
#include <cmath>

using namespace celloom;
using namespace celloom::engine;
using namespace celloom::engine::testing;

Q_DECLARE_METATYPE(Params)

namespace {

using Shapes = std::vector<std::vector<std::int64_t>>;

} // namespace

class TestCells : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { setThreads(1); } // the tensors are tiny
    void registryHoldsExactlyTheCatalogue();
    void gradientsEqualFiniteDifferences_data();
    void gradientsEqualFiniteDifferences();
    void embeddingGradientIsZeroAtThePadding();
    void embeddingNamesIdsOutsideTheVocabulary();
    void normalisedHeadHasUnitRows();
    void groupsAreSplitEachByItself();
    void tiedHeadUsesTheWiredWeight();
    void groupedQueryEqualsRepeatedHeads();
    void alibiSlopesFollowThePaper();
    void rotaryFollowsItsDefinition();
    void rotaryScalingChangesTheAngles();
    void dropoutKeepsTheMeanAndRepeatsItself();
    void attentionDropoutWithoutDropoutIsAttention();
    void attentionMaskPortHidesKeys();
    void aUserCanWriteACell();
};

void TestCells::registryHoldsExactlyTheCatalogue() {
    std::vector<std::string> expected;
    for (const catalog::CellType& type : catalog::all()) expected.push_back(type.name);
    std::sort(expected.begin(), expected.end());
    QCOMPARE(CellRegistry::standard().types(), expected);
}

void TestCells::gradientsEqualFiniteDifferences_data() {
    QTest::addColumn<QString>("type");
    QTest::addColumn<Params>("params");
    QTest::addColumn<QString>("shapes");
    const auto row = [](const char* name, const char* type, const Params& params, const char* shapes) {
        QTest::newRow(name) << QString(type) << params << QString(shapes);
    };
    using namespace std::string_literals;
    const Params dense{{"in_channels", std::int64_t(3)}, {"out_channels", std::int64_t(4)}};
    Params biased = dense;
    biased["has_bias"] = true;
    row("Dense", "Dense", dense, "2 3 3");
    row("Dense with bias", "Dense", biased, "2 3 3");
    row("Embedding", "Embedding", {{"vocab_size", std::int64_t(7)}, {"embedding_size", std::int64_t(3)}, {"padding_idx", std::int64_t(-1)}},
        "ids");
    row("Embedding that shares its weight", "Embedding",
        {{"vocab_size", std::int64_t(7)}, {"embedding_size", std::int64_t(3)}, {"shares_weight", true}}, "ids");
    row("RMSNorm", "RMSNorm", {{"dim", std::int64_t(5)}, {"eps", 1e-6}}, "2 3 5");
    row("LayerNorm", "LayerNorm", {{"dim", std::int64_t(5)}, {"eps", 1e-5}}, "2 3 5");
    row("Dropout", "Dropout", {{"p", 0.4}}, "2 3 5");
    for (const char* type : {"SiLU", "ReLU", "Tanh", "Sigmoid", "Softmax"}) row(type, type, {}, "2 3 4");
    row("GELU", "GELU", {{"approximate", "none"s}}, "2 3 4");
    row("GELU tanh", "GELU", {{"approximate", "tanh"s}}, "2 3 4");
    row("Softmax over rows", "Softmax", {{"axis", std::int64_t(0)}}, "3 4");
    row("Residual", "Residual", {{"scale", 0.5}}, "2 3 4;2 3 4");
    row("Split", "Split", {{"sizes", "2,1,3"s}}, "2 3 6");
    row("Split in groups", "Split", {{"sizes", "2,1"s}, {"groups", std::int64_t(2)}}, "2 3 6");
    row("Concat", "Concat", {{"inputs", std::int64_t(3)}}, "2 3 4;2 3 1;2 3 2");
    row("RotaryEmbedding", "RotaryEmbedding", {{"num_heads", std::int64_t(2)}, {"head_dim", std::int64_t(4)}}, "2 3 8");
    const Params attention{{"num_heads", std::int64_t(2)}, {"num_kv_heads", std::int64_t(2)}, {"head_dim", std::int64_t(3)}};
    const auto with = [&](const Params& more) {
        Params out = attention;
        for (const auto& [name, value] : more) out[name] = value;
        return out;
    };
    row("Attention causal", "Attention", attention, "2 4 6;2 4 6;2 4 6");
    row("Attention grouped", "Attention", with({{"num_kv_heads", std::int64_t(1)}}), "2 4 6;2 4 3;2 4 3");
    row("Attention ALiBi", "Attention", with({{"position", "alibi"s}}), "2 4 6;2 4 6;2 4 6");
    row("Attention cross", "Attention", with({{"causal", false}}), "2 4 6;2 3 6;2 3 6");
    row("Attention with dropout", "Attention", with({{"dropout", 0.3}}), "2 4 6;2 4 6;2 4 6");
    const Params head{{"hidden_size", std::int64_t(3)}, {"vocab_size", std::int64_t(5)}};
    Params normalised = head;
    normalised["kind"] = "normalised"s;
    row("LMHead", "LMHead", head, "2 3 3");
    row("LMHead normalised", "LMHead", normalised, "2 3 3");
    Params tied = head;
    tied["kind"] = "tied"s;
    row("LMHead tied", "LMHead", tied, "2 3 3;5 3");
}

void TestCells::gradientsEqualFiniteDifferences() {
    QFETCH(QString, type);
    QFETCH(Params, params);
    QFETCH(QString, shapes);
    LoneCell cell(type.toStdString(), params);
    cell.context.isTraining = true;
    cell.context.dropoutSeed = 5;
    std::vector<at::Tensor> inputs;
    if (shapes == "ids")
        inputs.push_back(at::randint(0, 7, {2, 4}, at::detail::createCPUGenerator(1), at::kLong));
    else
        for (const QString& part : shapes.split(';')) {
            std::vector<std::int64_t> shape;
            for (const QString& number : part.split(' ')) shape.push_back(number.toLongLong());
            inputs.push_back(normal(shape, 10 + inputs.size()).requires_grad_(true));
        }
    probe(cell(inputs)).backward();
    std::string report;
    for (const at::Tensor& input : inputs)
        if (input.requires_grad()) QVERIFY2(gradientIsRight(cell, inputs, input, report), report.c_str());
    for (const at::Tensor& weight : cell.weights) QVERIFY2(gradientIsRight(cell, inputs, weight, report), report.c_str());
}

void TestCells::embeddingGradientIsZeroAtThePadding() {
    LoneCell cell("Embedding", {{"vocab_size", std::int64_t(4)}, {"embedding_size", std::int64_t(2)}, {"padding_idx", std::int64_t(1)}});
    const at::Tensor ids = at::tensor(std::vector<std::int64_t>{0, 1, 1, 3}).reshape({2, 2});
    cell({ids})[0].sum().backward();
    const at::Tensor expected = at::tensor(std::vector<double>{1, 1, 0, 0, 0, 0, 1, 1}, at::kDouble).reshape({4, 2});
    QVERIFY(at::equal(cell.weights[0].grad(), expected));
}

void TestCells::embeddingNamesIdsOutsideTheVocabulary() {
    LoneCell cell("Embedding", {{"vocab_size", std::int64_t(4)}, {"embedding_size", std::int64_t(2)}});
    try {
        cell({at::tensor(std::vector<std::int64_t>{0, 4}).reshape({1, 2})});
        QFAIL("the id 4 was accepted");
    } catch (const c10::Error& error) {
        QVERIFY(std::string(error.what()).find("0 to 4, the vocabulary has 0..3") != std::string::npos);
    }
}

void TestCells::normalisedHeadHasUnitRows() {
    using namespace std::string_literals;
    LoneCell cell("LMHead", {{"hidden_size", std::int64_t(2)}, {"vocab_size", std::int64_t(2)}, {"kind", "normalised"s}});
    cell.weights[0].detach().copy_(at::tensor(std::vector<double>{3, 4, 0, -2}, at::kDouble).reshape({2, 2}));
    const at::Tensor logits = cell({at::tensor(std::vector<double>{5, 10}, at::kDouble).reshape({1, 1, 2})})[0];
    QVERIFY(at::allclose(
        logits, at::tensor(std::vector<double>{5 * 0.6 + 10 * 0.8, -10}, at::kDouble).reshape({1, 1, 2}))); // rows (0.6, 0.8), (0, -1)
}

void TestCells::groupsAreSplitEachByItself() {
    // two groups of (2 + 1): 0 1 | 2 and 3 4 | 5
    using namespace std::string_literals;
    LoneCell cell("Split", {{"sizes", "2,1"s}, {"groups", std::int64_t(2)}});
    const auto pieces = cell({at::arange(6, at::kDouble).reshape({1, 1, 6})});
    QVERIFY(at::equal(pieces[0], at::tensor(std::vector<double>{0, 1, 3, 4}, at::kDouble).reshape({1, 1, 4})));
    QVERIFY(at::equal(pieces[1], at::tensor(std::vector<double>{2, 5}, at::kDouble).reshape({1, 1, 2})));
}

void TestCells::tiedHeadUsesTheWiredWeight() {
    using namespace std::string_literals;
    LoneCell embedding("Embedding", {{"vocab_size", std::int64_t(5)}, {"embedding_size", std::int64_t(3)}, {"shares_weight", true}});
    LoneCell head("LMHead", {{"hidden_size", std::int64_t(3)}, {"vocab_size", std::int64_t(5)}, {"kind", "tied"s}});
    QVERIFY(head.weights.empty());
    const auto shared = embedding({at::tensor(std::vector<std::int64_t>{4, 2}).reshape({1, 2})});
    const at::Tensor logits = head({shared[0], shared[1]})[0];
    for (int t = 0; t < 2; ++t)
        for (int v = 0; v < 5; ++v) {
            const double expected = (embedding.weights[0][t == 0 ? 4 : 2] * embedding.weights[0][v]).sum().item<double>();
            QVERIFY(std::abs(logits[0][t][v].item<double>() - expected) < 1e-12);
        }
}

void TestCells::groupedQueryEqualsRepeatedHeads() {
    const Params grouped{{"num_heads", std::int64_t(4)}, {"num_kv_heads", std::int64_t(2)}, {"head_dim", std::int64_t(3)}};
    Params full = grouped;
    full["num_kv_heads"] = std::int64_t(4);
    const at::Tensor q = normal({2, 5, 12}, 1), k = normal({2, 5, 6}, 2), v = normal({2, 5, 6}, 3);
    const auto repeated = [](const at::Tensor& x) { // heads 0 1 -> 0 0 1 1
        return x.unflatten(-1, {2, 3}).repeat_interleave(2, 2).flatten(2);
    };
    LoneCell a("Attention", grouped), b("Attention", full);
    QVERIFY(at::allclose(a({q, k, v})[0], b({q, repeated(k), repeated(v)})[0]));
}

void TestCells::alibiSlopesFollowThePaper() {
    // With q = 0 the scores are the bias alone. Two keys: weights 1 / (1 + e^-slope) on the nearer one. v of the nearer key is 1, of the
    // other 0. Six heads: 2^-2, 2^-4, 2^-6, 2^-8, then 2^-1, 2^-3 (every other slope of eight heads).
    using namespace std::string_literals;
    LoneCell cell(
        "Attention",
        {{"num_heads", std::int64_t(6)}, {"num_kv_heads", std::int64_t(6)}, {"head_dim", std::int64_t(1)}, {"position", "alibi"s}});
    const at::Tensor zero = at::zeros_like(normal({1, 2, 6}, 1));
    at::Tensor v = zero.clone();
    v[0][1].fill_(1);
    const at::Tensor out = cell({zero, zero, v})[0][0][1];
    const double exponents[] = {-2, -4, -6, -8, -1, -3};
    for (int head = 0; head < 6; ++head) {
        const double slope = std::exp2(exponents[head]);
        QVERIFY(std::abs(out[head].item<double>() - 1 / (1 + std::exp(-slope))) < 1e-12);
    }
}

void TestCells::rotaryFollowsItsDefinition() {
    // head_dim 4, base 100: pair 0 = (x0, x2) turns by the position, pair 1 = (x1, x3) by position / 10.
    LoneCell cell("RotaryEmbedding", {{"num_heads", std::int64_t(1)}, {"head_dim", std::int64_t(4)}, {"base", 100.0}});
    const at::Tensor x = at::tensor(std::vector<double>{1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1}, at::kDouble).reshape({1, 3, 4});
    const at::Tensor y = cell({x})[0];
    for (int t = 0; t < 3; ++t) {
        const double expected[] = {std::cos(t), -std::sin(t / 10.0), std::sin(t), std::cos(t / 10.0)};
        for (int i = 0; i < 4; ++i) QVERIFY(std::abs(y[0][t][i].item<double>() - expected[i]) < 1e-6); // the tables are float32
    }
    cell.context.positions = at::tensor(std::vector<std::int64_t>{2, 0, 1}).reshape({1, 3});
    const at::Tensor moved = cell({x})[0];
    QVERIFY(at::equal(moved[0][0], y[0][2]) && at::equal(moved[0][1], y[0][0]));
    cell.context.positions = at::tensor(std::vector<std::int64_t>{7, 8, 9}).reshape({1, 3}); // a document that goes on from another row
    QVERIFY(std::abs(cell({x})[0][0][0][0].item<double>() - std::cos(7)) < 1e-6);
}

void TestCells::rotaryScalingChangesTheAngles() {
    using namespace std::string_literals;
    const Params plain{{"num_heads", std::int64_t(1)}, {"head_dim", std::int64_t(4)}, {"max_positions", std::int64_t(4)}, {"factor", 2.0}};
    const auto angle = [&](const std::string& scaling, std::int64_t length, std::int64_t position, int pair, const Params& more = {}) {
        Params params = plain;
        params["scaling"] = scaling;
        for (const auto& [name, value] : more) params[name] = value;
        LoneCell cell("RotaryEmbedding", params);
        at::Tensor x = at::zeros_like(normal({1, length, 4}, 1));
        x.select(2, pair).fill_(1);
        const at::Tensor y = cell({x})[0][0][position];
        return std::atan2(y[pair + 2].item<double>(), y[pair].item<double>());
    };
    QVERIFY(std::abs(angle("linear", 4, 3, 0) - 1.5) < 1e-6);                     // positions halved
    QVERIFY(std::abs(angle("dynamic", 4, 3, 1) - angle("none", 4, 3, 1)) < 1e-9); // not longer than trained on
    // T = 8, max 4, factor 2, D = 4: base 10000 * (2 * 8 / 4 - 1)^(4 / 2) = 90000; pair 1 turns by position / 90000^(1/2) = position / 300
    QVERIFY(std::abs(angle("dynamic", 8, 3, 1) - 0.01) < 1e-6);
    // llama3: pairs turn by 1 and by 1/100 a position; original length / wave length = length · frequency / 2π. With 100 the first is 15.9,
    // above 4: kept; the second 0.159, below 1: divided by 8. With 1000 the second is 1.592: (1.592 - 1) / (4 - 1) of it kept, the rest
    // divided.
    const Params longest100{{"factor", 8.0}, {"max_positions", std::int64_t(100)}},
        longest1000{{"factor", 8.0}, {"max_positions", std::int64_t(1000)}};
    QVERIFY(std::abs(angle("llama3", 4, 3, 0, longest100) - 3) < 1e-6);
    QVERIFY(std::abs(angle("llama3", 4, 3, 1, longest100) - 3 * 0.01 / 8) < 1e-7);
    const double kept = (1000 * 0.01 / (2 * 3.14159265358979) - 1) / 3;
    QVERIFY(std::abs(angle("llama3", 4, 3, 1, longest1000) - 3 * (kept * 0.01 + (1 - kept) * 0.01 / 8)) < 1e-7);
}

void TestCells::dropoutKeepsTheMeanAndRepeatsItself() {
    LoneCell cell("Dropout", {{"p", 0.25}});
    const at::Tensor x = normal({100, 100}, 1).fill_(1);
    QVERIFY(at::equal(cell({x})[0], x)); // not training
    cell.context.isTraining = true;
    cell.context.dropoutSeed = 3;
    const at::Tensor a = cell({x})[0];
    QVERIFY(at::equal(a, cell({x})[0]));
    QVERIFY(std::abs(a.mean().item<double>() - 1) < 0.03); // standard deviation of the mean: sqrt(1/3) / 100 = 0.006
    QVERIFY(std::abs((a == 0).to(at::kDouble).mean().item<double>() - 0.25) < 0.03);
    cell.context.dropoutSeed = 4;
    QVERIFY(!at::equal(a, cell({x})[0]));
}

void TestCells::attentionDropoutWithoutDropoutIsAttention() {
    Params params{{"num_heads", std::int64_t(2)}, {"num_kv_heads", std::int64_t(2)}, {"head_dim", std::int64_t(3)}};
    const std::vector<at::Tensor> inputs{normal({2, 4, 6}, 1), normal({2, 4, 6}, 2), normal({2, 4, 6}, 3)};
    LoneCell plain("Attention", params);
    params["dropout"] = 1e-12; // takes the written-out path and drops nothing
    LoneCell dropping("Attention", params);
    dropping.context.isTraining = true;
    QVERIFY(at::allclose(plain(inputs)[0], dropping(inputs)[0]));
}

void TestCells::attentionMaskPortHidesKeys() {
    LoneCell cell("Attention",
                  {{"num_heads", std::int64_t(1)}, {"num_kv_heads", std::int64_t(1)}, {"head_dim", std::int64_t(2)}, {"causal", false}});
    const at::Tensor q = normal({1, 3, 2}, 1), k = normal({1, 4, 2}, 2), v = normal({1, 4, 2}, 3);
    at::Tensor mask = at::arange(4).lt(3).reshape({1, 1, 4}).expand({1, 3, 4}); // the last key is hidden
    LoneCell shorter("Attention",
                     {{"num_heads", std::int64_t(1)}, {"num_kv_heads", std::int64_t(1)}, {"head_dim", std::int64_t(2)}, {"causal", false}});
    QVERIFY(at::allclose(cell({q, k, v, mask})[0], shorter({q, k.narrow(1, 0, 3), v.narrow(1, 0, 3)})[0]));
}

namespace {

class Doubler final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override { return {inputs[0] * 2}; }
};

} // namespace

void TestCells::aUserCanWriteACell() {
    CellRegistry registry = CellRegistry::standard();
    registry.add<Doubler>("Doubler");
    graph::CellInstance instance;
    instance.type = "Doubler";
    StepContext context;
    QCOMPARE(registry.make(instance)->construct({at::tensor(std::vector<double>{21}, at::kDouble)}, context)[0].item<double>(), 42.0);
    QVERIFY(registry.make(instanceOf("ReLU", {})) != nullptr);
}

QTEST_GUILESS_MAIN(TestCells)
#include "tst_cells.moc"
