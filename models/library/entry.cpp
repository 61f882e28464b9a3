#include "models/library/entry.h"

#include "models/base/files.h"
#include "models/base/text.h"
#include "models/graph/edits.h"
#include "models/graph/problems.h"
#include "models/library/standard.h"

#include <algorithm>

namespace celloom::library {
namespace {

using graph::Document;
using graph::Graph;

/// The text that is hashed: every part with its length before it, so that no two composites share one.
class Canonical {
public:
    void part(const std::string& text) { m_text += std::to_string(text.size()) + ":" + text; }
    void mark(char kind) { m_text += kind; }
    void value(const graph::ParamValue& value) {
        if (const auto* text = std::get_if<std::string>(&value)) {
            mark('t');
            part(*text);
        } else if (const auto* whole = std::get_if<std::int64_t>(&value)) {
            mark('i');
            part(std::to_string(*whole));
        } else if (const auto* real = std::get_if<double>(&value)) {
            mark('r');
            part(numberText(*real));
        } else {
            mark(std::get<bool>(value) ? 'y' : 'n');
        }
    }
    void port(char kind, const graph::Port& port) {
        mark(kind);
        part(port.name);
        part(port.dtype);
        for (const std::string& dim : port.shape) part(dim);
    }
    [[nodiscard]] const std::string& text() const { return m_text; }

private:
    std::string m_text = "celloom-composite 1\n";
};

class Digester {
public:
    explicit Digester(const Document& document) : m_document(document) {}

    Result<std::string> composite(const std::string& name) {
        if (std::find(m_open.begin(), m_open.end(), name) != m_open.end())
            return fail("Composites contain each other: " + circle(name) + ".", "Remove one of them from the other.", name);
        const auto known = m_known.find(name);
        const std::size_t below = known == m_known.end() ? 1 : known->second.levels;
        if (m_open.size() + below > static_cast<std::size_t>(kMaxDepth))
            return fail("Composites nest deeper than " + std::to_string(kMaxDepth) + " levels.", "Use fewer levels.", name);
        if (known != m_known.end()) return known->second.digest;
        m_open.push_back(name);
        const Graph& inside = m_document.composites.at(name);
        auto out = graph(inside);
        m_open.pop_back();
        if (!out) return out;
        Known& kept = m_known[name];
        kept.digest = *out;
        for (const graph::Cell& cell : inside.cells)
            if (const auto inner = m_known.find(cell.type); inner != m_known.end()) kept.levels = std::max(kept.levels, inner->second.levels + 1);
        return out;
    }

    Result<std::string> graph(const Graph& graph) {
        Canonical out;
        out.part(graph.note);
        for (const graph::HyperParameter& hyper : graph.hyper) {
            out.mark('h');
            out.part(hyper.name);
            out.value(hyper.value);
            out.part(hyper.help);
        }
        for (const graph::Port& port : graph.inputs) out.port('<', port);
        for (const graph::Port& port : graph.outputs) out.port('>', port);
        for (const graph::Cell& cell : graph.cells) CELLOOM_TRY_STATUS(add(out, cell));
        std::vector<std::vector<std::string>> wires; // their order says nothing
        for (const graph::Wire& wire : graph.wires) wires.push_back({wire.from.cell, wire.from.port, wire.to.cell, wire.to.port});
        std::sort(wires.begin(), wires.end());
        for (const auto& wire : wires) {
            out.mark('w');
            for (const std::string& name : wire) out.part(name);
        }
        return sha256(out.text());
    }

private:
    Status add(Canonical& out, const graph::Cell& cell) {
        out.mark('c');
        out.part(cell.name);
        if (m_document.composites.contains(cell.type)) {
            CELLOOM_TRY(inner, composite(cell.type));
            out.mark('=');
            out.part(inner);
        } else {
            out.part(cell.type);
        }
        for (const auto& [name, value] : cell.params) {
            out.mark('p');
            out.part(name);
            out.value(value);
        }
        out.part(cell.repeat);
        out.part(cell.note);
        return {};
    }

    [[nodiscard]] std::string circle(const std::string& name) const {
        std::string out;
        for (auto at = std::find(m_open.begin(), m_open.end(), name); at != m_open.end(); ++at) out += *at + " -> ";
        return out + name;
    }

    const Document& m_document;
    struct Known {
        std::string digest;
        std::size_t levels = 1; // of composites, itself counted
    };
    std::map<std::string, Known> m_known;
    std::vector<std::string> m_open; // composites whose inside is being read
};

/// Copies composites of one document into another, inner ones first.
class Copier {
public:
    Copier(Document& into, const Document& from) : m_into(into), m_from(from), m_digester(from) {
        for (const auto& [name, digest] : digestsOf(into)) m_there.emplace(digest, name);
    }

    std::string place(const Graph& graph, const std::string& digest, const std::string& wanted) {
        const auto [first, last] = m_there.equal_range(digest);
        for (auto at = first; at != last; ++at)
            if (at->second == wanted) return wanted;
        if (first != last) return first->second;
        Graph copy = graph;
        for (graph::Cell& cell : copy.cells)
            if (const auto inner = m_from.composites.find(cell.type); inner != m_from.composites.end())
                cell.type = place(inner->second, *m_digester.composite(cell.type), cell.type); // the whole was digested before
        std::string name = graph::freeCompositeName(m_into, wanted);
        copy.name = name;
        m_into.composites[name] = std::move(copy);
        m_there.emplace(digest, name);
        m_added.push_back(name);
        return name;
    }

    std::vector<std::string> takeAdded() { return std::move(m_added); }

private:
    Document& m_into;
    const Document& m_from;
    Digester m_digester;
    std::multimap<std::string, std::string> m_there; // digest, name
    std::vector<std::string> m_added;
};

} // namespace

Result<std::string> digestOf(const Document& document, const std::string& type) {
    if (type.empty()) return Digester(document).graph(document.main);
    if (!document.composites.contains(type)) return fail("The document has no composite " + inQuotes(type) + ".", {}, type);
    return Digester(document).composite(type);
}

std::map<std::string, std::string> digestsOf(const Document& document) {
    Digester digester(document);
    std::map<std::string, std::string> out;
    for (const auto& [name, graph] : document.composites)
        if (auto digest = digester.composite(name)) out[name] = std::move(*digest);
    return out;
}

std::vector<std::string> neededBy(const Document& document, const Graph& graph) {
    return graph::compositesUsedBy(document, graph);
}

Result<Copied> copyInto(Document& document, const Entry& entry) {
    CELLOOM_TRY(digest, digestOf(entry.document));
    Copier copier(document, entry.document);
    Copied out;
    out.type = copier.place(entry.document.main, digest, entry.name);
    out.added = copier.takeAdded();
    return out;
}

Result<Copied> copyInto(Document& document, const std::string& standardName) {
    const Entry* entry = findStandard(standardName);
    if (entry) return copyInto(document, *entry);
    return fail("The standard library has no " + inQuotes(standardName) + ".", graph::didYouMean(standardName, graph::namesOf(standard()), "Entries"));
}

} // namespace celloom::library
