// check-script: a typed callback or metric read, compiled and tried in a limited child process, before any run relies on it.
#include "app/engine/verbs.h"
#include "engine/script/trial.h"
#include "models/base/files.h"
#include "models/recipe/typed_script.h"

#include <cstdio>
#include <iostream>
#include <iterator>

namespace celloom::app {
namespace {

struct CheckArguments {
    std::string file;
    std::vector<std::string> values;
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

void say(const recipe::TypedScript& script, const engine::Trial& trial) {
    const auto line = [](const Error& error, const char* what) {
        std::fprintf(stderr, "%s%s%s%s%s%s\n", error.place.c_str(), error.place.empty() ? "" : ": ", what, error.message.c_str(), error.hint.empty() ? "" : " ", error.hint.c_str());
    };
    for (const engine::ScriptProblem& warning : trial.report.warnings) line(warning.asError(script.shownName()), "warning: ");
    if (trial.error) return line(trial.error->asError(script.shownName()), "error: ");
    std::printf("%s %s", engine::toString(trial.report.kind), trial.report.definition.c_str());
    for (const engine::ScriptName& name : trial.report.names)
        if (name.value) std::printf(" %s=%s", name.name.c_str(), engine::scriptValueText(*name.value).c_str());
    std::printf("\n");
}

void check(const CheckArguments& arguments, Invocation& invocation) {
    auto script = readScript(arguments.file);
    if (!script) return invocation.fail(script.error(), protocol::BadInput);
    if (auto status = addValues(*script, arguments.values); !status) return invocation.fail(status.error(), protocol::Usage);
    const engine::Trial trial = engine::tryScript({script->shownName(), script->code, script->values});
    if (invocation.isJson) std::printf("%s\n", engine::toJson(trial).c_str());
    else say(*script, trial);
    if (trial.error) invocation.exitCode = protocol::BadInput;
}

} // namespace

void addScriptVerbs(CLI::App& app, Invocation& invocation) {
    CLI::App* verb = app.add_subcommand("check-script", "Checks a callback or metric that you typed: compiles it and tries it with made-up numbers");
    const auto arguments = std::make_shared<CheckArguments>();
    verb->add_option("FILE", arguments->file, "A .py file, or a script in the recipe's JSON form; - reads standard input")->required();
    verb->add_option("--value", arguments->values, "Gives a free name of the script a value: --value initial_lr=0.1; may be given many times")->type_name("name=value")->take_all();
    verb->callback([arguments, &invocation] { check(*arguments, invocation); });
}

} // namespace celloom::app
