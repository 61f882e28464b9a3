// Which cells get an adapter: targets, options, counts, what is refused; and PEFT's adapter_config.json.
#include "models/families/families.h"
#include "models/recipe/adapter_config.h"
#include "models/recipe/checks.h"
#include "models/recipe/parameter_table.h"

#include <QtTest>

using namespace celloom;
using namespace celloom::recipe;

namespace {

graph::ExpandedModel modelOf(const char* preset) {
    auto document = families::buildPreset(preset);
    if (!document) qFatal("%s", document.error().text().c_str());
    return graph::expand(*document).model;
}

LoraSpec specFor(std::vector<std::string> targets, std::int64_t rank = 8) {
    LoraSpec spec;
    spec.targets = std::move(targets);
    spec.standard.rank = rank;
    return spec;
}

TreatmentTable tableOf(const graph::ExpandedModel& model, const LoraSpec& spec) {
    auto table = resolveLora(model, spec);
    if (!table) qFatal("%s", table.error().text().c_str());
    return std::move(*table);
}

QString refusal(const graph::ExpandedModel& model, const LoraSpec& spec) {
    const auto table = resolveLora(model, spec);
    return table ? QString() : QString::fromStdString(table.error().text());
}

ParameterCounts countsOf(const graph::ExpandedModel& model, const LoraSpec& spec) { return countParameters(parameterTable(model, tableOf(model, spec))); }

QString configRefusal(const std::string& text) {
    const auto config = adapterConfigFromJson(text, "adapter_config.json");
    return config ? QString() : QString::fromStdString(config.error().text());
}

} // namespace

class TestLoraSpec : public QObject {
    Q_OBJECT
private Q_SLOTS:
    // Case 14: 32 layers of 4 matrices [4096, 4096]; each adapter 8 * 4096 + 4096 * 8.
    void attentionOfInternLm7bHas128CellsAnd8388608Parameters() {
        const ParameterCounts counts = countsOf(modelOf("internlm-7b"), specFor({"q_proj", "k_proj", "v_proj", "o_proj"}));
        QCOMPARE(counts.adaptedCells, 128);
        QCOMPARE(counts.trainable, 8388608);
        QCOMPARE(counts.adapters, 8388608);
    }

    // One adapter on each packed matrix [3 * 5120, 5120] of 40 layers, not three: r (5120 + 15360) each.
    void packedProjectionsOfBaichuan2_13bGetOneAdapterEach() {
        const ParameterCounts counts = countsOf(modelOf("baichuan2-13b"), specFor({"W_pack"}, 1));
        QCOMPARE(counts.adaptedCells, 40);
        QCOMPARE(counts.trainable, 40 * (5120 + 15360));
    }

    void targetsMeanWhatPeftMeans_data() {
        QTest::addColumn<QString>("targets");
        QTest::addColumn<QString>("regex");
        QTest::addColumn<int>("cells");
        // internlm-tiny has as many layers as its preset says; counted in layers below
        QTest::newRow("one name") << "q_proj" << "" << 1;
        QTest::newRow("a dotted end") << "self_attn.q_proj" << "" << 1;
        QTest::newRow("two names") << "q_proj|v_proj" << "" << 2;
        QTest::newRow("all linear") << "all-linear" << "" << 7; // q, k, v, o, gate, up, down; not the head
        QTest::newRow("a path pattern") << "layers.*.mlp.*" << "" << 3;
        QTest::newRow("a regular expression over the whole name") << "" << ".*\\.(q_proj|v_proj)" << 2;
        QTest::newRow("MindFormers' way") << "" << ".*q_proj|.*k_proj|.*v_proj|.*o_proj" << 4;
    }
    void targetsMeanWhatPeftMeans() {
        QFETCH(QString, targets);
        QFETCH(QString, regex);
        QFETCH(int, cells);
        const auto model = modelOf("internlm-tiny");
        LoraSpec spec;
        for (const QString& target : targets.split('|', Qt::SkipEmptyParts)) spec.targets.push_back(target.toStdString());
        spec.targetRegex = regex.toStdString();
        QCOMPARE(countsOf(model, spec).adaptedCells, cells * static_cast<int>(model.hyperInteger("layers", 0)));
    }

    // Case 14: refused with the real names.
    void aTargetThatMatchesNothingIsRefusedWithTheRealNames() {
        const auto model = modelOf("baichuan-tiny");
        for (const char* wrong : {"q_proj", "layers.*.q_proj"}) {
            const QString said = refusal(model, specFor({"W_pack", wrong}));
            QVERIFY2(said.contains(wrong) && said.contains("self_attn.W_pack") && said.contains("mlp.gate_proj"), qPrintable(said));
        }
        LoraSpec regex;
        regex.targetRegex = "q_proj"; // matched against the whole name, so it names nothing
        QVERIFY(refusal(model, regex).contains("self_attn.W_pack"));
        QVERIFY(refusal(model, specFor({"lm_head"})).contains("takes an adapter"));
        QVERIFY(refusal(model, specFor({})).contains("no cell is chosen"));
        LoraSpec broken;
        broken.targetRegex = "(";
        QVERIFY(refusal(model, broken).contains("regular expression"));
        QVERIFY(refusal(model, specFor({".*(q|v)_proj"})).contains("target_regex"));
    }

    void nothingButTheAdaptersLearns() {
        const auto model = modelOf("internlm-tiny");
        for (const ParameterRow& row : parameterTable(model, tableOf(model, specFor({"q_proj"})))) QCOMPARE(row.isTrainable, row.isAdapter);
    }

    void ranksAndAlphasFollowThePatterns() {
        const auto model = modelOf("internlm-tiny");
        LoraSpec spec = specFor({"q_proj", "v_proj"}, 4);
        spec.standard.alpha = 8;
        spec.rankPattern = {{"layers.0.self_attn.v_proj", 1}, {"v_proj", 2}};
        spec.alphaPattern = {{"v_proj", 6}};
        const auto table = tableOf(model, spec);
        for (std::size_t i = 0; i < model.cells.size(); ++i) {
            const std::string& path = model.cells[i].path;
            if (!table.cells[i].lora) continue;
            const bool isV = path.ends_with("v_proj");
            QCOMPARE(table.cells[i].lora->rank, path == "layers.0.self_attn.v_proj" ? 1 : isV ? 2 : 4);
            QCOMPARE(table.cells[i].lora->alpha, isV ? 6.0 : 8.0);
        }
        spec.rankPattern = {{"up_proj", 2}};
        QVERIFY(refusal(model, spec).contains("up_proj"));
    }

    void scaleIsAlphaOverRankOrItsRoot() {
        QCOMPARE((LoraSettings{4, 8, 0, false, false}.scale()), 2.0);
        QCOMPARE((LoraSettings{4, 8, 0, true, false}.scale()), 4.0);
    }

    void layersAreChosenByNumber() {
        const auto model = modelOf("internlm-tiny");
        LoraSpec spec = specFor({"q_proj"});
        spec.layersToTransform = {1};
        const auto table = tableOf(model, spec);
        for (std::size_t i = 0; i < model.cells.size(); ++i) QCOMPARE(table.cells[i].lora.has_value(), model.cells[i].path == "layers.1.self_attn.q_proj");
        spec.layersToTransform = {99};
        QVERIFY(refusal(model, spec).contains("no layer 99"));
    }

    void biasesAndWholeModulesLearnAndAreInTheFile() {
        const auto model = modelOf("internlm-tiny");
        LoraSpec spec = specFor({"q_proj"});
        spec.bias = LoraSpec::Bias::LoraOnly;
        spec.modulesToSave = {"lm_head"};
        const auto rows = parameterTable(model, tableOf(model, spec));
        const auto file = [&](const char* path) { return QString::fromStdString(findPath(rows, path)->adapterName); };
        QCOMPARE(file("layers.0.self_attn.q_proj.bias"), "base_model.model.model.layers.0.self_attn.q_proj.base_layer.bias");
        QCOMPARE(file("layers.0.self_attn.k_proj.bias"), "");
        QCOMPARE(file("lm_head.weight"), "base_model.model.lm_head.weight");
        QCOMPARE(file("layers.0.self_attn.q_proj.weight"), "");
        spec.bias = LoraSpec::Bias::All;
        const auto all = parameterTable(model, tableOf(model, spec));
        QCOMPARE(QString::fromStdString(findPath(all, "layers.0.self_attn.k_proj.bias")->adapterName),
                 "base_model.model.model.layers.0.self_attn.k_proj.bias");
        spec.modulesToSave = {"q_proj"};
        QVERIFY(refusal(model, spec).contains("cannot both"));
    }

    void adaptersBetweenWeightsThatLearnAreRefused() {
        const auto model = modelOf("internlm-tiny");
        const auto rule = parseRule("**.q_proj: lora r=2");
        QVERIFY(rule);
        const auto table = resolve(model, {*rule});
        QVERIFY(table);
        const auto status = checkTreatment(model, *table);
        QVERIFY(!status && status.error().hint.find("freeze") != std::string::npos);
    }

    void aRecipeResolvesToItsTreatments() {
        Recipe recipe;
        QVERIFY(recipe.setFromText("kind", "finetune"));
        QVERIFY(recipe.setFromText("model.source", "internlm-tiny"));
        QVERIFY(recipe.setFromText("model.weights", "somewhere"));
        QVERIFY(recipe.setFromText("lora.targets", "q_proj,v_proj"));
        QVERIFY(recipe.setFromText("lora.rank", "4"));
        QVERIFY(recipe.setFromText("lora.dropout", "0.05"));
        QVERIFY(recipe.setFromText("train.recompute", "true"));
        QVERIFY(recipe.setFromText("rules", "layers.0.*.q_proj: lora r=2 alpha=2 rslora"));
        const auto model = modelOf("internlm-tiny");
        const auto table = treatmentOf(recipe, model);
        QVERIFY(table);
        for (std::size_t i = 0; i < model.cells.size(); ++i) {
            const std::string& path = model.cells[i].path;
            const Treatment& treated = table->cells[i];
            QCOMPARE(treated.lora.has_value(), path.ends_with("q_proj") || path.ends_with("v_proj"));
            QCOMPARE(treated.frozen, true);
            QCOMPARE(treated.recompute, path.starts_with("layers."));
            if (treated.lora && path == "layers.0.self_attn.q_proj") QCOMPARE(*treated.lora, (LoraSettings{2, 2, 0, true, false}));
            else if (treated.lora) QCOMPARE(*treated.lora, (LoraSettings{4, 16, 0.05, false, false}));
        }
        QVERIFY(recipe.setFromText("lora.enabled", "false"));
        QVERIFY(!treatmentOf(recipe, model)->cells[3].frozen);
    }

    void bothWaysToNameTargetsAreRefused() {
        Recipe recipe;
        QVERIFY(recipe.setFromText("kind", "finetune"));
        QVERIFY(recipe.setFromText("lora.target_regex", ".*q_proj"));
        QVERIFY(loraSpecOf(recipe));
        QVERIFY(recipe.setFromText("lora.targets", "v_proj"));
        QVERIFY(!loraSpecOf(recipe));
    }

    void aTreatmentDescribedIsResolvedToItself_data() {
        QTest::addColumn<QStringList>("rules");
        QTest::newRow("plain") << QStringList{"**.q_proj: lora r=4 alpha=8"};
        QTest::newRow("some layers") << QStringList{"layers.{0..1}.**.q_proj: lora r=4 alpha=8 rslora"};
        QTest::newRow("ranks by layer") << QStringList{"**.{q,v}_proj: lora r=4 alpha=8", "layers.1.**.q_proj: lora r=2 alpha=3"};
        QTest::newRow("biases and head") << QStringList{"**.q_proj: lora r=4 alpha=8 dora train_bias", "lm_head: save"};
    }
    void aTreatmentDescribedIsResolvedToItself() {
        QFETCH(QStringList, rules);
        const auto model = modelOf("internlm-tiny");
        std::vector<Rule> parsed{*parseRule("**: freeze")};
        for (const QString& rule : rules) parsed.push_back(*parseRule(rule.toStdString()));
        const auto table = resolve(model, parsed);
        QVERIFY(table);
        const AdapterConfig config{describe(model, *table), "base", {}};
        const auto read = adapterConfigFromJson(toJson(config), "adapter_config.json");
        QVERIFY2(read, read ? "" : read.error().text().c_str());
        const auto again = resolveLora(model, read->spec);
        QVERIFY2(again, again ? "" : again.error().text().c_str());
        for (std::size_t i = 0; i < model.cells.size(); ++i) QVERIFY2(again->cells[i] == table->cells[i], model.cells[i].path.c_str());
    }

    // ---- adapter_config.json ----

    void fourKeysSuffice() {
        const auto config = adapterConfigFromJson(R"({"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj"]})", "f");
        QVERIFY(config);
        QCOMPARE(config->spec.standard, (LoraSettings{4, 8, 0, false, false}));
        QVERIFY(config->notUsed.empty());
    }

    void keysThatChangeTheResultAreRefusedByNameAndOthersListed() {
        const auto with = [](const std::string& more) {
            return R"({"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj"], )" + more + "}";
        };
        for (const char* key : {"fan_in_fan_out", "lora_bias", "use_qalora", "something_new"})
            QVERIFY2(configRefusal(with("\"" + std::string(key) + "\": true")).contains(key), key);
        QVERIFY(configRefusal(with(R"("trainable_token_indices": [1])")).contains("trainable_token_indices"));
        QVERIFY(configRefusal(with(R"("layer_replication": [[0, 2]])")).contains("layer_replication"));
        QVERIFY(configRefusal(with(R"("init_lora_weights": "pissa")")).contains("init_lora_weights"));
        QVERIFY(configRefusal(with(R"("task_type": "SEQ_CLS")")).contains("task_type"));
        const auto config = adapterConfigFromJson(with(R"("revision": "main", "peft_version": "0.21.2", "inference_mode": true, "something_new": null, "use_qalora": false)"), "f");
        QVERIFY(config);
        QCOMPARE(config->notUsed, std::vector<std::string>{"revision = \"main\""});
    }

    void brokenConfigsAreRefused() {
        for (const char* text : {"", "[]", "{}", R"({"peft_type": "IA3"})", R"({"peft_type": "LORA", "r": 0, "lora_alpha": 8, "target_modules": ["q"]})",
                                 R"({"peft_type": "LORA", "r": 4.5, "lora_alpha": 8, "target_modules": ["q"]})",
                                 R"({"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": []})",
                                 R"({"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": [3]})",
                                 R"({"peft_type": "LORA", "r": 4, "lora_alpha": 8})"})
            QVERIFY2(!configRefusal(text).isEmpty(), text);
    }

    // Case 16. A LoRA on attention alone fits both bases, so that only what was recorded tells them apart.
    void anotherBaseIsRefusedWithBothShapes() {
        const BaseIdentity trained{"internlm-7b", "internlm", "/models/internlm", "aaaa", {{"lm_head.weight", {103168, 4096}}}};
        BaseIdentity here = trained;
        QVERIFY(checkBase(trained, here));
        here.shapes["lm_head.weight"] = {125696, 4096};
        const auto status = checkBase(trained, here);
        const QString said = QString::fromStdString(status ? "" : status.error().text());
        QVERIFY2(said.contains("[103168, 4096]") && said.contains("[125696, 4096]") && said.contains("internlm-7b"), qPrintable(said));
        here = trained;
        here.fingerprint = "bbbb";
        QVERIFY(!checkBase(trained, here));
    }

    void notesReadBack() {
        const AdapterNotes notes{{"m", "internlm", "/p", "ff", {{"norm.weight", {64}}}}, "internlm"};
        const auto read = adapterNotesFromJson(toJson(notes), "celloom_adapter.json");
        QVERIFY(read && *read == notes);
        QVERIFY(!adapterNotesFromJson("{}", "f"));
        QVERIFY(!adapterNotesFromJson(R"({"schema": 2})", "f"));
    }
};

QTEST_GUILESS_MAIN(TestLoraSpec)
#include "tst_lora_spec.moc"
