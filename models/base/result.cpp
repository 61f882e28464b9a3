#include "models/base/result.h"

#include <cstdio>
#include <cstdlib>

namespace celloom {

std::string Error::text() const {
    std::string out = place.empty() ? message : place + ": " + message;
    if (!hint.empty()) out += " " + hint;
    return out;
}

void checkFailed(const char* condition, const char* file, int line) {
    std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
    std::abort();
}

} // namespace celloom
