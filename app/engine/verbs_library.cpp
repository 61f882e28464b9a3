// Verbs of documents: library (standard composites and the workspace's own, used across documents) and new (a document from a template).
#include "app/engine/verbs.h"
#include "models/base/files.h"
#include "models/base/text.h"
#include "models/families/families.h"
#include "models/graph/json.h"
#include "models/graph/problems.h"
#include "models/library/standard.h"
#include "models/library/update.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace celloom::app {
namespace {

using graph::Document;
using library::Entry;
using nlohmann::ordered_json;

struct LibraryArguments {
    std::string model, name, out, newName;
    std::vector<std::string> composites;
    std::int64_t version = 0;
    bool links = false, replacesEdited = false;
};

void print(const ordered_json& value) {
    std::printf("%s\n", value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}
void say(const std::string& line) {
    std::printf("%s\n", line.c_str());
}
/// With spaces behind it, to `width` characters of UTF-8.
std::string padded(const std::string& text, std::size_t width) {
    const auto characters = static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
    return characters < width ? text + std::string(width - characters, ' ') : text;
}

// ---- documents ----

/// MODEL for a verb that changes it: a .cells.json file, where there is no other file to write.
Result<Document> openDocument(const LibraryArguments& arguments, bool isWritten) {
    if (isWritten && arguments.out.empty() && !arguments.model.ends_with(".json"))
        return fail("is no .cells.json file that could be written.", "Say with --out where the document goes.", arguments.model);
    return families::openModel(arguments.model);
}

Status writeDocument(const LibraryArguments& arguments, const Document& document) {
    const std::string& path = arguments.out.empty() ? arguments.model : arguments.out;
    auto status = writeFileAtomically(path, graph::toJson(document));
    if (status) std::fprintf(stderr, "%s written\n", path.c_str());
    return status;
}

// ---- entries as JSON and text ----

ordered_json portsJson(const std::vector<graph::Port>& ports) {
    ordered_json out = ordered_json::array();
    for (const graph::Port& port : ports) out.push_back({{"name", port.name}, {"shape", port.shape}, {"dtype", port.dtype}});
    return out;
}

ordered_json brief(const Entry& entry) {
    return {{"library", entry.library}, {"name", entry.name}, {"version", entry.version}, {"category", entry.category}, {"summary", entry.summary()}, {"summary_zh", entry.summaryZh}};
}

ordered_json problemsJson(const std::vector<graph::Problem>& problems) {
    ordered_json out = ordered_json::array();
    for (const graph::Problem& problem : problems)
        out.push_back({{"place", problem.path},
                       {"message", problem.message},
                       {"hint", problem.hint},
                       {"parameter", problem.parameter},
                       {"severity", problem.severity == graph::Problem::Severity::Error ? "error" : "warning"}});
    return out;
}

std::string textOf(const graph::Problem& problem) {
    return (problem.path.empty() ? "" : problem.path + ": ") + problem.message + (problem.hint.empty() ? "" : " " + problem.hint);
}

std::string portText(const graph::Port& port) {
    return "[" + joined(port.shape) + "]" + (port.dtype == "float" ? "" : " " + port.dtype);
}

ordered_json originJson(const graph::Origin& origin) {
    return {{"library", origin.library}, {"name", origin.name}, {"version", origin.version}};
}

void warnOf(const std::vector<library::DamagedEntry>& damaged) {
    for (const library::DamagedEntry& entry : damaged)
        std::fprintf(stderr, "%s cannot be used: %s\n", entry.file.string().c_str(), entry.error.text().c_str());
}

/// NAME in the workspace, then in the standard library.
Result<Entry> findEntry(const LibraryArguments& arguments, const Invocation& invocation) {
    const library::WorkspaceLibrary own(invocation.workspace);
    if (const Entry* entry = library::findStandard(arguments.name)) {
        if (arguments.version == 0 || arguments.version == entry->version) return *entry;
        return fail("The standard library has version " + std::to_string(entry->version) + " of " + entry->name + " alone.", {}, "--version");
    }
    auto entry = own.load(arguments.name, arguments.version);
    if (entry) return entry;
    std::error_code code;
    std::vector<std::string> known;
    const auto listing = own.list();
    for (const auto* entries : {&library::standard(), &listing.entries})
        for (const Entry& other : *entries) known.push_back(other.name);
    if (std::find(known.begin(), known.end(), arguments.name) != known.end() || std::filesystem::exists(own.folder() / (arguments.name + ".cells.json"), code))
        return entry; // it is there: what load() said is the matter
    return fail("No library has " + inQuotes(arguments.name) + ".", graph::didYouMean(arguments.name, known, "Entries"), "NAME");
}

// ---- library list, show ----

void list(const Invocation& invocation) {
    const auto own = library::WorkspaceLibrary(invocation.workspace).list();
    warnOf(own.damaged);
    if (invocation.isJson) {
        ordered_json entries = ordered_json::array(), damaged = ordered_json::array();
        for (const auto* from : {&library::standard(), &own.entries})
            for (const Entry& entry : *from) entries.push_back(brief(entry));
        for (const library::DamagedEntry& entry : own.damaged) damaged.push_back({{"file", entry.file.string()}, {"message", entry.error.message}, {"hint", entry.error.hint}});
        return print({{"entries", entries}, {"damaged", damaged}});
    }
    std::size_t widest = 0;
    for (const auto* from : {&library::standard(), &own.entries})
        for (const Entry& entry : *from) widest = std::max(widest, entry.name.size());
    std::string category;
    for (const auto* from : {&library::standard(), &own.entries})
        for (const Entry& entry : *from) {
            if (entry.category != category) say((category.empty() ? "" : "\n") + entry.category);
            category = entry.category;
            say("  " + padded(entry.name, widest) + "  " + padded(std::to_string(entry.version), 2) + "  " + entry.summary());
        }
}

void show(const LibraryArguments& arguments, Invocation& invocation) {
    const auto entry = findEntry(arguments, invocation);
    if (!entry) return invocation.fail(entry.error(), protocol::BadInput);
    const graph::Graph& main = entry->document.main;
    std::vector<std::int64_t> versions{entry->version};
    if (entry->library == library::kWorkspace) versions = library::WorkspaceLibrary(invocation.workspace).versions(entry->name);
    const auto expansion = graph::expand(entry->document);
    if (invocation.isJson) {
        ordered_json out = brief(*entry);
        out["versions"] = versions;
        out["hyper"] = ordered_json::array();
        for (const graph::HyperParameter& hyper : main.hyper) {
            const auto zh = entry->helpZh.find(hyper.name);
            out["hyper"].push_back({{"name", hyper.name}, {"value", std::visit([](const auto& held) { return ordered_json(held); }, hyper.value)}, {"help", hyper.help}, {"help_zh", zh == entry->helpZh.end() ? "" : zh->second}});
        }
        out["inputs"] = portsJson(main.inputs);
        out["outputs"] = portsJson(main.outputs);
        out["uses"] = library::neededBy(entry->document, main);
        if (expansion.ok()) out["parameters"] = expansion.model.parameterCount();
        out["problems"] = problemsJson(expansion.problems);
        out["document"] = ordered_json::parse(graph::toJson(entry->document));
        return print(out);
    }
    say(entry->name + ", version " + std::to_string(entry->version) + " (" + entry->library + ", " + entry->category + ")");
    if (!entry->summary().empty()) say(entry->summary());
    for (const graph::Port& port : main.inputs) say("  in   " + padded(port.name, 16) + " " + portText(port));
    for (const graph::Port& port : main.outputs) say("  out  " + padded(port.name, 16) + " " + portText(port));
    for (const graph::HyperParameter& hyper : main.hyper)
        say("  " + padded(hyper.name, 21) + " " + padded(std::visit([](const auto& held) { return ordered_json(held).dump(); }, hyper.value), 18) + " " + hyper.help);
    if (const auto uses = library::neededBy(entry->document, main); !uses.empty()) say("uses " + joined(uses));
    if (expansion.ok()) say(std::to_string(expansion.model.parameterCount()) + " parameters with these values");
    for (const graph::Problem& problem : expansion.problems) say("problem: " + textOf(problem));
    if (versions.size() > 1) say("versions: " + std::to_string(versions.front()) + " to " + std::to_string(versions.back()));
}

// ---- library save, add, check, update, remove ----

void save(const LibraryArguments& arguments, Invocation& invocation) {
    auto document = openDocument(arguments, arguments.links);
    if (!document) return invocation.fail(document.error(), protocol::BadInput);
    const std::string composite = arguments.composites.at(0);
    const auto saved = library::WorkspaceLibrary(invocation.workspace).save(*document, composite, arguments.newName);
    if (!saved) return invocation.fail(saved.error(), protocol::BadInput);
    if (arguments.links) {
        document->composites.at(composite).origin = saved->origin;
        if (auto status = writeDocument(arguments, *document); !status) return invocation.fail(status.error());
    }
    if (invocation.isJson) return print({{"origin", originJson(saved->origin)}, {"is_new_version", saved->isNewVersion}, {"problems", problemsJson(saved->problems)}});
    say(saved->origin.name + (saved->isNewVersion ? " saved as version " : " is as version ") + std::to_string(saved->origin.version));
    for (const graph::Problem& problem : saved->problems) std::fprintf(stderr, "by itself: %s\n", textOf(problem).c_str());
}

void add(const LibraryArguments& arguments, Invocation& invocation) {
    const auto entry = findEntry(arguments, invocation);
    if (!entry) return invocation.fail(entry.error(), protocol::BadInput);
    auto document = openDocument(arguments, true);
    if (!document) return invocation.fail(document.error(), protocol::BadInput);
    const auto copied = library::copyInto(*document, *entry);
    if (!copied) return invocation.fail(copied.error(), protocol::BadInput);
    if (auto status = writeDocument(arguments, *document); !status) return invocation.fail(status.error());
    if (invocation.isJson) return print({{"type", copied->type}, {"added", copied->added}});
    say(copied->added.empty() ? "the document has it already, as the type " + copied->type : "use it as the type " + copied->type + "; added " + joined(copied->added));
}

void check(const LibraryArguments& arguments, Invocation& invocation) {
    const auto document = openDocument(arguments, false);
    if (!document) return invocation.fail(document.error(), protocol::BadInput);
    const library::WorkspaceLibrary own(invocation.workspace);
    static const std::map<library::CopyState, const char*> words{{library::CopyState::Same, "same"},
                                                                 {library::CopyState::Newer, "newer"},
                                                                 {library::CopyState::Edited, "edited"},
                                                                 {library::CopyState::EditedAndNewer, "edited_and_newer"},
                                                                 {library::CopyState::Gone, "gone"}};
    ordered_json rows = ordered_json::array();
    const auto statuses = library::compare(*document, &own);
    for (const library::CopyStatus& status : statuses) {
        rows.push_back({{"composite", status.composite}, {"origin", originJson(status.origin)}, {"state", words.at(status.state)}, {"newest", status.newest}, {"is_inside_others", status.isInsideOthers}});
        if (!invocation.isJson)
            say(padded(status.composite, 28) + " " + padded(status.origin.library + " " + status.origin.name + " " + std::to_string(status.origin.version), 36) + " " +
                library::toText(status.state) + (status.state == library::CopyState::Newer || status.state == library::CopyState::EditedAndNewer ? " (" + std::to_string(status.newest) + ")" : ""));
    }
    if (invocation.isJson) print({{"composites", rows}});
    else if (statuses.empty()) say("no composite of this document comes from a library");
}

ordered_json itemsJson(const std::vector<library::UpdateReport::Item>& items) {
    ordered_json out = ordered_json::array();
    for (const auto& item : items) {
        ordered_json changes = ordered_json::array();
        for (const library::Change& change : item.changes) changes.push_back(library::toText(change));
        out.push_back({{"composite", item.composite}, {"before", originJson(item.before)}, {"after", originJson(item.after)}, {"changes", changes}, {"problems", problemsJson(item.problems)}});
    }
    return out;
}

void update(const LibraryArguments& arguments, Invocation& invocation) {
    auto document = openDocument(arguments, true);
    if (!document) return invocation.fail(document.error(), protocol::BadInput);
    const library::WorkspaceLibrary own(invocation.workspace);
    const auto report = library::update(*document, &own, {arguments.composites, arguments.replacesEdited});
    if (!report) return invocation.fail(report.error(), protocol::BadInput);
    if (!report->updated.empty() || !arguments.out.empty())
        if (auto status = writeDocument(arguments, *document); !status) return invocation.fail(status.error());
    if (!report->refused.empty()) invocation.exitCode = protocol::BadInput;
    if (invocation.isJson) return print({{"updated", itemsJson(report->updated)}, {"refused", itemsJson(report->refused)}});
    const auto head = [](const library::UpdateReport::Item& item) { return item.composite + ": version " + std::to_string(item.before.version) + " to " + std::to_string(item.after.version); };
    for (const auto& item : report->updated) {
        say(head(item));
        for (const library::Change& change : item.changes) say("  " + library::toText(change));
    }
    for (const auto& item : report->refused) {
        std::fprintf(stderr, "%s: refused, it would break what uses it\n", head(item).c_str());
        for (const graph::Problem& problem : item.problems) std::fprintf(stderr, "  %s\n", textOf(problem).c_str());
    }
    if (report->updated.empty() && report->refused.empty()) say("nothing to update");
}

void remove(const LibraryArguments& arguments, Invocation& invocation) {
    if (auto status = library::WorkspaceLibrary(invocation.workspace).remove(arguments.name); !status) return invocation.fail(status.error(), protocol::BadInput);
    if (invocation.isJson) print({{"removed", arguments.name}});
    else say(arguments.name + " removed; documents that have a copy keep it");
}

void addLibrary(CLI::App& app, Invocation& invocation) {
    CLI::App* library = app.add_subcommand("library", "Composites used across documents: the standard ones, and the workspace's own with their versions");
    library->require_subcommand(1);
    library->fallthrough();
    const auto arguments = std::make_shared<LibraryArguments>();
    const auto verb = [&](const char* name, const char* help, auto action) {
        CLI::App* out = library->add_subcommand(name, help);
        out->fallthrough();
        out->callback([arguments, &invocation, action] { action(*arguments, invocation); });
        return out;
    };
    const auto takesModel = [&](CLI::App* to) { to->add_option("MODEL", arguments->model, "A .cells.json file, a model's folder, a preset or a template")->required(); };
    const auto takesOut = [&](CLI::App* to) { to->add_option("--out", arguments->out, "Write the document there; without it, into MODEL"); };
    verb("list", "All entries, by category", [](const LibraryArguments&, Invocation& at) { list(at); });
    CLI::App* shown = verb("show", "An entry's ports, hyper-parameters and versions", show);
    shown->add_option("NAME", arguments->name, "An entry")->required();
    shown->add_option("--version", arguments->version, "An older version of the workspace's")->check(CLI::Range(std::int64_t(1), std::int64_t(1000000000)));
    CLI::App* saved = verb("save", "Saves a composite of MODEL with all it needs; what changed since becomes the next version", save);
    takesModel(saved);
    saved->add_option("--composite", arguments->composites, "The composite's name in MODEL")->required()->expected(1);
    saved->add_option("--as", arguments->newName, "Its name in the library; without it, the same");
    saved->add_flag("--link", arguments->links, "Also note in MODEL that its composite is this entry, so that check and update know");
    takesOut(saved);
    CLI::App* added = verb("add", "Copies an entry with all it needs into MODEL's composites", add);
    takesModel(added);
    added->add_option("NAME", arguments->name, "An entry")->required();
    takesOut(added);
    CLI::App* updated = verb("update", "Brings MODEL's copies to their library's newest version, where nothing that uses them would break", update);
    takesModel(updated);
    updated->add_option("--composite", arguments->composites, "Only this one; may be repeated")->allow_extra_args(false);
    updated->add_flag("--replace-edited", arguments->replacesEdited, "Also those that were edited in MODEL: the edits are lost");
    takesOut(updated);
    takesModel(verb("check", "How MODEL's composites stand to the libraries that they came from", check));
    verb("remove", "Deletes an entry of the workspace's library with all its versions", remove)->add_option("NAME", arguments->name, "An entry")->required();
}

// ---- new ----

struct NewArguments {
    std::string name, out;
    std::vector<std::string> values;
};

void listTemplates(const Invocation& invocation) {
    if (invocation.isJson) {
        ordered_json out = ordered_json::array();
        for (const library::Template& made : library::templates())
            out.push_back({{"name", made.name}, {"title", made.title}, {"title_zh", made.titleZh}, {"summary", made.summary()}, {"summary_zh", made.summaryZh}});
        for (const families::Preset& preset : families::presets())
            out.push_back({{"name", preset.name}, {"title", preset.name}, {"title_zh", preset.name}, {"summary", preset.summary}, {"summary_zh", preset.summaryZh}});
        return print({{"templates", out}});
    }
    for (const library::Template& made : library::templates()) say(padded(made.name, 22) + " " + made.summary());
    for (const families::Preset& preset : families::presets()) say(padded(preset.name, 22) + " " + preset.summary);
}

/// "name=value": a number, true or false, or an expression.
Result<std::map<std::string, graph::ParamValue>> readValues(const std::vector<std::string>& items) {
    std::map<std::string, graph::ParamValue> out;
    for (const std::string& item : items) {
        const auto equals = item.find('=');
        if (equals == std::string::npos || equals == 0) return fail("is " + inQuotes(item) + ", expected name=value.", "For example --set classes=10.", "--set");
        const std::string text = item.substr(equals + 1);
        graph::ParamValue value = text;
        std::int64_t whole = 0;
        double real = 0;
        if (readNumber(text, whole)) value = whole;
        else if (readNumber(text, real)) value = real;
        else if (text == "true" || text == "false") value = text == "true";
        out[item.substr(0, equals)] = std::move(value);
    }
    return out;
}

void make(const NewArguments& arguments, Invocation& invocation) {
    if (arguments.name.empty()) return listTemplates(invocation);
    if (arguments.out.empty()) return invocation.fail({"needs --out FILE.", "For example --out " + arguments.name + ".cells.json.", "new"}, protocol::Usage);
    const library::Template* made = library::findTemplate(arguments.name);
    auto document = made ? Result<Document>(made->document) : families::buildPreset(arguments.name);
    if (!document) {
        std::vector<std::string> known = graph::namesOf(library::templates());
        for (const families::Preset& preset : families::presets()) known.push_back(preset.name);
        return invocation.fail({"There is no template " + inQuotes(arguments.name) + ".", graph::didYouMean(arguments.name, known, "Templates"), "TEMPLATE"}, protocol::BadInput);
    }
    const auto values = readValues(arguments.values);
    if (!values) return invocation.fail(values.error(), protocol::Usage);
    if (auto status = graph::applyOverrides(*document, *values); !status) return invocation.fail(status.error(), protocol::BadInput);
    const auto expansion = graph::expand(*document);
    if (!expansion.ok()) return invocation.fail(expansion.firstError(), protocol::BadInput);
    if (auto status = writeFileAtomically(arguments.out, graph::toJson(*document)); !status) return invocation.fail(status.error());
    if (invocation.isJson) print({{"out", arguments.out}, {"parameters", expansion.model.parameterCount()}});
    else say(arguments.out + " written: " + std::to_string(expansion.model.parameterCount()) + " parameters");
}

void addNew(CLI::App& app, Invocation& invocation) {
    CLI::App* verb = app.add_subcommand("new", "Writes a document from a template; without TEMPLATE, lists them");
    const auto arguments = std::make_shared<NewArguments>();
    verb->add_option("TEMPLATE", arguments->name, "A template or a preset");
    verb->add_option("--out", arguments->out, "The .cells.json file to write");
    verb->add_option("--set", arguments->values, "A hyper-parameter's value: --set classes=10; may be repeated")->type_name("name=value")->allow_extra_args(false);
    verb->callback([arguments, &invocation] { make(*arguments, invocation); });
}

} // namespace

void addLibraryVerbs(CLI::App& app, Invocation& invocation) {
    addLibrary(app, invocation);
    addNew(app, invocation);
}

} // namespace celloom::app
