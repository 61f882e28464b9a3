// Callbacks: objects that training tells what it does. Events and the names of the parameters are MindSpore's (train/callback).
#pragma once

#include "engine/exec/network.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace celloom::engine {

class Callback;
class Dataset;
class Loss;
class Metric;
class Model;
class Optimizer;

/// RunContext's parameters, MindSpore's cb_params: steps and epochs count from 1 once they have begun.
struct CallbackParams {
    std::string mode = "train";     // or "eval"
    std::int64_t curStepNum = 0;    // over all epochs
    std::int64_t curEpochNum = 0;   // 0: none has begun
    std::int64_t batchNum = 0;      // optimizer steps of an epoch
    std::int64_t epochNum = 0;      // epochs of the run
    std::int64_t totalSteps = 0;    // what the run will have done at its end
    double netOutputs = 0;          // loss of the last step: mean over its valid tokens
    double gradNorm = 0, learningRate = 0, lossScale = 1;
    std::optional<double> auxiliaryLoss; // the part of netOutputs that cells added (Network::kAuxiliaryLoss); none: no cell does
    bool hasLossScale = false;
    std::int64_t tokens = 0;        // of the last step, padding included; of data without tokens: rows
    double stepSeconds = 0, dataSeconds = 0; // dataSeconds: of these, until the step's batches were there
    bool isEmpty = false;           // the last step had no label that counts and changed nothing: it has no loss
    bool isOverflow = false;        // the last step changed nothing: its gradients overflowed under a loss scale
    std::map<std::string, double> evalResults; // by metric, and "eval_loss": of the last evaluation; in fit gone after the epoch's end
    std::int64_t evalStep = -1;     // the step after which it was made
    bool datasetSinkMode = false;   // as it was asked for; nothing hangs on it
    std::int64_t deviceNumber = 1;
    std::string parallelMode = "stand_alone";
    std::int64_t lastSaveCkptStep = 0; // 0: none
    std::string latestCkptFile;
    const std::vector<Callback*>* listCallback = nullptr;
    const Loss* lossFn = nullptr;
    const Dataset *trainDataset = nullptr, *validDataset = nullptr;
    const std::vector<Batch>* trainDatasetElement = nullptr; // the batches of the step; from its begin on
    const Batch* evalDatasetElement = nullptr;               // from the begin of an evaluation's first step on
    const std::map<std::string, std::shared_ptr<Metric>>* metrics = nullptr; // beside evalResults
    Model *trainNetwork = nullptr, *evalNetwork = nullptr;
    Network* network = nullptr;
    Optimizer* optimizer = nullptr;
    bool hasNetOutputs = false;

    /// Which of MindSpore's parameters there are now: "cur_epoch_num" from the first epoch on, "net_outputs" from the first step on …
    [[nodiscard]] std::vector<std::string> names() const;
    [[nodiscard]] std::int64_t stepInEpoch() const { return batchNum > 0 ? (curStepNum - 1) % batchNum + 1 : 0; } // from 1
    [[nodiscard]] double epochs() const { return batchNum > 0 ? static_cast<double>(curStepNum) / static_cast<double>(batchNum) : 0; }
};

class RunContext {
public:
    CallbackParams& originalArgs() { return m_params; }
    /// Training ends after the current step; epoch end and end still fire. Asked before the first step, no step is run (MindSpore runs one).
    void requestStop() { m_isStopRequested = true; }
    bool isStopRequested() const { return m_isStopRequested; }

private:
    CallbackParams m_params;
    bool m_isStopRequested = false;
};

/// All do nothing unless overridden; an error ends training with it. The old names (begin, stepEnd, …) fire for training only.
class Callback {
public:
    virtual ~Callback() = default;
    virtual Status onTrainBegin(RunContext& context) { return begin(context); }
    virtual Status onTrainEpochBegin(RunContext& context) { return epochBegin(context); }
    virtual Status onTrainStepBegin(RunContext& context) { return stepBegin(context); }
    virtual Status onTrainStepEnd(RunContext& context) { return stepEnd(context); }
    virtual Status onTrainEpochEnd(RunContext& context) { return epochEnd(context); }
    virtual Status onTrainEnd(RunContext& context) { return end(context); }
    virtual Status onEvalBegin(RunContext&) { return {}; }
    virtual Status onEvalEpochBegin(RunContext&) { return {}; }
    virtual Status onEvalStepBegin(RunContext&) { return {}; }
    virtual Status onEvalStepEnd(RunContext&) { return {}; }
    virtual Status onEvalEpochEnd(RunContext&) { return {}; }
    virtual Status onEvalEnd(RunContext&) { return {}; }

    virtual Status begin(RunContext&) { return {}; }
    virtual Status epochBegin(RunContext&) { return {}; }
    virtual Status stepBegin(RunContext&) { return {}; }
    virtual Status stepEnd(RunContext&) { return {}; }
    virtual Status epochEnd(RunContext&) { return {}; }
    virtual Status end(RunContext&) { return {}; }

    /// What a resumed run needs to go on as if it had not stopped, under a name of the callback's own; empty: nothing.
    virtual std::string stateName() const { return {}; }
    virtual std::map<std::string, double> state() const { return {}; }
    virtual void restore(const std::map<std::string, double>&) {}
    /// State that is more than numbers, as the text of a JSON object; empty: none. Under stateName() too.
    virtual std::string stateJson() const { return {}; }
    virtual Status restoreJson(const std::string&) { return {}; }
    /// Tensors among its state, such as weights kept for later; they are written before training goes on. Under stateName() too.
    virtual std::map<std::string, at::Tensor> stateTensors() const { return {}; }
    virtual Status restoreTensors(const std::map<std::string, at::Tensor>&) { return {}; }
};

} // namespace celloom::engine
