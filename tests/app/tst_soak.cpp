// One run of the shipped example, killed again and again at random points and resumed by the real programs (broker, supervisor, child, run
// and resume verbs), then compared with the same run left alone: weights and moments bit for bit, metric rows, checkpoints, databases.
// The environment says how much: CELLOOM_SOAK_KILLS (8), CELLOOM_SOAK_SEED (drawn), CELLOOM_SOAK_STEPS (24), CELLOOM_SOAK_FOLDER (temporary,
// kept when named). scripts/soak is the long form.
#include "engine/checkpoint/manifest.h"
#include "engine/train/checkpoint.h"
#include "models/base/exit_codes.h"
#include "models/protocol/broker_lock.h"
#include "models/recipe/recipe.h"
#include "models/store/index.h"
#include "models/store/run_lock.h"
#include "tests/app/run_helper.h"

#include <QElapsedTimer>
#include <QScopeGuard>
#include <array>
#include <cmath>
#include <csignal>
#include <iostream>
#include <random>
#include <sqlite3.h>

using namespace celloom;
using namespace celloom::test;
using nlohmann::json;

namespace {

constexpr int kPatience = 600000 * CELLOOM_TEST_TIME_FACTOR; // ms; a run that takes longer without an end is stuck

std::int64_t numberFrom(const char* name, std::int64_t otherwise) {
    bool isNumber = false;
    const qint64 number = qEnvironmentVariable(name).toLongLong(&isNumber);
    return isNumber ? number : otherwise;
}

/// SQLite's own answer: "ok".
QString integrityOf(const fs::path& database) {
    sqlite3* handle = nullptr;
    const auto close = qScopeGuard([&] { sqlite3_close(handle); });
    if (sqlite3_open_v2(database.c_str(), &handle, SQLITE_OPEN_READONLY, nullptr) != SQLITE_OK) return QString::fromUtf8(sqlite3_errmsg(handle));
    QString answer;
    sqlite3_exec(
        handle, "PRAGMA integrity_check",
        [](void* out, int, char** values, char**) {
            static_cast<QString*>(out)->append(QString::fromUtf8(values[0]));
            return 0;
        },
        &answer, nullptr);
    return answer;
}

/// A workspace with the real programs.
class Site {
public:
    explicit Site(const fs::path& folder) : path(folder / "workspace"), m_runtime(folder / "runtime") {
        fs::create_directories(m_runtime);
        fs::permissions(m_runtime, fs::perms::owner_all);
    }
    ~Site() { endBroker(SIGTERM); }

    void start(QProcess& verb, const QStringList& arguments, const QString& killAt = {}) const {
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert("XDG_RUNTIME_DIR", QString::fromStdString(m_runtime.string()));
        if (!killAt.isEmpty()) environment.insert("CELLOOM_TEST_KILL_AT", killAt); // the broker hands it on to its children
        verb.setProcessEnvironment(environment);
        verb.setProcessChannelMode(QProcess::MergedChannels);
        verb.start(QStringLiteral(CELLOOM_BIN "/celloom-engine"), QStringList{"--workspace", QString::fromStdString(path.string())} + arguments);
    }
    [[nodiscard]] store::Workspace workspace() const { return store::Workspace::open(path).value(); }
    [[nodiscard]] store::RunFolder run() const { return workspace().findRun("last").value(); }
    [[nodiscard]] pid_t child() const {
        const auto process = store::readProcess(run());
        return process && *process ? static_cast<pid_t>((*process)->child) : 0;
    }
    /// Its environment is that of the verb that started it, so each round begins with a new one.
    void endBroker(int signal) const {
        const store::Workspace place = workspace();
        const auto lock = readFile(path / "broker.lock", 1 << 16);
        if (!lock || !protocol::isBrokerAlive(place)) return;
        const auto pid = json::parse(*lock, nullptr, false).value("pid", 0);
        if (pid > 0) ::kill(pid, signal);
        for (int i = 0; i < 3000 && protocol::isBrokerAlive(place); ++i) QTest::qWait(10);
    }
    const fs::path path;

private:
    fs::path m_runtime;
};

} // namespace

class TestSoak : public QObject {
    Q_OBJECT
public:
    TestSoak() { qputenv("QTEST_FUNCTION_TIMEOUT", "2000000000"); } // QtTest's five minutes are for short tests

private:

    std::int64_t m_kills = numberFrom("CELLOOM_SOAK_KILLS", 8), m_steps = numberFrom("CELLOOM_SOAK_STEPS", 24);
    std::uint64_t m_seed = static_cast<std::uint64_t>(numberFrom("CELLOOM_SOAK_SEED", std::random_device()()));
    std::mt19937_64 m_random{m_seed};
    QTemporaryDir m_temporary;
    fs::path m_folder = qEnvironmentVariableIsSet("CELLOOM_SOAK_FOLDER") ? fs::path(qEnvironmentVariable("CELLOOM_SOAK_FOLDER").toStdString())
                                                                        : fs::path(m_temporary.path().toStdString());
    double m_startSeconds = 0, m_stepSeconds = 0; // until a resumed run makes its first step, and of a step
    std::map<std::string, int> m_killed;          // by place

    double uniform() { return std::uniform_real_distribution<double>(0, 1)(m_random); }
    std::int64_t upTo(std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(1, std::max<std::int64_t>(1, most))(m_random); }

    /// The example as it ships, but small enough to begin in a second, short, and saving often.
    QString recipe(const QString& name) const {
        auto shipped = recipe::Recipe::load(CELLOOM_SOURCE "/resources/recipes/baichuan-tiny-sanguo.json");
        if (!shipped) qFatal("%s", shipped.error().text().c_str());
        recipe::Recipe changed = shipped->withAbsolutePaths();
        const std::string corpus = CELLOOM_SOURCE "/resources/corpora/sanguo/";
        for (const auto& [key, value] : std::map<std::string, std::string>{{"model.overrides", "hidden=64,layers=2,heads=2,intermediate=96"},
                                                                           {"tokenizer.vocab_size", "2600"},
                                                                           {"data.train", corpus + "00[1-8].txt"},
                                                                           {"data.validation", corpus + "009.txt"},
                                                                           {"train.max_steps", std::to_string(m_steps)},
                                                                           {"schedule.warmup_steps", std::to_string(m_steps / 6)},
                                                                           {"evaluate.every_steps", "7"},
                                                                           {"evaluate.max_batches", "2"},
                                                                           {"sample.every_steps", "11"},
                                                                           {"sample.max_new_tokens", "8"},
                                                                           {"checkpoint.every_steps", "3"},
                                                                           {"train.batch_size", "4"},
                                                                           {"train.accumulation", "2"},
                                                                           {"train.sequence_length", "64"},
                                                                           {"threads", "1"},
                                                                           {"device", "cpu"}})
            if (const Status status = changed.setFromText(key, value); !status) qFatal("%s", status.error().text().c_str());
        const fs::path file = m_folder / (name.toStdString() + ".json");
        if (const Status status = writeFileAtomically(file, changed.toJson(false)); !status) qFatal("%s", status.error().text().c_str());
        return QString::fromStdString(file.string());
    }

    /// A run that is killed after its first checkpoint, and in the first step after that.
    void measureStart() {
        Site site(m_folder / "measured");
        QElapsedTimer clock;
        for (const auto& [arguments, killAt] : {std::pair{QStringList{"run", recipe("measured")}, "step:4"}, {QStringList{"resume", "last"}, "step:1"}}) {
            QProcess verb;
            site.start(verb, arguments, killAt);
            waitForChild(site, verb);
            clock.start();
            QVERIFY(verb.state() == QProcess::NotRunning || verb.waitForFinished(kPatience));
            QVERIFY2(verb.exitCode() == protocol::Killed, verb.readAll().constData());
            site.endBroker(SIGTERM);
        }
        m_startSeconds = static_cast<double>(clock.elapsed()) / 1000;
    }

    static void waitForChild(const Site& site, const QProcess& verb) {
        const auto hasRun = [&] { return site.workspace().findRun("last").has_value() && site.child() > 0 && store::isHeld(site.run()); };
        while (verb.state() != QProcess::NotRunning && !hasRun()) QTest::qWait(2);
    }

    /// Kills the child at a random moment of the time in which `steps` further steps are expected.
    void killInTime(const Site& site, const QProcess& verb, std::int64_t steps) {
        const double seconds = uniform() * (m_startSeconds + m_stepSeconds * static_cast<double>(steps));
        QElapsedTimer clock;
        clock.start();
        while (verb.state() != QProcess::NotRunning && clock.elapsed() < seconds * 1000) QTest::qWait(2);
        if (const pid_t child = site.child(); child > 0 && store::isHeld(site.run())) ::kill(child, SIGKILL);
    }

    QString killPointFor(std::int64_t steps) {
        static const std::array<const char*, 5> places{"step", "commit", "checkpoint-write", "evaluation", "before-first-checkpoint"};
        const std::string place = places.at(static_cast<std::size_t>(upTo(places.size()) - 1));
        const std::int64_t most = place == "step" ? steps : place == "commit" ? 2 + steps : place == "before-first-checkpoint" ? 2 : steps / 3;
        return QString::fromStdString(place) + ":" + QString::number(upTo(most));
    }

    /// Starts or resumes, and kills. False where the run came to its end.
    bool round(const Site& site, const QStringList& arguments, std::int64_t done, std::int64_t kills) {
        // The kills fall all over the run: one that is ahead of them is killed while it prepares, or in its first step.
        const bool isAhead = done > m_steps * kills / m_kills + 6;
        const std::int64_t steps = isAhead ? 0 : std::max<std::int64_t>(2, 2 * (m_steps - done) / (m_kills - kills));
        const QString killAt = upTo(2) == 1 ? killPointFor(steps) : QString();
        QProcess verb;
        // In its last step at the latest: a run that has ended cannot be killed.
        const std::int64_t latest = isAhead ? 1 : std::min(m_steps - done, 3 * steps);
        site.start(verb, arguments, (killAt.isEmpty() ? QString() : killAt + ",") + "step:" + QString::number(latest));
        waitForChild(site, verb);
        if (killAt.isEmpty() && verb.state() != QProcess::NotRunning) killInTime(site, verb, steps);
        if (verb.state() != QProcess::NotRunning && !verb.waitForFinished(kPatience)) qFatal("a verb hangs");
        const auto record = store::readRecord(site.run());
        if (!record) qFatal("%s", record.error().text().c_str());
        const std::string log = readFile(site.run().log(), 64 << 20).value_or("");
        const QString said = QString::fromStdString(log.size() > 2000 ? log.substr(log.size() - 2000) : log);
        const QString lastLine = said.trimmed().section('\n', -1);
        const bool isExpected = verb.exitStatus() == QProcess::NormalExit && verb.exitCode() == (record->state == store::RunState::Interrupted ? protocol::Killed : protocol::Ok);
        if (!isExpected) qFatal("a verb ended with %d: %s", verb.exitCode(), verb.readAll().constData());
        if (record->state == store::RunState::Interrupted) {
            ++m_killed[lastLine.startsWith("killed at ") ? lastLine.toStdString() : "at any moment"];
            if (record->outcome != "interrupted (signal 9)") qFatal("the run reads %s", record->outcome.c_str());
        } else if (record->state != store::RunState::Finished) {
            qFatal("the run is %s: %s\n%s\n%s", store::toString(record->state).c_str(), record->outcome.c_str(), qPrintable(said),
                   verb.readAll().constData());
        }
        site.endBroker(upTo(4) == 1 ? SIGKILL : SIGTERM);
        return record->state == store::RunState::Interrupted;
    }

    static void verifyWhole(const Site& site) {
        const store::RunFolder run = site.run();
        QCOMPARE(integrityOf(run.database()), QString("ok"));
        QCOMPARE(integrityOf(site.workspace().index()), QString("ok"));
        const auto checkpoints = engine::listCheckpoints(run.checkpoints());
        QVERIFY(!checkpoints.empty());
        for (const fs::path& checkpoint : checkpoints) {
            const Status status = engine::verifyManifest(checkpoint);
            QVERIFY2(status.has_value(), qPrintable(status ? "" : QString::fromStdString(status.error().text())));
        }
        for (const fs::directory_entry& entry : fs::recursive_directory_iterator(run.path)) {
            const QString name = QString::fromStdString(entry.path().filename().string());
            QVERIFY2(!name.contains("partial") && !name.contains(QRegularExpression("\\.(json|model|db)\\.[A-Za-z0-9]{6}$")), qPrintable(name));
        }
    }

private Q_SLOTS:
    void killedAgainAndAgainTheRunEqualsTheOneLeftAlone() {
        std::cout << "seed " << m_seed << ", " << m_kills << " kills, " << m_steps << " steps, in " << m_folder << std::endl;
        Site alone(m_folder / "alone");
        QElapsedTimer clock;
        clock.start();
        QProcess verb;
        alone.start(verb, {"run", recipe("alone")});
        QVERIFY(verb.waitForFinished(kPatience));
        QVERIFY2(verb.exitCode() == 0, verb.readAll().constData());
        const store::RunFolder expected = alone.run();
        m_stepSeconds = progress(expected).elapsedSeconds / static_cast<double>(m_steps);
        alone.endBroker(SIGTERM);
        verifyWhole(alone);
        measureStart();

        Site site(m_folder / "killed");
        std::int64_t kills = 0, lastShown = 0;
        while (kills < m_kills) {
            const bool isFirst = !site.workspace().findRun("last");
            const std::int64_t done = isFirst ? 0 : std::max<std::int64_t>(0, engine::checkpointStep(site.run().newestCheckpoint()));
            if (!round(site, isFirst ? QStringList{"run", recipe("killed")} : QStringList{"resume", "last"}, done, kills)) break;
            ++kills;
            if (kills - lastShown >= 20) std::cout << (lastShown = kills) << " kills, checkpoint at step " << done << std::endl;
        }
        QProcess final;
        site.start(final, {"resume", "last"});
        QVERIFY(final.waitForFinished(kPatience));
        QVERIFY2(final.exitCode() == 0, final.readAll().constData());
        site.endBroker(SIGTERM);
        std::cout << kills << " kills:";
        for (const auto& [place, count] : m_killed) std::cout << " " << place << " " << count << ";";
        std::cout << " " << clock.elapsed() / 1000 << " s" << std::endl;
        QCOMPARE(kills, m_kills);

        verifyWhole(site);
        const store::RunFolder run = site.run();
        for (const char* file : {"model.safetensors", "trainer.safetensors"}) {
            const fs::path name = engine::checkpointName(m_steps);
            const auto hash = sha256OfFile(run.checkpoints() / name / file), other = sha256OfFile(expected.checkpoints() / name / file);
            QVERIFY(hash && other);
            QCOMPARE(*hash, *other);
        }
        const auto rows = exactRows(run), wanted = exactRows(expected);
        QCOMPARE(rows.size(), wanted.size());
        for (const auto& [key, value] : wanted)
            QVERIFY2(rows.contains(key) && (rows.at(key) == value || (std::isnan(value) && std::isnan(rows.at(key)))),
                     qPrintable(QString("%1 of step %2").arg(key.first.c_str()).arg(key.second)));
    }
};

QTEST_GUILESS_MAIN(TestSoak)
#include "tst_soak.moc"
