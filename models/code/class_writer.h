// One graph as a class of Python: names, then __init__, then construct. Internal to models/code; writer.cpp makes one for each graph.
#pragma once

#include "models/catalog/catalog.h"
#include "models/code/code.h"
#include "models/code/forms.h"
#include "models/graph/expression.h"
#include "models/graph/plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace celloom::code {

/// Text that grows line by line, and knows which cell each line is for.
struct Lines {
    std::string text;
    int count = 0;
    std::vector<CellLines> map;

    void add(const std::string& line = {}) {
        text += line + "\n";
        ++count;
    }
    void add(const std::string& line, const std::string& composite, const std::string& cell) {
        add(line);
        if (!map.empty() && map.back().last + 1 == count && map.back().composite == composite && map.back().cell == cell && !cell.empty())
            map.back().last = count;
        else
            map.push_back({count, count, composite, cell});
    }
    void addBlock(const std::string& block) {
        text += block;
        count += static_cast<int>(std::count(block.begin(), block.end(), '\n'));
    }
};

/// Four spaces a level.
std::string indented(int levels);
/// The lines of a note as comments.
std::vector<std::string> commentLines(const std::string& note);
std::string inDocstring(const std::string& text, const std::string& indent);

/// One graph as a class.
class ClassWriter {
public:
    ClassWriter(const graph::Document& document, const graph::Graph& graph, std::string key, Dialect dialect,
                const std::map<std::string, std::string>& classNames, std::set<std::string>& taken, std::set<std::string>& needs,
                Lines& out)
        : m_document(document), m_graph(graph), m_key(std::move(key)), m_dialect(dialect), m_classNames(classNames), m_taken(taken),
          m_needs(needs), m_out(out) {}

    Status write();

private:
    struct Placed {
        const graph::Cell* cell = nullptr;
        const catalog::CellType* type = nullptr; // null: a composite
        const graph::Graph* composite = nullptr;
        graph::CellInstance instance; // of a catalogue type: parameters under the graph's own hyper-parameters
        std::string attribute;        // empty: written as an expression
        std::vector<catalog::PortDef> inputs, outputs;
    };

    [[nodiscard]] std::string placeOf(const graph::Cell& cell) const { return m_key.empty() ? cell.name : m_key + "/" + cell.name; }
    [[nodiscard]] bool isMindSpore() const { return m_dialect == Dialect::MindSpore; }

    Status readHyper();

    Status place(const graph::Cell& cell);

    [[nodiscard]] std::vector<std::pair<std::string, graph::Endpoint>> feedsOf(const std::string& cell) const;

    [[nodiscard]] bool isInline(const Placed& placed) const { return placed.type && isExpressionForm(placed.type->name); }

    Status nameVariables();

    Result<std::string> variable(const graph::Endpoint& end) const;

    /// The variables wired to the inputs, in port order; None for optional ones in the middle.
    Result<std::vector<std::string>> arguments(const Placed& placed) const;

    // ---- parameters ----

    Result<std::string> number(const graph::Cell& cell, const std::string& param, const graph::ParamValue& value, bool isWhole,
                               bool isInConstruct);

    /// A parameter of a catalogue type as Python.
    Result<std::string> valueOf(const Placed& placed, const std::string& param, bool isInConstruct);

    // ---- __init__ ----

    Result<std::string> layerCall(const Placed& placed, const Layer& layer);

    /// A class for the cell's code; the sizes of its weights come from hyper-parameters, which the constructor takes under their names.
    Status writeScript(const Placed& placed);

    /// The constructor of the cell's class or layer.
    Result<std::string> constructorOf(const Placed& placed);

    void tagged(std::string line, const std::string& name, const graph::Cell& cell);

    Status writeInit();

    void writeHead();

    // ---- construct ----

    struct Line {
        std::string text;
        const graph::Cell* cell;
    };

    Status composeConstruct();

    [[nodiscard]] std::string targets(const Placed& placed) const;

    void composeCall(const Placed& placed, const std::vector<std::string>& given);

    Status composeLoop(const Placed& placed, std::vector<std::string> given);

    Status composeInline(const Placed& placed, const std::vector<std::string>& given);

    /// On one line, whatever the document says.
    [[nodiscard]] static std::string shapeText(const graph::Port& port);

    void writeConstruct();

    const graph::Document& m_document;
    const graph::Graph& m_graph;
    std::string m_key; // of the composite; empty: the main graph
    Dialect m_dialect;
    const std::map<std::string, std::string>& m_classNames;
    std::set<std::string>& m_taken; // names of the module: classes, imports
    std::set<std::string>& m_needs;
    Lines& m_out;

    graph::Plan m_plan;
    graph::Scope m_scope;
    std::map<std::string, std::string> m_hyperNames, m_hyperAttributes;
    std::map<std::string, Placed> m_placed;
    std::map<std::pair<std::string, std::string>, std::string> m_variables;
    std::set<std::pair<std::string, std::string>> m_ownLine; // outputs that no call gives
    std::set<std::string> m_usedInConstruct;
    std::map<std::string, std::string> m_scripts; // constructors, by cell
    std::vector<Line> m_construct;
};

} // namespace celloom::code
