#include "engine/checkpoint/adapter_folder.h"

#include "engine/checkpoint/atomic_folder.h"
#include "engine/checkpoint/merge.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/tensor_table.h"
#include "models/base/files.h"
#include "models/base/text.h"
#include "models/recipe/parameter_table.h"

#include <ATen/core/grad_mode.h>
#include <algorithm>

namespace celloom::engine {
namespace fs = std::filesystem;
using recipe::ParameterRow;
namespace {

constexpr std::uint64_t kMaxJsonBytes = 64 << 20;

bool isAdapter(const fs::path& folder) { return fs::is_regular_file(folder / recipe::kAdapterConfig); }

/// Of a run: the finished adapter, else its newest checkpoint's (their names sort by step from 6 digits on).
fs::path adapterIn(const fs::path& folder) {
    if (isAdapter(folder) || !fs::exists(folder / "recipe.json")) return folder;
    if (isAdapter(folder / "adapter")) return folder / "adapter";
    fs::path newest;
    std::error_code code;
    for (fs::directory_iterator item(folder / "checkpoints", code), end; !code && item != end; item.increment(code)) {
        const std::string name = item->path().filename().string(), best = newest.filename().string();
        const bool isLater = name.size() != best.size() ? name.size() > best.size() : name > best;
        if (name.starts_with("step-") && isAdapter(item->path()) && fs::exists(item->path() / "manifest.json") && isLater) newest = item->path();
    }
    return newest.empty() ? folder : newest;
}

/// The tensors of an adapter's file by path. Everything that does not fit is told at once.
Result<std::map<std::string, at::Tensor>> tensorsFor(const std::vector<ParameterRow>& rows, const SafetensorsFile& file, const fs::path& place) {
    constexpr std::size_t kShown = 8;
    std::map<std::string, at::Tensor> out;
    std::vector<std::string> missing, misshaped, unexpected = file.names();
    for (const ParameterRow& row : rows) {
        if (row.adapterName.empty()) continue;
        if (!file.has(row.adapterName)) {
            missing.push_back(row.adapterName);
            continue;
        }
        std::erase(unexpected, row.adapterName);
        CELLOOM_TRY(tensor, file.tensor(row.adapterName));
        if (tensor.sizes() == at::IntArrayRef(row.dims) && at::isFloatingType(tensor.scalar_type())) out[row.path] = tensor;
        else
            misshaped.push_back(row.adapterName + " is " + c10::toString(tensor.scalar_type()) + " " + shapeText(tensor.sizes().vec()) + ", expected " +
                                shapeText(row.dims));
    }
    std::string message;
    if (!missing.empty()) message += "; missing: " + joined(missing, kShown);
    if (!unexpected.empty()) message += "; unexpected: " + joined(unexpected, kShown);
    if (!misshaped.empty()) message += "; of another shape: " + joined(misshaped, kShown);
    if (message.empty()) return out;
    return fail("the adapter does not fit the model" + message + ".", "Is this adapter for another base model?", place.string());
}

/// PEFT writes a bias or leaves it out (its own configurations disagree): one that is not in the file stays the base's.
void dropAbsentBiases(const graph::ExpandedModel& model, recipe::TreatmentTable& treatment, const SafetensorsFile& file) {
    for (const ParameterRow& row : recipe::parameterTable(model, treatment))
        if (!row.isAdapter && row.path.ends_with(".bias") && !row.adapterName.empty() && !file.has(row.adapterName))
            treatment.cells[static_cast<std::size_t>(row.cell)].trainBias = false;
}

Status withPlace(const Status& status, const fs::path& place) {
    if (status) return {};
    const Error& error = status.error();
    return fail(error.message, error.hint, error.place.empty() ? place.string() : place.string() + ", " + error.place);
}

} // namespace

Result<AdapterFolder> openAdapterFolder(const fs::path& given) {
    const fs::path folder = adapterIn(given);
    if (!isAdapter(folder))
        return fail("holds no adapter (adapter_config.json).", "Give a folder that PEFT or Celloom saved, or a run that trained an adapter.", given.string());
    AdapterFolder out;
    out.path = folder;
    CELLOOM_TRY(text, readFile(folder / recipe::kAdapterConfig, kMaxJsonBytes));
    CELLOOM_TRY(config, recipe::adapterConfigFromJson(text, (folder / recipe::kAdapterConfig).string()));
    out.config = std::move(config);
    const fs::path notes = folder / recipe::kAdapterNotes;
    if (!fs::exists(notes)) return out;
    CELLOOM_TRY(noted, readFile(notes, kMaxJsonBytes));
    CELLOOM_TRY(read, recipe::adapterNotesFromJson(noted, notes.string()));
    out.notes = std::move(read);
    return out;
}

Status loadAdapter(Network& network, const std::string& name, const AdapterFolder& folder, OtherBase otherBase) {
    CELLOOM_TRY_STATUS(checkNotMerged(network.base().path, folder.path));
    if (folder.notes) {
        const Status same = recipe::checkBase(folder.notes->base, network.base());
        const bool hasSameShapes = folder.notes->base.shapes == network.base().shapes;
        if (!same && !(hasSameShapes && otherBase == OtherBase::Allow)) return withPlace(same, folder.path);
    }
    auto treatment = recipe::resolveLora(network.model(), folder.config.spec);
    if (!treatment) return withPlace(tl::unexpected(treatment.error()), folder.path);
    const fs::path path = folder.path / recipe::kAdapterWeights;
    CELLOOM_TRY(file, SafetensorsFile::open(path));
    dropAbsentBiases(network.model(), *treatment, *file);
    CELLOOM_TRY(tensors, tensorsFor(recipe::parameterTable(network.model(), *treatment), *file, path));
    return network.addAdapter(name, *treatment, tensors);
}

Status loadTrainedAdapter(Network& network, const AdapterFolder& folder) {
    if (folder.notes) CELLOOM_TRY_STATUS(withPlace(recipe::checkBase(folder.notes->base, network.base()), folder.path));
    const fs::path path = folder.path / recipe::kAdapterWeights;
    CELLOOM_TRY(file, SafetensorsFile::open(path));
    CELLOOM_TRY(tensors, tensorsFor(recipe::parameterTable(network.model(), network.treatment()), *file, path));
    const at::NoGradGuard guard;
    try {
        for (Parameter& parameter : network.parameters())
            if (const auto found = tensors.find(parameter.path); found != tensors.end()) parameter.tensor.copy_(found->second);
    } catch (const std::exception& exception) {
        return tl::unexpected(errorOf(exception, path.string()));
    }
    return {};
}

Status writeAdapterFiles(const Network& network, const std::string& chatTemplate, const fs::path& folder) {
    std::map<std::string, at::Tensor> tensors;
    const auto& parameters = network.parameters();
    for (const ParameterRow& row : recipe::parameterTable(network.model(), network.treatment())) {
        if (row.adapterName.empty()) continue;
        const auto found = std::find_if(parameters.begin(), parameters.end(), [&](const Parameter& parameter) { return parameter.path == row.path; });
        CELLOOM_CHECK(found != parameters.end());
        tensors[row.adapterName] = found->tensor.detach();
    }
    CELLOOM_TRY_STATUS(writeSafetensors(folder / recipe::kAdapterWeights, tensors));
    recipe::AdapterConfig config;
    config.spec = recipe::describe(network.model(), network.treatment());
    config.baseName = network.base().path;
    CELLOOM_TRY_STATUS(writeFileAtomically(folder / recipe::kAdapterConfig, recipe::toJson(config)));
    return writeFileAtomically(folder / recipe::kAdapterNotes, recipe::toJson(recipe::AdapterNotes{network.base(), chatTemplate}));
}

Status saveAdapter(const Network& network, const std::string& chatTemplate, const fs::path& target, const fs::path& tokenizer) {
    CELLOOM_TRY(folder, AtomicFolder::create(target));
    CELLOOM_TRY_STATUS(writeAdapterFiles(network, chatTemplate, folder.path()));
    CELLOOM_TRY_STATUS(writeTokenizerFiles(tokenizer, folder.path()));
    return folder.commit(AtomicFolder::Existing::Replace);
}

} // namespace celloom::engine
