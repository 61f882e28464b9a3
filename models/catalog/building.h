// What the families of cells share: entries of the catalogue as short tables, and the shape checks that most rules need.
#pragma once

#include "models/catalog/catalog.h"

namespace celloom::catalog {

using graph::CellInstance;
using graph::Dim;
using graph::Shape;
using graph::WeightSpec;
using Shapes = Result<std::vector<Shape>>;

// One function a family; each appends its cells.
void addDense(std::vector<CellType>& out);
void addAttention(std::vector<CellType>& out);
void addNormalisation(std::vector<CellType>& out);
void addActivation(std::vector<CellType>& out);
void addStructure(std::vector<CellType>& out);
void addShape(std::vector<CellType>& out);
void addArithmetic(std::vector<CellType>& out);
void addImage(std::vector<CellType>& out);
void addRouting(std::vector<CellType>& out);
void addOutput(std::vector<CellType>& out);
void addCustom(std::vector<CellType>& out);

inline ParamDef integerParam(std::string name, double minimum, std::string help, std::string helpZh,
                             std::optional<graph::ParamValue> standard = {}) {
    return {std::move(name), ParamKind::Integer, std::move(standard), minimum, 1e9, {}, {}, std::move(help), std::move(helpZh)};
}
inline ParamDef realParam(std::string name, double standard, double minimum, double maximum, std::string help, std::string helpZh) {
    return {std::move(name), ParamKind::Real, standard, minimum, maximum, {}, {}, std::move(help), std::move(helpZh)};
}
inline ParamDef flagParam(std::string name, bool standard, std::string help, std::string helpZh) {
    return {std::move(name), ParamKind::Flag, standard, -1e300, 1e300, {}, {}, std::move(help), std::move(helpZh)};
}
inline ParamDef choiceParam(std::string name, std::vector<std::string> choices, std::string help, std::string helpZh) {
    graph::ParamValue first = choices.front();
    return {std::move(name), ParamKind::Choice, std::move(first), -1e300, 1e300, std::move(choices), {},
            std::move(help), std::move(helpZh)};
}

/// A list of whole numbers as text; `maximum` of each.
inline ParamDef listParam(std::string name, double minimum, double maximum, std::optional<graph::ParamValue> standard, std::string help,
                          std::string helpZh) {
    return {std::move(name), ParamKind::IntegerList, std::move(standard), minimum, maximum, {}, {}, std::move(help), std::move(helpZh)};
}
/// A dimension by its number, from the front or, below 0, from the end.
inline ParamDef axisParam(std::string name, std::int64_t standard, std::string help, std::string helpZh) {
    return {std::move(name), ParamKind::Integer, standard, -8, 7, {}, {}, std::move(help), std::move(helpZh)};
}

inline Dim fixed(std::int64_t number) {
    return {number, ""};
}
/// Numbers in a tensor of these dimensions; beyond 64 bits the largest number there is.
std::int64_t sizeOf(const std::vector<std::int64_t>& dims);

/// Fails unless the last dimension of `shape` is `expected`: names the port, both shapes and the parameter.
Status expectLast(const std::string& port, const Shape& shape, std::int64_t expected, const std::string& param);
Status expectSame(const std::string& portA, const Shape& a, const std::string& portB, const Shape& b);

/// The dimension of the first input that a parameter names, counted from the front.
Result<std::size_t> axisOf(const RuleInput& in, const char* param);

/// NumPy's broadcasting: dimensions from the last one on are equal, or one of both is 1. Symbols are equal to themselves alone.
Result<Shape> broadcast(const std::string& portA, const Shape& a, const std::string& portB, const Shape& b);

/// "in0", "in1", …
std::vector<PortDef> numbered(const char* prefix, std::size_t count);

/// Rule, cost of a cell that changes each number by itself: one input, one output of the same shape.
Shapes sameShape(const RuleInput& in);
std::function<CellCost(const CellInstance&, const Sizes&, const Sizes&)> elementwiseCost(double flopsPerValue, std::vector<int> keptInputs,
                                                                                         std::vector<int> keptOutputs = {});

} // namespace celloom::catalog
