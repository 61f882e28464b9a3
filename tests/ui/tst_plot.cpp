// The chart over Qt Charts: ranges that hold what is drawn, marks for what cannot be drawn, zooming.
#include "ui/common/plot.h"
#include "ui/common/theme.h"

#include <QApplication>
#include <QChartView>
#include <QLineSeries>
#include <QLogValueAxis>
#include <QScatterSeries>
#include <QSignalSpy>
#include <QTest>
#include <QValueAxis>

#include <cmath>
#include <limits>

using namespace celloom::ui;

class TestPlot : public QObject {
    Q_OBJECT
    Theme m_theme{*qApp};

    static QChart* chartOf(Plot& plot) { return plot.findChild<QChartView*>()->chart(); }
    static QValueAxis* axis(Plot& plot, Qt::Orientation orientation) {
        return qobject_cast<QValueAxis*>(chartOf(plot)->axes(orientation).value(0));
    }
    static QScatterSeries* marks(Plot& plot) {
        for (QAbstractSeries* series : chartOf(plot)->series()) {
            if (auto* scatter = qobject_cast<QScatterSeries*>(series)) return scatter;
        }
        return nullptr;
    }

private Q_SLOTS:
    void theAxesHoldEveryValueOfEveryLine() {
        const std::vector<double> x{0, 10, 20}, a{1, 5, 2}, b{-3, 0, 1};
        Plot plot(m_theme, {{"blue"}, {"orange"}});
        plot.setData(0, {&x, &a});
        plot.setData(1, {&x, &b});
        plot.redraw();
        QCOMPARE(axis(plot, Qt::Horizontal)->min(), 0.0);
        QCOMPARE(axis(plot, Qt::Horizontal)->max(), 20.0);
        QVERIFY(axis(plot, Qt::Vertical)->min() <= -3);
        QVERIFY(axis(plot, Qt::Vertical)->max() >= 5);
    }

    // A smoothed constant differs from itself by rounding: no axis may be that narrow.
    void valuesThatDifferByRoundingGetARangeThatCanBeDrawn() {
        const std::vector<double> x{0, 1, 2}, y{1, std::nextafter(1.0, 2.0), 1};
        Plot plot(m_theme, {{"blue"}});
        plot.setData(0, {&x, &y});
        plot.redraw();
        QVERIFY(axis(plot, Qt::Vertical)->max() - axis(plot, Qt::Vertical)->min() > 0.01);
    }

    void ticksStayFewWhenARangeGrowsOrShrinksAThousandfold() {
        std::vector<double> x{0, 1}, y{0, 0.05};
        Plot plot(m_theme, {{"blue"}});
        plot.resize(400, 300);
        for (double top : {0.05, 500.0, 0.05}) {
            y[1] = top;
            plot.setData(0, {&x, &y});
            plot.redraw();
            const QValueAxis* vertical = axis(plot, Qt::Vertical);
            QVERIFY((vertical->max() - vertical->min()) / vertical->tickInterval() < 12);
        }
    }

    void nanIsMarkedInsideThePlotAndNotDrawnAsANumber() {
        const std::vector<double> x{0, 1, 2}, y{3, std::numeric_limits<double>::quiet_NaN(), 4};
        Plot plot(m_theme, {{"blue", 1, 1, false, true}});
        plot.setData(0, {&x, &y});
        plot.redraw();
        QCOMPARE(marks(plot)->count(), 1);
        QCOMPARE(marks(plot)->at(0).x(), 1.0);
        QVERIFY(marks(plot)->at(0).y() > axis(plot, Qt::Vertical)->min());
        QVERIFY(marks(plot)->at(0).y() < axis(plot, Qt::Vertical)->max());
        QVERIFY(axis(plot, Qt::Vertical)->min() > 2); // no 0 among the values
    }

    void aLogarithmicAxisLeavesOutWhatHasNoLogarithm() {
        const std::vector<double> x{0, 1, 2}, y{0, 0.1, 100};
        Plot plot(m_theme, {{"blue"}});
        plot.setData(0, {&x, &y});
        plot.setLogarithmic(true);
        auto* logarithmic = qobject_cast<QLogValueAxis*>(chartOf(plot)->axes(Qt::Vertical).value(0));
        QVERIFY(logarithmic);
        QVERIFY(logarithmic->min() > 0 && logarithmic->min() <= 0.1 && logarithmic->max() >= 100);
        plot.setLogarithmic(false);
        QVERIFY(axis(plot, Qt::Vertical));
    }

    void aViewShowsAPartAndADoubleClickShowsAll() {
        std::vector<double> x, y;
        for (int i = 0; i < 1000; ++i) {
            x.push_back(i);
            y.push_back(i);
        }
        Plot plot(m_theme, {{"blue"}});
        plot.resize(400, 300);
        plot.show();
        QVERIFY(QTest::qWaitForWindowExposed(&plot));
        plot.setData(0, {&x, &y});
        plot.setView(std::pair{100.0, 200.0});
        QCOMPARE(axis(plot, Qt::Horizontal)->max(), 200.0);
        QVERIFY(axis(plot, Qt::Vertical)->max() < 250);
        QTest::mouseDClick(plot.findChild<QChartView*>()->viewport(), Qt::LeftButton, {}, QPoint(200, 100));
        QVERIFY(!plot.view());
        QCOMPARE(axis(plot, Qt::Horizontal)->max(), 999.0);
    }

    void noDataIsNoNumbers() {
        Plot plot(m_theme, {{"blue"}});
        plot.redraw();
        QVERIFY(!axis(plot, Qt::Vertical)->labelsVisible());
    }
};

QTEST_MAIN(TestPlot)
#include "tst_plot.moc"
