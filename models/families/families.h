// Model families: graph builders with presets, config.json in both directions, checkpoint weight names in both directions.
// What is easy to get wrong in each is written beside its builder.
//
// Hyper-parameters that every language model of a family has in its main graph, under these names, so that a recipe can override them
// and the engine can ask for them: vocab, hidden, layers, heads, kv_heads, intermediate, max_positions, norm_eps, pad_id, bos_id, eos_id.
// Input "input_ids" [B, T] int64, output "logits" [B, T, vocab].
#pragma once

#include "models/base/result.h"
#include "models/graph/document.h"
#include "models/graph/expand.h"

#include <filesystem>
#include <string>
#include <vector>

namespace celloom::families {

struct Preset {
    std::string name; // "baichuan-tiny", "baichuan-7b", "internlm2-7b", …
    std::string summary, summaryZh;
    std::int64_t parameters = 0; // the published or derived total; a test holds the graph to it
    std::string source;          // where the numbers come from
};

const std::vector<Preset>& presets();
Result<graph::Document> buildPreset(const std::string& name);

/// A Hugging Face config.json as a graph. Refuses architectures it does not know, and keys that would change the results, by name.
struct OpenedConfig {
    graph::Document document;
    std::vector<std::string> notRead; // "key = value" of what was not understood; the main graph's note tells them too
};
Result<OpenedConfig> readConfigJson(const std::string& text, const std::string& place);
Result<graph::Document> fromConfigJson(const std::string& text, const std::string& place);
/// The config.json that other tools read for this model. Fails where the graph is no longer of its family, or a variant of it that the
/// family's config.json cannot say.
Result<std::string> toConfigJson(const graph::Document& document);

/// Checkpoint tensor name of a parameter path: "layers.0.mlp.up_proj.weight" -> "model.layers.0.mlp.up_proj.weight", and back.
/// Families without a table (a user's own graph) use the path as it is.
std::string checkpointName(const std::string& family, const std::string& parameterPath);
Result<std::string> parameterPath(const std::string& family, const std::string& checkpointName);
/// Names that checkpoints of this family carry and that hold nothing to load (rotary_emb.inv_freq).
bool isIgnorable(const std::string& family, const std::string& checkpointName);
/// The same for one model: with a tied head its own weight, which some checkpoints carry again, holds nothing to load either.
bool isIgnorable(const graph::ExpandedModel& model, const std::string& checkpointName);

/// Whether the name stands for a preset or for a template of models/library, which need no file.
bool isBuiltIn(const std::string& name);

/// MODEL as the user gives it: a preset's or a template's name, a folder with model.cells.json or config.json, or one of these files.
Result<graph::Document> openModel(const std::string& model);

} // namespace celloom::families
