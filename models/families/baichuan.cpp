// Easy to get wrong (read in the published code, checked against fixtures):
//  - W_pack is rows [q | k | v]; with grouped queries the k and v parts are kv_heads * head_dim rows each.
//  - BaiChuanForCausalLM (capital C) is the first 7B, rotary. BaichuanForCausalLM without max_position_embeddings is a 13B: ALiBi.
//  - vocab_size 125696 is Baichuan 2: normalised head. z_loss_weight is no sign of it: some published configs lack it.
//  - Celloom writes position_embedding and norm_head itself, since small models cannot be told apart by size.
#include "models/families/config_file.h"
#include "models/families/family.h"

namespace celloom::families {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using Head = DecoderConfig::Head;

constexpr std::int64_t kBaichuan2Vocabulary = 125696;

Status readVariant(const json& config, const ConfigReader& reader, DecoderConfig& c) {
    const bool isFirst7B = config.at("architectures").at(0) == "BaiChuanForCausalLM";
    std::string position = isFirst7B || reader.has("max_position_embeddings") ? "rope" : "alibi";
    CELLOOM_TRY_STATUS(reader.word("position_embedding", position, {"rope", "alibi"}));
    c.isAlibi = position == "alibi";
    bool hasNormHead = !isFirst7B && c.vocab == kBaichuan2Vocabulary;
    CELLOOM_TRY_STATUS(reader.flag("norm_head", hasNormHead));
    c.head = hasNormHead ? Head::Normalised : Head::Plain;
    c.hasZLoss = hasNormHead;
    if (!c.hasZLoss) return reader.only("z_loss_weight", 0);
    CELLOOM_TRY_STATUS(reader.real("z_loss_weight", c.zLossWeight));
    return c.zLossWeight >= 0 ? Status() : reader.wrong("z_loss_weight", "a number of at least 0");
}

Result<DecoderConfig> fromConfig(const json& config, const ConfigReader& reader) {
    DecoderConfig c = baichuanDecoder();
    CELLOOM_TRY_STATUS(reader.only("tie_word_embeddings", false));
    CELLOOM_TRY_STATUS(reader.only("rope_scaling", nullptr));
    CELLOOM_TRY_STATUS(readSizes(reader, c));
    CELLOOM_TRY_STATUS(reader.whole("model_max_length", c.maxPositions, c.maxPositions));
    CELLOOM_TRY_STATUS(reader.whole("max_position_embeddings", c.maxPositions, c.maxPositions));
    CELLOOM_TRY_STATUS(reader.real("rope_theta", c.ropeBase));
    CELLOOM_TRY_STATUS(readVariant(config, reader, c));
    return c;
}

ordered_json toConfig(const DecoderConfig& c) {
    const bool isFirst7B = !c.isAlibi && c.head == Head::Plain;
    ordered_json out = writeSizes(c, isFirst7B ? "BaiChuanForCausalLM" : "BaichuanForCausalLM", "baichuan");
    if (c.kvHeads != c.heads) out["num_key_value_heads"] = c.kvHeads;
    if (!c.isAlibi && c.ropeBase != baichuanDecoder().ropeBase) out["rope_theta"] = c.ropeBase;
    if (!c.isAlibi) out["max_position_embeddings"] = c.maxPositions;
    if (!isFirst7B) out["model_max_length"] = c.maxPositions;
    out["position_embedding"] = c.isAlibi ? "alibi" : "rope";
    out["norm_head"] = c.head == Head::Normalised;
    if (c.hasZLoss) out["z_loss_weight"] = c.zLossWeight;
    return out;
}

} // namespace

DecoderConfig baichuanDecoder() {
    DecoderConfig c;
    c.family = "baichuan";
    c.title = "Baichuan";
    c.projections = DecoderConfig::Projections::Rows;
    c.vocab = 64000;
    c.padId = 0;
    return c;
}

Family baichuan() {
    return {"baichuan",
            {"BaiChuanForCausalLM", "BaichuanForCausalLM"},
            "model.",
            {"lm_head"},
            {"rotary_emb.inv_freq"},
            baichuanDecoder,
            fromConfig,
            toConfig};
}

} // namespace celloom::families
