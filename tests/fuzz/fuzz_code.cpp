#include "engine/code/import.h"
#include "models/code/code.h"
#include "models/graph/json.h"
#include "tests/fuzz/fuzz_targets.h"

namespace celloom::fuzz {

void code(std::string_view source) {
    const auto imported = engine::code::importCode(std::string(source), {});
    if (!imported) {
        CELLOOM_CHECK(!imported.error().message.empty() && imported.error().line >= 0 && imported.error().column >= 0);
        return;
    }
    const std::string json = graph::toJson(imported->document);
    CELLOOM_CHECK(graph::fromJson(json, "fuzz"));
    const auto written = celloom::code::write(imported->document, celloom::code::Dialect::MindSpore);
    if (!written) return; // a graph with problems, or none at all
    const auto again = engine::code::importCode(written->text, {});
    CELLOOM_CHECK(again && graph::toJson(again->document) == json);
}

} // namespace celloom::fuzz
