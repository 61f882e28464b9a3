// A run's rows as curves: what counts, what a resume superseded, the smoothed twin.
#include "ui/live/run_curves.h"
#include "ui/live/run_samples.h"

#include <QTest>

#include <cmath>
#include <limits>

using namespace celloom;
using namespace celloom::ui;

namespace {

store::MetricRow row(std::int64_t step, double value, double time = 0, bool isSuperseded = false) {
    store::MetricRow row;
    row.step = step;
    row.epoch = static_cast<double>(step) / 10;
    row.name = "train/loss";
    row.value = value;
    row.time = 1000 + time;
    row.isSuperseded = isSuperseded;
    return row;
}

} // namespace

class TestRunCurves : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void supersededRowsAreAnotherCurve() {
        RunCurves curves;
        curves.add({row(1, 5), row(2, 4, 1, true), row(2, 4.5, 2), row(3, 4.2, 3)});
        QCOMPARE(curves.curve("train/loss").value, (std::vector<double>{5, 4.5, 4.2}));
        QCOMPARE(curves.superseded("train/loss", XAxis::Step).y, (std::vector<double>{4}));
    }

    void samplesOfStepsThatWereRunAgainAreKnown() {
        const auto sample = [](std::int64_t step, const char* prompt) {
            store::SampleRow row;
            row.step = step;
            row.prompt = prompt;
            return row;
        };
        const std::deque<store::SampleRow> plain{sample(20, "b"), sample(20, "a"), sample(10, "b"), sample(10, "a")};
        QVERIFY(supersededSamples(plain).empty());
        // 10, 20, 30 written, killed; resumed before step 20, and once more before step 20
        const std::deque<store::SampleRow> resumed{sample(20, "b"), sample(20, "a"), sample(20, "b"), sample(20, "a"), sample(30, "b"), sample(30, "a"), sample(20, "b"), sample(20, "a"), sample(10, "b")};
        QCOMPARE(supersededSamples(resumed), (std::set<std::size_t>{2, 3, 4, 5, 6, 7}));
    }

    void partsThatWereRunAgainTwiceStandAtTheirSteps() {
        RunCurves curves;
        curves.add({row(1, 5), row(2, 4, 1, true), row(3, 3, 2, true), row(2, 4.1, 7, true), row(3, 3.1, 8, true), row(2, 4.2, 9)});
        QCOMPARE(curves.superseded("train/loss", XAxis::Step).x, (std::vector<double>{2, 2, 3, 3}));
        QCOMPARE(curves.superseded("train/loss", XAxis::Step).y, (std::vector<double>{4, 4.1, 3, 3.1}));
        QCOMPARE(curves.superseded("train/loss", XAxis::Time).x, (std::vector<double>{1, 2, 7, 8}));
        QCOMPARE(curves.superseded("train/loss", XAxis::Time).y, (std::vector<double>{4, 3, 4.1, 3.1}));
        QCOMPARE(curves.curve("train/loss").value, (std::vector<double>{5, 4.2}));
    }

    void axesAreStepEpochAndTimeSinceTheFirstRow() {
        RunCurves curves;
        curves.add({row(1, 5, 0), row(2, 4, 1.5)});
        const Curve& curve = curves.curve("train/loss");
        QCOMPARE(curve.x(XAxis::Step), (std::vector<double>{1, 2}));
        QCOMPARE(curve.x(XAxis::Epoch), (std::vector<double>{0.1, 0.2}));
        QCOMPARE(curve.x(XAxis::Time), (std::vector<double>{0, 1.5}));
    }

    void aClockThatWasSetBackDoesNotFoldTheCurve() {
        RunCurves curves;
        curves.add({row(1, 5, 10), row(2, 4, 3)});
        QCOMPARE(curves.curve("train/loss").time, (std::vector<double>{0, 0}));
    }

    // With the past weighing one half, corrected for the start: first 4; then (0.25*4 + 0.5*2) / 0.75 = 8/3.
    void smoothingStartsAtTheFirstValueAndSkipsNan() {
        RunCurves curves;
        curves.setSmoothing(0.5);
        curves.add({row(1, 4), row(2, std::numeric_limits<double>::quiet_NaN()), row(3, 2)});
        const std::vector<double>& smooth = curves.curve("train/loss").smooth;
        QCOMPARE(smooth[0], 4.0);
        QVERIFY(std::isnan(smooth[1]));
        QCOMPARE(smooth[2], 8.0 / 3);
    }

    void smoothingMayChangeAfterwards() {
        RunCurves late, early;
        const std::vector<store::MetricRow> rows{row(1, 4), row(2, 1), row(3, 7)};
        late.add(rows);
        late.setSmoothing(0.25);
        early.setSmoothing(0.25);
        early.add(rows);
        QCOMPARE(late.curve("train/loss").smooth, early.curve("train/loss").smooth);
        late.setSmoothing(0);
        QCOMPARE(late.curve("train/loss").smooth, late.curve("train/loss").value);
    }

    // ln(e^2) = 2: the bigram's perplexity stands on the axis of the loss.
    void theBaselinesPerplexityIsDrawnAsALoss() {
        RunCurves curves;
        store::MetricRow baseline = row(0, std::exp(2.0));
        baseline.name = "baseline/bigram_perplexity";
        curves.add({baseline});
        QCOMPARE(curves.curve(RunCurves::kBaselineLoss).last(), 2.0);
    }

    void anUnknownMetricIsEmpty() {
        RunCurves curves;
        QVERIFY(curves.curve("eval/loss").isEmpty());
        QVERIFY(std::isnan(curves.curve("eval/loss").last()));
    }
};

QTEST_GUILESS_MAIN(TestRunCurves)
#include "tst_run_curves.moc"
