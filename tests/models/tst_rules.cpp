// Treatment rules: patterns, text form, resolution against real models, and the table of paths and checkpoint names.
#include "models/families/families.h"
#include "models/recipe/parameter_table.h"
#include "models/recipe/recipe.h"

#include <QtTest>

#include <set>

using namespace celloom;
using namespace celloom::recipe;

namespace {

graph::ExpandedModel modelOf(const char* preset) {
    auto document = families::buildPreset(preset);
    return document ? graph::expand(*document).model : graph::ExpandedModel{};
}

std::vector<Rule> rulesOf(const std::vector<std::string>& texts) {
    std::vector<Rule> out;
    for (const auto& text : texts)
        if (auto rule = parseRule(text)) out.push_back(*rule);
    return out;
}

QString refusal(const graph::ExpandedModel& model, const std::vector<std::string>& texts) {
    auto table = resolve(model, rulesOf(texts));
    return table ? QString() : QString::fromStdString(table.error().text());
}

std::int64_t sizeOf(const ParameterRow& row) {
    std::int64_t size = 1;
    for (const std::int64_t dim : row.dims) size *= dim;
    return size;
}

} // namespace

class TestRules : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void patternsMatchPaths_data() {
        QTest::addColumn<QString>("pattern");
        QTest::addColumn<QString>("path");
        QTest::addColumn<bool>("isMatch");
        const auto add = [](const char* pattern, const char* path, bool isMatch) {
            QTest::newRow(qPrintable(QString(pattern) + " | " + path)) << pattern << path << isMatch;
        };
        add("norm", "norm", true);
        add("norm", "layers.0.norm", false);
        add("*", "norm", true);
        add("*", "a.b", false);
        add("**", "a.b.c", true);
        add("**.norm", "norm", true);
        add("**.norm", "a.b.norm", true);
        add("layers.*.mlp.up_proj", "layers.12.mlp.up_proj", true);
        add("layers.{3..5}.*.W_pack", "layers.4.self_attn.W_pack", true);
        add("layers.{3..5}.*.W_pack", "layers.6.self_attn.W_pack", false);
        add("layers.{3..5}.*.W_pack", "layers.03.self_attn.W_pack", false);
        add("layers.{8..12}.**", "layers.1.mlp", false);
        add("layers.{8..12}.**", "layers.12.mlp", true);
        add("layers.{8..12}.**", "layers.120.mlp", false);
        add("layers.{0..3,39}.**", "layers.39.mlp", true);
        add("{norm,lm_head}", "lm_head", true);
        add("*_proj", "gate_proj", true);
        add("{gate,up}_proj", "down_proj", false);
        add("*norm*", "post_attention_layernorm", true);
        add("**.*norm*.**", "layers.0.input_layernorm.weight", true);
        add("**.*norm*.**", "norm.weight", true);
        add("**.*norm*.**", "layers.0.mlp.up_proj.weight", false);
        add("**.bias", "layers.0.q_proj.bias", true);
        add("a.**.z", "a.z", true);
        add("a.**.z", "a.b.c.z", true);
        add("a.**.z", "a.b.c", false);
        add("**.**", "a", true);
        add("a*b*c", "aXbYc", true);
        add("a*b*c", "aXcYb", false);
        add("嵌入.*", "嵌入.权重", true);
    }
    void patternsMatchPaths() {
        QFETCH(QString, pattern);
        QFETCH(QString, path);
        QFETCH(bool, isMatch);
        QCOMPARE(matches(pattern.toStdString(), path.toStdString()), isMatch);
    }

    void malformedPatternsAreRefused_data() {
        QTest::addColumn<QString>("pattern");
        for (const char* pattern : {"", "a..b", ".a", "a.", "a**", "***", "{", "}", "{}", "{a,}", "{3..", "{5..3}", "{-1..3}", "{a..b}",
                                    "{a.b}", "{{a}}", "{*}", "a b", "a:b"})
            QTest::newRow(pattern) << pattern;
        QTest::newRow("long") << QString(2000, 'a');
    }
    void malformedPatternsAreRefused() {
        QFETCH(QString, pattern);
        QVERIFY(!PathPattern::parse(pattern.toStdString()));
        QVERIFY(!matches(pattern.toStdString(), "a"));
    }

    void hardPatternsTakeNoLongTime() {
        const std::string pattern = [] {
            std::string out = "**";
            for (int i = 0; i < 100; ++i) out += ".**.a*a*b";
            return out;
        }();
        std::string path = "aaa";
        for (int i = 0; i < 300; ++i) path += ".aaa";
        QVERIFY(!matches(pattern, path)); // would not end with plain backtracking
    }

    void rulesReadAndWriteTheirText_data() {
        QTest::addColumn<QString>("given");
        QTest::addColumn<QString>("text");
        QTest::newRow("freeze") << " layers.{0..3}.**:freeze "
                                << "layers.{0..3}.**: freeze";
        QTest::newRow("train") << "norm: train"
                               << "norm: train";
        QTest::newRow("lora") << "layers.{3..5}.*.W_pack: lora r=8"
                              << "layers.{3..5}.*.W_pack: lora r=8 alpha=16";
        QTest::newRow("lora, all") << "*: lora r=4 alpha=8.5 dropout=0.05"
                                   << "*: lora r=4 alpha=8.5 dropout=0.05";
        QTest::newRow("several") << "a.*: stage=2 dtype=bfloat16 recompute lr_scale=0.5 weight_decay=0"
                                 << "a.*: dtype=bfloat16 recompute stage=2 lr_scale=0.5 weight_decay=0";
        QTest::newRow("off") << "a: recompute=false"
                             << "a: recompute=false";
    }
    void rulesReadAndWriteTheirText() {
        QFETCH(QString, given);
        QFETCH(QString, text);
        auto rule = parseRule(given.toStdString());
        QVERIFY2(rule, qPrintable(rule ? QString() : QString::fromStdString(rule.error().text())));
        QCOMPARE(QString::fromStdString(toText(*rule)), text);
        QCOMPARE(*parseRule(toText(*rule)), *rule);
    }

    void badRulesAreRefused_data() {
        QTest::addColumn<QString>("rule");
        QTest::addColumn<QString>("said");
        QTest::newRow("no colon") << "layers.*"
                                  << "colon";
        QTest::newRow("no pattern") << ": freeze"
                                    << "empty";
        QTest::newRow("no setting") << "a:"
                                    << "setting";
        QTest::newRow("unknown") << "a: frozen"
                                 << "frozen";
        QTest::newRow("unknown value") << "a: rate=3"
                                       << "rate";
        QTest::newRow("twice") << "a: freeze train"
                               << "twice";
        QTest::newRow("rank 0") << "a: lora r=0"
                                << "r=0";
        QTest::newRow("rank without lora") << "a: r=8"
                                           << "lora";
        QTest::newRow("dtype") << "a: dtype=int8"
                               << "int8";
        QTest::newRow("stage") << "a: stage=-1"
                               << "stage=-1";
        QTest::newRow("not a number") << "a: lr_scale=nan"
                                      << "lr_scale";
        QTest::newRow("dropout of 1") << "a: lora dropout=1"
                                      << "dropout=1";
    }
    void badRulesAreRefused() {
        QFETCH(QString, rule);
        QFETCH(QString, said);
        auto parsed = parseRule(rule.toStdString());
        QVERIFY(!parsed);
        QVERIFY2(QString::fromStdString(parsed.error().text()).contains(said), qPrintable(QString::fromStdString(parsed.error().text())));
    }

    void aPatternThatMatchesNothingIsRefusedWithTheRealNames() {
        const auto model = modelOf("baichuan-tiny");
        const QString lora = refusal(model, {"**.q_proj: lora r=8"});
        QVERIFY2(lora.contains("rules[0]") && lora.contains("layers.{0..3}.self_attn.W_pack") &&
                     lora.contains("layers.{0..3}.mlp.gate_proj"),
                 qPrintable(lora));
        QVERIFY(!lora.contains("rotary")); // only what LoRA can stand beside
        const QString frozen = refusal(model, {"norm: freeze", "layers.{4..5}.**: freeze"});
        QVERIFY2(frozen.contains("rules[1]") && frozen.contains("embed_tokens") && frozen.contains("lm_head"), qPrintable(frozen));
        const QString group = refusal(model, {"layers.3: freeze"});
        QVERIFY2(group.contains("layers.3.**"), qPrintable(group));
        const QString noMatrix = refusal(model, {"norm: lora r=8"});
        QVERIFY2(noMatrix.contains("takes an adapter") && noMatrix.contains("W_pack"), qPrintable(noMatrix));
    }

    void laterRulesWinSettingBySetting() {
        const auto model = modelOf("baichuan-tiny");
        auto table = resolve(model, rulesOf({"**: freeze lr_scale=0.5", "layers.2.**: train", "layers.2.mlp.*: lr_scale=2"}));
        QVERIFY(table);
        for (std::size_t i = 0; i < model.cells.size(); ++i) {
            const bool isLayer2 = model.cells[i].path.starts_with("layers.2."), isMlp = model.cells[i].path.starts_with("layers.2.mlp.");
            QCOMPARE(table->cells[i].frozen, !isLayer2);
            QCOMPARE(table->cells[i].lrScale, isMlp ? 2.0 : 0.5);
        }
    }

    // The identity question: one table of paths serves rules, checkpoints and adapters, in both directions.
    void aBaichuan13BRecipeResolvesToPathsAndNamesAndBack() {
        Recipe recipe;
        QVERIFY(recipe.setFromText("model.source", "baichuan-13b"));
        const std::vector<std::string> texts{"layers.{0..3}.**: freeze", "layers.{3..5}.self_attn.W_pack: lora r=8 alpha=16",
                                             "layers.7.**: dtype=bfloat16", "layers.{20..39}.**: stage=1", "{norm,lm_head}: stage=1"};
        QVERIFY(recipe.set("rules", texts));
        auto reread = Recipe::fromJson(recipe.toJson());
        QVERIFY(reread);
        auto rules = reread->rules();
        QVERIFY(rules);
        for (std::size_t i = 0; i < texts.size(); ++i) QCOMPARE(toText((*rules)[i]), texts[i]);

        const auto model = modelOf("baichuan-13b");
        auto treatment = resolve(model, *rules);
        QVERIFY(treatment);
        const auto table = parameterTable(model, *treatment);

        // 40 layers of 4 matrices in attention and MLP… : W_pack, o_proj, gate, up, down and 2 norms; embedding, norm, head; 3 adapters of
        // 2
        QCOMPARE(table.size(), std::size_t(40 * 7 + 3 + 3 * 2));
        std::set<std::string> paths, names;
        std::int64_t base = 0, adapters = 0, trainable = 0;
        int lastStage = 0;
        for (const ParameterRow& row : table) {
            QVERIFY(paths.insert(row.path).second && names.insert(row.checkpointName).second);
            QCOMPARE(findPath(table, row.path), &row);
            QCOMPARE(findCheckpointName(table, row.checkpointName), &row);
            (row.isAdapter ? adapters : base) += sizeOf(row);
            if (row.isTrainable) trainable += sizeOf(row);
            const auto& cell = model.cells[static_cast<std::size_t>(row.cell)];
            const Treatment& treated = treatment->cells[static_cast<std::size_t>(row.cell)];
            QVERIFY(row.path.starts_with(cell.path + "."));
            QVERIFY(treated.stage >= lastStage); // the cut falls once
            lastStage = static_cast<int>(treated.stage);
            QCOMPARE(treated.dtype, std::string(cell.path.starts_with("layers.7.") ? "bfloat16" : ""));
            if (row.isAdapter) continue;
            auto path = families::parameterPath("baichuan", row.checkpointName);
            QVERIFY(path);
            QCOMPARE(*path, row.path);
        }
        QCOMPARE(lastStage, 1);
        QCOMPARE(base, 13264901120);
        QCOMPARE(adapters, 3 * 8 * (5120 + 3 * 5120)); // A [8, 5120] and B [15360, 8] in three layers
        // frozen: layers 0–3 whole, and the packed projections below the adapters of layers 4 and 5
        const std::int64_t layer = 4 * 5120LL * 5120 + 3 * 5120LL * 13696 + 2 * 5120;
        QCOMPARE(trainable, base - 4 * layer - 2 * (3 * 5120LL * 5120) + adapters);

        const ParameterRow* adapter = findPath(table, "layers.4.self_attn.W_pack.lora_B.weight");
        QVERIFY(adapter);
        QCOMPARE(adapter->checkpointName,
                 std::string("base_model.model.model.layers.4.self_attn.W_pack.lora_B.weight")); // as PEFT writes it
        QCOMPARE(adapter->dims, (std::vector<std::int64_t>{15360, 8}));
        QVERIFY(!findPath(table, "layers.6.self_attn.W_pack.lora_A.weight"));
        QVERIFY(findPath(table, "layers.3.self_attn.W_pack.lora_A.weight")->isTrainable); // an adapter learns on a frozen layer too
    }
};

QTEST_GUILESS_MAIN(TestRules)
#include "tst_rules.moc"
