#include "models/code/code.h"
#include "models/graph/expand.h"
#include "models/graph/json.h"
#include "tests/fuzz/fuzz_targets.h"

namespace celloom::fuzz {

void graph(std::string_view json) {
    const auto document = graph::fromJson(std::string(json), "fuzz");
    if (!document) {
        CELLOOM_CHECK(!document.error().message.empty());
        return;
    }
    const std::string written = graph::toJson(*document);
    const auto again = graph::fromJson(written, "fuzz");
    CELLOOM_CHECK(again && graph::toJson(*again) == written);
    const graph::Expansion expansion = graph::expand(*document);
    for (const auto dialect : {celloom::code::Dialect::MindSpore, celloom::code::Dialect::PyTorch}) {
        const auto code = celloom::code::write(*document, dialect);
        CELLOOM_CHECK(code || !code.error().message.empty());
        for (const celloom::code::CellLines& lines : code ? code->lines : std::vector<celloom::code::CellLines>{})
            CELLOOM_CHECK(lines.first >= 1 && lines.last >= lines.first);
    }
}

} // namespace celloom::fuzz
