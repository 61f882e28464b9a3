#include "engine/plugin/plugin.h"

#include "engine/cells/cell_error.h"
#include "engine/plugin/trust.h"
#include "engine/script/cell_script.h"
#include "models/base/text.h"

#include "engine/plugin/include/celloom/cell.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <unistd.h>

namespace celloom::engine {
namespace {

/// The bytes as a file that has no name and that nobody changes.
Result<int> asMemoryFile(const std::string& bytes) {
    const int file = ::memfd_create("celloom-plugin", MFD_CLOEXEC);
    if (file < 0) return fail(std::string("A plugin cannot be loaded: ") + std::strerror(errno) + ".");
    for (std::size_t done = 0; done < bytes.size();) {
        const ssize_t count = ::write(file, bytes.data() + done, bytes.size() - done);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) {
            const std::string reason = std::strerror(errno);
            ::close(file);
            return fail("A plugin cannot be loaded: " + reason + ".");
        }
        done += static_cast<std::size_t>(count);
    }
    return file;
}

/// Loads what was hashed. The library is never unloaded: graphs of autograd may hold its code.
Result<const CelloomPlugin*> load(const PluginFile& file, const std::string& library) {
    CELLOOM_TRY(descriptor, asMemoryFile(file.bytes));
    void* handle = ::dlopen(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), RTLD_NOW | RTLD_LOCAL);
    const char* problem = handle ? nullptr : ::dlerror();
    const std::string reason = problem ? problem : "";
    ::close(descriptor);
    if (!handle) return fail("The library " + inQuotes(library) + " cannot be loaded: " + reason.substr(0, 300) + ".", "It may need libraries that are not here: a plugin links LibTorch alone.");
    using Entry = const CelloomPlugin* (*)();
    const auto entry = reinterpret_cast<Entry>(::dlsym(handle, "celloom_plugin"));
    const CelloomPlugin* plugin = entry ? entry() : nullptr;
    if (!plugin || !plugin->stamp || plugin->stamp != file.stamp || !plugin->cells)
        return fail("The library " + inQuotes(library) + " gives no cells, or others than its stamp says.", "Build it with CELLOOM_PLUGIN of celloom/cell.h.");
    return plugin;
}

class PluginCell final : public Cell {
public:
    PluginCell(const graph::CellInstance& instance, const CelloomCellEntry& entry)
        : Cell(instance), m_ports{instance.ports("inputs"), instance.ports("outputs"), instance.ports("weights")}, m_cell(entry.make(infoOf(instance, m_ports)), entry.destroy) {
        if (!m_cell) throw CellError({"The library made no cell " + inQuotes(entry.name) + ".", "Look at its settings.", instance.path + ", cell"});
    }

    std::vector<at::Tensor> construct(const std::vector<at::Tensor>& inputs, StepContext& context) override {
        plugin::Context given{context.isTraining, context.isAgain, mixSeed(context.dropoutSeed, index()), computeType(), {}};
        for (const graph::DeclaredPort& port : m_ports.weights) given.weights[port.name] = weight(port.name);
        std::vector<at::Tensor> results = m_cell->construct(inputs, given);
        if (auto status = checkDeclared(m_ports.inputs, inputs, m_ports.outputs, results); !status)
            throw CellError({status.error().message, status.error().hint, instance().path});
        return results;
    }

private:
    static plugin::CellInfo infoOf(const graph::CellInstance& instance, const ScriptPorts& ports) {
        plugin::CellInfo info{instance.path, instance.text("settings"), {}, {}, {}};
        for (const graph::DeclaredPort& port : ports.inputs) info.inputs.push_back(port.name);
        for (const graph::DeclaredPort& port : ports.outputs) info.outputs.push_back(port.name);
        for (const graph::WeightSpec& weight : instance.weights) info.weights[weight.name] = weight.dims;
        return info;
    }

    ScriptPorts m_ports;
    std::unique_ptr<plugin::Cell, void (*)(plugin::Cell*)> m_cell;
};

/// The libraries that one registry has loaded.
class Libraries {
public:
    Libraries(std::filesystem::path workspace, std::function<void(const LoadedPlugin&)> onLoaded) : m_workspace(std::move(workspace)), m_onLoaded(std::move(onLoaded)) {}

    Result<const CelloomPlugin*> find(const std::string& library) {
        const std::lock_guard lock(m_mutex);
        if (const auto known = m_loaded.find(library); known != m_loaded.end()) return known->second;
        CELLOOM_TRY(trust, PluginTrust::open(m_workspace));
        CELLOOM_TRY(file, trust.readTrusted(library));
        CELLOOM_TRY(plugin, load(file, library));
        if (m_onLoaded) m_onLoaded({library, file.sha256, file.stamp});
        return m_loaded[library] = plugin;
    }

private:
    std::filesystem::path m_workspace;
    std::function<void(const LoadedPlugin&)> m_onLoaded;
    std::mutex m_mutex;
    std::map<std::string, const CelloomPlugin*> m_loaded;
};

std::unique_ptr<Cell> makeCell(Libraries& libraries, const graph::CellInstance& instance) {
    const std::string &library = instance.text("library"), &wanted = instance.text("cell");
    const auto plugin = libraries.find(library);
    if (!plugin) throw CellError({plugin.error().message, plugin.error().hint, instance.path + ", library" + (plugin.error().place.empty() ? "" : " (" + plugin.error().place + ")")});
    std::vector<std::string> names;
    for (std::uint64_t i = 0; i < (*plugin)->count; ++i) {
        const CelloomCellEntry& entry = (*plugin)->cells[i];
        if (entry.name == wanted) return std::make_unique<PluginCell>(instance, entry);
        names.emplace_back(entry.name);
    }
    const std::vector<std::string> close = nearest(wanted, names);
    throw CellError({"The library " + inQuotes(library) + " has no cell " + inQuotes(wanted) + ".",
                     close.empty() ? "It has " + joined(names) + "." : "Did you mean " + joined(close) + "?", instance.path + ", cell"});
}

} // namespace

std::shared_ptr<const CellRegistry> cellsOf(const std::filesystem::path& workspace, std::function<void(const LoadedPlugin&)> onLoaded) {
    auto registry = std::make_shared<CellRegistry>(CellRegistry::standard());
    registry->replace("Plugin", [libraries = std::make_shared<Libraries>(workspace, std::move(onLoaded))](const graph::CellInstance& instance) -> std::unique_ptr<Cell> {
        if (instance.text("library").empty()) return CellRegistry::standard().make(instance); // says that this program has no cells of its own
        return makeCell(*libraries, instance);
    });
    return registry;
}

std::function<void(const LoadedPlugin&)> noteIn(store::RunWriter& writer, protocol::ChildLink* link) {
    return [&writer, link](const LoadedPlugin& plugin) {
        const std::string said = "Uses cells of " + plugin.library + ", SHA-256 " + plugin.sha256 + ".";
        const std::string data = nlohmann::json{{"library", plugin.library}, {"sha256", plugin.sha256}, {"stamp", plugin.stamp}}.dump();
        writer.event(0, "info", "plugin", said, {}, data);
        if (link) link->message(0, "info", "plugin", said, {});
    };
}

} // namespace celloom::engine
