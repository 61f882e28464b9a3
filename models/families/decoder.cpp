#include "models/families/decoder.h"

#include "models/graph/expand.h"
#include "models/graph/json.h"

#include <algorithm>

namespace celloom::families {
namespace {

using graph::Cell;
using graph::Document;
using graph::Graph;
using graph::HyperParameter;
using graph::ParamValue;

using Params = std::map<std::string, ParamValue>;
using Projections = DecoderConfig::Projections;
using Head = DecoderConfig::Head;

ParamValue text(const std::string& value) {
    return value;
}

Cell cell(const std::string& name, const char* type, Params params = {}, const char* repeat = "") {
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

void wire(Graph& graph, const std::string& from, const std::string& to) {
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

Cell dense(const std::string& name, const char* in, const char* out, bool hasBias) {
    Params params{{"in_channels", text(in)}, {"out_channels", text(out)}};
    if (hasBias) params["has_bias"] = true;
    return cell(name, "Dense", std::move(params));
}

/// What the rotary cells need, beside max_positions: hands itself down from the main graph to the attention under these names.
std::vector<HyperParameter> rotaryHyper(const DecoderConfig& c) {
    if (c.isAlibi) return {};
    std::vector<HyperParameter> out{{"rope_base", c.ropeBase, "Base of the rotary wave lengths"}};
    if (c.scaling.kind != "none") out.push_back({"rope_factor", c.scaling.factor, "Strength of the scaling to longer inputs"});
    if (c.scaling.kind == "llama3") {
        out.push_back({"rope_low_freq_factor", c.scaling.lowFrequency, "Waves longer than the original length divided by this are scaled"});
        out.push_back({"rope_high_freq_factor", c.scaling.highFrequency, "Waves shorter than the original length divided by this stay"});
        out.push_back({"original_positions", c.scaling.originalPositions, "Longest input before the scaling"});
    }
    return out;
}

void handDown(Params& params, const std::vector<HyperParameter>& hyper) {
    for (const HyperParameter& parameter : hyper) params[parameter.name] = text(parameter.name);
}

/// Rotary hyper-parameters and max_positions, as the inner graphs have them.
std::vector<HyperParameter> innerRotaryHyper(const DecoderConfig& c) {
    std::vector<HyperParameter> out = rotaryHyper(c);
    if (!c.isAlibi) out.insert(out.begin() + 1, {"max_positions", c.maxPositions, "Longest input trained on"});
    return out;
}

Cell rotary(const DecoderConfig& c, const char* name, const char* heads) {
    const bool isLlama3 = c.scaling.kind == "llama3";
    Params params{{"num_heads", text(heads)},
                  {"head_dim", text("head_dim")},
                  {"base", text("rope_base")},
                  {"max_positions", text(isLlama3 ? "original_positions" : "max_positions")}};
    if (c.scaling.kind != "none") {
        params["scaling"] = c.scaling.kind;
        params["factor"] = text("rope_factor");
    }
    if (isLlama3) {
        params["low_freq_factor"] = text("rope_low_freq_factor");
        params["high_freq_factor"] = text("rope_high_freq_factor");
    }
    return cell(name, "RotaryEmbedding", std::move(params));
}

/// From x to queries, keys and values; returns the three ends.
std::vector<std::string> addProjections(Graph& out, const DecoderConfig& c) {
    if (c.projections == Projections::Separate) {
        out.cells.push_back(dense("q_proj", "hidden", "heads * head_dim", c.hasQkvBias));
        out.cells.push_back(dense("k_proj", "hidden", "kv_heads * head_dim", c.hasQkvBias));
        out.cells.push_back(dense("v_proj", "hidden", "kv_heads * head_dim", c.hasQkvBias));
        for (const char* name : {"q_proj.x", "k_proj.x", "v_proj.x"}) wire(out, "x", name);
        return {"q_proj.out", "k_proj.out", "v_proj.out"};
    }
    out.cells.push_back(dense(c.names.packed, "hidden", "(heads + 2 * kv_heads) * head_dim", c.hasQkvBias));
    Params split{{"sizes", text("heads * head_dim, kv_heads * head_dim, kv_heads * head_dim")}};
    if (c.projections == Projections::Groups)
        split = {{"sizes", text("heads / kv_heads * head_dim, head_dim, head_dim")}, {"groups", text("kv_heads")}};
    out.cells.push_back(cell("qkv", "Split", std::move(split)));
    wire(out, "x", c.names.packed + ".x");
    wire(out, c.names.packed + ".out", "qkv.x");
    return {"qkv.out0", "qkv.out1", "qkv.out2"};
}

Graph selfAttention(const DecoderConfig& c) {
    Graph out = block("SelfAttention", {{"hidden", c.hidden, "Size of the states"},
                                        {"heads", c.heads, "Query heads"},
                                        {"kv_heads", text("heads"), "Key and value heads"},
                                        {"head_dim", text("hidden / heads"), "Numbers of one head"}});
    for (HyperParameter& parameter : innerRotaryHyper(c)) out.hyper.push_back(std::move(parameter));
    const std::vector<std::string> qkv = addProjections(out, c);
    if (!c.isAlibi) {
        out.cells.push_back(rotary(c, "rotary_q", "heads"));
        out.cells.push_back(rotary(c, "rotary_k", "kv_heads"));
    }
    out.cells.push_back(cell("attention", "Attention",
                             {{"num_heads", text("heads")},
                              {"num_kv_heads", text("kv_heads")},
                              {"head_dim", text("head_dim")},
                              {"position", text(c.isAlibi ? "alibi" : "none")}}));
    out.cells.push_back(dense(c.names.output, "heads * head_dim", "hidden", c.hasOutputBias));
    wire(out, qkv[0], c.isAlibi ? "attention.q" : "rotary_q.x");
    wire(out, qkv[1], c.isAlibi ? "attention.k" : "rotary_k.x");
    if (!c.isAlibi) {
        wire(out, "rotary_q.out", "attention.q");
        wire(out, "rotary_k.out", "attention.k");
    }
    wire(out, qkv[2], "attention.v");
    wire(out, "attention.out", c.names.output + ".x");
    wire(out, c.names.output + ".out", "out");
    return out;
}

Graph mlp(const DecoderConfig& c) {
    Graph out =
        block("MLP", {{"hidden", c.hidden, "Size of the states"}, {"intermediate", c.intermediate, "Size between the projections"}});
    out.cells = {dense(c.names.gate, "hidden", "intermediate", c.hasMlpBias), dense(c.names.up, "hidden", "intermediate", c.hasMlpBias),
                 cell("act", "SiLU"), cell("product", "Multiply"), dense(c.names.down, "intermediate", "hidden", c.hasMlpBias)};
    wire(out, "x", c.names.gate + ".x");
    wire(out, "x", c.names.up + ".x");
    wire(out, c.names.gate + ".out", "act.x");
    wire(out, "act.out", "product.a");
    wire(out, c.names.up + ".out", "product.b");
    wire(out, "product.out", c.names.down + ".x");
    wire(out, c.names.down + ".out", "out");
    return out;
}

Graph decoderLayer(const DecoderConfig& c) {
    Graph out = block("DecoderLayer", {{"hidden", c.hidden, "Size of the states"},
                                       {"heads", c.heads, "Query heads"},
                                       {"kv_heads", text("heads"), "Key and value heads"},
                                       {"intermediate", c.intermediate, "Size inside the MLP"},
                                       {"norm_eps", c.normEps, "Added below the norms' root"}});
    Params attention{{"hidden", text("hidden")}, {"heads", text("heads")}, {"kv_heads", text("kv_heads")}};
    if (c.hasHeadDim) {
        out.hyper.push_back({"head_dim", text("hidden / heads"), "Numbers of one head"});
        attention["head_dim"] = text("head_dim");
    }
    handDown(attention, innerRotaryHyper(c));
    for (HyperParameter& parameter : innerRotaryHyper(c)) out.hyper.push_back(std::move(parameter));
    const Params norm{{"dim", text("hidden")}, {"eps", text("norm_eps")}};
    const DecoderNames& n = c.names;
    out.cells = {cell(n.attentionNorm, "RMSNorm", norm),
                 cell(n.attention, "SelfAttention", std::move(attention)),
                 cell("attention_residual", "Residual"),
                 cell(n.mlpNorm, "RMSNorm", norm),
                 cell(n.mlp, "MLP", {{"hidden", text("hidden")}, {"intermediate", text("intermediate")}}),
                 cell("mlp_residual", "Residual")};
    wire(out, "x", n.attentionNorm + ".x");
    wire(out, n.attentionNorm + ".out", n.attention + ".x");
    wire(out, "x", "attention_residual.x");
    wire(out, n.attention + ".out", "attention_residual.branch");
    wire(out, "attention_residual.out", n.mlpNorm + ".x");
    wire(out, n.mlpNorm + ".out", n.mlp + ".x");
    wire(out, "attention_residual.out", "mlp_residual.x");
    wire(out, n.mlp + ".out", "mlp_residual.branch");
    wire(out, "mlp_residual.out", "out");
    return out;
}

std::vector<HyperParameter> mainHyper(const DecoderConfig& c) {
    std::vector<HyperParameter> out{
        {"vocab", c.vocab, "Words of the vocabulary"},
        {"hidden", c.hidden, "Size of the states"},
        {"layers", c.layers, "Decoder layers"},
        {"heads", c.heads, "Query heads of each layer"},
        {"kv_heads", c.kvHeads == c.heads ? text("heads") : ParamValue(c.kvHeads), "Key and value heads of each layer"},
        {"intermediate", c.intermediate, "Size inside the MLP"},
        {"max_positions", c.maxPositions, "Longest input trained on"},
        {"norm_eps", c.normEps, "Added below the norms' root"},
        {"pad_id", c.padId, "Padding id, whose embedding is never trained; -1: none"},
        {"bos_id", c.bosId, "Id at the start of a text"},
        {"eos_id", c.eosId, "Id at the end of a text"},
        {"init_std", c.initStd, "Spread of the initial weights, kept for config.json"}};
    if (c.hasHeadDim) {
        const bool isPlain = c.headDim == 0 || c.headDim * c.heads == c.hidden;
        out.push_back({"head_dim", isPlain ? text("hidden / heads") : ParamValue(c.headDim), "Numbers of one head"});
    }
    for (HyperParameter& parameter : rotaryHyper(c)) out.push_back(std::move(parameter));
    if (c.hasZLoss) out.push_back({"z_loss_weight", c.zLossWeight, "Weight in the loss of the mean squared largest logit; 0: none"});
    return out;
}

const char* kindOf(Head head) {
    return head == Head::Normalised ? "normalised" : head == Head::Tied ? "tied" : "plain";
}

Graph languageModel(const DecoderConfig& c) {
    Graph out;
    out.name = c.title;
    out.hyper = mainHyper(c);
    out.inputs = {{"input_ids", {"B", "T"}, "int64"}};
    out.outputs = {{"logits", {"B", "T", "vocab"}}};
    Params layer{{"hidden", text("hidden")},
                 {"heads", text("heads")},
                 {"kv_heads", text("kv_heads")},
                 {"intermediate", text("intermediate")},
                 {"norm_eps", text("norm_eps")}};
    if (c.hasHeadDim) layer["head_dim"] = text("head_dim");
    handDown(layer, innerRotaryHyper(c));
    Params embedding{{"vocab_size", text("vocab")}, {"embedding_size", text("hidden")}, {"padding_idx", text("pad_id")}};
    if (c.head == Head::Tied) embedding["shares_weight"] = true;
    out.cells = {
        cell(c.names.embedding, "Embedding", std::move(embedding)), cell("layers", "DecoderLayer", std::move(layer), "layers"),
        cell("norm", "RMSNorm", {{"dim", text("hidden")}, {"eps", text("norm_eps")}}),
        cell(c.names.head, "LMHead", {{"hidden_size", text("hidden")}, {"vocab_size", text("vocab")}, {"kind", text(kindOf(c.head))}})};
    wire(out, "input_ids", c.names.embedding + ".ids");
    wire(out, c.names.embedding + ".out", "layers.x");
    wire(out, "layers.out", "norm.x");
    wire(out, "norm.out", c.names.head + ".x");
    if (c.head == Head::Tied) wire(out, c.names.embedding + ".weight", c.names.head + ".weight");
    wire(out, c.names.head + ".logits", "logits");
    return out;
}

// ---- reading back ----

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

/// The parameter of the named cell, or `otherwise` where there is no such cell, parameter or type.
template <class T>
T given(const Document& document, const std::string& composite, const std::string& cellName, const char* param, T otherwise) {
    const auto found = document.composites.find(composite);
    if (!composite.empty() && found == document.composites.end()) return otherwise;
    for (const Cell& cell : composite.empty() ? document.main.cells : found->second.cells) {
        const auto value = cell.params.find(param);
        if (cell.name == cellName && value != cell.params.end() && std::holds_alternative<T>(value->second))
            return std::get<T>(value->second);
    }
    return otherwise;
}

void readVariant(const Document& document, DecoderConfig& c) {
    const bool isPacked = c.projections != Projections::Separate;
    c.hasQkvBias = given(document, "SelfAttention", isPacked ? c.names.packed : "q_proj", "has_bias", false);
    c.hasOutputBias = given(document, "SelfAttention", c.names.output, "has_bias", false);
    c.hasMlpBias = given(document, "MLP", c.names.gate, "has_bias", false);
    c.isAlibi = given<std::string>(document, "SelfAttention", "attention", "position", "none") == "alibi";
    c.scaling.kind = given<std::string>(document, "SelfAttention", "rotary_q", "scaling", "none");
    const auto head = given<std::string>(document, "", c.names.head, "kind", "plain");
    c.head = head == "normalised" ? Head::Normalised : head == "tied" ? Head::Tied : Head::Plain;
    c.hasZLoss = std::any_of(document.main.hyper.begin(), document.main.hyper.end(),
                             [](const HyperParameter& parameter) { return parameter.name == "z_loss_weight"; });
}

void readNumbers(const graph::ExpandedModel& model, DecoderConfig& c) {
    const auto whole = [&](const char* name, std::int64_t& target) { target = model.hyperInteger(name, target); };
    const auto real = [&](const char* name, double& target) {
        const auto found = model.hyper.find(name);
        if (found == model.hyper.end()) return;
        if (const auto* number = std::get_if<double>(&found->second)) target = *number;
        if (const auto* number = std::get_if<std::int64_t>(&found->second)) target = static_cast<double>(*number);
    };
    whole("vocab", c.vocab);
    whole("hidden", c.hidden);
    whole("layers", c.layers);
    whole("heads", c.heads);
    whole("kv_heads", c.kvHeads);
    whole("intermediate", c.intermediate);
    whole("head_dim", c.headDim);
    whole("max_positions", c.maxPositions);
    whole("pad_id", c.padId);
    whole("bos_id", c.bosId);
    whole("eos_id", c.eosId);
    whole("original_positions", c.scaling.originalPositions);
    real("norm_eps", c.normEps);
    real("init_std", c.initStd);
    real("rope_base", c.ropeBase);
    real("rope_factor", c.scaling.factor);
    real("rope_low_freq_factor", c.scaling.lowFrequency);
    real("rope_high_freq_factor", c.scaling.highFrequency);
    real("z_loss_weight", c.zLossWeight);
}

} // namespace

Document buildDecoder(const DecoderConfig& config) {
    Document out;
    out.family = config.family;
    out.main = languageModel(config);
    out.composites["DecoderLayer"] = decoderLayer(config);
    out.composites["SelfAttention"] = selfAttention(config);
    out.composites["MLP"] = mlp(config);
    return out;
}

Result<DecoderConfig> readDecoder(const Document& document, DecoderConfig family) {
    DecoderConfig c = std::move(family);
    readVariant(document, c);
    if (structureOf(document) != structureOf(buildDecoder(c)))
        return fail("The graph is no longer a plain " + c.title + ", so no config.json describes it.",
                    "Export it as a .cells.json document, which holds the whole graph.");
    const auto expansion = graph::expand(document);
    if (!expansion.ok()) return tl::unexpected(expansion.firstError());
    readNumbers(expansion.model, c);
    return c;
}

} // namespace celloom::families
