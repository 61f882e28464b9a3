// The verb evaluate: a run of kind evaluate without a workspace. What it measures, and how, is LLMTrainer's.
#include "app/engine/broker/interrupt.h"
#include "app/engine/model_options.h"
#include "engine/train/llm_trainer.h"
#include "models/base/text.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdlib.h>

namespace celloom::app {
namespace fs = std::filesystem;
namespace {

struct EvaluateArguments : ModelOptions {
    std::vector<std::pair<std::string, std::string>> fields; // of the recipe: key and text
    std::vector<std::string> data;
};

/// Ends the evaluation after the batch at which the user pressed Ctrl+C.
class StopOnInterrupt : public engine::Callback {
    Status onEvalStepEnd(engine::RunContext& context) override {
        if (InterruptCounter::count() > 0) context.requestStop();
        return {};
    }
};

/// A folder that is gone when this is.
class TemporaryFolder {
public:
    TemporaryFolder() {
        std::error_code code;
        std::string name = (fs::temp_directory_path(code) / "celloom-evaluate-XXXXXX").string();
        if (::mkdtemp(name.data())) m_path = name;
    }
    ~TemporaryFolder() {
        std::error_code ignored; // nothing can be done about it here
        if (!m_path.empty()) fs::remove_all(m_path, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    [[nodiscard]] const fs::path& path() const { return m_path; }

private:
    fs::path m_path;
};

Result<recipe::Recipe> recipeOf(const EvaluateArguments& arguments, const Invocation& invocation) {
    recipe::Recipe recipe;
    CELLOOM_TRY_STATUS(recipe.setFromText("kind", "evaluate"));
    CELLOOM_TRY_STATUS(openModel(arguments.model, invocation).map([](const auto&) {})); // says better what is wrong with a name
    std::error_code code;
    const auto run = fs::exists(arguments.model, code) ? Result<store::RunFolder>(fail("")) : store::Workspace{invocation.workspace}.findRun(arguments.model);
    CELLOOM_TRY_STATUS(recipe.set("model.weights", fs::absolute(run ? run->path : fs::path(arguments.model), code).string()));
    std::vector<std::string> adapters;
    for (const std::string& adapter : arguments.adapters) {
        CELLOOM_TRY(path, findAdapter(adapter, invocation));
        adapters.push_back(fs::absolute(path, code).string());
    }
    CELLOOM_TRY_STATUS(recipe.set("model.adapters", adapters));
    CELLOOM_TRY_STATUS(recipe.set("data.validation", arguments.data));
    CELLOOM_TRY_STATUS(recipe.set("device", arguments.device));
    CELLOOM_TRY_STATUS(recipe.set("threads", std::int64_t(arguments.threads)));
    for (const auto& [key, text] : arguments.fields)
        if (!text.empty()) CELLOOM_TRY_STATUS(recipe.setFromText(key, text));
    return recipe;
}

void print(const engine::RunResult& result, bool isJson) {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (const auto& [name, value] : result.metrics) {
        if (!name.starts_with("eval/")) continue;
        if (isJson) json[name.substr(5)] = value;
        else std::printf("%-14s %s\n", name.substr(5).c_str(), roundedText(value).c_str());
    }
    if (isJson) std::printf("%s\n", json.dump().c_str());
}

/// An error is said once, at the end.
void sayUnlessError(const std::string& line) {
    if (!line.starts_with("error: ")) std::fprintf(stderr, "%s\n", line.c_str());
}

void runEvaluate(const EvaluateArguments& arguments, Invocation& invocation) {
    const auto recipe = recipeOf(arguments, invocation);
    if (!recipe) return invocation.fail(recipe.error(), codeOf(recipe.error()));
    const TemporaryFolder folder;
    if (folder.path().empty()) return invocation.fail({"no temporary folder can be made.", "Set TMPDIR to a folder that can be written.", {}});
    const InterruptCounter counter;
    StopOnInterrupt stop;
    auto trainer = engine::LLMTrainer::create(*recipe, folder.path(), {.print = sayUnlessError, .callbacks = {&stop}});
    if (!trainer) return invocation.fail(trainer.error(), codeOf(trainer.error()));
    const engine::RunResult result = (*trainer)->run();
    if (result.state == store::RunState::Failed) return invocation.fail(result.error, result.code);
    invocation.exitCode = result.code;
    if (result.code == protocol::Ok) print(result, invocation.isJson);
}

} // namespace

void addEvaluateVerb(CLI::App& app, Invocation& invocation) {
    auto arguments = std::make_shared<EvaluateArguments>();
    CLI::App* verb = app.add_subcommand("evaluate", "Measures a model on data: loss, perplexity, answers to questions (as run --kind evaluate, without a workspace)");
    verb->add_option("--model", arguments->model, kModelHelp)->required();
    verb->add_option("--data", arguments->data, "Text, token or instruction files; folders and patterns too")->required();
    verb->add_option("--adapter", arguments->adapters, "A LoRA adapter beside the model: a folder that PEFT or Celloom saved, or a run; may be repeated")
        ->allow_extra_args(false);
    struct Option {
        const char *name, *key;
    };
    constexpr Option kOptions[] = {{"--format", "data.format"},
                                   {"--columns", "data.columns"},
                                   {"--encoding", "data.encoding"},
                                   {"--documents", "data.documents"},
                                   {"--template", "data.template"},
                                   {"--batch-size", "train.batch_size"},
                                   {"--sequence-length", "train.sequence_length"},
                                   {"--max-batches", "evaluate.max_batches"},
                                   {"--metrics", "evaluate.metrics"},
                                   {"--questions", "evaluate.generate"},
                                   {"--answer-tokens", "evaluate.generate_tokens"},
                                   {"--amp-level", "precision.amp_level"}};
    arguments->fields.reserve(std::size(kOptions)); // the options refer to them
    for (const Option& one : kOptions) {
        const recipe::Field* field = recipe::findField(one.key);
        CELLOOM_CHECK(field);
        auto& [key, text] = arguments->fields.emplace_back(one.key, "");
        verb->add_option(one.name, text, field->help + " (" + one.key + ")");
    }
    addModelOptions(*verb, *arguments);
    verb->callback([arguments, &invocation] { runEvaluate(*arguments, invocation); });
}

} // namespace celloom::app
