#include "models/store/run_store.h"

#include "models/store/run_schema.h"

#include <limits>

namespace celloom::store {
namespace {

constexpr int kBusyMs = 500; // WAL readers wait only while the log is being recovered after a crash
constexpr const char* kMetricColumns =
    "SELECT m.id, m.step, m.epoch, s.name, m.value, m.special, m.time, m.superseded FROM metrics m JOIN series s ON s.id = m.series ";

MetricRow metricOf(const Statement& row) {
    double value = row.real(4);
    if (const std::string special = row.text(5); special == "inf" || special == "-inf")
        value = special == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
    return {row.integer(0), row.integer(1), row.real(2), row.text(3), value, row.real(6), row.integer(7) != 0};
}

EventRow eventOf(const Statement& row) {
    return {row.integer(0), row.real(1), row.integer(2), row.text(3), row.text(4), row.text(5), row.text(6), row.text(7)};
}

SampleRow sampleOf(const Statement& row) {
    return {row.integer(0), row.real(1), row.integer(2), row.text(3), row.text(4)};
}

class DatabaseReader final : public RunReader {
public:
    explicit DatabaseReader(Database database) : m_database(std::move(database)) {}

    Result<std::vector<MetricRow>> metricsAfter(std::int64_t id, int limit) const override {
        return rowsAfter(std::string(kMetricColumns) + "WHERE m.id > ? ORDER BY m.id LIMIT ?", id, limit, metricOf);
    }
    Result<std::vector<EventRow>> eventsAfter(std::int64_t id, int limit) const override {
        return rowsAfter("SELECT id, time, step, level, kind, message, hint, data FROM events WHERE id > ? ORDER BY id LIMIT ?", id, limit,
                         eventOf);
    }
    Result<std::vector<SampleRow>> samplesAfter(std::int64_t id, int limit) const override {
        return rowsAfter("SELECT id, time, step, prompt, text FROM samples WHERE id > ? ORDER BY id LIMIT ?", id, limit, sampleOf);
    }

    Result<Progress> progress() const override {
        CELLOOM_TRY(row,
                    m_database.prepare(
                        "SELECT state, stage, step, total_steps, epoch, total_epochs, elapsed, remaining, updated, pid FROM progress"));
        CELLOOM_TRY(hasRow, row.next());
        Progress progress;
        if (!hasRow) return progress;
        CELLOOM_TRY(state, runStateFromString(row.text(0)));
        progress.state = state;
        progress.stage = row.text(1);
        progress.step = row.integer(2);
        progress.totalSteps = row.integer(3);
        progress.epoch = row.real(4);
        progress.totalEpochs = row.real(5);
        progress.elapsedSeconds = row.real(6);
        progress.remainingSeconds = row.real(7);
        progress.updated = row.real(8);
        progress.pid = row.integer(9);
        return progress;
    }

    Result<std::int64_t> generation() const override {
        CELLOOM_TRY(row, m_database.prepare("SELECT value FROM counters WHERE name = 'generation'"));
        CELLOOM_TRY(hasRow, row.next());
        return hasRow ? row.integer(0) : 0;
    }

    Result<std::vector<MetricRow>> latest() const override {
        // One step backwards through the index for each series, however long the run.
        CELLOOM_TRY(
            row,
            m_database.prepare(
                std::string(kMetricColumns) +
                "WHERE m.id IN (SELECT (SELECT n.id FROM metrics n WHERE n.series = t.id AND n.superseded = 0 ORDER BY n.id DESC LIMIT 1) "
                "FROM series t) ORDER BY s.name"));
        return all(row, metricOf);
    }

private:
    template <class Row> static Result<std::vector<Row>> all(Statement& statement, Row (*rowOf)(const Statement&)) {
        std::vector<Row> rows;
        while (true) {
            CELLOOM_TRY(hasRow, statement.next());
            if (!hasRow) return rows;
            rows.push_back(rowOf(statement));
        }
    }

    template <class Row>
    Result<std::vector<Row>> rowsAfter(const std::string& sql, std::int64_t id, int limit, Row (*rowOf)(const Statement&)) const {
        CELLOOM_TRY(statement, m_database.prepare(sql));
        statement.bind(1, id).bind(2, limit);
        return all(statement, rowOf);
    }

    Database m_database;
};

} // namespace

Result<std::unique_ptr<RunReader>> RunReader::open(const std::filesystem::path& database) {
    CELLOOM_TRY(file, Database::openForReading(database, runSchema(), kBusyMs));
    return std::make_unique<DatabaseReader>(std::move(file));
}

} // namespace celloom::store
