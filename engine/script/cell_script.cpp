#include "engine/script/cell_script.h"

#include "engine/script/compiler.h"
#include "engine/train/run_reporter.h"
#include "models/graph/port_symbols.h"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <limits>

namespace celloom::engine {
namespace jit = torch::jit;

struct CellScript::Data {
    ScriptSource source;
    script::Compiled compiled;
    jit::Code init, construct;
    c10::intrusive_ptr<c10::ivalue::Object> made; // with what __init__ set; copied for each pass
    std::vector<std::size_t> weightSlots;
    std::size_t trainingSlot = 0;
    bool hasStar = false;

    [[nodiscard]] ScriptProblem problem(const std::exception& exception, const std::string& method) const {
        ScriptProblem out = script::problemOf(exception, source, true);
        if (out.method.empty()) out.method = method;
        return out;
    }
};

namespace {

/// The function with all that it calls in one piece, as it was written: no executor that rewrites it between two passes.
jit::Code codeOf(torch::jit::Function& function) {
    auto graph = jit::toGraphFunction(function).graph()->copy();
    jit::Inline(*graph);
    jit::runRequiredPasses(graph);
    return jit::Code(graph, function.name());
}

constexpr double kInitSeconds = 1; // numbers and small tables

void run(const jit::Code& code, jit::Stack& stack, double maxSeconds) {
    const script::Budget budget(maxSeconds);
    jit::InterpreterState(code).run(stack);
}

bool speaksOfMemory(const std::exception& exception) {
    const std::string text = exception.what();
    return dynamic_cast<const std::bad_alloc*>(&exception) || text.find("allocate memory") != std::string::npos || text.find("out of memory") != std::string::npos;
}

std::vector<at::Tensor> tensorsOf(const c10::IValue& value) {
    if (value.isTensor()) return {value.toTensor()};
    if (value.isTensorList()) return value.toTensorVector();
    std::vector<at::Tensor> out;
    for (const c10::IValue& item : value.toTupleRef().elements()) out.push_back(item.toTensor());
    return out;
}

} // namespace

CellScript::CellScript(std::unique_ptr<Data> data) : m_data(std::move(data)) {}
CellScript::~CellScript() = default;
const ScriptReport& CellScript::report() const { return m_data->compiled.report; }

ScriptResult<std::shared_ptr<const CellScript>> CellScript::compile(const ScriptSpec& spec, ScriptReport* report) {
    CELLOOM_CHECK(spec.cell);
    auto source = readScriptSource(spec.code);
    if (!source) return tl::unexpected(source.error());
    auto compiled = script::compileSource(*source, spec, report);
    if (!compiled) return tl::unexpected(compiled.error());
    auto data = std::make_unique<Data>();
    data->source = std::move(*source);
    data->compiled = std::move(*compiled);
    const c10::ClassTypePtr& type = data->compiled.type;
    for (const graph::DeclaredPort& weight : spec.cell->weights) data->weightSlots.push_back(type->getAttributeSlot(weight.name));
    data->trainingSlot = type->getAttributeSlot("training");
    data->made = c10::ivalue::Object::create(c10::StrongTypePtr(data->compiled.unit, type), type->numAttributes());
    data->made->setSlot(data->trainingSlot, false);
    for (const std::size_t slot : data->weightSlots) data->made->setSlot(slot, at::Tensor());
    try {
        auto& functions = data->compiled.functions;
        data->init = codeOf(*functions.at("__init__"));
        data->construct = codeOf(*functions.at(data->compiled.construct));
        const auto& parameters = functions.at(data->compiled.construct)->getSchema().arguments();
        data->hasStar = parameters.size() == 2 && parameters[1].type()->isSubtypeOf(*c10::ListType::ofTensors());
        jit::Stack stack{data->made};
        stack.insert(stack.end(), data->compiled.arguments.begin(), data->compiled.arguments.end());
        run(data->init, stack, kInitSeconds);
    } catch (const std::exception& exception) {
        return tl::unexpected(data->problem(exception, "__init__"));
    }
    return std::shared_ptr<const CellScript>(new CellScript(std::move(data)));
}

ScriptResult<std::vector<at::Tensor>> CellScript::construct(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& weights, at::ScalarType computeType,
                                                            bool isTraining, std::optional<double> maxSeconds) const {
    const Data& data = *m_data;
    CELLOOM_CHECK(weights.size() == data.weightSlots.size());
    const at::Device device = !inputs.empty() ? inputs[0].device() : !weights.empty() ? weights[0].device() : at::Device(at::kCPU);
    auto self = c10::ivalue::Object::create(c10::StrongTypePtr(data.compiled.unit, data.compiled.type), data.made->slots().size());
    for (std::size_t slot = 0; slot < data.made->slots().size(); ++slot) {
        c10::IValue value = data.made->getSlot(slot);
        if (value.isTensor() && value.toTensor().defined()) {
            const at::Tensor& tensor = value.toTensor();
            value = tensor.to(device, at::isFloatingType(tensor.scalar_type()) ? computeType : tensor.scalar_type());
        }
        self->setSlot(slot, std::move(value));
    }
    for (std::size_t i = 0; i < weights.size(); ++i) self->setSlot(data.weightSlots[i], weights[i]);
    self->setSlot(data.trainingSlot, isTraining);
    jit::Stack stack{self};
    if (data.hasStar) stack.emplace_back(c10::List<at::Tensor>(at::ArrayRef<at::Tensor>(inputs)));
    else stack.insert(stack.end(), inputs.begin(), inputs.end());
    try {
        run(data.construct, stack, maxSeconds.value_or(std::numeric_limits<double>::infinity()));
        return tensorsOf(jit::pop(stack));
    } catch (const std::exception& exception) {
        if (!maxSeconds && speaksOfMemory(exception)) throw;
        return tl::unexpected(data.problem(exception, data.compiled.construct));
    }
}

Status checkDeclared(const std::vector<graph::DeclaredPort>& inputs, const std::vector<at::Tensor>& given, const std::vector<graph::DeclaredPort>& outputs,
                     const std::vector<at::Tensor>& results) {
    CELLOOM_CHECK(inputs.size() == given.size());
    if (results.size() != outputs.size())
        return fail("gave " + counted(std::ssize(results), "tensor") + ", but declares " + counted(std::ssize(outputs), "output") + ".", "Return a tensor for each output.");
    graph::PortSymbols symbols;
    for (std::size_t i = 0; i < inputs.size(); ++i) CELLOOM_TRY_STATUS(symbols.bind(inputs[i], graph::plainShape(given[i].sizes().vec())));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const graph::DeclaredPort& port = outputs[i];
        if (!results[i].defined()) return fail("gave nothing for " + port.name + ".", "Return a tensor for each output.");
        CELLOOM_TRY(expected, symbols.shapeOf(port));
        const graph::Shape actual = graph::plainShape(results[i].sizes().vec());
        if (actual != expected)
            return fail("gave " + graph::toString(actual) + " for " + port.name + ", but declares " + graph::toString(port.shape) +
                            (expected == port.shape ? std::string() : " = " + graph::toString(expected)) + ".",
                        "Change what it computes, or the declared shape.");
        const at::ScalarType type = results[i].scalar_type();
        const bool isRight = port.dtype == "float" ? at::isFloatingType(type) : type == (port.dtype == "bool" ? at::kBool : at::kLong);
        if (!isRight)
            return fail(std::string("gave ") + c10::toString(type) + " for " + port.name + ", but declares " + port.dtype + ".",
                        port.dtype == "float" ? "Convert it, as in x.float(), or declare its type: " + port.name + ": [B, T] int64." : "Change what it computes, or the declared type.");
    }
    return {};
}

} // namespace celloom::engine
