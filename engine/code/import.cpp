#include "engine/code/import.h"

#include "engine/code/class_reader.h"
#include "models/base/text.h"
#include "models/catalog/catalog.h"
#include "models/code/helpers.h"
#include "models/graph/expand.h"
#include "models/graph/json_text.h"

#include <algorithm>

namespace celloom::engine::code {
namespace {

using celloom::code::Dialect;

/// A class or a function without what differs in writing alone.
std::string bare(std::string_view text) {
    std::string out;
    for (const char c : text)
        if (c != ' ' && c != '\n' && c != '\t') out += c;
    return out;
}

std::string bareHelper(const celloom::code::Helper& helper) {
    const auto source = readCodeSource(helper.text);
    CELLOOM_CHECK(source);
    return bare(source->text);
}

/// The names of classes that a class makes.
void collectNames(const Node& node, std::set<std::string>& out) {
    if (node.kind == Syntax::Call && node.of[0].kind == Syntax::Name) out.insert(node.of[0].text);
    for (const Node& inner : node.of) collectNames(inner, out);
}

class FileReader {
public:
    FileReader(const CodeSource& source, const ImportOptions& options) : m_source(source), m_options(options) {}

    ScriptResult<Imported> read() {
        CELLOOM_TRY_STATUS(parse());
        try {
            return whole();
        } catch (const Refusal& refusal) {
            return tl::unexpected(problem(refusal.begin, refusal.end, refusal.message, refusal.hint));
        }
    }

private:
    ScriptProblem problem(std::size_t begin, std::size_t end, std::string message, std::string hint) const {
        return problemAt(m_source.text, begin, std::max<std::size_t>(1, end > begin ? end - begin : 1), std::move(message),
                         std::move(hint));
    }

    /// "Module" is PyTorch's base; anything else is read as MindSpore.
    [[nodiscard]] Dialect dialect() const {
        const bool isPyTorch = std::any_of(m_source.definitions.begin(), m_source.definitions.end(),
                                           [](const ScriptDefinition& one) { return one.base == "Module"; });
        return isPyTorch ? Dialect::PyTorch : Dialect::MindSpore;
    }

    ScriptResult<void> parse() {
        m_session.source = &m_source;
        m_session.dialect = dialect();
        m_session.values = m_options.values;
        const auto isCell = [](const ScriptDefinition& one) {
            return one.base == "Cell" || one.base == "Module" || one.base == "GraphCell";
        };
        std::set<std::string> names;
        for (const ScriptDefinition& definition : m_source.definitions) {
            if (!names.insert(definition.name).second)
                return tl::unexpected(
                    problem(definition.begin, definition.begin + 5, "Two definitions are named " + definition.name + ".", "Rename one."));
            if (const celloom::code::Helper* helper = celloom::code::helperNamed(m_session.dialect, definition.name);
                helper &&
                bare(std::string_view(m_source.text).substr(definition.begin, definition.end - definition.begin)) == bareHelper(*helper)) {
                m_session.helpers[definition.name] = helper->type;
                continue;
            }
            if (!definition.isClass) { // refused where it is called
                m_session.functions.insert(definition.name);
                continue;
            }
            if (!isCell(definition))
                return tl::unexpected(problem(definition.begin, definition.begin + 5,
                                              "The class " + definition.name +
                                                  (definition.base.empty() ? " has no base." : " derives from " + definition.base + "."),
                                              "Cells derive from nn.Cell: class " + definition.name + "(nn.Cell):."));
            auto parsed = parseClass(m_source, definition);
            if (!parsed) return tl::unexpected(parsed.error());
            m_classes.push_back(std::make_unique<Class>(std::move(*parsed)));
            m_session.classes[m_classes.back()->name] = m_classes.back().get();
        }
        if (m_classes.empty())
            return tl::unexpected(ScriptProblem{
                "The source has no class of cells.", "Write class Network(nn.Cell): with __init__ and construct.", 0, 0, 1, {}, false});
        return {};
    }

    /// The class that is asked for, or the last that no other uses.
    const Class& mainClass() const {
        if (!m_options.className.empty()) {
            const auto found = m_session.classes.find(m_options.className);
            if (found != m_session.classes.end()) return *found->second;
            std::vector<std::string> names;
            for (const auto& one : m_classes) names.push_back(one->name);
            const auto close = nearest(m_options.className, names);
            throw Refusal{0, 0, "The source has no class " + inQuotes(m_options.className, 60) + ".",
                          close.empty() ? "It has " + joined(names) + "." : "Did you mean " + joined(close) + "?"};
        }
        std::set<std::string> used;
        for (const auto& one : m_classes)
            for (const Method& method : one->methods)
                for (const Node& statement : method.body) collectNames(statement, used);
        for (auto one = m_classes.rbegin(); one != m_classes.rend(); ++one)
            if (!used.contains((*one)->name)) return **one;
        return *m_classes.back();
    }

    /// What a comment "# celloom: {…}" above the class says.
    nlohmann::json aboutOf(const Class& source) const {
        const std::size_t end = source.begin == 0 ? 0 : source.begin - 1;
        const std::size_t lineBegin = end == 0 ? 0 : m_source.text.rfind('\n', end - 1) + 1;
        for (const ScriptComment& comment : m_source.comments) {
            if (comment.offset != lineBegin || !comment.text.starts_with("# celloom: ")) continue;
            auto parsed = graph::parseJson(comment.text.substr(11), "");
            if (parsed && parsed->is_object()) return *parsed;
        }
        return nlohmann::json::object();
    }

    static std::string textOf(const nlohmann::json& about, const char* key, const std::string& otherwise) {
        const auto found = about.find(key);
        return found != about.end() && found->is_string() ? found->get<std::string>() : otherwise;
    }

    void addAbout(const Class& source, graph::Graph& graph) const {
        const nlohmann::json about = aboutOf(source);
        graph.name = textOf(about, "name", textOf(about, "composite", source.name));
        const auto origin = about.find("origin");
        if (origin == about.end() || !origin->is_object()) return;
        const auto version = origin->find("version");
        if (version == origin->end() || !version->is_number_unsigned()) return;
        graph.origin = graph::Origin{textOf(*origin, "library", ""), textOf(*origin, "name", ""), version->get<std::int64_t>()};
    }

    std::string compositeOf(const std::string& className, const Node& place) {
        if (const auto found = m_composites.find(className); found != m_composites.end()) return found->second;
        if (!m_open.insert(className).second) refuse(place, "The class " + className + " contains itself.", "");
        if (++m_session.depth > 30) refuse(place, "Classes contain each other deeper than 30 levels.", "");
        const Class& source = *m_session.classes.at(className);
        ClassReader reader(m_session, source);
        graph::Graph graph = reader.read();
        --m_session.depth;
        addAbout(source, graph);
        const std::string wanted = textOf(aboutOf(source), "composite", className);
        const std::string key = m_session.freeName(wanted);
        if (key != wanted) {
            m_session.note("The class " + className + " is the composite " + key + ": the catalogue has a cell of its name.");
            graph.name = key;
        }
        m_session.document.composites[key] = std::move(graph);
        m_composites[className] = key;
        m_open.erase(className);
        return key;
    }

    ScriptResult<Imported> whole() {
        const Class& main = mainClass();
        m_session.asked = main.name;
        m_session.compositeOf = [this](const std::string& name, const Node& place) { return compositeOf(name, place); };
        for (const auto& [name, value] : m_options.values) {
            const Method* init = main.method("__init__");
            const bool isKnown = init && std::any_of(init->parameters.begin(), init->parameters.end(),
                                                     [&, &wanted = name](const Parameter& one) { return one.name == wanted; });
            if (!isKnown) throw Refusal{main.begin, main.begin + 5, main.name + " has no parameter " + inQuotes(name, 60) + ".", ""};
        }
        for (const auto& one : m_classes)
            if (one.get() != &main) compositeOf(one->name, {Syntax::Other, {}, {}, one->begin, one->begin + 5});
        ClassReader reader(m_session, main);
        graph::Graph graph = reader.read();
        addAbout(main, graph);
        Imported out;
        out.className = main.name;
        m_session.document.family = textOf(aboutOf(main), "family", "");
        bool hasShapes = std::all_of(graph.inputs.begin(), graph.inputs.end(), [](const graph::Port& port) { return !port.shape.empty(); });
        if (hasShapes && m_options.inputs.empty()) {
            m_session.document.main = std::move(graph);
        } else {
            const std::string key = m_session.freeName(graph.name);
            if (!graph::isIdentifier(key)) graph.name = main.name;
            const std::string name = m_session.freeName(main.name);
            graph.name = name;
            m_session.document.composites[name] = std::move(graph);
            surround(name);
        }
        out.document = std::move(m_session.document);
        out.notes = std::move(m_session.notes);
        return out;
    }

    /// A main graph of one cell around the composite: with the shapes that were given, or the first that fit of those that are usual.
    void surround(const std::string& key) {
        const graph::Graph& composite = m_session.document.composites.at(key);
        for (const graph::Port& port : m_options.inputs)
            if (std::none_of(composite.inputs.begin(), composite.inputs.end(),
                             [&](const graph::Port& one) { return one.name == port.name; })) {
                std::vector<std::string> names;
                for (const graph::Port& one : composite.inputs) names.push_back(one.name);
                throw Refusal{0, 0, key + " has no input " + inQuotes(port.name, 60) + ".", "Inputs are " + joined(names) + "."};
            }
        graph::Graph main;
        main.name = key + " network";
        main.hyper = composite.hyper;
        graph::Cell cell;
        cell.name = snakeName(key);
        cell.type = key;
        for (const graph::HyperParameter& hyper : main.hyper) cell.params[hyper.name] = hyper.name;
        main.cells.push_back(cell);
        for (const graph::Port& port : composite.inputs) main.wires.push_back({{"", port.name}, {cell.name, port.name}});
        for (const graph::Port& port : composite.outputs) {
            main.outputs.push_back({port.name, {}});
            main.wires.push_back({{cell.name, port.name}, {"", port.name}});
        }
        std::vector<graph::SymbolicShape> candidates;
        for (const graph::HyperParameter& hyper : main.hyper) {
            candidates.push_back({"B", "T", hyper.name});
            candidates.push_back({"B", hyper.name});
        }
        candidates.push_back({"B", "T"});
        std::optional<std::string> firstError;
        std::set<std::string> ids = idInputs(composite, 0);
        for (const auto& shape : candidates) {
            main.inputs = composite.inputs;
            bool isGuessed = false;
            for (graph::Port& port : main.inputs) {
                const auto given = std::find_if(m_options.inputs.begin(), m_options.inputs.end(),
                                                [&](const graph::Port& one) { return one.name == port.name; });
                if (given != m_options.inputs.end())
                    port = *given;
                else if (port.shape.empty()) {
                    isGuessed = true;
                    port.shape = ids.contains(port.name) ? graph::SymbolicShape{"B", "T"} : shape;
                    if (ids.contains(port.name)) port.dtype = "int64";
                    if (port.dtype == "int64") setType(key, port.name);
                }
            }
            graph::Document tried = m_session.document;
            tried.main = main;
            const graph::Expansion expansion = graph::expand(tried);
            if (expansion.ok() || !isGuessed) {
                if (isGuessed) {
                    std::string text;
                    for (const graph::Port& port : main.inputs)
                        text += (text.empty() ? "" : "; ") + port.name + ": [" + joined(port.shape) + "]";
                    m_session.note("The source says no shapes; the main graph was built for " + text + ". Give others with --input.");
                }
                m_session.document.main = main;
                return;
            }
        }
        // no guess fits: the composite alone, its inputs open
        m_session.note("The source says no shapes of inputs, and none of the usual ones fits: the main graph is empty. Give them with "
                       "--input x:[B,T,512].");
        m_session.document.main = {};
        m_session.document.main.name = key + " network";
    }

    void setType(const std::string& key, const std::string& name) {
        for (graph::Port& port : m_session.document.composites.at(key).inputs)
            if (port.name == name) port.dtype = "int64";
    }

    /// Inputs that lead to an Embedding's ids.
    std::set<std::string> idInputs(const graph::Graph& graph, int depth) const {
        std::set<std::string> out;
        if (depth > 30) return out;
        std::map<std::string, std::set<std::string>> inner; // by composite
        for (const graph::Wire& wire : graph.wires) {
            if (!wire.from.cell.empty() || wire.to.cell.empty()) continue;
            const auto cell =
                std::find_if(graph.cells.begin(), graph.cells.end(), [&](const graph::Cell& one) { return one.name == wire.to.cell; });
            if (cell == graph.cells.end()) continue;
            if (cell->type == "Embedding") out.insert(wire.from.port);
            const auto composite = m_session.document.composites.find(cell->type);
            if (composite == m_session.document.composites.end()) continue;
            if (!inner.contains(cell->type)) inner[cell->type] = idInputs(composite->second, depth + 1);
            if (inner[cell->type].contains(wire.to.port)) out.insert(wire.from.port);
        }
        return out;
    }

    const CodeSource& m_source;
    const ImportOptions& m_options;
    Session m_session;
    std::vector<std::unique_ptr<Class>> m_classes;
    std::map<std::string, std::string> m_composites;
    std::set<std::string> m_open;
};

} // namespace

ScriptResult<Imported> importCode(const std::string& text, const ImportOptions& options) {
    CELLOOM_TRY(source, readCodeSource(text));
    return FileReader(source, options).read();
}

Result<std::vector<graph::Port>> readInputPorts(const std::string& text) {
    std::vector<graph::Port> out;
    for (std::size_t from = 0; from <= text.size();) {
        const auto end = std::min(text.find(';', from), text.size());
        const std::string piece = trimmed(text.substr(from, end - from));
        from = end + 1;
        if (piece.empty()) continue;
        const auto colon = piece.find(':');
        graph::Port port;
        if (colon == std::string::npos || !readPortText(piece.substr(colon + 1), port) || port.shape.empty())
            return fail("is " + inQuotes(piece, 60) + ", expected a name and a shape.",
                        "For example --input x:[B,T,512], or --input \"ids:[B,T] int64\".", "--input");
        port.name = trimmed(piece.substr(0, colon));
        out.push_back(std::move(port));
    }
    return out;
}

} // namespace celloom::engine::code
