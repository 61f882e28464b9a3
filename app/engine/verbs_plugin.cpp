// plugin trust, list, untrust: which libraries of cells this workspace may load. Nothing here loads one.
#include "app/engine/verbs.h"
#include "engine/plugin/trust.h"
#include "models/base/text.h"
#include "models/store/run_folder.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>

namespace celloom::app {
namespace {

using engine::PluginTrust;
using engine::TrustedPlugin;
using nlohmann::json;

struct PluginArguments {
    std::string file;
};

json toJson(const TrustedPlugin& one) { return {{"name", one.name}, {"sha256", one.sha256}, {"stamp", one.stamp}, {"source", one.source}, {"time", one.time}}; }

void print(const json& value) { std::printf("%s\n", value.dump(-1, ' ', false, json::error_handler_t::replace).c_str()); }

void trust(const PluginArguments& arguments, Invocation& invocation) {
    const auto workspace = store::Workspace::open(invocation.workspace);
    if (!workspace) return invocation.fail(workspace.error());
    auto list = PluginTrust::open(workspace->path);
    if (!list) return invocation.fail(list.error(), protocol::BadInput);
    const auto added = list->trust(arguments.file);
    if (!added) return invocation.fail(added.error(), protocol::BadInput);
    if (invocation.isJson) return print(toJson(*added));
    std::printf("%s is trusted: graphs may name it as the library of Plugin cells. SHA-256 %s\n", added->name.c_str(), added->sha256.c_str());
    std::fprintf(stderr, "Its code runs with your rights in every run that uses it; a changed file must be trusted again.\n");
}

void list(Invocation& invocation) {
    const auto trusted = PluginTrust::open(invocation.workspace);
    if (!trusted) return invocation.fail(trusted.error(), protocol::BadInput);
    json all = json::array();
    for (const TrustedPlugin& one : trusted->all()) {
        const auto file = trusted->readTrusted(one.name);
        const std::string state = file ? "ready" : file.error().message;
        if (!invocation.isJson) std::printf("%s  %s  %s\n", one.name.c_str(), one.sha256.substr(0, 16).c_str(), state.c_str());
        json entry = toJson(one);
        entry["state"] = state;
        entry["ready"] = file.has_value();
        all.push_back(std::move(entry));
    }
    if (invocation.isJson) print(all);
    else if (trusted->all().empty()) std::printf("no plugin is trusted in the workspace %s\n", invocation.workspace.c_str());
}

void untrust(const PluginArguments& arguments, Invocation& invocation) {
    auto trusted = PluginTrust::open(invocation.workspace);
    if (!trusted) return invocation.fail(trusted.error(), protocol::BadInput);
    const auto removed = trusted->untrust(arguments.file);
    if (!removed) return invocation.fail(removed.error(), protocol::BadInput);
    if (invocation.isJson) return print(toJson(*removed));
    std::printf("%s is trusted no longer\n", removed->name.c_str());
}

} // namespace

void addPluginVerbs(CLI::App& app, Invocation& invocation) {
    CLI::App* plugin = app.add_subcommand("plugin", "Libraries of cells in C++ that this workspace trusts");
    plugin->require_subcommand(1);
    const auto arguments = std::make_shared<PluginArguments>();
    CLI::App* add = plugin->add_subcommand("trust", "Copies a library into the workspace, after a look at its stamp, and trusts it by its SHA-256");
    add->add_option("FILE", arguments->file, "A shared library that was built against celloom/cell.h")->required();
    add->callback([arguments, &invocation] { trust(*arguments, invocation); });
    plugin->add_subcommand("list", "Trusted libraries, and whether each can still be used")->callback([&invocation] { list(invocation); });
    CLI::App* remove = plugin->add_subcommand("untrust", "Trusts a library no longer, and deletes the workspace's copy");
    remove->add_option("NAME", arguments->file, "Its name or its SHA-256")->required();
    remove->callback([arguments, &invocation] { untrust(*arguments, invocation); });
}

} // namespace celloom::app
