// Names, wires and parameters of a class.
#include "models/code/class_writer.h"

#include "models/base/text.h"
#include "models/code/python.h"
#include "models/graph/parameters.h"

#include <algorithm>

namespace celloom::code {

using graph::Cell;
using graph::Endpoint;
using graph::Graph;

namespace {

/// What nn.Cell and nn.Module have themselves, and what the generated code says otherwise.
const std::set<std::string> kTakenAttributes{"add_flags",
                                             "add_flags_recursive",
                                             "add_module",
                                             "apply",
                                             "arguments_key",
                                             "bfloat16",
                                             "bprop_debug",
                                             "buffers",
                                             "call_super_init",
                                             "cast_inputs",
                                             "cell_init_args",
                                             "cell_type",
                                             "cells",
                                             "cells_and_names",
                                             "check_names",
                                             "children",
                                             "cls_name",
                                             "compile",
                                             "compile_and_run",
                                             "compile_cache",
                                             "construct",
                                             "cpu",
                                             "create_time",
                                             "cuda",
                                             "double",
                                             "dump_patches",
                                             "eval",
                                             "exist_names",
                                             "exist_objs",
                                             "extend_repr",
                                             "extra_repr",
                                             "float",
                                             "forward",
                                             "generate_scope",
                                             "get_buffer",
                                             "get_extra_state",
                                             "get_flags",
                                             "get_inputs",
                                             "get_parameter",
                                             "get_parameters",
                                             "get_scope",
                                             "get_sub_cell",
                                             "get_submodule",
                                             "global_cells",
                                             "grad_ops_label",
                                             "half",
                                             "has_bprop",
                                             "insert_child_to_cell",
                                             "insert_param_to_cell",
                                             "ipu",
                                             "jit_config_dict",
                                             "load_state_dict",
                                             "mixed_precision_type",
                                             "modules",
                                             "mtia",
                                             "name_cells",
                                             "named_buffers",
                                             "named_children",
                                             "named_modules",
                                             "named_parameters",
                                             "offload",
                                             "param_prefix",
                                             "parameters",
                                             "parameters_and_names",
                                             "parameters_dict",
                                             "phase",
                                             "pipeline_segment",
                                             "pipeline_stage",
                                             "recompute",
                                             "register_buffer",
                                             "register_module",
                                             "register_parameter",
                                             "requires_grad",
                                             "requires_grad_",
                                             "run_construct",
                                             "set_boost",
                                             "set_comm_fusion",
                                             "set_data_parallel",
                                             "set_extra_state",
                                             "set_grad",
                                             "set_inputs",
                                             "set_jit_config",
                                             "set_submodule",
                                             "set_train",
                                             "shard",
                                             "share_memory",
                                             "state_dict",
                                             "to",
                                             "to_empty",
                                             "to_float",
                                             "train",
                                             "trainable_params",
                                             "training",
                                             "type",
                                             "untrainable_params",
                                             "update_cell_prefix",
                                             "xpu",
                                             "zero_grad"};

} // namespace

std::string indented(int levels) {
    return std::string(static_cast<std::size_t>(levels) * 4, ' ');
}

std::vector<std::string> commentLines(const std::string& note) {
    std::vector<std::string> out;
    for (std::size_t from = 0; from <= note.size();) {
        const auto end = std::min(note.find('\n', from), note.size());
        std::string line = "# " + note.substr(from, end - from);
        std::replace_if(
            line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
        while (line.ends_with(' ')) line.pop_back();
        out.push_back(line);
        from = end + 1;
    }
    return out;
}

std::string inDocstring(const std::string& text, const std::string& indent) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '\\' || c == '"') out += '\\';
        if (c == '\n') {
            out += '\n';
            if (i + 1 < text.size() && text[i + 1] != '\n') out += indent;
        } else {
            out += static_cast<unsigned char>(c) < ' ' && c != '\t' ? ' ' : c;
        }
    }
    return out;
}

Status ClassWriter::write() {
    std::vector<graph::Problem> problems;
    graph::ProblemList list(problems, m_key.empty() ? std::string() : m_key + "/", false);
    m_plan = graph::planOf(m_graph, "", list);
    if (!m_plan.isUsable)
        for (const graph::Problem& problem : problems)
            if (problem.severity == graph::Problem::Severity::Error) return fail(problem.message, problem.hint, problem.path);
    CELLOOM_TRY_STATUS(readHyper());
    for (const Cell& cell : m_graph.cells) CELLOOM_TRY_STATUS(place(cell));
    CELLOOM_TRY_STATUS(nameVariables());
    CELLOOM_TRY_STATUS(composeConstruct()); // first: it says which hyper-parameters construct needs
    for (const Cell& cell : m_graph.cells)
        if (cell.type == "Script" && m_placed.at(cell.name).type) CELLOOM_TRY_STATUS(writeScript(m_placed.at(cell.name)));
    CELLOOM_TRY_STATUS(writeInit());
    writeConstruct();
    return {};
}

Status ClassWriter::readHyper() {
    std::set<std::string> names{"self"};
    for (const graph::HyperParameter& hyper : m_graph.hyper) {
        if (!graph::isIdentifier(hyper.name))
            return fail("The hyper-parameter name " + inQuotes(hyper.name) + " cannot be used.", {}, m_key);
        m_hyperNames[hyper.name] = uniqueName(pythonName(hyper.name), names);
        const auto* text = std::get_if<std::string>(&hyper.value);
        auto value =
            text ? graph::evaluate(*text, m_scope)
                 : Result<graph::ResolvedValue>(std::visit([](const auto& held) { return graph::ResolvedValue(held); }, hyper.value));
        if (!value) return fail(value.error().message, value.error().hint, m_key.empty() ? hyper.name : m_key + "/, " + hyper.name);
        m_scope[hyper.name] = *value;
    }
    return {};
}

Status ClassWriter::place(const Cell& cell) {
    Placed out;
    out.cell = &cell;
    if (const auto found = m_document.composites.find(cell.type); found != m_document.composites.end()) {
        out.composite = &found->second;
        for (const graph::Port& port : found->second.inputs) out.inputs.push_back({port.name, false, port.dtype});
        for (const graph::Port& port : found->second.outputs) out.outputs.push_back({port.name, false, port.dtype});
    } else if ((out.type = catalog::find(cell.type))) {
        out.instance.path = cell.name;
        out.instance.type = cell.type;
        for (const auto& [name, value] : cell.params)
            if (std::none_of(out.type->params.begin(), out.type->params.end(),
                             [&wanted = name](const catalog::ParamDef& def) { return def.name == wanted; }))
                return fail(cell.type + " has no parameter " + inQuotes(name) + ".", {}, placeOf(cell));
        for (const catalog::ParamDef& def : out.type->params) {
            const auto given = cell.params.find(def.name);
            if (given == cell.params.end() && !def.standard)
                return fail(cell.type + " needs the parameter " + def.name + ".", def.help, placeOf(cell));
            auto value = graph::resolveParam(def, given == cell.params.end() ? *def.standard : given->second, m_scope);
            if (!value) return fail(value.error().message, value.error().hint, placeOf(cell) + ", " + def.name);
            out.instance.params[def.name] = std::move(*value);
        }
        out.inputs = catalog::inputPorts(*out.type, out.instance);
        out.outputs = catalog::outputPorts(*out.type, out.instance);
    } else {
        return fail("There is no cell type " + inQuotes(cell.type) + ".", {}, placeOf(cell));
    }
    for (const auto& [port, source] : feedsOf(cell.name))
        if (std::none_of(out.inputs.begin(), out.inputs.end(),
                         [&, &wanted = port](const catalog::PortDef& def) { return def.name == wanted; }))
            return fail("A wire ends at the input " + inQuotes(port) + ", which " + cell.type + " does not have.", {}, placeOf(cell));
    if (out.outputs.empty()) return fail("has no outputs, so it cannot be written as code.", {}, placeOf(cell));
    m_placed.emplace(cell.name, std::move(out));
    return {};
}

std::vector<std::pair<std::string, Endpoint>> ClassWriter::feedsOf(const std::string& cell) const {
    const auto found = m_plan.feeds.find(cell);
    return found == m_plan.feeds.end() ? std::vector<std::pair<std::string, Endpoint>>{} : found->second;
}

Status ClassWriter::nameVariables() {
    std::set<std::string> attributes = kTakenAttributes, variables = m_taken;
    variables.insert("self");
    for (const Cell& cell : m_graph.cells) {
        Placed& placed = m_placed.at(cell.name);
        if (isInline(placed)) {
            if (!cell.repeat.empty())
                return fail("A repeated " + cell.type + " cannot be written as code.", "Put it into a composite and repeat that.",
                            placeOf(cell));
            continue;
        }
        placed.attribute = uniqueName(pythonName(cell.name), attributes);
    }
    for (const graph::Port& port : m_graph.inputs) m_variables[{"", port.name}] = uniqueName(pythonName(port.name), variables);
    for (const Cell* cell : m_plan.order) {
        const Placed& placed = m_placed.at(cell->name);
        for (const catalog::PortDef& port : placed.outputs)
            m_variables[{cell->name, port.name}] = uniqueName(
                placed.outputs.size() == 1 ? pythonName(cell->name) : pythonName(cell->name) + "_" + pythonName(port.name), variables);
    }
    for (const graph::HyperParameter& hyper : m_graph.hyper)
        m_hyperAttributes[hyper.name] = uniqueName(m_hyperNames.at(hyper.name), attributes);
    return {};
}

Result<std::string> ClassWriter::variable(const Endpoint& end) const {
    const auto found = m_variables.find({end.cell, end.port});
    if (found != m_variables.end()) return found->second;
    return fail("A wire starts at the output " + inQuotes(end.port) + ", which this cell does not have.", {}, end.cell);
}

Result<std::vector<std::string>> ClassWriter::arguments(const Placed& placed) const {
    std::vector<std::string> out;
    std::size_t wired = 0;
    for (const catalog::PortDef& port : placed.inputs) {
        const auto feeds = feedsOf(placed.cell->name);
        const auto found = std::find_if(feeds.begin(), feeds.end(), [&](const auto& feed) { return feed.first == port.name; });
        if (found == feeds.end()) {
            if (!port.isOptional) return fail("The input " + port.name + " has no wire.", "Wire something to it.", placeOf(*placed.cell));
            out.push_back("None");
            continue;
        }
        CELLOOM_TRY(name, variable(found->second));
        out.push_back(std::move(name));
        wired = out.size();
    }
    out.resize(wired);
    return out;
}

Result<std::string> ClassWriter::number(const Cell& cell, const std::string& param, const graph::ParamValue& value, bool isWhole,
                                        bool isInConstruct) {
    const auto* text = std::get_if<std::string>(&value);
    if (!text) return pythonValue(value);
    const NameOf nameOf = [&](const std::string& hyper) {
        if (!m_hyperNames.contains(hyper)) return pythonName(hyper);
        if (!isInConstruct) return m_hyperNames.at(hyper);
        m_usedInConstruct.insert(hyper);
        return "self." + m_hyperAttributes.at(hyper);
    };
    auto out = pythonExpression(*text, m_scope, isWhole, nameOf, m_needs);
    if (!out) return fail(out.error().message, {}, placeOf(cell) + ", " + param);
    return out;
}

Result<std::string> ClassWriter::valueOf(const Placed& placed, const std::string& param, bool isInConstruct) {
    const auto def = std::find_if(placed.type->params.begin(), placed.type->params.end(),
                                  [&](const catalog::ParamDef& one) { return one.name == param; });
    CELLOOM_CHECK(def != placed.type->params.end());
    const auto given = placed.cell->params.find(param);
    const graph::ParamValue& value = given == placed.cell->params.end() ? *def->standard : given->second;
    switch (def->kind) {
    case catalog::ParamKind::Integer:
        return number(*placed.cell, param, value, true, isInConstruct);
    case catalog::ParamKind::Real:
        return number(*placed.cell, param, value, false, isInConstruct);
    case catalog::ParamKind::IntegerList: {
        std::string out;
        for (const std::string& item : listItems(std::get<std::string>(value))) {
            CELLOOM_TRY(one, number(*placed.cell, param, item, true, isInConstruct));
            out += (out.empty() ? "" : ", ") + one;
        }
        return "[" + out + "]";
    }
    case catalog::ParamKind::Flag: // or the name of a hyper-parameter
        return number(*placed.cell, param, value, false, isInConstruct);
    default:
        return pythonValue(value);
    }
}

} // namespace celloom::code
