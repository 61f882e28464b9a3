#include "models/families/vocabulary.h"

#include <algorithm>

namespace celloom::families {

bool hasVocabulary(const graph::Document& document) {
    const auto& hyper = document.main.hyper;
    return std::any_of(hyper.begin(), hyper.end(), [](const graph::HyperParameter& one) { return one.name == kVocabulary; });
}

std::int64_t vocabularyOf(const graph::ExpandedModel& model) {
    if (const std::int64_t said = model.hyperInteger(kVocabulary, 0); said > 0) return said;
    std::int64_t rows = 0;
    for (const graph::CellInstance& cell : model.cells) {
        if (cell.type != "Embedding") continue;
        const bool readsIds = std::any_of(model.inputs.begin(), model.inputs.end(), [&](const graph::NamedValue& input) { return input.value == cell.inputs[0]; });
        if (readsIds) rows = rows == 0 ? cell.integer("vocab_size") : std::min(rows, cell.integer("vocab_size"));
    }
    return rows;
}

} // namespace celloom::families
