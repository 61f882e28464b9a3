// code and import-code: a model as Python in MindSpore's or PyTorch's words, and Python classes as a model.
#include "app/engine/verbs_code.h"
#include "engine/code/import.h"
#include "models/base/files.h"
#include "models/base/text.h"
#include "models/code/code.h"
#include "models/families/families.h"
#include "models/graph/expand.h"
#include "models/graph/json.h"
#include "models/recipe/recipe.h"

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

namespace celloom::app {
namespace {

using nlohmann::json;

struct CodeArguments {
    std::string model, dialect = "mindspore", out;
    std::vector<std::string> set;
};

struct ImportArguments {
    std::string file, out, className;
    std::vector<std::string> inputs, set;
};

std::string dumped(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// "hidden=64" and its like.
Result<std::map<std::string, graph::ParamValue>> valuesOf(const std::vector<std::string>& items) {
    std::map<std::string, graph::ParamValue> out;
    for (const std::string& item : items) {
        const auto equals = item.find('=');
        if (equals == std::string::npos || equals == 0)
            return fail("is " + inQuotes(item, 60) + ", expected name=value.", "For example --set hidden=64.", "--set");
        const std::string text = item.substr(equals + 1);
        engine::ScriptValue value;
        if (text == "true" || text == "false")
            value = text == "true";
        else if (!engine::readScriptValue(text, value))
            value = text;
        out[item.substr(0, equals)] = value;
    }
    return out;
}

void writeCode(const CodeArguments& arguments, Invocation& invocation) {
    const auto dialect = code::dialectNamed(arguments.dialect);
    if (!dialect) return invocation.fail(dialect.error(), protocol::Usage);
    const auto values = valuesOf(arguments.set);
    if (!values) return invocation.fail(values.error(), protocol::Usage);
    auto document = families::openModel(arguments.model);
    if (!document) return invocation.fail(document.error(), protocol::BadInput);
    if (auto status = graph::applyOverrides(*document, *values); !status) return invocation.fail(status.error(), protocol::BadInput);
    const auto written = code::write(*document, *dialect);
    if (!written) return invocation.fail(written.error(), protocol::BadInput);
    if (!arguments.out.empty())
        if (auto status = writeFileAtomically(arguments.out, written->text); !status) return invocation.fail(status.error());
    if (!invocation.isJson) {
        if (arguments.out.empty())
            std::fwrite(written->text.data(), 1, written->text.size(), stdout);
        else
            std::fprintf(stderr, "class %s written to %s\n", written->mainClass.c_str(), arguments.out.c_str());
        return;
    }
    json lines = json::array();
    for (const code::CellLines& one : written->lines)
        lines.push_back({{"first", one.first}, {"last", one.last}, {"composite", one.composite}, {"cell", one.cell}});
    json report{{"dialect", code::toString(*dialect)}, {"class", written->mainClass}, {"lines", lines}};
    if (arguments.out.empty())
        report["text"] = written->text;
    else
        report["out"] = arguments.out;
    std::printf("%s\n", dumped(report).c_str());
}

Result<std::string> readSource(const std::string& file) {
    constexpr std::size_t kMostBytes = 32 << 20;
    if (file != "-") return readFile(file, kMostBytes);
    std::string text;
    char buffer[65536];
    while (text.size() <= kMostBytes && std::cin.read(buffer, sizeof buffer).gcount() > 0)
        text.append(buffer, static_cast<std::size_t>(std::cin.gcount()));
    return text;
}

void reportImport(const ImportArguments& arguments, const Invocation& invocation, const engine::code::Imported& imported,
                  const std::string& text) {
    const graph::Expansion expansion = graph::expand(imported.document);
    if (invocation.isJson) {
        json problems = json::array();
        for (const graph::Problem& problem : expansion.problems)
            problems.push_back({{"severity", problem.severity == graph::Problem::Severity::Error ? "error" : "warning"},
                                {"path", problem.path},
                                {"message", problem.message},
                                {"hint", problem.hint}});
        json report{{"ok", true},
                    {"class", imported.className},
                    {"notes", imported.notes},
                    {"problems", problems},
                    {"parameters", expansion.model.parameterCount()}};
        if (arguments.out.empty())
            report["document"] = json::parse(text);
        else
            report["out"] = arguments.out;
        std::printf("%s\n", dumped(report).c_str());
        return;
    }
    for (const std::string& note : imported.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
    for (const graph::Problem& problem : expansion.problems)
        std::fprintf(stderr, "%s: %s%s%s%s%s\n", problem.severity == graph::Problem::Severity::Error ? "problem" : "warning",
                     problem.path.c_str(), problem.path.empty() ? "" : ": ", problem.message.c_str(), problem.hint.empty() ? "" : " ",
                     problem.hint.c_str());
    if (arguments.out.empty())
        std::fwrite(text.data(), 1, text.size(), stdout);
    else
        std::fprintf(stderr, "%s: %zu cells, %lld parameters, written to %s\n", imported.className.c_str(), expansion.model.cells.size(),
                     static_cast<long long>(expansion.model.parameterCount()), arguments.out.c_str());
}

void importSource(const ImportArguments& arguments, Invocation& invocation) {
    engine::code::ImportOptions options;
    options.name = arguments.file == "-" ? "source" : arguments.file;
    options.className = arguments.className;
    const auto values = valuesOf(arguments.set);
    if (!values) return invocation.fail(values.error(), protocol::Usage);
    options.values = *values;
    for (const std::string& item : arguments.inputs) {
        auto ports = engine::code::readInputPorts(item);
        if (!ports) return invocation.fail(ports.error(), protocol::Usage);
        options.inputs.insert(options.inputs.end(), ports->begin(), ports->end());
    }
    const auto source = readSource(arguments.file);
    if (!source) return invocation.fail(source.error(), protocol::BadInput);
    const auto imported = engine::code::tryImport(*source, options);
    if (!imported) {
        const engine::ScriptProblem& problem = imported.error();
        if (invocation.isJson)
            std::printf("%s\n", dumped({{"ok", false},
                                        {"error",
                                         {{"message", problem.message},
                                          {"hint", problem.hint},
                                          {"line", problem.line},
                                          {"column", problem.column},
                                          {"length", problem.length}}}})
                                    .c_str());
        return invocation.fail(problem.asError(options.name), protocol::BadInput);
    }
    const std::string text = graph::toJson(imported->document);
    if (!arguments.out.empty())
        if (auto status = writeFileAtomically(arguments.out, text); !status) return invocation.fail(status.error());
    reportImport(arguments, invocation, *imported, text);
}

} // namespace

void addCodeVerbs(CLI::App& app, Invocation& invocation) {
    CLI::App* write = app.add_subcommand("code", "Writes a model as runnable Python, in MindSpore's words or PyTorch's");
    const auto codeArguments = std::make_shared<CodeArguments>();
    write->add_option("MODEL", codeArguments->model, "A preset, a folder with config.json, or a .cells.json document")->required();
    write->add_option("--to", codeArguments->dialect, "mindspore or pytorch");
    write->add_option("--out", codeArguments->out, "The .py file to write; standard output otherwise");
    write->add_option("--set", codeArguments->set, "Gives a hyper-parameter another value: --set hidden=64; may be given many times")
        ->type_name("name=value")
        ->take_all();
    write->callback([codeArguments, &invocation] { writeCode(*codeArguments, invocation); });

    CLI::App* read = app.add_subcommand("import-code", "Reads nn.Cell (or nn.Module) classes into a Cell graph");
    const auto importArguments = std::make_shared<ImportArguments>();
    read->add_option("FILE", importArguments->file, "A .py file; - reads standard input")->required();
    read->add_option("--out", importArguments->out, "The .cells.json document to write; standard output otherwise");
    read->add_option("--class", importArguments->className, "The class to import; the last that no other uses otherwise");
    read->add_option("--input", importArguments->inputs,
                     "The shape of an input: --input x:[B,T,512], or --input \"ids:[B,T] int64\"; may be given many times")
        ->type_name("name:shape")
        ->take_all();
    read->add_option("--set", importArguments->set,
                     "Gives a parameter of the class's constructor a value: --set d_model=64; may be given many times")
        ->type_name("name=value")
        ->take_all();
    read->callback([importArguments, &invocation] { importSource(*importArguments, invocation); });
}

} // namespace celloom::app
