// What the fuzzers call, and the test that replays their corpora. Each takes any bytes at all, and aborts where a reader accepts a file
// whose table could lead outside it.
#pragma once

#include <string_view>

namespace celloom::fuzz {

void safetensors(std::string_view file);
void torch(std::string_view file);    // a whole zip archive
void pickle(std::string_view pickle); // the data.pkl of an archive that is fine otherwise
void ckpt(std::string_view file);

} // namespace celloom::fuzz
