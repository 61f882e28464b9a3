#include "models/base/half_support.h"

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace celloom {

HalfSupport halfSupportIn(std::string_view cpuinfo) {
    HalfSupport out;
    std::istringstream rows{std::string(cpuinfo)};
    for (std::string row; std::getline(rows, row);) {
        if (!row.starts_with("flags") && !row.starts_with("Features")) continue;
        std::istringstream words(row);
        for (std::string word; words >> word;) {
            out.bfloat16 = out.bfloat16 || word == "avx512_bf16" || word == "amx_bf16" || word == "bf16";
            out.float16 = out.float16 || word == "avx512_fp16" || word == "amx_fp16" || word == "asimdhp";
        }
        break; // all processors have the first one's
    }
    return out;
}

HalfSupport processorHalfSupport() {
    static const HalfSupport support = [] {
        std::ifstream file("/proc/cpuinfo");
        return halfSupportIn(std::string(std::istreambuf_iterator<char>(file), {}));
    }();
    return support;
}

} // namespace celloom
