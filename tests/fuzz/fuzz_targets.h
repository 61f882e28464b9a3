// What the fuzzers call, and the test that replays their corpora. Each takes any bytes at all. Those of checkpoints abort where a reader accepts
// a file whose table could lead outside it; those of graphs and code where what was read cannot be written and read again.
#pragma once

#include <string_view>

namespace celloom::fuzz {

void safetensors(std::string_view file);
void torch(std::string_view file);    // a whole zip archive
void pickle(std::string_view pickle); // the data.pkl of an archive that is fine otherwise
void ckpt(std::string_view file);
void graph(std::string_view json);  // a document: read, expanded, written as JSON and as code (fuzz_graph.cpp)
void code(std::string_view source); // Python classes: imported, written, imported again (fuzz_code.cpp)

} // namespace celloom::fuzz
