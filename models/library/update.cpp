#include "models/library/update.h"

#include "models/base/text.h"
#include "models/graph/edits.h"
#include "models/graph/expression.h"
#include "models/library/standard.h"

#include <algorithm>
#include <set>

namespace celloom::library {
namespace {

using graph::Document;
using graph::Graph;
using graph::Origin;
using graph::Problem;

Result<Entry> newestOf(const Origin& origin, const WorkspaceLibrary* workspace) {
    if (origin.library == kStandard)
        if (const Entry* entry = findStandard(origin.name)) return *entry;
    if (origin.library == kWorkspace && workspace) return workspace->load(origin.name);
    return fail("No library has " + inQuotes(origin.name) + ".", {}, origin.library);
}

/// Of the entry as it was at that version; empty where that is not known any more.
std::string digestAt(const Origin& origin, const Entry& newest, const WorkspaceLibrary* workspace) {
    if (origin.version == newest.version) return digestOf(newest.document).value_or("");
    if (origin.library == kStandard) {
        const auto index = static_cast<std::size_t>(origin.version - 1);
        return index < newest.digests.size() ? newest.digests[index] : "";
    }
    const auto old = workspace->load(origin.name, origin.version);
    return old ? digestOf(old->document).value_or("") : "";
}

CopyStatus statusOf(const std::string& name, const Origin& origin, const std::string& digest, const WorkspaceLibrary* workspace) {
    CopyStatus out{name, origin, CopyState::Gone};
    const auto newest = newestOf(origin, workspace);
    if (!newest) return out;
    out.newest = newest->version;
    if (digest == digestOf(newest->document).value_or("?")) {
        out.state = CopyState::Same;
        return out;
    }
    const bool isNewer = newest->version > origin.version, isEdited = digest != digestAt(origin, *newest, workspace);
    out.state = isEdited ? (isNewer ? CopyState::EditedAndNewer : CopyState::Edited) : CopyState::Newer;
    return out;
}

bool isUntouched(const CopyStatus& status) {
    return status.state == CopyState::Same || status.state == CopyState::Newer;
}

/// The graphs whose cells the user answers for: the main graph, and composites that are no unchanged copies.
std::vector<std::string> ownGraphs(const Document& document, const std::set<std::string>& untouched) {
    std::vector<std::string> out{""};
    for (const auto& [name, graph] : document.composites)
        if (!untouched.contains(name)) out.push_back(name);
    return out;
}

Graph& graphNamed(Document& document, const std::string& name) {
    return name.empty() ? document.main : document.composites.at(name);
}

std::map<std::string, std::set<std::string>> usersOf(const Document& document) {
    std::map<std::string, std::set<std::string>> out; // type, graphs that have cells of it
    for (const graph::Cell& cell : document.main.cells) out[cell.type].insert("");
    for (const auto& [name, graph] : document.composites)
        for (const graph::Cell& cell : graph.cells) out[cell.type].insert(name);
    return out;
}

std::string valueText(const graph::ParamValue& value) {
    return std::visit([](const auto& held) { return graph::toString(graph::ResolvedValue(held)); }, value);
}
std::string portText(const graph::Port& port) {
    return "[" + joined(port.shape) + "]" + (port.dtype == "float" ? "" : " " + port.dtype);
}

template <class Item> const Item* named(const std::vector<Item>& items, const std::string& name) {
    const auto found = std::find_if(items.begin(), items.end(), [&](const Item& item) { return item.name == name; });
    return found == items.end() ? nullptr : &*found;
}

void portChanges(const std::vector<graph::Port>& before, const std::vector<graph::Port>& after, Change::Kind added, Change::Kind removed,
                 std::vector<Change>& out) {
    for (const graph::Port& port : before) {
        const auto* now = named(after, port.name);
        if (!now) out.push_back({removed, port.name, portText(port), {}});
        else if (portText(*now) != portText(port)) out.push_back({Change::Kind::PortChanged, port.name, portText(port), portText(*now)});
    }
    for (const graph::Port& port : after)
        if (!named(before, port.name)) out.push_back({added, port.name, {}, portText(port)});
}

/// What the newer version would break at a cell that uses the composite.
class BreakFinder {
public:
    BreakFinder(const Graph& before, const Graph& after, std::vector<Problem>& out) : m_before(before), m_after(after), m_out(out) {}

    void look(const Graph& user, const std::string& userName, const graph::Cell& cell) {
        m_path = (userName.empty() ? "" : userName + "/") + cell.name;
        for (const auto& [name, value] : cell.params)
            if (!named(m_after.hyper, name))
                say("sets the hyper-parameter " + name + ", which the newer version does not have.", "Remove the parameter from the cell first.", name);
        std::set<std::string> fed;
        for (const graph::Wire& wire : user.wires) {
            if (wire.to.cell == cell.name) {
                fed.insert(wire.to.port);
                port("input", wire.to.port, m_before.inputs, m_after.inputs);
            }
            if (wire.from.cell == cell.name) port("output", wire.from.port, m_before.outputs, m_after.outputs);
        }
        for (const graph::Port& input : m_after.inputs)
            if (!fed.contains(input.name) && !named(m_before.inputs, input.name))
                say("has no wire for the input " + input.name + ", which is new in the newer version.", "Update by hand: add the newer version beside it and wire it.");
    }

private:
    void port(const std::string& what, const std::string& name, const std::vector<graph::Port>& before, const std::vector<graph::Port>& after) {
        const auto* now = named(after, name);
        const auto* then = named(before, name);
        if (!now) say("has a wire at the " + what + " " + name + ", which the newer version does not have.", "Remove the wire first.");
        else if (then && now->dtype != then->dtype)
            say("has a wire at the " + what + " " + name + ", which is " + now->dtype + " in the newer version and was " + then->dtype + ".", "Remove the wire first.");
    }
    void say(const std::string& message, const std::string& hint, const std::string& parameter = {}) {
        m_out.push_back({Problem::Severity::Error, m_path, message, hint, parameter});
    }

    const Graph& m_before;
    const Graph& m_after;
    std::vector<Problem>& m_out;
    std::string m_path;
};

void keepPositions(const Graph& before, Graph& after) {
    for (graph::Cell& cell : after.cells)
        if (const auto* old = named(before.cells, cell.name); old && old->position) cell.position = old->position;
}

class Updater {
public:
    Updater(Document& document, const WorkspaceLibrary* workspace)
        : m_document(document), m_workspace(workspace), m_wasFine(graph::expand(document).ok()) {}

    Result<UpdateReport> run(const UpdateOptions& options) {
        const auto statuses = compare(m_document, m_workspace);
        for (const CopyStatus& status : statuses)
            if (isUntouched(status)) m_untouched.insert(status.composite);
        CELLOOM_TRY(chosen, choose(statuses, options));
        UpdateReport report;
        for (const CopyStatus& status : chosen)
            if (m_document.composites.contains(status.composite)) CELLOOM_TRY_STATUS(one(status, report));
        tidyNames();
        return report;
    }

private:
    static Result<std::vector<CopyStatus>> choose(const std::vector<CopyStatus>& statuses, const UpdateOptions& options) {
        std::vector<CopyStatus> out;
        for (const std::string& name : options.composites) {
            const auto found = std::find_if(statuses.begin(), statuses.end(), [&](const CopyStatus& status) { return status.composite == name; });
            if (found == statuses.end()) return fail(inQuotes(name) + " is no copy of a library's entry.", "library check lists those that are.", name);
            if (found->state == CopyState::Gone) return fail("The library does not have " + found->origin.name + ".", {}, name);
            if (found->isInsideOthers) return fail(name + " belongs to copies of other entries.", "Update those.", name);
            if (found->state == CopyState::EditedAndNewer && !options.replacesEdited)
                return fail(name + " was edited in this document; the newer version would replace that.", "Save it under a name of its own first, or update with --replace-edited.", name);
        }
        for (const CopyStatus& status : statuses) {
            const bool isAsked = options.composites.empty() ||
                                 std::find(options.composites.begin(), options.composites.end(), status.composite) != options.composites.end();
            const bool isDue = status.state == CopyState::Newer || (status.state == CopyState::EditedAndNewer && options.replacesEdited);
            if (isAsked && isDue && !status.isInsideOthers) out.push_back(status);
        }
        return out;
    }

    Status one(const CopyStatus& status, UpdateReport& report) {
        CELLOOM_TRY(entry, newestOf(status.origin, m_workspace));
        const std::string& old = status.composite;
        Document candidate = m_document;
        CELLOOM_TRY(copied, copyInto(candidate, entry));
        UpdateReport::Item item{old, status.origin, entry.origin(), changesBetween(candidate, old, candidate, copied.type), {}};
        const Graph before = candidate.composites.at(old);
        BreakFinder breaks(before, candidate.composites.at(copied.type), item.problems);
        for (const std::string& name : ownGraphs(m_document, m_untouched)) {
            Graph& user = graphNamed(candidate, name);
            for (graph::Cell& cell : user.cells) {
                if (cell.type != old) continue;
                breaks.look(user, name, cell);
                cell.type = copied.type;
            }
        }
        if (!copied.added.empty()) keepPositions(before, candidate.composites.at(copied.type));
        if (item.problems.empty() && m_wasFine)
            for (const Problem& problem : graph::expand(candidate).problems)
                if (problem.severity == Problem::Severity::Error) item.problems.push_back(problem);
        if (!item.problems.empty()) {
            report.refused.push_back(std::move(item));
            return {};
        }
        dropUnused(candidate, old);
        m_untouched.erase(old);
        m_untouched.insert(copied.added.begin(), copied.added.end());
        if (!candidate.composites.contains(old)) m_wanted[copied.type] = old;
        m_added.insert(m_added.end(), copied.added.begin(), copied.added.end());
        m_document = std::move(candidate);
        report.updated.push_back(std::move(item));
        return {};
    }

    /// `old`, where nothing uses it now, and what only it used. Composites that nothing used before stay: they are the user's.
    void dropUnused(Document& document, const std::string& old) const {
        std::vector<std::string> open{old};
        while (!open.empty()) {
            const std::string name = open.back();
            open.pop_back();
            const auto found = document.composites.find(name);
            if (found == document.composites.end() || usersOf(document).contains(name)) continue;
            for (const graph::Cell& cell : found->second.cells) open.push_back(cell.type);
            document.composites.erase(found);
        }
    }

    /// A copy that came beside the one it replaces takes its name.
    void tidyNames() {
        for (const std::string& name : m_added) {
            const auto found = m_document.composites.find(name);
            if (found == m_document.composites.end()) continue;
            const auto wanted = m_wanted.find(name);
            const std::string target = wanted != m_wanted.end() ? wanted->second : found->second.origin ? found->second.origin->name : name;
            if (target == name || graph::freeCompositeName(m_document, target) != target) continue;
            auto node = m_document.composites.extract(found);
            node.key() = node.mapped().name = target;
            m_document.composites.insert(std::move(node));
            const auto rename = [&](Graph& graph) {
                for (graph::Cell& cell : graph.cells)
                    if (cell.type == name) cell.type = target;
            };
            rename(m_document.main);
            for (auto& [other, graph] : m_document.composites) rename(graph);
        }
    }

    Document& m_document;
    const WorkspaceLibrary* m_workspace;
    bool m_wasFine; // then it must be fine afterwards
    std::set<std::string> m_untouched;
    std::map<std::string, std::string> m_wanted; // by the name of a new copy: the name that it follows
    std::vector<std::string> m_added;
};

} // namespace

std::string toText(CopyState state) {
    switch (state) {
    case CopyState::Same: return "as in the library";
    case CopyState::Newer: return "the library has a newer version";
    case CopyState::Edited: return "edited in this document";
    case CopyState::EditedAndNewer: return "edited in this document, and the library has a newer version";
    case CopyState::Gone: break;
    }
    return "not in the library";
}

std::vector<CopyStatus> compare(const Document& document, const WorkspaceLibrary* workspace) {
    std::vector<CopyStatus> out;
    std::set<std::string> untouched;
    const auto digests = digestsOf(document);
    for (const auto& [name, graph] : document.composites) {
        if (!graph.origin) continue;
        const auto digest = digests.find(name);
        out.push_back(statusOf(name, *graph.origin, digest == digests.end() ? "" : digest->second, workspace));
        if (isUntouched(out.back())) untouched.insert(name);
    }
    const auto users = usersOf(document);
    for (CopyStatus& status : out)
        if (const auto by = users.find(status.composite); by != users.end())
            status.isInsideOthers = std::all_of(by->second.begin(), by->second.end(), [&](const std::string& user) { return untouched.contains(user); });
    return out;
}

std::vector<Change> changesBetween(const Document& before, const std::string& type, const Document& after, const std::string& newType) {
    using Kind = Change::Kind;
    const Graph &old = type.empty() ? before.main : before.composites.at(type), &now = newType.empty() ? after.main : after.composites.at(newType);
    std::vector<Change> out;
    for (const graph::HyperParameter& hyper : old.hyper) {
        const auto* same = named(now.hyper, hyper.name);
        if (!same) out.push_back({Kind::HyperRemoved, hyper.name, valueText(hyper.value), {}});
        else if (same->value != hyper.value) out.push_back({Kind::HyperValue, hyper.name, valueText(hyper.value), valueText(same->value)});
    }
    for (const graph::HyperParameter& hyper : now.hyper)
        if (!named(old.hyper, hyper.name)) out.push_back({Kind::HyperAdded, hyper.name, {}, valueText(hyper.value)});
    portChanges(old.inputs, now.inputs, Kind::InputAdded, Kind::InputRemoved, out);
    portChanges(old.outputs, now.outputs, Kind::OutputAdded, Kind::OutputRemoved, out);
    if (out.empty() && digestOf(before, type).value_or("") != digestOf(after, newType).value_or("")) out.push_back({Kind::Inside, {}, {}, {}});
    return out;
}

std::string toText(const Change& change) {
    using Kind = Change::Kind;
    switch (change.kind) {
    case Kind::HyperAdded: return "the hyper-parameter " + change.name + " is new (" + change.after + ")";
    case Kind::HyperRemoved: return "the hyper-parameter " + change.name + " is gone";
    case Kind::HyperValue: return change.name + " was " + change.before + " and is " + change.after + " where a cell does not set it";
    case Kind::InputAdded: return "the input " + change.name + " is new";
    case Kind::InputRemoved: return "the input " + change.name + " is gone";
    case Kind::OutputAdded: return "the output " + change.name + " is new";
    case Kind::OutputRemoved: return "the output " + change.name + " is gone";
    case Kind::PortChanged: return "the port " + change.name + " was " + change.before + " and is " + change.after;
    case Kind::Inside: break;
    }
    return "its inside changed";
}

Result<UpdateReport> update(Document& document, const WorkspaceLibrary* workspace, const UpdateOptions& options) {
    Document candidate = document;
    Updater updater(candidate, workspace);
    CELLOOM_TRY(report, updater.run(options));
    document = std::move(candidate);
    return report;
}

} // namespace celloom::library
