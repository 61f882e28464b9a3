// check-script: a typed callback, metric or cell read, compiled and tried in a limited child process, before any run relies on it.
#include "app/engine/model_options.h"
#include "app/engine/verbs.h"
#include "engine/script/trial.h"
#include "models/base/files.h"
#include "models/graph/declared_ports.h"
#include "models/recipe/typed_script.h"

#include <cstdio>
#include <iostream>
#include <iterator>

namespace celloom::app {
namespace {

struct CheckArguments {
    std::string file;
    std::vector<std::string> values;
    bool isCell = false;
    std::string inputs, outputs, weights; // of a cell
};

constexpr std::size_t kMaxInput = 1 << 20;

/// A .py file, a script as the recipe's JSON has it, or "-": either from standard input.
Result<recipe::TypedScript> readScript(const std::string& file) {
    std::string text;
    if (file == "-") {
        char buffer[65536];
        while (text.size() <= kMaxInput && std::cin.read(buffer, sizeof buffer).gcount() > 0) text.append(buffer, static_cast<std::size_t>(std::cin.gcount()));
    } else {
        CELLOOM_TRY(content, readFile(file, kMaxInput));
        text = std::move(content);
    }
    if (text.starts_with('{')) return recipe::typedScriptFromText(text);
    recipe::TypedScript script;
    script.path = file == "-" ? std::string() : file;
    script.name = file == "-" ? "script" : file;
    script.code = std::move(text);
    return script;
}

Status addValues(recipe::TypedScript& script, const std::vector<std::string>& items) {
    for (const std::string& item : items) {
        const auto equals = item.find('=');
        if (equals == std::string::npos || equals == 0) return fail("is " + item + ", expected name=value.", "For example --value initial_lr=0.1.", "--value");
        engine::ScriptValue value;
        const std::string text = item.substr(equals + 1);
        if (text == "true" || text == "false") value = text == "true";
        else if (!engine::readScriptValue(text, value)) value = text;
        script.values[item.substr(0, equals)] = value;
    }
    return {};
}

void say(const std::string& place, const engine::Trial& trial) {
    const auto line = [](const Error& error, const char* what) {
        std::fprintf(stderr, "%s%s%s%s%s%s\n", error.place.c_str(), error.place.empty() ? "" : ": ", what, error.message.c_str(), error.hint.empty() ? "" : " ", error.hint.c_str());
    };
    for (const engine::ScriptProblem& warning : trial.report.warnings) line(warning.asError(place), "warning: ");
    if (trial.error) return line(trial.error->asError(place), "error: ");
    std::printf("%s %s", engine::toString(trial.report.kind), trial.report.definition.c_str());
    for (const engine::ScriptName& name : trial.report.names)
        if (name.value) std::printf(" %s=%s", name.name.c_str(), engine::scriptValueText(*name.value).c_str());
    std::printf("\n");
}

// ---- cells ----

Result<engine::ScriptPorts> portsOf(const CheckArguments& arguments) {
    const auto read = [](const std::string& text, const char* option) -> Result<std::vector<graph::DeclaredPort>> {
        auto ports = graph::readDeclaredPorts(text, {});
        if (!ports) return fail(ports.error().message, ports.error().hint, option);
        return ports;
    };
    engine::ScriptPorts out;
    CELLOOM_TRY(inputs, read(arguments.inputs, "--inputs"));
    CELLOOM_TRY(outputs, read(arguments.outputs, "--outputs"));
    CELLOOM_TRY(weights, read(arguments.weights, "--weights"));
    if (outputs.empty()) return fail("is missing: a cell gives something.", "For example --outputs \"out: [B, T, 512]\".", "--outputs");
    return engine::ScriptPorts{std::move(inputs), std::move(outputs), std::move(weights)};
}

/// A graph with Script cells: each code once.
void checkModel(const std::string& model, Invocation& invocation) {
    const auto folder = openModel(model, invocation);
    if (!folder) return invocation.fail(folder.error(), protocol::BadInput);
    const graph::Expansion expansion = graph::expand(folder->document);
    if (!expansion.ok()) return invocation.fail(expansion.firstError(), protocol::BadInput);
    const auto cells = engine::tryCells(expansion.model);
    if (invocation.isJson) std::printf("%s\n", engine::toJson(cells).c_str());
    else if (cells.empty()) std::printf("no Script cells\n");
    for (const engine::CellTrial& cell : cells) {
        if (!invocation.isJson && !cell.trial.error) std::printf("%s: ", cell.path.c_str());
        if (!invocation.isJson) say(cell.path + ", code", cell.trial);
        if (cell.trial.error) invocation.exitCode = protocol::BadInput;
    }
}

bool isModel(const std::string& file) {
    std::error_code code;
    return file.ends_with(".cells.json") || std::filesystem::is_directory(file, code);
}

void check(const CheckArguments& arguments, Invocation& invocation) {
    if (isModel(arguments.file)) return checkModel(arguments.file, invocation);
    auto script = readScript(arguments.file);
    if (!script) return invocation.fail(script.error(), protocol::BadInput);
    if (auto status = addValues(*script, arguments.values); !status) return invocation.fail(status.error(), protocol::Usage);
    engine::ScriptSpec spec{script->shownName(), script->code, script->values};
    if (arguments.isCell) {
        auto ports = portsOf(arguments);
        if (!ports) return invocation.fail(ports.error(), protocol::Usage);
        spec.cell = std::move(*ports);
    }
    const engine::Trial trial = engine::tryScript(spec);
    if (invocation.isJson) std::printf("%s\n", engine::toJson(trial).c_str());
    else say(script->shownName(), trial);
    if (trial.error) invocation.exitCode = protocol::BadInput;
}

} // namespace

void addScriptVerbs(CLI::App& app, Invocation& invocation) {
    CLI::App* verb = app.add_subcommand("check-script", "Checks a callback, metric or cell that you typed: compiles it and tries it with made-up numbers");
    const auto arguments = std::make_shared<CheckArguments>();
    verb->add_option("FILE", arguments->file, "A .py file, a script in the recipe's JSON form, or a .cells.json document or model folder, whose Script cells are all tried; - reads standard input")->required();
    CLI::Option* cell = verb->add_flag("--cell", arguments->isCell, "The file holds a cell's construct");
    verb->add_option("--inputs", arguments->inputs, "What the cell takes: --inputs \"x: [B, T, 8]; mask: [B, T] bool\"")->needs(cell);
    verb->add_option("--outputs", arguments->outputs, "What it gives")->needs(cell);
    verb->add_option("--weights", arguments->weights, "What it learns: --weights \"kernel: [8, 8]\"")->needs(cell);
    verb->add_option("--value", arguments->values, "Gives a free name of the script a value: --value initial_lr=0.1; may be given many times")->type_name("name=value")->take_all();
    verb->callback([arguments, &invocation] { check(*arguments, invocation); });
}

} // namespace celloom::app
