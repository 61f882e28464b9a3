#include "models/base/disk.h"

namespace celloom {

bool isDiskFull(const Error& error) {
    for (const char* sentence : {"No space left on device", "Disk quota exceeded", "disk is full"})
        if (error.message.find(sentence) != std::string::npos) return true;
    return false;
}

} // namespace celloom
