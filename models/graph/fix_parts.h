// What finds fixes shares: where a problem lies, what is known of shapes there, and candidates to be tried. Internal to models/graph.
#pragma once

#include "models/graph/expression.h"
#include "models/graph/fixes.h"

#include <optional>

namespace celloom::graph {

/// One graph on the way to a problem: the main graph or a composite, as one instance of it.
struct FixLevel {
    GraphName graph;
    std::string prefix; // "layers.0." or empty
    std::string cell;   // of the level above, whose composite this is
};

/// What the finders look at.
struct FixContext {
    const Document& document; // overrides applied
    const Expansion& expansion;
    const Problem& problem;
    std::vector<FixLevel> levels; // from the main graph (or the composite that nothing uses) down
    std::string cell;             // in the last of them; empty: the graph itself

    [[nodiscard]] const Graph& graph() const { return *graphOf(document, levels.back().graph); }
    [[nodiscard]] const GraphName& graphName() const { return levels.back().graph; }
    /// Hyper-parameters of the graph at a level, evaluated; those with errors are left out.
    [[nodiscard]] Scope scope(std::size_t level) const;
    [[nodiscard]] Scope scope() const { return scope(levels.size() - 1); }
    /// Of what is at an endpoint of the graph at a level, where it came out so far.
    [[nodiscard]] std::optional<Shape> shape(std::size_t level, const Endpoint& source) const;
    [[nodiscard]] std::optional<Shape> shape(const Endpoint& source) const { return shape(levels.size() - 1, source); }
    /// Of the inputs of the cell, by port.
    [[nodiscard]] std::map<std::string, Shape> inputShapes() const;
};

struct Candidate {
    Fix fix;
    double rank = 0; // lower is better, among those that mend as much
};
using Candidates = std::vector<Candidate>;

struct PortAbout {
    std::string name;
    std::string dtype;
    bool isOptional = false;
};
/// The ports of a cell, as far as its type is known.
std::vector<PortAbout> inputsOf(const Document& document, const Cell& cell, const Scope& scope);
std::vector<PortAbout> outputsOf(const Document& document, const Cell& cell, const Scope& scope);

void findWires(const FixContext& context, Candidates& out);
void findTypes(const FixContext& context, Candidates& out);
void findValues(const FixContext& context, Candidates& out);
void findShapes(const FixContext& context, Candidates& out);
void findNames(const FixContext& context, Candidates& out);

} // namespace celloom::graph
