// The head of a class and its __init__.
#include "models/code/class_writer.h"

#include "models/base/text.h"
#include "models/code/helpers.h"
#include "models/code/python.h"
#include "models/code/script_class.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace celloom::code {

using graph::Cell;
using graph::Endpoint;
using graph::Graph;

Result<std::string> ClassWriter::layerCall(const Placed& placed, const Layer& layer) {
    std::string out;
    bool isPositional = true;
    for (const Argument& argument : layer.arguments) {
        if (argument.form == Form::Fixed) {
            isPositional = false;
            continue;
        }
        CELLOOM_TRY(text, inForm(argument, placed.instance, [&](const std::string& param) { return valueOf(placed, param, false); }));
        const std::string value = text.value_or(argument.standard.value_or(""));
        if (argument.standard && *argument.standard == value) {
            isPositional = false;
            continue;
        }
        isPositional = isPositional && !argument.isByName;
        out += (out.empty() ? "" : ", ") + (isPositional ? value : argument.name + "=" + value);
    }
    return "nn." + layer.name + "(" + out + ")";
}

Status ClassWriter::writeScript(const Placed& placed) {
    const Cell& cell = *placed.cell;
    std::vector<ScriptWeight> weights;
    std::vector<std::string> used;
    const NameOf nameOf = [&](const std::string& hyper) {
        const auto found = m_hyperNames.find(hyper);
        if (found != m_hyperNames.end() && std::find(used.begin(), used.end(), found->second) == used.end()) used.push_back(found->second);
        return found == m_hyperNames.end() ? pythonName(hyper) : found->second;
    };
    const auto given = cell.params.find("weights");
    std::string text = given == cell.params.end() ? std::string() : std::get<std::string>(given->second);
    std::replace(text.begin(), text.end(), '\n', ';');
    for (std::size_t from = 0; from < text.size();) {
        const auto end = std::min(text.find(';', from), text.size());
        const std::string port = trimmed(text.substr(from, end - from));
        from = end + 1;
        const auto colon = port.find(':'), open = port.find('['), close = port.rfind(']');
        if (colon == std::string::npos || open == std::string::npos || close == std::string::npos)
            continue; // blank: the parameter has been read
        ScriptWeight weight{trimmed(port.substr(0, colon)), {}};
        const auto dims = listItems(port.substr(open + 1, close - open - 1));
        for (const std::string& dim : dims) {
            auto one = pythonExpression(dim, m_scope, true, nameOf, m_needs);
            if (!one) return fail(one.error().message, {}, placeOf(cell) + ", weights");
            weight.shape += (weight.shape.empty() ? "" : ", ") + *one;
        }
        weight.isZeros = weight.name.ends_with("bias") || weight.name.ends_with("beta");
        weight.isOnes = !weight.isZeros && dims.size() < 2;
        weights.push_back(std::move(weight));
    }
    if (!weights.empty() && isMindSpore()) m_needs.insert("numpy");
    std::string wanted = pythonName(cell.name);
    if (wanted[0] >= 'a' && wanted[0] <= 'z') wanted[0] = static_cast<char>(wanted[0] - 'a' + 'A');
    const std::string name = uniqueName(wanted + "Script", m_taken);
    for (const std::string& line :
         scriptClass(m_dialect, name, std::get<std::string>(placed.instance.params.at("code")), weights, joined(used, 100000)))
        m_out.add(line, m_key, cell.name);
    m_out.add();
    m_out.add();
    std::string arguments;
    for (const std::string& one : used) arguments += (arguments.empty() ? "" : ", ") + one + "=" + one;
    m_scripts[cell.name] = name + "(" + arguments + ")";
    return {};
}

Result<std::string> ClassWriter::constructorOf(const Placed& placed) {
    const Cell& cell = *placed.cell;
    if (const auto script = m_scripts.find(cell.name); script != m_scripts.end()) return script->second;
    if (placed.type) {
        if (const Layer* layer = layerOf(m_dialect, cell.type); layer && fitsLayer(m_dialect, placed.instance))
            return layerCall(placed, *layer);
        const Helper* helper = helperOf(m_dialect, cell.type);
        if (!helper)
            return fail("A " + cell.type + " cell cannot be written as " + (isMindSpore() ? "MindSpore" : "PyTorch") + " code.", {},
                        placeOf(cell));
        m_needs.insert(helper->name);
        std::string out;
        for (const catalog::ParamDef& def : placed.type->params) {
            const auto given = cell.params.find(def.name);
            if (given == cell.params.end() || (def.standard && *def.standard == given->second)) continue;
            CELLOOM_TRY(value, valueOf(placed, def.name, false));
            out += (out.empty() ? "" : ", ") + def.name + "=" + value;
        }
        return helper->name + "(" + out + ")";
    }
    std::string out;
    const auto hyperOf = [&](const std::string& name) {
        return std::find_if(placed.composite->hyper.begin(), placed.composite->hyper.end(),
                            [&](const auto& hyper) { return hyper.name == name; });
    };
    for (const auto& [name, value] : cell.params)
        if (hyperOf(name) == placed.composite->hyper.end())
            return fail(cell.type + " has no hyper-parameter " + inQuotes(name) + ".", {}, placeOf(cell));
    std::set<std::string> names{"self"}; // as readHyper() of the composite names them
    for (const graph::HyperParameter& hyper : placed.composite->hyper) {
        const std::string name = uniqueName(pythonName(hyper.name), names);
        const auto given = cell.params.find(hyper.name);
        if (given == cell.params.end()) continue;
        CELLOOM_TRY(value, number(cell, hyper.name, given->second, true, false));
        out += (out.empty() ? "" : ", ") + name + "=" + value;
    }
    return m_classNames.at(cell.type) + "(" + out + ")";
}

void ClassWriter::tagged(std::string line, const std::string& name, const Cell& cell) {
    if (name != cell.name) line += "  # cell: " + cell.name;
    m_out.add(line, m_key, cell.name);
}

Status ClassWriter::writeInit() {
    std::string parameters = "self";
    for (const graph::HyperParameter& hyper : m_graph.hyper)
        parameters += ", " + m_hyperNames.at(hyper.name) + "=" +
                      (std::holds_alternative<std::string>(hyper.value) ? "None" : pythonValue(hyper.value));
    writeHead();
    m_out.add(indented(1) + "def __init__(" + parameters + "):");
    m_out.add(indented(2) + "super().__init__()");
    for (const graph::HyperParameter& hyper : m_graph.hyper) {
        const auto* text = std::get_if<std::string>(&hyper.value);
        if (!text) continue;
        const NameOf nameOf = [&](const std::string& name) { return m_hyperNames.contains(name) ? m_hyperNames.at(name) : name; };
        CELLOOM_TRY(expression, pythonExpression(*text, m_scope, true, nameOf, m_needs));
        const std::string& name = m_hyperNames.at(hyper.name);
        m_out.add(indented(2) + name + " = " + expression + " if " + name + " is None else " + name);
    }
    for (const graph::HyperParameter& hyper : m_graph.hyper)
        if (m_usedInConstruct.contains(hyper.name))
            m_out.add(indented(2) + "self." + m_hyperAttributes.at(hyper.name) + " = " + m_hyperNames.at(hyper.name));
    for (const Cell& cell : m_graph.cells) {
        const Placed& placed = m_placed.at(cell.name);
        if (placed.attribute.empty()) continue;
        CELLOOM_TRY(made, constructorOf(placed));
        if (!cell.note.empty())
            for (const std::string& line : commentLines(cell.note)) m_out.add(indented(2) + line, m_key, cell.name);
        if (!cell.repeat.empty()) {
            CELLOOM_TRY(count, number(cell, "repeat", cell.repeat, true, false));
            made = std::string("nn.") + (isMindSpore() ? "CellList" : "ModuleList") + "([" + made + " for _ in range(" + count + ")])";
        }
        tagged(indented(2) + "self." + placed.attribute + " = " + made, placed.attribute, cell);
    }
    return {};
}

void ClassWriter::writeHead() {
    const std::string& className = m_classNames.at(m_key);
    nlohmann::ordered_json about = nlohmann::ordered_json::object();
    if (m_key.empty() && !m_document.family.empty()) about["family"] = m_document.family;
    if (!m_key.empty() && m_key != className) about["composite"] = m_key;
    if (m_graph.name != (m_key.empty() ? className : m_key)) about["name"] = m_graph.name;
    if (m_graph.origin)
        about["origin"] = {{"library", m_graph.origin->library}, {"name", m_graph.origin->name}, {"version", m_graph.origin->version}};
    if (!about.empty()) m_out.add("# celloom: " + about.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    m_out.add("class " + className + "(nn." + (isMindSpore() ? "Cell" : "Module") + "):", m_key, "");
    const bool hasHelp = std::any_of(m_graph.hyper.begin(), m_graph.hyper.end(), [](const auto& hyper) { return !hyper.help.empty(); });
    if (m_graph.note.empty() && !hasHelp) return;
    std::string text = indented(1) + "\"\"\"" + inDocstring(m_graph.note, indented(1));
    if (hasHelp) {
        text += std::string(m_graph.note.empty() ? "" : "\n\n" + indented(1)) + "Args:\n";
        for (const graph::HyperParameter& hyper : m_graph.hyper)
            if (!hyper.help.empty()) text += indented(2) + m_hyperNames.at(hyper.name) + ": " + inDocstring(hyper.help, indented(3)) + "\n";
        text += indented(1);
    }
    m_out.addBlock(text + "\"\"\"\n\n");
}

} // namespace celloom::code
