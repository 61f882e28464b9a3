// construct, or forward: a line a cell, in an order in which they can run.
#include "models/code/class_writer.h"

#include "models/base/text.h"
#include "models/code/python.h"

#include <algorithm>

namespace celloom::code {

using graph::Cell;
using graph::Endpoint;
using graph::Graph;

Status ClassWriter::composeConstruct() {
    for (const Cell* cell : m_plan.order) {
        const Placed& placed = m_placed.at(cell->name);
        CELLOOM_TRY(given, arguments(placed));
        if (isInline(placed))
            CELLOOM_TRY_STATUS(composeInline(placed, given));
        else if (!cell->repeat.empty())
            CELLOOM_TRY_STATUS(composeLoop(placed, given));
        else
            composeCall(placed, given);
    }
    std::string results;
    for (const graph::Port& port : m_graph.outputs) {
        const auto feeds = feedsOf("");
        const auto found = std::find_if(feeds.begin(), feeds.end(), [&](const auto& feed) { return feed.first == port.name; });
        if (found == feeds.end()) return fail("The output " + port.name + " has no wire.", "Wire a cell's output to it.", m_key);
        CELLOOM_TRY(name, variable(found->second));
        results += (results.empty() ? "" : ", ") + name;
    }
    if (m_graph.outputs.empty()) return fail("The graph has no outputs, so its class would give nothing.", "Add one and wire it.", m_key);
    m_construct.push_back({"return " + results, nullptr});
    return {};
}

std::string ClassWriter::targets(const Placed& placed) const {
    std::string out;
    for (const catalog::PortDef& port : placed.outputs) {
        if (m_ownLine.contains({placed.cell->name, port.name})) continue;
        out += (out.empty() ? "" : ", ") + m_variables.at({placed.cell->name, port.name});
    }
    return out;
}

void ClassWriter::composeCall(const Placed& placed, const std::vector<std::string>& given) {
    // the rows of an Embedding are no result of its call
    const bool shares = placed.type && placed.type->name == "Embedding" && placed.outputs.size() == 2;
    if (shares) m_ownLine.insert({placed.cell->name, "weight"});
    m_construct.push_back({targets(placed) + " = self." + placed.attribute + "(" + joined(given, 100000) + ")", placed.cell});
    if (shares)
        m_construct.push_back({m_variables.at({placed.cell->name, "weight"}) + " = self." + placed.attribute + "." +
                                   parameterName(m_dialect, "Embedding", "weight"),
                               placed.cell});
}

Status ClassWriter::composeLoop(const Placed& placed, std::vector<std::string> given) {
    if (placed.outputs.size() > given.size() ||
        std::find(given.begin(), given.end(), "None") < given.begin() + static_cast<std::ptrdiff_t>(placed.outputs.size()))
        return fail("has more outputs than inputs, so it cannot follow itself.", {}, placeOf(*placed.cell));
    const std::string results = targets(placed);
    std::string first;
    for (std::size_t i = 0; i < placed.outputs.size(); ++i) first += (first.empty() ? "" : ", ") + given[i];
    m_construct.push_back({results + " = " + first, placed.cell});
    std::size_t number = 0;
    for (const catalog::PortDef& port : placed.outputs) given[number++] = m_variables.at({placed.cell->name, port.name});
    std::string item = "cell";
    while (std::any_of(m_variables.begin(), m_variables.end(), [&](const auto& one) { return one.second == item; })) item += "_";
    m_construct.push_back({"for " + item + " in self." + placed.attribute + ":", placed.cell});
    m_construct.push_back({indented(1) + results + " = " + item + "(" + joined(given, 100000) + ")", placed.cell});
    return {};
}

Status ClassWriter::composeInline(const Placed& placed, const std::vector<std::string>& given) {
    const Cell& cell = *placed.cell;
    const ValueText value = [&](const std::string& param) { return valueOf(placed, param, true); };
    auto text = expressionForm(m_dialect, placed.instance, given, value, m_needs);
    if (!text) return fail(text.error().message, text.error().hint, text.error().place.empty() ? placeOf(cell) : text.error().place);
    if (!cell.note.empty())
        for (const std::string& line : commentLines(cell.note)) m_construct.push_back({line, &cell});
    std::string line = targets(placed) + " = " + text->text;
    const bool isNamed = placed.outputs.size() == 1
                             ? m_variables.at({cell.name, placed.outputs[0].name}) == cell.name
                             : m_variables.at({cell.name, placed.outputs[0].name}) == cell.name + "_" + placed.outputs[0].name;
    std::string tag = text->tag;
    if (!isNamed) tag += (tag.empty() ? "" : ", ") + ("cell: " + cell.name);
    if (!tag.empty()) line += "  # " + tag;
    m_construct.push_back({line, &cell});
    return {};
}

std::string ClassWriter::shapeText(const graph::Port& port) {
    std::string out = "[" + joined(port.shape, 100000) + "]" + (port.dtype == "float" ? "" : " " + port.dtype);
    std::replace_if(
        out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
    return out;
}

void ClassWriter::writeConstruct() {
    m_out.add();
    std::string parameters = "self";
    for (const graph::Port& port : m_graph.inputs) parameters += ", " + m_variables.at({"", port.name});
    m_out.add(indented(1) + "def " + (isMindSpore() ? "construct" : "forward") + "(" + parameters + "):", m_key, "");
    for (const graph::Port& port : m_graph.inputs) {
        const std::string& name = m_variables.at({"", port.name});
        if (!port.shape.empty() || port.dtype != "float" || name != port.name)
            m_out.add(indented(2) + "# " + name + ": " + shapeText(port) + (name == port.name ? "" : ", port: " + port.name), m_key, "");
    }
    const bool isPlain = m_graph.outputs.size() == 1 && m_graph.outputs[0].name == "out" && m_graph.outputs[0].shape.empty() &&
                         m_graph.outputs[0].dtype == "float";
    for (const graph::Port& port : isPlain ? std::vector<graph::Port>{} : m_graph.outputs)
        m_out.add(indented(2) + "# -> " + port.name + (port.shape.empty() && port.dtype == "float" ? "" : ": " + shapeText(port)), m_key,
                  "");
    for (const Line& line : m_construct) m_out.add(indented(2) + line.text, m_key, line.cell ? line.cell->name : "");
}

} // namespace celloom::code
