#include "engine/train/data_watch.h"

#include <nlohmann/json.hpp>
#include <sys/stat.h>

namespace celloom::engine {

DataWatch::DataWatch(const std::vector<CorpusFile>& files, RunReporter& reporter) : m_reporter(reporter) {
    for (const CorpusFile& file : files) {
        struct stat info {};
        if (file.encoding != "tokens" && file.encoding != "tensors") continue;
        const bool isThere = ::stat(file.path.c_str(), &info) == 0;
        m_files.push_back({file.path, info.st_dev, info.st_ino, file.sizeBytes, info.st_mtim, !isThere});
    }
}

Status DataWatch::stepBegin(RunContext&) {
    for (Watched& file : m_files) {
        if (file.isGone) continue;
        struct stat info {};
        if (::stat(file.path.c_str(), &info) != 0 || info.st_dev != file.device || info.st_ino != file.inode) {
            file.isGone = true;
            m_reporter.warning("data_gone", {"was deleted or replaced. The run goes on with what it has open; a resume will need the file as it was.", {}, file.path.string()},
                               nlohmann::json{{"path", file.path.string()}}.dump());
            continue;
        }
        const bool isSame = info.st_size == file.sizeBytes && info.st_mtim.tv_sec == file.changed.tv_sec && info.st_mtim.tv_nsec == file.changed.tv_nsec;
        if (!isSame)
            return fail("was changed while the run read it: it had " + std::to_string(file.sizeBytes) + " bytes and has " + std::to_string(info.st_size) + ".",
                        "Put the file back as it was and resume, or start a new run on the changed one.", file.path.string());
    }
    return {};
}

} // namespace celloom::engine
