// Document <-> JSON text: stable key order, schema-versioned, migrations for older versions. Bounded reader.
#pragma once

#include "models/base/result.h"
#include "models/graph/document.h"

#include <filesystem>
#include <string>

namespace celloom::graph {

std::string toJson(const Document& document);
/// Whether a text would be a document, were it whole and free of mistakes.
bool isMeantAsDocument(const std::string& text);
Result<Document> fromJson(const std::string& text, const std::string& place = {});
Result<Document> loadDocument(const std::filesystem::path& path); // .cells.json

} // namespace celloom::graph
