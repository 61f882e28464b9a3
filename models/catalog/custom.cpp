// Cells of the user's own: Script (typed, compiled by TorchScript) and Plugin (compiled C++). What they take and give, each instance declares.
#include "models/base/capped.h"
#include "models/catalog/building.h"
#include "models/graph/port_symbols.h"

#include <algorithm>
#include <set>

namespace celloom::catalog {
namespace {

using graph::DeclaredPort;

ParamDef textParam(std::string name, ParamKind kind, std::optional<graph::ParamValue> standard, std::string help, std::string helpZh) {
    return {std::move(name), kind, std::move(standard), -1e300, 1e300, {}, {}, std::move(help), std::move(helpZh)};
}

std::vector<PortDef> portsOf(const CellInstance& cell, const char* parameter) {
    std::vector<PortDef> out;
    for (const DeclaredPort& port : cell.ports(parameter)) out.push_back({port.name, false, port.dtype});
    return out;
}

/// Names that a typed source cannot give to a parameter or an attribute, or that mean something else there.
bool isReserved(const std::string& name) {
    static const std::set<std::string> words{"False", "None",   "True",   "and",      "as",   "assert", "async",  "await",    "break", "class",  "continue", "def",  "del",  "elif",
                                             "else",  "except", "finally", "for",     "from", "global", "if",     "import",   "in",    "is",     "lambda",   "nonlocal", "not", "or",
                                             "pass",  "raise",  "return", "try",      "while", "with",  "yield",  "self",     "training", "construct", "forward"};
    return words.contains(name) || name.starts_with("__");
}

Status checkPorts(const CellInstance& cell) {
    const auto wrong = [](const char* parameter, const std::string& message, const std::string& hint) { return fail(message, hint, parameter); };
    if (cell.ports("outputs").empty()) return wrong("outputs", "The cell declares no output.", "Declare one such as out: [B, T, 512].");
    std::set<std::string> known;
    for (const char* parameter : {"inputs", "outputs", "weights"})
        for (const DeclaredPort& port : cell.ports(parameter)) {
            if (isReserved(port.name)) return wrong(parameter, port.name + " cannot be a name here: it means something else.", "Choose another.");
            const bool isInput = std::string_view(parameter) == "inputs", isWeight = std::string_view(parameter) == "weights";
            if (isWeight && port.dtype != "float") return wrong(parameter, "The weight " + port.name + " is " + port.dtype + "; weights learn, and are float.", "Leave the type away.");
            for (const Dim& dim : port.shape) {
                if (isInput && !dim.symbol.empty()) known.insert(dim.symbol);
                if (!isInput && !isWeight && !dim.symbol.empty() && !known.contains(dim.symbol))
                    return wrong(parameter, "The dimension " + dim.symbol + " of " + port.name + " is in no input.",
                                 "Use a name that an input's shape has, a hyper-parameter, or a number.");
                if (isWeight && !dim.symbol.empty())
                    return wrong(parameter, "The weight " + port.name + " has the dimension " + dim.symbol + ", whose size is not known.",
                                 "A weight's dimensions are numbers or hyper-parameters.");
            }
        }
    return {};
}

Shapes declaredShapes(const RuleInput& in) {
    graph::PortSymbols symbols;
    const std::vector<DeclaredPort> inputs = in.cell.ports("inputs");
    for (std::size_t i = 0; i < inputs.size(); ++i)
        if (auto status = symbols.bind(inputs[i], in.inputs[i]); !status) return fail(status.error().message, status.error().hint, "inputs");
    std::vector<Shape> out;
    for (const DeclaredPort& port : in.cell.ports("outputs")) {
        auto shape = symbols.shapeOf(port);
        if (!shape) return fail(shape.error().message, shape.error().hint, "outputs");
        out.push_back(std::move(*shape));
    }
    return out;
}

/// Biases begin at 0, other vectors (gains, scales) at 1, matrices and larger ones uniform within ±1/√(numbers that feed one output).
WeightSpec::Init beginOf(const DeclaredPort& weight) {
    if (weight.name.ends_with("bias") || weight.name.ends_with("beta")) return WeightSpec::Init::Zeros;
    return weight.shape.size() < 2 ? WeightSpec::Init::Ones : WeightSpec::Init::FanIn;
}

std::vector<WeightSpec> declaredWeights(const CellInstance& cell) {
    std::vector<WeightSpec> out;
    for (const DeclaredPort& port : cell.ports("weights")) {
        WeightSpec weight{port.name, {}, beginOf(port)};
        for (const Dim& dim : port.shape) weight.dims.push_back(dim.number);
        out.push_back(std::move(weight));
    }
    return out;
}

/// What nobody outside can know is guessed from sizes: a product with each weight of two or more dimensions for each row of the largest output, and one
/// operation for each number that goes in or out; or what flops_per_value says. Kept for the backward pass: inputs, outputs, and as much again.
CellCost declaredCost(const CellInstance& cell, const Sizes& inputs, const Sizes& outputs) {
    CellCost cost;
    double values = 0, rows = 0;
    for (const auto& dims : inputs) values += static_cast<double>(sizeOf(dims));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const std::int64_t size = sizeOf(outputs[i]);
        values += static_cast<double>(size);
        rows = std::max(rows, static_cast<double>(size) / static_cast<double>(outputs[i].empty() ? 1 : outputs[i].back()));
        cost.keptOutputs.push_back(static_cast<int>(i));
        cost.keptValues = addCapped(cost.keptValues, size);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) cost.keptInputs.push_back(static_cast<int>(i));
    double products = 0;
    for (const WeightSpec& weight : cell.weights)
        if (weight.dims.size() >= 2) products += 2 * rows * static_cast<double>(sizeOf(weight.dims));
    const double given = cell.real("flops_per_value");
    cost.forwardFlops = given > 0 ? given * static_cast<double>(sizeOf(outputs[0])) : values + products;
    return cost;
}

CellType declaring(const char* name, const char* summary, const char* summaryZh) {
    CellType type;
    type.name = name;
    type.category = "Custom";
    type.summary = summary;
    type.summaryZh = summaryZh;
    type.inputs = {{"x"}};
    type.outputs = {{"out"}};
    type.params = {
        textParam("inputs", ParamKind::Ports, {}, "What the cell takes, in order: x: [B, T, hidden]; mask: [B, T] bool. Names that are no hyper-parameters stand for whatever is wired in.",
                  "单元的输入，按顺序：x: [B, T, hidden]; mask: [B, T] bool。不是超参数的名称代表所连接的任意大小。"),
        textParam("outputs", ParamKind::Ports, {}, "What the cell gives, in order: out: [B, T, hidden]. Its shapes are checked when it computes.",
                  "单元的输出，按顺序：out: [B, T, hidden]。计算时检查其形状。"),
        textParam("weights", ParamKind::Ports, std::string(), "Learned tensors: kernel: [hidden, hidden]; bias: [hidden]. Names ending in bias or beta begin at 0, other vectors at 1, matrices drawn.",
                  "可学习的张量：kernel: [hidden, hidden]; bias: [hidden]。以 bias 或 beta 结尾的初始为 0，其他向量为 1，矩阵随机初始化。")};
    type.inputsOf = [](const CellInstance& cell) { return portsOf(cell, "inputs"); };
    type.outputsOf = [](const CellInstance& cell) { return portsOf(cell, "outputs"); };
    type.check = checkPorts;
    type.shapeRule = declaredShapes;
    type.weights = declaredWeights;
    type.cost = declaredCost;
    return type;
}

ParamDef flopsParam() {
    return realParam("flops_per_value", 0, 0, 1e15, "Operations for each number of the first output, for estimates; 0: guessed from the sizes of ports and weights.",
                     "第一个输出中每个数的运算次数，用于估算；0：根据端口和权重的大小估计。");
}

CellType script() {
    CellType type = declaring("Script", "A cell that you type: construct in Python's form, compiled by TorchScript; gradients come by themselves.",
                              "自己编写的单元：用 Python 形式写 construct，由 TorchScript 编译；梯度自动求出。");
    type.params.push_back(textParam("code", ParamKind::Code, {}, "def construct(self, x): … with a parameter for each input; weights are self.NAME. Or a class X(nn.Cell) with construct.",
                                    "def construct(self, x): …，每个输入对应一个参数；权重为 self.名称。也可以写成带 construct 的 class X(nn.Cell)。"));
    type.params.push_back(flopsParam());
    return type;
}

CellType plugin() {
    CellType type = declaring("Plugin", "A cell compiled from C++ against celloom/cell.h: from a library that you trust, or from the program that runs the graph.",
                              "用 C++ 编写、基于 celloom/cell.h 编译的单元：来自您信任的库，或运行该图的程序本身。");
    type.params.insert(type.params.begin(),
                       {textParam("library", ParamKind::Text, std::string(), "Name of a library in the workspace (celloom-engine plugin trust FILE), or its path; empty: the program's own cells.",
                                  "工作区中库的名称（celloom-engine plugin trust FILE），或其路径；为空：程序自带的单元。"),
                        textParam("cell", ParamKind::Text, {}, "Which of its cells: the name that it was given there.", "库中的哪个单元：其在库中的名称。")});
    type.params.push_back(textParam("settings", ParamKind::Text, std::string(), "Text that the cell is given when it is made, in a form of its own.", "创建单元时传给它的文本，格式由单元自定。"));
    type.params.push_back(flopsParam());
    return type;
}

} // namespace

void addCustom(std::vector<CellType>& out) {
    out.push_back(script());
    out.push_back(plugin());
}

} // namespace celloom::catalog
