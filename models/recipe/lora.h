// Which cells of a model get a LoRA adapter and what else learns, in PEFT's terms: the same description comes from a recipe's "lora"
// section and from an adapter's adapter_config.json, and is resolved into the one table of treatments.
#pragma once

#include "models/recipe/recipe.h"

#include <utility>

namespace celloom::recipe {

/// Module names are those of the checkpoint: "model.layers.0.self_attn.q_proj".
struct LoraSpec {
    /// Ends of module names ("q_proj", "self_attn.q_proj"), path patterns ("layers.{3..5}.**.q_proj"), or "all-linear".
    std::vector<std::string> targets;
    std::string targetRegex; // a regular expression over whole module names, in place of targets
    std::vector<std::string> excluded;
    std::string excludedRegex;
    LoraSettings standard;
    enum class Bias {
        None,
        LoraOnly, // the biases of cells with an adapter learn too
        All       // every bias learns
    } bias = Bias::None;
    // Regular expressions over the end of a module name; the first that matches decides.
    std::vector<std::pair<std::string, std::int64_t>> rankPattern;
    std::vector<std::pair<std::string, double>> alphaPattern;
    std::vector<std::int64_t> layersToTransform; // numbers of repeated cells; empty: all
    std::vector<std::string> layersPattern;      // names before those numbers; empty: the last number of a name counts
    std::vector<std::string> modulesToSave;      // ends of names of modules that learn whole
    /// False for adapters of other tools, which may list names for several families.
    bool everyNameMustMatch = true;
};

/// Everything is frozen but what the description names. Fails where it matches nothing: the model's real names are listed.
Result<TreatmentTable> resolveLora(const graph::ExpandedModel& model, const LoraSpec& spec);

/// The recipe's "lora" section. Fails where an item cannot be read.
Result<LoraSpec> loraSpecOf(const Recipe& recipe);
/// Whether the recipe trains adapters by its "lora" section (its rules may add some in any case).
bool usesLora(const Recipe& recipe);

/// How a run of this recipe treats each cell: the "lora" section, then train.recompute, then the rules.
Result<TreatmentTable> treatmentOf(const Recipe& recipe, const graph::ExpandedModel& model);

} // namespace celloom::recipe
