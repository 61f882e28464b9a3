#include "app/engine/model_inputs.h"

#include "engine/checkpoint/safetensors.h"
#include "engine/exec/z_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

namespace celloom::app {
namespace {

using engine::Batch;
using engine::SafetensorsFile;

std::string shapeOf(const at::Tensor& tensor) {
    return std::string(c10::toString(tensor.scalar_type())) + " [" + c10::Join(", ", tensor.sizes()) + "]";
}

Result<at::Tensor> integersNamed(const SafetensorsFile& file, const std::string& name) {
    if (!file.has(name)) {
        if (name == "input_ids")
            return fail("holds no tensor \"input_ids\".", "The token ids are a whole-number tensor [B, T] of this name.");
        return at::Tensor();
    }
    CELLOOM_TRY(tensor, file.tensor(name));
    const bool isBool = tensor.scalar_type() == at::kBool && name == "attention_mask";
    if (tensor.dim() != 2 || (!isBool && !at::isIntegralType(tensor.scalar_type(), false)))
        return fail(name + " is " + shapeOf(tensor) + ", expected whole numbers of shape [B, T].");
    if (tensor.numel() == 0) return fail(name + " is " + shapeOf(tensor) + ": it holds no token.");
    return tensor.to(at::kLong);
}

/// The lowest and the highest value must lie in low..high; `alsoGood` is looked past.
Status checkRange(const at::Tensor& tensor, const std::string& name, std::int64_t low, std::int64_t high, const std::string& why,
                  std::int64_t alsoGood) {
    if (!tensor.defined()) return {};
    const at::Tensor counted = tensor.masked_fill(tensor.eq(alsoGood), low);
    const auto lowest = counted.min().item<std::int64_t>(), highest = counted.max().item<std::int64_t>();
    if (lowest >= low && highest <= high) return {};
    return fail(name + " has the value " + std::to_string(lowest < low ? lowest : highest) + ", expected " + std::to_string(low) + " to " +
                std::to_string(high) + why + ".");
}

constexpr std::int64_t kLastPosition = (1 << 20) - 1; // a rotary table as long as the highest position must fit into memory

} // namespace

Status checkValues(const Batch& batch, std::int64_t vocabulary) {
    const std::string words = " (the model's vocabulary)";
    if (vocabulary > 0) {
        CELLOOM_TRY_STATUS(checkRange(batch.inputIds, "input_ids", 0, vocabulary - 1, words, 0));
        CELLOOM_TRY_STATUS(checkRange(batch.labels, "labels", 0, vocabulary - 1, words + " or -100 (ignored)", -100));
    }
    CELLOOM_TRY_STATUS(checkRange(batch.attentionMask, "attention_mask", 0, 1, " (1: attended to)", 0));
    return checkRange(batch.positions, "positions", 0, kLastPosition, "", 0);
}

Result<Batch> readBatch(const std::string& path) {
    CELLOOM_TRY(file, SafetensorsFile::open(path));
    Batch batch;
    const std::pair<const char*, at::Tensor Batch::*> parts[] = {{"input_ids", &Batch::inputIds},
                                                                 {"labels", &Batch::labels},
                                                                 {"attention_mask", &Batch::attentionMask},
                                                                 {"segments", &Batch::segments},
                                                                 {"positions", &Batch::positions}};
    for (const auto& [name, member] : parts) {
        auto tensor = integersNamed(*file, name);
        if (!tensor) return fail(tensor.error().message, tensor.error().hint, path);
        if (tensor->defined() && tensor->sizes() != (batch.inputIds.defined() ? batch.inputIds.sizes() : tensor->sizes()))
            return fail(std::string(name) + " has another shape than input_ids: " + shapeOf(*tensor) + " and " + shapeOf(batch.inputIds) +
                            ".",
                        {}, path);
        batch.*member = *tensor;
    }
    return batch;
}

Status addLoss(const Batch& batch, const engine::Network& network, std::map<std::string, at::Tensor>& results) {
    if (!batch.labels.defined() || !results.contains("logits")) return {};
    at::NoGradGuard guard;
    const engine::LossSum loss = engine::languageModelLoss(results["logits"], batch.labels, batch.segments);
    if (loss.count == 0) return fail("every label is ignored (-100), so there is no loss.");
    results["loss"] = loss.sum / loss.count;
    if (const double weight = engine::zLossWeightOf(network.model()); weight > 0) {
        const engine::ZLossSum squares = engine::zLossSum(results["logits"]);
        results["loss"] += squares.sum * (weight / static_cast<double>(squares.positions));
    }
    return {};
}

} // namespace celloom::app
