// The verbs about runs: they talk to the workspace's broker or read its databases. No LibTorch.
#include "app/engine/verbs.h"

#include <cstdio>

namespace celloom::app {

void Invocation::fail(const Error& error, int code) {
    exitCode = code;
    if (isJson) {
        const nlohmann::json json{{"error", {{"message", error.message}, {"hint", error.hint}, {"place", error.place}}}};
        std::fputs(protocol::toLine(json).c_str(), stderr);
    } else {
        std::fprintf(stderr, "celloom-engine: %s\n", error.text().c_str());
    }
}

void addRunVerbs(CLI::App&, Invocation&) {}

} // namespace celloom::app
