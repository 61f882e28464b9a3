// The one class above Model: a recipe carried out on a language model, from files to a finished run in its folder.
#pragma once

#include "engine/data/prepare.h"
#include "engine/script/run_scripts.h"
#include "engine/train/checkpoint.h"
#include "engine/train/run_control.h"
#include "models/protocol/protocol.h"
#include "models/recipe/resume.h"
#include "models/store/run_folder.h"

#include <atomic>

namespace celloom::engine {

struct RunResult {
    protocol::ExitCode code = protocol::Ok;
    store::RunState state = store::RunState::Finished;
    Error error; // of a run that failed or diverged
};

class LLMTrainer {
public:
    struct Setup {
        store::RunFolder folder;
        std::filesystem::path cacheFolder; // tokenised data
        store::RunWriter& writer;
        protocol::ChildLink* link = nullptr;           // may be null
        const std::atomic<bool>* stopSignal = nullptr; // may be null
        std::function<void(const std::string&)> print; // lines for the log
        Status scriptsTried = {}; // what tryScripts said; typed callbacks that failed it are refused before anything else is done
    };
    LLMTrainer(Setup setup, recipe::Recipe recipe);
    ~LLMTrainer();

    /// Where the folder's run was begun before, it goes on from the newest checkpoint that verifies, or from the start when there is none.
    /// Runs to an end, whatever it is, and says it: state in run.db, an event, the exit code. Exceptions of LibTorch end here too.
    RunResult run();

private:
    struct Callbacks;

    Result<Model::End> work();

    // Before training: llm_trainer_setup.cpp.
    Status readScripts();
    Status findCheckpoint();
    Status removeLeftovers();
    Model::State stateToGoOnFrom();
    Status checkRecipeUnchanged();
    void setThreads();
    Status readData();
    Status readText();
    Status readConversations();
    Status chooseDevice();
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

    Setup m_setup;
    recipe::Recipe m_recipe;
    RunReporter m_reporter;
    RunControl m_control;
    std::unique_ptr<RunScripts> m_scripts; // what the user typed; never null in training
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
    std::unique_ptr<Network> m_network;
    std::unique_ptr<Optimizer> m_optimizer;
    std::unique_ptr<Model> m_model;
    std::vector<Callback*> m_callbacks; // while training
    double m_lastPerplexity = 0; // of the newest evaluation; 0: none
    double m_lastMatch = -1;     // share of held-out questions answered as expected at the newest evaluation; -1: none
    bool m_isResume = false, m_isTraining = false, m_isTimeOver = false, m_isStoppedEarly = false, m_isDeviceMissing = false;
};

} // namespace celloom::engine
