// The one parametric graph behind all families: decoder layers of attention and a gated MLP, each on a residual stream, RMSNorm before
// both. What differs from family to family is in DecoderConfig; what each family's config.json says is in its own file.
#pragma once

#include "models/base/result.h"
#include "models/graph/document.h"

#include <cstdint>
#include <string>

namespace celloom::families {

/// Cell names: with the family's prefix they are the names of its published checkpoints.
struct DecoderNames {
    std::string embedding = "embed_tokens", head = "lm_head";
    std::string attentionNorm = "input_layernorm", attention = "self_attn", mlpNorm = "post_attention_layernorm", mlp = "mlp";
    std::string packed = "W_pack", output = "o_proj"; // separate projections are q_proj, k_proj, v_proj
    std::string gate = "gate_proj", up = "up_proj", down = "down_proj";
    bool operator==(const DecoderNames&) const = default;
};

/// How rotary positions go beyond the length trained on. llama3: Llama 3.1's bands of wave lengths.
struct RopeScaling {
    std::string kind = "none"; // as RotaryEmbedding's: none, linear, dynamic, llama3
    double factor = 1;
    double lowFrequency = 1, highFrequency = 4; // llama3
    std::int64_t originalPositions = 8192;      // llama3: the length trained on; the others start from maxPositions
    bool operator==(const RopeScaling&) const = default;
};

struct DecoderConfig {
    enum class Projections {
        Separate, // q_proj, k_proj, v_proj
        Rows,     // one matrix, rows [q | k | v]
        Groups    // one matrix, for each key/value head: its query heads, then its key, then its value
    };
    enum class Head { Plain, Normalised, Tied };

    std::string family, title;
    DecoderNames names;
    Projections projections = Projections::Separate;
    bool hasHeadDim = false; // the head's size is a hyper-parameter of its own, else always hidden / heads
    bool hasZLoss = false;   // keeps z_loss_weight as a hyper-parameter

    std::int64_t vocab = 32000, hidden = 4096, layers = 32, heads = 32, kvHeads = 32, intermediate = 11008;
    std::int64_t headDim = 0; // 0: hidden / heads
    std::int64_t maxPositions = 4096, padId = -1, bosId = 1, eosId = 2;
    double normEps = 1e-6, ropeBase = 10000, initStd = 0.02, zLossWeight = 0;
    bool isAlibi = false; // else rotary
    RopeScaling scaling;
    bool hasQkvBias = false, hasOutputBias = false, hasMlpBias = false;
    Head head = Head::Plain;
    bool operator==(const DecoderConfig&) const = default;
};

// What is fixed in each family, with its configuration class's defaults.
DecoderConfig baichuanDecoder();
DecoderConfig internlmDecoder();
DecoderConfig internlm2Decoder();
DecoderConfig internlm3Decoder();
DecoderConfig transformerDecoder();

graph::Document buildDecoder(const DecoderConfig& config);

/// The numbers and variants of a graph that buildDecoder could have made of `family` (which gives names and layout); an error where
/// the graph has become another one.
Result<DecoderConfig> readDecoder(const graph::Document& document, DecoderConfig family);

} // namespace celloom::families
