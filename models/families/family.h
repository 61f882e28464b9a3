// One row of the table of families: everything that is particular to one. Adding a family is adding its file and its row.
#pragma once

#include "models/base/result.h"
#include "models/families/decoder.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <vector>

namespace celloom::families {

class ConfigReader;

struct Family {
    std::string name;                       // Document::family
    std::vector<std::string> architectures; // config.json's "architectures"
    std::string trunkPrefix;                // checkpoints put it before every path …
    std::vector<std::string> outsideTrunk;  // … but those that begin with one of these names
    std::vector<std::string> ignorable;     // endings of names that hold nothing to load
    std::function<DecoderConfig()> decoder; // what is fixed, and defaults
    std::function<Result<DecoderConfig>(const nlohmann::json& config, const ConfigReader& reader)> fromConfig;
    std::function<nlohmann::ordered_json(const DecoderConfig& config)> toConfig;
};

const std::vector<Family>& all();
Family baichuan();
Family internlm();
Family internlm2();
Family internlm3();
Family transformer();

} // namespace celloom::families
