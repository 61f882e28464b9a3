// Cells that give numbers another shape or another place: Reshape, Transpose, Flatten, Slice; and Parameter, a learned tensor.
#include "models/base/text.h"
#include "models/catalog/building.h"

#include <algorithm>
#include <set>

namespace celloom::catalog {
namespace {

constexpr std::size_t kMaxRank = 8;

CellType moving(const char* name, const char* summary, const char* summaryZh) {
    CellType type;
    type.name = name;
    type.category = "Structure";
    type.summary = summary;
    type.summaryZh = summaryZh;
    type.inputs = {{"x"}};
    type.outputs = {{"out"}};
    return type;
}

/// Nothing is computed and nothing moves: the same memory under another shape.
CellCost viewCost(const CellInstance&, const Sizes&, const Sizes&) {
    CellCost cost;
    cost.areOutputsViews = cost.passesGradient = true;
    return cost;
}

/// What dimensions multiply to: a number, and the symbols in it.
struct Product {
    std::int64_t number = 1;
    std::multiset<std::string> symbols;
    void multiply(const Dim& dim) {
        number = sizeOf({number, dim.number});
        if (!dim.symbol.empty()) symbols.insert(dim.symbol);
    }
    [[nodiscard]] std::string text() const {
        std::string out;
        for (const std::string& symbol : symbols) out += (out.empty() ? "" : " · ") + symbol;
        return number == 1 && !out.empty() ? out : std::to_string(number) + (out.empty() ? "" : " · " + out);
    }
};

Product productOf(const Shape& shape, std::size_t from, std::size_t to) {
    Product out;
    for (std::size_t i = from; i < to; ++i) out.multiply(shape[i]);
    return out;
}

Shapes reshapeRule(const RuleInput& in) {
    const Shape& x = in.inputs[0];
    const std::string place = "shape";
    const auto wrong = [&](const std::string& why, const std::string& hint) {
        return fail("x is " + graph::toString(x) + ", but shape = " + in.cell.text("shape") + " " + why, hint, place);
    };
    const Product all = productOf(x, 0, x.size());
    Product given;
    Shape out;
    std::optional<std::size_t> rest; // the dimension that is worked out
    for (const std::int64_t size : in.cell.integers("shape")) {
        const std::size_t at = out.size();
        if (size == 0 && at >= x.size())
            return wrong("keeps dimension " + std::to_string(at) + ", which x does not have.", "Write its size instead of 0.");
        if (size < 0) rest = at;
        out.push_back(size == 0 ? x[at] : fixed(size < 0 ? 1 : size));
        given.multiply(out.back());
    }
    if (!rest) {
        if (given.number == all.number && given.symbols == all.symbols) return std::vector<Shape>{out};
        return wrong("holds " + given.text() + " numbers, x " + all.text() + ".",
                     "Change shape so that both hold as many; -1 works one dimension out, 0 keeps that of x.");
    }
    Product left = all;
    bool isPart = given.number > 0 && all.number % given.number == 0;
    for (const std::string& symbol : given.symbols) {
        const auto found = left.symbols.find(symbol);
        isPart = isPart && found != left.symbols.end();
        if (found != left.symbols.end()) left.symbols.erase(found);
    }
    if (!isPart)
        return wrong("holds " + given.text() + " numbers besides the -1, which do not divide the " + all.text() + " of x.",
                     "Change shape.");
    if (left.symbols.size() > 1)
        return wrong("makes one dimension of " + left.text() + "; a dimension has one symbol at most.", "Keep one of them with 0.");
    out[*rest] = {all.number / given.number, left.symbols.empty() ? "" : *left.symbols.begin()};
    return std::vector<Shape>{out};
}

CellType reshape() {
    CellType type = moving("Reshape", "The same numbers in the same order under another shape.", "数不变、顺序不变，换一个形状。");
    type.params = {
        listParam("shape", -1, 1e12, {},
                  "The new shape: sizes in order; 0 keeps the dimension of x at that place, one -1 is worked out. 0, 0, 8, 64 parts [B, T, "
                  "512] into heads.",
                  "新形状：依次写各维大小；0 保留 x 该位置的维，可有一个 -1 由其余推出。0, 0, 8, 64 把 [B, T, 512] 分成多个头。")};
    type.check = [](const CellInstance& cell) -> Status {
        const auto sizes = cell.integers("shape");
        if (std::count(sizes.begin(), sizes.end(), -1) > 1)
            return fail("shape = " + cell.text("shape") + " has more than one -1.", "Only one dimension can be worked out.", "shape");
        if (sizes.size() > kMaxRank) return fail("shape has " + std::to_string(sizes.size()) + " dimensions.", "Give 8 at most.", "shape");
        return {};
    };
    type.shapeRule = reshapeRule;
    type.cost = viewCost;
    return type;
}

CellType flatten() {
    CellType type = moving("Flatten", "Neighbouring dimensions become one: [B, C, H, W] becomes [B, C · H · W].",
                           "把相邻的几维合成一维：[B, C, H, W] 变为 [B, C · H · W]。");
    type.params = {
        axisParam("start_dim", 1, "The first dimension that goes into it; -1 is the last.", "参与合并的第一维；-1 为最后一维。"),
        axisParam("end_dim", -1, "The last dimension that goes into it; -1 is the last.", "参与合并的最后一维；-1 为最后一维。")};
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        const Shape& x = in.inputs[0];
        CELLOOM_TRY(from, axisOf(in, "start_dim"));
        CELLOOM_TRY(to, axisOf(in, "end_dim"));
        if (from > to)
            return fail("start_dim = " + std::to_string(in.cell.integer("start_dim")) +
                            " comes after end_dim = " + std::to_string(in.cell.integer("end_dim")) + " in " + graph::toString(x) + ".",
                        "Exchange them.", "start_dim");
        const Product one = productOf(x, from, to + 1);
        if (one.symbols.size() > 1)
            return fail("x is " + graph::toString(x) + "; its dimensions " + std::to_string(from) + " to " + std::to_string(to) +
                            " would be " + one.text() + ", a dimension has one symbol at most.",
                        "Begin later with start_dim.", "start_dim");
        Shape out(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(from));
        out.push_back({one.number, one.symbols.empty() ? "" : *one.symbols.begin()});
        out.insert(out.end(), x.begin() + static_cast<std::ptrdiff_t>(to) + 1, x.end());
        return std::vector<Shape>{out};
    };
    type.cost = viewCost;
    return type;
}

CellType transpose() {
    CellType type = moving("Transpose", "The dimensions in another order.", "改变各维的顺序。");
    type.params = {listParam("perm", -8, 7, {},
                             "For each dimension of out the one of x that it is: 0, 2, 1 exchanges the last two of three.",
                             "输出的每一维取自 x 的哪一维：0, 2, 1 交换三维中的后两维。")};
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        const Shape& x = in.inputs[0];
        const auto perm = in.cell.integers("perm");
        const auto rank = static_cast<std::int64_t>(x.size());
        Shape out;
        std::set<std::int64_t> seen;
        for (const std::int64_t axis : perm) {
            const std::int64_t from = axis < 0 ? axis + rank : axis;
            if (from < 0 || from >= rank || !seen.insert(from).second) break;
            out.push_back(x[static_cast<std::size_t>(from)]);
        }
        if (out.size() == x.size() && perm.size() == x.size()) return std::vector<Shape>{out};
        return fail("x is " + graph::toString(x) + ", but perm = " + in.cell.text("perm") + " does not name each of its " +
                        std::to_string(rank) + " dimensions once.",
                    "Give the numbers 0 to " + std::to_string(rank - 1) + ", each once.", "perm");
    };
    type.cost = [](const CellInstance&, const Sizes&, const Sizes&) { return CellCost{}; };
    return type;
}

CellType slice() {
    CellType type = moving("Slice", "A range, or one place, of a dimension.", "取某一维的一段，或其中一个位置。");
    type.params = {axisParam("axis", -1, "The dimension; -1 is the last.", "所取的维；-1 为最后一维。"),
                   choiceParam("kind", {"range", "index"},
                               "range: from begin to before end. index: the one place begin, and the dimension goes.",
                               "range：从 begin 到 end 之前。index：只取 begin 一处，该维消失。"),
                   integerParam("begin", -1e12, "The first place taken, from 0; below 0 it counts from the end.",
                                "取的第一个位置，从 0 数起；负数从末尾数。", std::int64_t(0)),
                   integerParam("end", -1e12, "range: the place to stop before; 0 is the end, below 0 it counts from the end.",
                                "range：在此位置之前停止；0 为末尾，负数从末尾数。", std::int64_t(0)),
                   integerParam("step", 1, "range: every so many places.", "range：每隔几个位置取一个。", std::int64_t(1))};
    for (ParamDef& param : type.params)
        if (param.name != "axis") param.maximum = 1e12;
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        const Shape& x = in.inputs[0];
        CELLOOM_TRY(axis, axisOf(in, "axis"));
        const Dim& dim = x[axis];
        const bool isIndex = in.cell.text("kind") == "index", isKnown = dim.symbol.empty();
        std::int64_t begin = in.cell.integer("begin"), end = isIndex ? begin + 1 : in.cell.integer("end");
        const std::int64_t step = in.cell.integer("step");
        Shape out = x;
        const std::string what = "x is " + graph::toString(x) + ", but its dimension " + std::to_string(axis);
        if (isIndex && !isKnown) { // whether it is there is seen when it runs
            out.erase(out.begin() + static_cast<std::ptrdiff_t>(axis));
        } else if (isKnown) {
            if (begin < 0) begin += dim.number;
            if (isIndex)
                end = begin + 1;
            else if (end <= 0)
                end += dim.number;
            if (begin < 0 || begin >= dim.number)
                return fail(what + " has no place " + std::to_string(in.cell.integer("begin")) + ".",
                            "Give begin from " + std::to_string(-dim.number) + " to " + std::to_string(dim.number - 1) + ".", "begin");
            if (end > dim.number)
                return fail(what + " ends before end = " + std::to_string(in.cell.integer("end")) + ".",
                            "Give " + std::to_string(dim.number) + " at most, or 0 for its end.", "end");
            if (end <= begin)
                return fail(what + " has nothing between begin = " + std::to_string(in.cell.integer("begin")) +
                                " and end = " + std::to_string(in.cell.integer("end")) + ".",
                            "Give an end behind begin.", "end");
            if (isIndex)
                out.erase(out.begin() + static_cast<std::ptrdiff_t>(axis));
            else
                out[axis] = fixed((end - begin + step - 1) / step);
        } else if (begin == 0 && end == 0 && step == 1) {
            return std::vector<Shape>{x};
        } else {
            if ((begin < 0) != (end <= 0))
                return fail(
                    what + " is a symbol: a range that counts one side from the front and one from the end has no length that is a number.",
                    "Count both from the same side.", "end");
            if (end <= begin)
                return fail(what + " has nothing between begin = " + std::to_string(begin) + " and end = " + std::to_string(end) + ".",
                            "Give an end behind begin.", "end");
            out[axis] = fixed((end - begin + step - 1) / step);
        }
        if (out.empty())
            return fail("x is " + graph::toString(x) + "; an index of its only dimension leaves none.", "Take a range of one place.",
                        "kind");
        return std::vector<Shape>{out};
    };
    type.cost = [](const CellInstance&, const Sizes&, const Sizes&) {
        CellCost cost;
        cost.areOutputsViews = true; // its gradient is as large as x
        return cost;
    };
    return type;
}

CellType parameter() {
    CellType type =
        moving("Parameter", "A learned tensor: a class token, positions, a scale. With like wired, one for each of its rows: [B, …].",
               "可学习的张量：分类标记、位置向量、缩放系数等。接上 like 时按其行数重复：[B, …]。");
    type.inputs = {{"like", true}};
    type.params = {listParam("shape", 1, 1e12, {}, "Its shape, without the rows of like.", "形状，不含 like 的行数。"),
                   choiceParam("init", {"normal", "zeros", "ones"}, "What it begins with; normal has the recipe's standard deviation.",
                               "初始值；normal 用配方中的标准差。")};
    type.check = [](const CellInstance& cell) -> Status {
        if (cell.integers("shape").size() < kMaxRank) return {};
        return fail("shape = " + cell.text("shape") + " has 8 dimensions or more.", "Give 7 at most.", "shape");
    };
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        Shape out;
        if (!in.inputs[0].empty()) out.push_back(in.inputs[0].front());
        for (const std::int64_t size : in.cell.integers("shape")) out.push_back(fixed(size));
        return std::vector<Shape>{out};
    };
    type.weights = [](const CellInstance& cell) {
        const std::string& init = cell.text("init");
        const auto kind = init == "zeros" ? WeightSpec::Init::Zeros : init == "ones" ? WeightSpec::Init::Ones : WeightSpec::Init::Normal;
        return std::vector<WeightSpec>{{"weight", cell.integers("shape"), kind}};
    };
    type.cost = [](const CellInstance&, const Sizes&, const Sizes&) {
        CellCost cost;
        cost.weightOutput = 0;
        return cost;
    };
    return type;
}

} // namespace

void addShape(std::vector<CellType>& out) {
    out.push_back(reshape());
    out.push_back(flatten());
    out.push_back(transpose());
    out.push_back(slice());
    out.push_back(parameter());
}

} // namespace celloom::catalog
