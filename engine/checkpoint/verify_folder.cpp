#include "engine/checkpoint/verify_folder.h"

#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/weights.h"
#include "engine/text/tokenizer.h"
#include "models/base/text.h"
#include "models/families/vocabulary.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/isfinite.h>
#include <algorithm>

namespace celloom::engine {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kBlockRows = 4096; // looked at together: the check makes copies

std::int64_t countStrange(const at::Tensor& tensor) {
    return at::isfinite(tensor).logical_not().sum().item<std::int64_t>();
}

/// "weight (3 of 4096 values)"; empty where all are numbers.
Result<std::string> strangeValues(const WeightPlan::Rows& rows) {
    CELLOOM_TRY(tensor, rows.file->tensor(rows.name));
    std::int64_t count = 0;
    if (tensor.dim() == 0) count = countStrange(tensor);
    for (std::int64_t first = 0; tensor.dim() > 0 && first < tensor.size(0); first += kBlockRows)
        count += countStrange(tensor.narrow(0, first, std::min(kBlockRows, tensor.size(0) - first)));
    rows.file->release(rows.name);
    return count == 0 ? std::string() : rows.name + " (" + std::to_string(count) + " of " + std::to_string(tensor.numel()) + " values)";
}

Status checkNumbers(const WeightPlan& plan, const fs::path& place) {
    std::vector<std::string> strange;
    for (const WeightPlan::Item& item : plan.items)
        for (const WeightPlan::Rows& rows : item.rows) {
            if (rows.first != 0) continue; // a tensor that is used in parts is looked at once
            CELLOOM_TRY(found, strangeValues(rows));
            if (!found.empty()) strange.push_back(found);
        }
    if (strange.empty()) return {};
    return fail("holds NaN or infinite weights: " + joined(strange, 8) + ".",
                "Was it saved after a training that diverged? Use an earlier checkpoint.", place.string());
}

Status checkTokenizer(const ModelFolder& folder, const graph::ExpandedModel& model, VerifyReport& report) {
    if (folder.tokenizer.empty()) return {};
    CELLOOM_TRY(tokenizer, Tokenizer::load(folder.tokenizer));
    report.tokenizerWords = tokenizer->vocabSize();
    const std::int64_t vocabulary = families::vocabularyOf(model);
    if (vocabulary > 0 && report.tokenizerWords > vocabulary)
        return fail("has " + std::to_string(report.tokenizerWords) + " words, the model only " + std::to_string(vocabulary) + ".",
                    "It is the tokenizer of another model.", folder.tokenizer.string());
    return {};
}

} // namespace

Result<VerifyReport> verifyFolder(const ModelFolder& folder) {
    VerifyReport report;
    std::error_code code;
    report.hasManifest = fs::exists(folder.path / "manifest.json", code);
    if (report.hasManifest) CELLOOM_TRY_STATUS(verifyManifest(folder.path));
    const graph::Expansion expansion = graph::expand(folder.document);
    if (!expansion.ok()) return tl::unexpected(expansion.firstError());
    CELLOOM_TRY(plan, planWeights(folder.weightFiles, expansion.model, tensorsOf(expansion.model), folder.path));
    CELLOOM_TRY_STATUS(checkNumbers(plan, folder.path));
    CELLOOM_TRY_STATUS(checkTokenizer(folder, expansion.model, report));
    report.files = folder.weightFiles.size();
    report.tensors = plan.items.size();
    report.parameters = static_cast<std::uint64_t>(expansion.model.parameterCount());
    for (const WeightPlan::Item& item : plan.items) {
        report.bytes += *byteCount(item.type, item.shape);
        if (std::find(report.types.begin(), report.types.end(), nameOf(item.type)) == report.types.end())
            report.types.emplace_back(nameOf(item.type));
    }
    report.notRead = plan.notRead;
    return report;
}

} // namespace celloom::engine
