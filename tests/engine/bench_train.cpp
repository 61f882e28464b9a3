// Speed of training steps (forward, loss, backward; no optimizer), for scripts/bench. Not a test: nothing is asserted.
// usage: celloom-bench [--preset NAME] [--batch N] [--length N] [--steps N] [--threads N] [--o2] [--allocator system|celloom]
// Prints one line: tokens per second of the fastest third of the steps, and the loss.
#include "engine/exec/network.h"
#include "engine/exec/runtime.h"
#include "models/families/families.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randint.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace celloom;

namespace {

struct Options {
    std::string preset = "baichuan-tiny";
    int batch = 8, length = 256, steps = 20, threads = 2;
    bool isO2 = false, ownAllocator = true;
};

Options parse(int argc, char** argv) {
    Options out;
    for (int i = 1; i < argc; ++i) {
        const auto next = [&] { return i + 1 < argc ? argv[++i] : ""; };
        if (!std::strcmp(argv[i], "--preset"))
            out.preset = next();
        else if (!std::strcmp(argv[i], "--batch"))
            out.batch = std::atoi(next());
        else if (!std::strcmp(argv[i], "--length"))
            out.length = std::atoi(next());
        else if (!std::strcmp(argv[i], "--steps"))
            out.steps = std::atoi(next());
        else if (!std::strcmp(argv[i], "--threads"))
            out.threads = std::atoi(next());
        else if (!std::strcmp(argv[i], "--o2"))
            out.isO2 = true;
        else if (!std::strcmp(argv[i], "--allocator"))
            out.ownAllocator = std::strcmp(next(), "system") != 0;
    }
    return out;
}

template <class T> T must(Result<T> result) {
    if (result) return std::move(*result);
    std::fprintf(stderr, "%s\n", result.error().text().c_str());
    std::exit(1);
}

} // namespace

int main(int argc, char** argv) {
    const Options options = parse(argc, argv);
    if (options.ownAllocator) engine::setUpAllocator();
    engine::setThreads(options.threads);
    graph::Expansion expansion = graph::expand(must(families::buildPreset(options.preset)));
    const std::int64_t vocabulary = expansion.model.hyperInteger("vocab", 0);
    recipe::TreatmentTable plain;
    plain.cells.resize(expansion.model.cells.size());
    const auto network = must(engine::Network::create(std::move(expansion.model), plain,
                                                      {.ampLevel = options.isO2 ? engine::AmpLevel::O2 : engine::AmpLevel::O0}));
    const at::Tensor ids = at::randint(3, vocabulary, {options.batch, options.length}, at::detail::createCPUGenerator(1), at::kLong);

    std::vector<double> seconds;
    double mean = 0;
    for (int step = 0; step < options.steps + 2; ++step) {
        const auto start = std::chrono::steady_clock::now();
        for (engine::Parameter& parameter : network->parameters()) parameter.tensor.mutable_grad().reset();
        const auto outputs = must(network->forward({.inputIds = ids}, {.training = true}));
        const engine::LossSum loss = engine::languageModelLoss(outputs.at("logits"), ids);
        (loss.sum / loss.count).backward();
        if (step >= 2) seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
        mean = loss.sum.item<double>() / static_cast<double>(loss.count);
    }
    std::sort(seconds.begin(), seconds.end());
    const double typical = seconds[seconds.size() / 6]; // the middle of the fastest third: other programs disturb only the rest
    std::printf("%.0f tokens/s, %.1f ms a step, loss %.4f\n", options.batch * options.length / typical, typical * 1e3, mean);
}
