#include "ui/live/run_samples.h"

#include <limits>
#include <string>

namespace celloom::ui {

std::set<std::size_t> supersededSamples(const std::deque<store::SampleRow>& newestFirst) {
    std::set<std::size_t> out;
    std::int64_t earliest = std::numeric_limits<std::int64_t>::max(); // step of the newer ones
    std::set<std::string> prompts;                                    // of that step
    for (std::size_t i = 0; i < newestFirst.size(); ++i) {
        const store::SampleRow& sample = newestFirst[i];
        if (sample.step < earliest) {
            earliest = sample.step;
            prompts.clear();
        }
        if (sample.step > earliest || !prompts.insert(sample.prompt).second) out.insert(i);
    }
    return out;
}

} // namespace celloom::ui
