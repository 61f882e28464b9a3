#include "app/engine/broker/devices.h"

#include "models/base/result.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace celloom::app {

Devices::Devices(int parallelOnCpu, std::vector<std::string> cuda) : m_parallelOnCpu(parallelOnCpu), m_cuda(std::move(cuda)) {}

std::optional<std::string> Devices::lease(const std::string& wanted) {
    const auto take = [this](const std::string& name, int places) {
        if (m_used[name] >= places) return false;
        ++m_used[name];
        return true;
    };
    if (wanted == "cpu" || m_cuda.empty()) return take("cpu", m_parallelOnCpu) ? std::optional<std::string>("cpu") : std::nullopt;
    for (std::size_t i = 0; i < m_cuda.size(); ++i)
        if (const std::string name = "cuda:" + std::to_string(i); take(name, 1)) return name;
    return std::nullopt;
}

void Devices::release(const std::string& device) {
    const auto found = m_used.find(device);
    CELLOOM_CHECK(found != m_used.end() && found->second > 0);
    --found->second;
}

std::string Devices::spare() const {
    for (std::size_t i = 0; i < m_cuda.size(); ++i) {
        const std::string name = "cuda:" + std::to_string(i);
        if (const auto used = m_used.find(name); used == m_used.end() || used->second == 0) return name;
    }
    return "cpu";
}

std::vector<std::string> Devices::environment(const std::string& device) const {
    for (std::size_t i = 0; i < m_cuda.size(); ++i)
        if (device == "cuda:" + std::to_string(i)) return {"CUDA_VISIBLE_DEVICES=" + m_cuda[i]};
    return {};
}

std::vector<std::string> visibleGpus() {
    std::vector<std::string> found;
    if (const char* chosen = std::getenv("CUDA_VISIBLE_DEVICES")) {
        std::istringstream list(chosen);
        for (std::string entry; std::getline(list, entry, ',') && !entry.empty() && entry != "-1";) found.push_back(entry);
        return found;
    }
    std::error_code code;
    for (std::filesystem::directory_iterator entry("/dev", code), end; !code && entry != end; entry.increment(code)) {
        const std::string name = entry->path().filename().string();
        const std::string digits = name.starts_with("nvidia") ? name.substr(6) : "";
        if (!digits.empty() && std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c) != 0; }))
            found.push_back(digits);
    }
    std::sort(found.begin(), found.end(), [](const std::string& a, const std::string& b) { return std::stoi(a) < std::stoi(b); });
    return found;
}

} // namespace celloom::app
