// What turns one document into another, and back: the substance of undo. Made by comparing, so that no edit can have a wrong inverse.
#pragma once

#include "models/graph/document.h"

#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace celloom::graph {

/// Holds only what differs: some cells of one graph, a whole composite that came or went.
class Difference {
public:
    static Difference between(const Document& before, const Document& after);

    [[nodiscard]] bool isEmpty() const;
    /// before -> after, on a document equal to `before`.
    void apply(Document& document) const;
    /// after -> before, on a document equal to `after`.
    void revert(Document& document) const;
    /// The graphs that it touches: names of composites, "" for the main graph.
    [[nodiscard]] std::set<std::string> graphs() const;

    template <class Item> struct Change {
        Item before, after;
    };
    /// Stretches of a list that are replaced, in order. More than one only where the list keeps its length.
    template <class Item> struct ListChange {
        struct Part {
            std::size_t at = 0;
            std::vector<Item> before, after;
        };
        std::vector<Part> parts;
    };
    struct GraphChange {
        std::optional<Change<std::string>> name, note;
        std::optional<Change<std::optional<Origin>>> origin;
        ListChange<HyperParameter> hyper;
        ListChange<Port> inputs, outputs;
        ListChange<Cell> cells;
        ListChange<Wire> wires;
    };

private:
    std::optional<Change<std::string>> m_family;
    std::optional<GraphChange> m_main;
    std::map<std::string, GraphChange> m_changed;
    std::map<std::string, Change<std::optional<Graph>>> m_replaced; // composites that came or went
};

/// Whether two documents have the same content, positions and notes included.
bool isSame(const Document& a, const Document& b);
bool isSame(const Graph& a, const Graph& b);

} // namespace celloom::graph
