#include "engine/script/trial.h"

#include "engine/checkpoint/model_folder.h"
#include "engine/script/cell_script.h"
#include "models/base/capped.h"
#include "models/base/text.h"
#include "models/families/families.h"
#include "models/graph/declared_ports.h"
#include "models/graph/port_symbols.h"
#include "models/recipe/typed_script.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <set>
#include <sys/wait.h>

namespace celloom::engine {
using nlohmann::json;
namespace {

// ---- in the child ----

/// Runs the events of two epochs of two steps each.
ScriptResult<void> rehearseCallback(Script& script) {
    CallbackParams params;
    params.batchNum = params.epochNum = 2;
    params.totalSteps = 4;
    params.learningRate = 0.01;
    params.netOutputs = 3;
    params.gradNorm = 1;
    params.tokens = 1024;
    params.stepSeconds = 0.5;
    const auto tell = [&](std::initializer_list<const char*> names) -> ScriptResult<void> {
        for (const char* name : names) {
            ScriptRun run{params, params.learningRate};
            CELLOOM_TRY_STATUS(script.call(name, run));
        }
        return {};
    };
    CELLOOM_TRY_STATUS(tell({"on_train_begin", "begin"}));
    for (params.curEpochNum = 1; params.curEpochNum <= 2; ++params.curEpochNum) {
        CELLOOM_TRY_STATUS(tell({"on_train_epoch_begin", "epoch_begin"}));
        for (int step = 0; step < 2; ++step) {
            ++params.curStepNum;
            CELLOOM_TRY_STATUS(tell({"on_train_step_begin", "step_begin"}));
            params.netOutputs -= 0.25;
            params.hasNetOutputs = true;
            CELLOOM_TRY_STATUS(tell({"on_train_step_end", "step_end"}));
        }
        params.mode = "eval";
        CELLOOM_TRY_STATUS(tell({"on_eval_begin", "on_eval_epoch_begin", "on_eval_step_begin", "on_eval_step_end"}));
        params.evalResults = {{"eval_loss", 2.5}, {"loss", 2.5}, {"eval_perplexity", 12.2}, {"perplexity", 12.2}, {"accuracy", 0.5}};
        CELLOOM_TRY_STATUS(tell({"on_eval_epoch_end", "on_eval_end"}));
        params.mode = "train";
        CELLOOM_TRY_STATUS(tell({"on_train_epoch_end", "epoch_end"}));
    }
    return tell({"on_train_end", "end"});
}

ScriptResult<void> rehearseMetric(Script& script, const at::Tensor& predictions, const at::Tensor& labels) {
    CELLOOM_TRY_STATUS(script.clear());
    for (int batch = 0; batch < 2; ++batch) CELLOOM_TRY_STATUS(script.update(predictions, labels));
    return script.eval().map([](double) {});
}

/// As a classifier's metric, else as one of values: which of the two it is for, the source does not say.
ScriptResult<void> rehearseMetric(Script& script) {
    const at::Tensor predictions = at::tensor({0.5, -1.0, 2.0, 0.25, 0.0, 1.5, -0.5, 1.0}, at::TensorOptions(at::kDouble)).to(at::kFloat).reshape({2, 4});
    const auto asClasses = rehearseMetric(script, predictions, at::tensor(std::vector<std::int64_t>{2, 1}, at::TensorOptions(at::kLong)));
    if (asClasses || asClasses.error().isLimit) return asClasses;
    const auto asValues = rehearseMetric(script, predictions, predictions.add(0.5));
    return asValues ? asValues : asClasses;
}

ScriptResult<void> rehearse(Script& script) {
    switch (script.report().kind) {
    case ScriptKind::Callback:
        return rehearseCallback(script);
    case ScriptKind::Metric:
        return rehearseMetric(script);
    case ScriptKind::Schedule:
        for (const std::int64_t step : {1, 2, 1000, 100000}) CELLOOM_TRY_STATUS(script.rate(0.01, step));
        return {};
    case ScriptKind::Cell:
        break;
    }
    return {};
}

// ---- cells ----

constexpr std::int64_t kMostValues = 4 << 20; // of ports and weights together; larger cells are compiled alone
constexpr double kCellSeconds = 1;

/// What symbols stand for: different from each other, powers of two, all the same, all larger. A cell may suit some and not others.
std::int64_t madeUpSize(int attempt, std::size_t symbol) {
    static constexpr std::int64_t kPrimes[] = {2, 3, 5, 7, 11, 13, 17, 19};
    return attempt == 0 ? kPrimes[symbol % std::size(kPrimes)] : attempt == 1 ? std::int64_t(1) << (1 + symbol % 4) : attempt == 2 ? 4 : 32;
}
constexpr int kAttempts = 4;

using Sizes = std::map<std::string, std::int64_t>;

Sizes sizesOf(const ScriptPorts& ports, int attempt) {
    Sizes out;
    for (const graph::DeclaredPort& port : ports.inputs)
        for (const graph::Dim& dim : port.shape)
            if (!dim.symbol.empty()) out.emplace(dim.symbol, 0);
    std::size_t symbol = 0;
    for (auto& [name, size] : out) size = madeUpSize(attempt, symbol++);
    return out;
}

std::vector<std::int64_t> dimsOf(const graph::DeclaredPort& port, const Sizes& sizes) {
    std::vector<std::int64_t> out;
    for (const graph::Dim& dim : port.shape) out.push_back(multiplyCapped(dim.number, dim.symbol.empty() ? 1 : sizes.at(dim.symbol)));
    return out;
}

bool isSmall(const ScriptPorts& ports, const Sizes& sizes) {
    std::int64_t values = 0;
    for (const auto* list : {&ports.inputs, &ports.outputs, &ports.weights})
        for (const graph::DeclaredPort& port : *list) values = addCapped(values, sizeCapped(dimsOf(port, sizes)));
    return values <= kMostValues;
}

std::vector<at::Tensor> madeUp(const std::vector<graph::DeclaredPort>& ports, const Sizes& sizes, std::uint64_t seed) {
    std::vector<at::Tensor> out;
    for (const graph::DeclaredPort& port : ports) {
        const std::vector<std::int64_t> dims = dimsOf(port, sizes);
        if (port.dtype == "float") out.push_back(at::randn(dims, at::detail::createCPUGenerator(seed++)).mul(0.5).requires_grad_(true));
        else if (port.dtype == "bool") out.push_back(at::ones(dims, at::TensorOptions(at::kBool)));
        else out.push_back(at::arange(sizeCapped(dims), at::TensorOptions(at::kLong)).remainder(2).reshape(dims));
    }
    return out;
}

ScriptProblem problemOf(const Error& error, const CellScript& script) {
    return {"construct " + error.message, error.hint, 0, 0, 1, script.report().definition, false};
}

/// One pass forward and backward.
ScriptResult<void> rehearseCell(const CellScript& script, const ScriptPorts& ports, const Sizes& sizes) {
    const at::AutoGradMode record(true);
    const std::vector<at::Tensor> inputs = madeUp(ports.inputs, sizes, 1), weights = madeUp(ports.weights, sizes, 100);
    CELLOOM_TRY(results, script.construct(inputs, weights, at::kFloat, true, kCellSeconds));
    if (auto status = checkDeclared(ports.inputs, inputs, ports.outputs, results); !status) return tl::unexpected(problemOf(status.error(), script));
    at::Tensor sum;
    for (const at::Tensor& result : results)
        if (result.requires_grad()) sum = sum.defined() ? sum + result.to(at::kFloat).sum() : result.to(at::kFloat).sum();
    try {
        if (sum.defined()) sum.backward();
    } catch (const std::exception& exception) {
        return tl::unexpected(ScriptProblem{"Its gradient cannot be computed: " + std::string(exception.what()).substr(0, 200), "Use operations that have one.", 0, 0, 1, "construct", false});
    }
    return {};
}

Trial tryCellHere(const ScriptSpec& spec) {
    Trial trial;
    const auto script = CellScript::compile(spec, &trial.report);
    if (!script) {
        trial.error = script.error();
        return trial;
    }
    trial.isCompiled = true;
    trial.report = (*script)->report();
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        const Sizes sizes = sizesOf(*spec.cell, attempt);
        if (!isSmall(*spec.cell, sizes)) {
            if (attempt == 0)
                trial.report.warnings.push_back({"The cell was compiled and not run: its ports and weights have more than " + std::to_string(kMostValues) + " numbers.", "", 0, 0, 1, {}, false});
            break;
        }
        const auto status = rehearseCell(**script, *spec.cell, sizes);
        if (status) {
            trial.error.reset();
            break;
        }
        if (!trial.error) {
            trial.error = status.error();
            std::vector<std::string> said;
            for (const auto& [name, size] : sizes) said.push_back(name + " = " + std::to_string(size));
            if (!said.empty() && !trial.error->isLimit) trial.error->message += " (Tried with " + joined(said) + ".)";
        }
        if (trial.error->isLimit) break;
    }
    return trial;
}

Trial tryHere(const ScriptSpec& spec) {
    if (spec.cell) return tryCellHere(spec);
    Trial trial;
    auto script = Script::compile(spec, &trial.report);
    if (!script) {
        trial.error = script.error();
        return trial;
    }
    trial.isCompiled = true;
    trial.report = (*script)->report();
    if (auto status = rehearse(**script); !status) {
        if (status.error().isLimit) trial.error = status.error();
        else trial.report.warnings.push_back(status.error());
    }
    return trial;
}

// ---- between the two ----

json toJsonValue(const ScriptProblem& problem) {
    return {{"message", problem.message}, {"hint", problem.hint},     {"line", problem.line},      {"column", problem.column},
            {"length", problem.length},   {"method", problem.method}, {"is_limit", problem.isLimit}};
}

ScriptProblem problemFrom(const json& in) {
    return {in.at("message"), in.at("hint"), in.at("line"), in.at("column"), in.at("length"), in.at("method"), in.at("is_limit")};
}

json toJsonValue(const Trial& trial) {
    json names = json::array(), warnings = json::array();
    for (const ScriptName& name : trial.report.names) {
        json one{{"name", name.name}, {"line", name.line}, {"column", name.column}, {"value", nullptr}};
        if (name.value) std::visit([&](const auto& held) { one["value"] = held; }, *name.value);
        names.push_back(one);
    }
    for (const ScriptProblem& warning : trial.report.warnings) warnings.push_back(toJsonValue(warning));
    return {{"ok", !trial.error},
            {"compiled", trial.isCompiled},
            {"kind", toString(trial.report.kind)},
            {"definition", trial.report.definition},
            {"methods", trial.report.methods},
            {"names", names},
            {"warnings", warnings},
            {"error", trial.error ? toJsonValue(*trial.error) : json()}};
}

Trial trialFrom(const json& in) {
    Trial trial;
    const std::string kind = in.at("kind");
    trial.isCompiled = in.at("compiled");
    trial.report.kind = kind == "cell" ? ScriptKind::Cell : kind == "metric" ? ScriptKind::Metric : kind == "schedule" ? ScriptKind::Schedule : ScriptKind::Callback;
    trial.report.definition = in.at("definition");
    trial.report.methods = in.at("methods");
    for (const json& one : in.at("names")) {
        ScriptName name{one.at("name"), {}, one.at("line"), one.at("column")};
        const json& value = one.at("value");
        if (value.is_boolean()) name.value = value.get<bool>();
        else if (value.is_number_integer()) name.value = value.get<std::int64_t>();
        else if (value.is_number()) name.value = value.get<double>();
        else if (value.is_string()) name.value = value.get<std::string>();
        trial.report.names.push_back(std::move(name));
    }
    for (const json& one : in.at("warnings")) trial.report.warnings.push_back(problemFrom(one));
    if (!in.at("error").is_null()) trial.error = problemFrom(in.at("error"));
    return trial;
}

Trial refused(std::string message, std::string hint) {
    Trial trial;
    trial.error = ScriptProblem{std::move(message), std::move(hint), 0, 0, 1, {}, true};
    return trial;
}

// ---- in the parent ----

Trial readAnswer(const std::string& text, int status) {
    const json answer = json::parse(text, nullptr, false);
    if (answer.is_object()) return trialFrom(answer);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) return refused("The script takes too long to compile or to run.", "It must be ready within two seconds.");
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return refused("The script takes too long or too much memory.", "It must be ready within two seconds, in 256 MiB.");
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) return refused("The script asks for more memory than there is.", "Long texts and lists are bounded.");
    return refused("The compiler ended at this script" + (WIFSIGNALED(status) ? " (signal " + std::to_string(WTERMSIG(status)) + ")." : std::string(".")), "Make it simpler.");
}

} // namespace

Trial tryScript(const ScriptSpec& spec, const TrialLimits& limits) {
    if (auto source = readScriptSource(spec.code); !source) { // the reader is bounded itself
        Trial trial;
        trial.error = source.error();
        return trial;
    }
    const auto answer = inLimitedChild(
        [&] {
            at::set_num_threads(1); // a pool of the parent's has no threads here
            return toJsonValue(tryHere(spec)).dump(-1, ' ', false, json::error_handler_t::replace);
        },
        limits);
    return answer ? readAnswer(answer->text, answer->status) : refused("A script cannot be tried: " + answer.error().message, answer.error().hint);
}

Status tryScripts(const recipe::Recipe& recipe) {
    CELLOOM_TRY(scripts, recipe::typedScripts(recipe.list("callbacks.scripts")));
    for (const recipe::TypedScript& script : scripts) {
        const Trial trial = tryScript({script.shownName(), script.code, script.values});
        if (trial.error) return tl::unexpected(trial.error->asError("callbacks.scripts: " + script.shownName()));
    }
    // As the run opens it; what is wrong with the model is said there.
    const std::string& weights = recipe.text("model.weights");
    const auto document = families::openModel(recipe.text("model.source"));
    const auto overrides = recipe.modelOverrides();
    if (document && overrides) CELLOOM_TRY_STATUS(checkCells(*document, *overrides));
    if (!weights.empty())
        if (const auto folder = openModelFolder(weights)) CELLOOM_TRY_STATUS(checkCells(folder->document));
    return {};
}

constexpr std::size_t kMaxCells = 64;

namespace {

/// The declared ports with the shapes that are really wired: what the graph knows as a number is that number, and only its free symbols are made up.
ScriptPorts wiredPorts(const graph::ExpandedModel& model, const graph::CellInstance& cell) {
    ScriptPorts out{cell.ports("inputs"), cell.ports("outputs"), cell.ports("weights")};
    for (std::size_t i = 0; i < out.inputs.size(); ++i) out.inputs[i].shape = model.values[static_cast<std::size_t>(cell.inputs[i])].shape;
    for (std::size_t i = 0; i < out.outputs.size(); ++i) out.outputs[i].shape = model.values[static_cast<std::size_t>(cell.outputs[i])].shape;
    return out;
}

} // namespace

std::vector<CellTrial> tryCells(const graph::ExpandedModel& model, const TrialLimits& limits) {
    std::vector<CellTrial> out;
    std::set<std::string> seen;
    for (const graph::CellInstance& cell : model.cells) {
        if (cell.type != "Script") continue;
        const ScriptPorts ports = wiredPorts(model, cell);
        std::string key = cell.text("code");
        for (const auto* list : {&ports.inputs, &ports.outputs, &ports.weights}) key += '\0' + graph::toText(*list);
        if (!seen.insert(std::move(key)).second) continue;
        if (seen.size() > kMaxCells) {
            out.push_back({cell.path, refused("The model has more than " + std::to_string(kMaxCells) + " different Script cells.", "Use one code in several cells.")});
            break;
        }
        out.push_back({cell.path, tryScript({cell.path, cell.text("code"), {}, ports}, limits)});
    }
    return out;
}

Status checkCells(const graph::ExpandedModel& model) {
    for (const auto& [path, trial] : tryCells(model))
        if (trial.error && (!trial.isCompiled || trial.error->isLimit)) return tl::unexpected(trial.error->asError(path + ", code"));
    return {};
}

Status checkCells(const graph::Document& document, const std::map<std::string, graph::ParamValue>& overrides) {
    const auto holdsScripts = [](const graph::Graph& graph) {
        return std::any_of(graph.cells.begin(), graph.cells.end(), [](const graph::Cell& cell) { return cell.type == "Script"; });
    };
    const auto& composites = document.composites;
    if (!holdsScripts(document.main) && std::none_of(composites.begin(), composites.end(), [&](const auto& item) { return holdsScripts(item.second); })) return {};
    graph::Document given = document;
    for (const auto& [name, value] : overrides)
        if (auto status = graph::applyOverrides(given, {{name, value}}); !status) return {};
    return checkCells(graph::expand(given).model);
}

std::string toJson(const std::vector<CellTrial>& cells) {
    json list = json::array();
    bool isOk = true;
    for (const auto& [path, trial] : cells) {
        json one = toJsonValue(trial);
        one["cell"] = path;
        list.push_back(std::move(one));
        isOk = isOk && !trial.error;
    }
    return json{{"ok", isOk}, {"cells", list}}.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string toJson(const Trial& trial) { return toJsonValue(trial).dump(-1, ' ', false, json::error_handler_t::replace); }

} // namespace celloom::engine
