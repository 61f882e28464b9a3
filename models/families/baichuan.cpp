// Easy to get wrong (read in the published code, checked against fixtures):
//  - W_pack is rows [q | k | v]; with grouped queries the k and v parts are kv_heads * head_dim rows each.
//  - BaiChuanForCausalLM (capital C) is the first 7B, rotary. BaichuanForCausalLM without max_position_embeddings is a 13B: ALiBi.
//  - vocab_size 125696 is Baichuan 2: normalised head. z_loss_weight is no sign of it: published configs lack it.
//  - Celloom writes position_embedding and norm_head itself, since small models cannot be told apart by size.
#include "models/families/baichuan.h"

#include "models/base/text.h"
#include "models/families/family.h"
#include "models/graph/expand.h"
#include "models/graph/json.h"
#include "models/graph/json_text.h"

namespace celloom::families {
namespace {

using graph::Cell;
using graph::Document;
using graph::Graph;
using graph::HyperParameter;
using graph::ParamValue;
using nlohmann::json;
using nlohmann::ordered_json;

using Params = std::map<std::string, ParamValue>;

ParamValue text(const char* value) {
    return std::string(value);
}

Cell cell(const char* name, const char* type, Params params = {}, const char* repeat = "") {
    Cell out;
    out.name = name;
    out.type = type;
    out.params = std::move(params);
    out.repeat = repeat;
    return out;
}

/// "cell.port" or, without a dot, the graph's own port.
graph::Endpoint end(const std::string& path) {
    const auto dot = path.find('.');
    return dot == std::string::npos ? graph::Endpoint{"", path} : graph::Endpoint{path.substr(0, dot), path.substr(dot + 1)};
}

void wire(Graph& graph, const char* from, const char* to) {
    graph.wires.push_back({end(from), end(to)});
}

Graph block(const char* name, std::vector<HyperParameter> hyper) {
    Graph out;
    out.name = name;
    out.hyper = std::move(hyper);
    out.inputs = {{"x", {"B", "T", "hidden"}}};
    out.outputs = {{"out", {"B", "T", "hidden"}}};
    return out;
}

Graph selfAttention(const BaichuanConfig& c) {
    Graph out = block("SelfAttention", {{"hidden", c.hidden, "Size of the states"},
                                        {"heads", c.heads, "Query heads"},
                                        {"kv_heads", text("heads"), "Key and value heads"},
                                        {"head_dim", text("hidden / heads"), "Numbers of one head"}});
    if (!c.isAlibi) {
        out.hyper.push_back({"rope_base", c.ropeBase, "Base of the rotary wave lengths"});
        out.hyper.push_back({"max_positions", c.maxPositions, "Longest input trained on"});
    }
    out.cells.push_back(
        cell("W_pack", "Dense", {{"in_channels", text("hidden")}, {"out_channels", text("(heads + 2 * kv_heads) * head_dim")}}));
    out.cells.push_back(cell("qkv", "Split", {{"sizes", text("heads * head_dim, kv_heads * head_dim, kv_heads * head_dim")}}));
    if (!c.isAlibi) {
        const auto rotary = [](const char* name, const char* heads) {
            return cell(name, "RotaryEmbedding",
                        {{"num_heads", text(heads)},
                         {"head_dim", text("head_dim")},
                         {"base", text("rope_base")},
                         {"max_positions", text("max_positions")}});
        };
        out.cells.push_back(rotary("rotary_q", "heads"));
        out.cells.push_back(rotary("rotary_k", "kv_heads"));
    }
    out.cells.push_back(cell("attention", "Attention",
                             {{"num_heads", text("heads")},
                              {"num_kv_heads", text("kv_heads")},
                              {"head_dim", text("head_dim")},
                              {"position", text(c.isAlibi ? "alibi" : "none")}}));
    out.cells.push_back(cell("o_proj", "Dense", {{"in_channels", text("heads * head_dim")}, {"out_channels", text("hidden")}}));
    wire(out, "x", "W_pack.x");
    wire(out, "W_pack.out", "qkv.x");
    if (c.isAlibi) {
        wire(out, "qkv.out0", "attention.q");
        wire(out, "qkv.out1", "attention.k");
    } else {
        wire(out, "qkv.out0", "rotary_q.x");
        wire(out, "qkv.out1", "rotary_k.x");
        wire(out, "rotary_q.out", "attention.q");
        wire(out, "rotary_k.out", "attention.k");
    }
    wire(out, "qkv.out2", "attention.v");
    wire(out, "attention.out", "o_proj.x");
    wire(out, "o_proj.out", "out");
    return out;
}

Graph mlp(const BaichuanConfig& c) {
    Graph out =
        block("MLP", {{"hidden", c.hidden, "Size of the states"}, {"intermediate", c.intermediate, "Size between the projections"}});
    const auto dense = [](const char* name, const char* in, const char* size) {
        return cell(name, "Dense", {{"in_channels", text(in)}, {"out_channels", text(size)}});
    };
    out.cells = {dense("gate_proj", "hidden", "intermediate"), dense("up_proj", "hidden", "intermediate"), cell("act", "SiLU"),
                 cell("product", "Multiply"), dense("down_proj", "intermediate", "hidden")};
    wire(out, "x", "gate_proj.x");
    wire(out, "x", "up_proj.x");
    wire(out, "gate_proj.out", "act.x");
    wire(out, "act.out", "product.a");
    wire(out, "up_proj.out", "product.b");
    wire(out, "product.out", "down_proj.x");
    wire(out, "down_proj.out", "out");
    return out;
}

Graph decoderLayer(const BaichuanConfig& c) {
    Graph out = block("DecoderLayer", {{"hidden", c.hidden, "Size of the states"},
                                       {"heads", c.heads, "Query heads"},
                                       {"kv_heads", text("heads"), "Key and value heads"},
                                       {"intermediate", c.intermediate, "Size inside the MLP"},
                                       {"norm_eps", c.normEps, "Added below the norms' root"}});
    Params attention{{"hidden", text("hidden")}, {"heads", text("heads")}, {"kv_heads", text("kv_heads")}};
    if (!c.isAlibi) {
        out.hyper.push_back({"rope_base", c.ropeBase, "Base of the rotary wave lengths"});
        out.hyper.push_back({"max_positions", c.maxPositions, "Longest input trained on"});
        attention["rope_base"] = text("rope_base");
        attention["max_positions"] = text("max_positions");
    }
    const Params norm{{"dim", text("hidden")}, {"eps", text("norm_eps")}};
    out.cells = {cell("input_layernorm", "RMSNorm", norm),
                 cell("self_attn", "SelfAttention", std::move(attention)),
                 cell("attention_residual", "Residual"),
                 cell("post_attention_layernorm", "RMSNorm", norm),
                 cell("mlp", "MLP", {{"hidden", text("hidden")}, {"intermediate", text("intermediate")}}),
                 cell("mlp_residual", "Residual")};
    wire(out, "x", "input_layernorm.x");
    wire(out, "input_layernorm.out", "self_attn.x");
    wire(out, "x", "attention_residual.x");
    wire(out, "self_attn.out", "attention_residual.branch");
    wire(out, "attention_residual.out", "post_attention_layernorm.x");
    wire(out, "post_attention_layernorm.out", "mlp.x");
    wire(out, "attention_residual.out", "mlp_residual.x");
    wire(out, "mlp.out", "mlp_residual.branch");
    wire(out, "mlp_residual.out", "out");
    return out;
}

Graph languageModel(const BaichuanConfig& c) {
    Graph out;
    out.name = "Baichuan";
    out.hyper = {{"vocab", c.vocab, "Words of the vocabulary"},
                 {"hidden", c.hidden, "Size of the states"},
                 {"layers", c.layers, "Decoder layers"},
                 {"heads", c.heads, "Query heads of each layer"},
                 {"kv_heads", c.kvHeads == c.heads ? text("heads") : ParamValue(c.kvHeads), "Key and value heads of each layer"},
                 {"intermediate", c.intermediate, "Size inside the MLP"},
                 {"max_positions", c.maxPositions, "Longest input trained on"},
                 {"norm_eps", c.normEps, "Added below the norms' root"},
                 {"pad_id", c.padId, "Padding id; its embedding is never trained"},
                 {"bos_id", c.bosId, "Id at the start of a text"},
                 {"eos_id", c.eosId, "Id at the end of a text"},
                 {"init_std", c.initStd, "Spread of the initial weights, kept for config.json"}};
    if (!c.isAlibi) out.hyper.push_back({"rope_base", c.ropeBase, "Base of the rotary wave lengths"});
    out.inputs = {{"input_ids", {"B", "T"}, "int64"}};
    out.outputs = {{"logits", {"B", "T", "vocab"}}};
    Params layer{{"hidden", text("hidden")},
                 {"heads", text("heads")},
                 {"kv_heads", text("kv_heads")},
                 {"intermediate", text("intermediate")},
                 {"norm_eps", text("norm_eps")}};
    if (!c.isAlibi) {
        layer["rope_base"] = text("rope_base");
        layer["max_positions"] = text("max_positions");
    }
    out.cells = {
        cell("embed_tokens", "Embedding",
             {{"vocab_size", text("vocab")}, {"embedding_size", text("hidden")}, {"padding_idx", text("pad_id")}}),
        cell("layers", "DecoderLayer", std::move(layer), "layers"),
        cell("norm", "RMSNorm", {{"dim", text("hidden")}, {"eps", text("norm_eps")}}),
        cell("lm_head", "LMHead",
             {{"hidden_size", text("hidden")}, {"vocab_size", text("vocab")}, {"kind", text(c.hasNormHead ? "normalised" : "plain")}})};
    wire(out, "input_ids", "embed_tokens.ids");
    wire(out, "embed_tokens.out", "layers.x");
    wire(out, "layers.out", "norm.x");
    wire(out, "norm.out", "lm_head.x");
    wire(out, "lm_head.logits", "logits");
    return out;
}

// ---- config.json ----

/// Reads one key; `otherwise` is the published configuration class's default, absent for the sizes that must be there.
class ConfigReader {
public:
    ConfigReader(const json& config, std::string place) : m_config(config), m_place(std::move(place)) {}

    Result<std::int64_t> whole(const char* key, std::optional<std::int64_t> otherwise, std::int64_t minimum = 1) const {
        const auto found = m_config.find(key);
        if (found == m_config.end() || found->is_null()) {
            if (otherwise) return *otherwise;
            return fail("lacks " + std::string(key) + ".", {}, m_place);
        }
        if (!found->is_number_integer() || found->get<double>() < static_cast<double>(minimum) || found->get<double>() > 1e9)
            return fail(std::string(key) + " is " + graph::describe(*found) + ", expected a whole number from " + std::to_string(minimum) +
                            " to 1000000000.",
                        {}, m_place);
        return found->get<std::int64_t>();
    }
    Result<double> real(const char* key, double otherwise) const {
        const auto found = m_config.find(key);
        if (found == m_config.end() || found->is_null()) return otherwise;
        if (!found->is_number()) return fail(std::string(key) + " is " + graph::describe(*found) + ", expected a number.", {}, m_place);
        return found->get<double>();
    }
    [[nodiscard]] bool has(const char* key) const { return m_config.contains(key) && !m_config.at(key).is_null(); }
    /// Fails when a key that changes the computation holds something else than the one value that this family knows.
    Status only(const char* key, const json& known) const {
        if (!has(key) || m_config.at(key) == known) return {};
        return fail(std::string(key) + " is " + graph::describe(m_config.at(key)) + "; Celloom's Baichuan knows only " + known.dump() + ".",
                    {}, m_place);
    }

private:
    const json& m_config;
    std::string m_place;
};

Status readVariant(const json& config, const std::string& place, const ConfigReader& reader, BaichuanConfig& c) {
    const bool isFirst7B = config.at("architectures").at(0) == "BaiChuanForCausalLM";
    c.isAlibi = !isFirst7B && !reader.has("max_position_embeddings");
    if (reader.has("position_embedding")) {
        const json& position = config.at("position_embedding");
        if (position != "rope" && position != "alibi")
            return fail("position_embedding is " + graph::describe(position) + ", expected rope or alibi.", {}, place);
        c.isAlibi = position == "alibi";
    }
    c.hasNormHead = !isFirst7B && c.vocab == 125696;
    if (reader.has("norm_head")) {
        if (!config.at("norm_head").is_boolean())
            return fail("norm_head is " + graph::describe(config.at("norm_head")) + ", expected true or false.", {}, place);
        c.hasNormHead = config.at("norm_head").get<bool>();
    }
    return {};
}

Result<Document> fromConfig(const json& config, const std::string& place) {
    const ConfigReader reader(config, place);
    CELLOOM_TRY_STATUS(reader.only("hidden_act", "silu"));
    CELLOOM_TRY_STATUS(reader.only("tie_word_embeddings", false));
    CELLOOM_TRY_STATUS(reader.only("rope_scaling", nullptr));
    const BaichuanConfig standard;
    BaichuanConfig c;
    const auto read = [&](std::int64_t& target, const char* key, std::optional<std::int64_t> otherwise,
                          std::int64_t minimum = 1) -> Status {
        CELLOOM_TRY(value, reader.whole(key, otherwise, minimum));
        target = value;
        return {};
    };
    CELLOOM_TRY_STATUS(read(c.vocab, "vocab_size", {}));
    CELLOOM_TRY_STATUS(read(c.hidden, "hidden_size", {}));
    CELLOOM_TRY_STATUS(read(c.layers, "num_hidden_layers", {}));
    CELLOOM_TRY_STATUS(read(c.heads, "num_attention_heads", {}));
    CELLOOM_TRY_STATUS(read(c.kvHeads, "num_key_value_heads", c.heads));
    CELLOOM_TRY_STATUS(read(c.intermediate, "intermediate_size", {}));
    CELLOOM_TRY_STATUS(read(c.padId, "pad_token_id", standard.padId, -1));
    CELLOOM_TRY_STATUS(read(c.bosId, "bos_token_id", standard.bosId, 0));
    CELLOOM_TRY_STATUS(read(c.eosId, "eos_token_id", standard.eosId, 0));
    CELLOOM_TRY(limit, reader.whole("model_max_length", standard.maxPositions));
    CELLOOM_TRY_STATUS(read(c.maxPositions, "max_position_embeddings", limit));
    CELLOOM_TRY(eps, reader.real("rms_norm_eps", standard.normEps));
    CELLOOM_TRY(base, reader.real("rope_theta", standard.ropeBase));
    CELLOOM_TRY(spread, reader.real("initializer_range", standard.initStd));
    c.normEps = eps;
    c.ropeBase = base;
    c.initStd = spread;
    CELLOOM_TRY_STATUS(readVariant(config, place, reader, c));
    return buildBaichuan(c);
}

/// What the graph computes, without the values of its hyper-parameters, notes and places.
std::string structureOf(Document document) {
    const auto strip = [](Graph& graph) {
        graph.name.clear();
        graph.note.clear();
        for (HyperParameter& parameter : graph.hyper) {
            parameter.value = std::int64_t(0);
            parameter.help.clear();
        }
        for (Cell& cell : graph.cells) {
            cell.note.clear();
            cell.position.reset();
        }
    };
    strip(document.main);
    for (auto& [name, graph] : document.composites) strip(graph);
    return graph::toJson(document);
}

Result<ordered_json> toConfig(const Document& document) {
    BaichuanConfig c;
    const std::string structure = structureOf(document);
    bool isFamily = false;
    for (int variant = 0; variant < 4 && !isFamily; ++variant) {
        c.isAlibi = variant & 1;
        c.hasNormHead = variant & 2;
        isFamily = structure == structureOf(buildBaichuan(c));
    }
    if (!isFamily)
        return fail("The graph is no longer a plain Baichuan, so no config.json describes it.",
                    "Export it as a .cells.json document, which holds the whole graph.");
    const auto expansion = graph::expand(document);
    if (!expansion.ok()) return tl::unexpected(expansion.firstError());
    const graph::ExpandedModel& model = expansion.model;
    const auto whole = [&](const char* name) { return model.hyperInteger(name, 0); };
    const auto number = [&](const char* name) {
        return std::visit([](const auto& held) { return ordered_json(held); }, model.hyper.at(name));
    };
    const bool isFirst7B = !c.isAlibi && !c.hasNormHead;
    ordered_json out;
    out["architectures"] = {isFirst7B ? "BaiChuanForCausalLM" : "BaichuanForCausalLM"};
    out["model_type"] = "baichuan";
    out["vocab_size"] = whole("vocab");
    out["hidden_size"] = whole("hidden");
    out["intermediate_size"] = whole("intermediate");
    out["num_hidden_layers"] = whole("layers");
    out["num_attention_heads"] = whole("heads");
    if (whole("kv_heads") != whole("heads")) out["num_key_value_heads"] = whole("kv_heads");
    out["hidden_act"] = "silu";
    out["initializer_range"] = number("init_std");
    out["rms_norm_eps"] = number("norm_eps");
    if (!c.isAlibi && number("rope_base") != ordered_json(BaichuanConfig().ropeBase)) out["rope_theta"] = number("rope_base");
    out["pad_token_id"] = whole("pad_id");
    out["bos_token_id"] = whole("bos_id");
    out["eos_token_id"] = whole("eos_id");
    out["tie_word_embeddings"] = false;
    out["use_cache"] = true;
    out["torch_dtype"] = "float32";
    if (!c.isAlibi) out["max_position_embeddings"] = whole("max_positions");
    if (!isFirst7B) out["model_max_length"] = whole("max_positions");
    out["position_embedding"] = c.isAlibi ? "alibi" : "rope";
    out["norm_head"] = c.hasNormHead;
    return out;
}

} // namespace

Document buildBaichuan(const BaichuanConfig& config) {
    Document out;
    out.family = "baichuan";
    out.main = languageModel(config);
    out.composites["DecoderLayer"] = decoderLayer(config);
    out.composites["SelfAttention"] = selfAttention(config);
    out.composites["MLP"] = mlp(config);
    return out;
}

Family baichuan() {
    return {"baichuan", {"BaiChuanForCausalLM", "BaichuanForCausalLM"}, "model.", {"lm_head"}, {"rotary_emb.inv_freq"}, fromConfig,
            toConfig};
}

} // namespace celloom::families
