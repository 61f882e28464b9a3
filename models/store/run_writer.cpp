// RunWriter: the run says things from its own threads; one thread here commits them in batches. The run never waits for the disk
// unless it calls flush().
#include "models/store/run_store.h"

#include "models/base/kill_points.h"
#include "models/store/run_schema.h"

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unistd.h>
#include <utility>
#include <variant>

namespace celloom::store {
namespace {

using namespace std::chrono_literals;
constexpr auto kBatchEvery = 200ms;
constexpr std::size_t kBatchItems = 2000; // a full batch does not wait for the time
constexpr auto kRetryEvery = 1s;
constexpr int kBusyMs = 2000;

double now() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

struct Supersede {
    std::int64_t after = 0;
};
using Item = std::variant<MetricRow, EventRow, SampleRow, Supersede>;

/// The SQL. Used by the writer's thread alone.
class Writing {
public:
    explicit Writing(Database database) : m_database(std::move(database)) {}

    /// All or nothing. Durable: also on the disk, should the power fail.
    Status commit(const std::vector<Item>& items, const std::optional<Progress>& progress, bool isDurable) {
        CELLOOM_TRY_STATUS(m_database.execute(isDurable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL"));
        Status status = m_database.execute("BEGIN IMMEDIATE");
        if (status) status = write(items, progress, isDurable);
        if (status) {
            killPoint("commit");
            status = m_database.execute("COMMIT");
        }
        if (status) {
            m_lastMetric = m_lastWritten;
            return status;
        }
        m_database.rollback();
        m_series.clear(); // names given in the failed transaction are gone
        return status;
    }

    Status readLastMetric() {
        CELLOOM_TRY(statement, m_database.prepare("SELECT coalesce(max(id), 0) FROM metrics"));
        CELLOOM_TRY(hasRow, statement.next());
        m_lastMetric = m_lastWritten = hasRow ? statement.integer(0) : 0;
        return {};
    }
    [[nodiscard]] std::int64_t lastMetric() const { return m_lastMetric; }

private:
    Status write(const std::vector<Item>& items, const std::optional<Progress>& progress, bool isDurable) {
        CELLOOM_TRY_STATUS(prepareOnce());
        for (const Item& item : items) CELLOOM_TRY_STATUS(std::visit([this](const auto& row) { return put(row); }, item));
        if (progress) CELLOOM_TRY_STATUS(put(*progress));
        // An empty transaction would sync nothing: the counter makes it write, and so sync the commits before it.
        if (isDurable) CELLOOM_TRY_STATUS(m_database.execute("UPDATE counters SET value = value + 1 WHERE name = 'flushes'"));
        return {};
    }

    Status prepareOnce() {
        if (m_isPrepared) return {};
        CELLOOM_TRY(metric, m_database.prepare("INSERT INTO metrics(series, step, epoch, value, special, time) VALUES(?, ?, ?, ?, ?, ?)"));
        CELLOOM_TRY(event,
                    m_database.prepare("INSERT INTO events(time, step, level, kind, message, hint, data) VALUES(?, ?, ?, ?, ?, ?, ?)"));
        CELLOOM_TRY(sample, m_database.prepare("INSERT INTO samples(time, step, prompt, text) VALUES(?, ?, ?, ?)"));
        CELLOOM_TRY(progress, m_database.prepare("INSERT OR REPLACE INTO progress VALUES(1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
        m_metric = std::move(metric);
        m_event = std::move(event);
        m_sample = std::move(sample);
        m_progress = std::move(progress);
        m_isPrepared = true;
        return {};
    }

    Result<std::int64_t> seriesId(const std::string& name) {
        if (const auto known = m_series.find(name); known != m_series.end()) return known->second;
        CELLOOM_TRY(insert, m_database.prepare("INSERT OR IGNORE INTO series(name) VALUES(?)"));
        CELLOOM_TRY_STATUS(insert.bind(1, name).run());
        CELLOOM_TRY(select, m_database.prepare("SELECT id FROM series WHERE name = ?"));
        CELLOOM_TRY(hasRow, select.bind(1, name).next());
        CELLOOM_CHECK(hasRow);
        return m_series[name] = select.integer(0);
    }

    Status put(const MetricRow& row) {
        CELLOOM_TRY(series, seriesId(row.name));
        m_metric.bind(1, series).bind(2, row.step).bind(3, row.epoch).bind(6, row.time);
        if (std::isfinite(row.value))
            m_metric.bind(4, row.value).bindNull(5);
        else
            m_metric.bindNull(4).bind(5, std::isnan(row.value) ? "nan" : row.value > 0 ? "inf" : "-inf");
        CELLOOM_TRY_STATUS(m_metric.run());
        m_lastWritten = m_database.lastId();
        return {};
    }
    Status put(const EventRow& row) {
        m_event.bind(1, row.time).bind(2, row.step).bind(3, row.level).bind(4, row.kind);
        return m_event.bind(5, row.message).bind(6, row.hint).bind(7, row.data).run();
    }
    Status put(const SampleRow& row) { return m_sample.bind(1, row.time).bind(2, row.step).bind(3, row.prompt).bind(4, row.text).run(); }
    Status put(const Supersede& order) {
        CELLOOM_TRY(statement, m_database.prepare("UPDATE metrics SET superseded = 1 WHERE step > ? AND superseded = 0"));
        CELLOOM_TRY_STATUS(statement.bind(1, order.after).run());
        if (m_database.changes() == 0) return {};
        return m_database.execute("UPDATE counters SET value = value + 1 WHERE name = 'generation'");
    }
    Status put(const Progress& progress) {
        m_progress.bind(1, toString(progress.state)).bind(2, progress.stage).bind(3, progress.step).bind(4, progress.totalSteps);
        m_progress.bind(5, progress.epoch)
            .bind(6, progress.totalEpochs)
            .bind(7, progress.elapsedSeconds)
            .bind(8, progress.remainingSeconds);
        return m_progress.bind(9, progress.updated).bind(10, progress.pid).run();
    }

    Database m_database;
    bool m_isPrepared = false;
    Statement m_metric, m_event, m_sample, m_progress;
    std::map<std::string, std::int64_t> m_series;
    std::int64_t m_lastWritten = 0, m_lastMetric = 0;
};

class ThreadedWriter final : public RunWriter {
public:
    explicit ThreadedWriter(Writing writing) : m_writing(std::move(writing)), m_lastMetric(m_writing.lastMetric()) {
        m_thread = std::thread([this] { loop(); });
    }

    ~ThreadedWriter() override {
        {
            const std::lock_guard guard(m_mutex);
            m_isEnding = true;
        }
        m_work.notify_one();
        m_thread.join();
    }

    void metric(std::int64_t step, double epoch, const std::string& name, double value) override {
        add(MetricRow{0, step, epoch, name, value, now(), false});
    }
    void event(std::int64_t step, const std::string& level, const std::string& kind, const std::string& message, const std::string& hint,
               const std::string& data) override {
        add(EventRow{0, now(), step, level, kind, message, hint, data}, true);
    }
    void sample(std::int64_t step, const std::string& prompt, const std::string& text) override {
        add(SampleRow{0, now(), step, prompt, text});
    }

    void progress(const Progress& progress) override {
        const std::lock_guard guard(m_mutex);
        m_progress = progress; // only the newest matters
        m_progress->pid = ::getpid();
        m_progress->updated = now();
        m_work.notify_one();
    }

    Status supersedeAfter(std::int64_t step) override {
        add(Supersede{step});
        return flush();
    }

    Status flush() override {
        std::unique_lock guard(m_mutex);
        const std::uint64_t ticket = ++m_flushesAsked;
        m_work.notify_one();
        m_flushed.wait(guard, [&] { return m_flushesDone >= ticket; });
        return m_flushStatus;
    }

    Error lastError() const override {
        const std::lock_guard guard(m_mutex);
        return m_lastError;
    }

    std::int64_t lastMetricId() const override {
        const std::lock_guard guard(m_mutex);
        return m_lastMetric;
    }

private:
    /// Urgent: does not wait for the batch's time; an event may be the last thing that a run says.
    void add(Item item, bool isUrgent = false) {
        const std::lock_guard guard(m_mutex);
        m_pending.push_back(std::move(item));
        m_isUrgent = m_isUrgent || isUrgent;
        if (isUrgent || m_pending.size() == 1 || m_pending.size() == kBatchItems) m_work.notify_one();
    }

    void loop() {
        std::vector<Item> batch; // taken and not yet committed: survives a failed attempt
        std::optional<Progress> progress;
        std::unique_lock guard(m_mutex);
        while (true) {
            const bool isRetrying = !batch.empty() || progress;
            waitForWork(guard, isRetrying);
            const bool isEnding = m_isEnding;
            const std::uint64_t flushes = m_flushesAsked;
            const bool isFlushing = flushes > m_flushesDone;
            batch.insert(batch.end(), std::make_move_iterator(m_pending.begin()), std::make_move_iterator(m_pending.end()));
            m_pending.clear();
            m_isUrgent = false;
            if (m_progress) progress = std::exchange(m_progress, std::nullopt);

            guard.unlock();
            Status status;
            if (!batch.empty() || progress || isFlushing) status = m_writing.commit(batch, progress, isFlushing || isEnding);
            if (status) {
                batch.clear();
                progress.reset();
            }
            guard.lock();

            m_lastError = status ? Error{} : status.error();
            m_lastMetric = m_writing.lastMetric();
            m_flushStatus = status;
            m_flushesDone = flushes;
            m_flushed.notify_all();
            if (isEnding) return;
        }
    }

    /// Returns when there is something to write and either the batch's time is over or somebody cannot wait.
    void waitForWork(std::unique_lock<std::mutex>& guard, bool isRetrying) {
        const auto isAwaited = [this] { return m_isEnding || m_flushesAsked > m_flushesDone; };
        if (isRetrying) {
            m_work.wait_for(guard, kRetryEvery, isAwaited);
            return;
        }
        m_work.wait(guard, [&] { return isAwaited() || !m_pending.empty() || m_progress; });
        m_work.wait_for(guard, kBatchEvery, [&] { return isAwaited() || m_isUrgent || m_pending.size() >= kBatchItems; });
    }

    Writing m_writing; // of the thread alone
    mutable std::mutex m_mutex;
    std::condition_variable m_work, m_flushed;
    std::vector<Item> m_pending;
    std::optional<Progress> m_progress;
    std::uint64_t m_flushesAsked = 0, m_flushesDone = 0;
    Status m_flushStatus;
    Error m_lastError;
    std::int64_t m_lastMetric = 0;
    bool m_isEnding = false, m_isUrgent = false;
    std::thread m_thread; // last: it uses the others
};

} // namespace

Result<std::unique_ptr<RunWriter>> RunWriter::open(const std::filesystem::path& database) {
    CELLOOM_TRY(file, Database::openForWriting(database, runSchema(), kBusyMs));
    Writing writing(std::move(file));
    CELLOOM_TRY_STATUS(writing.readLastMetric());
    return std::make_unique<ThreadedWriter>(std::move(writing));
}

} // namespace celloom::store
