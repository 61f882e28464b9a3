// Bounded JSON parsing for everything a user can hand us: graphs, recipes, config.json. Only for .cpp files (includes nlohmann).
#pragma once

#include "models/base/result.h"

#include <nlohmann/json.hpp>

#include <string>

namespace celloom::graph {

struct JsonLimits {
    std::size_t maxBytes = 16u << 20;
    int maxDepth = 64;
};

/// Strict JSON: errors carry `place`, line and column. Refused: too long, too deep, a key given twice, text after the value,
/// malformed UTF-8.
Result<nlohmann::json> parseJson(const std::string& text, const std::string& place, const JsonLimits& limits = {});

/// "a number", "text", "a list": for messages that say what was found.
std::string describe(const nlohmann::json& value);

} // namespace celloom::graph
