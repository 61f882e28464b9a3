// LLMTrainer for programs of one's own: made without a broker, asked for what it found, let write.
#include "engine/train/llm_trainer.h"

#include "engine/plugin/plugin.h"
#include "models/base/files.h"
#include "models/recipe/checks.h"

#include <chrono>
#include <unistd.h>

namespace celloom::engine {
namespace fs = std::filesystem;
namespace {

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

Status checkRecipe(const recipe::Recipe& recipe) {
    for (const recipe::Problem& problem : recipe.validate())
        if (problem.severity == recipe::Problem::Severity::Error) return fail(problem.message, problem.hint, problem.key);
    return recipe::checkModel(recipe);
}

/// WORKSPACE/cache for WORKSPACE/runs/NAME.
fs::path cacheOf(const fs::path& folder) {
    const fs::path runs = folder.parent_path();
    return runs.filename() == "runs" ? runs.parent_path() / "cache" : folder / "cache";
}

Result<store::RunFolder> makeFolder(const fs::path& path) {
    std::error_code code;
    const fs::path absolute = fs::absolute(path, code).lexically_normal();
    if (!code) fs::create_directories(absolute, code);
    if (code) return fail("cannot be made: " + code.message() + ".", {}, path.string());
    return store::RunFolder{absolute.has_filename() ? absolute : absolute.parent_path()};
}

} // namespace

Result<std::unique_ptr<LLMTrainer>> LLMTrainer::create(const recipe::Recipe& recipe, const fs::path& path) { return create(recipe, path, Options()); }

Result<std::unique_ptr<LLMTrainer>> LLMTrainer::create(const recipe::Recipe& recipe, const fs::path& path, Options options) {
    CELLOOM_TRY_STATUS(checkRecipe(recipe));
    CELLOOM_TRY(folder, makeFolder(path));
    CELLOOM_TRY(lock, store::RunLock::take(folder));
    CELLOOM_TRY_STATUS(lock.write({.child = ::getpid(), .device = "cpu"}));
    CELLOOM_TRY_STATUS(writeFileAtomically(folder.recipe(), recipe.withAbsolutePaths().toJson(false)));
    CELLOOM_TRY(writer, store::RunWriter::open(folder.database()));
    if (!options.print) options.print = [](const std::string&) {};
    Setup setup{folder, options.cacheFolder.empty() ? cacheOf(folder.path) : options.cacheFolder, *writer, nullptr, options.stopSignal, std::move(options.print)};
    setup.callbacks = std::move(options.callbacks);
    const fs::path runs = folder.path.parent_path();
    setup.cells = options.cells ? std::move(options.cells) : runs.filename() == "runs" ? cellsOf(runs.parent_path(), noteIn(*writer, nullptr)) : nullptr;
    auto trainer = std::make_unique<LLMTrainer>(std::move(setup), recipe.withAbsolutePaths());
    trainer->m_ownWriter = std::move(writer);
    trainer->m_lock = std::move(lock);
    return trainer;
}

RunResult LLMTrainer::run() {
    RunResult result = carryOut();
    if (m_ownWriter) describe(result);
    if (!m_lock) return result;
    if (const Status status = store::writeExit(m_setup.folder, {int(result.code), {}, now()}); !status) m_reporter.print("error: " + status.error().text());
    return result;
}

/// Read back from the run's folder, where all of it is.
void LLMTrainer::describe(RunResult& result) const {
    if (const auto reader = store::RunReader::open(m_setup.folder.database()))
        if (const auto rows = (*reader)->latest())
            for (const store::MetricRow& row : *rows) result.metrics[row.name] = row.value;
    result.checkpoint = m_setup.folder.newestCheckpoint();
    std::error_code code;
    if (fs::exists(predictions(), code)) result.predictions = predictions();
}

Result<TextResult> LLMTrainer::predict(const std::string& prompt, SamplingOptions sampling) {
    if (!m_network || !m_tokenizer) return fail("there is no model to write with.", "Run a recipe that has a tokenizer first.");
    TextGenerator generator(*m_network, *m_tokenizer);
    if (m_chat) sampling.stopTokens = m_chat->stopTokens();
    else if (m_tokenizer->eos() >= 0) sampling.stopTokens.push_back(m_tokenizer->eos());
    std::vector<std::int64_t> ids = promptOf(prompt);
    if (ids.empty()) ids = generator.encode({});
    CELLOOM_TRY(results, generator.generate({{std::move(ids), sampling, {}}}));
    return std::move(results.front());
}

} // namespace celloom::engine
