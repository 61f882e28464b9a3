// Arithmetic between wires: Add, Subtract, Multiply, Divide, MatMul, Expression, ReduceSum, ReduceMean, ReduceMax.
#include "engine/cells/cell.h"
#include "engine/kernels/linear.h"
#include "models/catalog/formula.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/log.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/where.h>

#include <optional>

namespace celloom::engine {
namespace {

using catalog::Formula;

at::Tensor add(const at::Tensor& a, const at::Tensor& b) {
    return a + b;
}
at::Tensor subtract(const at::Tensor& a, const at::Tensor& b) {
    return a - b;
}
at::Tensor multiply(const at::Tensor& a, const at::Tensor& b) {
    return a * b;
}
at::Tensor divide(const at::Tensor& a, const at::Tensor& b) {
    return a / b;
}

template <at::Tensor (*function)(const at::Tensor&, const at::Tensor&)> class Pair final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override {
        return {function(inputs[0], inputs[1])};
    }
};

class MatMul final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override {
        const auto side = [&](const at::Tensor& x, const char* flag) {
            const at::Tensor wide = kernels::multipliesInFloat(x) ? x.to(at::kFloat) : x;
            return instance().flag(flag) ? wide.transpose(-1, -2) : wide;
        };
        return {at::matmul(side(inputs[0], "transpose_a"), side(inputs[1], "transpose_b")).to(inputs[0].scalar_type())};
    }
};

/// Sums of a half type add up in float32, as LibTorch does by itself.
class Reduce final : public Cell {
public:
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override {
        const auto axis = instance().integers("axis");
        const bool keeps = instance().flag("keep_dims");
        const std::string& type = instance().type;
        if (type == "ReduceMax") return {at::amax(inputs[0], axis, keeps)};
        return {type == "ReduceSum" ? at::sum(inputs[0], at::OptionalIntArrayRef(axis), keeps)
                                    : at::mean(inputs[0], at::OptionalIntArrayRef(axis), keeps)};
    }
};

/// The formula, node by node. Numbers are scalars, so that they widen no type.
class Expression final : public Cell {
public:
    explicit Expression(const graph::CellInstance& instance)
        : Cell(instance), m_formula(*catalog::readFormula(instance.text("formula"), static_cast<int>(instance.integer("inputs")))) {}

    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext&) override {
        std::vector<at::Tensor> values;
        for (const Formula::Node& node : m_formula.nodes) values.push_back(valueOf(node, values, inputs));
        return {values.back()};
    }

private:
    at::Tensor valueOf(const Formula::Node& node, const std::vector<at::Tensor>& values, const std::vector<at::Tensor>& inputs) const {
        using Op = Formula::Op;
        const auto of = [&](std::size_t i) { return values[static_cast<std::size_t>(node.of[i])]; };
        const auto number = [&](std::size_t i) { // of a Number operand
            const Formula::Node& operand = m_formula.nodes[static_cast<std::size_t>(node.of[i])];
            return operand.op == Op::Number ? std::optional(operand.number) : std::nullopt;
        };
        switch (node.op) {
        case Op::Input:
            return inputs[static_cast<std::size_t>(node.input)];
        case Op::Number:
            return at::scalar_tensor(node.number, inputs[0].options()); // without dimensions: takes the others' type
        case Op::Negate:
            return -of(0);
        case Op::Exp:
            return at::exp(of(0));
        case Op::Log:
            return at::log(of(0));
        case Op::Sqrt:
            return at::sqrt(of(0));
        case Op::Abs:
            return at::abs(of(0));
        case Op::Sin:
            return at::sin(of(0));
        case Op::Cos:
            return at::cos(of(0));
        case Op::Tanh:
            return at::tanh(of(0));
        case Op::Sigmoid:
            return at::sigmoid(of(0));
        case Op::Relu:
            return at::relu(of(0));
        case Op::Add:
            return number(1) ? of(0) + *number(1) : of(0) + of(1);
        case Op::Subtract:
            return number(1) ? of(0) - *number(1) : of(0) - of(1);
        case Op::Multiply:
            return number(1) ? of(0) * *number(1) : number(0) ? of(1) * *number(0) : of(0) * of(1);
        case Op::Divide:
            return number(1) ? of(0) / *number(1) : of(0) / of(1);
        case Op::Power:
            if (number(1)) return at::pow(of(0), *number(1));
            return number(0) ? at::pow(at::Scalar(*number(0)), of(1)) : at::pow(of(0), of(1));
        case Op::Maximum:
            return at::maximum(of(0), of(1));
        case Op::Minimum:
            return at::minimum(of(0), of(1));
        case Op::Less:
            return of(0) < of(1);
        case Op::LessEqual:
            return of(0) <= of(1);
        case Op::Greater:
            return of(0) > of(1);
        case Op::GreaterEqual:
            return of(0) >= of(1);
        case Op::Equal:
            return of(0) == of(1);
        case Op::NotEqual:
            return of(0) != of(1);
        case Op::Where:
            return at::where(of(0), of(1), of(2));
        }
        return {};
    }

    Formula m_formula;
};

} // namespace

void addArithmeticCells(CellRegistry& registry) {
    registry.add<Pair<add>>("Add");
    registry.add<Pair<subtract>>("Subtract");
    registry.add<Pair<multiply>>("Multiply");
    registry.add<Pair<divide>>("Divide");
    registry.add<MatMul>("MatMul");
    registry.add<Expression>("Expression");
    for (const char* type : {"ReduceSum", "ReduceMean", "ReduceMax"}) registry.add<Reduce>(type);
}

} // namespace celloom::engine
