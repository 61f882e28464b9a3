#include "engine/checkpoint/loaded_model.h"

namespace celloom::engine {

Result<LoadedModel> loadModel(ModelFolder folder, const std::vector<AdapterChoice>& adapters, const NetworkOptions& options, OtherBase otherBase,
                              const std::function<void(const std::string&)>& say) {
    CELLOOM_TRY(network, loadNetwork(folder, options));
    LoadedModel loaded{std::move(folder), std::move(network), {}};
    std::vector<AdapterWeight> active = loaded.network->activeAdapters();
    if (!loaded.folder.adapter.empty()) loaded.adapters.push_back({loaded.folder.adapter, 1});
    for (std::size_t i = 0; i < adapters.size(); ++i) {
        CELLOOM_TRY(adapter, openAdapterFolder(adapters[i].path));
        for (const std::string& unused : adapter.config.notUsed)
            if (say) say(adapter.path.string() + ": " + unused + " is not used here");
        const std::string name = std::to_string(i + 1) + ": " + (adapters[i].name.empty() ? adapters[i].path.string() : adapters[i].name);
        CELLOOM_TRY_STATUS(loadAdapter(*loaded.network, name, adapter, otherBase));
        active.push_back({name, adapters[i].weight});
        loaded.adapters.push_back({adapter.path, adapters[i].weight});
    }
    if (!adapters.empty()) CELLOOM_TRY_STATUS(loaded.network->activate(active));
    return loaded;
}

} // namespace celloom::engine
