// A thin layer over SQLite for models/store alone: errors become Error, statements clean up after themselves, schemas grow by
// numbered steps. Databases are in WAL mode, where readers and the writer do not block each other.
#pragma once

#include "models/base/result.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace celloom::store {

class Statement {
public:
    Statement() = default;
    Statement(Statement&& other) noexcept : m_statement(std::exchange(other.m_statement, nullptr)), m_place(std::move(other.m_place)) {}
    Statement& operator=(Statement&& other) noexcept;
    ~Statement();

    // Parameters and columns count from 1 and from 0, as in SQLite.
    Statement& bind(int index, std::int64_t value);
    Statement& bind(int index, int value) { return bind(index, std::int64_t{value}); }
    Statement& bind(int index, double value); // NaN becomes NULL: SQLite has none
    Statement& bind(int index, std::string_view value);
    Statement& bindNull(int index);

    /// True: a row is there. False: no more.
    Result<bool> next();
    /// Runs to the end and makes ready for the next values.
    Status run();

    [[nodiscard]] std::int64_t integer(int column) const;
    [[nodiscard]] double real(int column) const; // NULL is NaN
    [[nodiscard]] std::string text(int column) const;
    [[nodiscard]] bool isNull(int column) const;

private:
    friend class Database;
    Statement(sqlite3_stmt* statement, std::shared_ptr<const std::string> place) : m_statement(statement), m_place(std::move(place)) {}
    sqlite3_stmt* m_statement = nullptr;
    std::shared_ptr<const std::string> m_place; // for errors
};

/// Tables as they grew: step i leads from version i to i + 1 (PRAGMA user_version). Versions below `floor` are no longer
/// understood, versions above steps.size() were written by a newer Celloom; both are refused.
struct Schema {
    int applicationId = 0; // PRAGMA application_id: tells our files from other SQLite files
    int floor = 1;
    std::vector<const char*> steps;
};

class Database {
public:
    /// Creates or migrates. A busy database is waited for at most `busyMs`.
    static Result<Database> openForWriting(const std::filesystem::path& path, const Schema& schema, int busyMs);
    /// Never changes the file. On a read-only disk where SQLite cannot open a WAL database, a private copy is read.
    static Result<Database> openForReading(const std::filesystem::path& path, const Schema& schema, int busyMs);

    Database(Database&& other) noexcept;
    Database& operator=(Database&&) = delete;
    ~Database();

    Status execute(const char* sql);
    Result<Statement> prepare(std::string_view sql) const;
    [[nodiscard]] std::int64_t lastId() const;
    [[nodiscard]] int changes() const; // of the last statement
    /// Leaves a transaction that failed, if one is open.
    void rollback();

private:
    explicit Database(std::string place) : m_place(std::make_shared<const std::string>(std::move(place))) {}
    static Result<Database> openFile(const std::filesystem::path& path, int flags, int busyMs);
    Result<std::int64_t> number(const char* pragma) const;
    Result<int> version(const Schema& schema) const;
    Status migrate(const Schema& schema);

    std::shared_ptr<const int> m_folder; // open while SQLite reaches the file through it; see database.cpp
    sqlite3* m_handle = nullptr;
    std::shared_ptr<const std::string> m_place; // the path, for errors
    std::filesystem::path m_copy;               // folder to remove at the end
};

} // namespace celloom::store
