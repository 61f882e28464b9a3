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
        QCOMPARE(totals["baichuan-7b"], 7000559616);   // README of baichuan-inc/Baichuan-7B
        QCOMPARE(totals["baichuan-13b"], 13264901120); // README of baichuan-inc/Baichuan-13B
    }

    void weightNamesAndShapesEqualTheCheckpoints_data() {
        QTest::addColumn<QString>("name");
        QTest::newRow("7B, rotary") << "baichuan_7b";
        QTest::newRow("13B, ALiBi") << "baichuan_13b";
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
            auto path = families::parameterPath("baichuan", tensor);
            QVERIFY2(path, tensor.c_str());
            QCOMPARE(families::checkpointName("baichuan", *path), tensor);
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
        QTest::newRow("unknown") << R"({"architectures": ["LlamaForCausalLM"]})"
                                 << "LlamaForCausalLM";
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
    void foreignConfigsAreRefusedByName() {
        QFETCH(QString, json);
        QFETCH(QString, said);
        auto document = families::fromConfigJson(json.toStdString(), "x/config.json");
        QVERIFY(!document);
        QVERIFY2(text(document.error()).contains(said) && text(document.error()).contains("x/config.json"),
                 qPrintable(text(document.error())));
    }
    void theListOfKnownArchitecturesIsShown() {
        auto document = families::fromConfigJson(R"({"architectures": ["LlamaForCausalLM"]})", "c");
        QVERIFY(text(document.error()).contains("BaiChuanForCausalLM, BaichuanForCausalLM"));
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
