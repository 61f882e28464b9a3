// The presets: sizes and where they come from. Totals are tested; without biases they are
// 2·V·h (embedding, head; once when tied) + L·(h·d·(H + 2·K) + H·d·h + 3·h·f + 2·h) + h, with d the head's size, H and K the query and
// key/value heads.
#include "models/base/text.h"
#include "models/families/decoder.h"
#include "models/families/families.h"

#include <algorithm>

namespace celloom::families {
namespace {

struct Row {
    Preset preset;
    DecoderConfig config;
};

struct Sizes {
    std::int64_t vocab, hidden, layers, heads, kvHeads, intermediate, maxPositions;
};

DecoderConfig sized(DecoderConfig c, const Sizes& sizes) {
    c.vocab = sizes.vocab;
    c.hidden = sizes.hidden;
    c.layers = sizes.layers;
    c.heads = sizes.heads;
    c.kvHeads = sizes.kvHeads;
    c.intermediate = sizes.intermediate;
    c.maxPositions = sizes.maxPositions;
    return c;
}

constexpr Sizes kTiny{4096, 256, 4, 4, 4, 688, 1024};
constexpr Sizes kTinyGrouped{4096, 256, 4, 4, 2, 688, 1024};
const std::string kTinySource = "derived: V 4096, h 256, L 4, heads 4, f 688";
const std::string kTinyGroupedSource = "derived: V 4096, h 256, L 4, heads 4, kv heads 2, f 688";

DecoderConfig alibi(DecoderConfig c) {
    c.isAlibi = true;
    return c;
}

DecoderConfig baichuan2(const Sizes& sizes) {
    DecoderConfig c = sized(baichuanDecoder(), sizes);
    c.head = DecoderConfig::Head::Normalised;
    c.hasZLoss = true;
    return c;
}

DecoderConfig internlm1(const Sizes& sizes, bool hasBias) {
    DecoderConfig c = sized(internlmDecoder(), sizes);
    c.padId = 2;
    c.hasQkvBias = c.hasOutputBias = hasBias;
    return c;
}

DecoderConfig internlm23(DecoderConfig c, const Sizes& sizes, double ropeBase, double factor) {
    c = sized(std::move(c), sizes);
    c.padId = 2;
    c.normEps = 1e-5;
    c.hasQkvBias = c.hasOutputBias = false;
    c.ropeBase = ropeBase;
    c.scaling = {.kind = "dynamic", .factor = factor};
    return c;
}

DecoderConfig llama(const Sizes& sizes, double normEps, double ropeBase) {
    DecoderConfig c = sized(transformerDecoder(), sizes);
    c.normEps = normEps;
    c.ropeBase = ropeBase;
    return c;
}

DecoderConfig llama3(const Sizes& sizes, double factor, bool isTied) {
    DecoderConfig c = llama(sizes, 1e-5, 500000);
    c.scaling = {.kind = "llama3", .factor = factor};
    c.bosId = 128000;
    c.eosId = 128001;
    if (isTied) c.head = DecoderConfig::Head::Tied;
    return c;
}

DecoderConfig tied(DecoderConfig c) {
    c.head = DecoderConfig::Head::Tied;
    return c;
}

std::vector<Row> baichuanRows() {
    return {
        {{"baichuan-tiny", "Baichuan with rotary positions, 5 M parameters: learns on a laptop in minutes",
          "Baichuan（旋转位置编码），约 500 万参数：笔记本上几分钟可见效果", 5261568, kTinySource},
         sized(baichuanDecoder(), kTiny)},
        {{"baichuan-tiny-alibi", "As baichuan-tiny, with ALiBi positions as Baichuan-13B",
          "同 baichuan-tiny，位置编码为 Baichuan-13B 的 ALiBi", 5261568, kTinySource},
         alibi(sized(baichuanDecoder(), kTiny))},
        {{"baichuan-tiny-gqa", "As baichuan-tiny, with two key/value heads for four query heads",
          "同 baichuan-tiny，四个查询头共享两个键值头", 4999424, kTinyGroupedSource},
         sized(baichuanDecoder(), kTinyGrouped)},
        {{"baichuan-110m", "Baichuan, 110 M parameters: for one GPU", "Baichuan，1.1 亿参数：适合单块 GPU", 109529856,
          "derived: V 16000, h 768, L 12, heads 12, f 2048"},
         sized(baichuanDecoder(), {16000, 768, 12, 12, 12, 2048, 2048})},
        {{"baichuan-7b", "Baichuan-7B as published: rotary positions, context 4096", "公开的 Baichuan-7B：旋转位置编码，上下文 4096",
          7000559616, "published: README of baichuan-inc/Baichuan-7B (7,000,559,616)"},
         sized(baichuanDecoder(), {64000, 4096, 32, 32, 32, 11008, 4096})},
        {{"baichuan-13b", "Baichuan-13B as published: ALiBi positions, context 4096", "公开的 Baichuan-13B：ALiBi 位置编码，上下文 4096",
          13264901120, "published: README of baichuan-inc/Baichuan-13B (13,264,901,120)"},
         alibi(sized(baichuanDecoder(), {64000, 5120, 40, 40, 40, 13696, 4096}))},
        {{"baichuan2-tiny", "Baichuan 2 with its normalised head, 5 M parameters", "Baichuan 2（归一化输出层），约 500 万参数", 5261568,
          kTinySource},
         baichuan2(kTiny)},
        {{"baichuan2-7b", "Baichuan2-7B as published: rotary positions, normalised head", "公开的 Baichuan2-7B：旋转位置编码，归一化输出层",
          7505973248, "derived from its published config.json: V 125696, h 4096, L 32, heads 32, f 11008"},
         baichuan2({125696, 4096, 32, 32, 32, 11008, 4096})},
        {{"baichuan2-13b", "Baichuan2-13B as published: ALiBi positions, normalised head",
          "公开的 Baichuan2-13B：ALiBi 位置编码，归一化输出层", 13896668160,
          "derived from its published config.json: V 125696, h 5120, L 40, heads 40, f 13696"},
         alibi(baichuan2({125696, 5120, 40, 40, 40, 13696, 4096}))},
    };
}

std::vector<Row> internlmRows() {
    DecoderConfig tiny3 = internlm23(internlm3Decoder(), kTinyGrouped, 50000000, 6);
    tiny3.headDim = 32;
    return {
        {{"internlm-tiny", "InternLM with biases in its attention, 5 M parameters", "InternLM（注意力带偏置），约 500 万参数", 5265664,
          "derived: V 4096, h 256, L 4, heads 4, f 688, biases 4·h a layer"},
         internlm1(kTiny, true)},
        {{"internlm-7b", "InternLM-7B as published: biases on q, k, v and o, context 2048",
          "公开的 InternLM-7B：q、k、v、o 带偏置，上下文 2048", 7321948160,
          "derived from its published config.json: V 103168, h 4096, L 32, heads 32, f 11008, biases 4·h a layer"},
         internlm1({103168, 4096, 32, 32, 32, 11008, 2048}, true)},
        {{"internlm-20b", "InternLM-20B as published: 60 layers, no biases, context 4096",
          "公开的 InternLM-20B：60 层，无偏置，上下文 4096", 20088714240,
          "derived from its published config.json: V 103168, h 5120, L 60, heads 40, f 13824, bias false"},
         internlm1({103168, 5120, 60, 40, 40, 13824, 4096}, false)},
        {{"internlm2-tiny", "InternLM2 with one packed projection and grouped queries, 5 M parameters",
          "InternLM2（合并投影、分组查询），约 500 万参数", 4999424, kTinyGroupedSource},
         internlm23(internlm2Decoder(), kTinyGrouped, 1000000, 2)},
        {{"internlm2-1.8b", "InternLM2-1.8B as published: context 32768", "公开的 InternLM2-1.8B：上下文 32768", 1889110016,
          "published: elements of the checkpoint internlm2_5-1_8b-chat (1,889,110,016)"},
         internlm23(internlm2Decoder(), {92544, 2048, 24, 16, 8, 8192, 32768}, 1000000, 2)},
        {{"internlm2-7b", "InternLM2-7B as published: context 32768", "公开的 InternLM2-7B：上下文 32768", 7737708544,
          "published: total_size of the bfloat16 checkpoint's index, 15,475,417,088 bytes"},
         internlm23(internlm2Decoder(), {92544, 4096, 32, 32, 8, 14336, 32768}, 1000000, 2)},
        {{"internlm2-20b", "InternLM2-20B as published: context 32768", "公开的 InternLM2-20B：上下文 32768", 19861149696,
          "derived from its published sizes: V 92544, h 6144, L 48, heads 48, kv heads 8, f 16384; scaling beyond the context as InternLM2-7B"},
         internlm23(internlm2Decoder(), {92544, 6144, 48, 48, 8, 16384, 32768}, 1000000, 2)},
        {{"internlm2.5-20b", "InternLM2.5-20B as published: context 32768", "公开的 InternLM2.5-20B：上下文 32768", 19861149696,
          "published: elements of the checkpoint internlm2_5-20b-chat (19,861,149,696)"},
         internlm23(internlm2Decoder(), {92544, 6144, 48, 48, 8, 16384, 32768}, 50000000, 2.5)},
        {{"internlm3-tiny", "InternLM3 with heads of their own size, 5 M parameters", "InternLM3（头维数独立），约 500 万参数", 4606208,
          "derived: V 4096, h 256, L 4, heads 4 of 32, kv heads 2, f 688"},
         tiny3},
        {{"internlm3-8b", "InternLM3-8B as published: two key/value heads, context 32768", "公开的 InternLM3-8B：两个键值头，上下文 32768",
          8804241408, "derived from its published config.json: V 128512, h 4096, L 48, heads 32, kv heads 2, f 10240"},
         internlm23(internlm3Decoder(), {128512, 4096, 48, 32, 2, 10240, 32768}, 50000000, 6)},
    };
}

std::vector<Row> transformerRows() {
    return {
        {{"transformer-tiny", "A generic Transformer as Llama's, head tied to the embedding, 4 M parameters",
          "通用 Transformer（同 Llama），输出层与嵌入共享，约 400 万参数", 3950848, kTinyGroupedSource + ", tied"},
         tied(llama(kTinyGrouped, 1e-5, 10000))},
        {{"llama2-7b", "The sizes of Llama 2 7B: context 4096", "Llama 2 7B 的尺寸：上下文 4096", 6738415616,
          "published: parameters of Llama-2-7b (6,738,415,616)"},
         llama({32000, 4096, 32, 32, 32, 11008, 4096}, 1e-5, 10000)},
        {{"llama3.1-8b", "The sizes of Llama 3.1 8B: grouped queries, context 131072", "Llama 3.1 8B 的尺寸：分组查询，上下文 131072",
          8030261248, "published: elements of the checkpoint Llama-3.1-8B-Instruct (8,030,261,248)"},
         llama3({128256, 4096, 32, 32, 8, 14336, 131072}, 8, false)},
        {{"llama3.2-1b", "The sizes of Llama 3.2 1B: head tied to the embedding, context 131072",
          "Llama 3.2 1B 的尺寸：输出层与嵌入共享，上下文 131072", 1235814400,
          "published: elements of the checkpoint Llama-3.2-1B-Instruct (1,235,814,400)"},
         llama3({128256, 2048, 16, 32, 8, 8192, 131072}, 32, true)},
    };
}

const std::vector<Row>& rows() {
    static const std::vector<Row> list = [] {
        std::vector<Row> out = baichuanRows();
        for (Row& row : internlmRows()) out.push_back(std::move(row));
        for (Row& row : transformerRows()) out.push_back(std::move(row));
        return out;
    }();
    return list;
}

} // namespace

const std::vector<Preset>& presets() {
    static const std::vector<Preset> list = [] {
        std::vector<Preset> out;
        for (const Row& row : rows()) out.push_back(row.preset);
        return out;
    }();
    return list;
}

Result<graph::Document> buildPreset(const std::string& name) {
    const auto found = std::find_if(rows().begin(), rows().end(), [&](const Row& row) { return row.preset.name == name; });
    if (found == rows().end()) {
        std::vector<std::string> names;
        for (const Row& row : rows()) names.push_back(row.preset.name);
        return fail("There is no preset " + inQuotes(name) + ".", "Presets are " + joined(names) + ".");
    }
    graph::Document document = buildDecoder(found->config);
    document.main.name = name;
    return document;
}

} // namespace celloom::families
