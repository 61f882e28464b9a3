// The client of the broker against a broker made of a QLocalServer: lines in pieces, a broker that goes away, numbers that go on.
#include "tests/ui/fake_broker.h"
#include "ui/common/ending_process.h"
#include "ui/common/engine_client.h"

#include <QDir>
#include <QFile>
#include <QLocalServer>
#include <QLocalSocket>
#include <QPointer>
#include <QProcess>
#include <QRegularExpression>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include <cerrno>
#include <csignal>
#include <memory>

using namespace celloom;
using namespace celloom::ui;
using protocol::Message;
using test::FakeBroker;

class TestEngineClient : public QObject {
    Q_OBJECT
    std::unique_ptr<QTemporaryDir> m_folder;

    QString address() const { return m_folder->filePath(QStringLiteral("b")); }
    EngineOptions options() const {
        EngineOptions options;
        options.socket = address();
        options.logFile = m_folder->filePath(QStringLiteral("log"));
        options.retryMs = 10;
        return options;
    }

private Q_SLOTS:
    void init() { m_folder = std::make_unique<QTemporaryDir>(); }

    void sayingHelloThenSubscribingMakesItConnected() {
        FakeBroker broker(address());
        EngineClient client(options());
        client.start();
        QTRY_COMPARE(client.state(), EngineClient::State::Connected);
        QCOMPARE(broker.last("hello")["version"].get<int>(), protocol::kVersion);
        QCOMPARE(broker.last("subscribe")["after"].get<int>(), 7); // what was before is read from the databases
    }

    void aProcessThatIsLetEndLeavesNothing() {
        QTest::failOnWarning(QRegularExpression(QStringLiteral(".*"))); // "Destroyed while process is still running"
        const auto begin = [](bool isWaitedFor) {
            auto* process = new QProcess;
            process->start(QStringLiteral("sleep"), {QStringLiteral("1000")});
            if (isWaitedFor && !process->waitForStarted()) qFatal("sleep does not start");
            return QPointer(process);
        };
        const auto holder = std::make_unique<QObject>();
        auto process = begin(true);
        letEnd(process, holder.get());
        QTRY_VERIFY(!process); // by itself
        process = new QProcess;
        letEnd(process, holder.get());
        QTRY_VERIFY(!process); // was never started
        for (const bool isWaitedFor : {true, false}) {
            auto last = std::make_unique<QObject>();
            process = begin(isWaitedFor);
            const auto id = static_cast<pid_t>(process->processId());
            QVERIFY(id > 0);
            letEnd(process, last.get());
            last.reset();
            QVERIFY(!process);
            QVERIFY(::kill(id, 0) == -1 && errno == ESRCH);
        }
    }

    void linesMayComeInAnyPieces() {
        FakeBroker broker(address());
        EngineClient client(options());
        QSignalSpy progress(&client, &EngineClient::progressed);
        client.start();
        QTRY_COMPARE(client.state(), EngineClient::State::Connected);
        const std::string line = protocol::toLine({{"type", "progress"},
                                                   {"seq", 8},
                                                   {"run", "0001-三国"},
                                                   {"step", 5},
                                                   {"total_steps", 10},
                                                   {"stage", "training"},
                                                   {"remaining_s", 2.5},
                                                   {"elapsed_s", 1},
                                                   {"rows", 3}});
        for (char byte : line) {
            broker.sendBytes(std::string(1, byte));
            QCoreApplication::processEvents();
        }
        QTRY_COMPARE(progress.size(), 1);
        const auto got = progress.first().first().value<RunProgress>();
        QCOMPARE(got.run, QStringLiteral("0001-三国"));
        QCOMPARE(got.step, std::int64_t(5));
        QCOMPARE(got.remainingSeconds, 2.5);
        broker.sendBytes(line + line);
        QTRY_COMPARE(progress.size(), 3);
    }

    void garbageAsksForTheDatabasesAndReadingGoesOn() {
        FakeBroker broker(address());
        EngineClient client(options());
        client.start();
        QTRY_COMPARE(client.state(), EngineClient::State::Connected);
        QSignalSpy resync(&client, &EngineClient::resyncNeeded), runs(&client, &EngineClient::runChanged);
        broker.sendBytes("not json\n[1, 2]\n{\"type\": 5}\n");
        broker.send({{"type", "run"}, {"seq", 9}, {"record", {{"folder", "0002-x"}}}});
        QTRY_COMPARE(runs.size(), 1);
        QCOMPARE(runs.first().first().toString(), QStringLiteral("0002-x"));
        QVERIFY(resync.size() >= 1);
    }

    void aBrokerThatComesBackIsSubscribedFromTheLastNumber() {
        auto broker = std::make_unique<FakeBroker>(address());
        EngineClient client(options());
        QSignalSpy runs(&client, &EngineClient::runChanged);
        client.start();
        QTRY_COMPARE(client.state(), EngineClient::State::Connected);
        broker->send({{"type", "run"}, {"seq", 31}, {"record", {{"folder", "a"}}}});
        QTRY_COMPARE(runs.size(), 1);
        QSignalSpy resync(&client, &EngineClient::resyncNeeded);
        broker->peer->disconnectFromServer(); // only the line broke: the broker is the same
        QTRY_COMPARE(client.state(), EngineClient::State::Connected);
        QTRY_COMPARE(broker->last("subscribe")["after"].get<int>(), 31);
        QTRY_COMPARE(client.state(), EngineClient::State::Connected);
        QCOMPARE(resync.size(), 0);
    }

    void anotherBrokerHasNumbersOfItsOwn() {
        auto broker = std::make_unique<FakeBroker>(address(), 100);
        EngineClient client(options());
        client.start();
        QTRY_COMPARE(client.state(), EngineClient::State::Connected);
        broker.reset();
        QTRY_COMPARE(client.state(), EngineClient::State::Connecting);
        QSignalSpy resync(&client, &EngineClient::resyncNeeded);
        broker = std::make_unique<FakeBroker>(address(), 200);
        broker->sequence = 2;
        QTRY_COMPARE(client.state(), EngineClient::State::Connected);
        QCOMPARE(broker->last("subscribe")["after"].get<int>(), 2);
        QCOMPARE(resync.size(), 1);
    }

    void whatWasMissedIsReadAgain() {
        FakeBroker broker(address());
        broker.missedBefore = 1000;
        EngineClient client(options());
        QSignalSpy resync(&client, &EngineClient::resyncNeeded);
        client.start();
        QTRY_COMPARE(resync.size(), 1);
        broker.send({{"type", "dropped"}, {"seq", 8}});
        QTRY_COMPARE(resync.size(), 2);
    }

    void requestsAreAnsweredOrRefusedWithTheReason() {
        FakeBroker broker(address());
        EngineClient client(options());
        client.start();
        QTRY_COMPARE(client.state(), EngineClient::State::Connected);
        Result<QString> run = fail("nothing yet");
        client.submit("{\"seed\": 3}", QStringLiteral("novel"), [&](const Result<QString>& answer) { run = answer; });
        QTRY_VERIFY(!broker.last("submit").is_null());
        QCOMPARE(broker.last("submit")["recipe"]["seed"].get<int>(), 3);
        broker.reply(broker.last("submit"), {{"run", "0003-novel"}});
        QTRY_VERIFY(run.has_value());
        QCOMPARE(*run, QStringLiteral("0003-novel"));

        Status status;
        client.control(QStringLiteral("0003-novel"), QStringLiteral("pause"), std::nullopt, [&](const Status& answer) { status = answer; });
        QTRY_VERIFY(!broker.last("control").is_null());
        broker.send({{"type", "reply"},
                     {"id", broker.last("control")["id"]},
                     {"ok", false},
                     {"error", {{"message", "It is over."}, {"hint", "Resume it."}}}});
        QTRY_VERIFY(!status.has_value());
        QCOMPARE(status.error().message, std::string("It is over."));
        QCOMPARE(status.error().hint, std::string("Resume it."));
    }

    void aRequestOnTheWayFailsWhenTheBrokerGoes() {
        auto broker = std::make_unique<FakeBroker>(address());
        EngineClient client(options());
        client.start();
        QTRY_COMPARE(client.state(), EngineClient::State::Connected);
        int answers = 0;
        client.remove(QStringLiteral("x"), [&](const Status& answer) { answers += answer ? 100 : 1; });
        QTRY_VERIFY(!broker->last("delete").is_null());
        broker.reset();
        QTRY_COMPARE(answers, 1);
        client.remove(QStringLiteral("x"), [&](const Status& answer) { answers += answer ? 100 : 1; });
        QTRY_COMPARE(answers, 2); // refused at once
    }

    void aBrokerOfAnotherVersionIsSaidToBeSo() {
        FakeBroker broker(address());
        broker.acceptsHello = false;
        EngineClient client(options());
        client.start();
        QTRY_COMPARE(client.state(), EngineClient::State::Unavailable);
        QCOMPARE(client.detail(), QStringLiteral("Too old. Update."));
    }

    void aMissingEngineIsNamed() {
        EngineOptions given = options();
        given.program = m_folder->filePath(QStringLiteral("celloom-engine"));
        EngineClient client(given);
        client.start();
        QTRY_COMPARE(client.state(), EngineClient::State::Unavailable);
        QVERIFY(client.detail().contains(given.program));
    }

    void anEngineIsStartedWhereNoneAnswers() {
        const QString script = m_folder->filePath(QStringLiteral("engine"));
        QFile file(script);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("#!/bin/sh\necho \"$@\" > \"$0.said\"\n");
        file.close();
        QVERIFY(file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner));
        EngineOptions given = options();
        given.program = script;
        given.arguments = QStringList{QStringLiteral("serve"), QStringLiteral("--workspace"), QStringLiteral("a b")};
        EngineClient client(given);
        client.start();
        QTRY_COMPARE(client.state(), EngineClient::State::Starting);
        QFile said(script + QStringLiteral(".said"));
        QTRY_VERIFY(said.size() > 0);
        QVERIFY(said.open(QIODevice::ReadOnly));
        QCOMPARE(said.readAll(), QByteArray("serve --workspace a b\n"));
        FakeBroker broker(address());
        QTRY_COMPARE(client.state(), EngineClient::State::Connected);
    }
};

QTEST_GUILESS_MAIN(TestEngineClient)
#include "tst_engine_client.moc"
