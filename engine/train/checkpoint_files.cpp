#include "engine/train/checkpoint_files.h"

#include "engine/checkpoint/safetensors.h"
#include "engine/train/optimizer.h"

#include <ATen/core/grad_mode.h>

#include <chrono>
#include <sstream>

namespace celloom::engine {
namespace {
namespace fs = std::filesystem;

constexpr const char* kOptimizer = "optimizer.";
constexpr const char* kEnding = ".safetensors";

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Whether a file "<prefix>-<epoch>_<step>.safetensors" lies in the folder.
bool isUsed(const fs::path& directory, const std::string& prefix) {
    std::error_code ignored; // a folder that is not there holds none
    for (fs::directory_iterator it(directory, ignored), end; !ignored && it != end; it.increment(ignored)) {
        const std::string name = it->path().filename().string();
        if (name.starts_with(prefix + "-") && name.ends_with(kEnding) && name.find('_', prefix.size()) != std::string::npos) return true;
    }
    return false;
}

std::string shapeOf(const at::Tensor& tensor) {
    std::ostringstream out;
    out << tensor.sizes();
    return out.str();
}

} // namespace

CheckpointFiles::CheckpointFiles(std::string prefix, fs::path directory, const CheckpointConfig& config)
    : m_prefix(std::move(prefix)), m_directory(std::move(directory)), m_config(config) {}

Status CheckpointFiles::begin(RunContext&) {
    if (m_config.saveCheckpointSteps < 0 || m_config.saveCheckpointSeconds < 0 || m_config.keepCheckpointMax < 0)
        return fail("A number of the checkpoint's settings is below 0.", {}, "CheckpointConfig");
    if (m_config.saveCheckpointSteps == 0 && m_config.saveCheckpointSeconds == 0)
        return fail("Neither steps nor seconds between checkpoints are given.", "Give one of them.", "CheckpointConfig");
    if (m_prefix.empty() || m_prefix.find('/') != std::string::npos)
        return fail("The prefix \"" + m_prefix + "\" is no part of a file's name.", "Give letters without \"/\".", "CheckpointConfig");
    std::error_code error;
    fs::create_directories(m_directory, error);
    if (error) return fail("The folder for checkpoints cannot be made: " + error.message() + ".", {}, m_directory.string());
    const std::string asked = m_prefix;
    for (int number = 1; isUsed(m_directory, m_prefix); ++number) m_prefix = asked + "_" + std::to_string(number);
    m_lastTime = now();
    return {};
}

Status CheckpointFiles::stepEnd(RunContext& context) {
    const std::int64_t step = context.originalArgs().curStepNum;
    const bool isDueBySteps = m_config.saveCheckpointSteps > 0 && step >= m_lastStep + m_config.saveCheckpointSteps;
    const bool isDueByTime = m_config.saveCheckpointSeconds > 0 && now() - m_lastTime >= static_cast<double>(m_config.saveCheckpointSeconds);
    return isDueBySteps || isDueByTime ? save(context) : Status();
}

Status CheckpointFiles::end(RunContext& context) { return context.originalArgs().curStepNum > m_lastStep ? save(context) : Status(); }

Status CheckpointFiles::save(RunContext& context) {
    CallbackParams& params = context.originalArgs();
    std::map<std::string, at::Tensor> tensors;
    for (const Parameter& parameter : params.network->parameters()) tensors[parameter.path] = parameter.tensor.detach();
    for (const auto& [name, tensor] : params.optimizer->state()) tensors[kOptimizer + name] = tensor;
    const std::string name = m_prefix + "-" + std::to_string(params.curEpochNum) + "_" + std::to_string(params.stepInEpoch()) + kEnding;
    CELLOOM_TRY_STATUS(writeSafetensors(m_directory / name, tensors, {{"format", "pt"}, {"step_num", std::to_string(params.curStepNum)}}));
    m_latest = m_directory / name;
    m_kept.push_back(m_latest);
    m_lastStep = params.curStepNum;
    m_lastTime = now();
    params.lastSaveCkptStep = m_lastStep;
    params.latestCkptFile = m_latest.string();
    while (m_config.keepCheckpointMax > 0 && std::ssize(m_kept) > m_config.keepCheckpointMax) {
        std::error_code error;
        if (!fs::remove(m_kept.front(), error) && error) return fail("An old checkpoint cannot be deleted: " + error.message() + ".", {}, m_kept.front().string());
        m_kept.pop_front();
    }
    return {};
}

Status loadCheckpointFile(const fs::path& path, Network& network, Optimizer* optimizer) {
    CELLOOM_TRY(file, SafetensorsFile::open(path));
    std::map<std::string, at::Tensor> weights, state;
    for (const std::string& name : file->names()) {
        CELLOOM_TRY(tensor, file->tensor(name));
        if (name.starts_with(kOptimizer)) state[name.substr(std::string_view(kOptimizer).size())] = tensor;
        else weights[name] = tensor;
    }
    for (const Parameter& parameter : network.parameters()) {
        const auto found = weights.find(parameter.path);
        if (found == weights.end()) return fail("The checkpoint has no \"" + parameter.path + "\".", "Is it of another network?", path.string());
        if (found->second.sizes() != parameter.tensor.sizes())
            return fail("\"" + parameter.path + "\" is " + shapeOf(found->second) + " in the checkpoint, " + shapeOf(parameter.tensor) + " in the network.",
                        "Is it of another network?", path.string());
    }
    if (weights.size() != network.parameters().size())
        return fail("The checkpoint has " + std::to_string(weights.size()) + " parameters, the network " + std::to_string(network.parameters().size()) + ".",
                    "Is it of another network?", path.string());
    if (optimizer) CELLOOM_TRY_STATUS(optimizer->restore(state));
    at::NoGradGuard guard;
    for (Parameter& parameter : network.parameters()) parameter.tensor.copy_(weights.at(parameter.path));
    return {};
}

} // namespace celloom::engine
