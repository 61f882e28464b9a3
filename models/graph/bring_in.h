// Another document's content into this one: as the whole model, or as a composite with a cell of it.
#pragma once

#include "models/graph/edits.h"

namespace celloom::graph {

/// `document` becomes `other`. Cells that keep graph and name keep their places too, where every cell of that graph has one.
void replaceBy(Document& document, Document other);

/// A cell of what `other` holds, in `graph`: of its composite `wanted` where it has one of that name (code brings such), else of its main
/// graph, which becomes a composite. Composites that are there already with the same content are used. Returns the cell's name.
Result<std::string> insertDocument(Document& document, const GraphName& graph, const Document& other, const std::string& wanted,
                                   std::optional<Position> position = {});

} // namespace celloom::graph
