#include "models/families/config_file.h"

#include "models/base/text.h"
#include "models/graph/json_text.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace celloom::families {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t kShownBytes = 60; // of a value in a message

/// Keys that say nothing about what the network computes.
constexpr std::array<std::string_view, 33> kMeaningless{"_attn_implementation_autoset",
                                                        "_from_model_config",
                                                        "_name_or_path",
                                                        "architectures",
                                                        "attn_implementation",
                                                        "auto_map",
                                                        "chunk_size_feed_forward",
                                                        "decoder_start_token_id",
                                                        "dtype",
                                                        "finetuning_task",
                                                        "gradient_checkpointing",
                                                        "id2label",
                                                        "is_decoder",
                                                        "is_encoder_decoder",
                                                        "label2id",
                                                        "model_type",
                                                        "output_attentions",
                                                        "output_hidden_states",
                                                        "pretraining_tp",
                                                        "problem_type",
                                                        "return_dict",
                                                        "sep_token_id",
                                                        "task_specific_params",
                                                        "tokenizer_class",
                                                        "torch_dtype",
                                                        "transformers_version",
                                                        "unsloth_version",
                                                        "use_cache",
                                                        "user_id",
                                                        "tokenizer_id",
                                                        "capital_bos_token_id",
                                                        "prefix",
                                                        "torchscript"};

/// Keys of decoders that look like these and compute something else, with the one value (beside null) that changes nothing.
const std::vector<std::pair<const char*, json>>& elsewhere() {
    static const std::vector<std::pair<const char*, json>> list{
        {"quantization_config", nullptr},    {"quantization_bit", nullptr}, {"sliding_window", nullptr},
        {"partial_rotary_factor", 1.0},      {"logit_scale", 1.0},          {"final_logit_softcapping", nullptr},
        {"attn_logit_softcapping", nullptr}, {"num_experts", nullptr},      {"num_local_experts", nullptr},
        {"embedding_multiplier", 1.0},       {"residual_multiplier", 1.0},  {"logits_scaling", 1.0},
        {"attention_multiplier", nullptr},   {"hidden_act", "silu"},        {"pruned_heads", json::object()},
        {"is_cross_attention", false},       {"add_cross_attention", false}};
    return list;
}

std::string shortText(const json& value) {
    std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
    return text.size() <= kShownBytes ? text : text.substr(0, kShownBytes) + "…";
}

} // namespace

const json* ConfigReader::value(const char* key) const {
    m_read.insert(key);
    const auto found = m_config.find(key);
    return found == m_config.end() || found->is_null() ? nullptr : &*found;
}

tl::unexpected<Error> ConfigReader::wrong(const char* key, const std::string& expected) const {
    return fail(std::string(key) + " is " + graph::describe(m_config.at(key)) + ", expected " + expected + ".", {}, m_place);
}

Status ConfigReader::whole(const char* key, std::int64_t& target, std::optional<std::int64_t> otherwise, std::int64_t minimum) const {
    const json* found = value(key);
    if (!found) {
        if (!otherwise) return fail("lacks " + std::string(key) + ".", {}, m_place);
        target = *otherwise;
        return {};
    }
    if (!found->is_number_integer() || found->get<double>() < static_cast<double>(minimum) || found->get<double>() > 1e9)
        return wrong(key, "a whole number from " + std::to_string(minimum) + " to 1000000000");
    target = found->get<std::int64_t>();
    return {};
}

Status ConfigReader::real(const char* key, double& target) const {
    const json* found = value(key);
    if (!found) return {};
    if (!found->is_number()) return wrong(key, "a number");
    target = found->get<double>();
    return {};
}

Status ConfigReader::flag(const char* key, bool& target) const {
    const json* found = value(key);
    if (!found) return {};
    if (!found->is_boolean()) return wrong(key, "true or false");
    target = found->get<bool>();
    return {};
}

Status ConfigReader::word(const char* key, std::string& target, const std::vector<std::string>& known) const {
    const json* found = value(key);
    if (!found) return {};
    if (!found->is_string() || std::find(known.begin(), known.end(), found->get<std::string>()) == known.end())
        return fail(std::string(key) + " is " + shortText(*found) + "; " + m_family + " models know " + joined(known) + ".", {}, m_place);
    target = found->get<std::string>();
    return {};
}

Status ConfigReader::id(const char* key, std::int64_t& target, std::int64_t otherwise, std::int64_t minimum) const {
    const json* found = value(key);
    if (!found || !found->is_array()) return whole(key, target, otherwise, minimum);
    if (found->empty() || !found->front().is_number_integer() || found->front().get<double>() < static_cast<double>(minimum) ||
        found->front().get<double>() > 1e9)
        return wrong(key, "an id, or a list of ids");
    target = found->front().get<std::int64_t>();
    if (found->size() > 1) m_remarks.push_back(std::string(key) + " = " + shortText(*found) + " (the first is used)");
    return {};
}

Status ConfigReader::only(const char* key, const json& known) const {
    const json* found = value(key);
    if (!found || *found == known) return {};
    const std::string knows = known.is_null() ? " models without it" : " models with " + shortText(known);
    return fail(std::string(key) + " is " + shortText(*found) + "; Celloom knows " + m_family + knows + " alone.", {}, m_place);
}

Status ConfigReader::onlyKnownComputation() const {
    for (const auto& [key, neutral] : elsewhere()) CELLOOM_TRY_STATUS(only(key, neutral));
    return {};
}

Result<ConfigReader> ConfigReader::part(const char* key) const {
    const json* found = value(key);
    CELLOOM_CHECK(found != nullptr);
    if (!found->is_object()) return wrong(key, "an object");
    return ConfigReader(*found, m_place + ": " + key, m_family);
}

std::vector<std::string> ConfigReader::notRead() const {
    std::vector<std::string> out = m_remarks;
    for (const auto& [key, found] : m_config.items()) {
        const bool isMeaningless =
            std::find(kMeaningless.begin(), kMeaningless.end(), key) != kMeaningless.end() || (key.ends_with("dropout") && found == 0);
        if (!isMeaningless && !found.is_null() && !m_read.contains(key)) out.push_back(key + " = " + shortText(found));
    }
    return out;
}

Status ConfigReader::allRead() const {
    const auto others = notRead();
    if (others.empty()) return {};
    return fail("holds " + joined(others) + ", which Celloom does not know.", {}, m_place);
}

// ---- what all families share ----

Status readSizes(const ConfigReader& reader, DecoderConfig& c) {
    CELLOOM_TRY_STATUS(reader.whole("vocab_size", c.vocab, {}));
    CELLOOM_TRY_STATUS(reader.whole("hidden_size", c.hidden, {}));
    CELLOOM_TRY_STATUS(reader.whole("num_hidden_layers", c.layers, {}));
    CELLOOM_TRY_STATUS(reader.whole("num_attention_heads", c.heads, {}));
    CELLOOM_TRY_STATUS(reader.whole("num_key_value_heads", c.kvHeads, c.heads));
    CELLOOM_TRY_STATUS(reader.whole("intermediate_size", c.intermediate, {}));
    CELLOOM_TRY_STATUS(reader.id("pad_token_id", c.padId, c.padId, -1));
    CELLOOM_TRY_STATUS(reader.id("bos_token_id", c.bosId, c.bosId));
    CELLOOM_TRY_STATUS(reader.id("eos_token_id", c.eosId, c.eosId));
    CELLOOM_TRY_STATUS(reader.real("rms_norm_eps", c.normEps));
    return reader.real("initializer_range", c.initStd);
}

namespace {

Status readScaling(const ConfigReader& scaling, DecoderConfig& c, const std::vector<std::string>& kinds) {
    std::string kind = "default";
    std::vector<std::string> known = kinds;
    known.insert(known.begin(), "default");
    CELLOOM_TRY_STATUS(scaling.word("type", kind, known));
    CELLOOM_TRY_STATUS(scaling.word("rope_type", kind, known));
    const nlohmann::json *type = scaling.value("type"), *ropeType = scaling.value("rope_type");
    if (type && ropeType && *type != *ropeType)
        return fail("type and rope_type name two ways of scaling.", "Remove one of them.", scaling.place());
    c.scaling.kind = kind == "default" ? "none" : kind;
    CELLOOM_TRY_STATUS(scaling.real("factor", c.scaling.factor));
    if (kind == "default") return {};
    if (!(c.scaling.factor > 0)) return scaling.wrong("factor", "a number above 0");
    if (kind == "llama3") {
        CELLOOM_TRY_STATUS(scaling.real("low_freq_factor", c.scaling.lowFrequency));
        CELLOOM_TRY_STATUS(scaling.real("high_freq_factor", c.scaling.highFrequency));
        CELLOOM_TRY_STATUS(scaling.whole("original_max_position_embeddings", c.scaling.originalPositions, {}));
    } else {
        CELLOOM_TRY_STATUS(scaling.only("original_max_position_embeddings", c.maxPositions));
    }
    return scaling.allRead();
}

} // namespace

Status readRope(const ConfigReader& reader, DecoderConfig& c, const std::vector<std::string>& kinds) {
    CELLOOM_TRY_STATUS(reader.real("rope_theta", c.ropeBase));
    if (reader.has("rope_scaling")) {
        CELLOOM_TRY(scaling, reader.part("rope_scaling"));
        CELLOOM_TRY_STATUS(readScaling(scaling, c, kinds));
    }
    if (reader.has("rope_parameters")) { // transformers 5 writes this one instead of the two
        CELLOOM_TRY(parameters, reader.part("rope_parameters"));
        CELLOOM_TRY_STATUS(parameters.real("rope_theta", c.ropeBase));
        CELLOOM_TRY_STATUS(readScaling(parameters, c, kinds));
    }
    return {};
}

ordered_json writeSizes(const DecoderConfig& c, const char* architecture, const char* modelType) {
    ordered_json out;
    out["architectures"] = {architecture};
    out["model_type"] = modelType;
    out["vocab_size"] = c.vocab;
    out["hidden_size"] = c.hidden;
    out["intermediate_size"] = c.intermediate;
    out["num_hidden_layers"] = c.layers;
    out["num_attention_heads"] = c.heads;
    out["hidden_act"] = "silu";
    out["initializer_range"] = c.initStd;
    out["rms_norm_eps"] = c.normEps;
    if (c.padId < 0)
        out["pad_token_id"] = nullptr;
    else
        out["pad_token_id"] = c.padId;
    out["bos_token_id"] = c.bosId;
    out["eos_token_id"] = c.eosId;
    out["tie_word_embeddings"] = c.head == DecoderConfig::Head::Tied;
    out["use_cache"] = true;
    out["torch_dtype"] = "float32";
    return out;
}

ordered_json writeRopeScaling(const RopeScaling& scaling, const char* kindKey) {
    if (scaling.kind == "none") return nullptr;
    ordered_json out;
    out[kindKey] = scaling.kind;
    out["factor"] = scaling.factor;
    if (scaling.kind == "llama3") {
        out["low_freq_factor"] = scaling.lowFrequency;
        out["high_freq_factor"] = scaling.highFrequency;
        out["original_max_position_embeddings"] = scaling.originalPositions;
    }
    return out;
}

} // namespace celloom::families
