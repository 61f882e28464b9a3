// What typed code may do: operators that compute and nothing else. Files, random numbers, threads, devices and changes of tensors in place are
// not on the list; what could run or grow without end is counted while it runs.
#include "engine/script/compiler.h"

#include "models/base/text.h"

#include <torch/csrc/jit/frontend/error_report.h>
#include <torch/csrc/jit/runtime/custom_operator.h>
#include <torch/csrc/jit/runtime/print_handler.h>

#include <algorithm>
#include <chrono>
#include <ctime>

namespace celloom::engine::script {
namespace {

using namespace torch::jit;

constexpr std::int64_t kMaxRounds = 1'000'000;        // of all loops together and calls of methods, in one call from outside
constexpr double kMaxSeconds = 10;                    // of one call from outside, looked at in loops
constexpr std::int64_t kMaxTextBytes = 64 << 10;      // of one text
constexpr std::int64_t kMaxItems = 100'000;           // of one list or dict
constexpr std::int64_t kMaxElements = 1ll << 31;      // of one tensor
constexpr std::int64_t kMaxNewElements = 1ll << 24;   // of one tensor made from sizes
constexpr int kMaxPrints = 100;                       // lines in one call from outside

/// Of this thread, in seconds: what a script takes on a machine that is busy with other things is not the script's.
double processorTime() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Limits {
    std::int64_t rounds = 0;
    int prints = 0;
    double start = 0; // this thread's processor time
    const Script::Print* print = nullptr;
    double maxSeconds = kMaxSeconds;
    std::int64_t maxNewElements = kMaxNewElements;
    bool isTimed = false; // at each operation: a trial's
};
thread_local std::optional<Limits> limits; // of the call that this thread makes

/// Of torch, ops and np. Functions here change nothing but their result.
const std::set<std::string>& tensorFunctions() {
    static const std::set<std::string> list{
        "abs", "acos", "add", "all", "allclose", "amax", "amin", "any", "arange", "argmax", "argmin", "argsort", "asin", "atan", "atan2", "bincount", "broadcast_to", "bmm",
        "cat", "ceil", "chunk", "clamp", "clip", "clone", "concat", "cos", "cosh", "cosine_similarity", "count_nonzero", "cross_entropy_loss", "cummax", "cummin", "cumprod",
        "cumsum", "diag", "diff", "div", "dot", "empty_like", "eq", "equal", "erf", "exp", "expand", "expm1", "eye", "flatten", "flip", "floor", "floor_divide", "fmod", "full",
        "full_like", "gather", "ge", "gt", "histc", "index_select", "isclose", "isfinite", "isinf", "isnan", "kthvalue", "le", "lerp", "linspace", "log", "log10", "log1p", "log2",
        "log_softmax", "logical_and", "logical_not", "logical_or", "logical_xor", "logsumexp", "lt", "masked_fill", "masked_select", "matmul", "max", "maximum", "mean",
        "median", "min", "minimum", "mm", "mode", "movedim", "mul", "nan_to_num", "nanmean", "nansum", "narrow", "ne", "neg", "negative", "nonzero", "norm", "numel",
        "one_hot", "ones", "ones_like", "permute", "pow", "prod", "quantile", "ravel", "reciprocal", "relu", "remainder", "repeat", "reshape", "roll", "round", "rsqrt", "searchsorted",
        "select", "sigmoid", "sign", "silu", "sin", "sinh", "size", "softmax", "sort", "split", "sqrt", "square", "squeeze", "stack", "std", "sub", "subtract", "sum", "swapaxes",
        "t", "tan", "tanh", "tensor", "tile", "topk", "trace", "transpose", "tril", "triu", "true_divide", "trunc", "unbind", "unique_consecutive", "unsqueeze", "var", "view", "where",
        "xlogy", "zeros", "zeros_like",
        // what cells are made of
        "adaptive_avg_pool1d", "adaptive_avg_pool2d", "addbmm", "addcdiv", "addcmul", "addmm", "avg_pool1d", "avg_pool2d", "baddbmm", "bilinear", "celu", "clamp_max", "clamp_min",
        "constant_pad_nd", "conv1d", "conv2d", "conv3d", "cosine_embedding_loss", "cross", "cumulative_trapezoid", "cdist", "deg2rad", "einsum", "elu", "embedding", "erfc", "exp2",
        "frac", "gelu", "glu", "group_norm", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hstack", "inner", "kron", "layer_norm", "leaky_relu", "linear", "linalg_norm",
        "linalg_vector_norm", "log_sigmoid", "logcumsumexp", "max_pool1d", "max_pool2d", "mish", "moveaxis", "mT", "mH", "numpy_T", "outer", "pad", "prelu", "reflection_pad1d",
        "reflection_pad2d", "relu6", "replication_pad1d", "replication_pad2d", "rms_norm", "rot90", "sinc", "softplus", "softshrink", "std_mean", "swapdims", "take_along_dim", "tanhshrink",
        "tensor_split", "tensordot", "threshold", "tril_indices", "triu_indices", "unflatten", "unfold", "var_mean", "vdot", "vstack", "repeat_interleave", "selu"};
    return list;
}

/// What typed cells cannot use, and what to do instead (behind ||): two passes over one batch give the same numbers.
std::optional<std::string> refusalInCells(const Node& node) {
    switch (node.kind()) {
    case prim::Print:
        return "print is not available in a cell.||Look at its wires with probe.";
    case aten::warn:
        return "Warnings are not available in a cell.||Delete the line.";
    case aten::empty_like:
        return "empty_like holds whatever was in memory.||Use zeros_like.";
    case prim::Loop: {
        const auto rounds = toIValue(node.inputs()[0]);
        if (rounds && rounds->isInt() && rounds->toInt() == std::numeric_limits<std::int64_t>::max()) return "while is not available in a cell.||Write for i in range(n).";
        return {};
    }
    default:
        if (node.kind() == Symbol::fromQualString("celloom::now")) return "The time is not available in a cell: two passes would differ.||Delete it.";
        return {};
    }
}

/// Operators that the compiler makes of other syntax: signs, indices, methods of numbers, texts, lists and dicts.
const std::set<std::string>& plainOperators() {
    static const std::set<std::string> list{
        "aten::Bool", "aten::Float", "aten::Int", "aten::IntImplicit", "aten::FloatImplicit", "aten::ScalarImplicit", "aten::str", "aten::ord", "aten::chr", "aten::format",
        "aten::percentFormat", "aten::__and__", "aten::__or__", "aten::__xor__", "aten::__contains__", "aten::__getitem__", "aten::__is__", "aten::__isnot__", "aten::__not__",
        "aten::__lshift__", "aten::__rshift__", "aten::bitwise_not", "aten::bitwise_and", "aten::bitwise_or", "aten::bitwise_xor", "aten::__range_length", "aten::__derive_index",
        "aten::_set_item", "aten::Delete", "aten::append", "aten::extend", "aten::insert", "aten::pop", "aten::popitem", "aten::remove", "aten::reverse", "aten::clear", "aten::copy",
        "aten::count", "aten::index", "aten::len", "aten::list", "aten::dict", "aten::items", "aten::keys", "aten::values", "aten::get", "aten::setdefault", "aten::update", "aten::sort",
        "aten::sorted", "aten::slice", "aten::floordiv", "aten::divmod", "aten::rsub", "aten::min", "aten::max", "aten::item", "aten::tolist", "aten::dim", "aten::to", "aten::detach",
        "aten::contiguous", "aten::float", "aten::double", "aten::long", "aten::int", "aten::bool", "aten::type_as", "aten::view_as", "aten::expand_as", "aten::reshape_as", "aten::index",
        "aten::is_floating_point", "aten::warn", "aten::upper", "aten::lower", "aten::strip", "aten::lstrip", "aten::rstrip", "aten::split", "aten::join", "aten::startswith",
        "aten::endswith", "aten::find", "aten::replace", "aten::title", "aten::capitalize", "aten::isdigit", "aten::isalpha", "aten::fabs", "aten::degrees", "aten::radians",
        "aten::copysign", "aten::gcd", "aten::factorial", "aten::lgamma", "aten::mathremainder", "aten::cpu", "aten::unsqueeze", "aten::new_zeros", "aten::new_ones", "aten::new_full",
        "prim::Constant", "prim::If", "prim::Loop", "prim::ListConstruct", "prim::TupleConstruct", "prim::DictConstruct", "prim::TupleUnpack", "prim::TupleIndex",
        "prim::TupleSlice", "prim::ListUnpack", "prim::GetAttr", "prim::SetAttr", "prim::CallMethod", "prim::CallFunction", "prim::Print", "prim::RaiseException",
        "prim::Uninitialized", "prim::unchecked_cast", "prim::unchecked_unwrap_optional", "prim::isinstance", "prim::NumToTensor", "prim::tolist", "prim::min", "prim::max", "prim::abs",
        "prim::dtype", "prim::device", "prim::shape", "prim::is_cuda", "prim::type", "prim::StringIndex", "prim::data", "prim::requires_grad", "prim::layout",
        "aten::tensor", "aten::as_tensor", "aten::manual_unfold", "celloom::now"};
    return list;
}

/// Of math; the names are LibTorch's too, but for these.
const std::set<std::string>& mathFunctions() {
    static const std::set<std::string> list{"acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "copysign", "cos", "cosh", "degrees", "erf", "erfc", "exp", "expm1", "fabs",
                                            "factorial", "floor", "fmod", "gcd", "isfinite", "isinf", "isnan", "lgamma", "log", "log10", "log1p", "log2", "pow", "radians", "sin", "sinh",
                                            "sqrt", "tan", "tanh"};
    return list;
}

bool isAllowed(const std::string& qualified) {
    if (plainOperators().contains(qualified)) return true;
    const std::string name = qualified.substr(qualified.rfind(':') + 1);
    return qualified.starts_with("aten::") && (tensorFunctions().contains(name) || mathFunctions().contains(name));
}

std::string plainName(const Node& node) {
    const std::string name = node.kind().toQualString();
    return name.starts_with("aten::") ? name.substr(6) : name;
}

void checkBlock(const Block& block, ScriptKind kind) {
    for (const Node* node : block.nodes()) {
        if (kind == ScriptKind::Cell)
            if (const auto refusal = refusalInCells(*node)) throw ErrorReport(node->sourceRange()) << *refusal;
        const std::string name = node->kind().toQualString();
        if (!isAllowed(name)) {
            const std::string plain = plainName(*node);
            const bool isInPlace = plain.ends_with("_") || plain == "index_put";
            throw ErrorReport(node->sourceRange()) << (isInPlace ? "Tensors are not changed in place here ('" : "'") << plain
                                                   << (isInPlace ? "')." : "' is not available in typed code.");
        }
        for (const Block* inner : node->blocks()) checkBlock(*inner, kind);
    }
}

// ---- guards ----

[[noreturn]] void exceeded(const std::string& what) { throw std::runtime_error("limit: " + what); }

void checkTime() {
    if (processorTime() - limits->start > limits->maxSeconds)
        exceeded("one call took more than " + numberText(limits->maxSeconds) + " seconds of processor time");
}

Operation tick(const Node*) {
    return [](Stack&) {
        if (!limits) return;
        if (++limits->rounds > kMaxRounds) exceeded("loops ran more than " + std::to_string(kMaxRounds) + " rounds in one call");
        if (limits->rounds % 4096 == 0) checkTime();
    };
}

void checkSize(const c10::IValue& value) {
    if (value.isString() && static_cast<std::int64_t>(value.toStringRef().size()) > kMaxTextBytes)
        exceeded("a text grew longer than " + std::to_string(kMaxTextBytes) + " bytes");
    if (value.isList() && static_cast<std::int64_t>(value.toListRef().size()) > kMaxItems) exceeded("a list grew longer than " + std::to_string(kMaxItems) + " items");
    if (value.isGenericDict() && static_cast<std::int64_t>(value.toGenericDict().size()) > kMaxItems) exceeded("a dict grew larger than " + std::to_string(kMaxItems) + " items");
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().numel() > kMaxElements) exceeded("a tensor has more than 2147483648 elements");
}

std::int64_t lengthOf(const c10::IValue& value) {
    if (value.isString()) return static_cast<std::int64_t>(value.toStringRef().size());
    if (value.isIntList()) return static_cast<std::int64_t>(value.toIntVector().size());
    if (value.isDoubleList()) return static_cast<std::int64_t>(value.toDoubleVector().size());
    if (value.isBoolList()) return static_cast<std::int64_t>(value.toBoolList().size());
    return value.isList() ? static_cast<std::int64_t>(value.toList().size()) : 0;
}

Operation bound(const Node*) {
    return [](Stack& stack) {
        const c10::IValue value = pop(stack);
        if (limits && limits->isTimed) checkTime();
        if (value.isString() || value.isTensor() || value.isGenericDict()) return checkSize(value);
        if (value.isList() && static_cast<std::int64_t>(value.toList().size()) > kMaxItems) exceeded("a list grew longer than " + std::to_string(kMaxItems) + " items");
    };
}

/// Before a list or a text is repeated.
Operation boundProduct(const Node*) {
    return [](Stack& stack) {
        const c10::IValue times = pop(stack), what = pop(stack);
        if (times.toInt() > 0 && lengthOf(what) > 0 && times.toInt() > kMaxItems / lengthOf(what))
            exceeded("a repeated list or text grew longer than " + std::to_string(kMaxItems));
    };
}

/// Before a tensor is made of a size.
Operation boundNew(const Node*) {
    return [](Stack& stack) {
        const c10::IValue size = pop(stack);
        const std::int64_t most = limits ? limits->maxNewElements : kMaxNewElements;
        std::int64_t elements = 1;
        const std::vector<std::int64_t> dims = size.isIntList() ? size.toIntVector() : std::vector<std::int64_t>{size.isInt() ? size.toInt() : 1};
        for (const std::int64_t dim : dims)
            if (dim > 0 && (elements = dim > most / elements ? most + 1 : elements * dim) > most)
                exceeded("a new tensor would have more than " + std::to_string(most) + " elements");
    };
}

Operation now(const Node*) {
    return [](Stack& stack) { push(stack, std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count()); };
}

void print(const std::string& text) {
    if (!limits || !limits->print || !*limits->print) return;
    if (++limits->prints > kMaxPrints) return; // more than anyone reads
    (*limits->print)(text.ends_with('\n') ? text.substr(0, text.size() - 1) : text);
}

Node* guard(Graph& graph, const char* name, at::ArrayRef<Value*> inputs, const SourceRange& place) {
    Node* node = graph.create(Symbol::fromQualString(name), inputs, 0);
    node->setSourceRange(place);
    return node;
}

bool grows(const c10::TypePtr& type) {
    return type->kind() == c10::TypeKind::StringType || type->kind() == c10::TypeKind::ListType || type->kind() == c10::TypeKind::DictType ||
           type->kind() == c10::TypeKind::TensorType;
}

void guardNode(Graph& graph, Node* node) {
    static const std::set<std::string> kMakers{"aten::zeros", "aten::ones", "aten::full", "aten::eye", "aten::arange", "aten::linspace", "aten::expand", "aten::repeat", "aten::tile",
                                               "aten::broadcast_to", "aten::new_zeros", "aten::new_ones", "aten::new_full", "aten::one_hot"};
    static const std::set<std::string> kChangers{"aten::append", "aten::extend", "aten::insert", "aten::_set_item", "aten::update", "aten::setdefault"};
    static const std::set<std::string> kFixed{"prim::Constant", "prim::GetAttr", "prim::Uninitialized", "prim::If", "prim::Loop", "prim::TupleUnpack"};
    const std::string name = node->kind().toQualString();
    const SourceRange place = node->sourceRange();
    if (name == "aten::mul" && node->inputs().size() == 2) {
        for (std::size_t i = 0; i < 2; ++i)
            if (node->input(1 - i)->type()->kind() == c10::TypeKind::IntType && grows(node->input(i)->type()) &&
                node->input(i)->type()->kind() != c10::TypeKind::TensorType)
                guard(graph, "celloom::bound_product", {node->input(i), node->input(1 - i)}, place)->insertBefore(node);
    }
    if (kMakers.contains(name))
        for (Value* input : node->inputs())
            if (input->type()->isSubtypeOf(*c10::ListType::ofInts()) || input->type()->kind() == c10::TypeKind::IntType)
                guard(graph, "celloom::bound_new", {input}, place)->insertBefore(node);
    if (kChangers.contains(name)) guard(graph, "celloom::bound", {node->input(0)}, place)->insertAfter(node);
    if (kFixed.contains(name)) return;
    for (Value* output : node->outputs())
        if (grows(output->type())) guard(graph, "celloom::bound", {output}, place)->insertAfter(node);
}

void guardBlock(Graph& graph, Block* block) {
    std::vector<Node*> nodes;
    for (Node* node : block->nodes()) nodes.push_back(node);
    for (Node* node : nodes) {
        for (Block* inner : node->blocks()) guardBlock(graph, inner);
        if (node->kind() == prim::Loop) {
            Block* body = node->blocks()[0];
            Node* first = guard(graph, "celloom::tick", {}, node->sourceRange());
            body->prependNode(first);
        }
        guardNode(graph, node);
    }
}

} // namespace

void registerGuards() {
    static const bool isDone = [] {
        const auto kind = c10::AliasAnalysisKind::CONSERVATIVE; // never dropped as unused
        static const RegisterOperators guards({Operator(Symbol::fromQualString("celloom::tick"), OperationCreator(&tick), kind),
                                               Operator(Symbol::fromQualString("celloom::bound"), OperationCreator(&bound), kind),
                                               Operator(Symbol::fromQualString("celloom::bound_product"), OperationCreator(&boundProduct), kind),
                                               Operator(Symbol::fromQualString("celloom::bound_new"), OperationCreator(&boundNew), kind),
                                               Operator("celloom::now() -> float", OperationCreator(&now), kind)});
        setPrintHandler(&print);
        return true;
    }();
    static_cast<void>(isDone);
}

void checkOperators(const Graph& graph, ScriptKind kind) { checkBlock(*graph.block(), kind); }

void insertGuards(Graph& graph) {
    guardBlock(graph, graph.block());
    Node* first = guard(graph, "celloom::tick", {}, graph.return_node()->sourceRange());
    graph.block()->prependNode(first);
}

std::optional<std::string> operatorFor(const std::string& module, const std::string& name) {
    static const std::map<std::string, std::string> kNumpy{{"absolute", "aten::abs"}, {"concatenate", "aten::cat"}, {"power", "aten::pow"}, {"greater", "aten::gt"},
                                                           {"less", "aten::lt"},      {"multiply", "aten::mul"},    {"divide", "aten::div"}, {"array", "aten::tensor"},
                                                           {"expand_dims", "aten::unsqueeze"}};
    // MindSpore's ops.transpose takes all axes, NumPy's too; PyTorch's and mint's two of them.
    if (name == "transpose" && (module == "ops" || module == "numpy")) return "aten::permute";
    if (module == "time") return name == "time" ? std::optional<std::string>("celloom::now") : std::nullopt;
    if (module == "math") return mathFunctions().contains(name) ? std::optional<std::string>("aten::" + name) : std::nullopt;
    if (tensorFunctions().contains(name)) return "aten::" + name;
    if (module != "torch")
        if (const auto found = kNumpy.find(name); found != kNumpy.end()) return found->second;
    return {};
}

std::vector<std::string> operatorNames(const std::string& module) {
    if (module == "time") return {"time"};
    const auto& list = module == "math" ? mathFunctions() : tensorFunctions();
    return {list.begin(), list.end()};
}

Budget::Budget(const Script::Print& print) { limits = Limits{0, 0, processorTime(), &print}; }
Budget::Budget(double maxSeconds) { limits = Limits{.start = processorTime(), .maxSeconds = maxSeconds, .maxNewElements = kMaxElements, .isTimed = maxSeconds < 1e9}; }
Budget::~Budget() { limits.reset(); }

} // namespace celloom::engine::script
