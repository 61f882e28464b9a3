// What the families' config.json files share: keys read one by one, so that what nobody asked for can be named; and the same keys
// written. Only for .cpp files of models/families (includes nlohmann).
#pragma once

#include "models/base/result.h"
#include "models/families/decoder.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace celloom::families {

/// Reads one key at a time; null counts as absent. Every error names the key and the file.
class ConfigReader {
public:
    ConfigReader(const nlohmann::json& config, std::string place, std::string family)
        : m_config(config), m_place(std::move(place)), m_family(std::move(family)) {}

    [[nodiscard]] bool has(const char* key) const { return value(key) != nullptr; }
    /// The value, or null. The key counts as read.
    [[nodiscard]] const nlohmann::json* value(const char* key) const;

    /// A whole number; without `otherwise` the key must be there.
    Status whole(const char* key, std::int64_t& target, std::optional<std::int64_t> otherwise, std::int64_t minimum = 1) const;
    // Each leaves `target` as it is where the key is absent: the caller has put the published default there.
    Status real(const char* key, double& target) const;
    Status flag(const char* key, bool& target) const;
    Status word(const char* key, std::string& target, const std::vector<std::string>& known) const;
    /// An id, or the first of a list of ids (its further ones are told by notRead); null: `otherwise`.
    Status id(const char* key, std::int64_t& target, std::int64_t otherwise, std::int64_t minimum = 0) const;

    /// Fails when a key that changes the computation holds something else than the one value that the family knows.
    Status only(const char* key, const nlohmann::json& known) const;
    /// Fails on keys that make another computation of any of these models: quantised weights, sliding windows, …
    Status onlyKnownComputation() const;

    /// A part of the file with keys of its own, such as rope_scaling. Must be an object.
    Result<ConfigReader> part(const char* key) const;

    [[nodiscard]] tl::unexpected<Error> wrong(const char* key, const std::string& expected) const;
    [[nodiscard]] const std::string& place() const { return m_place; }

    /// Keys with values that were neither read nor are known to mean nothing for the result: "top_thing = 3".
    [[nodiscard]] std::vector<std::string> notRead() const;
    /// For parts, where no key is meaningless: fails when notRead has something to tell.
    Status allRead() const;

private:
    const nlohmann::json& m_config;
    std::string m_place, m_family;
    mutable std::set<std::string> m_read;
    mutable std::vector<std::string> m_remarks;
};

/// Sizes, ids, epsilon and spread, which all families name alike.
Status readSizes(const ConfigReader& reader, DecoderConfig& c);
/// rope_theta and rope_scaling {type or rope_type, factor, …}, or both in rope_parameters. `kinds`: those that the family has.
Status readRope(const ConfigReader& reader, DecoderConfig& c, const std::vector<std::string>& kinds);

/// The keys that all families write alike, in the published order.
nlohmann::ordered_json writeSizes(const DecoderConfig& c, const char* architecture, const char* modelType);
/// rope_scaling, or null where there is none; `kindKey` is "type" or "rope_type".
nlohmann::ordered_json writeRopeScaling(const RopeScaling& scaling, const char* kindKey);

} // namespace celloom::families
