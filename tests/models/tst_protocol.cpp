// The protocol: bytes become messages however they arrive; a child's line never makes the child wait.
#include "models/protocol/broker_lock.h"
#include "models/protocol/child_link.h"
#include "models/protocol/protocol.h"
#include "models/protocol/sockets.h"
#include "models/store/run_lock.h"

#include <QScopeGuard>
#include <QTemporaryDir>
#include <QTest>
#include <array>
#include <filesystem>
#include <future>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace celloom;
using namespace celloom::protocol;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

/// Reads messages from a socket until `count` are there or nothing comes for five seconds.
std::vector<Message> receive(int fd, std::size_t count) {
    std::vector<Message> messages;
    LineReader lines;
    std::array<char, 4096> block{};
    pollfd polled{fd, POLLIN, 0};
    while (messages.size() < count && ::poll(&polled, 1, 5000) > 0) {
        const ssize_t got = ::recv(fd, block.data(), block.size(), 0);
        if (got <= 0) break;
        for (const auto& message : lines.feed({block.data(), static_cast<std::size_t>(got)}))
            if (message) messages.push_back(*message);
    }
    return messages;
}

bool sendLine(int fd, const Message& message) {
    const std::string line = toLine(message);
    return ::send(fd, line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size());
}

struct Place {
    QTemporaryDir folder;
    store::Workspace workspace;
    store::RunFolder run;

    Place() {
        qputenv("XDG_RUNTIME_DIR", folder.path().toUtf8());
        workspace = store::Workspace::open(fs::path(folder.path().toStdString()) / "w").value();
        run = workspace.createRun("r").value();
    }
};

} // namespace

class TestProtocol : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void linesMayBeSplitAnywhere();
    void badLinesAreNamedAndReadingGoesOn_data();
    void badLinesAreNamedAndReadingGoesOn();
    void aLineThatIsTooLongIsOneErrorAndKeepsNoMemory();
    void invalidUtf8IsReplacedAndNeverThrown();
    void socketsFitTheSystemsLimitHoweverDeepTheWorkspace();
    void socketsOfOneWorkspaceAreTheSameThroughALink();
    void aForeignFolderForSocketsIsRefused();
    void withoutARuntimeFolderSocketsAreInAPrivateOne();
    void onlyOneBrokerHoldsAWorkspace();
    void commandsReachTheRunInOrderAndAreAnswered();
    void badCommandsAreRefusedAndTheRunSeesNone();
    void progressGoesOutAtMostTenTimesASecondAndTheLastOneArrives();
    void messagesArriveAtEveryReader();
    void aReaderThatNeverReadsIsLeftOutAndTheRunNeverWaits();
    void aSecondChildOfTheSameRunIsRefused();
};

void TestProtocol::linesMayBeSplitAnywhere() {
    const std::string bytes = toLine({{"type", "a"}, {"text", "你好\n"}}) + "\r\n" + toLine({{"type", "b"}});
    LineReader whole;
    const auto expected = whole.feed(bytes);
    QCOMPARE(expected.size(), std::size_t{2});
    for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
        LineReader reader;
        auto messages = reader.feed(bytes.substr(0, cut));
        for (auto& message : reader.feed(bytes.substr(cut))) messages.push_back(std::move(message));
        QCOMPARE(messages.size(), std::size_t{2});
        for (int i = 0; i < 2; ++i)
            QVERIFY(messages[static_cast<std::size_t>(i)] &&
                    *messages[static_cast<std::size_t>(i)] == *expected[static_cast<std::size_t>(i)]);
    }
}

void TestProtocol::badLinesAreNamedAndReadingGoesOn_data() {
    QTest::addColumn<QByteArray>("line");
    QTest::newRow("no JSON") << QByteArray("hello");
    QTest::newRow("half an object") << QByteArray("{\"type\": \"a\"");
    QTest::newRow("an array") << QByteArray("[1]");
    QTest::newRow("no type") << QByteArray("{}");
    QTest::newRow("a type that is no text") << QByteArray("{\"type\": 1}");
    QTest::newRow("invalid UTF-8") << QByteArray("{\"type\": \"\xff\"}");
    QTest::newRow("deep nesting") << QByteArray("{\"type\": \"a\", \"x\": ") + QByteArray(100000, '[') + QByteArray(100000, ']') + "}";
}

void TestProtocol::badLinesAreNamedAndReadingGoesOn() {
    QFETCH(QByteArray, line);
    LineReader reader;
    const auto messages = reader.feed(line.toStdString() + "\n{\"type\": \"good\"}\n");
    QCOMPARE(messages.size(), std::size_t{2});
    QVERIFY(!messages[0] && !messages[0].error().message.empty());
    QVERIFY(messages[1] && messages[1]->at("type") == "good");
}

void TestProtocol::aLineThatIsTooLongIsOneErrorAndKeepsNoMemory() {
    LineReader reader;
    int errors = 0;
    const std::string block(1 << 20, 'x');
    for (int i = 0; i < 20; ++i)
        for (const auto& message : reader.feed(block)) errors += message ? 0 : 1;
    QCOMPARE(errors, 1);
    QCOMPARE(reader.pending(), std::size_t{0});
    const auto messages = reader.feed("\n{\"type\": \"good\"}\n");
    QCOMPARE(messages.size(), std::size_t{1});
    QVERIFY(messages[0].has_value());
}

void TestProtocol::invalidUtf8IsReplacedAndNeverThrown() {
    LineReader reader;
    const auto messages = reader.feed(toLine({{"type", "log"}, {"text", "\xe4\xbd"}}));
    QCOMPARE(messages.size(), std::size_t{1});
    QVERIFY(messages[0] && messages[0]->at("text") == "\xef\xbf\xbd");
}

void TestProtocol::socketsFitTheSystemsLimitHoweverDeepTheWorkspace() {
    QTemporaryDir runtime;
    qputenv("XDG_RUNTIME_DIR", runtime.path().toUtf8());
    const store::Workspace workspace{fs::path("/") / std::string(3000, 'd')};
    QVERIFY(brokerSocket(workspace).string().size() < 108);
    QVERIFY(childSocket(workspace, 999999).string().size() < 108);
    QVERIFY(brokerSocket(workspace) != brokerSocket(store::Workspace{fs::path("/") / std::string(3001, 'd')}));
    // A runtime folder that is too long itself gives way to the private one.
    const fs::path deep = fs::path(runtime.path().toStdString()) / std::string(90, 'r');
    fs::create_directory(deep);
    qputenv("XDG_RUNTIME_DIR", deep.c_str());
    QVERIFY(childSocket(workspace, 999999).string().size() < 108);
}

void TestProtocol::socketsOfOneWorkspaceAreTheSameThroughALink() {
    const Place place;
    const fs::path link = fs::path(place.folder.path().toStdString()) / "link";
    fs::create_symlink(place.workspace.path, link);
    QVERIFY(brokerSocket(store::Workspace{link}) == brokerSocket(place.workspace));
}

void TestProtocol::aForeignFolderForSocketsIsRefused() {
    const Place place;
    const auto folder = socketFolder(place.workspace);
    QVERIFY(folder);
    struct stat info {};
    QCOMPARE(::stat(folder->c_str(), &info), 0);
    QCOMPARE(info.st_mode & 0777, mode_t{0700});
    fs::permissions(*folder, fs::perms::all); // others may put a socket of theirs there
    const auto refused = socketFolder(place.workspace);
    QVERIFY(!refused);
    QVERIFY(!refused.error().hint.empty());
}

void TestProtocol::withoutARuntimeFolderSocketsAreInAPrivateOne() {
    const Place place;
    for (const char* value : {"", "/does/not/exist", "relative"}) {
        qputenv("XDG_RUNTIME_DIR", value);
        const auto folder = socketFolder(place.workspace);
        QVERIFY2(folder, folder ? "" : folder.error().text().c_str());
        QCOMPARE(QString::fromStdString(folder->string()).section('/', 0, 2), QStringLiteral("/tmp/celloom-%1").arg(::geteuid()));
        fs::remove(*folder);
    }
}

void TestProtocol::onlyOneBrokerHoldsAWorkspace() {
    const Place place;
    QVERIFY(!isBrokerAlive(place.workspace));
    {
        auto first = BrokerLock::take(place.workspace);
        QVERIFY(first);
        QVERIFY(!BrokerLock::take(place.workspace));
        QVERIFY(first->announce("/somewhere/else.sock"));
        // Found even by a program whose environment would look elsewhere.
        QVERIFY(brokerSocket(place.workspace) == "/somewhere/else.sock");
    }
    QVERIFY(!isBrokerAlive(place.workspace));
    QVERIFY(brokerSocket(place.workspace) != "/somewhere/else.sock");
}

void TestProtocol::commandsReachTheRunInOrderAndAreAnswered() {
    const Place place;
    const auto link = ChildLink::open(place.workspace, place.run);
    QVERIFY2(link, link ? "" : link.error().text().c_str());
    QVERIFY(!(*link)->waitForCommand(1ms));
    const auto fd = connectTo(childSocket(place.workspace, 1));
    QVERIFY(fd);
    const auto close = qScopeGuard([&] { ::close(*fd); });
    QVERIFY(sendLine(*fd, {{"type", "control"}, {"id", 7}, {"action", "pause"}}));
    QVERIFY(sendLine(*fd, {{"type", "control"}, {"id", 8}, {"action", "set_lr"}, {"value", 1e-4}}));
    const auto replies = receive(*fd, 2);
    QCOMPARE(replies.size(), std::size_t{2});
    QVERIFY(replies[0]["id"] == 7 && replies[0]["ok"] == true);
    QVERIFY(replies[1]["id"] == 8 && replies[1]["ok"] == true);
    QVERIFY((*link)->waitForCommand(1ms));
    const auto commands = (*link)->take();
    QCOMPARE(commands.size(), std::size_t{2});
    QVERIFY(commands[0].action == Action::Pause);
    QVERIFY(commands[1].action == Action::SetLearningRate);
    QCOMPARE(commands[1].value, 1e-4);
    QVERIFY((*link)->take().empty());
}

void TestProtocol::badCommandsAreRefusedAndTheRunSeesNone() {
    const Place place;
    const auto link = ChildLink::open(place.workspace, place.run);
    QVERIFY(link);
    const auto fd = connectTo(childSocket(place.workspace, 1));
    QVERIFY(fd);
    const auto close = qScopeGuard([&] { ::close(*fd); });
    const std::vector<Message> bad{{{"type", "hello"}},
                                   {{"type", "control"}},
                                   {{"type", "control"}, {"action", "explode"}},
                                   {{"type", "control"}, {"action", "set_lr"}},
                                   {{"type", "control"}, {"action", "set_lr"}, {"value", -1}},
                                   {{"type", "control"}, {"action", "set_lr"}, {"value", "1e-4"}}};
    QCOMPARE(::send(*fd, "rubbish\n", 8, MSG_NOSIGNAL), ssize_t{8});
    for (const Message& message : bad) QVERIFY(sendLine(*fd, message));
    const auto replies = receive(*fd, bad.size());
    QCOMPARE(replies.size(), bad.size());
    for (const Message& reply : replies) QVERIFY(reply["ok"] == false && reply["error"]["message"].is_string());
    QVERIFY((*link)->take().empty());
}

void TestProtocol::progressGoesOutAtMostTenTimesASecondAndTheLastOneArrives() {
    const Place place;
    auto link = ChildLink::open(place.workspace, place.run);
    QVERIFY(link);
    const auto fd = connectTo(childSocket(place.workspace, 1));
    QVERIFY(fd);
    const auto close = qScopeGuard([&] { ::close(*fd); });
    QVERIFY(sendLine(*fd, {{"type", "control"}, {"id", 1}, {"action", "save"}}));
    QCOMPARE(receive(*fd, 1).size(), std::size_t{1}); // now it is surely connected
    auto received = std::async(std::launch::async, [&] { return receive(*fd, 100000); }); // a reader that keeps up, however long it takes
    store::Progress progress;
    const auto begin = std::chrono::steady_clock::now();
    for (progress.step = 0; progress.step < 100000; ++progress.step) (*link)->progress(progress, progress.step);
    const auto periods = (std::chrono::steady_clock::now() - begin) / 100ms;
    link->reset(); // sends what is left
    const auto events = received.get();
    QVERIFY(!events.empty());
    QVERIFY(static_cast<long>(events.size()) <= periods + 2);
    QVERIFY(events.back()["step"] == 99999);
    QVERIFY(events.back()["run"] == place.run.name());
}

void TestProtocol::messagesArriveAtEveryReader() {
    const Place place;
    const auto link = ChildLink::open(place.workspace, place.run);
    QVERIFY(link);
    for (int reader = 0; reader < 2; ++reader) {
        const auto fd = connectTo(childSocket(place.workspace, 1));
        QVERIFY(fd);
        QVERIFY(sendLine(*fd, {{"type", "control"}, {"id", 1}, {"action", "save"}}));
        QCOMPARE(receive(*fd, 1).size(), std::size_t{1});
        (*link)->message(3, "warning", "overflow", "step 3 overflowed", "lower the scale");
        const auto events = receive(*fd, 1);
        QCOMPARE(events.size(), std::size_t{1});
        QVERIFY(events[0]["type"] == "message" && events[0]["step"] == 3 && events[0]["hint"] == "lower the scale");
        ::close(*fd);
    }
}

void TestProtocol::aReaderThatNeverReadsIsLeftOutAndTheRunNeverWaits() {
    const Place place;
    const auto link = ChildLink::open(place.workspace, place.run);
    QVERIFY(link);
    const auto deaf = connectTo(childSocket(place.workspace, 1));
    QVERIFY(deaf);
    const auto close = qScopeGuard([&] { ::close(*deaf); });
    QVERIFY(sendLine(*deaf, {{"type", "control"}, {"id", 1}, {"action", "save"}}));
    QVERIFY((*link)->waitForCommand(5s));
    QCOMPARE((*link)->take().size(), std::size_t{1});
    // 100 MB: were this to wait for the reader, it would never end.
    const std::string text(1000, 'x');
    for (int i = 0; i < 100000; ++i) (*link)->message(i, "info", "noise", text);
    const auto good = connectTo(childSocket(place.workspace, 1));
    QVERIFY(good);
    QVERIFY(sendLine(*good, {{"type", "control"}, {"id", 2}, {"action", "save"}}));
    QVERIFY((*link)->waitForCommand(5s)); // commands arrive all the same
    ::close(*good);
    // The deaf reader finds what was kept for it, less than all, and is told that there was more.
    std::size_t heard = 0;
    bool isTold = false;
    while (!isTold) {
        const auto messages = receive(*deaf, 1);
        QVERIFY(!messages.empty()); // the line ended, or fell silent
        for (const Message& message : messages) isTold = isTold || message["type"] == "dropped";
        heard += messages.size();
    }
    QVERIFY(heard < 50000);
}

void TestProtocol::aSecondChildOfTheSameRunIsRefused() {
    const Place place;
    {
        const auto link = ChildLink::open(place.workspace, place.run);
        QVERIFY(link);
        const auto process = store::readProcess(place.run);
        QVERIFY(process && *process);
        QCOMPARE((*process)->child, std::int64_t{::getpid()});
        QVERIFY(!ChildLink::open(place.workspace, place.run));
    }
    QVERIFY(ChildLink::open(place.workspace, place.run));
}

QTEST_GUILESS_MAIN(TestProtocol)
#include "tst_protocol.moc"
