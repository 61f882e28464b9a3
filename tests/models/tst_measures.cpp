// What a recipe says about losses, metrics and watched measurements: read, checked, explained.
#include "models/recipe/measures.h"

#include <QTest>

using namespace celloom;
using namespace celloom::recipe;

namespace {

Recipe with(std::initializer_list<std::pair<const char*, const char*>> changes) {
    Recipe recipe;
    for (const auto& [key, value] : changes)
        if (auto status = recipe.setFromText(key, value); !status) qFatal("%s", status.error().text().c_str());
    return recipe;
}

/// The problems of the field, their texts together.
QString said(const Recipe& recipe, const char* key, Problem::Severity severity = Problem::Severity::Error) {
    QString out;
    for (const Problem& problem : recipe.validate())
        if (problem.key == key && problem.severity == severity) out += QString::fromStdString(problem.message + " " + problem.hint);
    return out;
}

} // namespace

class TestMeasures : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void termsAreRead() {
        QVERIFY(parseLossTerm("logits -> label: SoftmaxCrossEntropyWithLogits weight=0.3").value() ==
                (LossTermSpec{"logits", "label", "SoftmaxCrossEntropyWithLogits", 0.3}));
        QVERIFY(parseLossTerm(" a->b :MSELoss ").value() == (LossTermSpec{"a", "b", "MSELoss", 1}));
    }

    void wrongTermsSayWhatIsWrong_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("said");
        QTest::newRow("no arrow") << "logits label: MSELoss" << "not in this form";
        QTest::newRow("no colon") << "logits -> label MSELoss" << "not in this form";
        QTest::newRow("no label") << "logits -> : MSELoss" << "names no output or no label";
        QTest::newRow("unknown loss") << "a -> b: MSEloss" << "Did you mean MSELoss";
        QTest::newRow("weight 0") << "a -> b: MSELoss weight=0" << "no weight above 0";
        QTest::newRow("weight NaN") << "a -> b: MSELoss weight=nan" << "no weight above 0";
        QTest::newRow("more after it") << "a -> b: MSELoss weight=1 x" << "no weight above 0";
        QTest::newRow("another word") << "a -> b: MSELoss heavy" << "no weight above 0";
    }
    void wrongTermsSayWhatIsWrong() {
        QFETCH(QString, text);
        QFETCH(QString, said);
        const auto term = parseLossTerm(text.toStdString());
        QVERIFY(!term);
        QVERIFY2(QString::fromStdString(term.error().message + " " + term.error().hint).contains(said), term.error().text().c_str());
    }

    void aRunOnColumnsNeedsALoss() {
        QVERIFY(said(with({{"data.format", "tensors"}}), "loss.type").contains("not chosen"));
        QVERIFY(said(with({{"data.format", "tensors"}, {"loss.type", "MSELoss"}}), "loss.type").isEmpty());
        QCOMPARE(lossTermsOf(with({{"data.format", "tensors"}, {"loss.type", "MSELoss"}})).value().size(), std::size_t(1));
        QVERIFY(said(with({{"data.format", "tensors"}, {"loss.terms", "a -> b: MSELoss, c -> d: Huber"}}), "loss.terms").contains("Huber"));
        QVERIFY(said(with({{"loss.type", "MSELoss"}}), "loss.type").contains("tokens")); // of a run on texts
        QVERIFY(said(with({{"data.format", "tensors"}, {"loss.type", "MSELoss"}, {"kind", "finetune"}}), "data.format").contains("fine-tuning"));
    }

    void metricsAreChecked() {
        QVERIFY(said(with({{"evaluate.metrics", "accuracy,F1"}}), "evaluate.metrics").isEmpty());
        QVERIFY(said(with({{"evaluate.metrics", "acuracy"}}), "evaluate.metrics").contains("Did you mean \"accuracy\""));
        QVERIFY(said(with({{"evaluate.metrics", "mae,mae"}}), "evaluate.metrics").contains("twice"));
        QVERIFY(said(with({{"evaluate.metrics", "bleu"}}), "evaluate.metrics").contains("none are asked for"));
        QVERIFY(said(with({{"evaluate.metrics", "bleu"}, {"kind", "finetune"}, {"evaluate.generate", "5"}}), "evaluate.metrics").isEmpty());
    }

    void whatIsWatchedMustBeMeasured() {
        QVERIFY(said(with({{"callbacks.early_stopping_patience", "2"}}), "callbacks.early_stopping_monitor").isEmpty());
        const Recipe wrong = with({{"callbacks.early_stopping_patience", "2"}, {"callbacks.early_stopping_monitor", "eval_accuracy"}});
        QVERIFY(said(wrong, "callbacks.early_stopping_monitor").contains("no evaluation measures"));
        const Recipe right = with({{"callbacks.early_stopping_patience", "2"}, {"callbacks.early_stopping_monitor", "eval_accuracy"}, {"evaluate.metrics", "accuracy"}});
        QVERIFY(said(right, "callbacks.early_stopping_monitor").isEmpty());
        const Recipe none = with({{"callbacks.reduce_lr_patience", "2"}, {"data.validation_fraction", "0"}});
        QVERIFY(said(none, "callbacks.reduce_lr_monitor").contains("no validation data"));
        QVERIFY(said(none, "callbacks.reduce_lr_patience", Problem::Severity::Warning).contains("schedule"));
        QVERIFY(said(with({{"callbacks.reduce_lr_patience", "2"}, {"callbacks.reduce_lr_monitor", "loss"}, {"data.validation_fraction", "0"}}),
                     "callbacks.reduce_lr_monitor").isEmpty());
    }
};

QTEST_GUILESS_MAIN(TestMeasures)
#include "tst_measures.moc"
