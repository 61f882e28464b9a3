// The Live page and the history with runs of each kind: curves for those that make steps, numbers for the others; buttons for what a run can obey.
#include "models/base/files.h"
#include "models/store/run_lock.h"
#include "tests/ui/services_bench.h"
#include "ui/history/runs_model.h"
#include "ui/live/live_page.h"
#include "ui/live/metric_card.h"
#include "ui/live/results_card.h"

#include <QPushButton>
#include <QTest>
#include <QToolButton>

#include <optional>

using namespace celloom;
using namespace celloom::ui;

namespace {

struct Bench : test::ServicesBench {
    LivePage page{services};
    std::optional<store::RunLock> lock;

    /// A run that is going on, as its child leaves it.
    store::RunFolder begin(const std::string& recipe, const std::vector<std::pair<std::string, double>>& metrics) {
        const auto folder = *services.store.workspace().createRun("run");
        if (!writeFileAtomically(folder.recipe(), recipe)) qFatal("no recipe");
        lock = std::move(*store::RunLock::take(folder));
        if (!lock->write({.child = 4711})) qFatal("no lock");
        auto writer = *store::RunWriter::open(folder.database());
        store::Progress progress;
        progress.state = store::RunState::Running;
        progress.step = 3;
        progress.totalSteps = 12;
        progress.pid = 4711;
        writer->progress(progress);
        for (const auto& [name, value] : metrics) writer->metric(3, 0, name, value);
        if (!writer->flush()) qFatal("not written");
        return folder;
    }
    void show(const store::RunFolder& folder) {
        page.resize(1200, 800);
        page.show();
        services.store.refreshRuns();
        page.open(QString::fromStdString(folder.name()));
    }
    QToolButton* button(const QString& text) const {
        for (auto* one : page.findChildren<QToolButton*>())
            if (one->text() == text) return one;
        return nullptr;
    }
    bool showsCharts() const {
        const auto cards = page.findChildren<MetricCard*>();
        return std::any_of(cards.begin(), cards.end(), [](const MetricCard* card) { return card->isVisible(); });
    }
};

} // namespace

class TestRunKinds : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aTrainingHasCurvesAndCanBeAsked() {
        Bench bench;
        const auto folder = bench.begin(R"({"data": {"train": ["/a.txt"]}})", {{"train/loss", 3.5}});
        QVERIFY(writeFileAtomically(folder.tokenizer(), "there"));
        bench.show(folder);
        QTRY_VERIFY(bench.button("Evaluate now")->isVisible() && bench.button("Write now")->isVisible());
        QVERIFY(bench.showsCharts() && !bench.page.findChild<ResultsCard*>()->isVisible());
        QVERIFY(bench.button("Evaluate now")->isEnabled() && bench.button("Write now")->isEnabled());
    }

    void whatATrainingCannotDoIsDisabledWithTheReason() {
        Bench bench;
        bench.show(bench.begin(R"({"data": {"train": ["/a.safetensors"], "validation_fraction": 0}})", {}));
        QTRY_VERIFY(bench.button("Evaluate now")->isVisible());
        QVERIFY(!bench.button("Evaluate now")->isEnabled() && !bench.button("Write now")->isEnabled());
        QVERIFY(bench.button("Evaluate now")->toolTip().contains("no validation data"));
        QVERIFY(bench.button("Write now")->toolTip().contains("no tokenizer"));
    }

    void anEvaluationShowsItsNumbers() {
        Bench bench;
        bench.show(bench.begin(R"({"kind": "evaluate", "model": {"weights": "/m"}, "data": {"validation": ["/a.txt"]}})",
                               {{"eval/loss", 2.0}, {"eval/perplexity", 7.389}, {"eval/exact_match", 0.625}, {"eval/f1", 0.5}, {"system/memory_bytes", 1e9}}));
        auto* results = bench.page.findChild<ResultsCard*>();
        QTRY_VERIFY(results->isVisible() && results->values().size() == 4);
        QVERIFY(!bench.showsCharts());
        const auto values = results->values();
        QCOMPARE(values[0], (std::pair<QString, QString>("Loss", "2.000")));
        QCOMPARE(values[2], (std::pair<QString, QString>("Answered exactly as expected", "62.5 %")));
        QCOMPARE(values[3].first, QStringLiteral("f1")); // a metric of the user's, under its own name
        for (const char* text : {"Evaluate now", "Write now", "Change…"}) QVERIFY(!bench.button(QString::fromUtf8(text))->isVisible());
        const auto buttons = bench.page.findChildren<QPushButton*>();
        QTRY_VERIFY(std::any_of(buttons.begin(), buttons.end(), [](auto* one) { return one->text() == QLatin1String("Pause") && one->isVisible(); }));
        QVERIFY(std::none_of(buttons.begin(), buttons.end(), [](auto* one) { return one->text() == QLatin1String("Save now") && one->isVisible(); }));
    }

    void theHistoryTellsKindsApart() {
        store::RunRecord record;
        record.folder = "0001-a";
        record.number = 1;
        record.kind = "predict";
        RunsModel model;
        model.setRuns(std::make_shared<const std::vector<store::RunRecord>>(1, record));
        QCOMPARE(model.index(0, RunsModel::Kind).data().toString(), QStringLiteral("Predict"));
    }
};

QTEST_MAIN(TestRunKinds)
#include "tst_run_kinds.moc"
