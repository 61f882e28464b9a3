// The chat behind the Try page against a broker that says what the test wants, and the page in a window.
#include "tests/ui/fake_broker.h"
#include "ui/common/engine_client.h"
#include "ui/playground/playground.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QSignalSpy>
#include <QTemporaryDir>

#include <memory>

using namespace celloom;
using namespace celloom::ui;
using protocol::Message;
using test::FakeBroker;

namespace {

/// Takes every try command, as the broker does.
struct Site {
    QTemporaryDir folder;
    FakeBroker broker{folder.filePath(QStringLiteral("b"))};
    EngineClient engine{EngineOptions{folder.filePath(QStringLiteral("b")), {}, {}, folder.filePath(QStringLiteral("log")), 10}};
    Playground playground{engine};

    Site() {
        broker.acceptsTry = true;
        engine.start();
        CELLOOM_CHECK(QTest::qWaitFor([this] { return engine.state() == EngineClient::State::Connected; }));
    }
    /// Requests to the chat, oldest first.
    [[nodiscard]] std::vector<Message> requests(const std::string& type) const {
        std::vector<Message> out;
        for (const Message& message : broker.received)
            if (message["type"] == "try_send" && message["request"]["type"] == type) out.push_back(message["request"]);
        return out;
    }
    bool waitForRequests(const std::string& type, std::size_t count) {
        return QTest::qWaitFor([&] { return requests(type).size() >= count; });
    }
    void say(const Message& event) { broker.send({{"type", "try"}, {"event", event}}); }
    void opened(const std::string& column, bool isTuned = false) {
        say({{"type", "opened"}, {"column", column}, {"model", "m"}, {"device", "cpu"}, {"parameters", 5}, {"context", 64}, {"tuned", isTuned},
             {"templates", {{{"name", "chatml"}, {"label", "ChatML"}}}}});
    }
    void delta(const std::string& column, std::int64_t request, const std::string& text, std::int64_t count) {
        say({{"type", "delta"}, {"column", column}, {"request", request}, {"text", text}, {"count", count}, {"tokens_per_s", 9.5},
             {"tokens", {{{"piece", text}, {"p", 0.75}, {"alternatives", {{{"piece", "x"}, {"p", 0.25}}}}}}}});
    }
    void done(const std::string& column, std::int64_t request, const char* reason = "stop_token") {
        say({{"type", "done"}, {"column", column}, {"request", request}, {"reason", reason}, {"count", 2}, {"tokens_per_s", 9.5}});
    }
    /// One column that is ready.
    QString ready() {
        const QString name = playground.addColumn(QStringLiteral("0001-a"));
        opened(toStd(name));
        CELLOOM_CHECK(QTest::qWaitFor([&] { return playground.column(name)->state == TryColumn::State::Ready; }));
        return name;
    }
    static std::string toStd(const QString& text) { return text.toStdString(); }
};

} // namespace

class TestPlayground : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aColumnOpensItsModelWithoutWaiting() {
        Site site;
        const QString name = site.playground.addColumn(QStringLiteral("0001-a"), {QStringLiteral("/adapters/x")});
        QCOMPARE(site.playground.column(name)->state, TryColumn::State::Loading);
        QVERIFY(site.waitForRequests("open", 1));
        QVERIFY(site.broker.last("try_open").is_object());
        const Message open = site.requests("open")[0];
        QCOMPARE(open["model"].get<std::string>(), std::string("0001-a"));
        QCOMPARE(open["adapters"][0].get<std::string>(), std::string("/adapters/x"));
        site.opened(Site::toStd(name));
        QTRY_COMPARE(site.playground.column(name)->state, TryColumn::State::Ready);
        QCOMPARE(site.playground.column(name)->context, std::int64_t(64));
        QCOMPARE(Playground::titleOf(*site.playground.column(name)), QStringLiteral("0001-a + x"));
    }

    void allColumnsAreAskedTheSameAndAnswerAtOnce() {
        Site site;
        const QString a = site.playground.addColumn(QStringLiteral("a")), b = site.playground.addColumn(QStringLiteral("b"));
        site.playground.addColumn({}); // one without a model is not asked
        QSignalSpy grew(&site.playground, &Playground::answerGrew);
        site.playground.sampling.stops = QStringList{QStringLiteral("。")};
        site.playground.send(QStringLiteral("问"));
        QVERIFY(site.playground.isWriting());
        QVERIFY(site.waitForRequests("generate", 2));
        const auto asked = site.requests("generate");
        QCOMPARE(asked.size(), std::size_t(2));
        for (const Message& request : asked) {
            QCOMPARE(request["text"].get<std::string>(), std::string("问"));
            QVERIFY(request["sampling"] == asked[0]["sampling"]);
            QCOMPARE(request["sampling"]["stop"][0].get<std::string>(), std::string("。"));
        }
        site.delta(Site::toStd(a), asked[0]["request"], "一", 1);
        site.delta(Site::toStd(b), asked[1]["request"], "二", 1);
        site.delta(Site::toStd(a), asked[0]["request"], "三", 2);
        QTRY_COMPARE(grew.size(), 3);
        const auto& answers = site.playground.turns().back().answers;
        QCOMPARE(answers.at(a).text(), QStringLiteral("一三"));
        QCOMPARE(answers.at(b).text(), QStringLiteral("二"));
        QCOMPARE(answers.at(a).parts[0].tokens[0].alternatives[0].probability, 0.25);
        site.done(Site::toStd(a), asked[0]["request"]);
        QTRY_COMPARE(answers.at(a).state, Answer::State::Done);
        QVERIFY(site.playground.isWriting());
        site.done(Site::toStd(b), asked[1]["request"]);
        QTRY_VERIFY(!site.playground.isWriting());
    }

    void aChatSendsWhatWasSaidBefore() {
        Site site;
        const QString a = site.ready();
        site.playground.isChat = true;
        site.playground.system = QStringLiteral("be brief");
        site.playground.chatTemplate = QStringLiteral("chatml");
        site.playground.send(QStringLiteral("one"));
        QVERIFY(site.waitForRequests("generate", 1));
        site.delta(Site::toStd(a), site.requests("generate")[0]["request"], "1", 1);
        site.done(Site::toStd(a), site.requests("generate")[0]["request"]);
        QTRY_VERIFY(site.playground.canSend());
        site.playground.send(QStringLiteral("two"));
        QVERIFY(site.waitForRequests("generate", 2));
        const Message messages = site.requests("generate")[1]["messages"];
        const Message expected{{{"role", "system"}, {"content", "be brief"}},
                               {{"role", "user"}, {"content", "one"}},
                               {{"role", "assistant"}, {"content", "1"}},
                               {{"role", "user"}, {"content", "two"}}};
        QVERIFY(messages == expected);
        QCOMPARE(site.requests("generate")[1]["template"].get<std::string>(), std::string("chatml"));
    }

    void aModelThatWasTunedToChatIsChattedWith() {
        Site site;
        QSignalSpy changed(&site.playground, &Playground::templatesChanged);
        const QString name = site.playground.addColumn(QStringLiteral("tuned"));
        site.opened(Site::toStd(name), true);
        QTRY_VERIFY(site.playground.isChat);
        QCOMPARE(changed.size(), 1);
        QCOMPARE(site.playground.templates().front().label, QStringLiteral("ChatML"));
    }

    void stoppingIsAtOnceAndLateTextIsNotTaken() {
        Site site;
        const QString a = site.ready();
        site.playground.send(QStringLiteral("q"));
        QVERIFY(site.waitForRequests("generate", 1));
        const std::int64_t request = site.requests("generate")[0]["request"];
        site.delta(Site::toStd(a), request, "x", 1);
        QTRY_COMPARE(site.playground.turns().back().answers.at(a).text(), QStringLiteral("x"));
        site.playground.stop();
        QVERIFY(!site.playground.isWriting());
        QVERIFY(site.waitForRequests("cancel", 1));
        site.delta(Site::toStd(a), request, "late", 2);
        site.done(Site::toStd(a), request, "cancelled");
        site.playground.send(QStringLiteral("next"));
        QVERIFY(site.waitForRequests("generate", 2));
        QCOMPARE(site.playground.turns()[0].answers.at(a).text(), QStringLiteral("x"));
        QCOMPARE(site.playground.turns()[0].answers.at(a).state, Answer::State::Stopped);
    }

    void askingOnceMoreTakesTheNextSeed() {
        Site site;
        const QString a = site.ready();
        site.playground.sampling.seed = 5;
        site.playground.send(QStringLiteral("q"));
        QVERIFY(site.waitForRequests("generate", 1));
        for (std::size_t again = 1; again <= 2; ++again) {
            site.done(Site::toStd(a), site.requests("generate").back()["request"]);
            QTRY_VERIFY(site.playground.canSend());
            site.playground.regenerate();
            QVERIFY(site.waitForRequests("generate", again + 1));
            QCOMPARE(site.requests("generate").back()["sampling"]["seed"].get<std::size_t>(), 5 + again);
            QCOMPARE(site.playground.turns().size(), std::size_t(1));
        }
        QCOMPARE(site.playground.sampling.seed, std::int64_t(5)); // what the form says stays
    }

    void aModelThatCannotBeOpenedSaysWhyAndTheOthersGoOn() {
        Site site;
        const QString a = site.ready(), b = site.playground.addColumn(QStringLiteral("broken"));
        site.say({{"type", "error"}, {"column", Site::toStd(b)}, {"message", "no weights."}, {"hint", ""}, {"place", "/m"}});
        QTRY_COMPARE(site.playground.column(b)->state, TryColumn::State::Failed);
        QVERIFY(site.playground.column(b)->error.contains(QStringLiteral("no weights")));
        QCOMPARE(site.playground.column(a)->state, TryColumn::State::Ready);
    }

    void aChatThatDiedIsSaidAndTheNextQuestionStartsItAgain() {
        Site site;
        const QString a = site.ready();
        QSignalSpy failed(&site.playground, &Playground::failed);
        site.playground.send(QStringLiteral("q"));
        QVERIFY(site.waitForRequests("generate", 1));
        site.say({{"type", "ended"}, {"signal", 9}, {"code", 0}, {"message", "the chat was killed (signal 9)."}, {"hint", ""}, {"log_tail", "the end"}});
        QTRY_COMPARE(failed.size(), 1);
        QVERIFY(failed[0][0].toString().contains(QStringLiteral("signal 9")) && failed[0][0].toString().contains(QStringLiteral("the end")));
        QCOMPARE(site.playground.turns()[0].answers.at(a).state, Answer::State::Failed);
        QVERIFY(site.playground.canSend());
        site.playground.send(QStringLiteral("q"));
        QVERIFY(site.waitForRequests("generate", 2));
        QCOMPARE(site.requests("open").size(), std::size_t(2));
        QCOMPARE(std::count_if(site.broker.received.begin(), site.broker.received.end(),
                               [](const Message& message) { return message["type"] == "try_open"; }),
                 2);
    }

    void anIdleChatThatEndedIsNoFailure() {
        Site site;
        const QString a = site.ready();
        QSignalSpy failed(&site.playground, &Playground::failed);
        site.say({{"type", "ended"}, {"signal", 0}, {"code", 0}, {"message", ""}, {"hint", ""}, {"log_tail", ""}});
        QTRY_COMPARE(site.playground.column(a)->state, TryColumn::State::Unloaded);
        QCOMPARE(failed.size(), 0);
    }

    void eventsThatMakeNoSenseStopNothing() {
        Site site;
        const QString a = site.ready();
        site.playground.send(QStringLiteral("q"));
        QVERIFY(site.waitForRequests("generate", 1));
        const std::int64_t request = site.requests("generate")[0]["request"];
        site.say({{"type", "delta"}, {"column", 7}, {"request", request}});
        site.say({{"type", "delta"}, {"column", Site::toStd(a)}, {"request", request}, {"text", 5}, {"tokens", {1, "x", Message::object()}}});
        site.say({{"type", "opened"}, {"column", Site::toStd(a)}, {"templates", "many"}, {"parameters", "x"}});
        site.say({{"type", "nonsense"}});
        site.broker.send({{"type", "try"}, {"event", "text"}});
        site.delta(Site::toStd(a), request, "x", 1);
        QTRY_COMPARE(site.playground.turns()[0].answers.at(a).text(), QStringLiteral("x"));
    }

    void closingAColumnForgetsItAndTheLastEndsTheChat() {
        Site site;
        const QString a = site.ready(), b = site.playground.addColumn(QStringLiteral("b"));
        site.playground.removeColumn(b);
        QVERIFY(site.waitForRequests("close", 1));
        QVERIFY(site.broker.last("try_close").is_null());
        site.playground.removeColumn(a);
        QTRY_VERIFY(site.broker.last("try_close").is_object());
        QVERIFY(site.playground.columns().empty());
    }

    void aConversationIsSavedWithWhatMadeIt() {
        Site site;
        const QString a = site.ready();
        site.playground.sampling.seed = 3;
        site.playground.send(QStringLiteral("却说"));
        QVERIFY(site.waitForRequests("generate", 1));
        site.delta(Site::toStd(a), site.requests("generate")[0]["request"], "曹操", 1);
        site.done(Site::toStd(a), site.requests("generate")[0]["request"]);
        QTRY_VERIFY(!site.playground.isWriting());
        const QString markdown = site.playground.toMarkdown();
        for (const char* part : {"却说", "曹操", "0001-a"}) QVERIFY(markdown.contains(QString::fromUtf8(part)));
        const QJsonObject json = QJsonDocument::fromJson(site.playground.toJson()).object();
        QCOMPARE(json[QStringLiteral("sampling")][QStringLiteral("seed")].toInt(), 3);
        const QJsonObject answer = json[QStringLiteral("turns")][0][QStringLiteral("answers")][a].toObject();
        QCOMPARE(answer[QStringLiteral("text")].toString(), QStringLiteral("曹操"));
        QCOMPARE(answer[QStringLiteral("tokens")][0][QStringLiteral("p")].toDouble(), 0.75);
    }

    void withoutAnEngineItSaysSo() {
        QTemporaryDir folder;
        EngineClient engine{EngineOptions{folder.filePath(QStringLiteral("none")), {}, {}, {}}};
        Playground playground(engine);
        QSignalSpy failed(&playground, &Playground::failed);
        const QString name = playground.addColumn(QStringLiteral("a"));
        QCOMPARE(playground.column(name)->state, TryColumn::State::Unloaded);
        QVERIFY(failed.size() >= 1);
        playground.send(QStringLiteral("q"));
        QVERIFY(!playground.isWriting());
        QCOMPARE(playground.turns().back().answers.at(name).state, Answer::State::Failed);
    }
};

QTEST_GUILESS_MAIN(TestPlayground)
#include "tst_playground.moc"
