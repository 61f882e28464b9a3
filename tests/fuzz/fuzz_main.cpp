// libFuzzer's entry; CELLOOM_FUZZ_TARGET is one of the functions of fuzz_targets.h.
#include "tests/fuzz/fuzz_targets.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    celloom::fuzz::CELLOOM_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
    return 0;
}
