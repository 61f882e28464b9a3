#include "models/store/index.h"

#include "models/store/database.h"

namespace celloom::store {
namespace {

constexpr int kBusyMs = 200; // writes take microseconds; whoever holds the database longer is stopped, and the caller tries again later

const Schema& indexSchema() {
    static const Schema schema{0x43656c69 /* "Celi" */, 1, {R"(
CREATE TABLE runs(number INTEGER PRIMARY KEY, folder TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL, outcome TEXT NOT NULL,
                  model TEXT NOT NULL, precision TEXT NOT NULL, created REAL, started REAL, ended REAL, step INTEGER NOT NULL,
                  total_steps INTEGER NOT NULL, elapsed REAL, last_loss REAL, last_perplexity REAL, tokens_per_second REAL,
                  learning_rate REAL, parent TEXT NOT NULL, tags TEXT NOT NULL DEFAULT '', note TEXT NOT NULL DEFAULT '');
)",
                                R"(
ALTER TABLE runs ADD COLUMN kind TEXT NOT NULL DEFAULT '';
)"}};
    return schema;
}

constexpr const char* kSelect =
    "SELECT number, folder, name, state, outcome, model, precision, created, started, ended, step, total_steps, elapsed, last_loss, "
    "last_perplexity, tokens_per_second, learning_rate, parent, tags, note, kind FROM runs ";
constexpr const char* kUpsert =
    "INSERT INTO runs(number, folder, name, state, outcome, model, precision, created, started, ended, step, total_steps, elapsed, "
    "last_loss, last_perplexity, "
    "tokens_per_second, learning_rate, parent, kind) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT(number) DO UPDATE SET folder = excluded.folder, name = excluded.name, state = excluded.state, outcome = excluded.outcome, "
    "model = excluded.model, precision = excluded.precision, created = excluded.created, started = excluded.started, ended = "
    "excluded.ended, "
    "step = excluded.step, total_steps = excluded.total_steps, elapsed = excluded.elapsed, last_loss = excluded.last_loss, "
    "last_perplexity = excluded.last_perplexity, tokens_per_second = excluded.tokens_per_second, learning_rate = excluded.learning_rate, "
    "parent = excluded.parent, kind = excluded.kind";

Result<RunRecord> recordOf(const Statement& row) {
    RunRecord run;
    run.number = static_cast<int>(row.integer(0));
    run.folder = row.text(1);
    run.name = row.text(2);
    CELLOOM_TRY(state, runStateFromString(row.text(3)));
    run.state = state;
    run.outcome = row.text(4);
    run.model = row.text(5);
    run.precision = row.text(6);
    run.created = row.real(7);
    run.started = row.real(8);
    run.ended = row.real(9);
    run.step = row.integer(10);
    run.totalSteps = row.integer(11);
    run.elapsedSeconds = row.real(12);
    run.lastLoss = row.real(13);
    run.lastPerplexity = row.real(14);
    run.tokensPerSecond = row.real(15);
    run.learningRate = row.real(16);
    run.parent = row.text(17);
    run.tags = row.text(18);
    run.note = row.text(19);
    run.kind = row.text(20);
    return run;
}

class DatabaseIndex final : public Index {
public:
    DatabaseIndex(Workspace workspace, Database database) : m_workspace(std::move(workspace)), m_database(std::move(database)) {}

    Status upsert(const RunRecord& run) override {
        CELLOOM_TRY(statement, m_database.prepare(kUpsert));
        statement.bind(1, run.number).bind(2, run.folder).bind(3, run.name).bind(4, toString(run.state)).bind(5, run.outcome);
        statement.bind(6, run.model).bind(7, run.precision).bind(8, run.created).bind(9, run.started).bind(10, run.ended);
        statement.bind(11, run.step)
            .bind(12, run.totalSteps)
            .bind(13, run.elapsedSeconds)
            .bind(14, run.lastLoss)
            .bind(15, run.lastPerplexity);
        return statement.bind(16, run.tokensPerSecond).bind(17, run.learningRate).bind(18, run.parent).bind(19, run.kind).run();
    }

    Result<std::vector<RunRecord>> runs() const override {
        CELLOOM_TRY(statement, m_database.prepare(std::string(kSelect) + "ORDER BY number DESC"));
        std::vector<RunRecord> found;
        while (true) {
            CELLOOM_TRY(hasRow, statement.next());
            if (!hasRow) return found;
            CELLOOM_TRY(record, recordOf(statement));
            found.push_back(std::move(record));
        }
    }

    Result<RunRecord> run(int number) const override {
        CELLOOM_TRY(statement, m_database.prepare(std::string(kSelect) + "WHERE number = ?"));
        CELLOOM_TRY(hasRow, statement.bind(1, number).next());
        if (!hasRow) return fail("the index has no run " + std::to_string(number) + ".");
        return recordOf(statement);
    }

    Status setNote(int number, const std::string& note) override {
        return setText("UPDATE runs SET note = ? WHERE number = ?", number, note);
    }
    Status setTags(int number, const std::string& tags) override {
        return setText("UPDATE runs SET tags = ? WHERE number = ?", number, tags);
    }

    Status remove(int number) override {
        CELLOOM_TRY(statement, m_database.prepare("DELETE FROM runs WHERE number = ?"));
        return statement.bind(1, number).run();
    }

    Status rebuild() override {
        // Read first, write in one short transaction: others may use the index meanwhile.
        std::vector<RunRecord> records;
        for (const RunFolder& folder : m_workspace.allRuns())
            if (auto record = readRecord(folder))
                records.push_back(std::move(*record));
            else
                records.push_back(unreadable(folder, record.error()));
        CELLOOM_TRY_STATUS(m_database.execute("BEGIN IMMEDIATE"));
        Status status = replaceAll(records);
        if (status) status = m_database.execute("COMMIT");
        if (!status) m_database.rollback();
        return status;
    }

private:
    static RunRecord unreadable(const RunFolder& folder, const Error& error) {
        RunRecord record;
        record.number = folder.number();
        record.folder = record.name = folder.name();
        record.state = RunState::Failed;
        record.outcome = error.text();
        return record;
    }

    Status replaceAll(const std::vector<RunRecord>& records) {
        CELLOOM_TRY_STATUS(m_database.execute("CREATE TEMP TABLE IF NOT EXISTS present(number INTEGER PRIMARY KEY); DELETE FROM present"));
        CELLOOM_TRY(present, m_database.prepare("INSERT OR IGNORE INTO present VALUES(?)"));
        for (const RunRecord& record : records) {
            CELLOOM_TRY_STATUS(upsert(record));
            CELLOOM_TRY_STATUS(present.bind(1, record.number).run());
        }
        return m_database.execute("DELETE FROM runs WHERE number NOT IN (SELECT number FROM present)");
    }

    Status setText(const char* sql, int number, const std::string& text) {
        CELLOOM_TRY(statement, m_database.prepare(sql));
        CELLOOM_TRY_STATUS(statement.bind(1, text).bind(2, number).run());
        if (m_database.changes() == 0) return fail("the index has no run " + std::to_string(number) + ".");
        return {};
    }

    Workspace m_workspace;
    Database m_database;
};

} // namespace

Result<std::unique_ptr<Index>> Index::open(const Workspace& workspace, bool readOnly) {
    CELLOOM_TRY(database, readOnly ? Database::openForReading(workspace.index(), indexSchema(), kBusyMs)
                                   : Database::openForWriting(workspace.index(), indexSchema(), kBusyMs));
    return std::make_unique<DatabaseIndex>(workspace, std::move(database));
}

} // namespace celloom::store
