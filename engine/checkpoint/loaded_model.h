// A model with weights and the adapters that stand beside it, ready to be asked or measured.
#pragma once

#include "engine/checkpoint/merge.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace celloom::engine {

struct AdapterChoice {
    std::filesystem::path path; // an adapter's folder, or a run's
    double weight = 1;
    std::string name; // in messages and as the network knows it; empty: the path
};

struct LoadedModel {
    ModelFolder folder;
    std::unique_ptr<Network> network;
    std::vector<MergedAdapter> adapters; // that are active: the model's own and those chosen
};

/// The network of a folder with its weights; its own adapter stays on, the chosen ones join it. `say` gets a sentence for each key of an adapter
/// that is not used here.
Result<LoadedModel> loadModel(ModelFolder folder, const std::vector<AdapterChoice>& adapters, const NetworkOptions& options,
                              OtherBase otherBase = OtherBase::Refuse, const std::function<void(const std::string&)>& say = {});

} // namespace celloom::engine
