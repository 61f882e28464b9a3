#include "models/code/table.h"

#include <algorithm>

namespace celloom::code {
namespace {

Argument needed(std::string name, std::string param, Form form = Form::Plain) {
    return {std::move(name), std::move(param), form, {}, false};
}
Argument optional(std::string name, std::string param, std::string standard, Form form = Form::Plain) {
    return {std::move(name), std::move(param), form, std::move(standard), true};
}
Argument fixed(std::string name, std::string standard) {
    return {std::move(name), {}, Form::Fixed, std::move(standard), true};
}
Argument named(std::string name, std::string param) {
    return {std::move(name), std::move(param), Form::Plain, {}, true};
}

std::vector<Layer> mindSpore() {
    const Dialect d = Dialect::MindSpore;
    return {
        {d,
         "Dense",
         "Dense",
         {needed("in_channels", "in_channels"), needed("out_channels", "out_channels"), fixed("weight_init", "None"),
          fixed("bias_init", "None"), optional("has_bias", "has_bias", "True"), fixed("activation", "None")}},
        {d,
         "Embedding",
         "Embedding",
         {needed("vocab_size", "vocab_size"), needed("embedding_size", "embedding_size"), fixed("use_one_hot", "False"),
          fixed("embedding_table", "\"normal\""), fixed("dtype", "ms.float32"),
          optional("padding_idx", "padding_idx", "None", Form::Padding)}},
        {d,
         "LayerNorm",
         "LayerNorm",
         {needed("normalized_shape", "dim", Form::Tuple), fixed("begin_norm_axis", "-1"), fixed("begin_params_axis", "-1"),
          fixed("gamma_init", "\"ones\""), fixed("beta_init", "\"zeros\""), optional("epsilon", "eps", "1e-07")}},
        {d, "Dropout", "Dropout", {fixed("keep_prob", "0.5"), named("p", "p")}},
        {d, "ReLU", "ReLU", {}},
        {d, "GELU", "GELU", {optional("approximate", "approximate", "True", Form::TanhFlag)}},
        {d, "SiLU", "SiLU", {}},
        {d, "Tanh", "Tanh", {}},
        {d, "Sigmoid", "Sigmoid", {}},
        {d, "Softmax", "Softmax", {optional("axis", "axis", "-1")}},
        {d,
         "Conv2d",
         "Conv2d",
         {needed("in_channels", "in_channels"), needed("out_channels", "out_channels"), needed("kernel_size", "kernel_size", Form::Pair),
          optional("stride", "stride", "1", Form::Pair), optional("pad_mode", "pad_mode", "\"same\""),
          optional("padding", "padding", "0", Form::Padding4), optional("dilation", "dilation", "1", Form::Pair),
          optional("group", "group", "1"), optional("has_bias", "has_bias", "False"), fixed("weight_init", "None"),
          fixed("bias_init", "None"), fixed("data_format", "\"NCHW\"")}},
        {d,
         "BatchNorm2d",
         "BatchNorm2d",
         {needed("num_features", "num_features"), optional("eps", "eps", "1e-05"), optional("momentum", "momentum", "0.9"),
          fixed("affine", "True"), fixed("gamma_init", "\"ones\""), fixed("beta_init", "\"zeros\""), fixed("moving_mean_init", "\"zeros\""),
          fixed("moving_var_init", "\"ones\""), fixed("use_batch_statistics", "None"), fixed("data_format", "\"NCHW\"")}},
        {d,
         "MaxPool2d",
         "MaxPool2d",
         {needed("kernel_size", "kernel_size", Form::Pair), optional("stride", "stride", "1", Form::PoolStride),
          optional("pad_mode", "", "\"valid\"", Form::PoolMode), optional("padding", "padding", "0", Form::Pair), fixed("dilation", "1"),
          fixed("return_indices", "False"), optional("ceil_mode", "ceil_mode", "False"), fixed("data_format", "\"NCHW\"")}},
        {d,
         "AvgPool2d",
         "AvgPool2d",
         {needed("kernel_size", "kernel_size", Form::Pair), optional("stride", "stride", "1", Form::PoolStride),
          optional("pad_mode", "", "\"valid\"", Form::PoolMode), optional("padding", "padding", "0", Form::Pair),
          optional("ceil_mode", "ceil_mode", "False"), optional("count_include_pad", "count_include_pad", "True"),
          fixed("divisor_override", "None"), fixed("data_format", "\"NCHW\"")}},
        {d, "Flatten", "Flatten", {optional("start_dim", "start_dim", "1"), optional("end_dim", "end_dim", "-1")}},
    };
}

std::vector<Layer> pyTorch() {
    const Dialect d = Dialect::PyTorch;
    return {
        {d,
         "Linear",
         "Dense",
         {needed("in_features", "in_channels"), needed("out_features", "out_channels"), optional("bias", "has_bias", "True")}},
        {d,
         "Embedding",
         "Embedding",
         {needed("num_embeddings", "vocab_size"), needed("embedding_dim", "embedding_size"),
          optional("padding_idx", "padding_idx", "None", Form::Padding)}},
        {d, "LayerNorm", "LayerNorm", {needed("normalized_shape", "dim"), optional("eps", "eps", "1e-05")}},
        {d, "RMSNorm", "RMSNorm", {needed("normalized_shape", "dim"), named("eps", "eps")}},
        {d, "Dropout", "Dropout", {optional("p", "p", "0.5")}},
        {d, "ReLU", "ReLU", {fixed("inplace", "False")}},
        {d, "GELU", "GELU", {optional("approximate", "approximate", "\"none\"")}},
        {d, "SiLU", "SiLU", {fixed("inplace", "False")}},
        {d, "Tanh", "Tanh", {}},
        {d, "Sigmoid", "Sigmoid", {}},
        {d, "Softmax", "Softmax", {named("dim", "axis")}},
        {d,
         "Conv2d",
         "Conv2d",
         {needed("in_channels", "in_channels"), needed("out_channels", "out_channels"), needed("kernel_size", "kernel_size", Form::Pair),
          optional("stride", "stride", "1", Form::Pair), optional("padding", "padding", "0", Form::Padding2),
          optional("dilation", "dilation", "1", Form::Pair), optional("groups", "group", "1"), optional("bias", "has_bias", "True"),
          fixed("padding_mode", "\"zeros\"")}},
        {d,
         "BatchNorm2d",
         "BatchNorm2d",
         {needed("num_features", "num_features"), optional("eps", "eps", "1e-05"),
          optional("momentum", "momentum", "0.1", Form::Complement), fixed("affine", "True"), fixed("track_running_stats", "True")}},
        {d,
         "MaxPool2d",
         "MaxPool2d",
         {needed("kernel_size", "kernel_size", Form::Pair), optional("stride", "stride", "None", Form::PoolStride),
          optional("padding", "padding", "0", Form::Pair), fixed("dilation", "1"), fixed("return_indices", "False"),
          optional("ceil_mode", "ceil_mode", "False")}},
        {d,
         "AvgPool2d",
         "AvgPool2d",
         {needed("kernel_size", "kernel_size", Form::Pair), optional("stride", "stride", "None", Form::PoolStride),
          optional("padding", "padding", "0", Form::Pair), optional("ceil_mode", "ceil_mode", "False"),
          optional("count_include_pad", "count_include_pad", "True"), fixed("divisor_override", "None")}},
        {d, "Flatten", "Flatten", {optional("start_dim", "start_dim", "1"), optional("end_dim", "end_dim", "-1")}},
    };
}

} // namespace

const std::vector<Layer>& layers() {
    static const std::vector<Layer> all = [] {
        std::vector<Layer> out = mindSpore();
        for (Layer& layer : pyTorch()) out.push_back(std::move(layer));
        return out;
    }();
    return all;
}

const Layer* layerOf(Dialect dialect, const std::string& type) {
    const auto found =
        std::find_if(layers().begin(), layers().end(), [&](const Layer& one) { return one.dialect == dialect && one.type == type; });
    return found == layers().end() ? nullptr : &*found;
}

const Layer* layerNamed(Dialect dialect, const std::string& name) {
    const auto found =
        std::find_if(layers().begin(), layers().end(), [&](const Layer& one) { return one.dialect == dialect && one.name == name; });
    return found == layers().end() ? nullptr : &*found;
}

const char* toString(Dialect dialect) {
    return dialect == Dialect::MindSpore ? "mindspore" : "pytorch";
}

Result<Dialect> dialectNamed(const std::string& name) {
    if (name == "mindspore") return Dialect::MindSpore;
    if (name == "pytorch") return Dialect::PyTorch;
    return fail("is " + name + ", expected mindspore or pytorch.", {}, "--to");
}

std::string parameterName(Dialect dialect, const std::string& type, const std::string& weight) {
    if (dialect == Dialect::MindSpore) {
        if (type == "Embedding" && weight == "weight") return "embedding_table";
        if (type == "LayerNorm" || type == "BatchNorm2d") {
            if (weight == "weight") return "gamma";
            if (weight == "bias") return "beta";
            if (weight == "running_mean") return "moving_mean";
            if (weight == "running_var") return "moving_variance";
        }
    }
    return weight;
}

} // namespace celloom::code
