// Every type of the catalogue on random shapes: its shape rule against what the engine computes, its gradients against finite differences,
// its cost rule against the operations that LibTorch really executes. Cells that declare their own ports (Script, Plugin) have suites of
// their own.
#include "engine/exec/runtime.h"
#include "models/graph/cost.h"
#include "models/graph/expression.h"
#include "tests/engine/cell_helpers.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/randint.h>
#include <ATen/record_function.h>
#include <QTest>
#include <functional>
#include <optional>
#include <random>
#include <set>

using namespace celloom;
using namespace celloom::engine;
using namespace celloom::engine::testing;

namespace {

constexpr int kCases = 6; // random ones of each type

/// Draws whole numbers, the same on every machine.
class Draw {
public:
    explicit Draw(std::uint64_t seed) : m_engine(seed) {}
    std::int64_t operator()(std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(m_engine() % static_cast<std::uint64_t>(high - low + 1));
    }
    bool coin() { return (*this)(0, 1) == 1; }
    std::string of(const std::vector<std::string>& list) { return list[static_cast<std::size_t>((*this)(0, std::ssize(list) - 1))]; }

private:
    std::mt19937_64 m_engine;
};

/// One cell with its inputs: dimensions as the graph writes them, numbers or the symbols B and T.
struct Case {
    std::map<std::string, graph::ParamValue> params;
    std::vector<std::vector<std::string>> inputs;
    bool arePositive = false; // inputs of logarithms, roots and divisors
};
using Dims = std::vector<std::string>;
std::string text(std::int64_t number) {
    return std::to_string(number);
}

/// Symbols of every case.
const std::map<std::string, std::int64_t> kSymbols{{"B", 3}, {"T", 4}};

Dims anyShape(Draw& draw) {
    Dims out{"B", "T"};
    while (draw.coin() && out.size() < 4) out.push_back(text(draw(1, 4)));
    out.push_back(text(draw(2, 5)));
    return out;
}

Case plain(Draw& draw) {
    return {{}, {anyShape(draw)}};
}

/// Two shapes that broadcast: dimensions of the second go or become 1.
Case broadcasting(Draw& draw) {
    Dims a = anyShape(draw), b = a;
    if (draw.coin()) b.erase(b.begin(), b.begin() + draw(0, std::ssize(b) - 1));
    for (std::string& dim : b)
        if (draw(0, 3) == 0) dim = "1";
    if (draw.coin()) std::swap(a, b);
    return {{}, {a, b}, true};
}

Case onChannels(Draw& draw, const char* name) {
    const std::int64_t channels = draw(1, 6);
    return {{{name, channels}}, {{"B", "T", text(channels)}}};
}

Case image(Draw& draw, Case out) {
    out.inputs = {{"B", text(draw(1, 3)), text(draw(5, 8)), text(draw(5, 8))}};
    return out;
}

Case pool(Draw& draw) {
    Case out = image(draw, {});
    const std::int64_t height = draw(1, 4), width = draw(1, 4);
    out.params = {{"kernel_size", text(height) + "," + text(width)},
                  {"stride", text(draw(0, 3))},
                  {"ceil_mode", draw.coin()},
                  {"padding", text(draw(0, height / 2)) + "," + text(draw(0, width / 2))}};
    return out;
}

Case conv(Draw& draw) {
    Case out = image(draw, {});
    const std::int64_t group = draw(1, 2), in = group * draw(1, 2);
    out.inputs[0][1] = text(in);
    out.params = {
        {"in_channels", in},          {"out_channels", group * draw(1, 3)}, {"kernel_size", text(draw(1, 3)) + "," + text(draw(1, 3))},
        {"stride", text(draw(1, 2))}, {"dilation", text(draw(1, 2))},       {"group", group},
        {"has_bias", draw.coin()}};
    const std::string mode = draw.of({"pad", "same", "valid"});
    out.params["pad_mode"] = mode;
    if (mode == "pad") out.params["padding"] = draw.of({"0", "1", "2,1", "0,1,2,1"});
    return out;
}

Case attention(Draw& draw) {
    const std::int64_t kvHeads = draw(1, 2), heads = kvHeads * draw(1, 2), dim = draw(2, 4);
    const bool isCausal = draw.coin();
    const std::string keys = isCausal ? "T" : "5";
    return {{{"num_heads", heads},
             {"num_kv_heads", kvHeads},
             {"head_dim", dim},
             {"causal", isCausal},
             {"position", isCausal ? draw.of({"none", "alibi"}) : "none"}},
            {{"B", "T", text(heads * dim)}, {"B", keys, text(kvHeads * dim)}, {"B", keys, text(kvHeads * dim)}}};
}

Case matMul(Draw& draw) {
    const bool isTransposedA = draw.coin(), isTransposedB = draw.coin();
    const std::string rows = "T", inner = text(draw(1, 4)), columns = text(draw(1, 4));
    Dims a = isTransposedA ? Dims{inner, rows} : Dims{rows, inner}, b = isTransposedB ? Dims{columns, inner} : Dims{inner, columns};
    if (draw.coin()) a.insert(a.begin(), "B");
    if (draw.coin()) b.insert(b.begin(), draw.coin() ? "B" : "1");
    return {{{"transpose_a", isTransposedA}, {"transpose_b", isTransposedB}}, {a, b}};
}

Case reduce(Draw& draw) {
    const Dims shape{"B", text(draw(2, 4)), "T", text(draw(2, 4))};
    return {{{"axis", draw.of({"-1", "0", "1,2", "-2, 3", "2"})}, {"keep_dims", draw.coin()}}, {shape}};
}

Case expression(Draw& draw) {
    const std::vector<std::pair<std::string, int>> formulas{{"exp(-in0 ** 2 / 2) * in1", 2},
                                                            {"where(in0 > in1, tanh(in0) - 1, sigmoid(in1) + 2 * in0)", 2},
                                                            {"log(in0) + sqrt(in1) / abs(sin(in0) + 3)", 2},
                                                            {"maximum(in0, 1) * minimum(in1, cos(in0)) - relu(in0 - 1)", 2},
                                                            {"in0 ** in1 + 2 ** -in0", 2},
                                                            {"1 / (1 + exp(-in0))", 1}};
    const auto& [formula, inputs] = formulas[static_cast<std::size_t>(draw(0, std::ssize(formulas) - 1))];
    Case out = broadcasting(draw);
    out.inputs.resize(static_cast<std::size_t>(inputs));
    out.params = {{"formula", formula}, {"inputs", std::int64_t{inputs}}};
    return out;
}

Case reshape(Draw& draw) {
    const std::int64_t a = draw(1, 3), b = draw(1, 3);
    if (draw.coin()) return {{{"shape", "0, -1, " + text(a) + ", " + text(b)}}, {{"B", "T", text(a * b)}}};
    return {{{"shape", "-1, " + text(b)}}, {{"B", text(a), text(b)}}};
}

Case slice(Draw& draw) {
    const std::int64_t axis = draw(0, 2), begin = draw(-2, 2);
    Case out{{{"axis", axis}, {"begin", begin}}, {{"B", "6", "7"}}};
    if (draw.coin())
        out.params["kind"] = "index";
    else if (axis == 0)
        out.params["end"] = begin < 0 ? std::int64_t{0} : begin + 1;
    else {
        out.params["end"] = begin < 0 ? draw(begin + 1, 0) : draw(begin + 1, 6);
        out.params["step"] = draw(1, 2);
    }
    return out;
}

Case split(Draw& draw) {
    const std::int64_t a = draw(1, 3), b = draw(1, 3), groups = draw(1, 2), axis = draw(1, 2);
    Dims shape{"B", "4", "5"};
    shape[static_cast<std::size_t>(axis)] = text((a + b) * groups);
    return {{{"sizes", text(a) + "," + text(b)}, {"groups", groups}, {"axis", draw.coin() ? axis : axis - 3}}, {shape}};
}

Case concat(Draw& draw) {
    Case out{{{"inputs", std::int64_t{3}}, {"axis", draw(1, 2)}}, {}};
    for (int i = 0; i < 3; ++i) {
        Dims shape{"B", "4", "5"};
        shape[static_cast<std::size_t>(std::get<std::int64_t>(out.params["axis"]))] = text(draw(1, 4));
        out.inputs.push_back(shape);
    }
    return out;
}

using Generator = std::function<Case(Draw&)>;

const std::map<std::string, Generator>& generators() {
    static const std::map<std::string, Generator> all{
        {"Dense",
         [](Draw& draw) {
             Case out = onChannels(draw, "in_channels");
             out.params["out_channels"] = draw(1, 5);
             out.params["has_bias"] = draw.coin();
             return out;
         }},
        {"Embedding",
         [](Draw& draw) {
             return Case{{{"vocab_size", std::int64_t{7}},
                          {"embedding_size", draw(1, 4)},

                          {"shares_weight", draw.coin()}},
                         {{"B", "T"}}};
         }},
        {"LMHead",
         [](Draw& draw) {
             Case out = onChannels(draw, "hidden_size");
             out.params["vocab_size"] = std::int64_t{7};
             out.params["kind"] = draw.of({"plain", "normalised", "tied"});
             if (std::get<std::string>(out.params["kind"]) == "tied") out.inputs.push_back({"7", out.inputs[0][2]});
             return out;
         }},
        {"RMSNorm", [](Draw& draw) { return onChannels(draw, "dim"); }},
        {"LayerNorm",
         [](Draw& draw) {
             Case out = onChannels(draw, "dim");
             return out;
         }},
        {"Dropout",
         [](Draw& draw) {
             Case out = plain(draw);
             out.params["p"] = draw.coin() ? 0.0 : 0.4;
             return out;
         }},
        {"SiLU", plain},
        {"ReLU", plain},
        {"Tanh", plain},
        {"Sigmoid", plain},
        {"GELU",
         [](Draw& draw) {
             Case out = plain(draw);
             out.params["approximate"] = draw.of({"none", "tanh"});
             return out;
         }},
        {"Softmax",
         [](Draw& draw) {
             Case out = plain(draw);
             out.params["axis"] = draw(-2, 1);
             return out;
         }},
        {"RotaryEmbedding",
         [](Draw& draw) {
             const std::int64_t heads = draw(1, 3), dim = 2 * draw(2, 3);
             return Case{{{"num_heads", heads},
                          {"head_dim", dim},
                          {"scaling", draw.of({"none", "linear", "dynamic", "llama3"})},
                          {"factor", 2.0},
                          {"max_positions", std::int64_t{3}}},
                         {{"B", "T", text(heads * dim)}}};
         }},
        {"Attention", attention},
        {"Add", broadcasting},
        {"Subtract", broadcasting},
        {"Multiply", broadcasting},
        {"Divide", broadcasting},
        {"MatMul", matMul},
        {"Expression", expression},
        {"ReduceSum", reduce},
        {"ReduceMean", reduce},
        {"ReduceMax", reduce},
        {"Residual",
         [](Draw& draw) {
             Case out = plain(draw);
             out.inputs.push_back(out.inputs[0]);
             out.params["scale"] = draw.coin() ? 1.0 : 0.5;
             return out;
         }},
        {"Split", split},
        {"Concat", concat},
        {"Reshape", reshape},
        {"Slice", slice},
        {"Flatten",
         [](Draw& draw) {
             return Case{{{"start_dim", draw(1, 2)}, {"end_dim", draw(-2, -1)}}, {{"B", "2", text(draw(1, 3)), "3"}}};
         }},
        {"Transpose",
         [](Draw& draw) {
             return Case{{{"perm", draw.of({"0, 2, 1", "2, 0, 1", "-1, -2, 0"})}}, {{"B", "T", text(draw(1, 4))}}};
         }},
        {"Parameter",
         [](Draw& draw) {
             return Case{{{"shape", text(draw(1, 3)) + "," + text(draw(1, 3))}, {"init", draw.of({"normal", "zeros", "ones"})}},
                         draw.coin() ? std::vector<Dims>{{"B", "2"}} : std::vector<Dims>{}};
         }},
        {"Conv2d", conv},
        {"MaxPool2d", pool},
        {"AvgPool2d",
         [](Draw& draw) {
             Case out = pool(draw);
             out.params["count_include_pad"] = draw.coin();
             return out;
         }},
        {"BatchNorm2d",
         [](Draw& draw) {
             Case out = image(draw, {});
             out.params["num_features"] = out.inputs[0][1];
             return out;
         }},
        {"Branch",
         [](Draw& draw) {
             const Dims arm = anyShape(draw);
             return Case{{}, {draw.coin() ? Dims{"B"} : Dims{"B", "1"}, arm, arm}};
         }},
        {"MixtureOfExperts",
         [](Draw& draw) {
             return Case{{{"hidden_size", std::int64_t{8}},
                          {"intermediate_size", draw(8, 12)},
                          {"num_experts", draw(2, 4)},
                          {"top_k", draw(1, 2)},
                          {"kind", draw.of({"swiglu", "gelu"})},
                          {"renormalise", draw.coin()}},
                         {{"B", "T", "8"}}};
         }},
    };
    return all;
}

bool declaresItself(const catalog::CellType& type) {
    return std::any_of(type.params.begin(), type.params.end(), [](const catalog::ParamDef& param) {
        return param.kind == catalog::ParamKind::Ports || param.kind == catalog::ParamKind::Code;
    });
}

/// A graph of the one cell, expanded as any document is.
graph::ExpandedModel modelOf(const std::string& type, const Case& given) {
    graph::CellInstance ports; // the names of its ports follow from the parameters
    graph::Document document;
    graph::Cell cell;
    cell.name = "cell";
    cell.type = type;
    cell.params = given.params;
    const catalog::CellType& entry = *catalog::find(type);
    for (const catalog::ParamDef& param : entry.params) {
        const auto found = given.params.find(param.name);
        if (found != given.params.end())
            ports.params[param.name] = std::visit([](const auto& held) { return graph::ResolvedValue(held); }, found->second);
        else if (param.standard)
            ports.params[param.name] = std::visit([](const auto& held) { return graph::ResolvedValue(held); }, *param.standard);
    }
    const auto inputs = catalog::inputPorts(entry, ports), outputs = catalog::outputPorts(entry, ports);
    for (std::size_t i = 0; i < given.inputs.size(); ++i) {
        document.main.inputs.push_back({inputs[i].name, given.inputs[i], inputs[i].dtype});
        document.main.wires.push_back({{"", inputs[i].name}, {"cell", inputs[i].name}});
    }
    for (const auto& port : outputs) {
        document.main.outputs.push_back({"y_" + port.name, {}, port.dtype});
        document.main.wires.push_back({{"cell", port.name}, {"", "y_" + port.name}});
    }
    document.main.cells.push_back(cell);
    graph::Expansion expansion = graph::expand(document);
    if (!expansion.ok()) qFatal("%s: %s", type.c_str(), expansion.firstError().text().c_str());
    return std::move(expansion.model);
}

std::vector<std::int64_t> sizesOf(const graph::Shape& shape) {
    std::vector<std::int64_t> out;
    for (const graph::Dim& dim : shape) out.push_back(dim.number * (dim.symbol.empty() ? 1 : kSymbols.at(dim.symbol)));
    return out;
}

std::vector<at::Tensor> inputsFor(const graph::ExpandedModel& model, const Case& given, std::uint64_t seed) {
    std::vector<at::Tensor> out;
    for (const graph::ValueId id : model.cells[0].inputs) {
        if (id < 0) {
            out.emplace_back();
            continue;
        }
        const auto sizes = sizesOf(model.values[static_cast<std::size_t>(id)].shape);
        if (model.values[static_cast<std::size_t>(id)].dtype == "int64") {
            out.push_back(at::randint(0, 7, sizes, at::detail::createCPUGenerator(seed), at::kLong));
            continue;
        }
        at::Tensor x = normal(sizes, seed + out.size());
        if (given.arePositive) x = x.abs() + 0.5;
        out.push_back(x.requires_grad_(true));
    }
    return out;
}

// ---- counting what LibTorch executes ----

/// What an operation of LibTorch's dispatcher costs, from the shapes of what it takes and gives: a multiply-add counts as two.
struct OperationCost {
    double whole = 0;     // whatever it gives
    double perResult = 0; // for each number of its first result
};

/// Nothing for operations that only move numbers, draw, or handle places.
std::optional<OperationCost> costOf(const std::string& name, c10::ArrayRef<const c10::IValue> in) {
    static const std::map<std::string, double> kByResult{{"sub", 1},
                                                         {"mul", 1},
                                                         {"div", 1},
                                                         {"neg", 1},
                                                         {"exp", 1},
                                                         {"log", 1},
                                                         {"sqrt", 1},
                                                         {"abs", 1},
                                                         {"sin", 1},
                                                         {"cos", 1},
                                                         {"pow", 1},
                                                         {"relu", 1},
                                                         {"tanh", 5},
                                                         {"silu", 5},
                                                         {"sigmoid", 4},
                                                         {"gelu", 8},
                                                         {"where", 1},
                                                         {"maximum", 1},
                                                         {"minimum", 1},
                                                         {"gt", 1},
                                                         {"lt", 1},
                                                         {"le", 1},
                                                         {"ge", 1},
                                                         {"eq", 1},
                                                         {"ne", 1},
                                                         {"_softmax", 5},
                                                         {"native_layer_norm", 8},
                                                         {"native_batch_norm", 8}};
    const auto size = [&](std::size_t i, std::int64_t dim) { return static_cast<double>(in[i].toTensor().size(dim)); };
    const auto count = [&](std::size_t i) { return static_cast<double>(in[i].toTensor().numel()); };
    const bool isOfPlaces = !in.empty() && in[0].isTensor() && at::isIntegralType(in[0].toTensor().scalar_type(), true) && name != "where";
    if (isOfPlaces) return {};
    if (const auto found = kByResult.find(name); found != kByResult.end()) return OperationCost{0, found->second};
    if (name == "mm") return OperationCost{0, 2 * size(0, 1)};
    if (name == "bmm") return OperationCost{0, 2 * size(0, 2)};
    if (name == "addmm") return OperationCost{0, 2 * size(1, 1) + 1};
    if (name == "convolution") {
        const at::Tensor kernel = in[1].toTensor();
        const bool hasBias = in[2].isTensor() && in[2].toTensor().defined();
        return OperationCost{0, 2 * static_cast<double>(kernel.numel() / kernel.size(0)) + (hasBias ? 1 : 0)};
    }
    if (name.starts_with("_scaled_dot_product")) // q [B,H,T,D], k [B,H,S,D]: two products and a softmax
        return OperationCost{size(0, 0) * size(0, 1) * size(0, 2) * size(1, 2) * (4 * size(0, 3) + 5), 0};
    if (name == "sum" || name == "mean" || name == "amax") return OperationCost{count(0), 0};
    if (name == "linalg_vector_norm") return OperationCost{2 * count(0), 0};
    if (name == "index_add") return OperationCost{count(3), 0};
    if (name.starts_with("max_pool2d") || name == "avg_pool2d") {
        const auto kernel = in[1].toIntVector();
        return OperationCost{0, static_cast<double>(kernel[0] * kernel[1])};
    }
    if (name == "add")
        return OperationCost{0, in.size() > 2 && in[2].isScalar() && in[2].toScalar().toDouble() != 1 ? 2.0 : 1.0}; // a + alpha b
    return {};
}

thread_local double countedFlops = 0;
thread_local int depth = 0; // of operations that count: what they call is in their number already

struct Counted : at::ObserverContext {
    std::optional<OperationCost> cost;
};

/// FLOPs that LibTorch executes while `work` runs.
double flopsOfRunning(const std::function<void()>& work) {
    countedFlops = 0;
    depth = 0;
    const auto handle = at::addThreadLocalCallback(
        at::RecordFunctionCallback(
            [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
                const std::string name = function.name();
                auto context = std::make_unique<Counted>();
                context->cost = costOf(name.starts_with("aten::") ? name.substr(6) : name, function.inputs());
                if (context->cost) ++depth;
                return context;
            },
            [](const at::RecordFunction& function, at::ObserverContext* context) {
                const auto& cost = static_cast<Counted*>(context)->cost;
                if (!cost || --depth > 0) return;
                const auto& out = function.outputs();
                const bool hasResult = !out.empty() && out[0].isTensor() && out[0].toTensor().defined();
                countedFlops += cost->whole + (hasResult ? cost->perResult * static_cast<double>(out[0].toTensor().numel()) : 0);
            })
            .needsInputs(true)
            .needsOutputs(true)
            .scopes({at::RecordScope::FUNCTION}));
    work();
    at::removeCallback(handle);
    return countedFlops;
}

/// Of cells whose computation is a kernel of the engine's own, which the dispatcher does not see: by the definition of the cell.
std::optional<double> flopsOfOwnKernel(const graph::CellInstance& cell, double values) {
    if (cell.type == "RMSNorm") return 5 * values;         // square, sum, two products and the division by the root
    if (cell.type == "RotaryEmbedding") return 3 * values; // cos x ± sin x'
    return {};
}

} // namespace

class TestCellCatalogue : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { setThreads(1); }
    void everyTypeHasCases();
    void parametersAreDescribedInBothLanguagesAndHaveRanges();
    void shapesAreThoseThatTheEngineComputes_data() { addTypes(); }
    void shapesAreThoseThatTheEngineComputes();
    void gradientsEqualFiniteDifferences_data() { addTypes(); }
    void gradientsEqualFiniteDifferences();
    void costsAreWhatIsExecuted_data() { addTypes(); }
    void costsAreWhatIsExecuted();
    void everyTypeComputesInTheHalfTypes_data() { addTypes(); }
    void everyTypeComputesInTheHalfTypes();

private:
    static void addTypes() {
        QTest::addColumn<std::string>("type");
        for (const auto& [type, generator] : generators()) QTest::newRow(type.c_str()) << type;
    }
    /// Each case of the row's type.
    void forEachCase(const std::function<void(const Case&, const graph::ExpandedModel&, std::uint64_t seed)>& check) {
        QFETCH(std::string, type);
        for (std::uint64_t seed = 0; seed < kCases; ++seed) {
            Draw draw(1000 + seed);
            const Case given = generators().at(type)(draw);
            const graph::ExpandedModel model = modelOf(type, given);
            check(given, model, 10 * seed);
            if (QTest::currentTestFailed()) {
                std::string params;
                for (const auto& [name, value] : model.cells[0].params)
                    params += " " + name + "=" + graph::toString(graph::ResolvedValue(value));
                qWarning("case %llu:%s", static_cast<unsigned long long>(seed), params.c_str());
                return;
            }
        }
    }
};

void TestCellCatalogue::everyTypeHasCases() {
    std::set<std::string> expected, actual;
    for (const catalog::CellType& type : catalog::all())
        if (!declaresItself(type)) expected.insert(type.name);
    for (const auto& [type, generator] : generators()) actual.insert(type);
    QVERIFY(expected == actual);
}

void TestCellCatalogue::parametersAreDescribedInBothLanguagesAndHaveRanges() {
    using catalog::ParamKind;
    for (const catalog::CellType& type : catalog::all()) {
        const auto hasChinese = [](const std::string& text) {
            return std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0xE3; });
        };
        QVERIFY2(!type.summary.empty() && !hasChinese(type.summary) && hasChinese(type.summaryZh), type.name.c_str());
        for (const catalog::ParamDef& param : type.params) {
            const std::string name = type.name + "." + param.name;
            QVERIFY2(!param.help.empty() && !hasChinese(param.help) && hasChinese(param.helpZh), name.c_str());
            const bool isNumber = param.kind == ParamKind::Integer || param.kind == ParamKind::Real || param.kind == ParamKind::IntegerList;
            if (isNumber) QVERIFY2(param.minimum > -1e300 && param.maximum < 1e300 && param.minimum < param.maximum, name.c_str());
            if (param.kind == ParamKind::Choice) QVERIFY2(param.choices.size() > 1, name.c_str());
        }
    }
}

void TestCellCatalogue::shapesAreThoseThatTheEngineComputes() {
    forEachCase([](const Case& given, const graph::ExpandedModel& model, std::uint64_t seed) {
        LoneCell cell(model.cells[0]);
        cell.context.isTraining = true;
        const auto outputs = cell(inputsFor(model, given, seed));
        QCOMPARE(outputs.size(), model.cells[0].outputs.size());
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            const auto expected = sizesOf(model.values[static_cast<std::size_t>(model.cells[0].outputs[i])].shape);
            QVERIFY2(outputs[i].sizes().vec() == expected,
                     (c10::str("rule ", at::IntArrayRef(expected), ", engine ", outputs[i].sizes())).c_str());
        }
    });
}

/// In float64; h = 1e-6 leaves about 9 digits, asked for are 6. Every input and every weight, training: dropout masks repeat themselves,
/// batch norm uses the batch.
void TestCellCatalogue::gradientsEqualFiniteDifferences() {
    forEachCase([](const Case& given, const graph::ExpandedModel& model, std::uint64_t seed) {
        LoneCell cell(model.cells[0]);
        cell.context.isTraining = true;
        cell.context.dropoutSeed = 5;
        const auto inputs = inputsFor(model, given, seed);
        probe(cell(inputs)).backward();
        std::string report;
        for (const at::Tensor& input : inputs)
            if (input.defined() && input.requires_grad()) QVERIFY2(gradientIsRight(cell, inputs, input, report), report.c_str());
        for (const at::Tensor& weight : cell.weights)
            if (weight.requires_grad()) QVERIFY2(gradientIsRight(cell, inputs, weight, report), report.c_str());
    });
}

/// FLOPs: those of the operations that LibTorch's dispatcher runs, counted by their shapes; exactly. ALiBi's bias is not a part of a cell's
/// work: all layers share one. Nor is a loss that a cell adds, which an evaluation is without.
void TestCellCatalogue::costsAreWhatIsExecuted() {
    forEachCase([](const Case& given, const graph::ExpandedModel& model, std::uint64_t seed) {
        const graph::Cost cost = graph::costs(model, kSymbols)[0];
        LoneCell cell(model.cells[0]);
        std::int64_t parameters = 0;
        for (const at::Tensor& weight : cell.weights) parameters += weight.requires_grad() ? weight.numel() : 0;
        QCOMPARE(cost.parameters, parameters);
        QCOMPARE(model.parameterCount(), parameters);
        if (const auto position = given.params.find("position");
            position != given.params.end() && std::get<std::string>(position->second) == "alibi")
            return;
        cell.context.isTraining = model.cells[0].type != "MixtureOfExperts";
        const auto inputs = inputsFor(model, given, seed);
        std::vector<at::Tensor> outputs;
        double expected = flopsOfRunning([&] { outputs = cell(inputs); });
        const double values = static_cast<double>(outputs[0].numel());
        if (const auto own = flopsOfOwnKernel(model.cells[0], values)) expected = *own;
        QCOMPARE(cost.forwardFlops, expected);
    });
}

/// Forward and backward, in training. A chosen expert or maximum may differ where two are close, so the mean difference is held: to 2
/// percent of the spread in float16 and 5 in bfloat16, whose last bits are 2^-11 and 2^-8.
void TestCellCatalogue::everyTypeComputesInTheHalfTypes() {
    forEachCase([](const Case& given, const graph::ExpandedModel& model, std::uint64_t seed) {
        for (const auto type : {at::kFloat, at::kHalf, at::kBFloat16}) {
            LoneCell exact(model.cells[0]), half(model.cells[0], type, at::kFloat);
            std::vector<at::Tensor> inputs = inputsFor(model, given, seed), rounded;
            for (std::size_t i = 0; i < half.weights.size(); ++i) half.weights[i].detach().copy_(exact.weights[i].detach());
            for (at::Tensor& input : inputs) {
                const bool isFloat = input.defined() && at::isFloatingType(input.scalar_type());
                rounded.push_back(isFloat ? input.detach().to(type).requires_grad_(true) : input);
            }
            for (LoneCell* cell : {&exact, &half}) {
                cell->context.isTraining = true;
                cell->context.dropoutSeed = 5;
            }
            const auto expected = exact(inputs), actual = half(rounded);
            at::Tensor sum;
            for (std::size_t i = 0; i < actual.size(); ++i) {
                const double spread = expected[i].abs().mean().item<double>() + 1e-3;
                const double difference = (actual[i].to(at::kDouble) - expected[i]).abs().mean().item<double>() / spread;
                QVERIFY2(difference < (type == at::kBFloat16 ? 0.05 : 0.02),
                         qPrintable(QStringLiteral("%1 of the spread").arg(difference)));
                sum = sum.defined() ? sum + actual[i].to(at::kFloat).sum() : actual[i].to(at::kFloat).sum();
            }
            sum.backward();
            for (const at::Tensor& weight : half.weights) QCOMPARE(weight.scalar_type(), at::kFloat);
        }
    });
}

QTEST_GUILESS_MAIN(TestCellCatalogue)
#include "tst_cell_catalogue.moc"
