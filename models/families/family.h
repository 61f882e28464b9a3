// One row of the table of families: everything that is particular to one. Adding a family is adding its file and its row.
#pragma once

#include "models/base/result.h"
#include "models/graph/document.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <vector>

namespace celloom::families {

struct Family {
    std::string name;                       // Document::family
    std::vector<std::string> architectures; // config.json's "architectures"
    std::string trunkPrefix;                // checkpoints put it before every path …
    std::vector<std::string> outsideTrunk;  // … but those that begin with one of these names
    std::vector<std::string> ignorable;     // endings of names that hold nothing to load
    std::function<Result<graph::Document>(const nlohmann::json& config, const std::string& place)> fromConfig;
    std::function<Result<nlohmann::ordered_json>(const graph::Document& document)> toConfig;
};

const std::vector<Family>& all();
Family baichuan();

} // namespace celloom::families
