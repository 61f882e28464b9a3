// Celloom's engine as a library: pretrain a tiny Baichuan on a few chapters, let it go on with a sentence, and measure it on a chapter it never saw.
//   example_pretrain_and_talk CORPUS FOLDER      (CORPUS: resources/corpora/sanguo; FOLDER: for what the two runs leave)
#include "engine/train/llm_trainer.h"

#include <iostream>

using namespace celloom;

/// Callbacks are MindSpore's: override what you want to hear of.
class PrintLoss : public engine::Callback {
    Status stepEnd(engine::RunContext& context) override {
        const engine::CallbackParams& params = context.originalArgs();
        if (params.curStepNum % 20 == 1 || params.curStepNum == params.totalSteps) std::cout << "step " << params.curStepNum << " loss " << params.netOutputs << "\n";
        return {};
    }
};

Status run(const std::string& corpus, const std::filesystem::path& folder) {
    CELLOOM_TRY(recipe, recipe::Recipe::fromJson(R"({
        "model": {"source": "baichuan-tiny", "overrides": ["hidden=64", "layers=2", "heads=2", "intermediate=128"]},
        "tokenizer": {"vocab_size": 2600}, "train": {"batch_size": 8, "sequence_length": 32, "max_steps": 60},
        "optimizer": {"lr": 0.01}, "schedule": {"warmup_steps": 5}, "threads": 2})"));
    CELLOOM_TRY_STATUS(recipe.setFromText("data.train", corpus + "/001.txt," + corpus + "/002.txt"));
    CELLOOM_TRY_STATUS(recipe.setFromText("data.validation", corpus + "/003.txt"));

    PrintLoss printLoss;
    CELLOOM_TRY(trainer, engine::LLMTrainer::create(recipe, folder / "pretrain", {.callbacks = {&printLoss}}));
    const engine::RunResult trained = trainer->run();
    if (trained.code != protocol::Ok) return tl::unexpected(trained.error);
    CELLOOM_TRY(text, trainer->predict("却说曹操", {.maxNewTokens = 24, .temperature = 0}));
    std::cout << "却说曹操" << text.text << "\n";

    CELLOOM_TRY_STATUS(recipe.setFromText("kind", "evaluate")); // the same recipe, of another kind
    CELLOOM_TRY_STATUS(recipe.setFromText("model.weights", trained.checkpoint.string()));
    CELLOOM_TRY(evaluator, engine::LLMTrainer::create(recipe, folder / "evaluate"));
    const engine::RunResult measured = evaluator->run();
    if (measured.code != protocol::Ok) return tl::unexpected(measured.error);
    std::cout << "perplexity " << measured.metrics.at("eval/perplexity") << " (while training " << trained.metrics.at("eval/perplexity") << ")\n";
    return {};
}

int main(int argc, char** argv) {
    if (argc != 3) return std::cerr << "give CORPUS and FOLDER\n", 2;
    const Status status = run(argv[1], argv[2]);
    if (!status) std::cerr << status.error().text() << "\n";
    return status ? 0 : 1;
}
