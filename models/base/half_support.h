// Which half types this machine's processor multiplies by instructions of its own. Without them a half type saves memory, but no time.
#pragma once

#include <string_view>

namespace celloom {

struct HalfSupport {
    bool bfloat16 = false, float16 = false;
};

/// By the flags of /proc/cpuinfo: avx512_bf16, amx_bf16, avx512_fp16, amx_fp16; on ARM bf16, asimdhp.
HalfSupport halfSupportIn(std::string_view cpuinfo);
/// Of this machine; none where /proc/cpuinfo cannot be read. Read once.
HalfSupport processorHalfSupport();

} // namespace celloom
