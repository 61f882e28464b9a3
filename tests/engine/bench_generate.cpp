// Speed of cached greedy decoding, for scripts/bench. Not a test: nothing is asserted.
// usage: celloom-bench-generate --export FOLDER [--size 20m|110m]
//        celloom-bench-generate --model FOLDER [--prompt N] [--new N] [--batch N] [--rounds N] [--threads N] [--no-cache]
// The first form writes a Llama-like model with random weights that transformers reads too; the second prints one line: new tokens per
// second, the prompts' own computation left out, of the best round.
#include "engine/checkpoint/model_folder.h"
#include "engine/exec/runtime.h"
#include "engine/generate/generate.h"
#include "models/families/families.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace celloom;

namespace {

struct Options {
    std::string model, target, size = "20m";
    int prompt = 32, count = 128, batch = 1, rounds = 3, threads = 2;
    bool useCache = true;
};

Options parse(int argc, char** argv) {
    Options out;
    for (int i = 1; i < argc; ++i) {
        const auto next = [&] { return i + 1 < argc ? argv[++i] : ""; };
        const auto is = [&](const char* name) { return !std::strcmp(argv[i], name); };
        if (is("--model")) out.model = next();
        else if (is("--export")) out.target = next();
        else if (is("--size")) out.size = next();
        else if (is("--prompt")) out.prompt = std::atoi(next());
        else if (is("--new")) out.count = std::atoi(next());
        else if (is("--batch")) out.batch = std::atoi(next());
        else if (is("--rounds")) out.rounds = std::atoi(next());
        else if (is("--threads")) out.threads = std::atoi(next());
        else if (is("--no-cache")) out.useCache = false;
    }
    return out;
}

template <class T> T must(Result<T> result) {
    if (result) return std::move(*result);
    std::fprintf(stderr, "%s\n", result.error().text().c_str());
    std::exit(1);
}

void exportTo(const Options& options) {
    const auto number = [](std::int64_t value) { return graph::ParamValue(value); };
    const bool isLarge = options.size == "110m";
    graph::Document document = must(families::buildPreset("llama2-7b"));
    const auto status = graph::applyOverrides(document, {{"vocab", number(isLarge ? 16000 : 8000)},
                                                         {"hidden", number(isLarge ? 768 : 512)},
                                                         {"layers", number(isLarge ? 12 : 4)},
                                                         {"heads", number(isLarge ? 12 : 8)},
                                                         {"intermediate", number(isLarge ? 2048 : 1376)},
                                                         {"max_positions", number(2048)}});
    if (!status) must(Result<int>(tl::unexpected(status.error())));
    graph::ExpandedModel model = graph::expand(document).model;
    recipe::TreatmentTable plain;
    plain.cells.resize(model.cells.size());
    std::fprintf(stderr, "%lld parameters\n", static_cast<long long>(model.parameterCount()));
    const auto network = must(engine::Network::create(std::move(model), plain, {.seed = 1, .initStd = 0.05}));
    if (auto written = engine::exportModel(*network, document, {}, options.target); !written) must(Result<int>(tl::unexpected(written.error())));
}

double tokensPerSecond(engine::Network& network, const Options& options) {
    using Clock = std::chrono::steady_clock;
    std::vector<engine::TokenRequest> requests;
    for (int row = 0; row < options.batch; ++row) {
        std::vector<std::int64_t> prompt;
        for (int i = 0; i < options.prompt; ++i) prompt.push_back((i * 37 + row * 101) % 7000 + 3);
        requests.push_back({prompt, {.maxNewTokens = options.count, .temperature = 0}});
    }
    Clock::time_point first{};
    std::int64_t tokens = 0;
    engine::GenerateOptions generating{.useCache = options.useCache};
    generating.onToken = [&](std::size_t, const engine::NewToken&) {
        if (++tokens == options.batch) first = Clock::now(); // the prompts' own computation ends here
        return true;
    };
    must(engine::generateTokens(network, requests, generating));
    return static_cast<double>(tokens - options.batch) / std::chrono::duration<double>(Clock::now() - first).count();
}

} // namespace

int main(int argc, char** argv) {
    const Options options = parse(argc, argv);
    engine::setUpAllocator();
    engine::setThreads(options.threads);
    if (!options.target.empty()) {
        exportTo(options);
        return 0;
    }
    const auto network = must(engine::loadNetwork(must(engine::openModelFolder(options.model)), {}));
    double best = 0;
    for (int round = 0; round < options.rounds; ++round) best = std::max(best, tokensPerSecond(*network, options));
    std::printf("%.0f tokens/s\n", best);
}
