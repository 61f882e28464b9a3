// adapter_config.json and celloom_adapter.json: what stands beside an adapter's tensors. The first is PEFT's
// (github.com/huggingface/peft, LoraConfig); the second is Celloom's own and says which base the adapter belongs to.
#pragma once

#include "models/recipe/lora.h"

#include <map>
#include <string>
#include <vector>

namespace celloom::recipe {

inline constexpr const char* kAdapterConfig = "adapter_config.json";
inline constexpr const char* kAdapterWeights = "adapter_model.safetensors";
inline constexpr const char* kAdapterNotes = "celloom_adapter.json";

struct AdapterConfig {
    LoraSpec spec;
    std::string baseName; // base_model_name_or_path
    /// "key = value" of what was read and changes nothing here.
    std::vector<std::string> notUsed;
};

/// Only peft_type (LORA), r, lora_alpha and target_modules must be there. Keys that would change the results and are not known here are
/// refused by name; unknown ones are harmless where they hold null, false or nothing.
Result<AdapterConfig> adapterConfigFromJson(const std::string& text, const std::string& place);
/// As PEFT writes it.
std::string toJson(const AdapterConfig& config);

/// The adapters of a treatment as PEFT describes them, and back by resolveLora(): ends of names where they suffice, whole module names else.
/// Rank and alpha are those of most cells, with patterns for the others.
LoraSpec describe(const graph::ExpandedModel& model, const TreatmentTable& treatment);

/// Which base an adapter was trained beside.
struct BaseIdentity {
    std::string model, family; // names, for messages
    std::string path;          // where it lay when the adapter was trained
    std::string fingerprint;   // of its weights: engine/checkpoint/fingerprint.h
    std::map<std::string, std::vector<std::int64_t>> shapes; // by checkpoint name
    bool operator==(const BaseIdentity&) const = default;
};

struct AdapterNotes {
    BaseIdentity base;
    std::string chatTemplate; // name of the chat template it was trained with; empty: none
    bool operator==(const AdapterNotes&) const = default;
};

Result<AdapterNotes> adapterNotesFromJson(const std::string& text, const std::string& place);
std::string toJson(const AdapterNotes& notes);

/// Refuses another base: the first tensor of another shape with both shapes, or other weights of the same shapes.
Status checkBase(const BaseIdentity& trainedOn, const BaseIdentity& here);

} // namespace celloom::recipe
