#include "models/recipe/estimate.h"

#include "models/families/families.h"
#include "models/graph/cost.h"
#include "models/recipe/parameter_table.h"

#include <algorithm>

namespace celloom::recipe {
namespace {

constexpr std::int64_t kFloatBytes = 4, kHalfBytes = 2;

/// Bytes of one value that this cell computes with.
std::int64_t bytesOf(const graph::CellInstance& cell, const Treatment& treatment, bool isO2) {
    if (!treatment.dtype.empty()) return treatment.dtype == "float32" ? kFloatBytes : kHalfBytes;
    const bool isNorm = cell.type == "RMSNorm" || cell.type == "LayerNorm"; // float32 at every level
    return isO2 && !isNorm ? kHalfBytes : kFloatBytes;
}

} // namespace

Result<graph::ExpandedModel> modelOf(const Recipe& recipe) {
    const std::string& source = recipe.text("model.source");
    const bool isPreset = std::filesystem::path(source).filename() == source && families::buildPreset(source).has_value();
    CELLOOM_TRY(document, families::openModel(isPreset ? source : recipe.resolvePath(source).string()));
    CELLOOM_TRY(overrides, recipe.modelOverrides());
    const bool hasVocab =
        std::any_of(document.main.hyper.begin(), document.main.hyper.end(), [](const auto& hyper) { return hyper.name == "vocab"; });
    if (hasVocab && recipe.text("tokenizer.path").empty() && !overrides.contains("vocab"))
        overrides["vocab"] = recipe.integer("tokenizer.vocab_size");
    graph::Expansion expansion = graph::expand(document, overrides);
    if (!expansion.ok()) return tl::unexpected(expansion.firstError());
    return std::move(expansion.model);
}

Result<Estimate> estimate(const Recipe& recipe) {
    CELLOOM_TRY(model, modelOf(recipe));
    CELLOOM_TRY(rules, recipe.rules());
    CELLOOM_TRY(treatment, resolve(model, rules));
    const std::int64_t batch = recipe.integer("train.batch_size"), length = recipe.integer("train.sequence_length");
    const std::int64_t accumulation = recipe.integer("train.accumulation");
    const bool isO2 = recipe.text("precision.amp_level") == "O2";
    const std::vector<graph::Cost> costs = graph::costs(model, {{"B", batch}, {"T", length}});

    Estimate out;
    out.model = model.name;
    out.tokensPerStep = batch * length * accumulation;
    for (std::size_t i = 0; i < costs.size(); ++i) {
        const std::int64_t bytes = bytesOf(model.cells[i], treatment.cells[i], isO2);
        out.parameters += costs[i].parameters;
        out.forwardFlops += costs[i].forwardFlops;
        out.activationBytes += costs[i].activationValues * bytes;
        out.weightBytes += costs[i].parameters * (bytes == kHalfBytes ? kFloatBytes + kHalfBytes : kFloatBytes);
        if (model.cells[i].type == "LMHead") // the loss keeps the logits and makes their gradient, both float32
            out.activationBytes += 2 * kFloatBytes * batch * length * model.cells[i].integer("vocab_size");
    }
    for (const ParameterRow& row : parameterTable(model, treatment)) {
        std::int64_t count = 1;
        for (const std::int64_t dim : row.dims) count *= dim;
        if (row.isTrainable) out.trainableParameters += count;
    }
    out.flopsPerStep = 3 * out.forwardFlops * static_cast<double>(accumulation);
    out.gradientBytes = out.trainableParameters * kFloatBytes;
    out.optimizerBytes = 2 * out.trainableParameters * kFloatBytes;
    out.peakBytes = out.weightBytes + out.gradientBytes + out.optimizerBytes + out.activationBytes;
    out.checkpointBytes = out.parameters * kFloatBytes + out.optimizerBytes;
    out.keptCheckpoints = recipe.integer("checkpoint.keep_max") + (recipe.flag("checkpoint.keep_best") ? 1 : 0);
    return out;
}

} // namespace celloom::recipe
