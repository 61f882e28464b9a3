// The precision panel: what it lists, counts and warns of, as the engine's own table has it.
#include "ui/common/recipe_document.h"
#include "ui/train/precision_panel.h"

#include <QApplication>
#include <QLabel>
#include <QTest>
#include <QTreeWidget>

using namespace celloom;
using namespace celloom::ui;

class TestPrecisionPanel : public QObject {
    Q_OBJECT

    struct Bench {
        RecipeDocument document;
        ModelAnalyser analyser;
        PrecisionPanel panel{document, analyser};

        Bench() {
            panel.show();
            QObject::connect(&document, &RecipeDocument::valueChanged, &analyser, [this] { analyser.request(document.recipe()); });
            document.setValue(QStringLiteral("device"), std::string("cpu"));
        }
        void set(const char* key, recipe::FieldValue value) {
            document.setValue(QString::fromLatin1(key), std::move(value));
            QTRY_VERIFY(analyser.isSettled());
        }
        QTreeWidget* tree() { return panel.findChild<QTreeWidget*>(QStringLiteral("precisionTree")); }
        QString text(const char* name) {
            auto* label = panel.findChild<QLabel*>(QString::fromLatin1(name));
            return label->isVisibleTo(&panel) ? label->text() : QString();
        }
        QTreeWidgetItem* row(const QString& cells) {
            const auto found = tree()->findItems(cells, Qt::MatchExactly | Qt::MatchRecursive, 0);
            return found.size() == 1 ? found.front() : nullptr;
        }
    };

private Q_SLOTS:
    void itIsHiddenWhereEverythingIsFloat32() {
        Bench bench;
        QTRY_VERIFY(bench.analyser.latest() && bench.analyser.isSettled());
        QVERIFY(bench.panel.isHidden());
    }

    void cellsAreListedByTypeWithWhatTheyGiveAndWhy() {
        Bench bench;
        bench.set("precision.amp_level", std::string("O2"));
        bench.set("precision.deny", std::vector<std::string>{"SiLU"});
        QVERIFY(!bench.panel.isHidden());
        QCOMPARE(bench.tree()->topLevelItemCount(), 2); // a group for each type
        const QTreeWidgetItem* dense = bench.row(QStringLiteral("layers.{0..3}.mlp.up_proj"));
        QVERIFY(dense);
        QCOMPARE(dense->text(1), QStringLiteral("Dense"));
        QCOMPARE(dense->text(2), QStringLiteral("bfloat16"));
        QCOMPARE(dense->text(4), QStringLiteral("level"));
        const QTreeWidgetItem* norm = bench.row(QStringLiteral("layers.{0..3}.input_layernorm"));
        QVERIFY(norm);
        QCOMPARE(norm->text(2), QStringLiteral("float32"));
        QCOMPARE(norm->text(3), QStringLiteral("bfloat16"));
        std::size_t denied = 0, cells = bench.analyser.latest()->expansion.model.cells.size();
        for (const recipe::PrecisionRow& row : bench.analyser.latest()->precisionRows) {
            QVERIFY(bench.row(QString::fromStdString(row.name)));
            denied += row.precision.reason == recipe::CellPrecision::Reason::Denied ? std::size_t(row.count) : 0;
        }
        QCOMPARE(denied, std::size_t(4)); // one in each layer
        // 4 × 2 norms, the last norm, 4 SiLU
        QVERIFY2(bench.text("precisionCounts").contains(QStringLiteral("13 cells in float32")) ||
                     bench.text("precisionCounts").contains(QStringLiteral("13 cell(s) in float32")),
                 qPrintable(bench.text("precisionCounts")));
        QVERIFY(bench.text("precisionCounts").contains(QString::number(cells - 13)));
    }

    void aGroupThatIsFoldedStaysFolded() {
        Bench bench;
        bench.set("precision.amp_level", std::string("O2"));
        QVERIFY(bench.tree()->topLevelItem(0)->isExpanded());
        const QString first = bench.tree()->topLevelItem(0)->data(0, Qt::UserRole).toString();
        bench.tree()->topLevelItem(0)->setExpanded(false);
        bench.set("precision.deny", std::vector<std::string>{"SiLU"});
        for (int i = 0; i < bench.tree()->topLevelItemCount(); ++i) {
            const QTreeWidgetItem* group = bench.tree()->topLevelItem(i);
            QCOMPARE(group->isExpanded(), group->data(0, Qt::UserRole).toString() != first);
        }
    }

    void aProcessorWithoutInstructionsIsSaidBeforeTheRun() {
        Bench bench;
        bench.set("precision.amp_level", std::string("O1"));
        bench.panel.setSupport({true, false});
        QCOMPARE(bench.text("precisionWarning"), QString());
        bench.set("precision.half_type", std::string("float16"));
        QVERIFY(bench.text("precisionWarning").contains(QStringLiteral("float16")));
        bench.panel.setSupport({true, true});
        QCOMPARE(bench.text("precisionWarning"), QString());
        bench.panel.setSupport({false, false});
        bench.set("device", std::string("cuda")); // the run says what the GPU can do
        QCOMPARE(bench.text("precisionWarning"), QString());
    }

    void aListThatNamesNothingIsKeptAsAnErrorOfItsField() {
        Bench bench;
        bench.set("precision.amp_level", std::string("O2"));
        bench.set("precision.deny", std::vector<std::string>{"GroupNorm"});
        QVERIFY(bench.panel.isHidden());
        QVERIFY(bench.analyser.latest()->precisionError);
        QCOMPARE(bench.analyser.latest()->precisionError->place, std::string("precision.deny[0]"));
        QVERIFY(!bench.analyser.latest()->estimate);
    }
};

QTEST_MAIN(TestPrecisionPanel)
#include "tst_precision_panel.moc"
