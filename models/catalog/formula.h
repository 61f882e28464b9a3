// The formula of an Expression cell: element by element over in0, in1, …, written as Python writes it. Bounded, no LibTorch: the engine
// computes it node by node, the code writers print it, the cost rule counts it.
// Grammar, loosest first: a < b (and <= > >= == !=, inside where() alone), + -, * /, unary -, ** (to the right), numbers, names, f(x, …), (
// ).
#pragma once

#include "models/base/result.h"

#include <string>
#include <vector>

namespace celloom::catalog {

struct Formula {
    enum class Op {
        Input,
        Number,
        Negate,
        Exp,
        Log,
        Sqrt,
        Abs,
        Sin,
        Cos,
        Tanh,
        Sigmoid,
        Relu,
        Add,
        Subtract,
        Multiply,
        Divide,
        Power,
        Maximum,
        Minimum,
        Less,
        LessEqual,
        Greater,
        GreaterEqual,
        Equal,
        NotEqual,
        Where
    };
    struct Node {
        Op op = Op::Number;
        double number = 0;   // of a Number
        int input = 0;       // of an Input
        std::vector<int> of; // operands, by their place in `nodes`; always earlier ones
    };
    /// Operands before what uses them; the last one is the result. What holds numbers alone is worked out already, so that every node but a
    /// Number depends on an input.
    std::vector<Node> nodes;
};

inline constexpr std::size_t kMaxFormulaBytes = 4000, kMaxFormulaNodes = 400;
inline constexpr int kMaxFormulaDepth = 50;

/// Fails with the character where it cannot go on; also where one of the `inputs` ports in0, in1, … is not used, or another is named.
Result<Formula> readFormula(const std::string& text, int inputs);

/// "exp", "maximum"; of operators their sign. As the formula writes it.
const char* nameOf(Formula::Op op);
[[nodiscard]] bool isComparison(Formula::Op op);
[[nodiscard]] bool isInfix(Formula::Op op); // stands between its two operands

} // namespace celloom::catalog
