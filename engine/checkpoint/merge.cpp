#include "engine/checkpoint/merge.h"

#include "engine/checkpoint/atomic_folder.h"
#include "engine/checkpoint/manifest.h"
#include "models/base/files.h"
#include "models/families/vocabulary.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randint.h>
#include <algorithm>
#include <nlohmann/json.hpp>

namespace celloom::engine {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

constexpr const char* kMergedNote = "celloom_merged.json";
constexpr std::int64_t kProbeRows = 2, kProbeTokens = 32;
constexpr std::uint64_t kProbeSeed = 20260101;

Batch probe(const Network& network) {
    const graph::ExpandedModel& model = network.model();
    Batch batch;
    batch.inputIds = at::randint(0, std::max<std::int64_t>(2, families::vocabularyOf(model)), {kProbeRows, std::min(kProbeTokens, model.hyperInteger("max_positions", kProbeTokens))},
                                 at::detail::createCPUGenerator(kProbeSeed), at::kLong);
    return batch;
}

Result<at::Tensor> logitsOf(Network& network, const Batch& batch) {
    CELLOOM_TRY(outputs, network.forward(batch));
    const auto found = outputs.find("logits");
    if (found == outputs.end()) return fail("this model has no output \"logits\".", "Only language models can be merged with proof.");
    return found->second;
}

double largest(const at::Tensor& values) { return values.abs().max().item<double>(); } // sync

Result<std::string> adapterHash(const fs::path& folder) { return sha256OfFile(folder / recipe::kAdapterWeights); }

} // namespace

Result<MergeProof> mergeWithProof(Network& network, at::ScalarType type) {
    const at::NoGradGuard guard;
    const std::vector<AdapterWeight> active = network.activeAdapters();
    const Batch batch = probe(network);
    CELLOOM_TRY(beside, logitsOf(network, batch));
    MergeProof proof;
    proof.logitRange = largest(beside);
    CELLOOM_TRY_STATUS(network.activate({}));
    CELLOOM_TRY(plain, logitsOf(network, batch));
    proof.ofAdapters = largest(beside - plain);
    CELLOOM_TRY_STATUS(network.activate(active));
    CELLOOM_TRY_STATUS(network.merge());
    CELLOOM_TRY(merged, logitsOf(network, batch));
    proof.inFloat32 = largest(merged - beside);
    try {
        for (Parameter& parameter : network.parameters())
            if (!parameter.isAdapter && !parameter.isBuffer && type != at::kFloat) parameter.tensor.copy_(parameter.tensor.to(type));
    } catch (const std::exception& exception) {
        return tl::unexpected(errorOf(exception, "rounding the weights"));
    }
    CELLOOM_TRY(written, logitsOf(network, batch));
    proof.asWritten = largest(written - beside);
    return proof;
}

Status exportMerged(const Network& network, const ModelFolder& base, const std::vector<MergedAdapter>& adapters, at::ScalarType type,
                    const fs::path& target) {
    json merged = json::array();
    for (const MergedAdapter& adapter : adapters) {
        CELLOOM_TRY(hash, adapterHash(adapter.folder));
        merged.push_back({{"adapter", adapter.folder.string()}, {"sha256", hash}, {"weight", adapter.weight}});
    }
    const json note{{"schema", 1}, {"base", {{"path", network.base().path}, {"fingerprint", network.base().fingerprint}}}, {"merged", merged}};
    CELLOOM_TRY(folder, AtomicFolder::create(target));
    CELLOOM_TRY_STATUS(writeModelFiles(network, base.document, base.tokenizer, folder.path(), type));
    CELLOOM_TRY_STATUS(writeFileAtomically(folder.path() / kMergedNote, note.dump(2, ' ', false, json::error_handler_t::replace) + "\n"));
    CELLOOM_TRY_STATUS(writeManifest(folder.path()));
    return folder.commit();
}

Status checkNotMerged(const fs::path& base, const fs::path& adapter) {
    const fs::path path = base / kMergedNote;
    if (base.empty() || !fs::exists(path)) return {};
    CELLOOM_TRY(text, readFile(path, 16 << 20));
    const json note = json::parse(text, nullptr, false);
    if (!note.is_object() || !note.contains("merged") || !note["merged"].is_array()) return fail("is damaged.", {}, path.string());
    CELLOOM_TRY(hash, adapterHash(adapter));
    for (const json& one : note["merged"])
        if (one.is_object() && one.value("sha256", std::string()) == hash)
            return fail("this adapter was merged into " + base.string() + " already.", "Use that model as it is, or the base that it was made from.",
                        adapter.string());
    return {};
}

} // namespace celloom::engine
