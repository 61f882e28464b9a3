#include "models/base/file_lock.h"

#include <fcntl.h>
#include <unistd.h>

namespace celloom {
namespace {

struct flock wholeFile() {
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    return range; // start 0, length 0: the whole file
}

} // namespace

bool lockWholeFile(int descriptor) {
    struct flock range = wholeFile();
    return ::fcntl(descriptor, F_OFD_SETLK, &range) == 0;
}

bool isFileLocked(const std::filesystem::path& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    struct flock range = wholeFile();
    const bool isKnown = ::fcntl(file, F_OFD_GETLK, &range) == 0;
    ::close(file);
    return isKnown && range.l_type != F_UNLCK;
}

} // namespace celloom
