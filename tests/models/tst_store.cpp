// The stores: what is said arrives, survives a kill, and never blocks; folders and the index can be trusted.
#include "models/base/files.h"
#include "models/store/index.h"
#include "models/store/run_folder.h"
#include "models/store/run_lock.h"
#include "models/store/run_store.h"

#include <QTemporaryDir>
#include <QTest>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace celloom;
using namespace celloom::store;
namespace fs = std::filesystem;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

fs::path in(const QTemporaryDir& folder, const char* name) {
    return fs::path(folder.path().toStdString()) / name;
}

/// Runs `work` in a forked process and gives its wait status.
template <class Work> int forked(Work work) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        work();
        ::_exit(0);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return status;
}

// Works of a program of its own, this one with the work's name and a database: a fork that starts threads is more than sanitizers follow.

/// Five flushes of ten rows each.
int writeBatches(const fs::path& path) {
    auto writer = RunWriter::open(path);
    if (!writer) return 1;
    for (int batch = 0; batch < 5; ++batch) {
        for (int step = 0; step < 10; ++step) (*writer)->metric(batch * 10 + step, 0, "train/loss", step);
        if (!(*writer)->flush()) return 1;
    }
    return 0;
}

/// A hundred rows flushed, one not, and a kill.
int writeAndDie(const fs::path& path) {
    auto writer = RunWriter::open(path);
    if (!writer) return 1;
    for (int step = 1; step <= 100; ++step) (*writer)->metric(step, 0, "train/loss", step);
    if (!(*writer)->flush()) return 1;
    (*writer)->metric(101, 0, "train/loss", 101);
    return ::raise(SIGKILL);
}

/// Writes until a limit on the size of files stops it, as a full disk would: writes past it fail (EFBIG).
int writeUntilFull(const fs::path& path) {
    ::signal(SIGXFSZ, SIG_IGN);
    auto writer = RunWriter::open(path);
    if (!writer) return 1;
    for (int step = 0; step < 100; ++step) (*writer)->metric(step, 0, "train/loss", step);
    if (!(*writer)->flush()) return 2;
    const rlimit limit{200000, 200000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    Status last;
    for (int batch = 0; last && batch < 100; ++batch) {
        for (int step = 0; step < 1000; ++step) (*writer)->metric(step, 0, "train/loss", step);
        last = (*writer)->flush();
    }
    if (last) return 3;
    return (*writer)->lastError().message == last.error().message ? 0 : 4;
}

const std::map<std::string, int (*)(const fs::path&)> kWorks{
    {"--write-batches", writeBatches}, {"--write-and-die", writeAndDie}, {"--write-until-full", writeUntilFull}};

/// The wait status of a work.
int statusOf(const char* work, const fs::path& path) {
    return forked([&] { ::execl("/proc/self/exe", "tst_store", work, path.c_str(), nullptr); });
}

std::size_t metricCount(const fs::path& database) {
    const auto reader = RunReader::open(database);
    if (!reader) return 0;
    const auto rows = (*reader)->metricsAfter(0, 1 << 30);
    return rows ? rows->size() : 0;
}

} // namespace

class TestStore : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void whatWasSaidIsReadBack();
    void nanAndInfinityStayWhatTheyAre();
    void aNewReaderContinuesAfterTheLastRow();
    void aResumeSupersedesLaterStepsAndGrowsTheGeneration();
    void whatWasFlushedSurvivesAKill();
    void aKillInsideACommitLeavesWholeBatches();
    void aReaderInsideATransactionDoesNotBlockTheWriter();
    void twoProcessesWriteAndReadAtOnceAndNoRowIsLost();
    void aFailingWriteIsReportedAndNothingCommittedIsLost();
    void writingGoesOnWhenTheDiskHasRoomAgain();
    void aReadOnlyFolderRefusesAWriterAndServesReaders();
    void aFileThatIsNoDatabaseIsRefused();
    void aDatabaseOfANewerSchemaIsRefused();
    void numbersAreGivenOnceEvenToTwoProcesses();
    void namesOfRunsBecomeSafeFolderNames_data();
    void namesOfRunsBecomeSafeFolderNames();
    void aDeletedRunsNumberIsNeverGivenAgain();
    void runsAreFoundByNumberNameAndLast();
    void rebuildingTheIndexKeepsNotesAndTags();
    void aRunThatNobodySawEndingIsInterrupted();
    void aSignalIsNamedInTheOutcome();
    void theRateOfARecordIsTheRecipes();
    void theLockIsHeldWhileAProcessLivesAndNoLonger();
    void aWorkspaceUnderTwoHundredChineseCharactersWorks();
};

void TestStore::whatWasSaidIsReadBack() {
    QTemporaryDir folder;
    const auto path = in(folder, "run.db");
    {
        auto writer = RunWriter::open(path);
        QVERIFY(writer);
        (*writer)->metric(1, 0.5, "train/loss", 2.25);
        (*writer)->event(1, "warning", "overflow", "step 1 overflowed", "lower the scale", R"({"scale":1024})");
        (*writer)->sample(1, "从前", "从前有座山");
        Progress progress;
        progress.state = RunState::Running;
        progress.stage = "training";
        progress.step = 1;
        progress.totalSteps = 10;
        (*writer)->progress(progress);
        QVERIFY((*writer)->flush());
        QCOMPARE((*writer)->lastMetricId(), std::int64_t{1});
    }
    const auto reader = RunReader::open(path);
    QVERIFY(reader);
    const auto metrics = (*reader)->metricsAfter(0, 10);
    QVERIFY(metrics && metrics->size() == 1);
    QCOMPARE(metrics->front().name, std::string("train/loss"));
    QCOMPARE(metrics->front().value, 2.25);
    QCOMPARE(metrics->front().epoch, 0.5);
    const auto events = (*reader)->eventsAfter(0, 10);
    QVERIFY(events && events->size() == 1);
    QCOMPARE(events->front().hint, std::string("lower the scale"));
    QCOMPARE(events->front().data, std::string(R"({"scale":1024})"));
    const auto samples = (*reader)->samplesAfter(0, 10);
    QVERIFY(samples && samples->size() == 1);
    QCOMPARE(samples->front().text, std::string("从前有座山"));
    const auto progress = (*reader)->progress();
    QVERIFY(progress);
    QVERIFY(progress->state == RunState::Running);
    QCOMPARE(progress->totalSteps, std::int64_t{10});
}

void TestStore::nanAndInfinityStayWhatTheyAre() {
    QTemporaryDir folder;
    const auto path = in(folder, "run.db");
    auto writer = RunWriter::open(path);
    QVERIFY(writer);
    for (const double value : {kNan, kInf, -kInf, 0.0}) (*writer)->metric(1, 0, "train/loss", value);
    QVERIFY((*writer)->flush());
    const auto rows = (*RunReader::open(path))->metricsAfter(0, 10);
    QVERIFY(rows && rows->size() == 4);
    QVERIFY(std::isnan((*rows)[0].value));
    QCOMPARE((*rows)[1].value, kInf);
    QCOMPARE((*rows)[2].value, -kInf);
    QCOMPARE((*rows)[3].value, 0.0);
}

void TestStore::aNewReaderContinuesAfterTheLastRow() {
    QTemporaryDir folder;
    const auto path = in(folder, "run.db");
    auto writer = RunWriter::open(path);
    QVERIFY(writer);
    for (int step = 1; step <= 5; ++step) (*writer)->metric(step, 0, "train/loss", step);
    QVERIFY((*writer)->flush());
    const auto first = (*RunReader::open(path))->metricsAfter(0, 2);
    QVERIFY(first && first->size() == 2);
    const auto rest = (*RunReader::open(path))->metricsAfter(first->back().id, 100);
    QVERIFY(rest && rest->size() == 3);
    QCOMPARE(rest->front().step, std::int64_t{3});
}

void TestStore::aResumeSupersedesLaterStepsAndGrowsTheGeneration() {
    QTemporaryDir folder;
    const auto path = in(folder, "run.db");
    auto writer = RunWriter::open(path);
    QVERIFY(writer);
    for (int step = 1; step <= 5; ++step) (*writer)->metric(step, 0, "train/loss", step);
    QVERIFY((*writer)->flush());
    const auto reader = RunReader::open(path);
    QVERIFY(reader);
    QCOMPARE((*reader)->generation().value(), std::int64_t{0});
    QVERIFY((*writer)->supersedeAfter(3));
    QCOMPARE((*reader)->generation().value(), std::int64_t{1});
    const auto rows = (*reader)->metricsAfter(0, 10);
    QVERIFY(rows && rows->size() == 5);
    for (const MetricRow& row : *rows) QCOMPARE(row.isSuperseded, row.step > 3);
    const auto latest = (*reader)->latest();
    QVERIFY(latest && latest->size() == 1);
    QCOMPARE(latest->front().step, std::int64_t{3});
}

void TestStore::whatWasFlushedSurvivesAKill() {
    QTemporaryDir folder;
    const auto path = in(folder, "run.db");
    const int status = statusOf("--write-and-die", path);
    QVERIFY(WIFSIGNALED(status));
    QVERIFY(metricCount(path) >= 100);
}

void TestStore::aKillInsideACommitLeavesWholeBatches() {
    QTemporaryDir folder;
    const auto path = in(folder, "run.db");
    const int status = forked([&] { // a program of its own, since kill points read the environment once
        ::setenv("CELLOOM_TEST_KILL_AT", "commit:3", 1);
        ::execl("/proc/self/exe", "tst_store", "--write-batches", path.c_str(), nullptr);
    });
    QVERIFY(WIFSIGNALED(status));
    QCOMPARE(WTERMSIG(status), SIGKILL);
    // The third flush died before its commit; commits of the timer can only have taken parts of what two flushes already hold.
    QCOMPARE(metricCount(path) % 10, std::size_t{0});
    QVERIFY(metricCount(path) <= 20);
    auto writer = RunWriter::open(path); // recovers
    QVERIFY(writer);
    (*writer)->metric(99, 0, "train/loss", 1);
    QVERIFY((*writer)->flush());
}

void TestStore::aReaderInsideATransactionDoesNotBlockTheWriter() {
    QTemporaryDir folder;
    const auto path = in(folder, "run.db");
    auto writer = RunWriter::open(path);
    QVERIFY(writer);
    (*writer)->metric(1, 0, "train/loss", 1);
    QVERIFY((*writer)->flush());
    sqlite3* frozen = nullptr; // stands for a window that was stopped in the middle of a query
    QCOMPARE(sqlite3_open_v2(path.c_str(), &frozen, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
    QCOMPARE(sqlite3_exec(frozen, "BEGIN; SELECT count(*) FROM metrics;", nullptr, nullptr, nullptr), SQLITE_OK);
    for (int step = 2; step <= 5000; ++step) (*writer)->metric(step, 0, "train/loss", step);
    QVERIFY((*writer)->flush());
    QCOMPARE((*writer)->lastError().message, std::string());
    sqlite3_close(frozen);
    QCOMPARE(metricCount(path), std::size_t{5000});
}

void TestStore::twoProcessesWriteAndReadAtOnceAndNoRowIsLost() {
    // Case 25, scaled down: 20 000 metrics while another process queries all the time, and a second run writes.
    QTemporaryDir folder;
    const auto path = in(folder, "run.db");
    const auto other = in(folder, "other.db");
    QVERIFY(RunWriter::open(path));
    const pid_t reading = ::fork();
    if (reading == 0) {
        std::int64_t seen = 0;
        auto reader = RunReader::open(path);
        if (!reader) ::_exit(1);
        while (seen < 20000) {
            const auto rows = (*reader)->metricsAfter(seen, 500);
            if (!rows || !(*reader)->latest()) ::_exit(2); // "locked" would be seen here
            for (const MetricRow& row : *rows)
                if (row.id != ++seen) ::_exit(3);
        }
        ::_exit(0);
    }
    std::thread second([&] {
        auto writer = RunWriter::open(other);
        for (int step = 0; writer && step < 20000; ++step) (*writer)->metric(step, 0, "train/loss", step);
    });
    {
        auto writer = RunWriter::open(path);
        QVERIFY(writer);
        for (int step = 0; step < 20000; ++step) (*writer)->metric(step, 0, step % 2 ? "train/loss" : "train/lr", step);
        QVERIFY((*writer)->flush());
    }
    second.join();
    int status = 0;
    ::waitpid(reading, &status, 0);
    QVERIFY(WIFEXITED(status));
    QCOMPARE(WEXITSTATUS(status), 0);
    QCOMPARE(metricCount(path), std::size_t{20000});
    QCOMPARE(metricCount(other), std::size_t{20000});
}

void TestStore::aFailingWriteIsReportedAndNothingCommittedIsLost() {
    QTemporaryDir folder;
    const auto path = in(folder, "run.db");
    const int status = statusOf("--write-until-full", path);
    QVERIFY(WIFEXITED(status));
    QCOMPARE(WEXITSTATUS(status), 0);
    QVERIFY(metricCount(path) >= 100);
}

void TestStore::writingGoesOnWhenTheDiskHasRoomAgain() {
    QTemporaryDir folder;
    const auto mountPoint = in(folder, "small");
    fs::create_directory(mountPoint);
    if (::mount("celloom-test", mountPoint.c_str(), "tmpfs", 0, "size=1m") != 0) QSKIP("mounting a small disk needs root");
    const auto unmount = qScopeGuard([&] { ::umount2(mountPoint.c_str(), MNT_DETACH); });
    const auto filler = mountPoint / "filler";
    auto writer = RunWriter::open(mountPoint / "run.db");
    QVERIFY(writer);
    (*writer)->metric(0, 0, "train/loss", 0);
    QVERIFY((*writer)->flush());
    QVERIFY(!writeFileAtomically(filler, std::string(2 << 20, 'x'))); // more than fits: removed again
    {
        const int fd = ::open(filler.c_str(), O_CREAT | O_WRONLY, 0600);
        const std::string block(4096, 'x');
        while (::write(fd, block.data(), block.size()) > 0) {
        }
        ::close(fd);
    }
    for (int step = 1; step <= 5000; ++step) (*writer)->metric(step, 0, "train/loss", step);
    const Status full = (*writer)->flush();
    QVERIFY(!full);
    QCOMPARE(full.error().message, std::string("the disk is full."));
    QVERIFY(!(*writer)->lastError().message.empty());
    fs::remove(filler);
    QTRY_VERIFY((*writer)->flush().has_value());
    QCOMPARE((*writer)->lastError().message, std::string());
    QCOMPARE(metricCount(mountPoint / "run.db"), std::size_t{5001});
    writer->reset();
}

void TestStore::aReadOnlyFolderRefusesAWriterAndServesReaders() {
    QTemporaryDir folder;
    const auto mountPoint = in(folder, "disk");
    fs::create_directory(mountPoint);
    const bool isRoot = ::geteuid() == 0;
    if (isRoot && ::mount("celloom-test", mountPoint.c_str(), "tmpfs", 0, "size=4m") != 0) QSKIP("this container may not mount");
    const auto unmount = qScopeGuard([&] {
        if (isRoot)
            ::umount2(mountPoint.c_str(), MNT_DETACH);
        else
            fs::permissions(mountPoint, fs::perms::owner_all);
    });
    const auto path = mountPoint / "run.db";
    // Killed, so that a log with committed rows stays beside the database.
    QVERIFY(WIFSIGNALED(statusOf("--write-and-die", path)));
    fs::remove(path.string() + "-shm");
    if (isRoot)
        QCOMPARE(::mount("celloom-test", mountPoint.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr), 0);
    else
        fs::permissions(mountPoint, fs::perms::owner_read | fs::perms::owner_exec);

    const auto reader = RunReader::open(path);
    QVERIFY2(reader, reader ? "" : reader.error().text().c_str());
    const auto rows = (*reader)->metricsAfter(0, 10);
    QVERIFY(rows && rows->size() == 10);
    QCOMPARE(rows->front().value, 1.0);
    const auto created = RunWriter::open(mountPoint / "new.db");
    QVERIFY(!created);
    QVERIFY(!created.error().message.empty() && !created.error().hint.empty());
    if (isRoot) QVERIFY(!RunWriter::open(path));
}

void TestStore::aFileThatIsNoDatabaseIsRefused() {
    QTemporaryDir folder;
    const auto path = in(folder, "run.db");
    QVERIFY(writeFileAtomically(path, std::string(8192, 'x')));
    const auto writer = RunWriter::open(path);
    QVERIFY(!writer);
    QCOMPARE(writer.error().message, std::string("the file is damaged or no database."));
    QCOMPARE(writer.error().place, path.string());
    QVERIFY(!RunReader::open(path));
}

void TestStore::aDatabaseOfANewerSchemaIsRefused() {
    QTemporaryDir folder;
    const auto path = in(folder, "run.db");
    QVERIFY(RunWriter::open(path));
    sqlite3* handle = nullptr;
    QCOMPARE(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
    QCOMPARE(sqlite3_exec(handle, "PRAGMA user_version = 1000", nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(handle);
    const auto writer = RunWriter::open(path);
    QVERIFY(!writer);
    QVERIFY(writer.error().message.find("newer Celloom") != std::string::npos);
    QVERIFY(!RunReader::open(path));
}

void TestStore::numbersAreGivenOnceEvenToTwoProcesses() {
    QTemporaryDir folder;
    const auto workspace = Workspace::open(in(folder, "w"));
    QVERIFY(workspace);
    std::vector<pid_t> children;
    for (int child = 0; child < 4; ++child) {
        const pid_t pid = ::fork();
        if (pid == 0) {
            for (int i = 0; i < 25; ++i)
                if (!workspace->createRun("n" + std::to_string(child))) ::_exit(1);
            ::_exit(0);
        }
        children.push_back(pid);
    }
    for (const pid_t pid : children) {
        int status = 0;
        ::waitpid(pid, &status, 0);
        QCOMPARE(status, 0);
    }
    const auto runs = workspace->allRuns();
    QCOMPARE(runs.size(), std::size_t{100});
    for (std::size_t i = 1; i < runs.size(); ++i) QVERIFY(runs[i].number() > runs[i - 1].number());
}

void TestStore::namesOfRunsBecomeSafeFolderNames_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("folder");
    QTest::newRow("plain") << "baichuan-tiny"
                           << "0001-baichuan-tiny";
    QTest::newRow("path") << "../../etc/passwd"
                          << "0001-..-..-etc-passwd";
    QTest::newRow("Chinese") << "三国 演义"
                             << "0001-三国-演义";
    QTest::newRow("empty") << ""
                           << "0001-run";
    QTest::newRow("only signs") << "///"
                                << "0001-run";
    QTest::newRow("long") << QString(200, QChar(0x4e09)) << "0001-" + QString(26, QChar(0x4e09)); // 26 · 3 = 78 ≤ 80 bytes
}

void TestStore::namesOfRunsBecomeSafeFolderNames() {
    QFETCH(QString, name);
    QFETCH(QString, folder);
    QTemporaryDir temporary;
    const auto workspace = Workspace::open(in(temporary, "w"));
    QVERIFY(workspace);
    const auto run = workspace->createRun(name.toStdString());
    QVERIFY(run);
    QCOMPARE(QString::fromStdString(run->name()), folder);
    QVERIFY(fs::is_directory(run->path));
    QVERIFY(run->path.parent_path() == workspace->runs());
}

void TestStore::aDeletedRunsNumberIsNeverGivenAgain() {
    QTemporaryDir folder;
    const auto workspace = Workspace::open(in(folder, "w"));
    QVERIFY(workspace.has_value());
    for (int number = 1; number <= 3; ++number) QCOMPARE(workspace->createRun("a")->number(), number);
    fs::remove_all(workspace->findRun("3")->path);
    QCOMPARE(workspace->createRun("b")->number(), 4);
    fs::remove(workspace->runs() / ".last-number"); // a workspace of an earlier version
    QCOMPARE(workspace->createRun("c")->number(), 5);
}

void TestStore::runsAreFoundByNumberNameAndLast() {
    QTemporaryDir folder;
    const auto workspace = Workspace::open(in(folder, "w"));
    QVERIFY(workspace);
    QVERIFY(!workspace->findRun("last"));
    const auto first = workspace->createRun("a");
    const auto second = workspace->createRun("b");
    QVERIFY(first && second);
    QVERIFY(workspace->findRun("1")->path == first->path);
    QVERIFY(workspace->findRun("0001")->path == first->path);
    QVERIFY(workspace->findRun("0001-a")->path == first->path);
    QVERIFY(workspace->findRun(first->path.string())->path == first->path);
    QVERIFY(workspace->findRun("last")->path == second->path);
    const auto missing = workspace->findRun("7");
    QVERIFY(!missing);
    QVERIFY(missing.error().hint.find("0002-b") != std::string::npos);
}

void TestStore::rebuildingTheIndexKeepsNotesAndTags() {
    QTemporaryDir folder;
    const auto workspace = Workspace::open(in(folder, "w"));
    QVERIFY(workspace);
    const auto kept = workspace->createRun("kept");
    const auto gone = workspace->createRun("gone");
    QVERIFY(kept && gone);
    QVERIFY(writeAbout(*kept, {"kept", 1700000000, "0000-parent", false}));
    QVERIFY(writeExit(*kept, {7, {}, 1700000100}));
    {
        auto writer = RunWriter::open(kept->database());
        QVERIFY(writer);
        (*writer)->metric(5, 0, "train/loss", kNan);
        (*writer)->event(5, "error", "failed", "the disk is full");
        QVERIFY((*writer)->flush());
    }
    auto index = Index::open(*workspace);
    QVERIFY(index);
    QVERIFY((*index)->rebuild());
    QVERIFY((*index)->setNote(1, "看这个"));
    QVERIFY((*index)->setTags(1, "good, keep"));
    QVERIFY(!(*index)->setNote(99, "none"));
    fs::remove_all(gone->path);
    QVERIFY((*index)->rebuild());
    const auto runs = (*index)->runs();
    QVERIFY(runs && runs->size() == 1);
    const RunRecord& run = runs->front();
    QCOMPARE(run.note, std::string("看这个"));
    QCOMPARE(run.tags, std::string("good, keep"));
    QCOMPARE(run.name, std::string("kept"));
    QCOMPARE(run.parent, std::string("0000-parent"));
    QVERIFY(run.state == RunState::Failed);
    QCOMPARE(run.outcome, std::string("failed (exit code 7): the disk is full"));
    QCOMPARE(run.created, 1700000000.0);
    QCOMPARE(run.ended, 1700000100.0);
    QVERIFY(std::isnan(run.lastLoss));
}

void TestStore::aRunThatNobodySawEndingIsInterrupted() {
    QTemporaryDir folder;
    const auto workspace = Workspace::open(in(folder, "w"));
    QVERIFY(workspace);
    const auto run = workspace->createRun("r");
    QVERIFY(run);
    QVERIFY(writeAbout(*run, {"r", 1, "", false}));
    forked([&] {
        auto lock = RunLock::take(*run);
        if (lock && lock->write({0, ::getpid(), "", "", {}, {}, 0})) ::raise(SIGKILL);
    });
    const auto record = readRecord(*run);
    QVERIFY(record);
    QVERIFY(record->state == RunState::Interrupted);
}

void TestStore::aSignalIsNamedInTheOutcome() {
    QTemporaryDir folder;
    const auto workspace = Workspace::open(in(folder, "w"));
    const auto run = workspace->createRun("r");
    QVERIFY(run);
    QVERIFY(writeExit(*run, {{}, 9, 1700000100}));
    const auto record = readRecord(*run);
    QVERIFY(record);
    QVERIFY(record->state == RunState::Interrupted);
    QCOMPARE(record->outcome, std::string("interrupted (signal 9)"));
}

void TestStore::theRateOfARecordIsTheRecipes() { // a schedule's last step may have 0
    QTemporaryDir folder;
    const auto workspace = Workspace::open(in(folder, "w"));
    const auto run = workspace->createRun("r");
    QVERIFY(run);
    QVERIFY(std::isnan(readRecord(*run)->learningRate));
    QVERIFY(writeFileAtomically(run->recipe(), R"({"optimizer": {"lr": 0.002}})"));
    {
        const auto writer = RunWriter::open(run->database());
        QVERIFY(writer);
        (*writer)->metric(100, 1, "train/lr", 0);
        QVERIFY((*writer)->flush());
    }
    QCOMPARE(readRecord(*run)->learningRate, 0.002);
}

void TestStore::theLockIsHeldWhileAProcessLivesAndNoLonger() {
    QTemporaryDir folder;
    const auto workspace = Workspace::open(in(folder, "w"));
    const auto run = workspace->createRun("r");
    QVERIFY(run);
    QVERIFY(!isHeld(*run));
    {
        const auto lock = RunLock::take(*run);
        QVERIFY(lock);
        QVERIFY(isHeld(*run));
        const auto second = RunLock::take(*run);
        QVERIFY(!second);
        QVERIFY(second.error().message.find("0001-r") != std::string::npos);
    }
    QVERIFY(!isHeld(*run));
    // The end of the child, written into the lock's reserved space, counts where exit.json could not be written.
    {
        auto lock = RunLock::take(*run);
        QVERIFY(lock && lock->write({1, 2, "", "cpu", {}, 11, 1700000000}));
    }
    const auto exit = readExit(*run);
    QVERIFY(exit && *exit);
    QCOMPARE((*exit)->signal.value_or(0), 11);
}

void TestStore::aWorkspaceUnderTwoHundredChineseCharactersWorks() {
    QTemporaryDir folder;
    // 4 folders of 50 characters, 150 bytes each: a name may have 255 bytes.
    fs::path path(folder.path().toStdString());
    for (int i = 0; i < 4; ++i) path /= QString(50, QChar(0x7ec7)).toStdString();
    const auto workspace = Workspace::open(path);
    QVERIFY2(workspace, workspace ? "" : workspace.error().text().c_str());
    const auto run = workspace->createRun("试");
    QVERIFY(run);
    auto writer = RunWriter::open(run->database());
    QVERIFY2(writer, writer ? "" : writer.error().text().c_str());
    (*writer)->metric(1, 0, "train/loss", 1);
    QVERIFY((*writer)->flush());
    QCOMPARE(metricCount(run->database()), std::size_t{1});
    auto index = Index::open(*workspace);
    QVERIFY(index && (*index)->rebuild());
    QCOMPARE((*index)->runs()->size(), std::size_t{1});
}

int main(int argc, char** argv) {
    if (const auto work = argc == 3 ? kWorks.find(argv[1]) : kWorks.end(); work != kWorks.end()) return work->second(argv[2]);
    TestStore test;
    return QTest::qExec(&test, argc, argv);
}

#include "tst_store.moc"
