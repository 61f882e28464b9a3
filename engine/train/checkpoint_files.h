// MindSpore's ModelCheckpoint for programs that use the engine as a library: a file for each saved step, "CKP-3_2.safetensors" after step 2 of
// epoch 3. A run of the workbench keeps whole folders instead (checkpoint.h).
#pragma once

#include "engine/train/callback.h"

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>

namespace celloom::engine {

/// Names and defaults are MindSpore's.
struct CheckpointConfig {
    std::int64_t saveCheckpointSteps = 1;   // 0: by time alone
    std::int64_t saveCheckpointSeconds = 0; // 0: by steps alone
    std::int64_t keepCheckpointMax = 5;     // 0: all
};

/// Saves the network's parameters by path, and the optimizer's state below "optimizer.", also after the last step. Where files of this
/// prefix lie in the folder already, "CKP_1" is used, then "CKP_2" …
class CheckpointFiles : public Callback {
public:
    CheckpointFiles(std::string prefix, std::filesystem::path directory, const CheckpointConfig& config = {});
    Status begin(RunContext& context) override;
    Status stepEnd(RunContext& context) override;
    Status end(RunContext& context) override;
    [[nodiscard]] const std::filesystem::path& latest() const { return m_latest; }

private:
    Status save(RunContext& context);

    std::string m_prefix;
    std::filesystem::path m_directory, m_latest;
    CheckpointConfig m_config;
    std::deque<std::filesystem::path> m_kept;
    std::int64_t m_lastStep = 0;
    double m_lastTime = 0;
};

/// Loads such a file into a network of the same parameters and, where one is given, an optimizer. What is missing, left over or of another
/// shape is an error that names it; nothing is loaded then.
Status loadCheckpointFile(const std::filesystem::path& path, Network& network, Optimizer* optimizer = nullptr);

} // namespace celloom::engine
