// What the importer takes from the rest of engine/script, without it: the message alone, so that the fuzzer needs no compiler of scripts.
#include "engine/script/compiler.h"

namespace celloom::engine::script {

ScriptProblem problemOf(const std::exception& exception, const ScriptSource&, bool) {
    return {exception.what(), {}, 0, 0, 1, {}, false};
}

} // namespace celloom::engine::script
