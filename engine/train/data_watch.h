// Files that a run reads while it trains (token files are mapped, not copied): a change of one ends the run at the next step, by name.
#pragma once

#include "engine/data/sources.h"
#include "engine/train/callback.h"
#include "engine/train/run_reporter.h"

#include <ctime>

namespace celloom::engine {

class DataWatch : public Callback {
public:
    /// Watches those of the files that stay mapped; text and conversations are in memory once they are read.
    DataWatch(const std::vector<CorpusFile>& files, RunReporter& reporter);
    /// Fails where a file was written to or cut. One that was deleted or replaced is still whole for this run: a warning, once.
    Status stepBegin(RunContext& context) override;

private:
    struct Watched {
        std::filesystem::path path;
        unsigned long long device = 0, inode = 0;
        std::int64_t sizeBytes = 0;
        timespec changed{};
        bool isGone = false;
    };
    std::vector<Watched> m_files;
    RunReporter& m_reporter;
};

} // namespace celloom::engine
