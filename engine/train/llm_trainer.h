// The one class above Model: a recipe carried out on a language model, from files to a finished run in its folder. Its kind says what is done: pretrain
// and finetune make steps, evaluate measures a model, predict lets it write. celloom-engine does its runs with it; a program of one's own needs no
// broker and no window for the same:
//
//     auto trainer = LLMTrainer::create(recipe, "runs/0001-tiny", {.print = [](const std::string& line) { std::puts(line.c_str()); }});
//     RunResult result = (*trainer)->run();
//
// See docs/examples/pretrain_and_talk.cpp, and "The engine in C++" in the user guide.
#pragma once

#include "engine/data/prepare.h"
#include "engine/generate/text_generator.h"
#include "engine/script/run_scripts.h"
#include "engine/train/checkpoint.h"
#include "engine/train/run_control.h"
#include "models/protocol/protocol.h"
#include "models/recipe/resume.h"
#include "models/store/run_folder.h"
#include "models/store/run_lock.h"

#include <atomic>
#include <optional>

namespace celloom::engine {

struct BatchResult;
struct LoadedModel;

/// How a run ended, and what there is now.
struct RunResult {
    protocol::ExitCode code = protocol::Ok;      // Ok: done, or its time limit reached; Interrupted: stopped, and can be gone on with
    store::RunState state = store::RunState::Finished;
    Error error = {};                            // of a run that failed or diverged
    std::map<std::string, double> metrics = {};  // the newest value of each: "train/loss", "eval/perplexity", "eval/exact_match", "predict/rows", …
    std::filesystem::path checkpoint = {};       // the newest one; empty where there is none
    std::filesystem::path predictions = {};      // of a run of kind predict: JSON Lines
};

class LLMTrainer {
public:
    struct Options {
        std::function<void(const std::string&)> print = {}; // lines of the log; empty: none
        /// Take part in training after the built-in ones that measure, and before those that save. Used, not owned; must outlive run(). One with a
        /// stateName() has its state saved in checkpoints and restored.
        std::vector<Callback*> callbacks = {};
        const std::atomic<bool>* stopSignal = nullptr; // may be null; true: finish the step, save, end
        std::filesystem::path cacheFolder = {};        // of tokenised data; empty: the workspace's where the folder lies in one, else inside it
        std::shared_ptr<const CellRegistry> cells = nullptr; // with cells of one's own; null: the catalogue's, and plugins that the workspace trusts
    };
    /// For a program of one's own. The folder is made, holds all that the run leaves (recipe, checkpoints, run.db), and belongs to it alone while this
    /// lives; inside WORKSPACE/runs/ the run appears in the history. Refused: a recipe that cannot run, a folder that another process works on.
    static Result<std::unique_ptr<LLMTrainer>> create(const recipe::Recipe& recipe, const std::filesystem::path& folder, Options options);
    static Result<std::unique_ptr<LLMTrainer>> create(const recipe::Recipe& recipe, const std::filesystem::path& folder);

    /// What the engine's child has of its own.
    struct Setup {
        store::RunFolder folder;
        std::filesystem::path cacheFolder; // tokenised data
        store::RunWriter& writer;
        protocol::ChildLink* link = nullptr;           // may be null
        const std::atomic<bool>* stopSignal = nullptr; // may be null
        std::function<void(const std::string&)> print; // lines for the log
        Status scriptsTried = {}; // what tryScripts said; typed callbacks that failed it are refused before anything else is done
        std::vector<Callback*> callbacks = {};         // see Options
        std::shared_ptr<const CellRegistry> cells = nullptr; // see Options; null: the catalogue's alone
    };
    LLMTrainer(Setup setup, recipe::Recipe recipe);
    ~LLMTrainer();

    /// Where the folder's run was begun before, it goes on from the newest checkpoint that verifies, or from the start when there is none; a prediction
    /// goes on after its last text. Runs to an end, whatever it is, and says it: state in run.db, an event, the exit code. Exceptions of LibTorch
    /// end here too. Once for each object.
    RunResult run();

    /// After run(): the model goes on with a text, or, tuned on conversations, answers a question. Fails where the run came to no network or has no tokenizer.
    Result<TextResult> predict(const std::string& prompt, SamplingOptions sampling = {});
    /// After run(); null where it did not come so far.
    [[nodiscard]] Network* network() const { return m_network.get(); }
    [[nodiscard]] const Tokenizer* tokenizer() const { return m_tokenizer.get(); }
    [[nodiscard]] Model* model() const { return m_model.get(); }

private:
    struct Callbacks;

    RunResult carryOut();
    void describe(RunResult& result) const;

    Result<Model::End> work();

    // Before training: llm_trainer_setup.cpp.
    Status readScripts();
    Result<Metrics> chosenMetrics() const; // of the recipe: named ones and typed ones
    Status findCheckpoint();
    Status removeLeftovers();
    Model::State stateToGoOnFrom();
    Status checkRecipeUnchanged();
    void setThreads();
    Status readData();
    Status readText();
    Status readConversations();
    Status chooseDevice();
    NetworkOptions networkOptions() const;
    Status buildNetwork();
    Status buildDocument();
    void sayWhatLearns();
    Status prepareTokenRows();
    Status prepareConversations();
    Status prepareTensorRows();
    void reportSamples(const ChatStatistics& count);
    Status loadWeightsToStartFrom();
    Status checkCorpus(const std::vector<CorpusFile>& files);
    Status measureBaseline();

    // Runs that use a model which has learned: llm_trainer_kinds.cpp.
    Result<Model::End> useTrainedModel();
    Status openTrainedModel();
    Status readMeasuredText();
    Status readMeasuredConversations();
    Status readMeasuredData();
    Status readMeasuredRows(Result<PreparedData> data);
    Status makeMeasuringModel();
    Result<Model::End> evaluateData();
    Result<Model::End> predictPrompts();
    std::filesystem::path predictions() const;
    Model::End reportPredictions(const BatchResult& done);
    void sayEndOfUse(Model::End end);

    // The callbacks of a run, and its training: llm_trainer_callbacks.cpp.
    Result<Model::End> train();
    Status save(std::int64_t bestStep);
    Status saveFinishedAdapter();
    Status writeSamples();
    // Evaluation by generation: llm_trainer_chat.cpp.
    Status measureBaseAnswers();
    Status checkAnswers();
    Result<std::optional<double>> answerQuestions(const std::string& metric, const std::string& event);
    std::int64_t questionsToAsk() const;
    std::string answersText(double share) const;
    Result<std::vector<std::string>> answersTo(std::int64_t first, std::int64_t end);
    std::vector<std::int64_t> promptOf(const std::string& text) const;
    void reportEvaluation(const Evaluation& evaluation);
    void sayEnd(Model::End end);
    void reportMemory();
    // Failures: llm_trainer_failures.cpp.
    Result<Model::End> trainToTheEnd();
    void keepWhatWasLearned(ModelCheckpoint& checkpoint, const Error& error);
    std::string whereToGoOn() const;
    Error divergence() const;
    RunResult failed(Error error);
    std::int64_t totalSteps() const;

    std::optional<store::RunLock> m_lock; // of create(), as the next
    std::unique_ptr<store::RunWriter> m_ownWriter;
    Setup m_setup;
    recipe::Recipe m_recipe;
    RunReporter m_reporter;
    RunControl m_control;
    std::unique_ptr<RunScripts> m_scripts; // what the user typed; never null once the run works
    FoundCheckpoint m_found;
    recipe::ResumeEffect m_change; // of a resume, against what its checkpoint was trained with
    RunProgressState m_state;

    std::unique_ptr<Tokenizer> m_tokenizer; // null where token files come without one
    DataFiles m_files;
    InstructionSplit m_conversations;   // of instruction files
    std::unique_ptr<ChatFormat> m_chat; // null unless the data are conversations
    PreparedData m_data;
    at::Device m_device = at::kCPU;
    graph::Document m_document;
    recipe::TreatmentTable m_treatment;
    std::unique_ptr<LoadedModel> m_loaded; // of a run that only uses a model
    std::unique_ptr<Network> m_network;
    std::unique_ptr<Optimizer> m_optimizer;
    std::unique_ptr<Model> m_model;
    std::vector<Callback*> m_callbacks; // while training
    double m_lastPerplexity = 0; // of the newest evaluation; 0: none
    double m_lastMatch = -1;     // share of held-out questions answered as expected at the newest evaluation; -1: none
    std::int64_t m_worked = 0; // batches or prompts of a run that only uses a model
    bool m_isWorking = false;  // it has begun with them
    bool m_isResume = false, m_isTraining = false, m_isTimeOver = false, m_isStoppedEarly = false, m_isDeviceMissing = false;
};

} // namespace celloom::engine
