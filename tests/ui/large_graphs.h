// Documents of thousands of cells, for what must hold at that size: of the canvas' tests and its benchmark.
#pragma once

#include "models/graph/document.h"

#include <string>

namespace celloom::test {

/// One level: `towers` columns of `height` cells. Every second cell adds its column's value and the neighbour's, so that wires cross; the others
/// are dense, norms and activations in turn. 20 by 100: 2000 cells, 3020 wires. Without positions.
inline graph::Document flatDocument(int towers = 20, int height = 100) {
    graph::Document document;
    document.main.name = "flat";
    document.main.inputs = {{"x", {"B", "T", "64"}}};
    const char* types[] = {"Dense", "RMSNorm", "SiLU", "GELU"};
    const auto name = [](int tower, int row) { return "c" + std::to_string(tower) + "_" + std::to_string(row); };
    for (int row = 0; row < height; ++row)
        for (int tower = 0; tower < towers; ++tower) {
            graph::Cell cell{name(tower, row), row % 2 ? "Add" : types[row / 2 % 4]};
            if (cell.type == "Dense") cell.params = {{"in_channels", std::int64_t(64)}, {"out_channels", std::int64_t(64)}};
            if (cell.type == "RMSNorm") cell.params = {{"dim", std::int64_t(64)}};
            const graph::Endpoint above = row == 0 ? graph::Endpoint{"", "x"} : graph::Endpoint{name(tower, row - 1), "out"};
            if (row % 2) {
                document.main.wires.push_back({above, {cell.name, "a"}});
                document.main.wires.push_back({{name((tower + 1) % towers, row - 1), "out"}, {cell.name, "b"}});
            } else {
                document.main.wires.push_back({above, {cell.name, "x"}});
            }
            document.main.cells.push_back(std::move(cell));
        }
    for (int tower = 0; tower < towers; ++tower) {
        const std::string out = "y" + std::to_string(tower);
        document.main.outputs.push_back({out, {}});
        document.main.wires.push_back({{name(tower, height - 1), "out"}, {"", out}});
    }
    return document;
}

/// `blocks` composites in a row, each of ten cells, four of them in each of two composites inside. 200: 2000 cells.
inline graph::Document nestedDocument(int blocks = 200) {
    graph::Document document;
    document.main.name = "nested";
    document.main.inputs = {{"x", {"B", "T", "64"}}};
    document.main.outputs = {{"y", {}}};
    const auto dense = [](const std::string& name) { return graph::Cell{name, "Dense", {{"in_channels", std::int64_t(64)}, {"out_channels", std::int64_t(64)}}}; };
    const auto norm = [](const std::string& name) { return graph::Cell{name, "RMSNorm", {{"dim", std::int64_t(64)}}}; };
    graph::Graph leaf{"Leaf", {}, {}, {{"x", {"B", "T", "64"}}}, {{"y", {}}}};
    leaf.cells = {norm("norm"), dense("up"), {"act", "SiLU"}, dense("down")};
    leaf.wires = {{{"", "x"}, {"norm", "x"}}, {{"norm", "out"}, {"up", "x"}}, {{"up", "out"}, {"act", "x"}}, {{"act", "out"}, {"down", "x"}}, {{"down", "out"}, {"", "y"}}};
    graph::Graph block{"Block", {}, {}, {{"x", {"B", "T", "64"}}}, {{"y", {}}}};
    block.cells = {norm("norm"), {"first", "Leaf"}, {"second", "Leaf"}, {"add", "Add"}};
    block.wires = {{{"", "x"}, {"norm", "x"}}, {{"norm", "out"}, {"first", "x"}}, {{"first", "y"}, {"second", "x"}},
                   {{"second", "y"}, {"add", "a"}}, {{"", "x"}, {"add", "b"}}, {{"add", "out"}, {"", "y"}}};
    document.composites = {{"Leaf", leaf}, {"Block", block}};
    graph::Endpoint before{"", "x"};
    for (int i = 0; i < blocks; ++i) {
        const std::string name = "block" + std::to_string(i);
        document.main.cells.push_back({name, "Block"});
        document.main.wires.push_back({before, {name, "x"}});
        before = {name, "y"};
    }
    document.main.wires.push_back({before, {"", "y"}});
    return document;
}

} // namespace celloom::test
