#include "engine/script/script.h"

#include "engine/script/compiler.h"

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace celloom::engine {
using nlohmann::json;
using script::Budget;
using script::problemOf;
namespace {

// ---- attributes as JSON ----

json toJson(double value) {
    if (std::isfinite(value)) return value;
    return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

json toJson(const at::Tensor& tensor) {
    const at::Tensor flat = tensor.detach().to(at::kCPU).contiguous().reshape({-1});
    json values = json::array();
    const bool isReal = at::isFloatingType(flat.scalar_type());
    for (std::int64_t i = 0; i < flat.numel(); ++i) {
        if (isReal) values.push_back(toJson(flat[i].item<double>()));
        else values.push_back(flat[i].item<std::int64_t>());
    }
    return {{"type", static_cast<int>(flat.scalar_type())}, {"shape", tensor.sizes().vec()}, {"values", values}};
}

json toJson(const c10::IValue& value) {
    if (value.isInt()) return value.toInt();
    if (value.isDouble()) return toJson(value.toDouble());
    if (value.isBool()) return value.toBool();
    if (value.isString()) return value.toStringRef();
    if (value.isTensor()) return toJson(value.toTensor());
    json out = json::array();
    if (value.isList())
        for (const c10::IValue& item : value.toListRef().vec()) out.push_back(toJson(item));
    else if (value.isTuple())
        for (const c10::IValue& item : value.toTupleRef().elements()) out.push_back(toJson(item));
    else if (value.isGenericDict())
        for (const auto& item : value.toGenericDict()) out.push_back({toJson(item.key()), toJson(item.value())});
    else
        return nullptr; // None
    return out;
}

double realFrom(const json& value) {
    if (!value.is_string()) return value.get<double>();
    const std::string word = value;
    if (word != "nan" && word != "inf" && word != "-inf") throw std::invalid_argument("no number");
    return word == "nan" ? std::nan("") : word == "inf" ? HUGE_VAL : -HUGE_VAL;
}

at::Tensor tensorFrom(const json& value) {
    const auto type = static_cast<at::ScalarType>(value.at("type").get<int>());
    if (!at::isFloatingType(type) && !at::isIntegralType(type, true)) throw std::invalid_argument("no tensor");
    if (at::isFloatingType(type)) {
        std::vector<double> values;
        for (const json& one : value.at("values")) values.push_back(realFrom(one));
        return at::tensor(values, at::TensorOptions(at::kDouble)).to(type).reshape(value.at("shape").get<std::vector<std::int64_t>>());
    }
    return at::tensor(value.at("values").get<std::vector<std::int64_t>>(), at::TensorOptions(at::kLong)).to(type).reshape(value.at("shape").get<std::vector<std::int64_t>>());
}

/// The value as the attribute's type says; throws where it does not fit.
c10::IValue fromJson(const json& value, const c10::TypePtr& type) {
    switch (type->kind()) {
    case c10::TypeKind::IntType:
        if (!value.is_number_integer()) throw std::invalid_argument("no whole number");
        return value.get<std::int64_t>();
    case c10::TypeKind::FloatType:
        return realFrom(value);
    case c10::TypeKind::BoolType:
        return value.get<bool>();
    case c10::TypeKind::StringType:
        return value.get<std::string>();
    case c10::TypeKind::TensorType:
        return tensorFrom(value);
    case c10::TypeKind::OptionalType:
        return value.is_null() ? c10::IValue() : fromJson(value, type->castRaw<c10::OptionalType>()->getElementType());
    case c10::TypeKind::ListType: {
        const c10::TypePtr element = type->castRaw<c10::ListType>()->getElementType();
        c10::impl::GenericList list(element);
        for (const json& item : value) list.push_back(fromJson(item, element));
        return list;
    }
    case c10::TypeKind::DictType: {
        const auto* dict = type->castRaw<c10::DictType>();
        c10::impl::GenericDict out(dict->getKeyType(), dict->getValueType());
        for (const json& item : value) out.insert(fromJson(item.at(0), dict->getKeyType()), fromJson(item.at(1), dict->getValueType()));
        return out;
    }
    case c10::TypeKind::TupleType: {
        std::vector<c10::IValue> items;
        const auto elements = type->containedTypes();
        if (value.size() != elements.size()) throw std::invalid_argument("another length");
        for (std::size_t i = 0; i < elements.size(); ++i) items.push_back(fromJson(value.at(i), elements[i]));
        return c10::ivalue::Tuple::create(std::move(items));
    }
    default:
        if (!value.is_null()) throw std::invalid_argument("no value");
        return {};
    }
}

// ---- how much an object holds ----

constexpr std::int64_t kMaxStateBytes = 4 << 20;

std::int64_t sizeOf(const c10::IValue& value) {
    if (value.isString()) return static_cast<std::int64_t>(value.toStringRef().size());
    if (value.isTensor()) return value.toTensor().defined() ? value.toTensor().numel() * 8 : 0;
    if (value.isDoubleList() || value.isIntList()) return static_cast<std::int64_t>(value.toList().size()) * 8;
    std::int64_t sum = 8;
    if (value.isList())
        for (const c10::IValue& item : value.toListRef().vec()) sum += sizeOf(item);
    if (value.isGenericDict())
        for (const auto& item : value.toGenericDict()) sum += sizeOf(item.key()) + sizeOf(item.value());
    return sum;
}

} // namespace

const char* toString(ScriptKind kind) {
    switch (kind) {
    case ScriptKind::Callback:
        return "callback";
    case ScriptKind::Metric:
        return "metric";
    case ScriptKind::Schedule:
        return "schedule";
    case ScriptKind::Cell:
        break;
    }
    return "cell";
}

const std::vector<std::string>& callbackEvents() {
    static const std::vector<std::string> list{"on_train_begin", "on_train_epoch_begin", "on_train_step_begin", "on_train_step_end", "on_train_epoch_end", "on_train_end",
                                               "on_eval_begin",  "on_eval_epoch_begin",  "on_eval_step_begin",  "on_eval_step_end",  "on_eval_epoch_end",  "on_eval_end",
                                               "begin",          "epoch_begin",          "step_begin",          "step_end",          "epoch_end",          "end"};
    return list;
}

struct Script::Data {
    std::string name;
    ScriptSource source;
    script::Compiled compiled;
    c10::intrusive_ptr<c10::ivalue::Object> object; // of a class
    script::RunObject run;
    Print print;
    bool isSmall = true; // no attribute can grow
    bool isMetricWithStar = false;

    /// Runs a function; what it throws becomes a problem.
    ScriptResult<c10::IValue> invoke(const std::string& function, std::vector<c10::IValue> arguments) {
        const auto found = compiled.functions.find(function);
        CELLOOM_CHECK(found != compiled.functions.end());
        try {
            const Budget budget(print);
            c10::IValue out = (*found->second)(std::move(arguments));
            if (!isSmall) checkState();
            return out;
        } catch (const std::exception& exception) {
            ScriptProblem problem = problemOf(exception, source, true);
            if (problem.method.empty()) problem.method = function;
            return tl::unexpected(std::move(problem));
        }
    }

    void checkState() const {
        std::int64_t bytes = 0;
        for (const c10::IValue& slot : object->slots()) bytes += sizeOf(slot);
        if (bytes > kMaxStateBytes) throw std::runtime_error("limit: the attributes together grew larger than " + std::to_string(kMaxStateBytes >> 20) + " MiB");
    }

    ScriptResult<double> number(const c10::IValue& value, const std::string& function) const {
        if (value.isDouble()) return value.toDouble();
        if (value.isInt()) return static_cast<double>(value.toInt());
        if (value.isBool()) return value.toBool() ? 1.0 : 0.0;
        if (value.isTensor() && value.toTensor().defined() && value.toTensor().numel() == 1) return value.toTensor().item<double>(); // sync
        ScriptProblem problem{function + " gave no number.", "Return a number: return total / count.", 0, 0, 1, function, false};
        return tl::unexpected(std::move(problem));
    }
};

Script::Script(std::unique_ptr<Data> data) : m_data(std::move(data)) {}
Script::~Script() = default;

ScriptResult<std::unique_ptr<Script>> Script::compile(const ScriptSpec& spec, ScriptReport* report) {
    CELLOOM_CHECK(!spec.cell);
    auto source = readScriptSource(spec.code);
    if (!source) return tl::unexpected(source.error());
    auto compiled = script::compileSource(*source, spec, report);
    if (!compiled) return tl::unexpected(compiled.error());
    auto data = std::make_unique<Data>();
    data->name = spec.name;
    data->source = std::move(*source);
    data->compiled = std::move(*compiled);
    if (const auto& type = data->compiled.type) {
        for (std::size_t i = 0; i < type->numAttributes(); ++i) {
            const auto kind = type->getAttribute(i)->kind();
            data->isSmall = data->isSmall && (kind == c10::TypeKind::IntType || kind == c10::TypeKind::FloatType || kind == c10::TypeKind::BoolType);
        }
        if (const auto update = data->compiled.functions.find("update"); update != data->compiled.functions.end())
            data->isMetricWithStar = data->compiled.report.kind == ScriptKind::Metric && update->second->getSchema().arguments().size() == 2;
    }
    std::unique_ptr<Script> out(new Script(std::move(data)));
    if (auto status = out->construct(); !status) return tl::unexpected(status.error());
    return out;
}

const std::string& Script::name() const { return m_data->name; }
const ScriptReport& Script::report() const { return m_data->compiled.report; }
bool Script::has(const std::string& method) const { return m_data->compiled.functions.contains(method); }
void Script::setPrint(Print print) { m_data->print = std::move(print); }

ScriptResult<void> Script::construct() {
    const auto& type = m_data->compiled.type;
    if (!type) return {};
    m_data->object = c10::ivalue::Object::create(c10::StrongTypePtr(m_data->compiled.unit, type), type->numAttributes());
    std::vector<c10::IValue> arguments{m_data->object};
    arguments.insert(arguments.end(), m_data->compiled.arguments.begin(), m_data->compiled.arguments.end());
    return m_data->invoke("__init__", std::move(arguments)).map([](const auto&) {});
}

ScriptResult<void> Script::call(const std::string& method, ScriptRun& run) {
    if (!has(method)) return {};
    m_data->run.show(&run);
    auto result = m_data->invoke(method, {m_data->object, m_data->run.value()});
    m_data->run.show(nullptr);
    return result.map([](const auto&) {});
}

ScriptResult<double> Script::rate(double rate, std::int64_t step) {
    const std::string& function = report().definition;
    auto result = m_data->invoke(function, {rate, step});
    if (!result) return tl::unexpected(result.error());
    return m_data->number(*result, function);
}

ScriptResult<void> Script::clear() {
    if (!has("clear")) return construct();
    return m_data->invoke("clear", {m_data->object}).map([](const auto&) {});
}

ScriptResult<void> Script::update(const at::Tensor& predictions, const at::Tensor& labels) {
    std::vector<c10::IValue> arguments{m_data->object};
    if (m_data->isMetricWithStar) arguments.emplace_back(c10::List<at::Tensor>({predictions, labels}));
    else arguments.insert(arguments.end(), {predictions, labels});
    return m_data->invoke("update", std::move(arguments)).map([](const auto&) {});
}

ScriptResult<double> Script::eval() {
    auto result = m_data->invoke("eval", {m_data->object});
    if (!result) return tl::unexpected(result.error());
    return m_data->number(*result, "eval");
}

std::string Script::state() const {
    json out = json::object();
    if (const auto& type = m_data->compiled.type)
        for (std::size_t i = 0; i < type->numAttributes(); ++i) out[type->getAttributeName(i)] = toJson(m_data->object->getSlot(i));
    return out.dump();
}

ScriptResult<std::vector<std::string>> Script::restore(const std::string& state) {
    std::vector<std::string> lost;
    const auto& type = m_data->compiled.type;
    try {
        const json all = json::parse(state);
        for (const auto& [name, value] : all.items()) {
            const auto slot = type ? type->findAttributeSlot(name) : std::nullopt;
            if (!slot) {
                lost.push_back(name);
                continue;
            }
            try {
                m_data->object->setSlot(*slot, fromJson(value, type->getAttribute(*slot)));
            } catch (const std::exception&) {
                lost.push_back(name);
            }
        }
    } catch (const std::exception& exception) {
        return tl::unexpected(ScriptProblem{"The saved state is damaged: " + std::string(exception.what()) + ".", "Use another checkpoint.", 0, 0, 1, {}, false});
    }
    return lost;
}

} // namespace celloom::engine
