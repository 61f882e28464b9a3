// Broker, children and clients as separate processes, with a fake engine that needs no LibTorch; each of them killed and stopped.
#include "app/engine/broker/client.h"
#include "models/base/files.h"
#include "models/protocol/broker_lock.h"
#include "models/protocol/sockets.h"
#include "models/store/index.h"
#include "models/store/run_lock.h"
#include "models/store/run_store.h"

#include <QElapsedTimer>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QScopeGuard>
#include <QTemporaryDir>
#include <QTest>
#include <array>
#include <cmath>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace celloom;
using namespace celloom::store;
using namespace std::chrono_literals;
using protocol::Message;
namespace fs = std::filesystem;

namespace {

constexpr int kPatience = 30000 * CELLOOM_TEST_TIME_FACTOR; // ms; how long a test waits before it calls something stuck
const QString kEngine = QStringLiteral(CELLOOM_BIN "/fake_engine");

struct Finished {
    int code = -1;
    QByteArray out, err;
    [[nodiscard]] QJsonObject json() const { return QJsonDocument::fromJson(out).object(); }
};

/// One workspace, its broker where one is started, and the verbs on it. Ends what it started.
class Site {
public:
    explicit Site(const fs::path& below = "w") {
        qputenv("XDG_RUNTIME_DIR", m_folder.path().toUtf8());
        path = fs::path(m_folder.path().toStdString()) / below;
    }
    ~Site() {
        broker.kill();
        broker.waitForFinished();
        const auto workspace = Workspace::openForReading(path);
        if (!workspace) return;
        if (protocol::isBrokerAlive(*workspace)) ask({{"type", "shutdown"}});
        for (int i = 0; i < 500 && protocol::isBrokerAlive(*workspace); ++i) QTest::qWait(10);
        for (const RunFolder& run : workspace->allRuns()) {
            if (!isHeld(run)) continue;
            const auto process = readProcess(run);
            if (process && *process && (*process)->child > 0) ::kill(static_cast<pid_t>((*process)->child), SIGKILL);
            for (int i = 0; i < 500 && isHeld(run); ++i) QTest::qWait(10);
        }
    }

    [[nodiscard]] Workspace workspace() const { return Workspace::open(path).value(); }
    [[nodiscard]] RunFolder run(const std::string& name = "last") const { return workspace().findRun(name).value(); }
    [[nodiscard]] RunRecord record(const std::string& name = "last") const { return readRecord(run(name)).value_or(RunRecord{}); }
    [[nodiscard]] pid_t child(const std::string& name = "last") const {
        const auto process = readProcess(run(name));
        return process && *process ? static_cast<pid_t>((*process)->child) : 0;
    }
    [[nodiscard]] pid_t supervisor(const std::string& name = "last") const {
        const auto process = readProcess(run(name));
        return process && *process ? static_cast<pid_t>((*process)->supervisor) : 0;
    }

    /// Starts a broker that stays until it is killed, and waits until it listens.
    bool serve(const QStringList& more = {}) {
        broker.setProcessChannelMode(QProcess::ForwardedErrorChannel);
        broker.start(kEngine, QStringList{"--workspace", text(path), "serve", "--idle-seconds", "0"} + more);
        const Workspace place = workspace();
        return QTest::qWaitFor([&] { return !protocol::livingBrokerSocket(place).empty(); }, kPatience);
    }
    void killBroker() {
        ::kill(static_cast<pid_t>(broker.processId()), SIGKILL);
        broker.waitForFinished();
    }

    /// Runs a verb to its end.
    Finished verb(const QStringList& arguments) const {
        QProcess process;
        process.start(kEngine, QStringList{"--workspace", text(path), "--json"} + arguments);
        process.waitForFinished(kPatience);
        return {process.state() == QProcess::NotRunning ? process.exitCode() : -1, process.readAllStandardOutput(),
                process.readAllStandardError()};
    }
    /// A recipe whose name tells the fake engine what to do.
    QString recipe(const QString& behaviour) const {
        const fs::path file = fs::path(m_folder.path().toStdString()) / (behaviour.toStdString() + ".json");
        const std::string data = (fs::path(CELLOOM_SOURCE) / "LICENSE").string();
        CELLOOM_CHECK(
            writeFileAtomically(file, Message{{"name", behaviour.toStdString()}, {"device", "cpu"}, {"data", {{"train", {data}}}}}.dump()));
        return text(file);
    }
    Finished submit(const QString& behaviour) const { return verb({"run", "--detach", recipe(behaviour)}); }

    Result<Message> ask(Message message) const {
        auto client = app::BrokerClient::connect(workspace());
        if (!client) return tl::unexpected(client.error());
        return (*client)->request(std::move(message));
    }

    [[nodiscard]] bool isAt(RunState state, const std::string& name = "last") const {
        return QTest::qWaitFor([&] { return record(name).state == state; }, kPatience);
    }
    [[nodiscard]] bool isAtStep(std::int64_t step, const std::string& name = "last") const {
        return QTest::qWaitFor([&] { return record(name).step >= step; }, kPatience);
    }

    static QString text(const fs::path& path) { return QString::fromStdString(path.string()); }
    fs::path path;
    QProcess broker;

private:
    QTemporaryDir m_folder;
};

std::size_t rowCount(const RunFolder& run) {
    const auto reader = RunReader::open(run.database());
    const auto rows = reader ? (*reader)->metricsAfter(0, 1 << 30) : Result<std::vector<MetricRow>>(fail(""));
    return rows ? rows->size() : 0;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCanMeasureMemory = false; // freed memory is kept for a while, and its shadow counts
#else
constexpr bool kCanMeasureMemory = true;
#endif

long residentKilobytes(qint64 pid) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmRSS:")) return std::stol(line.substr(6));
    return -1;
}

} // namespace

class TestBroker : public QObject {
    Q_OBJECT

private Q_SLOTS:
    // one run from the command line
    void aRunIsFollowedToItsEndAndGivesItsChildsExitCode_data();
    void aRunIsFollowedToItsEndAndGivesItsChildsExitCode();
    void aCrashIsNamedBySignalWithTheLogsTail();
    void interruptingTheFollowerSavesAndStops();
    void interruptingTheFollowerTwiceEndsARunThatHangs();
    void aRunCanBePausedContinuedSavedAndStopped();
    void aStoppedRunCanBeResumed();
    void aResumeThatWouldSpoilTheRunIsRefusedAndChangesNothing();
    void setSaysTheSameAsAFieldsOwnOption();
    void interruptingAtTheVeryBeginningStopsTheRun();
    void badRecipesAreRefusedBeforeAnyFolderIsMade();
    void nanIsExportedAsNanAndNeverAsZero();
    // the queue
    void aSecondRunWaitsForTheProcessor();
    void aQueuedRunCanBeStopped();
    void aQueueSurvivesItsBroker();
    void twoRunsAtATimeWhenAsked();
    // killed and stopped
    void case17AKilledChildIsInterruptedWithinFiveSecondsResumableAndDeletable();
    void aStoppedChildBlocksNobodyAndCanBeKilled();
    void aKilledBrokerLeavesItsRunsAndTheNextOneAdoptsThem();
    void aChildKilledWhileNoBrokerLivesIsFoundOutBySignal();
    void everythingKilledAtOnceIsInterrupted();
    void aKilledSupervisorLosesNoOutcome();
    void aStoppedBrokerSlowsNoRun();
    void case18AStoppedClientAndAHundredMegabytesSlowNothing();
    void case18AKilledClientLeavesTheRun();
    // what is said over the line
    void garbageFromAChildHarmsNobody();
    void linesInPiecesArriveWhole();
    void case18AClientThatComesBackMissesNothing();
    void aClientThatWasAwayTooLongIsTold();
    void clientsThatSpeakBadlyAreAnsweredWithAnError();
    void standardStreamsCarryTheSameProtocol();
    // the place
    void aWorkspaceUnderTwoHundredChineseCharactersServes();
    void noRuntimeFolderIsNeeded();
    void aReadOnlyWorkspaceIsListedAndRefusesToServe();
    void aFullDiskRefusesARunAndKeepsTheOthers();
    void aDamagedIndexIsSetAsideAndBuiltAgain();
    void twoCommandsAtOnceStartOneBroker();
    void anIdleBrokerEnds();
    void onlyARunThatIsOverCanBeDeleted();
};

// --- one run from the command line

void TestBroker::aRunIsFollowedToItsEndAndGivesItsChildsExitCode_data() {
    QTest::addColumn<QString>("behaviour");
    QTest::addColumn<int>("code");
    QTest::addColumn<QString>("state");
    QTest::addColumn<QString>("outcome");
    QTest::newRow("ok") << "ok" << 0 << "finished"
                        << "finished";
    QTest::newRow("nan") << "nan" << 0 << "finished"
                         << "finished";
    QTest::newRow("fail") << "fail" << 1 << "failed"
                          << "failed (exit code 1): the fake engine was told to fail";
    QTest::newRow("disk full") << "full" << 7 << "failed"
                               << "failed (exit code 7): the disk is full";
    QTest::newRow("crash") << "crash" << 9 << "interrupted"
                           << "interrupted (signal 11)";
}

void TestBroker::aRunIsFollowedToItsEndAndGivesItsChildsExitCode() {
    QFETCH(QString, behaviour);
    QFETCH(int, code);
    QFETCH(QString, state);
    QFETCH(QString, outcome);
    const Site site; // the verb starts the broker
    const Finished run = site.verb({"run", site.recipe(behaviour)});
    QVERIFY2(run.code == code, run.err);
    QCOMPARE(run.json()["state"].toString(), state);
    QCOMPARE(run.json()["outcome"].toString(), outcome);
    const Finished shown = site.verb({"show", "last"});
    QCOMPARE(shown.json()["record"].toObject()["state"].toString(), state);
    QCOMPARE(shown.json()["events"].toArray().at(0).toObject()["kind"].toString(), QStringLiteral("started"));
    const Finished listed = site.verb({"list"});
    QCOMPARE(listed.json()["runs"].toArray().size(), 1);
    QCOMPARE(listed.json()["runs"].toArray().at(0).toObject()["outcome"].toString(), outcome);
}

void TestBroker::aCrashIsNamedBySignalWithTheLogsTail() {
    Site site;
    QVERIFY(site.serve());
    auto client = app::BrokerClient::connect(site.workspace());
    QVERIFY(client && (*client)->request({{"type", "subscribe"}}));
    QCOMPARE(site.submit("crash").code, 0);
    Message last;
    QElapsedTimer timer;
    timer.start();
    while (timer.elapsed() < kPatience && !last.contains("log_tail")) {
        const auto event = (*client)->nextEvent(100ms);
        QVERIFY(event);
        if (*event && (**event)["type"] == "run") last = **event;
    }
    QVERIFY(last["record"]["outcome"] == "interrupted (signal 11)");
    QVERIFY(last["log_tail"].get<std::string>().find("about to crash at step 5") != std::string::npos);
}

void TestBroker::interruptingTheFollowerSavesAndStops() {
    Site site;
    QVERIFY(site.serve());
    QProcess follower;
    follower.start(kEngine, {"--workspace", Site::text(site.path), "run", site.recipe("ok-100000")});
    QVERIFY(follower.waitForStarted());
    QTRY_VERIFY_WITH_TIMEOUT(!site.workspace().allRuns().empty(), kPatience);
    QVERIFY(site.isAtStep(1));
    ::kill(static_cast<pid_t>(follower.processId()), SIGINT);
    QVERIFY(follower.waitForFinished(kPatience));
    QCOMPARE(follower.exitCode(), int(protocol::Interrupted));
    QVERIFY(site.record().state == RunState::Stopped);
    const auto events = (*RunReader::open(site.run().database()))->eventsAfter(0, 100);
    QVERIFY(events && events->back().kind == "stop");
}

void TestBroker::interruptingTheFollowerTwiceEndsARunThatHangs() {
    Site site;
    QVERIFY(site.serve());
    QProcess follower;
    follower.start(kEngine, {"--workspace", Site::text(site.path), "run", site.recipe("hang-2")});
    QVERIFY(follower.waitForStarted());
    QTRY_VERIFY_WITH_TIMEOUT(!site.workspace().allRuns().empty(), kPatience);
    QVERIFY(site.isAtStep(1));
    ::kill(static_cast<pid_t>(follower.processId()), SIGINT);
    QByteArray said;
    QTRY_VERIFY_WITH_TIMEOUT((said += follower.readAllStandardError()).contains("Ctrl+C again"), kPatience);
    ::kill(static_cast<pid_t>(follower.processId()), SIGINT);
    QVERIFY(follower.waitForFinished(kPatience));
    QCOMPARE(follower.exitCode(), int(protocol::Killed));
    QCOMPARE(site.record().outcome, std::string("interrupted (signal 9)"));
}

void TestBroker::aRunCanBePausedContinuedSavedAndStopped() {
    Site site;
    QVERIFY(site.serve());
    QCOMPARE(site.submit("ok-100000").code, 0);
    QVERIFY(site.isAt(RunState::Running));
    QCOMPARE(site.verb({"pause", "last"}).code, 0);
    QVERIFY(site.isAt(RunState::Paused));
    QCOMPARE(site.verb({"continue", "1"}).code, 0);
    QVERIFY(site.isAt(RunState::Running));
    QCOMPARE(site.verb({"save", "0001-ok-100000"}).code, 0);
    QCOMPARE(site.verb({"stop", "--wait", "last"}).code, 0);
    QVERIFY(site.record().state == RunState::Stopped);
    const auto events = (*RunReader::open(site.run().database()))->eventsAfter(0, 100);
    QVERIFY(events);
    std::vector<std::string> kinds;
    for (const EventRow& event : *events) kinds.push_back(event.kind);
    QVERIFY((kinds == std::vector<std::string>{"started", "paused", "continued", "checkpoint", "stop"}));
    const Finished again = site.verb({"stop", "last"});
    QCOMPARE(again.code, int(protocol::BadInput));
    QVERIFY(again.err.contains("it is stopped"));
    QVERIFY(again.err.contains("\"hint\"")); // --json: errors are JSON too
}

void TestBroker::aStoppedRunCanBeResumed() {
    Site site;
    QVERIFY(site.serve());
    QCOMPARE(site.submit("ok-200").code, 0);
    QVERIFY(site.isAtStep(3));
    QCOMPARE(site.verb({"stop", "--wait", "last"}).code, 0);
    const Finished resumed = site.verb({"resume", "last"});
    QVERIFY2(resumed.code == 0, resumed.err);
    QCOMPARE(resumed.json()["state"].toString(), QStringLiteral("finished"));
    QCOMPARE(resumed.json()["step"].toInt(), 200);
    QCOMPARE(rowCount(site.run()), std::size_t{200});
    QCOMPARE(site.workspace().allRuns().size(), std::size_t{1});
    // Changes go into the run's recipe, checked like any other.
    const Finished bad = site.verb({"resume", "last", "--optimizer.lr", "-1"});
    QCOMPARE(bad.code, int(protocol::BadInput));
    QVERIFY(bad.err.contains("optimizer.lr"));
    QCOMPARE(site.verb({"resume", "last", "--optimizer.lr", "0.5"}).code, 0);
    QVERIFY(readFile(site.run().recipe())->find("0.5") != std::string::npos);
}

void TestBroker::aResumeThatWouldSpoilTheRunIsRefusedAndChangesNothing() {
    Site site;
    QVERIFY(site.serve());
    QCOMPARE(site.verb({"run", site.recipe("ok-5")}).code, 0);
    QVERIFY(fs::create_directories(site.run().checkpoints() / "step-000005"));
    QVERIFY(writeFileAtomically(site.run().checkpoints() / "step-000005" / "manifest.json", "{}"));
    QVERIFY(writeFileAtomically(site.run().checkpoints() / "step-000005" / "state.json", R"({"step": 5})"));
    const std::string recipe = readFile(site.run().recipe()).value();
    for (const auto& [key, value] :
         {std::pair{"--seed", "9"}, {"--tokenizer.vocab_size", "999"}, {"--model.overrides", "layers=1"}, {"--rules", "nowhere: freeze"}}) {
        const Finished refused = site.verb({"resume", "last", key, value});
        QVERIFY2(refused.code != 0, key);
        QCOMPARE(readFile(site.run().recipe()).value(), recipe);
        QVERIFY(site.record().state == RunState::Finished); // as it was
    }
    QCOMPARE(site.verb({"resume", "last", "--set", "seed=9"}).code, int(protocol::BadInput));
    const Finished fewer = site.verb({"resume", "last", "--set", "train.max_steps=4"});
    QCOMPARE(fewer.code, int(protocol::BadInput));
    QVERIFY2(fewer.err.contains("5 steps are done already, more than the 4 asked for."), fewer.err);
    const Finished complete = site.verb({"resume", "last", "--set", "train.max_steps=5"});
    QCOMPARE(complete.code, 0);
    QVERIFY2(complete.err.contains("is complete: all 5 steps are done") && complete.err.contains("--train.max_steps 10"), complete.err);
    QCOMPARE(complete.json()["steps"].toInt(), 5);
    QCOMPARE(readFile(site.run().recipe()).value(), recipe);
    const Finished longer = site.verb({"resume", "last", "--set", "train.max_steps=9", "--optimizer.lr", "0.5"});
    QCOMPARE(longer.code, 0);
    for (const char* line : {"goes on from step-000005: 5 of 9 steps are done", "changed from step 6 on:", "optimizer.lr: 0.0003 -> 0.5", "train.max_steps: 0 -> 9"})
        QVERIFY2(longer.err.contains(line), longer.err);
}

void TestBroker::setSaysTheSameAsAFieldsOwnOption() {
    Site site;
    QVERIFY(site.serve());
    QCOMPARE(site.verb({"run", site.recipe("ok-3"), "--set", "optimizer.lr=0.25", "--set", "seed=7"}).code, 0);
    const auto recipe = Message::parse(readFile(site.run().recipe()).value());
    QCOMPARE(recipe["optimizer"]["lr"].get<double>(), 0.25);
    QCOMPARE(recipe["seed"].get<int>(), 7);
    for (const char* bad : {"optimizer.lr", "=3", "optimizer.lrr=1", "optimizer.lr=x"})
        QCOMPARE(site.verb({"run", site.recipe("ok-3"), "--set", bad}).code, int(protocol::BadInput));
    QCOMPARE(site.workspace().allRuns().size(), std::size_t{1});
}

void TestBroker::interruptingAtTheVeryBeginningStopsTheRun() {
    Site site;
    QVERIFY(site.serve());
    for (int attempt = 0; attempt < 5; ++attempt) { // the moment between the submission and the first look at the run
        QProcess follower;
        follower.start(kEngine, {"--workspace", Site::text(site.path), "run", site.recipe("ok-100000")});
        QByteArray said;
        QTRY_VERIFY_WITH_TIMEOUT((said += follower.readAllStandardError()).contains("run "), kPatience);
        ::kill(static_cast<pid_t>(follower.processId()), SIGINT);
        QVERIFY(follower.waitForFinished(kPatience));
        QVERIFY(follower.exitStatus() == QProcess::NormalExit);
        QCOMPARE(follower.exitCode(), int(protocol::Interrupted));
        QVERIFY(site.record().state == RunState::Stopped);
    }
}

void TestBroker::badRecipesAreRefusedBeforeAnyFolderIsMade() {
    Site site;
    QVERIFY(site.serve());
    const fs::path file = site.path.parent_path() / "bad.json";
    QVERIFY(writeFileAtomically(file, R"({"optimizer": {"lrr": 1}})"));
    const Finished unknown = site.verb({"run", Site::text(file)});
    QCOMPARE(unknown.code, int(protocol::BadInput));
    QVERIFY(unknown.err.contains("optimizer.lrr") && unknown.err.contains("optimizer.lr"));
    QCOMPARE(site.verb({"run", Site::text(file.parent_path() / "missing.json")}).code, int(protocol::BadInput));
    const auto refused = site.ask({{"type", "submit"}, {"recipe", {{"optimizer", {{"lrr", 1}}}}}}); // the window's way
    QVERIFY(!refused && !refused.error().message.empty());
    for (const char* wrong :
         {"model.overrides=heads=7", "model.source=nothing", "rules=layers.99.**: freeze", "rules=**: lora", "name=two\nlines"}) {
        const Finished said = site.verb({"run", site.recipe("ok-3"), "--set", wrong});
        QVERIFY2(said.code == protocol::BadInput, wrong);
        QVERIFY2(said.err.contains("\"place\":\""), said.err);
    }
    QVERIFY(site.workspace().allRuns().empty());
    QCOMPARE(site.verb({"run"}).code == 0, false);
}

void TestBroker::nanIsExportedAsNanAndNeverAsZero() {
    Site site;
    QVERIFY(site.serve());
    QCOMPARE(site.verb({"run", site.recipe("nan-10")}).code, 0);
    const Finished csv = site.verb({"export-metrics", "last"});
    const QList<QByteArray> lines = csv.out.trimmed().split('\n');
    QCOMPARE(lines.size(), 11);
    QCOMPARE(lines[0], QByteArray("id,step,epoch,name,value,time,superseded"));
    QVERIFY(lines[1].startsWith("1,1,0,train/loss,10,"));
    QVERIFY(lines[3].startsWith("3,3,0,train/loss,3.3333333333333335,")); // 10 / 3 as the nearest double
    QVERIFY(lines[10].startsWith("10,10,0,train/loss,nan,"));
    const QString file = Site::text(site.path.parent_path() / "metrics.json");
    QCOMPARE(site.verb({"export-metrics", "last", "--format", "json", "--out", file}).code, 0);
    const QJsonArray rows = QJsonDocument::fromJson(QByteArray::fromStdString(*readFile(file.toStdString()))).array();
    QCOMPARE(rows.size(), 10);
    QCOMPARE(rows.at(9).toObject()["value"].toString(), QStringLiteral("nan"));
    QVERIFY(site.verb({"list"}).json()["runs"].toArray().at(0).toObject()["loss"].isNull());
}

// --- the queue

void TestBroker::aSecondRunWaitsForTheProcessor() {
    Site site;
    QVERIFY(site.serve());
    QCOMPARE(site.submit("ok-100000").code, 0);
    QCOMPARE(site.submit("ok-3").code, 0);
    QVERIFY(site.isAtStep(5, "1"));
    QVERIFY(site.record("2").state == RunState::Queued);
    QCOMPARE(site.verb({"stop", "1"}).code, 0);
    QVERIFY(site.isAt(RunState::Finished, "2"));
}

void TestBroker::aQueuedRunCanBeStopped() {
    Site site;
    QVERIFY(site.serve());
    QCOMPARE(site.submit("ok-100000").code, 0);
    QCOMPARE(site.submit("ok-3").code, 0);
    QVERIFY(!site.ask({{"type", "control"}, {"run", "2"}, {"action", "pause"}}));
    QCOMPARE(site.verb({"stop", "2"}).code, 0);
    QVERIFY(site.record("2").state == RunState::Stopped);
    QCOMPARE(site.verb({"stop", "--wait", "1"}).code, 0);
    QVERIFY(!fs::exists(site.run("2").database())); // it never began
    QCOMPARE(site.verb({"resume", "2"}).code, 0);
}

void TestBroker::aQueueSurvivesItsBroker() {
    Site site;
    QVERIFY(site.serve());
    QCOMPARE(site.submit("ok-100000").code, 0);
    QCOMPARE(site.submit("ok-3").code, 0);
    QVERIFY(site.isAt(RunState::Running, "1"));
    site.killBroker();
    QVERIFY(site.serve());
    QVERIFY(site.record("2").state == RunState::Queued); // the adopted run still has the processor
    QCOMPARE(site.verb({"stop", "1"}).code, 0);
    QVERIFY(site.isAt(RunState::Finished, "2"));
}

void TestBroker::twoRunsAtATimeWhenAsked() {
    Site site;
    QVERIFY(site.serve({"--parallel", "2"}));
    QCOMPARE(site.submit("ok-100000").code, 0);
    QCOMPARE(site.submit("ok-100000").code, 0);
    QVERIFY(site.isAt(RunState::Running, "1"));
    QVERIFY(site.isAt(RunState::Running, "2"));
}

// --- killed and stopped

void TestBroker::case17AKilledChildIsInterruptedWithinFiveSecondsResumableAndDeletable() {
    Site site;
    QVERIFY(site.serve());
    QCOMPARE(site.submit("ok-300").code, 0);
    QVERIFY(site.isAtStep(3));
    QCOMPARE(::kill(site.child(), SIGKILL), 0);
    // Case 17 gives five seconds, and asks what the index and the broker say.
    const auto said = [&] {
        const auto answer = site.ask({{"type", "list"}});
        return answer && (*answer)["runs"][0]["outcome"] == "interrupted (signal 9)";
    };
    QTRY_VERIFY(said());
    QVERIFY(site.verb({"show", "last"}).json()["log_tail"].toString().contains("fake engine"));
    QVERIFY(rowCount(site.run()) >= 3);
    QCOMPARE(site.verb({"resume", "last"}).code, 0);
    QCOMPARE(site.record().step, std::int64_t{300});
    QCOMPARE(site.verb({"delete", "last"}).code, 0);
    QVERIFY(site.workspace().allRuns().empty());
    QVERIFY(site.verb({"list"}).json()["runs"].toArray().isEmpty());
    QCOMPARE(site.submit("ok-2").code, 0);
    QCOMPARE(site.run().number(), 2); // the deleted run's number is not given again
}

void TestBroker::aStoppedChildBlocksNobodyAndCanBeKilled() {
    Site site;
    QVERIFY(site.serve({"--parallel", "2"}));
    QCOMPARE(site.submit("ok-100000").code, 0);
    QVERIFY(site.isAtStep(1));
    ::kill(site.child(), SIGSTOP);
    QCOMPARE(site.verb({"run", site.recipe("ok-3")}).code, 0); // others go on
    QVERIFY(site.ask({{"type", "list"}}));
    QCOMPARE(site.verb({"stop", "--kill", "--wait", "1"}).code, 0);
    QCOMPARE(site.record("1").outcome, std::string("interrupted (signal 9)"));
}

void TestBroker::aKilledBrokerLeavesItsRunsAndTheNextOneAdoptsThem() {
    Site site;
    QVERIFY(site.serve());
    QCOMPARE(site.submit("ok-200").code, 0);
    QVERIFY(site.isAtStep(1));
    const pid_t child = site.child();
    site.killBroker();
    const std::int64_t step = site.record().step;
    QVERIFY(site.isAtStep(step + 3)); // unaffected
    QVERIFY(site.serve());
    QCOMPARE(site.child(), child);
    QCOMPARE(site.verb({"pause", "last"}).code, 0); // the new one has its ear
    QVERIFY(site.isAt(RunState::Paused));
    QCOMPARE(site.verb({"continue", "last"}).code, 0);
    QVERIFY(site.isAt(RunState::Finished));
    QCOMPARE(rowCount(site.run()), std::size_t{200});
    const auto listed = site.ask({{"type", "list"}});
    QVERIFY(listed);
    QTRY_VERIFY((*site.ask({{"type", "list"}}))["runs"][0]["state"] == "finished");
}

void TestBroker::aChildKilledWhileNoBrokerLivesIsFoundOutBySignal() {
    Site site;
    QVERIFY(site.serve());
    QCOMPARE(site.submit("ok-100000").code, 0);
    QVERIFY(site.isAtStep(1));
    site.killBroker();
    ::kill(site.child(), SIGKILL);
    QVERIFY(QTest::qWaitFor([&] { return !isHeld(site.run()); }, kPatience));
    QCOMPARE(site.record().outcome, std::string("interrupted (signal 9)"));
    QVERIFY(site.serve());
    const auto listed = site.ask({{"type", "list"}});
    QVERIFY(listed);
    QVERIFY((*listed)["runs"][0]["outcome"] == "interrupted (signal 9)");
}

void TestBroker::everythingKilledAtOnceIsInterrupted() {
    Site site;
    QVERIFY(site.serve());
    QCOMPARE(site.submit("ok-100").code, 0);
    QVERIFY(site.isAtStep(1));
    const pid_t child = site.child();
    ::kill(site.supervisor(), SIGKILL); // as a machine that loses its power
    ::kill(child, SIGKILL);
    site.killBroker();
    QVERIFY(QTest::qWaitFor([&] { return !isHeld(site.run()); }, kPatience));
    QVERIFY(site.record().state == RunState::Interrupted);
    QVERIFY(site.serve());
    QVERIFY((*site.ask({{"type", "list"}}))["runs"][0]["state"] == "interrupted");
    QCOMPARE(site.verb({"resume", "last"}).code, 0);
    QVERIFY(site.record().state == RunState::Finished);
}

void TestBroker::aKilledSupervisorLosesNoOutcome() {
    Site site;
    QVERIFY(site.serve());
    QCOMPARE(site.submit("ok-100").code, 0);
    QVERIFY(site.isAtStep(1));
    ::kill(site.supervisor(), SIGKILL);
    QVERIFY(site.isAtStep(5));
    QVERIFY(site.isAt(RunState::Finished));
    QTRY_VERIFY((*site.ask({{"type", "list"}}))["runs"][0]["state"] == "finished");
}

void TestBroker::aStoppedBrokerSlowsNoRun() {
    Site site;
    QVERIFY(site.serve());
    QCOMPARE(site.submit("flood-50").code, 0); // 100 MB towards a broker that does not listen
    QVERIFY(site.isAtStep(1));
    ::kill(static_cast<pid_t>(site.broker.processId()), SIGSTOP);
    QVERIFY(site.isAt(RunState::Finished));
    ::kill(static_cast<pid_t>(site.broker.processId()), SIGCONT);
    QTRY_VERIFY_WITH_TIMEOUT((*site.ask({{"type", "list"}}))["runs"][0]["state"] == "finished", kPatience);
    QCOMPARE(rowCount(site.run()), std::size_t{50});
}

void TestBroker::case18AStoppedClientAndAHundredMegabytesSlowNothing() {
    Site site;
    QVERIFY(site.serve());
    const auto fd = protocol::connectTo(protocol::brokerSocket(site.workspace()));
    QVERIFY(fd);
    const auto close = qScopeGuard([&] { ::close(*fd); });
    const std::string lines = protocol::toLine({{"type", "hello"}, {"id", 1}, {"version", protocol::kVersion}}) +
                              protocol::toLine({{"type", "subscribe"}, {"id", 2}});
    QCOMPARE(::send(*fd, lines.data(), lines.size(), MSG_NOSIGNAL), static_cast<ssize_t>(lines.size()));
    // From here on nothing is read: a window that is stopped.
    const Finished run = site.verb({"run", site.recipe("flood-50")});
    QVERIFY2(run.code == 0, run.err);
    QCOMPARE(rowCount(site.run()), std::size_t{50});
    QVERIFY(fs::file_size(site.run().log()) > 100'000'000);
    if (kCanMeasureMemory) QVERIFY(residentKilobytes(site.broker.processId()) < 300'000); // nothing of it is kept for those who do not read
    // When it wakes up, it is told to read the databases again.
    bool isTold = false;
    protocol::LineReader reader;
    std::array<char, 1 << 16> block{};
    QElapsedTimer timer;
    timer.start();
    while (!isTold && timer.elapsed() < kPatience) {
        const ssize_t got = ::recv(*fd, block.data(), block.size(), MSG_DONTWAIT);
        if (got < 0) QTest::qWait(1);
        if (got <= 0) continue;
        for (const auto& message : reader.feed({block.data(), static_cast<std::size_t>(got)}))
            isTold = isTold || (message && (*message)["type"] == "dropped");
    }
    QVERIFY(isTold);
}

void TestBroker::case18AKilledClientLeavesTheRun() {
    Site site;
    QVERIFY(site.serve());
    QProcess follower;
    follower.start(kEngine, {"--workspace", Site::text(site.path), "run", site.recipe("ok-100")});
    QVERIFY(follower.waitForStarted());
    QTRY_VERIFY_WITH_TIMEOUT(!site.workspace().allRuns().empty(), kPatience);
    QVERIFY(site.isAtStep(1));
    follower.kill();
    QVERIFY(follower.waitForFinished());
    QVERIFY(site.isAt(RunState::Finished));
    QCOMPARE(rowCount(site.run()), std::size_t{100});
}

// --- what is said over the line

void TestBroker::garbageFromAChildHarmsNobody() {
    Site site;
    QVERIFY(site.serve());
    auto client = app::BrokerClient::connect(site.workspace());
    QVERIFY(client && (*client)->request({{"type", "subscribe"}}));
    QCOMPARE(site.verb({"run", site.recipe("garbage")}).code, 0);
    bool isGoodLineHeard = false;
    QElapsedTimer timer;
    timer.start();
    while (!isGoodLineHeard && timer.elapsed() < kPatience) {
        const auto event = (*client)->nextEvent(100ms);
        QVERIFY(event);
        isGoodLineHeard = *event && (**event)["type"] == "message" && (**event)["message"] == "整行";
    }
    QVERIFY(isGoodLineHeard);
    QCOMPARE(site.verb({"run", site.recipe("ok-3")}).code, 0);
}

void TestBroker::linesInPiecesArriveWhole() {
    Site site;
    QVERIFY(site.serve());
    auto client = app::BrokerClient::connect(site.workspace());
    QVERIFY(client && (*client)->request({{"type", "subscribe"}}));
    QCOMPARE(site.submit("split").code, 0);
    QElapsedTimer timer;
    timer.start();
    Message heard;
    while (heard.is_null() && timer.elapsed() < kPatience) {
        const auto event = (*client)->nextEvent(100ms);
        QVERIFY(event);
        if (*event && (**event)["type"] == "message") heard = **event;
    }
    QVERIFY(heard["message"] == "整行");
    QVERIFY(heard["run"] == "0001-split");
    QVERIFY(heard["seq"].is_number_integer());
}

void TestBroker::case18AClientThatComesBackMissesNothing() {
    Site site;
    QVERIFY(site.serve());
    auto first = app::BrokerClient::connect(site.workspace());
    QVERIFY(first && (*first)->request({{"type", "subscribe"}}));
    QCOMPARE(site.submit("ok-100").code, 0);
    std::int64_t seen = 0;
    for (int i = 0; i < 5; ++i) {
        const auto event = (*first)->nextEvent(std::chrono::milliseconds(kPatience));
        QVERIFY(event && *event);
        const std::int64_t sequence = (**event)["seq"];
        QVERIFY(seen == 0 || sequence == seen + 1);
        seen = sequence;
    }
    first->reset();
    QVERIFY(site.isAt(RunState::Finished));
    auto second = app::BrokerClient::connect(site.workspace());
    QVERIFY(second);
    const auto answer = (*second)->request({{"type", "subscribe"}, {"after", seen}});
    QVERIFY(answer && (*answer)["missed"] == false);
    const std::int64_t last = (*answer)["sequence"];
    while (seen < last) {
        const auto event = (*second)->nextEvent(std::chrono::milliseconds(kPatience));
        QVERIFY(event && *event);
        const std::int64_t sequence = (**event)["seq"];
        QCOMPARE(sequence, seen + 1);
        seen = sequence;
    }
}

void TestBroker::aClientThatWasAwayTooLongIsTold() {
    Site site;
    QVERIFY(site.serve());
    auto client = app::BrokerClient::connect(site.workspace());
    QVERIFY(client);
    const auto before = (*client)->request({{"type", "subscribe"}});
    QVERIFY(before && (*before)["missed"] == false);
    site.killBroker();
    QVERIFY(site.serve()); // another broker: its numbers are above those of the first
    auto again = app::BrokerClient::connect(site.workspace());
    QVERIFY(again);
    const auto after = (*again)->request({{"type", "subscribe"}, {"after", (*before)["sequence"]}});
    QVERIFY(after);
    QVERIFY((*after)["missed"] == true);
    QVERIFY((*after)["sequence"].get<std::int64_t>() > (*before)["sequence"].get<std::int64_t>());
}

void TestBroker::clientsThatSpeakBadlyAreAnsweredWithAnError() {
    Site site;
    QVERIFY(site.serve());
    const auto fd = protocol::connectTo(protocol::brokerSocket(site.workspace()));
    QVERIFY(fd);
    const auto close = qScopeGuard([&] { ::close(*fd); });
    protocol::LineReader reader;
    const auto answerTo = [&](const std::string& line) -> Message {
        if (::send(*fd, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size())) return {};
        std::array<char, 4096> block{};
        for (int i = 0; i < 5000; ++i) {
            const ssize_t got = ::recv(*fd, block.data(), block.size(), MSG_DONTWAIT);
            if (got > 0)
                if (const auto messages = reader.feed({block.data(), static_cast<std::size_t>(got)}); !messages.empty() && messages[0])
                    return *messages[0];
            QTest::qWait(1);
        }
        return {};
    };
    const auto isRefused = [](const Message& answer) {
        return answer.is_object() && answer["ok"] == false && !answer["error"]["message"].get<std::string>().empty();
    };
    QVERIFY(isRefused(answerTo("no json\n")));
    QVERIFY(isRefused(answerTo("{\"type\": \"list\", \"id\": 1}\n"))); // hello comes first
    QVERIFY(isRefused(answerTo("{\"type\": \"hello\", \"version\": 999, \"id\": 1}\n")));
    QVERIFY(isRefused(answerTo("{\"type\": \"hello\", \"id\": 1}\n")));
    QVERIFY(answerTo("{\"type\": \"hello\", \"version\": 1, \"id\": 1}\n")["ok"] == true);
    for (const char* bad : {"explode", "submit", "resume", "control", "delete"})
        QVERIFY(isRefused(answerTo(protocol::toLine({{"type", bad}, {"id", {1, 2}}, {"run", 7}, {"recipe", "x"}}))));
    QVERIFY(isRefused(answerTo("{\"type\": \"subscribe\", \"after\": \"x\"}\n")));
    QVERIFY(answerTo("{\"type\": \"list\", \"id\": 2}\n")["ok"] == true);
}

void TestBroker::standardStreamsCarryTheSameProtocol() {
    const Site site; // the verb starts the broker
    QProcess process;
    process.start(kEngine, {"--workspace", Site::text(site.path), "serve", "--stdio"});
    QVERIFY(process.waitForStarted());
    process.write(QByteArray::fromStdString(protocol::toLine({{"type", "hello"}, {"id", 1}, {"version", protocol::kVersion}}) +
                                            protocol::toLine({{"type", "list"}, {"id", 2}})));
    QByteArray said;
    QTRY_VERIFY_WITH_TIMEOUT((said += process.readAllStandardOutput()).count('\n') == 2, kPatience);
    QVERIFY(said.contains("\"runs\":[]"));
    process.closeWriteChannel(); // the connection is lost
    QVERIFY(process.waitForFinished(kPatience));
    QCOMPARE(process.exitCode(), 0);
    QVERIFY(protocol::isBrokerAlive(site.workspace())); // and the broker stays
}

// --- the place

void TestBroker::aWorkspaceUnderTwoHundredChineseCharactersServes() {
    fs::path deep;
    for (int i = 0; i < 4; ++i) deep /= QString(50, QChar(0x7ec7)).toStdString();
    Site site(deep);
    QVERIFY(site.serve());
    const Finished run = site.verb({"run", site.recipe("ok-5")});
    QVERIFY2(run.code == 0, run.err);
    QCOMPARE(rowCount(site.run()), std::size_t{5});
    QCOMPARE(site.verb({"list"}).json()["runs"].toArray().size(), 1);
    QCOMPARE(site.verb({"export-metrics", "last"}).code, 0);
}

void TestBroker::noRuntimeFolderIsNeeded() {
    const Site site;
    qunsetenv("XDG_RUNTIME_DIR");
    const Finished run = site.verb({"run", site.recipe("ok-5")});
    QVERIFY2(run.code == 0, run.err);
}

void TestBroker::aReadOnlyWorkspaceIsListedAndRefusesToServe() {
    Site site("disk/w");
    const fs::path disk = site.path.parent_path();
    fs::create_directory(disk);
    if (::mount("celloom-test", disk.c_str(), "tmpfs", 0, "size=16m") != 0) QSKIP("mounting a read-only disk needs root");
    const auto unmount = qScopeGuard([&] { ::umount2(disk.c_str(), MNT_DETACH); });
    QVERIFY(site.serve());
    QCOMPARE(site.verb({"run", site.recipe("ok-5")}).code, 0);
    site.killBroker();
    QCOMPARE(::mount("celloom-test", disk.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr), 0);
    const Finished listed = site.verb({"list"});
    QVERIFY2(listed.code == 0, listed.err);
    QCOMPARE(listed.json()["runs"].toArray().at(0).toObject()["state"].toString(), QStringLiteral("finished"));
    QCOMPARE(site.verb({"export-metrics", "last"}).out.count('\n'), 6);
    QCOMPARE(site.verb({"show", "last"}).code, 0);
    for (const QStringList& verb : {QStringList{"serve"}, QStringList{"run", site.recipe("ok-5")}}) {
        const Finished refused = site.verb(verb);
        QCOMPARE(refused.code, int(protocol::Failure));
        QVERIFY2(refused.err.contains("Read-only file system") && refused.err.contains("--workspace"), refused.err);
    }
}

void TestBroker::aFullDiskRefusesARunAndKeepsTheOthers() {
    Site site("disk/w");
    const fs::path disk = site.path.parent_path();
    fs::create_directory(disk);
    if (::mount("celloom-test", disk.c_str(), "tmpfs", 0, "size=4m") != 0) QSKIP("mounting a small disk needs root");
    const auto unmount = qScopeGuard([&] { ::umount2(disk.c_str(), MNT_DETACH); });
    QVERIFY(site.serve());
    QCOMPARE(site.verb({"run", site.recipe("ok-5")}).code, 0);
    QCOMPARE(site.submit("ok-100000-5").code, 0);
    QVERIFY(site.isAtStep(3, "2"));
    const int filler = ::open((disk / "filler").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    const std::string block(4096, 'x');
    while (::write(filler, block.data(), block.size()) > 0) {
    }
    ::close(filler);
    const Finished refused = site.submit("ok-5");
    QCOMPARE(refused.code, int(protocol::DiskFull));
    QVERIFY2(refused.err.contains("No space left") || refused.err.contains("disk is full"), refused.err);
    QCOMPARE(site.workspace().allRuns().size(), std::size_t{2}); // nothing half made
    QCOMPARE(rowCount(site.run("1")), std::size_t{5});
    // A child that dies now is still known by its signal: its place in child.lock was reserved.
    ::kill(site.child("2"), SIGKILL);
    QTRY_VERIFY_WITH_TIMEOUT(!isHeld(site.run("2")), kPatience);
    QCOMPARE(site.record("2").outcome, std::string("interrupted (signal 9)"));
    fs::remove(disk / "filler");
    QCOMPARE(site.verb({"run", site.recipe("ok-5")}).code, 0);
    QTRY_VERIFY((*site.ask({{"type", "list"}}))["runs"].size() == 3);
}

void TestBroker::aDamagedIndexIsSetAsideAndBuiltAgain() {
    Site site;
    QVERIFY(site.serve());
    QCOMPARE(site.verb({"run", site.recipe("ok-5")}).code, 0);
    site.killBroker();
    for (const char* part : {"-wal", "-shm"}) fs::remove(site.workspace().index().string() + part);
    QVERIFY(writeFileAtomically(site.workspace().index(), std::string(8192, 'x')));
    QVERIFY(site.serve());
    const auto listed = site.ask({{"type", "list"}});
    QVERIFY(listed && (*listed)["runs"].size() == 1 && (*listed)["runs"][0]["state"] == "finished");
    int kept = 0;
    for (const auto& entry : fs::directory_iterator(site.path))
        kept += entry.path().filename().string().starts_with("celloom.db.damaged-") ? 1 : 0;
    QCOMPARE(kept, 1);
}

void TestBroker::twoCommandsAtOnceStartOneBroker() {
    const Site site;
    QVERIFY(!protocol::isBrokerAlive(site.workspace()));
    std::array<QProcess, 4> verbs;
    for (QProcess& verb : verbs) verb.start(kEngine, {"--workspace", Site::text(site.path), "run", site.recipe("ok-3")});
    for (QProcess& verb : verbs) {
        QVERIFY(verb.waitForFinished(kPatience));
        QVERIFY2(verb.exitCode() == 0, verb.readAllStandardError().constData());
    }
    QCOMPARE(site.workspace().allRuns().size(), std::size_t{4});
    QProcess second;
    second.start(kEngine, {"--workspace", Site::text(site.path), "serve"});
    QVERIFY(second.waitForFinished(kPatience));
    QCOMPARE(second.exitCode(), int(protocol::Failure));
    QVERIFY(second.readAllStandardError().contains("another broker"));
}

void TestBroker::anIdleBrokerEnds() {
    Site site;
    site.broker.start(kEngine, {"--workspace", Site::text(site.path), "serve", "--idle-seconds", "1"});
    QVERIFY(site.broker.waitForStarted());
    QTRY_VERIFY_WITH_TIMEOUT(protocol::isBrokerAlive(site.workspace()), kPatience);
    QVERIFY(site.broker.waitForFinished(kPatience));
    QCOMPARE(site.broker.exitCode(), 0);
    QVERIFY(!protocol::isBrokerAlive(site.workspace()));
}

void TestBroker::onlyARunThatIsOverCanBeDeleted() {
    Site site;
    QVERIFY(site.serve());
    QCOMPARE(site.submit("ok-100000").code, 0);
    QCOMPARE(site.submit("ok-100000").code, 0);
    QVERIFY(site.isAt(RunState::Running, "1"));
    for (const char* run : {"1", "2"}) {
        const Finished refused = site.verb({"delete", run});
        QCOMPARE(refused.code, int(protocol::Failure));
        QVERIFY(refused.err.contains("not over"));
    }
    QCOMPARE(site.workspace().allRuns().size(), std::size_t{2});
    QCOMPARE(site.verb({"stop", "2"}).code, 0);
    QCOMPARE(site.verb({"delete", "2"}).code, 0);
    QCOMPARE(site.workspace().allRuns().size(), std::size_t{1});
}

QTEST_GUILESS_MAIN(TestBroker)
#include "tst_broker.moc"
