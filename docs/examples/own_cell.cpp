// A Cell of one's own, as in nn.Cell: subclass, override construct, add it to a registry, train it with Model.fit and a callback.
//   example_own_cell
#include "engine/cells/cell.h"
#include "engine/data/dataset.h"
#include "engine/train/losses.h"
#include "engine/train/metrics.h"
#include "engine/train/model.h"
#include "models/graph/json.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/rand.h>

#include <iostream>

using namespace celloom;

/// out [.., C] = sin(frequency x), with a frequency to learn for each channel. Autograd gives its gradient.
class Wave : public engine::Cell {
    using Cell::Cell;
    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, engine::StepContext&) override { return {(inputs[0] * weight("frequency")).sin()}; }
};

class PrintEpoch : public engine::Callback {
    Status onTrainEpochEnd(engine::RunContext& context) override {
        const engine::CallbackParams& params = context.originalArgs();
        std::cout << "epoch " << params.curEpochNum << " loss " << params.netOutputs << "\n";
        return {};
    }
};

/// The graph names the cell, and declares what it takes, gives and learns; "hidden" is a hyper-parameter.
constexpr const char* kGraph = R"({"format": "celloom-cells", "schema": 1, "main": {
    "hyper": [{"name": "hidden", "value": 32}],
    "inputs": [{"name": "features", "shape": ["B", 2]}], "outputs": [{"name": "logits", "shape": ["B", 2]}],
    "cells": [{"name": "first", "type": "Dense", "params": {"in_channels": 2, "out_channels": "hidden", "has_bias": true}},
              {"name": "wave", "type": "Plugin", "params": {"cell": "Wave", "inputs": "x: [B, hidden]", "outputs": "out: [B, hidden]", "weights": "frequency: [hidden]"}},
              {"name": "last", "type": "Dense", "params": {"in_channels": "hidden", "out_channels": 2, "has_bias": true}}],
    "wires": ["features -> first.x", "first.out -> wave.x", "wave.out -> last.x", "last.out -> logits"]}})";

/// Points of the square, and whether they lie in a field of a chess board of 4 by 4.
Result<std::shared_ptr<engine::TensorDataset>> chessBoard(std::int64_t rows, std::uint64_t seed) {
    const at::Tensor points = at::rand({rows, 2}, at::detail::createCPUGenerator(seed)).mul(4);
    return engine::TensorDataset::create({{"features", points - 2}, {"label", points.floor().sum(1).remainder(2).to(at::kLong)}});
}

Status run() {
    auto registry = std::make_shared<engine::CellRegistry>(engine::CellRegistry::standard());
    registry->addOwn<Wave>("Wave");
    CELLOOM_TRY(document, graph::fromJson(kGraph));
    graph::Expansion expansion = graph::expand(document);
    if (!expansion.ok()) return tl::unexpected(expansion.firstError());
    CELLOOM_TRY(treatment, recipe::resolve(expansion.model, {}));
    CELLOOM_TRY(network, engine::Network::create(std::move(expansion.model), treatment, {.seed = 1, .initStd = 2, .cells = registry}));
    CELLOOM_TRY(optimizer, engine::makeOptimizer(recipe::Recipe(), network->parameters(), treatment));

    engine::ModelOptions options;
    options.batchSize = 64;
    options.schedule = {.type = "cosine", .peak = 0.02, .totalSteps = 30 * 2048 / 64};
    engine::Model model(*network, std::make_shared<engine::SoftmaxCrossEntropyWithLogits>(engine::SoftmaxCrossEntropyWithLogits::Options{.sparse = true}), optimizer.get(),
                        {{"accuracy", std::make_shared<engine::Accuracy>()}}, options);
    CELLOOM_TRY(train, chessBoard(2048, 1));
    CELLOOM_TRY(validation, chessBoard(512, 2));
    PrintEpoch printEpoch;
    CELLOOM_TRY(end, model.fit(30, *train, *validation, {&printEpoch}));
    CELLOOM_TRY(measured, model.evaluate(*validation));
    if (end == engine::Model::End::Finished && measured) std::cout << "accuracy " << measured->metrics.at("accuracy") << "\n";
    return {};
}

int main() {
    const Status status = run();
    if (!status) std::cerr << status.error().text() << "\n";
    return status ? 0 : 1;
}
