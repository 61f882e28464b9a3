// Small networks over named columns, and data for them.
#pragma once

#include "engine/data/dataset.h"
#include "engine/train/losses.h"
#include "engine/train/model.h"
#include "models/graph/expand.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randn.h>

#include <QTest>

namespace celloom::engine {

template <class T> T must(Result<T> result) {
    if (!result) qFatal("%s", result.error().text().c_str());
    return std::move(*result);
}

/// "features" [B,in] -> Dense -> Tanh -> Dense -> "logits" [B,out].
inline graph::Document perceptron(std::int64_t in, std::int64_t hidden, std::int64_t out) {
    graph::Document document;
    document.main.name = "perceptron";
    document.main.inputs = {{"features", {"B", std::to_string(in)}}};
    document.main.outputs = {{"logits", {"B", std::to_string(out)}}};
    document.main.cells = {{"first", "Dense", {{"in_channels", in}, {"out_channels", hidden}, {"has_bias", true}}, {}, {}, {}},
                           {"act", "Tanh", {}, {}, {}, {}},
                           {"last", "Dense", {{"in_channels", hidden}, {"out_channels", out}, {"has_bias", true}}, {}, {}, {}}};
    document.main.wires = {{{"", "features"}, {"first", "x"}}, {{"first", "out"}, {"act", "x"}}, {{"act", "out"}, {"last", "x"}}, {{"last", "out"}, {"", "logits"}}};
    return document;
}

/// A network of it with AdamW.
struct Small {
    std::unique_ptr<Network> network;
    std::unique_ptr<Optimizer> optimizer;

    explicit Small(std::int64_t in = 3, std::int64_t hidden = 8, std::int64_t out = 1, std::uint64_t seed = 1) {
        graph::Expansion expansion = graph::expand(perceptron(in, hidden, out));
        if (!expansion.ok()) qFatal("%s", expansion.firstError().text().c_str());
        const auto treatment = must(recipe::resolve(expansion.model, {}));
        NetworkOptions options;
        options.seed = seed;
        options.initStd = 0.5;
        network = must(Network::create(std::move(expansion.model), treatment, options));
        optimizer = must(makeOptimizer(recipe::Recipe(), network->parameters(), treatment));
    }
    Model model(std::shared_ptr<const Loss> loss, Metrics metrics = {}, std::int64_t batch = 2, double rate = 1e-2, std::int64_t accumulation = 1) {
        return {*network, std::move(loss), optimizer.get(), std::move(metrics), options(batch, rate, accumulation)};
    }
    static ModelOptions options(std::int64_t batch, double rate, std::int64_t accumulation = 1) {
        ModelOptions options;
        options.batchSize = batch;
        options.accumulation = accumulation;
        options.shuffle = false;
        options.schedule.type = "constant";
        options.schedule.peak = rate;
        return options;
    }
};

inline at::Tensor drawn(at::IntArrayRef sizes, std::uint64_t seed) { return at::randn(sizes, at::detail::createCPUGenerator(seed)); }

/// "features" [rows,3] and "label" [rows,1].
inline std::shared_ptr<TensorDataset> numbers(std::int64_t rows, std::uint64_t seed = 7) {
    const at::Tensor features = drawn({rows, 3}, seed);
    return must(TensorDataset::create({{"features", features}, {"label", features.sum(1, true)}}));
}

} // namespace celloom::engine
