// A LoRA fixture (made with PEFT) and what tests need of it.
#pragma once

#include "engine/checkpoint/adapter_folder.h"
#include "engine/checkpoint/model_folder.h"
#include "engine/checkpoint/safetensors.h"
#include "models/base/files.h"
#include "models/families/families.h"
#include "models/recipe/lora.h"

#include <ATen/TensorOperators.h>
#include <QString>
#include <nlohmann/json.hpp>

namespace celloom::engine::testing {
namespace fs = std::filesystem;
using nlohmann::json;

template <class T> T must(Result<T> result) {
    if (!result) qFatal("%s", result.error().text().c_str());
    return std::move(*result);
}
inline void must(const Status& status) {
    if (!status) qFatal("%s", status.error().text().c_str());
}

inline double largest(const at::Tensor& difference) { return difference.abs().max().item<double>(); }

/// One fixture and what it needs.
struct Case {
    fs::path folder;
    json expected;
    std::shared_ptr<SafetensorsFile> inputs, tensors;
    ModelFolder base;

    explicit Case(const QString& name) : folder(fs::path(CELLOOM_FIXTURES) / name.toStdString()) {
        expected = json::parse(must(readFile(folder / "expected.json")));
        inputs = must(SafetensorsFile::open(folder / "inputs.safetensors"));
        tensors = must(SafetensorsFile::open(folder / "expected.safetensors"));
        base = must(openModelFolder(fs::path(CELLOOM_FIXTURES) / expected["base"].get<std::string>()));
    }
    graph::ExpandedModel model() const { return graph::expand(base.document).model; }
    at::Tensor tensor(const std::string& name) const { return must(tensors->tensor(name)); }
    Batch batch(std::int64_t step) const {
        Batch out;
        out.inputIds = must(inputs->tensor("input_ids"))[step];
        out.labels = must(inputs->tensor("labels"))[step];
        return out;
    }
    double tolerance(const char* what) const { return expected["suggested_tolerance"][what]; }

    /// The base with the fixture's first adapter, ready to train.
    std::unique_ptr<Network> trainable(NetworkOptions options = {}) const {
        const AdapterFolder adapter = must(openAdapterFolder(folder / "adapter_init"));
        const auto treatment = must(recipe::resolveLora(model(), adapter.config.spec));
        options.initialise = false;
        auto network = must(Network::create(model(), treatment, options));
        must(loadWeights(base, *network));
        must(loadTrainedAdapter(*network, adapter));
        return network;
    }
    std::unique_ptr<Network> plain() const { return must(loadNetwork(base, {})); }
};

inline at::Tensor logitsOf(Network& network, const Batch& batch) { return must(network.forward(batch)).at("logits"); }

/// Mean loss of a training step, and gradients.
inline double lossOf(Network& network, const Batch& batch, std::uint64_t seed = 0) {
    const auto outputs = must(network.forward(batch, {.training = true, .dropoutSeed = seed}));
    const LossSum loss = languageModelLoss(outputs.at("logits"), batch.labels);
    const at::Tensor mean = loss.sum / loss.count;
    mean.backward();
    return mean.item<double>();
}

} // namespace celloom::engine::testing
