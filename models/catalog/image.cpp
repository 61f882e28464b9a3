// Cells over images [B, C, H, W]: Conv2d, BatchNorm2d, MaxPool2d, AvgPool2d. C, H and W are plain numbers.
#include "models/base/capped.h"
#include "models/base/text.h"
#include "models/catalog/building.h"
#include "models/catalog/windows.h"

#include <algorithm>

namespace celloom::catalog {
namespace {

constexpr double kMaxWindow = 1e6; // of kernel, stride, padding and dilation: their products stay far below 2^63

Window::Pair pairOf(const CellInstance& cell, const char* name) {
    const auto list = cell.integers(name);
    return {list.front(), list.back()};
}

ParamDef pairParam(const char* name, double minimum, std::optional<graph::ParamValue> standard, std::string help, std::string helpZh) {
    return {name, ParamKind::IntegerList, std::move(standard), minimum, kMaxWindow, {}, {}, std::move(help), std::move(helpZh)};
}

Status expectCount(const CellInstance& cell, const char* name, bool mayBeFour = false) {
    const std::size_t count = cell.integers(name).size();
    if (count == 1 || count == 2 || (mayBeFour && count == 4)) return {};
    return fail(std::string(name) + " has " + std::to_string(count) + " numbers.",
                mayBeFour ? "Give one, two (height, width) or four (top, bottom, left, right)." : "Give one, or two: height, width.", name);
}

Status expectImage(const Shape& x) {
    const bool isImage = x.size() == 4 && x[1].symbol.empty() && x[2].symbol.empty() && x[3].symbol.empty();
    if (isImage) return {};
    return fail("x is " + graph::toString(x) + ", expected an image [B, C, H, W] with numbers for C, H and W.",
                x.size() == 4 ? "Give the graph's input its channels, height and width as numbers."
                              : "Put a Reshape between them, or change what feeds x.");
}

/// [B, channels, windows down, windows across].
Shapes slide(const RuleInput& in, std::int64_t channels) {
    const Shape& x = in.inputs[0];
    const Window window = windowOf(in.cell, x[2].number, x[3].number);
    Shape out = x;
    out[1] = fixed(channels);
    for (std::size_t side = 0; side < 2; ++side) {
        const std::int64_t size = x[side + 2].number, count = window.count(side, size);
        if (count < 1)
            return fail("x is " + graph::toString(x) + ", but kernel_size = " + in.cell.text("kernel_size") + " reaches over " +
                            std::to_string(window.reach(side)) + " numbers; " + (side == 0 ? "the height" : "the width") + " has " +
                            std::to_string(size + window.before[side] + window.after[side]) + " with its padding.",
                        "Give a smaller kernel_size, more padding, or a larger image.", "kernel_size");
        out[side + 2] = fixed(count);
    }
    return std::vector<Shape>{out};
}

std::string channelsText(const Shape& x, const CellInstance& cell, const char* name) {
    return "x is " + graph::toString(x) + ", but " + name + " = " + std::to_string(cell.integer(name)) + " expects [B, " +
           std::to_string(cell.integer(name)) + ", H, W].";
}

Status expectChannels(const Shape& x, const CellInstance& cell, const char* name) {
    CELLOOM_TRY_STATUS(expectImage(x));
    if (x[1].number == cell.integer(name)) return {};
    return fail(channelsText(x, cell, name),
                "Set " + std::string(name) + " to " + std::to_string(x[1].number) + ", or change what feeds x.", name);
}

Status checkConv(const CellInstance& cell) {
    for (const char* name : {"kernel_size", "stride", "dilation"}) CELLOOM_TRY_STATUS(expectCount(cell, name));
    CELLOOM_TRY_STATUS(expectCount(cell, "padding", true));
    const auto padding = cell.integers("padding");
    if (cell.text("pad_mode") != "pad" && std::any_of(padding.begin(), padding.end(), [](std::int64_t number) { return number != 0; }))
        return fail("padding = " + cell.text("padding") + ", but pad_mode " + cell.text("pad_mode") + " works its padding out itself.",
                    "Set pad_mode to pad, or padding to 0.", "padding");
    const std::int64_t group = cell.integer("group");
    for (const char* name : {"in_channels", "out_channels"})
        if (cell.integer(name) % group != 0)
            return fail(std::string(name) + " = " + std::to_string(cell.integer(name)) +
                            " does not part into group = " + std::to_string(group) + " equal groups.",
                        "Give a group that divides in_channels and out_channels.", "group");
    return {};
}

CellType conv2d() {
    CellType type;
    type.name = "Conv2d";
    type.category = "Image";
    type.summary =
        "Slides learned kernels over an image [B, C, H, W]: each output channel is a weighted sum of a window in every input channel.";
    type.summaryZh = "让可学习的卷积核滑过图像 [B, C, H, W]：每个输出通道是各输入通道窗口的加权和。";
    type.inputs = {{"x"}};
    type.outputs = {{"out"}};
    type.amp = {.isHalfAtO1 = true, .atAuto = AmpTraits::Auto::Half};
    type.params = {
        integerParam("in_channels", 1, "Channels of x.", "x 的通道数。"),
        integerParam("out_channels", 1, "Channels of out.", "输出的通道数。"),
        pairParam("kernel_size", 1, {}, "Size of a kernel: one number, or height, width.", "卷积核大小：一个数，或“高, 宽”。"),
        pairParam("stride", 1, "1", "Steps from window to window: one number, or height, width.", "窗口移动的步长：一个数，或“高, 宽”。"),
        choiceParam("pad_mode", {"pad", "same", "valid"},
                    "pad: zeros as padding says. same: as many that out has ⌈size / stride⌉ windows, an odd one below and on the right. "
                    "valid: none.",
                    "pad：按 padding 补零。same：补到输出为 ⌈大小 / 步长⌉ 个窗口，多出的一个补在下边和右边。valid：不补。"),
        pairParam("padding", 0, "0", "Zeros around the image: one number, or height, width, or top, bottom, left, right.",
                  "图像四周补的零：一个数，或“高, 宽”，或“上, 下, 左, 右”。"),
        pairParam("dilation", 1, "1", "Distance of a kernel's numbers in the image: one number, or height, width.",
                  "卷积核各元素在图像中的间距：一个数，或“高, 宽”。"),
        integerParam("group", 1, "Channels part into so many groups, each with kernels of its own.", "通道分成的组数，每组有自己的卷积核。",
                     std::int64_t(1)),
        flagParam("has_bias", false, "Add a learned bias.", "是否加可学习的偏置。")};
    type.check = checkConv;
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        CELLOOM_TRY_STATUS(expectChannels(in.inputs[0], in.cell, "in_channels"));
        return slide(in, in.cell.integer("out_channels"));
    };
    type.weights = [](const CellInstance& cell) {
        const Window::Pair kernel = pairOf(cell, "kernel_size");
        const std::int64_t out = cell.integer("out_channels");
        std::vector<WeightSpec> weights{
            {"weight", {out, cell.integer("in_channels") / cell.integer("group"), kernel[0], kernel[1]}, WeightSpec::Init::FanIn}};
        if (cell.flag("has_bias")) weights.push_back({"bias", {out}, WeightSpec::Init::Zeros});
        return weights;
    };
    type.cost = [](const CellInstance& cell, const Sizes& inputs, const Sizes& outputs) {
        const Window::Pair kernel = pairOf(cell, "kernel_size");
        const double perValue =
            2.0 * static_cast<double>(sizeOf({kernel[0], kernel[1], cell.integer("in_channels") / cell.integer("group")})) +
            (cell.flag("has_bias") ? 1 : 0);
        CellCost cost{perValue * static_cast<double>(sizeOf(outputs[0])), {0}, {}, 0};
        cost.keptForWeights = {0};
        const auto& x = inputs[0];
        const Window window = windowOf(cell, x[2], x[3]);
        if (!window.isSymmetric()) { // a padded copy is kept instead
            cost.keptInputs = cost.keptForWeights = {};
            cost.keptValues = sizeOf({x[0], x[1], x[2] + window.before[0] + window.after[0], x[3] + window.before[1] + window.after[1]});
        }
        return cost;
    };
    return type;
}

CellType batchNorm2d() {
    CellType type;
    type.name = "BatchNorm2d";
    type.category = "Normalisation";
    type.summary = "Shifts and scales each channel to mean 0 and variance 1: over the batch while it trains, by the running statistics "
                   "otherwise. Frozen, it always uses the latter.";
    type.summaryZh = "把每个通道平移缩放到均值 0、方差 1：训练时用本批的统计量，否则用滑动统计量；被冻结时始终用后者。";
    type.inputs = {{"x"}};
    type.outputs = {{"out"}};
    type.amp = {.isFloatAtO2 = true, .atAuto = AmpTraits::Auto::Float32};
    type.params = {integerParam("num_features", 1, "Channels of x.", "x 的通道数。"),
                   realParam("eps", 1e-5, 0, 1, "Added below the root, against division by zero.", "加在根号内，避免除以零。"),
                   realParam("momentum", 0.9, 0, 1,
                             "Part of the running statistics that a step keeps, as in MindSpore (PyTorch's momentum is 1 minus this): "
                             "running = momentum · running + (1 − momentum) · batch.",
                             "每步保留的滑动统计量比例，与 MindSpore 相同（PyTorch 的 momentum 为 1 减该值）：running = momentum · running "
                             "+ (1 − momentum) · batch。")};
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        CELLOOM_TRY_STATUS(expectChannels(in.inputs[0], in.cell, "num_features"));
        return sameShape(in);
    };
    type.weights = [](const CellInstance& cell) {
        const std::vector<std::int64_t> dims{cell.integer("num_features")};
        return std::vector<WeightSpec>{{"weight", dims, WeightSpec::Init::Ones},
                                       {"bias", dims, WeightSpec::Init::Zeros},
                                       {"running_mean", dims, WeightSpec::Init::Zeros, true},
                                       {"running_var", dims, WeightSpec::Init::Ones, true}};
    };
    type.cost = [](const CellInstance& cell, const Sizes&, const Sizes& outputs) {
        return CellCost{8.0 * static_cast<double>(sizeOf(outputs[0])), {0}, {}, 2 * cell.integer("num_features")};
    };
    return type;
}

Status checkPool(const CellInstance& cell) {
    for (const char* name : {"kernel_size", "stride", "padding"}) CELLOOM_TRY_STATUS(expectCount(cell, name));
    const Window::Pair kernel = pairOf(cell, "kernel_size"), padding = pairOf(cell, "padding");
    for (std::size_t side = 0; side < 2; ++side)
        if (padding[side] > kernel[side] / 2)
            return fail("padding = " + cell.text("padding") + " is more than half of kernel_size = " + cell.text("kernel_size") + ".",
                        "A window would lie in the padding alone: give half of the kernel at most.", "padding");
    return {};
}

CellType pool(const char* name, const char* summary, const char* summaryZh) {
    CellType type;
    type.name = name;
    type.category = "Image";
    type.summary = summary;
    type.summaryZh = summaryZh;
    type.inputs = {{"x"}};
    type.outputs = {{"out"}};
    type.params = {
        pairParam("kernel_size", 1, {}, "Size of the window: one number, or height, width.", "窗口大小：一个数，或“高, 宽”。"),
        pairParam(
            "stride", 0, "0",
            "Steps from window to window: one number, or height, width; 0: as large as the window (PyTorch's default; MindSpore's is 1).",
            "窗口移动的步长：一个数，或“高, 宽”；0：与窗口同大（PyTorch 的默认值；MindSpore 为 1）。"),
        pairParam("padding", 0, "0", "Rows and columns around the image: one number, or height, width; half of the window at most.",
                  "图像四周的填充：一个数，或“高, 宽”；最多为窗口的一半。"),
        flagParam("ceil_mode", false, "A window that begins inside the image and ends outside of it counts.",
                  "从图像内开始、超出图像的窗口也计入。")};
    type.check = checkPool;
    type.shapeRule = [](const RuleInput& in) -> Shapes {
        CELLOOM_TRY_STATUS(expectImage(in.inputs[0]));
        return slide(in, in.inputs[0][1].number);
    };
    type.cost = [isMax = std::string(name) == "MaxPool2d"](const CellInstance& cell, const Sizes&, const Sizes& outputs) {
        const Window::Pair kernel = pairOf(cell, "kernel_size");
        const std::int64_t values = sizeOf(outputs[0]);
        return CellCost{static_cast<double>(sizeOf({kernel[0], kernel[1]})) * static_cast<double>(values),
                        {0},
                        {},
                        isMax ? multiplyCapped(values, 2) : 0}; // places of the largest, 8 bytes each
    };
    return type;
}

} // namespace

std::int64_t Window::count(std::size_t side, std::int64_t size) const {
    const std::int64_t room = size + before[side] + after[side] - reach(side);
    if (room < 0 && !(roundsUp && room + stride[side] > 0)) return 0;
    std::int64_t out = (room + (roundsUp ? stride[side] - 1 : 0)) / stride[side] + 1;
    if (roundsUp && (out - 1) * stride[side] >= size + before[side]) --out; // it would begin in the padding behind
    return out;
}

Window windowOf(const graph::CellInstance& cell, std::int64_t height, std::int64_t width) {
    Window out;
    out.kernel = pairOf(cell, "kernel_size");
    out.stride = pairOf(cell, "stride");
    const auto padding = cell.integers("padding");
    if (padding.size() == 4) {
        out.before = {padding[0], padding[2]};
        out.after = {padding[1], padding[3]};
    } else {
        out.before = out.after = pairOf(cell, "padding");
    }
    if (cell.type != "Conv2d") {
        for (std::size_t side = 0; side < 2; ++side)
            if (out.stride[side] == 0) out.stride[side] = out.kernel[side];
        out.roundsUp = cell.flag("ceil_mode");
        return out;
    }
    out.dilation = pairOf(cell, "dilation");
    if (cell.text("pad_mode") != "same") return out;
    const Window::Pair size{height, width};
    for (std::size_t side = 0; side < 2; ++side) {
        const std::int64_t windows = (size[side] + out.stride[side] - 1) / out.stride[side];
        const std::int64_t missing = std::max<std::int64_t>(0, (windows - 1) * out.stride[side] + out.reach(side) - size[side]);
        out.before[side] = missing / 2;
        out.after[side] = missing - missing / 2;
    }
    return out;
}

void addImage(std::vector<CellType>& out) {
    out.push_back(conv2d());
    out.push_back(batchNorm2d());
    out.push_back(
        pool("MaxPool2d", "The largest number of each window of an image [B, C, H, W].", "图像 [B, C, H, W] 中每个窗口的最大值。"));
    out.push_back(pool("AvgPool2d", "The mean of each window of an image [B, C, H, W].", "图像 [B, C, H, W] 中每个窗口的平均值。"));
    out.back().params.push_back(flagParam("count_include_pad", true, "Padding counts as zeros in the mean.", "求平均时把填充当作零计入。"));
}

} // namespace celloom::catalog
