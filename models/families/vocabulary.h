// How many token ids a language model knows: a family's hyper-parameter says it, or the Embedding that reads the ids.
#pragma once

#include "models/graph/document.h"
#include "models/graph/expand.h"

namespace celloom::families {

/// The hyper-parameter's name in every family's graph (families.h).
inline constexpr const char* kVocabulary = "vocab";

/// Whether the graph has that hyper-parameter, so that it can follow a tokenizer. A graph of the user's own may do without.
bool hasVocabulary(const graph::Document& document);

/// Ids run from 0 to one below this: the hyper-parameter, else the rows of the smallest Embedding that reads an input of the graph. 0: none does.
std::int64_t vocabularyOf(const graph::ExpandedModel& model);

} // namespace celloom::families
