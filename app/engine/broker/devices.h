// Which run may compute where: the processor holds `parallel` runs at a time, each GPU one. Names are "cpu", "cuda:0", …
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace celloom::app {

class Devices {
public:
    /// `cuda`: the system's names of the GPUs, as CUDA_VISIBLE_DEVICES takes them; see visibleGpus().
    Devices(int parallelOnCpu, std::vector<std::string> cuda);

    /// A place for a recipe's device ("auto", "cpu", "cuda"); nothing while all are taken. "cuda" without any GPU gets "cpu", and the
    /// child says plainly that there is none.
    std::optional<std::string> lease(const std::string& wanted);
    /// A run that was found running holds its device already.
    void hold(const std::string& device) { ++m_used[device]; }
    void release(const std::string& device);

    /// What work without a lease may use: a GPU that no run holds now, else "cpu".
    [[nodiscard]] std::string spare() const;

    /// Environment that shows a child its own GPU only.
    [[nodiscard]] std::vector<std::string> environment(const std::string& device) const;

private:
    int m_parallelOnCpu;
    std::vector<std::string> m_cuda;
    std::map<std::string, int> m_used;
};

/// The entries of CUDA_VISIBLE_DEVICES, or the numbers of the driver's device files.
std::vector<std::string> visibleGpus();

} // namespace celloom::app
