#include "ui/common/background.h"

#include <QTest>
#include <QThread>

#include <algorithm>
#include <memory>
#include <vector>

using namespace celloom::ui;

class TestBackground : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void worksElsewhereAndAnswersHere();
    void keepsTheOrder();
    void tellsOnTheWay();
    void finishesWhatWasAskedFor();
    void mayEndWhileItIsAnswering();
};

void TestBackground::worksElsewhereAndAnswersHere() {
    Background background;
    QThread *worked = nullptr, *answered = nullptr;
    background.run([] { return std::pair(QThread::currentThread(), std::make_unique<int>(7)); }, // what can only be moved
                   [&](std::pair<QThread*, std::unique_ptr<int>> result) {
                       QCOMPARE(*result.second, 7);
                       worked = result.first;
                       answered = QThread::currentThread();
                   });
    QVERIFY(!answered);
    QTRY_COMPARE(answered, thread());
    QVERIFY(worked && worked != thread());
}

void TestBackground::keepsTheOrder() {
    Background background;
    std::vector<int> worked, answered; // the first of the one thread alone, until all is answered
    for (int i = 0; i < 100; ++i) {
        background.run([&worked, i] { worked.push_back(i); }, [&answered, i] { answered.push_back(i); });
    }
    QTRY_COMPARE(answered.size(), std::size_t{100});
    QCOMPARE(worked, answered);
    QVERIFY(std::is_sorted(worked.begin(), worked.end()));
}

void TestBackground::tellsOnTheWay() {
    Background background;
    std::vector<QString> heard;
    background.run(
        [&] {
            background.tell([&heard] { heard.push_back(QStringLiteral("half")); });
            return QStringLiteral("whole");
        },
        [&](const QString& last) { heard.push_back(last); });
    QTRY_COMPARE(heard.size(), std::size_t{2});
    QCOMPARE(heard, (std::vector<QString>{QStringLiteral("half"), QStringLiteral("whole")}));
}

/// Files that are to be written are; nobody is told who may be gone.
void TestBackground::finishesWhatWasAskedFor() {
    int worked = 0;
    bool isTold = false;
    {
        Background background;
        for (int i = 0; i < 20; ++i)
            background.run(
                [&worked] {
                    QThread::msleep(1);
                    ++worked;
                },
                [&isTold] { isTold = true; });
    }
    QCOMPARE(worked, 20);
    QCoreApplication::processEvents();
    QVERIFY(!isTold);
    { const Background idle; } // without a thread
}

void TestBackground::mayEndWhileItIsAnswering() {
    auto background = std::make_unique<Background>();
    bool isTold = false;
    background->run([] {}, [&] { background.reset(); });
    background->run([] {}, [&] { isTold = true; });
    QTRY_VERIFY(!background);
    QCoreApplication::processEvents();
    QVERIFY(!isTold);
}

QTEST_GUILESS_MAIN(TestBackground)
#include "tst_background.moc"
