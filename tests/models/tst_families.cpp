// Model families: totals, weight names and shapes against fixtures, config.json in both directions.
#include "models/base/files.h"
#include "models/families/families.h"
#include "models/graph/cost.h"
#include "models/graph/json.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>
#include <QtTest>

#include <map>
#include <set>

using namespace celloom;

namespace {

QString text(const Error& error) {
    return QString::fromStdString(error.text());
}

/// Names and shapes in a safetensors header: 8 bytes of length, then JSON.
std::map<std::string, std::vector<std::int64_t>> tensorsOf(const QString& path) {
    std::map<std::string, std::vector<std::int64_t>> out;
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) return out;
    quint64 length = 0;
    file.read(reinterpret_cast<char*>(&length), 8);
    const QJsonObject header = QJsonDocument::fromJson(file.read(static_cast<qint64>(length))).object();
    for (auto entry = header.begin(); entry != header.end(); ++entry) {
        if (entry.key() == "__metadata__") continue;
        auto& dims = out[entry.key().toStdString()];
        for (const auto& dim : entry.value().toObject()["shape"].toArray()) dims.push_back(dim.toInteger());
    }
    return out;
}

std::map<std::string, std::vector<std::int64_t>> weightsOf(const graph::ExpandedModel& model) {
    std::map<std::string, std::vector<std::int64_t>> out;
    for (const auto& cell : model.cells)
        for (const auto& weight : cell.weights) out[families::checkpointName(model.family, cell.path + "." + weight.name)] = weight.dims;
    return out;
}

/// The config.json of a small model with these further keys, in JSON.
std::string small(const QString& architecture, const QString& keys) {
    const QString sizes = R"("vocab_size": 64, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
        "max_position_embeddings": 2048)";
    return ("{\"architectures\": [\"" + architecture + "\"], " + sizes + ", " + keys + "}").toStdString();
}

QJsonObject config(const std::string& json) {
    return QJsonDocument::fromJson(QByteArray::fromStdString(json)).object();
}

} // namespace

class TestFamilies : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void presetsHaveTheirPublishedOrDerivedTotals() {
        for (const auto& preset : families::presets()) {
            auto document = families::buildPreset(preset.name);
            QVERIFY2(document, preset.name.c_str());
            const auto expansion = graph::expand(*document);
            QVERIFY2(expansion.ok(), qPrintable(QString::fromStdString(preset.name) + ": " + text(expansion.firstError())));
            QVERIFY2(expansion.problems.empty(), preset.name.c_str()); // no warnings either
            QCOMPARE(expansion.model.parameterCount(), preset.parameters);
        }
    }

    void publishedTotalsAreThePublishedOnes() {
        std::map<std::string, std::int64_t> totals;
        for (const auto& preset : families::presets()) totals[preset.name] = preset.parameters;
        QCOMPARE(totals["baichuan-7b"], 7000559616);       // README of baichuan-inc/Baichuan-7B
        QCOMPARE(totals["baichuan-13b"], 13264901120);     // README of baichuan-inc/Baichuan-13B
        QCOMPARE(totals["internlm2-7b"], 15475417088 / 2); // total_size in the index of the bfloat16 checkpoint internlm2-7b
        QCOMPARE(totals["internlm2-1.8b"], 1889110016);    // elements of internlm2_5-1_8b-chat
        QCOMPARE(totals["internlm2.5-20b"], 19861149696);  // elements of internlm2_5-20b-chat
        QCOMPARE(totals["llama2-7b"], 6738415616);         // parameters of Llama-2-7b
        QCOMPARE(totals["llama3.1-8b"], 8030261248);       // elements of Llama-3.1-8B-Instruct
        QCOMPARE(totals["llama3.2-1b"], 1235814400);       // elements of Llama-3.2-1B-Instruct
        // From the published config.json, by hand: 2·V·h + L·(attention + 3·h·f + 2·h) + h
        QCOMPARE(totals["baichuan2-7b"], 2LL * 125696 * 4096 + 32LL * (4LL * 4096 * 4096 + 3LL * 4096 * 11008 + 2 * 4096) + 4096);
        QCOMPARE(totals["baichuan2-13b"], 2LL * 125696 * 5120 + 40LL * (4LL * 5120 * 5120 + 3LL * 5120 * 13696 + 2 * 5120) + 5120);
        QCOMPARE(totals["internlm-7b"], 2LL * 103168 * 4096 + 32LL * (4LL * (4096 * 4096 + 4096) + 3LL * 4096 * 11008 + 2 * 4096) + 4096);
        QCOMPARE(totals["internlm-20b"], 2LL * 103168 * 5120 + 60LL * (4LL * 5120 * 5120 + 3LL * 5120 * 13824 + 2 * 5120) + 5120);
        QCOMPARE(totals["internlm3-8b"],
                 2LL * 128512 * 4096 + 48LL * (4096LL * (36 * 128) + 4096LL * 4096 + 3LL * 4096 * 10240 + 2 * 4096) + 4096);
    }

    void totalsAreThoseThatOtherProgramsCount() { // transformers and the plain PyTorch models: tests/oracle/count_presets.py
        QFile file(QStringLiteral(CELLOOM_FIXTURES "/preset_totals.json"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QJsonObject counted = QJsonDocument::fromJson(file.readAll()).object()["parameters"].toObject();
        std::set<std::string> uncounted;
        for (const auto& preset : families::presets()) {
            const QJsonValue total = counted[QString::fromStdString(preset.name)];
            if (total.isUndefined())
                uncounted.insert(preset.name);
            else
                QVERIFY2(total.toInteger() == preset.parameters, preset.name.c_str());
        }
        QVERIFY(uncounted == std::set<std::string>{"baichuan-tiny-gqa"}); // no published model is built so
    }

    void weightNamesAndShapesEqualTheCheckpoints_data() {
        QTest::addColumn<QString>("name");
        QTest::newRow("7B, rotary") << "baichuan_7b";
        QTest::newRow("13B, ALiBi") << "baichuan_13b";
        QTest::newRow("Baichuan 2, normalised head") << "baichuan2_7b";
        QTest::newRow("InternLM, biases") << "internlm";
        QTest::newRow("InternLM2, packed in groups") << "internlm2";
        QTest::newRow("InternLM3, heads of their own size") << "internlm3";
    }
    void weightNamesAndShapesEqualTheCheckpoints() {
        QFETCH(QString, name);
        const QString folder = QString(CELLOOM_FIXTURES "/") + name;
        auto document = families::openModel(folder.toStdString());
        QVERIFY2(document, qPrintable(document ? QString() : text(document.error())));
        const auto expansion = graph::expand(*document);
        QVERIFY2(expansion.ok(), qPrintable(text(expansion.firstError())));
        const auto expected = tensorsOf(folder + "/model.safetensors");
        QVERIFY(!expected.empty());
        QVERIFY(weightsOf(expansion.model) == expected);
        for (const auto& [tensor, dims] : expected) {
            auto path = families::parameterPath(document->family, tensor);
            QVERIFY2(path, tensor.c_str());
            QCOMPARE(families::checkpointName(document->family, *path), tensor);
        }
    }

    void groupedQueriesPackUnequalParts() {
        auto document = families::buildPreset("baichuan-tiny-gqa");
        QVERIFY(document);
        const auto expansion = graph::expand(*document);
        const auto weights = weightsOf(expansion.model);
        // 4 query heads of 64, 2 key and 2 value heads of 64
        QCOMPARE(weights.at("model.layers.0.self_attn.W_pack.weight"), (std::vector<std::int64_t>{256 + 128 + 128, 256}));
        for (const auto& cell : expansion.model.cells)
            if (cell.type == "Split") QCOMPARE(cell.integers("sizes"), (std::vector<std::int64_t>{256, 128, 128}));
    }

    void onlyWhatHoldsNothingIsIgnorable() {
        QVERIFY(families::isIgnorable("baichuan", "model.layers.0.self_attn.rotary_emb.inv_freq"));
        QVERIFY(!families::isIgnorable("baichuan", "model.layers.0.self_attn.W_pack.weight"));
        QVERIFY(!families::parameterPath("baichuan", "layers.0.mlp.up_proj.weight")); // the trunk's prefix is missing
        QVERIFY(!families::parameterPath("baichuan", "model.lm_head.weight"));
        QVERIFY(!families::parameterPath("baichuan", "model."));
        QCOMPARE(families::checkpointName("", "a.weight"), std::string("a.weight"));
        QCOMPARE(*families::parameterPath("", "model.a.weight"), std::string("model.a.weight"));
    }

    void overridesRescaleTheModel() {
        auto document = families::buildPreset("baichuan-tiny");
        QVERIFY(document);
        const auto expansion = graph::expand(*document, {{"vocab", std::int64_t(1000)}, {"layers", std::int64_t(2)}});
        QVERIFY2(expansion.ok(), qPrintable(text(expansion.firstError())));
        QCOMPARE(expansion.model.parameterCount(), 2 * 1000 * 256 + 2 * (4 * 256 * 256 + 3 * 256 * 688 + 2 * 256) + 256);
        QCOMPARE(expansion.model.hyperInteger("vocab", 0), 1000);
        const auto misspelt = graph::expand(*document, {{"vocabulary", std::int64_t(1000)}});
        QVERIFY(!misspelt.ok());
        QVERIFY2(text(misspelt.firstError()).contains("vocab"), qPrintable(text(misspelt.firstError())));
        const auto uneven = graph::expand(*document, {{"heads", std::int64_t(3)}});
        QVERIFY(text(uneven.firstError()).contains("layers.0.self_attn") && text(uneven.firstError()).contains("85.33"));
    }

    void configsTellTheVariantsApart_data() {
        QTest::addColumn<QString>("json");
        QTest::addColumn<QString>("position");
        QTest::addColumn<QString>("head");
        const QString sizes =
            R"("vocab_size": %1, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4)";
        // keys as in the published files: the first 7B, a 13B, Baichuan 2 7B and 13B
        QTest::newRow("7B") << "{\"architectures\": [\"BaiChuanForCausalLM\"], \"max_position_embeddings\": 4096, " + sizes.arg(64000) + "}"
                            << "none"
                            << "plain";
        QTest::newRow("13B") << "{\"architectures\": [\"BaichuanForCausalLM\"], \"model_max_length\": 4096, " + sizes.arg(64000) + "}"
                             << "alibi"
                             << "plain";
        QTest::newRow("2-7B")
            << "{\"architectures\": [\"BaichuanForCausalLM\"], \"max_position_embeddings\": 4096, \"model_max_length\": 4096, " +
                   sizes.arg(125696) + "}"
            << "none"
            << "normalised";
        QTest::newRow("2-13B") << "{\"architectures\": [\"BaichuanForCausalLM\"], \"model_max_length\": 4096, " + sizes.arg(125696) + "}"
                               << "alibi"
                               << "normalised";
        QTest::newRow("our keys")
            << "{\"architectures\": [\"BaichuanForCausalLM\"], \"position_embedding\": \"rope\", \"norm_head\": true, " + sizes.arg(512) +
                   "}"
            << "none"
            << "normalised";
    }
    void configsTellTheVariantsApart() {
        QFETCH(QString, json);
        QFETCH(QString, position);
        QFETCH(QString, head);
        auto document = families::fromConfigJson(json.toStdString(), "config.json");
        QVERIFY2(document, qPrintable(document ? QString() : text(document.error())));
        const auto expansion = graph::expand(*document);
        QVERIFY2(expansion.ok(), qPrintable(text(expansion.firstError())));
        int rotary = 0;
        for (const auto& cell : expansion.model.cells) {
            if (cell.type == "Attention") QCOMPARE(QString::fromStdString(cell.text("position")), position);
            if (cell.type == "LMHead") QCOMPARE(QString::fromStdString(cell.text("kind")), head);
            if (cell.type == "RotaryEmbedding") ++rotary;
        }
        QCOMPARE(rotary, position == "alibi" ? 0 : 4); // q and k of two layers
    }

    void configsComeBackAsTheyWere_data() {
        QTest::addColumn<QString>("file");
        QTest::newRow("7B") << "baichuan_7b";
        QTest::newRow("13B") << "baichuan_13b";
        QTest::newRow("Baichuan 2, normalised head") << "baichuan2_7b";
        QTest::newRow("InternLM, biases") << "internlm";
        QTest::newRow("InternLM2, packed in groups") << "internlm2";
        QTest::newRow("InternLM3, heads of their own size") << "internlm3";
    }
    void configsComeBackAsTheyWere() {
        QFETCH(QString, file);
        const auto original = readFile(std::string(CELLOOM_FIXTURES "/") + file.toStdString() + "/config.json");
        QVERIFY(original);
        auto document = families::fromConfigJson(*original, "config.json");
        QVERIFY(document);
        auto written = families::toConfigJson(*document);
        QVERIFY2(written, qPrintable(written ? QString() : text(written.error())));
        QCOMPARE(config(*written), config(*original));
    }

    void everyPresetSurvivesItsConfigAndItsDocument() {
        for (const auto& preset : families::presets()) {
            auto document = families::buildPreset(preset.name);
            QVERIFY(document);
            auto json = families::toConfigJson(*document);
            QVERIFY2(json, preset.name.c_str());
            auto again = families::fromConfigJson(*json, "config.json");
            QVERIFY(again);
            again->main.name = document->main.name;
            QCOMPARE(graph::toJson(*again), graph::toJson(*document));
            auto reread = graph::fromJson(graph::toJson(*document));
            QVERIFY2(reread, qPrintable(reread ? QString() : text(reread.error())));
            QCOMPARE(graph::toJson(*reread), graph::toJson(*document));
        }
    }

    void aChangedGraphHasNoConfig() {
        auto document = families::buildPreset("baichuan-tiny");
        QVERIFY(document);
        for (auto& cell : document->composites["MLP"].cells)
            if (cell.type == "SiLU") cell.type = "GELU";
        QVERIFY(graph::expand(*document).ok());
        QVERIFY(!families::toConfigJson(*document));
        document->family = "";
        QVERIFY(!families::toConfigJson(*document));
    }

    void foreignConfigsAreRefusedByName_data() {
        QTest::addColumn<QString>("json");
        QTest::addColumn<QString>("said");
        const QString sizes =
            R"("vocab_size": 64, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4)";
        QTest::newRow("unknown") << R"({"architectures": ["GPT2LMHeadModel"]})"
                                 << "GPT2LMHeadModel";
        QTest::newRow("none") << R"({"model_type": "baichuan"})"
                              << "architectures";
        QTest::newRow("no object") << "[1]"
                                   << "architectures";
        QTest::newRow("lacking") << R"({"architectures": ["BaichuanForCausalLM"]})"
                                 << "vocab_size";
        QTest::newRow("text for a number") << R"({"architectures": ["BaichuanForCausalLM"], "vocab_size": "64"})"
                                           << "vocab_size";
        QTest::newRow("negative") << R"({"architectures": ["BaichuanForCausalLM"], "vocab_size": -5})"
                                  << "vocab_size";
        QTest::newRow("another activation") << "{\"architectures\": [\"BaichuanForCausalLM\"], \"hidden_act\": \"gelu\", " + sizes + "}"
                                            << "hidden_act";
        QTest::newRow("tied") << "{\"architectures\": [\"BaichuanForCausalLM\"], \"tie_word_embeddings\": true, " + sizes + "}"
                              << "tie_word_embeddings";
        QTest::newRow("scaled") << "{\"architectures\": [\"BaichuanForCausalLM\"], \"rope_scaling\": {\"type\": \"linear\"}, " + sizes + "}"
                                << "rope_scaling";
    }
    void wordsThatChangeTheResultAreRefused_data() {
        QTest::addColumn<QString>("architecture");
        QTest::addColumn<QString>("keys");
        QTest::addColumn<QString>("said");
        const QString llama = "LlamaForCausalLM", first = "InternLMForCausalLM", second = "InternLM2ForCausalLM";
        QTest::newRow("sliding window") << llama << R"("sliding_window": 4096)"
                                        << "sliding_window";
        QTest::newRow("quantised") << second << R"("quantization_config": {"bits": 4})"
                                   << "quantization_config";
        QTest::newRow("yarn") << llama << R"("rope_scaling": {"rope_type": "yarn", "factor": 4.0})"
                              << "yarn";
        QTest::newRow("two kinds") << llama << R"("rope_scaling": {"rope_type": "linear", "type": "dynamic", "factor": 4.0})"
                                   << "two ways";
        QTest::newRow("unknown word of the scaling") << second << R"("rope_scaling": {"type": "dynamic", "factor": 2.0, "beta": 3})"
                                                     << "beta = 3";
        QTest::newRow("llama3 lacks the length") << llama << R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0})"
                                                 << "original_max_position_embeddings";
        QTest::newRow("no such factor") << second << R"("rope_scaling": {"type": "linear", "factor": 0})"
                                        << "factor";
        QTest::newRow("scaling is no object") << second << R"("rope_scaling": 2)"
                                              << "rope_scaling";
        QTest::newRow("rotary") << first << R"("rotary": {"base": 10000, "type": "xpos"})"
                                << "xpos";
        QTest::newRow("grouped first InternLM") << first << R"("num_key_value_heads": 2)"
                                                << "num_key_value_heads";
        QTest::newRow("no flag") << second << R"("bias": 1)"
                                 << "bias";
        QTest::newRow("no ids") << second << R"("eos_token_id": [])"
                                << "eos_token_id";
        QTest::newRow("z-loss without its head") << "BaichuanForCausalLM"
                                                 << R"("z_loss_weight": 0.1, "position_embedding": "rope")"
                                                 << "z_loss_weight";
    }
    void wordsThatChangeTheResultAreRefused() {
        QFETCH(QString, architecture);
        QFETCH(QString, keys);
        QFETCH(QString, said);
        auto document = families::fromConfigJson(small(architecture, keys), "x/config.json");
        QVERIFY(!document);
        QVERIFY2(text(document.error()).contains(said) && text(document.error()).contains("x/config.json"),
                 qPrintable(text(document.error())));
    }

    void wordsThatSayNothingAreReadOver_data() {
        QTest::addColumn<QString>("keys");
        QTest::addColumn<QStringList>("told");
        QTest::newRow("meaningless") << R"("torch_dtype": "bfloat16", "auto_map": {"a": "b"}, "attention_dropout": 0.0, "top_thing": null)"
                                     << QStringList();
        QTest::newRow("unknown") << R"("top_thing": 3)" << QStringList{"top_thing = 3"};
        QTest::newRow("dropout") << R"("attention_dropout": 0.1)" << QStringList{"attention_dropout = 0.1"};
        QTest::newRow("several end ids") << R"("eos_token_id": [5, 6])" << QStringList{"eos_token_id = [5,6] (the first is used)"};
    }
    void wordsThatSayNothingAreReadOver() {
        QFETCH(QString, keys);
        QFETCH(QStringList, told);
        auto opened = families::readConfigJson(small("LlamaForCausalLM", keys), "config.json");
        QVERIFY2(opened, qPrintable(opened ? QString() : text(opened.error())));
        QStringList notRead;
        for (const auto& word : opened->notRead) notRead << QString::fromStdString(word);
        QCOMPARE(notRead, told);
        QCOMPARE(opened->document.main.note.empty(), told.isEmpty());
        for (const QString& word : told) QVERIFY(QString::fromStdString(opened->document.main.note).contains(word));
    }

    void ropeIsReadInEachWayOfWritingIt_data() {
        QTest::addColumn<QString>("architecture");
        QTest::addColumn<QString>("keys");
        QTest::addColumn<QString>("scaling");
        QTest::addColumn<double>("base");
        QTest::addColumn<double>("factor");
        QTest::newRow("none") << "LlamaForCausalLM"
                              << R"("rope_theta": 500000.0, "rope_scaling": null)"
                              << "none" << 5e5 << 1.0;
        QTest::newRow("old word") << "LlamaForCausalLM"
                                  << R"("rope_scaling": {"type": "linear", "factor": 4.0})"
                                  << "linear" << 1e4 << 4.0;
        QTest::newRow("both words") << "InternLM2ForCausalLM"
                                    << R"("rope_scaling": {"type": "dynamic", "rope_type": "dynamic", "factor": 2.5})"
                                    << "dynamic" << 1e4 << 2.5;
        QTest::newRow("transformers 5") << "InternLM3ForCausalLM"
                                        << R"("rope_parameters": {"rope_theta": 50000000, "rope_type": "dynamic", "factor": 6.0})"
                                        << "dynamic" << 5e7 << 6.0;
        QTest::newRow("default") << "LlamaForCausalLM"
                                 << R"("rope_parameters": {"rope_theta": 20000.0, "rope_type": "default"})"
                                 << "none" << 2e4 << 1.0;
        QTest::newRow("llama3") << "LlamaForCausalLM"
                                << R"("rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                   "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})"
                                << "llama3" << 5e5 << 8.0;
        QTest::newRow("InternLM origin") << "InternLMForCausalLM"
                                         << R"("rotary": {"base": 20000, "type": "origin"})"
                                         << "none" << 2e4 << 1.0;
        QTest::newRow("InternLM factor") << "InternLMForCausalLM"
                                         << R"("rotary": {"base": 10000, "type": "dynamic", "scaling_factor": 3})"
                                         << "dynamic" << 1e4 << 3.0;
        QTest::newRow("InternLM's class default") << "InternLMForCausalLM"
                                                  << R"("rope_theta": 10000.0)"
                                                  << "dynamic" << 1e4 << 1.0;
    }
    void ropeIsReadInEachWayOfWritingIt() {
        QFETCH(QString, architecture);
        QFETCH(QString, keys);
        QFETCH(QString, scaling);
        QFETCH(double, base);
        QFETCH(double, factor);
        auto document = families::fromConfigJson(small(architecture, keys), "config.json");
        QVERIFY2(document, qPrintable(document ? QString() : text(document.error())));
        const auto expansion = graph::expand(*document);
        QVERIFY2(expansion.ok() && expansion.problems.empty(), qPrintable(expansion.ok() ? QString() : text(expansion.firstError())));
        int rotary = 0;
        for (const auto& cell : expansion.model.cells) {
            if (cell.type != "RotaryEmbedding") continue;
            ++rotary;
            QCOMPARE(QString::fromStdString(cell.text("scaling")), scaling);
            QCOMPARE(cell.real("base"), base);
            QCOMPARE(cell.real("factor"), factor);
            QCOMPARE(cell.integer("max_positions"), scaling == "llama3" ? 8192 : 2048);
        }
        QCOMPARE(rotary, 4);
        auto written = families::toConfigJson(*document);
        QVERIFY2(written, qPrintable(written ? QString() : text(written.error())));
        auto again = families::fromConfigJson(*written, "config.json");
        QVERIFY(again);
        QCOMPARE(graph::toJson(*again), graph::toJson(*document));
    }

    void biasesStandWhereTheFamilyHasThem_data() {
        QTest::addColumn<QString>("architecture");
        QTest::addColumn<QString>("keys");
        QTest::addColumn<QStringList>("biased"); // cells of layer 0
        const QString yes = "layers.0.self_attn.";
        QTest::newRow("InternLM") << "InternLMForCausalLM"
                                  << R"("bias": true)" << QStringList{yes + "k_proj", yes + "o_proj", yes + "q_proj", yes + "v_proj"};
        QTest::newRow("InternLM 20B") << "InternLMForCausalLM"
                                      << R"("bias": false)" << QStringList();
        QTest::newRow("InternLM2") << "InternLM2ForCausalLM"
                                   << R"("bias": true)" << QStringList{"layers.0.attention.wo", "layers.0.attention.wqkv"};
        QTest::newRow("InternLM3 qkv") << "InternLM3ForCausalLM"
                                       << R"("qkv_bias": true)" << QStringList{yes + "k_proj", yes + "q_proj", yes + "v_proj"};
        QTest::newRow("InternLM3 bias") << "InternLM3ForCausalLM"
                                        << R"("bias": true)"
                                        << QStringList{"layers.0.mlp.down_proj", "layers.0.mlp.gate_proj", "layers.0.mlp.up_proj",
                                                       yes + "o_proj"};
        QTest::newRow("Llama attention") << "LlamaForCausalLM"
                                         << R"("attention_bias": true)"
                                         << QStringList{yes + "k_proj", yes + "o_proj", yes + "q_proj", yes + "v_proj"};
        QTest::newRow("Llama MLP") << "LlamaForCausalLM"
                                   << R"("mlp_bias": true)"
                                   << QStringList{"layers.0.mlp.down_proj", "layers.0.mlp.gate_proj", "layers.0.mlp.up_proj"};
    }
    void biasesStandWhereTheFamilyHasThem() {
        QFETCH(QString, architecture);
        QFETCH(QString, keys);
        QFETCH(QStringList, biased);
        auto document = families::fromConfigJson(small(architecture, keys), "config.json");
        QVERIFY2(document, qPrintable(document ? QString() : text(document.error())));
        QStringList found;
        const auto expansion = graph::expand(*document);
        for (const auto& cell : expansion.model.cells)
            if (cell.type == "Dense" && cell.flag("has_bias") && cell.path.starts_with("layers.0."))
                found << QString::fromStdString(cell.path);
        found.sort();
        QCOMPARE(found, biased);
        auto written = families::toConfigJson(*document);
        QVERIFY2(written, qPrintable(written ? QString() : text(written.error())));
        QCOMPARE(graph::toJson(*families::fromConfigJson(*written, "config.json")), graph::toJson(*document));
    }

    void aTiedHeadHasNoWeightOfItsOwn() {
        auto tied = families::fromConfigJson(small("LlamaForCausalLM", R"("tie_word_embeddings": true)"), "config.json");
        auto plain = families::fromConfigJson(small("LlamaForCausalLM", R"("tie_word_embeddings": false)"), "config.json");
        QVERIFY(tied && plain);
        const auto model = graph::expand(*tied).model, other = graph::expand(*plain).model;
        QCOMPARE(other.parameterCount() - model.parameterCount(), 64 * 64);
        QVERIFY(!weightsOf(model).contains("lm_head.weight"));
        QVERIFY(families::isIgnorable(model, "lm_head.weight"));
        QVERIFY(!families::isIgnorable(other, "lm_head.weight"));
        QCOMPARE(config(*families::toConfigJson(*tied))["tie_word_embeddings"].toBool(), true);
        tied->main.wires.erase(std::find_if(tied->main.wires.begin(), tied->main.wires.end(),
                                            [](const graph::Wire& wire) { return wire.to.port == "weight"; }));
        QVERIFY(!graph::expand(*tied).ok());
    }

    void internlm2PacksEachKeyValueHeadWithItsQueries() {
        auto document = families::buildPreset("internlm2-tiny");
        QVERIFY(document);
        const auto expansion = graph::expand(*document);
        for (const auto& cell : expansion.model.cells)
            if (cell.type == "Split") {
                QCOMPARE(cell.integers("sizes"), (std::vector<std::int64_t>{128, 64, 64})); // two queries of 64, a key, a value
                QCOMPARE(cell.integer("groups"), 2);
            }
    }

    void theZLossWeightIsKept() {
        auto document = families::fromConfigJson(
            small("BaichuanForCausalLM", R"("position_embedding": "rope", "norm_head": true, "z_loss_weight": 0.0002)"), "config.json");
        QVERIFY2(document, qPrintable(document ? QString() : text(document.error())));
        const auto model = graph::expand(*document).model;
        QCOMPARE(std::get<double>(model.hyper.at("z_loss_weight")), 0.0002);
        QCOMPARE(config(*families::toConfigJson(*document))["z_loss_weight"].toDouble(), 0.0002);
    }

    void aVariantThatTheConfigCannotSayHasNone() {
        auto document = families::fromConfigJson(small("InternLM2ForCausalLM", R"("bias": true)"), "config.json");
        QVERIFY(document);
        for (auto& cell : document->composites["SelfAttention"].cells)
            if (cell.name == "wo") cell.params.erase("has_bias");
        QVERIFY(graph::expand(*document).ok());
        auto written = families::toConfigJson(*document);
        QVERIFY(!written);
        QVERIFY2(text(written.error()).contains("no words"), qPrintable(text(written.error())));
    }

    void foreignConfigsAreRefusedByName() {
        QFETCH(QString, json);
        QFETCH(QString, said);
        auto document = families::fromConfigJson(json.toStdString(), "x/config.json");
        QVERIFY(!document);
        QVERIFY2(text(document.error()).contains(said) && text(document.error()).contains("x/config.json"),
                 qPrintable(text(document.error())));
    }
    void theListOfKnownArchitecturesIsShown() {
        auto document = families::fromConfigJson(R"({"architectures": ["GPT2LMHeadModel"]})", "c");
        QVERIFY(text(document.error()).contains("BaiChuanForCausalLM, BaichuanForCausalLM, InternLMForCausalLM"));
    }

    void modelsOpenByNameFolderAndFile() {
        QTemporaryDir folder;
        const std::filesystem::path root(folder.path().toStdString());
        QVERIFY(families::openModel("baichuan-tiny"));
        auto missing = families::openModel("baichuan-tinny");
        QVERIFY(!missing && text(missing.error()).contains("baichuan-tiny"));
        auto empty = families::openModel(root.string());
        QVERIFY(!empty && text(empty.error()).contains("config.json"));
        QVERIFY(writeFileAtomically(root / "mine.cells.json", graph::toJson(*families::buildPreset("baichuan-tiny-gqa"))));
        auto document = families::openModel((root / "mine.cells.json").string());
        QVERIFY(document);
        QCOMPARE(graph::expand(*document).model.parameterCount(), 4999424);
    }

    void costsOfATransformerAreTheKnownOnes() {
        auto document = families::buildPreset("baichuan-tiny");
        const auto expansion = graph::expand(*document);
        const auto all = graph::costs(expansion.model, {{"B", 2}, {"T", 16}});
        QCOMPARE(all.size(), expansion.model.cells.size());
        const auto total = graph::total(all);
        QCOMPARE(total.parameters, 5261568);
        // matrix products: 2 · tokens · weights (no embedding); attention: 4 · B · T² · hidden a layer
        const double tokens = 32, matrices = 4096.0 * 256 + 4 * (4.0 * 256 * 256 + 3.0 * 256 * 688);
        const double products = 2 * tokens * matrices + 4 * (4.0 * 2 * 16 * 16 * 256);
        QVERIFY(total.forwardFlops > products && total.forwardFlops < products * 1.01); // norms and activations are the rest
        // one Dense by itself: gate_proj of layer 0
        for (std::size_t i = 0; i < all.size(); ++i)
            if (expansion.model.cells[i].path == "layers.0.mlp.gate_proj") {
                QCOMPARE(all[i].forwardFlops, 2 * tokens * 256 * 688);
                QCOMPARE(all[i].activationValues, 32 * 256);
            } else if (expansion.model.cells[i].path == "layers.0.mlp.up_proj") {
                QCOMPARE(all[i].activationValues, 0); // its input is the one that gate_proj keeps
            }
    }
};

QTEST_GUILESS_MAIN(TestFamilies)
#include "tst_families.moc"
