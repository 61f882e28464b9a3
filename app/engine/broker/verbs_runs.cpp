// The verbs about runs: they ask the workspace's broker, or read its databases. No LibTorch.
#include "app/engine/verbs.h"

#include "app/engine/broker/client.h"
#include "app/engine/broker/control_run.h"
#include "app/engine/broker/export_metrics.h"
#include "app/engine/broker/follow.h"
#include "app/engine/broker/recipe_options.h"
#include "app/engine/broker/records.h"
#include "app/engine/broker/server.h"
#include "models/base/disk.h"
#include "models/base/text.h"
#include "models/recipe/checks.h"
#include "models/recipe/estimate.h"
#include "models/store/index.h"
#include "models/store/resume_plan.h"
#include "models/store/run_lock.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <memory>
#include <unistd.h>

namespace celloom::app {
namespace fs = std::filesystem;
using protocol::Message;

namespace {

// --- saying things

std::string timeText(double seconds) {
    if (!(seconds > 0)) return "-";
    const auto time = static_cast<std::time_t>(seconds);
    std::tm local{};
    std::array<char, 32> text{};
    if (!::localtime_r(&time, &local) || std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local) == 0) return "-";
    return text.data();
}

std::string knownNumber(double value) {
    return std::isnan(value) ? "-" : roundedText(value);
}

void print(const Message& message) {
    std::fputs(protocol::toLine(message).c_str(), stdout);
}

/// Exit code for an error of a recipe or of a name that the user gave.
template <class T> bool isGood(const Result<T>& result, Invocation& invocation, int code = protocol::Failure) {
    if (!result) invocation.fail(result.error(), code);
    return result.has_value();
}

// --- list and show read the databases themselves: they work without a broker and on a read-only disk

/// Newest first. Runs that are over come from the index, the others from their folders.
Result<std::vector<store::RunRecord>> readRuns(const store::Workspace& workspace) {
    std::map<int, store::RunRecord> indexed;
    if (std::error_code code; fs::exists(workspace.index(), code))
        if (const auto index = store::Index::open(workspace, true))
            if (const auto runs = (*index)->runs())
                for (const store::RunRecord& run : *runs) indexed[run.number] = run;
    std::vector<store::RunRecord> records;
    for (const store::RunFolder& folder : workspace.allRuns()) {
        const auto known = indexed.find(folder.number());
        if (known != indexed.end() && store::isOver(known->second.state) && known->second.folder == folder.name() &&
            !store::isHeld(folder)) {
            records.push_back(known->second);
            continue;
        }
        CELLOOM_TRY(record, store::readRecord(folder));
        if (known != indexed.end()) {
            record.tags = known->second.tags;
            record.note = known->second.note;
        }
        records.push_back(std::move(record));
    }
    std::reverse(records.begin(), records.end());
    return records;
}

void list(Invocation& invocation) {
    const auto workspace = store::Workspace::openForReading(invocation.workspace);
    if (!isGood(workspace, invocation, protocol::BadInput)) return;
    const auto runs = readRuns(*workspace);
    if (!isGood(runs, invocation)) return;
    if (invocation.isJson) {
        Message all = Message::array();
        for (const store::RunRecord& run : *runs) all.push_back(toJson(run));
        return print({{"runs", std::move(all)}});
    }
    if (runs->empty()) return static_cast<void>(std::fputs("no runs yet\n", stderr));
    std::printf("%-5s %-9s %-12s %-15s %-10s %-10s %-20s %s\n", "run", "kind", "state", "step", "loss", "perplexity", "created", "name");
    for (const store::RunRecord& run : *runs) {
        const std::string steps = std::to_string(run.step) + "/" + std::to_string(run.totalSteps);
        std::printf("%-5d %-9s %-12s %-15s %-10s %-10s %-20s %s\n", run.number, run.kind.c_str(), store::toString(run.state).c_str(), steps.c_str(),
                    knownNumber(run.lastLoss).c_str(), knownNumber(run.lastPerplexity).c_str(), timeText(run.created).c_str(),
                    run.name.c_str());
    }
}

constexpr int kShownEvents = 10;
constexpr int kShownLogLines = 20;

struct ShownRun {
    store::RunRecord record;
    store::Progress progress;
    std::vector<store::MetricRow> latest;
    std::vector<store::EventRow> events; // the last ones
    std::string log;
};

Result<ShownRun> readShown(const store::RunFolder& folder) {
    ShownRun shown;
    CELLOOM_TRY(record, store::readRecord(folder));
    shown.record = std::move(record);
    shown.log = tail(folder.log(), kShownLogLines);
    if (std::error_code code; !fs::exists(folder.database(), code)) return shown;
    CELLOOM_TRY(reader, store::RunReader::open(folder.database()));
    CELLOOM_TRY(progress, reader->progress());
    CELLOOM_TRY(latest, reader->latest());
    shown.progress = progress;
    shown.latest = std::move(latest);
    for (std::int64_t seen = 0;;) {
        CELLOOM_TRY(events, reader->eventsAfter(seen, 1000));
        if (events.empty()) return shown;
        seen = events.back().id;
        shown.events.insert(shown.events.end(), events.begin(), events.end());
        if (shown.events.size() > kShownEvents) shown.events.erase(shown.events.begin(), shown.events.end() - kShownEvents);
    }
}

void show(const std::string& run, Invocation& invocation) {
    const auto workspace = store::Workspace::openForReading(invocation.workspace);
    if (!isGood(workspace, invocation, protocol::BadInput)) return;
    const auto folder = workspace->findRun(run);
    if (!isGood(folder, invocation, protocol::BadInput)) return;
    const auto shown = readShown(*folder);
    if (!isGood(shown, invocation)) return;
    if (invocation.isJson) {
        Message json{{"record", toJson(shown->record)},
                     {"progress", toJson(shown->progress)},
                     {"metrics", Message::array()},
                     {"events", Message::array()},
                     {"log_tail", shown->log}};
        for (const store::MetricRow& row : shown->latest) json["metrics"].push_back(toJson(row));
        for (const store::EventRow& row : shown->events) json["events"].push_back(toJson(row));
        return print(json);
    }
    const store::RunRecord& record = shown->record;
    std::printf("run        %d, %s (%s)\nfolder     %s\nstate      %s\n", record.number, record.name.c_str(), record.kind.c_str(), folder->path.c_str(),
                (record.outcome.empty() ? store::toString(record.state) : record.outcome).c_str());
    const std::string stage = store::isOver(record.state) ? "" : shown->progress.stage; // of a run that is over: where it was last
    std::printf("%-10s %lld of %lld%s%s\ncreated    %s\nended      %s\n", record.trains() ? "step" : record.kind == "evaluate" ? "batches" : "prompts",
                static_cast<long long>(record.step), static_cast<long long>(record.totalSteps), stage.empty() ? "" : ", ", stage.c_str(), timeText(record.created).c_str(),
                timeText(record.ended).c_str());
    for (const store::MetricRow& row : shown->latest)
        std::printf("%-20s %-12g step %lld\n", row.name.c_str(), row.value, static_cast<long long>(row.step));
    for (const store::EventRow& row : shown->events)
        std::printf("%s  %-7s %s %s\n", timeText(row.time).c_str(), row.level.c_str(), row.message.c_str(), row.hint.c_str());
    if (!shown->log.empty()) std::printf("--- end of %s\n%s", folder->log().filename().c_str(), shown->log.c_str());
}

// --- run and resume

void follow(std::unique_ptr<BrokerClient> client, const store::Workspace& workspace, const Result<Message>& answer, bool isDetached,
            Invocation& invocation) {
    // Only what is wrong in a recipe names a place in it.
    if (!isGood(answer, invocation, !answer && recipe::findField(answer.error().place) ? protocol::BadInput : protocol::Failure)) return;
    const auto folder = workspace.findRun(answer->value("run", Message()).is_string() ? answer->at("run").get<std::string>() : "");
    if (!isGood(folder, invocation)) return;
    if (isDetached) {
        if (invocation.isJson)
            print({{"run", folder->name()}, {"number", folder->number()}, {"folder", folder->path.string()}});
        else
            std::printf("%s\n", folder->name().c_str());
        return;
    }
    std::fprintf(stderr, "run %d: %s\n", folder->number(), folder->path.c_str());
    invocation.exitCode = followRun(std::move(client), workspace, *folder, invocation);
}

void warn(const recipe::Problem& problem) {
    std::fprintf(stderr, "warning: %s: %s %s\n", problem.key.c_str(), problem.message.c_str(), problem.hint.c_str());
}

void run(const std::string& path, const RecipeOptions& options, bool isDetached, Invocation& invocation) {
    const store::Workspace known{invocation.workspace}; // not made before the recipe is known to be good
    const auto recipe = options.load(path, &known);
    if (!isGood(recipe, invocation, protocol::BadInput)) return;
    for (const recipe::Problem& problem : recipe->validate()) {
        if (problem.severity == recipe::Problem::Severity::Error)
            return invocation.fail({problem.message, problem.hint, problem.key}, protocol::BadInput);
        warn(problem);
    }
    if (!isGood(recipe::checkModel(*recipe), invocation, protocol::BadInput)) return;
    if (const auto model = recipe::modelOf(*recipe))
        for (const recipe::Problem& problem : recipe::modelWarnings(*recipe, *model)) warn(problem);
    const auto workspace = store::Workspace::open(invocation.workspace);
    if (!isGood(workspace, invocation)) return;
    const InterruptCounter counter; // from here on Ctrl+C means the run
    auto client = BrokerClient::connect(*workspace);
    if (!isGood(client, invocation)) return;
    const auto answer =
        (*client)->request({{"type", "submit"}, {"recipe", Message::parse(recipe->toJson(false))}, {"name", recipe->text("name")}});
    follow(std::move(*client), *workspace, answer, isDetached, invocation);
}

/// Says where the run will go on and what changes from there. False where it is complete, or the change is refused.
bool announceResume(const store::RunFolder& folder, const Message& changes, Invocation& invocation) {
    auto recipe = recipe::Recipe::load(folder.recipe());
    for (const auto& [key, text] : changes.items())
        if (recipe && !isGood(recipe->setFromText(key, text.get<std::string>()), invocation, protocol::BadInput)) return false;
    const auto plan = recipe ? store::planResume(folder, *recipe) : Result<store::ResumePlan>(tl::unexpected(recipe.error()));
    if (!isGood(plan, invocation, protocol::BadInput)) return false;
    const recipe::ResumeEffect& effect = plan->effect;
    const std::string total = effect.total > 0 ? " of " + std::to_string(effect.total) : "", name = std::to_string(folder.number());
    if (effect.isComplete()) {
        std::fprintf(stderr, "run %s is complete: all %lld steps are done. To train on, give it more: celloom-engine resume %s %s\n", name.c_str(),
                     static_cast<long long>(effect.step), name.c_str(), recipe::moreSteps(effect, *recipe).c_str());
        if (invocation.isJson) print({{"run", folder.name()}, {"complete", true}, {"steps", effect.step}});
        return false;
    }
    if (!recipe::trains(*recipe))
        std::fprintf(stderr, "run %s %s\n", name.c_str(), recipe->text("kind") == "predict" ? "goes on after its last text" : "measures anew");
    else if (plan->checkpoint.empty()) std::fprintf(stderr, "run %s begins again: no checkpoint was saved\n", name.c_str());
    else
        std::fprintf(stderr, "run %s goes on from %s: %lld%s steps are done\n", name.c_str(), plan->checkpoint.c_str(), static_cast<long long>(effect.step),
                     total.c_str());
    const std::vector<std::string> sentences = recipe::sentencesOf(effect);
    if (!sentences.empty()) std::fprintf(stderr, "changed from step %lld on:\n", static_cast<long long>(effect.step + 1));
    for (const std::string& sentence : sentences) std::fprintf(stderr, "  %s\n", sentence.c_str());
    return true;
}

void resume(const std::string& run, const RecipeOptions& options, bool isDetached, Invocation& invocation) {
    const auto workspace = store::Workspace::open(invocation.workspace);
    if (!isGood(workspace, invocation)) return;
    const auto folder = workspace->findRun(run);
    if (!isGood(folder, invocation, protocol::BadInput)) return;
    const auto changes = options.changes();
    if (!isGood(changes, invocation, protocol::BadInput)) return;
    const auto record = store::readRecord(*folder);
    if (record && store::isOver(record->state) && !announceResume(*folder, *changes, invocation)) return; // else the broker refuses
    const InterruptCounter counter; // from here on Ctrl+C means the run
    auto client = BrokerClient::connect(*workspace);
    if (!isGood(client, invocation)) return;
    const auto answer = (*client)->request({{"type", "resume"}, {"run", folder->name()}, {"changes", *changes}});
    follow(std::move(*client), *workspace, answer, isDetached, invocation);
}

// --- control

/// Waits until the run is over. Without a broker's events: the lock and the folder tell.
void waitUntilOver(const store::RunFolder& folder) {
    while (true) {
        const auto record = store::readRecord(folder);
        if (!record || store::isOver(record->state)) return;
        ::usleep(100000);
    }
}

void stop(const std::string& run, const std::string& action, bool isWaiting, Invocation& invocation) {
    const auto workspace = store::Workspace::open(invocation.workspace);
    if (!isGood(workspace, invocation)) return;
    const auto folder = workspace->findRun(run);
    if (!isGood(folder, invocation, protocol::BadInput)) return;
    const auto record = store::readRecord(*folder);
    if (!isGood(record, invocation)) return;
    if (store::isOver(record->state))
        return invocation.fail({"run " + record->folder + " is not running: it is " + store::toString(record->state) + ".", {}, {}},
                               protocol::BadInput);
    auto client = BrokerClient::connect(*workspace);
    if (!isGood(client, invocation)) return;
    const auto answer = (*client)->request({{"type", "control"}, {"run", folder->name()}, {"action", action}});
    if (!isGood(answer, invocation)) return;
    if (isWaiting) waitUntilOver(*folder);
    if (invocation.isJson) print({{"run", folder->name()}, {"action", action}});
}

void remove(const std::string& run, Invocation& invocation) {
    const auto workspace = store::Workspace::open(invocation.workspace);
    if (!isGood(workspace, invocation)) return;
    const auto folder = workspace->findRun(run);
    if (!isGood(folder, invocation, protocol::BadInput)) return;
    auto client = BrokerClient::connect(*workspace);
    if (!isGood(client, invocation)) return;
    if (isGood((*client)->request({{"type", "delete"}, {"run", folder->name()}}), invocation) && invocation.isJson)
        print({{"deleted", folder->name()}});
}

void exportMetrics(const std::string& run, const std::string& format, const std::string& out, Invocation& invocation) {
    const auto workspace = store::Workspace::openForReading(invocation.workspace);
    if (!isGood(workspace, invocation, protocol::BadInput)) return;
    const auto folder = workspace->findRun(run);
    if (!isGood(folder, invocation, protocol::BadInput)) return;
    const auto rows = writeMetrics(folder->database(), format == "json" ? MetricFormat::Json : MetricFormat::Csv, out);
    if (isGood(rows, invocation) && !out.empty())
        std::fprintf(stderr, "%lld rows written to %s\n", static_cast<long long>(*rows), out.c_str());
}

// --- serve

struct ServeArguments {
    bool isStdio = false;
    int parallel = 1;
    int idleSeconds = 600;
    int readyDescriptor = -1;
};

void serveVerb(const ServeArguments& arguments, Invocation& invocation) {
    if (arguments.isStdio) {
        const auto workspace = store::Workspace::open(invocation.workspace);
        if (isGood(workspace, invocation)) isGood(relayStandardStreams(*workspace), invocation);
        return;
    }
    const auto program = ownProgram();
    if (!isGood(program, invocation)) return;
    const Status status =
        serve({invocation.workspace, *program, arguments.parallel, std::chrono::seconds(arguments.idleSeconds), arguments.readyDescriptor});
    if (isGood(status, invocation) || arguments.readyDescriptor < 0) return;
    const std::string reason = status.error().text(); // whoever started us waits for it
    if (::write(arguments.readyDescriptor, reason.data(), reason.size()) < 0) std::fputs("whoever started this broker has gone\n", stderr);
}

} // namespace

void Invocation::fail(const Error& error, int code) {
    exitCode = isDiskFull(error) ? protocol::DiskFull : code;
    if (isJson)
        std::fputs(protocol::toLine({{"error", toJson(error)}}).c_str(), stderr);
    else
        std::fprintf(stderr, "celloom-engine: %s\n", error.text().c_str());
}

namespace {

std::shared_ptr<std::string> runName(CLI::App* verb) {
    auto run = std::make_shared<std::string>();
    verb->add_option("RUN", *run, "Number, folder name or path of a run, or \"last\"")->required();
    return run;
}

/// Each is obeyed between two steps, and answered by what happened then.
void addControlVerbs(CLI::App& app, Invocation& invocation) {
    struct Verb {
        const char *name, *action, *help;
    };
    for (const Verb& one : {Verb{"pause", "pause", "Pause a run after its current step"},
                            {"continue", "continue", "Go on with a paused run"},
                            {"save", "save", "Write a checkpoint after the current step"},
                            {"evaluate-now", "evaluate", "Measure the validation data after the current step, and say the result"},
                            {"sample-now", "sample", "Let the model write after the current step, and show what it wrote"},
                            {"set-lr", "set_lr", "Fix the learning rate of a run from its next step on, in place of its schedule"}}) {
        CLI::App* verb = app.add_subcommand(one.name, one.help);
        const auto run = runName(verb), rate = std::make_shared<std::string>();
        const auto isNotWaiting = std::make_shared<bool>(false);
        const bool hasRate = std::string(one.action) == "set_lr";
        if (hasRate) verb->add_option("RATE", *rate, "A number above 0")->required();
        verb->add_flag("--no-wait", *isNotWaiting, "Return once the run has the command, without what becomes of it");
        verb->callback([=, action = std::string(one.action), &invocation] {
            ControlRequest request{*run, action, {}, !*isNotWaiting};
            if (hasRate) {
                const auto value = readRate(*rate);
                if (!value) return invocation.fail(value.error(), protocol::Usage);
                request.value = *value;
            }
            controlRun(request, invocation);
        });
    }
}

} // namespace

void addRunVerbs(CLI::App& app, Invocation& invocation) {
    CLI::App* runVerb = app.add_subcommand("run", "Do what a recipe says (pretrain, finetune, evaluate, predict), and follow the run; Ctrl+C saves and stops");
    auto recipePath = std::make_shared<std::string>();
    auto isDetached = std::make_shared<bool>(false);
    runVerb->add_option("RECIPE", *recipePath, "A recipe in JSON; --kind evaluate or --kind predict uses a trained model instead of training one")->required();
    runVerb->add_flag("--detach", *isDetached, "Print the run's name and return; the run goes on");
    auto runOptions = std::make_shared<RecipeOptions>(*runVerb);
    runVerb->callback([=, &invocation] { run(*recipePath, *runOptions, *isDetached, invocation); });

    CLI::App* resumeVerb = app.add_subcommand("resume", "Go on with a run from its last checkpoint, and follow it");
    auto resumed = runName(resumeVerb);
    resumeVerb->add_flag("--detach", *isDetached, "Print the run's name and return; the run goes on");
    auto resumeOptions = std::make_shared<RecipeOptions>(*resumeVerb);
    resumeVerb->callback([=, &invocation] { resume(*resumed, *resumeOptions, *isDetached, invocation); });

    app.add_subcommand("list", "All runs, newest first")->callback([&invocation] { list(invocation); });

    CLI::App* showVerb = app.add_subcommand("show", "One run: state, progress, last metrics, last events, end of its log");
    auto shown = runName(showVerb);
    showVerb->callback([=, &invocation] { show(*shown, invocation); });

    CLI::App* stopVerb = app.add_subcommand("stop", "Save and stop a run");
    auto stopped = runName(stopVerb);
    auto isWaiting = std::make_shared<bool>(false);
    auto isKilling = std::make_shared<bool>(false);
    stopVerb->add_flag("--wait", *isWaiting, "Return when the run is over");
    stopVerb->add_flag("--kill", *isKilling, "End the process at once, without saving");
    stopVerb->callback([=, &invocation] { stop(*stopped, *isKilling ? "kill" : "stop", *isWaiting, invocation); });
    addControlVerbs(app, invocation);

    CLI::App* deleteVerb = app.add_subcommand("delete", "Delete a run that is over, with its checkpoints and metrics");
    auto deleted = runName(deleteVerb);
    deleteVerb->callback([=, &invocation] { remove(*deleted, invocation); });

    CLI::App* exportVerb = app.add_subcommand("export-metrics", "Every row that a run measured, as CSV or JSON");
    auto exported = runName(exportVerb);
    auto format = std::make_shared<std::string>("csv");
    auto out = std::make_shared<std::string>();
    exportVerb->add_option("--format", *format, "csv or json")->check(CLI::IsMember({"csv", "json"}))->capture_default_str();
    exportVerb->add_option("--out", *out, "File to write (default: stdout)");
    exportVerb->callback([=, &invocation] { exportMetrics(*exported, *format, *out, invocation); });

    CLI::App* serveCommand = app.add_subcommand("serve", "Serve a workspace: its queue, its runs, and the clients that ask for them");
    auto arguments = std::make_shared<ServeArguments>();
    serveCommand->add_flag("--stdio", arguments->isStdio, "Speak on stdin and stdout (over ssh); runs survive a lost connection");
    serveCommand->add_option("--parallel", arguments->parallel, "Runs on the processor at a time")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    serveCommand->add_option("--idle-seconds", arguments->idleSeconds, "End after so long without clients, runs and queue; 0: never")
        ->check(CLI::Range(0, 1 << 30))
        ->capture_default_str();
    serveCommand->add_option("--ready-descriptor", arguments->readyDescriptor, "Says \"ready\" on this descriptor")->group("");
    serveCommand->callback([=, &invocation] { serveVerb(*arguments, invocation); });
}

} // namespace celloom::app
