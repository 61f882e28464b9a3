// The Try page in a window, with keys and drops as a person gives them, against a broker that says what the test wants.
#include "tests/ui/fake_broker.h"
#include "tests/ui/services_bench.h"
#include "ui/playground/transcript_view.h"
#include "ui/playground/try_page.h"

#include <QDropEvent>
#include <QMimeData>
#include <QPushButton>
#include <QSignalSpy>
#include <QToolTip>

using namespace celloom;
using namespace celloom::ui;
using protocol::Message;

namespace {

struct Bench : test::ServicesBench {
    test::FakeBroker broker{folder.filePath(QStringLiteral("socket"))};
    TryPage page{services};

    Bench() {
        broker.acceptsTry = true;
        engine.start();
        page.resize(1000, 700);
        page.show();
        QVERIFY(QTest::qWaitForWindowExposed(&page));
        QTRY_COMPARE(engine.state(), EngineClient::State::Connected);
    }
    [[nodiscard]] QuestionEdit* question() const { return page.findChild<QuestionEdit*>(); }
    [[nodiscard]] QPushButton* button(const QString& text) const {
        for (auto* button : page.findChildren<QPushButton*>())
            if (button->isVisible() && button->text() == text) return button;
        return nullptr;
    }
    /// The last request to the chat of this type, or a null.
    [[nodiscard]] Message request(const std::string& type) const {
        for (auto message = broker.received.rbegin(); message != broker.received.rend(); ++message)
            if ((*message)["type"] == "try_send" && (*message)["request"]["type"] == type) return (*message)["request"];
        return nullptr;
    }
    void say(const Message& event) { broker.send({{"type", "try"}, {"event", event}}); }
    /// Asks, and gives what was asked.
    Message ask(const QString& text) {
        QTest::keyClicks(question(), text);
        QTest::keyClick(question(), Qt::Key_Return);
        CELLOOM_CHECK(QTest::qWaitFor([this] { return request("generate").is_object(); }));
        return request("generate");
    }
    void answer(const Message& asked, const std::string& text) {
        say({{"type", "delta"},
             {"column", asked["column"]},
             {"request", asked["request"]},
             {"text", text},
             {"count", 1},
             {"tokens", {{{"piece", text}, {"p", 0.625}, {"alternatives", {{{"piece", "other"}, {"p", 0.25}}}}}}}});
    }
};

} // namespace

class TestTryPage : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void anEmptyPageOffersTheExample() {
        Bench bench;
        QSignalSpy example(&bench.page, &TryPage::exampleRequested);
        QVERIFY(bench.button(QStringLiteral("Open a model folder…")));
        QPushButton* train = bench.button(QStringLiteral("Train the example first"));
        QVERIFY(train);
        train->click();
        QCOMPARE(example.size(), 1);
    }

    void enterSendsShiftEnterBeginsALineAndEscapeStops() {
        Bench bench;
        bench.page.open(QStringLiteral("0001-a"));
        QTRY_VERIFY(bench.request("open").is_object());
        QTest::keyClicks(bench.question(), QStringLiteral("a"));
        QTest::keyClick(bench.question(), Qt::Key_Return, Qt::ShiftModifier);
        const Message asked = bench.ask(QStringLiteral("b"));
        QCOMPARE(asked["text"].get<std::string>(), std::string("a\nb"));
        QVERIFY(bench.question()->toPlainText().isEmpty());
        QVERIFY(bench.button(QStringLiteral("Stop")));
        QTest::keyClick(bench.question(), Qt::Key_Escape);
        QTRY_VERIFY(bench.request("cancel").is_object());
        QVERIFY(bench.button(QStringLiteral("Send")));
    }

    void anAnswerStreamsIntoItsColumnWithItsTokens() {
        Bench bench;
        bench.page.open(QStringLiteral("0001-a"));
        const Message asked = bench.ask(QStringLiteral("q"));
        bench.answer(asked, "you");
        auto* transcript = bench.page.findChild<TranscriptView*>();
        QTRY_VERIFY(transcript->toPlainText().contains(QStringLiteral("you")));
        bench.say({{"type", "done"}, {"column", asked["column"]}, {"request", asked["request"]}, {"reason", "length"}, {"count", 1}});
        QTRY_VERIFY(transcript->toPlainText().contains(QStringLiteral("as many tokens")));
        // The caret on the answer tells what else was likely.
        QTextCursor cursor = transcript->document()->find(QStringLiteral("you"));
        cursor.setPosition(cursor.selectionStart());
        transcript->setFocus();
        transcript->setTextCursor(cursor);
        QTest::keyClick(transcript, Qt::Key_Right);
        QTRY_VERIFY(QToolTip::text().contains(QStringLiteral("62.5")));
        QVERIFY(QToolTip::text().contains(QStringLiteral("other")));
    }

    void aDroppedFolderIsOpened() {
        Bench bench;
        QMimeData data;
        data.setUrls({QUrl::fromLocalFile(bench.folder.path())});
        QDragEnterEvent enter(QPoint(10, 10), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QCoreApplication::sendEvent(&bench.page, &enter);
        QVERIFY(enter.isAccepted());
        QDropEvent drop(QPointF(10, 10), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QCoreApplication::sendEvent(&bench.page, &drop);
        QTRY_VERIFY(bench.request("open").is_object());
        QCOMPARE(bench.request("open")["model"].get<std::string>(), bench.folder.path().toStdString());
    }

    void anAdapterIsOpenedBesideItsBase() {
        Bench bench;
        bench.page.openBesideBase(QStringLiteral("0002-tuned"), QStringLiteral("/models/base"));
        QCOMPARE(bench.page.context(), QStringLiteral("base · 0002-tuned"));
        bench.page.openBesideBase(QStringLiteral("0003-tuned"), QStringLiteral("/models/base")); // beside what is there
        QCOMPARE(bench.page.context(), QStringLiteral("base · 0002-tuned · 0003-tuned"));
    }

    void columnsAreOneToFour() {
        Bench bench;
        bench.page.open(QStringLiteral("a"));
        for (const char* source : {"b", "c", "d", "e"}) bench.page.open(QString::fromLatin1(source));
        QCOMPARE(bench.page.findChildren<TranscriptView*>().size(), qsizetype(4));
    }

    void everythingFitsInBothLanguages() {
        Bench bench;
        bench.page.open(QStringLiteral("a"));
        for (const char* code : {"zh_CN", "en"}) {
            bench.language.choose(QString::fromLatin1(code));
            QApplication::sendPostedEvents();
            for (auto* button : bench.page.findChildren<QAbstractButton*>())
                if (button->isVisible()) QTRY_VERIFY2(button->width() >= button->fontMetrics().horizontalAdvance(button->text()), qPrintable(button->text()));
        }
    }
};

QTEST_MAIN(TestTryPage)
#include "tst_try_page.moc"
