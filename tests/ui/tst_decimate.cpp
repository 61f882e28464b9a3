// Thinning of curves: no extreme and no NaN is lost, and there are at most two points a pixel.
#include "ui/common/decimate.h"
#include "ui/common/plot.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace celloom::ui;

namespace {

constexpr int kColumns = 600;

std::vector<double> counting(std::size_t count) {
    std::vector<double> x(count);
    for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<double>(i);
    return x;
}

bool holds(const Decimated& thin, double x, double y) {
    return std::find(thin.points.begin(), thin.points.end(), QPointF(x, y)) != thin.points.end();
}

} // namespace

class TestDecimate : public QObject {
    Q_OBJECT

private Q_SLOTS:
    // A million points of 1, with 50 at step 123 457 and NaN at 500 000: the case that other dashboards lost.
    void aSpikeAndANanAmongAMillionPointsStay() {
        const std::vector<double> x = counting(1'000'000);
        std::vector<double> y(x.size(), 1.0);
        y[123'457] = 50;
        y[500'000] = std::numeric_limits<double>::quiet_NaN();
        const Decimated thin = decimate(x, y, 0, 999'999, kColumns);
        QVERIFY(holds(thin, 123'457, 50));
        QCOMPARE(thin.notFinite, std::vector<double>{500'000});
        QVERIFY(thin.points.size() <= 2 * (kColumns + 3));
        for (const QPointF& point : thin.points) QVERIFY(std::isfinite(point.y()));
    }

    void leastAndGreatestOfEachColumnStayInTheirOrder() {
        // Ten points a column: a low before a high in even columns, a high before a low in odd ones.
        const std::vector<double> x = counting(10 * kColumns);
        std::vector<double> y(x.size(), 0.0);
        for (std::size_t column = 0; column < kColumns; ++column) {
            const bool lowFirst = column % 2 == 0;
            y[column * 10 + 3] = lowFirst ? -1 : 1;
            y[column * 10 + 6] = lowFirst ? 1 : -1;
        }
        const Decimated thin = decimate(x, y, 0, 10.0 * kColumns, kColumns);
        QCOMPARE(thin.points.size(), std::size_t(2 * kColumns));
        for (std::size_t i = 1; i < thin.points.size(); ++i) QVERIFY(thin.points[i - 1].x() < thin.points[i].x());
        QCOMPARE(thin.points[0], QPointF(3, -1));
        QCOMPARE(thin.points[1], QPointF(6, 1));
        QCOMPARE(thin.points[2], QPointF(13, 1));
        QCOMPARE(thin.points[3], QPointF(16, -1));
    }

    void fewPointsStayAsTheyAre() {
        const std::vector<double> x{0, 1, 2, 3}, y{5, 4, 4, 7};
        const Decimated thin = decimate(x, y, 0, 3, kColumns);
        const std::vector<QPointF> expected{{0, 5}, {1, 4}, {2, 4}, {3, 7}};
        QCOMPARE(thin.points, expected);
    }

    void aPartKeepsOnePointBeyondEachEdge() {
        const std::vector<double> x = counting(100), y(100, 2.0);
        const Decimated thin = decimate(x, y, 40.5, 42.5, kColumns);
        const std::vector<QPointF> expected{{40, 2}, {41, 2}, {42, 2}, {43, 2}};
        QCOMPARE(thin.points, expected);
    }

    void infinitiesAreMarkedAndNotDrawn() {
        const double infinity = std::numeric_limits<double>::infinity();
        const Decimated thin = decimate({0, 1, 2}, {1, infinity, 2}, 0, 2, kColumns);
        const std::vector<QPointF> expected{{0, 1}, {2, 2}};
        QCOMPARE(thin.points, expected);
        QCOMPARE(thin.notFinite, std::vector<double>{1});
    }

    void nothingGivesNothing() {
        QVERIFY(decimate({}, {}, 0, 1, kColumns).points.empty());
        const Decimated one = decimate({5}, {7}, 5, 5, kColumns);
        QCOMPARE(one.points, (std::vector<QPointF>{{5, 7}}));
    }

    void stepsOfAnAxisAreRound_data() {
        QTest::addColumn<double>("span");
        QTest::addColumn<int>("most");
        QTest::addColumn<double>("step");
        QTest::newRow("ten into five") << 10.0 << 5 << 2.0;
        QTest::newRow("seven into five") << 7.0 << 5 << 2.0;
        QTest::newRow("small") << 0.0009 << 3 << 0.0005;
        QTest::newRow("large") << 8000.0 << 8 << 1000.0;
        QTest::newRow("no span") << 0.0 << 8 << 1.0;
    }
    void stepsOfAnAxisAreRound() {
        QFETCH(double, span);
        QFETCH(int, most);
        QFETCH(double, step);
        QVERIFY(std::abs(niceStep(span, most) - step) < step * 1e-9);
    }
};

QTEST_GUILESS_MAIN(TestDecimate)
#include "tst_decimate.moc"
