#include "models/catalog/catalog.h"

#include "models/catalog/building.h"

#include <algorithm>
#include <map>

namespace celloom::catalog {

const std::vector<CellType>& all() {
    static const std::vector<CellType> list = [] {
        std::vector<CellType> out;
        addDense(out);
        addAttention(out);
        addNormalisation(out);
        addActivation(out);
        addStructure(out);
        addShape(out);
        addArithmetic(out);
        addImage(out);
        addRouting(out);
        addOutput(out);
        addCustom(out);
        std::sort(out.begin(), out.end(),
                  [](const CellType& a, const CellType& b) { return std::tie(a.category, a.name) < std::tie(b.category, b.name); });
        return out;
    }();
    return list;
}

const CellType* find(const std::string& name) {
    static const std::map<std::string, const CellType*> index = [] {
        std::map<std::string, const CellType*> out;
        for (const CellType& type : all()) CELLOOM_CHECK(out.emplace(type.name, &type).second);
        return out;
    }();
    const auto found = index.find(name);
    return found == index.end() ? nullptr : found->second;
}

std::vector<PortDef> inputPorts(const CellType& type, const CellInstance& cell) {
    return type.inputsOf ? type.inputsOf(cell) : type.inputs;
}
std::vector<PortDef> outputPorts(const CellType& type, const CellInstance& cell) {
    return type.outputsOf ? type.outputsOf(cell) : type.outputs;
}

std::int64_t sizeOf(const std::vector<std::int64_t>& dims) {
    std::int64_t out = 1;
    for (const std::int64_t dim : dims)
        if (__builtin_mul_overflow(out, dim, &out)) return INT64_MAX;
    return out;
}

Status expectLast(const std::string& port, const Shape& shape, std::int64_t expected, const std::string& param) {
    if (!shape.empty() && shape.back() == fixed(expected)) return {};
    const bool canFollow = !shape.empty() && shape.back().symbol.empty();
    return fail(port + " is " + graph::toString(shape) + ", but " + param + " = " + std::to_string(expected) + " expects [..., " +
                    std::to_string(expected) + "].",
                canFollow ? "Set " + param + " to " + std::to_string(shape.back().number) + ", or change what feeds " + port + "."
                          : "Change what feeds " + port + ".",
                param);
}

Status expectSame(const std::string& portA, const Shape& a, const std::string& portB, const Shape& b) {
    if (a == b) return {};
    return fail(portA + " is " + graph::toString(a) + " and " + portB + " is " + graph::toString(b) + "; both must have one shape.",
                "Change the cells that feed them so that they agree.");
}

Result<std::size_t> axisOf(const RuleInput& in, const char* param) {
    const std::int64_t axis = in.cell.integer(param), rank = static_cast<std::int64_t>(in.inputs[0].size());
    if (axis >= -rank && axis < rank) return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
    return fail("x is " + graph::toString(in.inputs[0]) + ", which has no axis " + std::to_string(axis) + " (" + param + ").",
                "Give one from " + std::to_string(-rank) + " to " + std::to_string(rank - 1) + ".", param);
}

Result<Shape> broadcast(const std::string& portA, const Shape& a, const std::string& portB, const Shape& b) {
    Shape out = a.size() < b.size() ? b : a;
    const Shape& other = a.size() < b.size() ? a : b;
    const std::size_t offset = out.size() - other.size();
    for (std::size_t i = 0; i < other.size(); ++i) {
        Dim& dim = out[offset + i];
        if (dim == other[i] || other[i] == fixed(1)) continue;
        if (dim != fixed(1))
            return fail(portA + " is " + graph::toString(a) + " and " + portB + " is " + graph::toString(b) +
                            "; counted from the end, dimension " + std::to_string(other.size() - i) + " differs and is 1 in neither.",
                        "Change the cells that feed them so that they agree.");
        dim = other[i];
    }
    return out;
}

std::vector<PortDef> numbered(const char* prefix, std::size_t count) {
    std::vector<PortDef> ports;
    for (std::size_t i = 0; i < count; ++i) ports.push_back({prefix + std::to_string(i)});
    return ports;
}

Shapes sameShape(const RuleInput& in) {
    return std::vector<Shape>{in.inputs[0]};
}

std::function<CellCost(const CellInstance&, const Sizes&, const Sizes&)> elementwiseCost(double flopsPerValue, std::vector<int> keptInputs,
                                                                                         std::vector<int> keptOutputs) {
    return [=](const CellInstance&, const Sizes&, const Sizes& outputs) {
        return CellCost{flopsPerValue * static_cast<double>(sizeOf(outputs[0])), keptInputs, keptOutputs, 0};
    };
}

} // namespace celloom::catalog
