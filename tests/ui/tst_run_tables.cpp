// The tables of runs and of events, held to the rules of Qt's models, and what they sort and find.
#include "ui/common/theme.h"
#include "ui/history/runs_model.h"
#include "ui/live/events_model.h"

#include <QAbstractItemModelTester>
#include <QApplication>
#include <QTest>

#include <limits>

using namespace celloom;
using namespace celloom::ui;

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

store::RunRecord record(int number, const std::string& name, store::RunState state, double loss) {
    store::RunRecord run;
    run.number = number;
    run.folder = "00" + std::to_string(number) + "-" + name;
    run.name = name;
    run.state = state;
    run.model = "baichuan-tiny";
    run.lastLoss = loss;
    run.lastPerplexity = run.tokensPerSecond = run.learningRate = kUnknown;
    return run;
}

RunListPtr list(std::vector<store::RunRecord> runs) {
    return std::make_shared<const std::vector<store::RunRecord>>(std::move(runs));
}

RunListPtr three() {
    return list({record(12, "novel", store::RunState::Running, kUnknown), record(11, "novel", store::RunState::Finished, 2.5),
                 record(9, "poems", store::RunState::Interrupted, 3.25)});
}

QStringList numbers(const QAbstractItemModel& model) {
    QStringList out;
    for (int row = 0; row < model.rowCount(); ++row) out.append(model.index(row, RunsModel::Number).data().toString());
    return out;
}

} // namespace

class TestRunTables : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theModelsKeepQtsRulesThroughEveryChange() {
        RunsModel runs;
        RunsFilter filter;
        filter.setSourceModel(&runs);
        QAbstractItemModelTester runsTester(&runs, QAbstractItemModelTester::FailureReportingMode::QtTest);
        QAbstractItemModelTester filterTester(&filter, QAbstractItemModelTester::FailureReportingMode::QtTest);
        runs.setRuns(list({}));
        runs.setRuns(three());
        runs.setRuns(three()); // the same runs again: no reset
        runs.setProgress(QStringLiteral("0012-novel"), 5, 10, 60);
        runs.setCurrent(QStringLiteral("0011-novel"));
        filter.sort(RunsModel::Loss);
        filter.setWords(QStringLiteral("novel"));
        filter.setStates({store::RunState::Finished});
        runs.setRuns(list({record(1, "x", store::RunState::Failed, 1)}));
    }

    void eventsKeepQtsRulesAndComeNewestFirst() {
        Theme theme(*qApp);
        EventsModel events(theme);
        QAbstractItemModelTester tester(&events, QAbstractItemModelTester::FailureReportingMode::QtTest);
        std::vector<store::EventRow> rows(2);
        rows[0].message = "started";
        rows[1].message = "saved";
        rows[1].hint = "in 0.9 s";
        events.add(rows);
        QCOMPARE(events.rowCount(), 2);
        QCOMPARE(events.index(0, EventsModel::Message).data().toString(), QStringLiteral("saved in 0.9 s"));
        events.add(std::vector<store::EventRow>(6000));
        QCOMPARE(events.rowCount(), 1000); // the database has the rest
        events.clear();
        QCOMPARE(events.rowCount(), 0);
    }

    void numbersSortByValueAndUnknownOnesComeLast() {
        RunsModel runs;
        RunsFilter filter;
        filter.setSourceModel(&runs);
        runs.setRuns(three());
        filter.sort(RunsModel::Number);
        QCOMPARE(numbers(filter), (QStringList{QStringLiteral("9"), QStringLiteral("11"), QStringLiteral("12")}));
        filter.sort(RunsModel::Loss);
        QCOMPARE(numbers(filter), (QStringList{QStringLiteral("11"), QStringLiteral("9"), QStringLiteral("12")}));
    }

    void allWordsMustBeFoundInNameModelTagsNoteOrOutcome() {
        auto runs = *three();
        runs[1].tags = "baseline";
        runs[2].note = "rate too high";
        RunsModel model;
        RunsFilter filter;
        filter.setSourceModel(&model);
        model.setRuns(list(runs));
        filter.setWords(QStringLiteral("NOVEL base"));
        QCOMPARE(numbers(filter), QStringList{QStringLiteral("11")});
        filter.setWords(QStringLiteral("too high"));
        QCOMPARE(numbers(filter), QStringList{QStringLiteral("9")});
        filter.setWords(QStringLiteral("nothing"));
        QCOMPARE(filter.rowCount(), 0);
    }

    void comparingKeepsTheOpenRunBesideTheNewest() {
        RunsModel model;
        RunsFilter filter;
        filter.setSourceModel(&model);
        model.setRuns(three());
        filter.setOnlyNewest(1, QStringLiteral("009-poems"));
        QCOMPARE(numbers(filter), (QStringList{QStringLiteral("12"), QStringLiteral("9")}));
    }

    void unknownNumbersReadAsADashAndNotAsZero() {
        RunsModel model;
        model.setRuns(three());
        QCOMPARE(model.index(0, RunsModel::Loss).data().toString(), QStringLiteral("–"));
        QCOMPARE(model.index(1, RunsModel::Loss).data().toString(), QStringLiteral("2.500"));
    }
};

QTEST_MAIN(TestRunTables)
#include "tst_run_tables.moc"
