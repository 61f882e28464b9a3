// Read in MindFormers' research/{baichuan,baichuan2,internlm,internlm2}/convert_weight.py and mindformers/models/llama/convert_weight.py.
#include "models/families/mindformers.h"

#include "models/families/families.h"

#include <algorithm>
#include <array>

namespace celloom::families {
namespace {

using Way = std::vector<TensorRows>;

struct Replacement {
    const char* ours;
    const char* theirs;
};
/// Parts of names. InternLM2 has MindFormers' own names already, but for the last four.
constexpr std::array kReplacements = {Replacement{"embed_tokens.weight", "tok_embeddings.embedding_weight"},
                                      Replacement{".self_attn.q_proj.", ".attention.wq."},
                                      Replacement{".self_attn.k_proj.", ".attention.wk."},
                                      Replacement{".self_attn.v_proj.", ".attention.wv."},
                                      Replacement{".self_attn.o_proj.", ".attention.wo."},
                                      Replacement{".mlp.gate_proj.", ".feed_forward.w1."},
                                      Replacement{".mlp.down_proj.", ".feed_forward.w2."},
                                      Replacement{".mlp.up_proj.", ".feed_forward.w3."},
                                      Replacement{".input_layernorm.", ".attention_norm."},
                                      Replacement{".post_attention_layernorm.", ".ffn_norm."},
                                      Replacement{"tok_embeddings.weight", "tok_embeddings.embedding_weight"},
                                      Replacement{".attention.wqkv.", ".attention.w."},
                                      Replacement{".norm.", ".norm_out."}};

std::string replaced(std::string name, const std::string& from, const std::string& to) {
    if (const auto at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
    return name;
}

std::string theirName(std::string name) {
    if (name.starts_with("output.")) return replaced(name, "output.", "lm_head.");
    for (const Replacement& pair : kReplacements) name = replaced(std::move(name), pair.ours, pair.theirs);
    return name;
}

/// Rows of the attention's projections.
struct Sizes {
    std::int64_t head = 0, queries = 0, keys = 0, groups = 0; // groups: key/value heads
};

Sizes sizesOf(const graph::ExpandedModel& model) {
    const std::int64_t heads = model.hyperInteger("heads", 1), hidden = model.hyperInteger("hidden", 0);
    Sizes out;
    out.groups = model.hyperInteger("kv_heads", heads);
    out.head = model.hyperInteger("head_dim", heads > 0 ? hidden / heads : 0);
    out.queries = heads * out.head;
    out.keys = out.groups * out.head;
    return out;
}

/// InternLM2's rows: for each key/value head its query heads, its key, its value. `q`, `k`, `v`: where those of head 0 lie.
Way groupedRows(const Sizes& sizes, const TensorRows& q, const TensorRows& k, const TensorRows& v) {
    Way out;
    const std::int64_t queries = sizes.groups > 0 ? sizes.queries / sizes.groups : 0;
    for (std::int64_t group = 0; group < sizes.groups; ++group) {
        out.push_back({q.name, q.first + group * queries, queries});
        out.push_back({k.name, k.first + group * sizes.head, sizes.head});
        out.push_back({v.name, v.first + group * sizes.head, sizes.head});
    }
    return out;
}

} // namespace

std::vector<std::vector<TensorRows>> mindFormersTensors(const graph::ExpandedModel& model, const std::string& parameterPath) {
    const std::string ours = checkpointName(model.family, parameterPath), name = theirName(ours);
    const Sizes sizes = sizesOf(model);
    const std::int64_t queries = sizes.queries, keys = sizes.keys, inner = model.hyperInteger("intermediate", 0);
    const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
    const auto with = [&](const char* part, const char* other) { return replaced(name, part, other); };
    if (has(".attention.wq.")) return {{{name}}, {{with(".wq.", ".w_qkv."), 0, queries}}};
    if (has(".attention.wk.")) return {{{name}}, {{with(".wk.", ".w_qkv."), queries, keys}}};
    if (has(".attention.wv.")) return {{{name}}, {{with(".wv.", ".w_qkv."), queries + keys, keys}}};
    if (has(".feed_forward.w1.")) return {{{name}}, {{with(".w1.", ".w_gate_hidden."), 0, inner}}};
    if (has(".feed_forward.w3.")) return {{{name}}, {{with(".w3.", ".w_gate_hidden."), inner, inner}}};
    if (const char* packed = ".self_attn.W_pack."; has(packed))
        return {{{with(packed, ".attention.wq."), 0, queries},
                 {with(packed, ".attention.wk."), 0, keys},
                 {with(packed, ".attention.wv."), 0, keys}},
                {{with(packed, ".attention.w_qkv.")}}};
    if (const char* packed = ".attention.w."; has(packed)) {
        const std::string joined = with(packed, ".attention.w_qkv.");
        return {{{name}},
                groupedRows(sizes, {with(packed, ".attention.wq.")}, {with(packed, ".attention.wk.")}, {with(packed, ".attention.wv.")}),
                groupedRows(sizes, {joined}, {joined, queries}, {joined, queries + keys})};
    }
    return {{{name}}};
}

bool areMindFormersNames(const std::vector<std::string>& names) {
    return std::any_of(names.begin(), names.end(), [](const std::string& name) {
        return name.ends_with("tok_embeddings.embedding_weight") || name.ends_with("norm_out.weight");
    });
}

bool isMindSporeTrainingState(const std::string& name) {
    constexpr std::array kPrefixes = {"adam_m.",     "adam_v.",      "moment1.",    "moment2.", "moments.",
                                      "accu_grads.", "accum_grads.", "fp32_state.", "vhat."};
    constexpr std::array kNames = {"global_step",        "learning_rate", "epoch_num",   "step_num",
                                   "scale_sense",        "loss_scale",    "beta1_power", "beta2_power",
                                   "momentum",           "random_op",     "_random_op",  "last_overflow_iterator_step",
                                   "current_factor",     "good_steps",    "scale_value", "current_iterator_step",
                                   "last_overflow_step", "network_id"};
    return std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](const char* prefix) { return name.starts_with(prefix); }) ||
           std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

} // namespace celloom::families
