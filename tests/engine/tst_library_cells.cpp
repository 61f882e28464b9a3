// Composites of the standard library compute what PyTorch's modules do, where PyTorch has them (tests/oracle/make_library.py), and their formulas
// where it does not.
#include "engine/checkpoint/safetensors.h"
#include "models/library/standard.h"
#include "tests/engine/train_helper.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>

#include <filesystem>

using namespace celloom;
using namespace celloom::engine;
namespace fs = std::filesystem;

namespace {

using Sizes = std::map<std::string, graph::ParamValue>;

const library::Entry& entryOf(const std::string& name) {
    const library::Entry* entry = library::findStandard(name);
    if (!entry) qFatal("no entry %s", name.c_str());
    return *entry;
}

std::unique_ptr<Network> networkOf(const std::string& name, const Sizes& sizes) {
    graph::Expansion expansion = graph::expand(entryOf(name).document, sizes);
    if (!expansion.ok()) qFatal("%s", expansion.firstError().text().c_str());
    const auto treatment = must(recipe::resolve(expansion.model, {}));
    return must(Network::create(std::move(expansion.model), treatment, {.seed = 3, .initStd = 0.5}));
}

double largest(const at::Tensor& difference) {
    return difference.abs().max().item<double>();
}

at::Tensor parameter(const Network& network, const std::string& path) {
    for (const Parameter& parameter : network.parameters())
        if (parameter.path == path) return parameter.tensor;
    qFatal("no parameter %s", path.c_str());
    return {};
}

const graph::ParamValue kOff = 0.0, kYes = true, kNo = false;

graph::ParamValue whole(std::int64_t number) { return number; }

} // namespace

class TestLibraryCells : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void anEntryEqualsPyTorchsModule_data() {
        QTest::addColumn<QString>("file");
        for (const char* name : {"MultiHeadAttention", "MultiHeadAttention-no-bias-other-sizes", "CrossAttention", "TransformerBlock", "TransformerBlock-causal",
                                 "PostNormTransformerBlock", "PostNormTransformerBlock-causal", "TransformerDecoderBlock"})
            QTest::newRow(name) << name;
    }
    void anEntryEqualsPyTorchsModule() {
        QFETCH(QString, file);
        const std::string name = file.section('-', 0, 0).toStdString();
        Sizes sizes{{"d_model", whole(16)}, {"num_heads", whole(4)}};
        if (file.contains("Block")) sizes.insert({{"d_ff", whole(24)}, {"dropout", kOff}});
        if (file.endsWith("causal")) sizes["causal"] = kYes;
        if (file.contains("other-sizes")) sizes.insert({{"has_bias", kNo}, {"key_dim", whole(12)}, {"value_dim", whole(20)}});
        if (name == "CrossAttention") sizes["context_dim"] = whole(12);
        const auto fixture = must(SafetensorsFile::open(fs::path(CELLOOM_FIXTURES) / "library" / (file.toStdString() + ".safetensors")));
        const auto network = networkOf(name, sizes);
        for (Parameter& parameter : network->parameters()) {
            const at::Tensor given = must(fixture->tensor("weights." + parameter.path)); // each of its parameters has one there
            QCOMPARE(parameter.tensor.sizes().vec(), given.sizes().vec());
            parameter.tensor.detach().copy_(given);
        }
        Batch batch;
        const std::string first = network->model().inputs.front().name;
        for (const graph::NamedValue& input : network->model().inputs) batch.columns[input.name] = must(fixture->tensor("inputs." + input.name)).clone();
        batch.columns[first].requires_grad_(true);
        const at::Tensor out = must(network->forward(batch, {.training = true})).at("out");
        const at::Tensor wanted = must(fixture->tensor("out")), gradient = must(fixture->tensor("gradient"));
        (out.square().sum() / 2).backward();
        qInfo("output %.1e of %.2g, gradient %.1e of %.2g", largest(out - wanted), largest(wanted), largest(batch.columns[first].grad() - gradient), largest(gradient));
        QVERIFY(largest(out - wanted) <= 1e-5 * std::max(1.0, largest(wanted)));
        QVERIFY(largest(batch.columns[first].grad() - gradient) <= 1e-5 * std::max(1.0, largest(gradient)));
    }

    /// down(SiLU(gate(x)) · up(x)): Shazeer, arXiv:2002.05202.
    void swiGluIsItsFormula() {
        const auto network = networkOf("SwiGLU", {{"d_model", whole(8)}, {"d_ff", whole(12)}});
        const at::Tensor x = at::randn({2, 3, 8}, at::detail::createCPUGenerator(1));
        const auto linear = [&](const char* name, const at::Tensor& in) { return at::linear(in, parameter(*network, std::string(name) + ".weight")); };
        const at::Tensor wanted = linear("down_proj", at::silu(linear("gate_proj", x)) * linear("up_proj", x));
        Batch batch;
        batch.columns["x"] = x;
        QVERIFY(largest(must(network->forward(batch)).at("out") - wanted) < 1e-5);
    }

    void gatedFusionIsItsFormula() {
        const auto network = networkOf("GatedFusion", {{"dim", whole(6)}});
        Batch batch;
        const at::Tensor a = batch.columns["a"] = at::randn({4, 6}, at::detail::createCPUGenerator(1)), b = batch.columns["b"] = at::randn({4, 6}, at::detail::createCPUGenerator(2));
        const at::Tensor gate = at::sigmoid(at::linear(at::cat({a, b}, 1), parameter(*network, "gate.weight"), parameter(*network, "gate.bias")));
        QVERIFY(largest(must(network->forward(batch)).at("out") - (gate * a + (1 - gate) * b)) < 1e-5);
    }

    /// Each patch, flattened channel by channel, times the kernel's rows, plus its position: Dosovitskiy et al., arXiv:2010.11929, equation 1.
    void aPatchEmbeddingIsALinearMapOfEachPatch() {
        const auto network = networkOf("PatchEmbedding", {{"channels", whole(2)}, {"height", whole(6)}, {"width", whole(9)}, {"patch_size", whole(3)}, {"d_model", whole(5)}});
        Batch batch;
        const at::Tensor image = batch.columns["image"] = at::randn({2, 2, 6, 9}, at::detail::createCPUGenerator(1));
        const at::Tensor out = must(network->forward(batch)).at("out"), weight = parameter(*network, "patches.weight").flatten(1);
        QCOMPARE(out.sizes().vec(), (std::vector<std::int64_t>{2, 6, 5}));
        for (std::int64_t row = 0; row < 2; ++row)
            for (std::int64_t column = 0; column < 3; ++column) {
                const at::Tensor patch = image.slice(2, 3 * row, 3 * row + 3).slice(3, 3 * column, 3 * column + 3).flatten(1);
                const std::int64_t place = 3 * row + column;
                const at::Tensor wanted = at::linear(patch, weight, parameter(*network, "patches.bias")) + parameter(*network, "position.weight")[place];
                QVERIFY(largest(out.select(1, place) - wanted) < 1e-5);
            }
    }
};

QTEST_GUILESS_MAIN(TestLibraryCells)
#include "tst_library_cells.moc"
