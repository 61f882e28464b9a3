#include "models/families/vocabulary.h"
#include "models/recipe/estimate.h"

#include "models/families/families.h"
#include "models/graph/cost.h"
#include "models/recipe/lora.h"
#include "models/recipe/parameter_table.h"

#include <algorithm>

namespace celloom::recipe {
namespace {

constexpr std::int64_t kFloatBytes = 4, kHalfBytes = 2;

double zLossOf(const Recipe& recipe, const graph::ExpandedModel& model) {
    if (recipe.real("train.z_loss") > 0) return recipe.real("train.z_loss");
    const auto found = model.hyper.find("z_loss_weight");
    if (found == model.hyper.end()) return 0;
    if (const auto* whole = std::get_if<std::int64_t>(&found->second)) return static_cast<double>(*whole);
    const auto* real = std::get_if<double>(&found->second);
    return real ? *real : 0;
}

} // namespace

std::map<std::string, std::int64_t> symbolSizes(const graph::ExpandedModel& model, std::int64_t rows, std::int64_t length) {
    std::map<std::string, std::int64_t> out{{"B", rows}, {"T", length}};
    for (const graph::ValueInfo& value : model.values)
        for (const graph::Dim& dim : value.shape)
            if (!dim.symbol.empty()) out.emplace(dim.symbol, length);
    return out;
}

MemoryOptions memoryOptions(const Recipe& recipe, const graph::ExpandedModel& model) {
    MemoryOptions options;
    options.symbols = symbolSizes(model, recipe.integer("train.batch_size"), recipe.integer("train.sequence_length"));
    options.precision = precisionSettingsOf(recipe);
    options.isAccumulated = recipe.integer("train.accumulation") > 1;
    options.hasDocumentAttention = recipe.text("data.attention") == "document";
    options.hasZLoss = zLossOf(recipe, model) > 0;
    options.evaluates = !recipe.list("data.validation").empty() || recipe.real("data.validation_fraction") > 0;
    options.keepsBestWeights = recipe.integer("callbacks.early_stopping_patience") > 0 && recipe.flag("callbacks.early_stopping_restore_best");
    options.isGpu = recipe.text("device") == "cuda";
    if (usesLora(recipe) && recipe.text("lora.base_type") != "float32") options.frozenBytes = kHalfBytes;
    options.optimizer = optimizerMemoryOf(recipe);
    return options;
}

Result<graph::ExpandedModel> modelOf(const Recipe& recipe) {
    const std::string& source = recipe.text(trains(recipe) ? "model.source" : "model.weights");
    CELLOOM_TRY(document, families::openModel(families::isBuiltIn(source) ? source : recipe.resolvePath(source).string()));
    CELLOOM_TRY(overrides, recipe.modelOverrides());
    if (!trains(recipe)) overrides.clear(); // weights are used as they are
    if (families::hasVocabulary(document) && recipe.text("tokenizer.path").empty() && recipe.text("model.weights").empty() && !overrides.contains(families::kVocabulary))
        overrides[families::kVocabulary] = recipe.integer("tokenizer.vocab_size");
    graph::Expansion expansion = graph::expand(document, overrides);
    if (!expansion.ok()) return tl::unexpected(expansion.firstError());
    return std::move(expansion.model);
}

Result<Estimate> estimate(const Recipe& recipe) {
    if (!trains(recipe))
        return fail("is " + recipe.text("kind") + ": the estimate is one of training steps.", "For a prediction: celloom-engine estimate --predict MODEL.",
                    "kind");
    CELLOOM_TRY(model, modelOf(recipe));
    return estimate(recipe, model);
}

Result<Estimate> estimate(const Recipe& recipe, const graph::ExpandedModel& model) {
    CELLOOM_TRY(treatment, treatmentOf(recipe, model));
    const MemoryOptions options = memoryOptions(recipe, model);
    if (auto precision = precisionOf(model, treatment, options.precision); !precision) return tl::unexpected(precision.error());
    const std::int64_t accumulation = recipe.integer("train.accumulation");

    Estimate out;
    out.model = model.name;
    out.tokensPerStep = options.symbols.at("B") * options.symbols.at("T") * accumulation;
    const graph::Cost cost = graph::total(graph::costs(model, options.symbols));
    out.parameters = cost.parameters;
    out.forwardFlops = cost.forwardFlops;
    out.flopsPerStep = 3 * out.forwardFlops * static_cast<double>(accumulation);
    for (const ParameterRow& row : parameterTable(model, treatment)) {
        std::int64_t count = 1;
        for (const std::int64_t dim : row.dims) count *= dim;
        if (row.isTrainable) out.trainableParameters += count;
    }
    const MemoryPlan plan = planTraining(model, treatment, options);
    out.weightBytes = plan.whole.weights;
    out.gradientBytes = plan.whole.gradients;
    out.optimizerBytes = plan.whole.optimizer;
    out.activationBytes = plan.whole.activations;
    out.peak = plan.peak;
    out.peakBytes = plan.peak.total();
    out.peakPhase = plan.peakPhase;
    out.phasePeaks = plan.phasePeaks;
    const std::int64_t saved = treatment.hasAdapters() ? out.trainableParameters : out.parameters; // the base is not saved again
    out.checkpointBytes = (saved + (options.keepsBestWeights ? out.trainableParameters : 0)) * kFloatBytes + out.optimizerBytes;
    out.keptCheckpoints = recipe.integer("checkpoint.keep_max") + (recipe.flag("checkpoint.keep_best") ? 1 : 0);
    return out;
}

Result<PredictionEstimate> estimatePrediction(const graph::ExpandedModel& model, std::int64_t batch, std::int64_t context) {
    PredictionEstimate out;
    out.model = model.name;
    out.parameters = model.parameterCount();
    out.batch = batch;
    out.context = context > 0 ? context : model.hyperInteger("max_positions", 0);
    if (out.context <= 0) return fail("the model does not say how long its inputs may be.", "Give the length of the context.", model.name);
    MemoryOptions options;
    options.symbols = symbolSizes(model, batch, out.context);
    options.lastPositionOnly = true;
    out.promptFlops = graph::total(graph::costs(model, options.symbols)).forwardFlops;
    std::int64_t cached = 0; // numbers
    for (const graph::CellInstance& cell : model.cells) {
        if (cell.type != "Attention") continue;
        const std::int64_t perToken = 2 * cell.integer("num_kv_heads") * cell.integer("head_dim");
        cached += batch * out.context * perToken;
        // one query against the whole context: the part of one row of the scores
        out.tokenFlops += static_cast<double>(batch) * static_cast<double>(out.context) * static_cast<double>(cell.integer("num_heads")) *
                          (4 * static_cast<double>(cell.integer("head_dim")) + 5);
    }
    out.tokenFlops += graph::total(graph::costs(model, symbolSizes(model, batch, 1))).forwardFlops;
    TreatmentTable plain;
    plain.cells.resize(model.cells.size());
    for (const char* dtype : {"float32", "bfloat16", "float16"}) {
        const bool isFloat = std::string(dtype) == "float32";
        if (!isFloat) options.precision = {AmpLevel::O2, *floatTypeNamed(dtype), {}, {}};
        const MemoryPlan plan = planPrediction(model, plain, options);
        out.types.push_back({dtype, out.parameters * (isFloat ? kFloatBytes : kHalfBytes), cached * (isFloat ? kFloatBytes : kHalfBytes),
                             plan.peak.activations});
    }
    return out;
}

} // namespace celloom::recipe
