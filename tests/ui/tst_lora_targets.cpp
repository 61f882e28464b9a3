// LoRA's targets by ticking: the tree of cells, what ticking gives, and the recipe that comes of it.
#include "ui/common/model_analysis.h"
#include "ui/common/recipe_document.h"
#include "ui/common/theme.h"
#include "ui/train/lora_panel.h"
#include "ui/train/lora_targets.h"
#include "ui/train/target_tree.h"

#include <QAbstractItemModelTester>
#include <QApplication>
#include <QLabel>
#include <QSignalSpy>
#include <QTest>
#include <QToolButton>
#include <QTreeView>

#include <map>

using namespace celloom;
using namespace celloom::ui;

namespace {

recipe::Recipe loraRecipe(const std::string& source, std::vector<std::string> targets) {
    recipe::Recipe recipe;
    (void)recipe.set("kind", std::string("finetune"));
    (void)recipe.set("model.source", source);
    (void)recipe.set("tokenizer.path", std::string("tokenizer.model")); // the model keeps its own vocabulary
    (void)recipe.set("lora.targets", std::move(targets));
    return recipe;
}

/// Expanding a published model takes a moment: once for all tests.
ModelAnalysisPtr analysisOf(const std::string& source) {
    static std::map<std::string, ModelAnalysisPtr> all;
    ModelAnalysisPtr& one = all[source];
    if (!one) one = std::make_shared<const ModelAnalysis>(analyse(loraRecipe(source, {"all-linear"})));
    return one;
}

const graph::ExpandedModel& modelOf(const std::string& source) {
    return analysisOf(source)->expansion.model;
}

std::vector<bool> ticksOf(const std::string& source, std::vector<std::string> targets) {
    return chooseLora(loraRecipe(source, std::move(targets)), modelOf(source)).ticked;
}

using Items = std::vector<std::string>;

/// A tree and the recipe behind it, without a window.
struct Tree {
    ModelAnalysisPtr analysis;
    recipe::Recipe recipe;
    TargetTreeModel model;
    QAbstractItemModelTester tester{&model, QAbstractItemModelTester::FailureReportingMode::QtTest};

    Tree(const std::string& source, Items targets) : analysis(analysisOf(source)), recipe(loraRecipe(source, std::move(targets))) {
        QObject::connect(&model, &TargetTreeModel::tickRequested, &model, [this](const std::vector<bool>& ticked) {
            const LoraChoice choice = chooseLora(recipe, analysis->expansion.model);
            (void)recipe.set("lora.targets", targetsFor(analysis->expansion.model, choice.possible, ticked));
            refresh();
        });
        refresh();
    }
    void refresh() { model.setAnalysis(analysis, chooseLora(recipe, analysis->expansion.model)); }
    void toggle(const char* path, Qt::CheckState to) { model.setData(model.indexOf(QString::fromLatin1(path)), to, Qt::CheckStateRole); }
    QVariant state(const char* path) { return model.indexOf(QString::fromLatin1(path)).data(Qt::CheckStateRole); }
    QString text(const char* path, int column) {
        return model.indexOf(QString::fromLatin1(path)).siblingAtColumn(column).data().toString().replace(QChar(0xa0), QLatin1Char(' '));
    }
};

} // namespace

class TestLoraTargets : public QObject {
    Q_OBJECT
    Theme m_theme{*qApp};

private Q_SLOTS:
    /// 32 layers x (q, k, v, o) of 4096 x 4096 at r = 8: 4 x 32 x 8 x (4096 + 4096) = 8 388 608.
    void internlm7bsFourProjectionsAre128CellsAnd8388608Parameters() {
        const LoraChoice choice = chooseLora(loraRecipe("internlm-7b", {"q_proj", "k_proj", "v_proj", "o_proj"}), modelOf("internlm-7b"));
        QVERIFY(!choice.error);
        QCOMPARE(choice.counts.adaptedCells, 128);
        QCOMPARE(choice.counts.adapters, std::int64_t(8388608));
        QCOMPARE(choice.counts.trainable, std::int64_t(8388608));
        Tree tree("internlm-7b", {"q_proj", "k_proj", "v_proj", "o_proj"});
        QCOMPARE(tree.state("layers.{0..31}.self_attn"), QVariant(Qt::Checked));
        QCOMPARE(tree.text("layers.{0..31}.self_attn", TargetTreeModel::Adapters), QStringLiteral("128"));
        QCOMPARE(tree.text("layers.{0..31}.self_attn", TargetTreeModel::Parameters), QStringLiteral("8 388 608"));
        QCOMPARE(tree.text("layers.{0..31}.self_attn", TargetTreeModel::Bytes), QStringLiteral("32.0 MiB")); // 4 bytes each
        QCOMPARE(tree.state("layers.{0..31}"), QVariant(Qt::PartiallyChecked));
        QCOMPARE(tree.state("layers.{0..31}.mlp"), QVariant(Qt::Unchecked));
    }

    /// One matrix of 5120 -> 3 x 5120 in each of 40 layers: 40 x 8 x (5120 + 15360) = 6 553 600.
    void baichuan13bsPackedMatrixGetsOneAdapterALayer() {
        Tree tree("baichuan2-13b", {"W_pack"});
        QCOMPARE(tree.state("layers.{0..39}.self_attn.W_pack"), QVariant(Qt::Checked));
        QCOMPARE(tree.text("layers.{0..39}.self_attn.W_pack", TargetTreeModel::Adapters), QStringLiteral("40"));
        QCOMPARE(tree.text("layers.{0..39}.self_attn.W_pack", TargetTreeModel::Parameters), QStringLiteral("6 553 600"));
    }

    void tickingAGroupWritesTheEndsOfItsNames() {
        Tree tree("internlm-7b", {});
        tree.toggle("layers.{0..31}.self_attn.q_proj", Qt::Checked);
        QCOMPARE(tree.recipe.list("lora.targets"), Items{"q_proj"});
        tree.toggle("layers.{0..31}.mlp", Qt::Checked);
        QCOMPARE(tree.recipe.list("lora.targets"), (Items{"q_proj", "gate_proj", "up_proj", "down_proj"}));
        tree.toggle("layers.{0..31}.mlp", Qt::Unchecked);
        QCOMPARE(tree.recipe.list("lora.targets"), Items{"q_proj"});
        tree.toggle("layers.{0..31}", Qt::Checked);
        QCOMPARE(tree.recipe.list("lora.targets"), Items{"all-linear"});
    }

    void tickingSingleLayersWritesPathPatterns() {
        Tree tree("internlm-7b", {});
        for (const char* layer : {"layers.3.self_attn.q_proj", "layers.5.self_attn.q_proj", "layers.4.self_attn.q_proj"}) tree.toggle(layer, Qt::Checked);
        QCOMPARE(tree.recipe.list("lora.targets"), Items{"layers.{3..5}.self_attn.q_proj"});
        QCOMPARE(tree.state("layers.{0..31}.self_attn.q_proj"), QVariant(Qt::PartiallyChecked));
        QCOMPARE(tree.text("layers.{0..31}.self_attn.q_proj", TargetTreeModel::Adapters), QStringLiteral("3 of 32"));
        for (const char* layer : {"layers.3.self_attn.v_proj", "layers.4.self_attn.v_proj", "layers.5.self_attn.v_proj"}) tree.toggle(layer, Qt::Checked);
        QCOMPARE(tree.recipe.list("lora.targets"), Items{"layers.{3..5}.self_attn.{q_proj,v_proj}"});
        tree.toggle("layers.{0..31}.self_attn.q_proj", Qt::Checked); // from some to all
        tree.toggle("layers.3.self_attn.v_proj", Qt::Unchecked);
        QCOMPARE(tree.recipe.list("lora.targets"), (Items{"q_proj", "layers.{4,5}.self_attn.v_proj"}));
    }

    void whatIsWrittenIsReadBackAsTheSameTicks_data() {
        QTest::addColumn<QString>("source");
        for (const char* source : {"baichuan-7b", "internlm-7b", "internlm2-7b", "internlm3-8b", "transformer-tiny"}) QTest::newRow(source) << source;
    }
    void whatIsWrittenIsReadBackAsTheSameTicks() {
        QFETCH(QString, source);
        const graph::ExpandedModel& model = modelOf(source.toStdString());
        const LoraChoice all = chooseLora(loraRecipe(source.toStdString(), {"all-linear"}), model);
        std::uint32_t random = 7; // a fixed sequence of choices
        for (int round = 0; round < 40; ++round) {
            std::vector<bool> ticked(model.cells.size());
            for (std::size_t i = 0; i < ticked.size(); ++i) {
                random = random * 1664525u + 1013904223u;
                const std::uint32_t chance = round < 20 ? 2 : 12;
                ticked[i] = all.possible[i] && (random >> 16) % chance == 0;
            }
            if (std::find(ticked.begin(), ticked.end(), true) == ticked.end()) continue;
            const Items targets = targetsFor(model, all.possible, ticked);
            const LoraChoice back = chooseLora(loraRecipe(source.toStdString(), targets), model);
            QVERIFY2(!back.error, back.error ? back.error->message.c_str() : "");
            QVERIFY2(back.ticked == ticked, targets.front().c_str());
        }
    }

    void chosenLayersBoundWhatCanBeTicked() {
        recipe::Recipe recipe = loraRecipe("internlm-7b", {"q_proj"});
        QVERIFY(recipe.set("lora.layers_to_transform", Items{"0..3"}));
        const LoraChoice choice = chooseLora(recipe, modelOf("internlm-7b"));
        QCOMPARE(choice.counts.adaptedCells, 4);
        TargetTreeModel model;
        model.setAnalysis(analysisOf("internlm-7b"), choice);
        QCOMPARE(model.indexOf(QStringLiteral("layers.{0..31}.self_attn.q_proj")).data(Qt::CheckStateRole), QVariant(Qt::Checked));
        QVERIFY(!(model.flags(model.indexOf(QStringLiteral("layers.4.self_attn.q_proj"))) & Qt::ItemIsEnabled));
    }

    void aPatternThatMatchesNothingIsAnErrorWithTheRealNamesAndTheRestStaysTicked() {
        const LoraChoice choice = chooseLora(loraRecipe("internlm-7b", {"q_proj", "W_pack"}), modelOf("internlm-7b"));
        QVERIFY(choice.error);
        QCOMPARE(choice.error->place, std::string("lora.targets"));
        QVERIFY(choice.error->hint.find("layers.{0..31}.self_attn.q_proj") != std::string::npos);
        QVERIFY(choice.ticked == ticksOf("internlm-7b", {"q_proj"}));
    }

    void quickChoicesKnowPackedMatrices() {
        const auto meant = [](const std::string& source, QuickTargets which) {
            const graph::ExpandedModel& model = modelOf(source);
            const LoraChoice all = chooseLora(loraRecipe(source, {"all-linear"}), model);
            return targetsFor(model, all.possible, quickTargets(model, all.possible, which));
        };
        QCOMPARE(meant("internlm-7b", QuickTargets::QueryAndValue), (Items{"q_proj", "v_proj"}));
        QCOMPARE(meant("internlm-7b", QuickTargets::Attention), (Items{"q_proj", "k_proj", "v_proj", "o_proj"}));
        QCOMPARE(meant("baichuan-7b", QuickTargets::QueryAndValue), Items{"W_pack"});
        QCOMPARE(meant("internlm2-7b", QuickTargets::QueryAndValue), Items{"wqkv"});
        QCOMPARE(meant("internlm2-7b", QuickTargets::Attention), (Items{"wqkv", "wo"}));
        QCOMPARE(meant("internlm-7b", QuickTargets::AllLinear), Items{"all-linear"});
    }

    void theTreeFollowsTheRecipeAndTheRecipeTheTree() {
        RecipeDocument document;
        ModelAnalyser analyser;
        LoraPanel panel(document, analyser);
        panel.show();
        QObject::connect(&document, &RecipeDocument::replaced, &analyser, [&] { analyser.request(document.recipe()); });
        document.take(loraRecipe("internlm-tiny", {"q_proj"}), QStringLiteral("test"));
        auto* tree = panel.findChild<QTreeView*>();
        QTRY_VERIFY(tree->model()->rowCount() > 0);
        auto* model = qobject_cast<TargetTreeModel*>(tree->model());
        const QModelIndex key = model->indexOf(QStringLiteral("layers.{0..3}.self_attn.k_proj"));
        QVERIFY(key.isValid());
        QCOMPARE(key.data(Qt::CheckStateRole), QVariant(Qt::Unchecked));
        document.setValue(QStringLiteral("lora.targets"), Items{"k_proj"});
        QCOMPARE(key.data(Qt::CheckStateRole), QVariant(Qt::Checked));
        tree->setCurrentIndex(key);
        tree->setFocus();
        QTest::keyClick(tree, Qt::Key_Space); // the last one: refused with words, not silently kept
        QVERIFY(document.recipe().list("lora.targets").empty());
        QVERIFY(!panel.error().message.empty());
        document.setValue(QStringLiteral("lora.targets"), Items{"k_proj"});
        document.setValue(QStringLiteral("lora.target_regex"), std::string(".*\\.v_proj")); // replaces the list
        QVERIFY(document.recipe().isDefault("lora.targets"));
        QVERIFY(panel.error().message.empty());
        QCOMPARE(model->indexOf(QStringLiteral("layers.{0..3}.self_attn.v_proj")).data(Qt::CheckStateRole), QVariant(Qt::Checked));
        QTest::keyClick(tree, Qt::Key_Space);
        QCOMPARE(document.recipe().text("lora.target_regex"), std::string());
        QCOMPARE(document.recipe().list("lora.targets"), (Items{"k_proj", "v_proj"}));
    }
};

QTEST_MAIN(TestLoraTargets)
#include "tst_lora_targets.moc"
