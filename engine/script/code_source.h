// A file of cells taken apart, as source.h does with a callback's: imports of any module are read over, a call may have "*layers", and comments and
// docstrings are kept beside the text in which they are blanked. Knows no LibTorch.
#pragma once

#include "engine/script/source.h"

namespace celloom::engine {

/// As it was written: from "#" to the line's end, or from quote to quote.
struct ScriptComment {
    std::size_t offset = 0; // of ScriptSource::text
    std::string text;
};

struct CodeSource : ScriptSource {
    std::vector<ScriptComment> comments, docstrings;
};

/// 512 KiB and 20 000 lines at most; else as ScriptLimits.
ScriptResult<CodeSource> readCodeSource(std::string_view code);

} // namespace celloom::engine
