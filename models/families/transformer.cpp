// The generic decoder that most tools read: Llama. Easy to get wrong:
//  - tie_word_embeddings: the head is the embedding; a checkpoint's lm_head.weight, where there is one, is not looked at.
//  - rope_scaling llama3: waves shorter than the original length / high_freq_factor stay, those longer than original / low_freq_factor
//    are slowed down by `factor`, in between a straight line from one to the other.
//  - attention_bias is for q, k, v and o.
#include "models/families/config_file.h"
#include "models/families/family.h"

namespace celloom::families {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using Head = DecoderConfig::Head;

Result<DecoderConfig> fromConfig(const json&, const ConfigReader& reader) {
    DecoderConfig c = transformerDecoder();
    CELLOOM_TRY_STATUS(readSizes(reader, c));
    CELLOOM_TRY_STATUS(reader.whole("head_dim", c.headDim, 0));
    CELLOOM_TRY_STATUS(reader.whole("max_position_embeddings", c.maxPositions, 2048));
    bool isTied = false;
    CELLOOM_TRY_STATUS(reader.flag("tie_word_embeddings", isTied));
    if (isTied) c.head = Head::Tied;
    CELLOOM_TRY_STATUS(reader.flag("attention_bias", c.hasQkvBias));
    c.hasOutputBias = c.hasQkvBias;
    CELLOOM_TRY_STATUS(reader.flag("mlp_bias", c.hasMlpBias));
    CELLOOM_TRY_STATUS(readRope(reader, c, {"linear", "dynamic", "llama3"}));
    return c;
}

ordered_json toConfig(const DecoderConfig& c) {
    ordered_json out = writeSizes(c, "LlamaForCausalLM", "llama");
    out["max_position_embeddings"] = c.maxPositions;
    out["num_key_value_heads"] = c.kvHeads;
    out["head_dim"] = c.headDim;
    out["attention_bias"] = c.hasQkvBias;
    out["attention_dropout"] = 0.0;
    out["mlp_bias"] = c.hasMlpBias;
    out["rope_theta"] = c.ropeBase;
    out["rope_scaling"] = writeRopeScaling(c.scaling, "rope_type");
    return out;
}

} // namespace

DecoderConfig transformerDecoder() {
    DecoderConfig c;
    c.family = "transformer";
    c.title = "Transformer";
    c.hasHeadDim = true;
    return c;
}

Family transformer() {
    return {"transformer", {"LlamaForCausalLM"}, "model.", {"lm_head"}, {"rotary_emb.inv_freq"}, transformerDecoder, fromConfig, toConfig};
}

} // namespace celloom::families
