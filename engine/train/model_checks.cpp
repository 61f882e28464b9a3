// What Model refuses before anything is computed: missing parts, data that do not fit network and loss, arguments out of range.
#include "engine/data/dataset.h"
#include "engine/train/model.h"
#include "models/base/text.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace celloom::engine {
namespace {

constexpr std::int64_t kMostRows = std::int64_t{1} << 31; // of a batch, and batches of a step: their product can be counted

bool contains(const std::vector<std::string>& list, const std::string& name) { return std::find(list.begin(), list.end(), name) != list.end(); }

std::string quoted(const std::vector<std::string>& names) {
    std::string out;
    for (const std::string& name : names) out += (out.empty() ? "\"" : ", \"") + name + "\"";
    return out.empty() ? "none" : out;
}

Status checkCallbacks(const std::vector<Callback*>& callbacks) {
    for (std::size_t i = 0; i < callbacks.size(); ++i)
        if (!callbacks[i]) return fail("Callback " + std::to_string(i + 1) + " of the list is null.", "Leave it out of the list.", "callbacks");
    return {};
}

/// An optimizer that was made for another network would train that one.
bool updates(const Optimizer& optimizer, const Network& network) {
    for (const ParameterGroup& group : optimizer.groups())
        for (const at::Tensor& tensor : group.tensors)
            if (std::none_of(network.parameters().begin(), network.parameters().end(), [&](const Parameter& p) { return p.tensor.is_same(tensor); }))
                return false;
    return true;
}

} // namespace

/// What an epoch is divided by; a recipe's ranges hold this, a caller of the library may not.
Status Model::checkBatches() const {
    for (const auto& [number, name] : {std::pair(m_options.batchSize, "batch size"), std::pair(m_options.accumulation, "accumulation")})
        if (number < 1 || number > kMostRows) return fail(std::string("The ") + name + " is " + std::to_string(number) + ".", "Give 1 or more, and not more than there can be rows.", "options");
    return {};
}

Status Model::checkTraining(const Dataset& rows, const std::vector<Callback*>& callbacks) const {
    if (!m_loss) return fail("The model has no loss to make small.", "Give it one when it is made.", "loss");
    if (!m_optimizer) return fail("The model has no optimizer.", "Give it one when it is made; without, it evaluates and predicts only.", "optimizer");
    if (!updates(*m_optimizer, m_network))
        return fail("The optimizer's parameters are not those of this network.", "Make the optimizer from the network's parameters.", "optimizer");
    CELLOOM_TRY_STATUS(checkCallbacks(callbacks));
    CELLOOM_TRY_STATUS(checkBatches());
    if (planOf(rows).stepsPerEpoch() == 0)
        return fail("The data fills no step: it has " + std::to_string(rows.size()) + " rows, a step needs " +
                        std::to_string(m_options.batchSize * m_options.accumulation) + ".",
                    "Lower the batch size or the accumulation, or do not drop the last batch.", "train.batch_size");
    return checkColumns(rows);
}

Status Model::checkEvaluation(const Dataset& rows, const std::vector<Callback*>& callbacks) const {
    if (!m_loss) return fail("The model has no loss to evaluate with.", "Give it one when it is made.", "loss");
    if (m_metrics.empty()) return fail("The model has no metrics to evaluate.", "Give it some when it is made: \"loss\", say.", "metrics");
    CELLOOM_TRY_STATUS(checkCallbacks(callbacks));
    CELLOOM_TRY_STATUS(checkBatches());
    if (rows.size() == 0) return fail("The validation data is empty.", "Give rows, or leave the evaluation out.", "data.validation");
    return checkColumns(rows);
}

/// Every input of the graph and every label of the loss is a column of the data, and every column is one of these.
Status Model::checkColumns(const Dataset& rows) const {
    const std::vector<std::string> given = rows.columns(), labels = m_loss->labels();
    std::vector<std::string> inputs;
    for (const graph::NamedValue& input : m_network.model().inputs) inputs.push_back(input.name);
    for (const std::string& input : inputs)
        if (!contains(given, input) && input != "attention_mask" && input != "positions")
            return fail("The data have no column \"" + input + "\", which the graph asks for.", "Their columns are " + quoted(given) + ".", "data");
    for (const std::string& label : labels)
        if (!contains(given, label))
            return fail("The data have no column \"" + label + "\", which the loss compares with.", "Their columns are " + quoted(given) + ".", "data");
    for (const std::string& column : given)
        if (!contains(inputs, column) && !contains(labels, column))
            return fail("The data's column \"" + column + "\" is neither an input of the graph nor a label of the loss.",
                        "Leave it out. Inputs: " + quoted(inputs) + "; labels: " + quoted(labels) + ".", "data");
    return {};
}

Status Model::checkArguments(std::int64_t epoch, std::int64_t stepsPerEpoch, const TrainArguments& arguments) const {
    if (epoch <= 0) return fail("The number of epochs is " + std::to_string(epoch) + ".", "Give 1 or more.", "epoch");
    if (epoch > std::numeric_limits<std::int64_t>::max() / stepsPerEpoch)
        return fail("The number of epochs, " + std::to_string(epoch) + ", makes more steps than can be counted.", "Give fewer.", "epoch");
    if (arguments.initialEpoch < 0) return fail("initial_epoch is " + std::to_string(arguments.initialEpoch) + ".", "Give 0 or more.", "initial_epoch");
    if (epoch <= arguments.initialEpoch)
        return fail("The number of epochs, " + std::to_string(epoch) + ", is not above initial_epoch, " + std::to_string(arguments.initialEpoch) + ": none is left.",
                    "The number counts the epochs that are done already.", "epoch");
    if (arguments.validFrequency <= 0) return fail("valid_frequency is " + std::to_string(arguments.validFrequency) + ".", "Give 1 or more.", "valid_frequency");
    for (const std::int64_t at : arguments.validEpochs)
        if (at <= 0) return fail("valid_frequency has the epoch " + std::to_string(at) + ".", "Epochs count from 1.", "valid_frequency");
    if (arguments.sinkSize != -1)
        return fail("sink_size is " + std::to_string(arguments.sinkSize) + ".", "Leave it at -1: nothing is sunk here, and an epoch is all of the data.", "sink_size");
    return {};
}

} // namespace celloom::engine
