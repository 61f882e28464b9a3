// InternLM, InternLM2 and InternLM3. Easy to get wrong (read in the published code, checked against fixtures):
//  - Biases. First: `bias` for q, k, v and o, none in the MLP (7B true, 20B false). 2: `bias` for wqkv and wo. 3: `qkv_bias` for q, k, v;
//    `bias` for o and the MLP.
//  - InternLM2's wqkv holds, for each key/value head, its query heads, then its key, then its value; w1 is the gate, w3 the other one.
//  - Rotary base and scaling: `rotary` {base, type origin or dynamic, scaling_factor} in the first; its class's default is dynamic.
//    rope_theta and rope_scaling in 2 and 3.
//  - InternLM3's head_dim need not be hidden / heads.
#include "models/families/config_file.h"
#include "models/families/family.h"

namespace celloom::families {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// ---- InternLM ----

Status readRotary(const ConfigReader& reader, DecoderConfig& c) {
    CELLOOM_TRY_STATUS(reader.only("rope_theta", 10000)); // the published code does not look at these two
    CELLOOM_TRY_STATUS(reader.only("rope_scaling", nullptr));
    if (!reader.has("rotary")) return {};
    CELLOOM_TRY(rotary, reader.part("rotary"));
    std::string type = "dynamic";
    CELLOOM_TRY_STATUS(rotary.real("base", c.ropeBase));
    CELLOOM_TRY_STATUS(rotary.word("type", type, {"origin", "dynamic"}));
    CELLOOM_TRY_STATUS(rotary.real("scaling_factor", c.scaling.factor));
    c.scaling.kind = type == "dynamic" ? "dynamic" : "none";
    return rotary.allRead();
}

Result<DecoderConfig> fromConfig(const json&, const ConfigReader& reader) {
    DecoderConfig c = internlmDecoder();
    CELLOOM_TRY_STATUS(reader.only("tie_word_embeddings", false));
    CELLOOM_TRY_STATUS(readSizes(reader, c));
    CELLOOM_TRY_STATUS(reader.only("num_key_value_heads", c.heads));
    CELLOOM_TRY_STATUS(reader.whole("max_position_embeddings", c.maxPositions, c.maxPositions));
    CELLOOM_TRY_STATUS(reader.flag("bias", c.hasQkvBias));
    c.hasOutputBias = c.hasQkvBias;
    CELLOOM_TRY_STATUS(readRotary(reader, c));
    return c;
}

ordered_json toConfig(const DecoderConfig& c) {
    ordered_json out = writeSizes(c, "InternLMForCausalLM", "internlm");
    out["max_position_embeddings"] = c.maxPositions;
    out["bias"] = c.hasQkvBias;
    out["rotary"]["base"] = c.ropeBase;
    out["rotary"]["type"] = c.scaling.kind == "dynamic" ? "dynamic" : "origin";
    if (c.scaling.factor != 1) out["rotary"]["scaling_factor"] = c.scaling.factor;
    return out;
}

// ---- InternLM2 ----

Result<DecoderConfig> fromConfig2(const json&, const ConfigReader& reader) {
    DecoderConfig c = internlm2Decoder();
    CELLOOM_TRY_STATUS(reader.only("tie_word_embeddings", false));
    CELLOOM_TRY_STATUS(readSizes(reader, c));
    CELLOOM_TRY_STATUS(reader.whole("max_position_embeddings", c.maxPositions, c.maxPositions));
    CELLOOM_TRY_STATUS(reader.flag("bias", c.hasQkvBias));
    c.hasOutputBias = c.hasQkvBias;
    CELLOOM_TRY_STATUS(readRope(reader, c, {"linear", "dynamic"}));
    return c;
}

ordered_json toConfig2(const DecoderConfig& c) {
    ordered_json out = writeSizes(c, "InternLM2ForCausalLM", "internlm2");
    out["max_position_embeddings"] = c.maxPositions;
    out["bias"] = c.hasQkvBias;
    out["num_key_value_heads"] = c.kvHeads;
    out["rope_theta"] = c.ropeBase;
    out["rope_scaling"] = writeRopeScaling(c.scaling, "type");
    return out;
}

// ---- InternLM3 ----

Result<DecoderConfig> fromConfig3(const json&, const ConfigReader& reader) {
    DecoderConfig c = internlm3Decoder();
    CELLOOM_TRY_STATUS(reader.only("tie_word_embeddings", false));
    CELLOOM_TRY_STATUS(readSizes(reader, c));
    CELLOOM_TRY_STATUS(reader.whole("head_dim", c.headDim, 0));
    CELLOOM_TRY_STATUS(reader.whole("max_position_embeddings", c.maxPositions, c.maxPositions));
    CELLOOM_TRY_STATUS(reader.flag("qkv_bias", c.hasQkvBias));
    CELLOOM_TRY_STATUS(reader.flag("bias", c.hasOutputBias));
    c.hasMlpBias = c.hasOutputBias;
    CELLOOM_TRY_STATUS(readRope(reader, c, {"linear", "dynamic"}));
    return c;
}

ordered_json toConfig3(const DecoderConfig& c) {
    ordered_json out = writeSizes(c, "InternLM3ForCausalLM", "internlm3");
    out["max_position_embeddings"] = c.maxPositions;
    out["qkv_bias"] = c.hasQkvBias;
    out["bias"] = c.hasOutputBias;
    out["num_key_value_heads"] = c.kvHeads;
    out["head_dim"] = c.headDim;
    out["rope_theta"] = c.ropeBase;
    out["rope_scaling"] = writeRopeScaling(c.scaling, "rope_type");
    return out;
}

} // namespace

DecoderConfig internlmDecoder() {
    DecoderConfig c;
    c.family = "internlm";
    c.title = "InternLM";
    c.vocab = 103168;
    c.padId = 0; // of the configuration class; the published files give 2
    c.maxPositions = 2048;
    c.hasQkvBias = c.hasOutputBias = true;
    c.scaling.kind = "dynamic";
    return c;
}

DecoderConfig internlm2Decoder() {
    DecoderConfig c;
    c.family = "internlm2";
    c.title = "InternLM2";
    c.names = {"tok_embeddings", "output", "attention_norm", "attention", "ffn_norm", "feed_forward", "wqkv", "wo", "w1", "w3", "w2"};
    c.projections = DecoderConfig::Projections::Groups;
    c.vocab = 103168;
    c.padId = 0;
    c.maxPositions = 2048;
    c.hasQkvBias = c.hasOutputBias = true;
    return c;
}

DecoderConfig internlm3Decoder() {
    DecoderConfig c;
    c.family = "internlm3";
    c.title = "InternLM3";
    c.hasHeadDim = true;
    c.vocab = 128512;
    c.padId = 2;
    c.maxPositions = 32768;
    return c;
}

Family internlm() {
    return {"internlm", {"InternLMForCausalLM"}, "model.", {"lm_head"}, {"rotary_emb.inv_freq"}, internlmDecoder, fromConfig, toConfig};
}
Family internlm2() {
    return {"internlm2", {"InternLM2ForCausalLM"}, "model.", {"output"}, {"rotary_emb.inv_freq"}, internlm2Decoder, fromConfig2, toConfig2};
}
Family internlm3() {
    return {"internlm3", {"InternLM3ForCausalLM"}, "model.", {"lm_head"}, {"rotary_emb.inv_freq"}, internlm3Decoder, fromConfig3,
            toConfig3};
}

} // namespace celloom::families
