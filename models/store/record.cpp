// readRecord(): a run as its folder tells it. The one place that decides how a run stands.
#include "models/store/index.h"

#include "models/base/exit_codes.h"
#include "models/base/files.h"
#include "models/store/run_lock.h"
#include "models/store/run_store.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace celloom::store {
namespace fs = std::filesystem;
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr int kEventsAtATime = 1000;

/// The text at "section.key" of the recipe; empty where it is left at its default or the recipe cannot be read.
std::string textAt(const nlohmann::json& recipe, const char* section, const char* key) {
    const auto found = recipe.find(section);
    if (found == recipe.end() || !found->is_object()) return {};
    const auto value = found->find(key);
    return value != found->end() && value->is_string() ? value->get<std::string>() : std::string();
}

void readRecipe(const RunFolder& folder, RunRecord& record) {
    const auto text = readFile(folder.recipe(), 16 << 20);
    const auto recipe = text ? nlohmann::json::parse(*text, nullptr, false) : nlohmann::json();
    if (!recipe.is_object()) return;
    const auto kind = recipe.find("kind");
    record.kind = kind != recipe.end() && kind->is_string() ? kind->get<std::string>() : std::string("pretrain");
    record.model = fs::path(textAt(recipe, "model", record.trains() ? "source" : "weights")).filename().string();
    record.precision = textAt(recipe, "precision", "amp_level");
    if (!record.trains()) return;
    const nlohmann::json::json_pointer rate("/optimizer/lr");
    if (recipe.contains(rate) && recipe[rate].is_number()) record.learningRate = recipe[rate].get<double>();
}

/// Fields from run.db. `lastError` gets message and hint of its last error event, where that is asked for.
void readDatabase(const RunFolder& folder, RunRecord& record, Progress& progress, std::string* lastError) {
    std::error_code code;
    if (!fs::exists(folder.database(), code)) return;
    const auto reader = RunReader::open(folder.database());
    if (!reader) {
        if (lastError) *lastError = reader.error().text();
        return;
    }
    if (const auto read = (*reader)->progress()) progress = *read;
    record.step = progress.step;
    record.totalSteps = progress.totalSteps;
    record.elapsedSeconds = progress.elapsedSeconds;
    if (const auto latest = (*reader)->latest()) {
        for (const MetricRow& row : *latest) {
            if (row.name == (record.trains() ? "train/loss" : "eval/loss"))
                record.lastLoss = row.value;
            else if (row.name == "eval/perplexity")
                record.lastPerplexity = row.value;
            else if (row.name == "train/tokens_per_s" || row.name == "predict/tokens_per_s")
                record.tokensPerSecond = row.value;
        }
    }
    if (const auto first = (*reader)->eventsAfter(0, 1); first && !first->empty()) record.started = first->front().time;
    if (!lastError) return;
    std::int64_t seen = 0;
    while (true) {
        const auto events = (*reader)->eventsAfter(seen, kEventsAtATime);
        if (!events || events->empty()) return;
        for (const EventRow& event : *events)
            if (event.level == "error") *lastError = event.message + (event.hint.empty() ? "" : " " + event.hint);
        seen = events->back().id;
    }
}

/// "stopped at step 12", "stopped after 12 of 400".
std::string stoppedText(const RunRecord& record, const Progress& progress) {
    if (record.trains()) return "stopped at step " + std::to_string(progress.step);
    return "stopped after " + std::to_string(progress.step) + " of " + std::to_string(progress.totalSteps);
}

void decideEnd(const RunExit& exit, const Progress& progress, const std::string& lastError, RunRecord& record) {
    record.ended = exit.time;
    if (exit.signal) {
        record.state = RunState::Interrupted;
        record.outcome = "interrupted (signal " + std::to_string(*exit.signal) + ")";
    } else if (exit.code == protocol::Ok) {
        record.state = progress.state == RunState::Stopped ? RunState::Stopped : RunState::Finished;
        record.outcome = record.state == RunState::Finished ? "finished" : stoppedText(record, progress);
    } else if (exit.code == protocol::Interrupted) {
        record.state = RunState::Stopped;
        record.outcome = stoppedText(record, progress);
    } else {
        record.state = RunState::Failed;
        record.outcome = "failed (exit code " + std::to_string(exit.code.value_or(protocol::Failure)) + ")";
        if (!lastError.empty()) record.outcome += ": " + lastError;
    }
}

} // namespace

Result<RunAbout> readAbout(const RunFolder& folder) {
    CELLOOM_TRY(text, readFile(folder.about(), 1 << 20));
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object()) return fail("holds no JSON object.", "The file is damaged.", folder.about().string());
    const auto textOf = [&](const char* key) {
        return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
    };
    RunAbout about;
    about.name = textOf("name");
    about.parent = textOf("parent");
    about.created = json.contains("created") && json["created"].is_number() ? json["created"].get<double>() : 0;
    about.isQueued = json.contains("queued") && json["queued"] == true;
    return about;
}

Status writeAbout(const RunFolder& folder, const RunAbout& about) {
    const nlohmann::json json{{"name", about.name}, {"created", about.created}, {"parent", about.parent}, {"queued", about.isQueued}};
    return writeFileAtomically(folder.about(), json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

Result<RunRecord> readRecord(const RunFolder& folder) {
    RunRecord record;
    record.number = folder.number();
    record.folder = folder.name();
    record.name = record.folder.substr(record.folder.find('-') + 1);
    record.lastLoss = record.lastPerplexity = record.tokensPerSecond = record.learningRate = kUnknown;

    // The order matters while others write: a run leaves the queue only after it is locked, and is unlocked only after its end is written.
    RunAbout about;
    if (std::error_code code; fs::exists(folder.about(), code)) {
        CELLOOM_TRY(read, readAbout(folder));
        about = read;
        if (!about.name.empty()) record.name = about.name;
        record.created = about.created;
        record.parent = about.parent;
    }
    const bool isAlive = isHeld(folder);
    CELLOOM_TRY(process, readProcess(folder));
    CELLOOM_TRY(exit, readExit(folder));
    readRecipe(folder, record);
    Progress progress;
    std::string lastError;
    readDatabase(folder, record, progress, isAlive ? nullptr : &lastError);

    if (isAlive) {
        // After a resume, run.db still tells of the earlier child until the new one speaks.
        const bool isOfThisChild =
            process && progress.pid == process->child && !isOver(progress.state) && progress.state != RunState::Queued;
        record.state = isOfThisChild ? progress.state : RunState::Preparing;
    } else if (about.isQueued) {
        record.state = RunState::Queued;
    } else if (exit) {
        decideEnd(*exit, progress, lastError, record);
    } else if (process && progress.pid == process->child && isOver(progress.state)) {
        record.state = progress.state; // the supervisor was killed, and the child said itself how it ended
        record.outcome = toString(progress.state) + " at step " + std::to_string(progress.step);
        record.ended = progress.updated;
    } else if (process) {
        record.state = RunState::Interrupted;
        record.outcome = "interrupted (nobody saw how)";
    } else {
        record.state = RunState::Failed;
        record.outcome = "never started";
    }
    return record;
}

} // namespace celloom::store
