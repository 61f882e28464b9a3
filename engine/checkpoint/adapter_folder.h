// An adapter on disk, as PEFT keeps it: adapter_config.json and adapter_model.safetensors, with celloom_adapter.json beside them, which
// says which base it belongs to.
#pragma once

#include "engine/exec/network.h"
#include "models/recipe/adapter_config.h"

#include <filesystem>
#include <optional>

namespace celloom::engine {

struct AdapterFolder {
    std::filesystem::path path;
    recipe::AdapterConfig config;
    std::optional<recipe::AdapterNotes> notes; // none: written by another tool
};

/// Reads the descriptions, no tensors. A run's folder means its adapter: the finished one, or that of its newest checkpoint.
Result<AdapterFolder> openAdapterFolder(const std::filesystem::path& path);

/// Whether an adapter may go onto a base whose weights are others than those it was trained beside. Shapes must fit in any case.
enum class OtherBase { Refuse, Allow };

/// Adds the adapter to the network, inactive, under this name. Refused: a base of other shapes or with other weights, missing, unexpected
/// or mis-shaped tensors (all listed), targets that this model does not have.
Status loadAdapter(Network& network, const std::string& name, const AdapterFolder& folder, OtherBase otherBase = OtherBase::Refuse);

/// Fills the adapter that the network trains, to go on with it: its rules must have made the tensors that the file holds.
Status loadTrainedAdapter(Network& network, const AdapterFolder& folder);

/// Writes the adapter that the network trains into an existing folder.
Status writeAdapterFiles(const Network& network, const std::string& chatTemplate, const std::filesystem::path& folder);
/// The same as a new folder that appears whole or not at all, with the tokenizer's files (if given); an existing one is replaced.
Status saveAdapter(const Network& network, const std::string& chatTemplate, const std::filesystem::path& target,
                   const std::filesystem::path& tokenizer = {});

} // namespace celloom::engine
