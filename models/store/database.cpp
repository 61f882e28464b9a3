#include "models/store/database.h"

#include "models/store/index.h"

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <map>
#include <mutex>
#include <sqlite3.h>
#include <unistd.h>

namespace celloom::store {
namespace fs = std::filesystem;
namespace {

bool isIndex(const std::string& place) {
    return place.ends_with("celloom.db");
}

Error databaseError(sqlite3* handle, int code, const std::string& place) {
    const int system = handle ? sqlite3_system_errno(handle) : 0;
    const std::string said = handle ? sqlite3_errmsg(handle) : sqlite3_errstr(code);
    switch (code & 0xff) {
    case SQLITE_FULL:
        return {"the disk is full.", "Free some space; what was committed before is intact.", place};
    case SQLITE_READONLY:
        return {"the database is read-only.", "Check the permissions of the file and its folder.", place};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return {"another program holds the database.", "Try again; if it stays so, look for a stopped program.", place};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return {kDamagedMessage,
                isIndex(place) ? "Move it away; the index is rebuilt from the runs."
                               : "What this run measured is lost; its checkpoints can still be used.",
                place};
    case SQLITE_CANTOPEN:
        return {std::string("the database cannot be opened: ") + std::strerror(system ? system : ENOENT) + ".",
                "Check the path and its permissions.", place};
    case SQLITE_IOERR:
        if (system == ENOSPC || system == EDQUOT || system == EFBIG)
            return {"the disk is full.", "Free some space; what was committed before is intact.", place};
        return {"the disk failed: " + said + (system ? std::string(" (") + std::strerror(system) + ")" : "") + ".", "Check the disk.",
                place};
    default:
        return {"the database said: " + said + ".", {}, place};
    }
}

// SQLite refuses paths over 512 bytes, 170 Chinese characters. A longer one is reached as /proc/self/fd/N/name through its open folder.

constexpr std::size_t kLongestForSqlite = 500; // less the "-journal" that SQLite appends

/// Like SQLite's own, and does not follow the link /proc/self/fd/N back to the long path.
int keepFullPath(sqlite3_vfs*, const char* path, int size, char* out) {
    const std::size_t length = std::strlen(path);
    if (length >= static_cast<std::size_t>(size)) return SQLITE_CANTOPEN;
    std::memcpy(out, path, length + 1);
    return SQLITE_OK;
}

const char* shortPathVfs() {
    static sqlite3_vfs vfs = [] {
        sqlite3_vfs* standard = sqlite3_vfs_find("unix");
        CELLOOM_CHECK(standard != nullptr);
        sqlite3_vfs copy = *standard;
        copy.zName = "celloom-unix";
        copy.xFullPathname = keepFullPath;
        copy.pNext = nullptr;
        return copy;
    }();
    static const bool isRegistered = sqlite3_vfs_register(&vfs, 0) == SQLITE_OK;
    CELLOOM_CHECK(isRegistered);
    return vfs.zName;
}

/// One open descriptor a folder, shared by all connections into it: SQLite keeps file names, so the number must mean the same
/// folder until the last of them is closed.
Result<std::shared_ptr<const int>> openFolder(const fs::path& folder) {
    static std::mutex mutex;
    static std::map<fs::path, std::weak_ptr<const int>> known;
    const std::lock_guard guard(mutex);
    if (auto shared = known[folder].lock()) return shared;
    const int fd = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail(std::string("the folder cannot be opened: ") + std::strerror(errno) + ".", "Check the path and its permissions.",
                    folder.string());
    const std::shared_ptr<const int> shared(new int(fd), [](const int* held) {
        ::close(*held);
        delete held;
    });
    std::erase_if(known, [](const auto& entry) { return entry.second.expired(); });
    known[folder] = shared;
    return shared;
}

/// A folder of our own with copies of the database and of its log.
Result<fs::path> privateCopy(const fs::path& path) {
    std::error_code code;
    std::string folder = (fs::temp_directory_path(code) / "celloom-read-XXXXXX").string();
    if (code || !::mkdtemp(folder.data())) return fail("no temporary folder can be made.", "Set TMPDIR to a writable folder.");
    for (const char* suffix : {"", "-wal"}) {
        const fs::path from = path.string() + suffix;
        if (!fs::exists(from, code)) continue;
        fs::copy_file(from, fs::path(folder) / (path.filename().string() + suffix), code);
        if (!code) continue;
        std::error_code ignored;
        fs::remove_all(folder, ignored);
        return fail("the database cannot be copied: " + code.message() + ".", {}, from.string());
    }
    return fs::path(folder);
}

} // namespace

// --- Statement

Statement& Statement::operator=(Statement&& other) noexcept {
    std::swap(m_statement, other.m_statement);
    std::swap(m_place, other.m_place);
    return *this;
}

Statement::~Statement() {
    sqlite3_finalize(m_statement);
} // its code repeats the last step's, which was looked at

Statement& Statement::bind(int index, std::int64_t value) {
    CELLOOM_CHECK(sqlite3_bind_int64(m_statement, index, value) == SQLITE_OK);
    return *this;
}

Statement& Statement::bind(int index, double value) {
    if (std::isnan(value)) return bindNull(index);
    CELLOOM_CHECK(sqlite3_bind_double(m_statement, index, value) == SQLITE_OK);
    return *this;
}

Statement& Statement::bind(int index, std::string_view value) {
    CELLOOM_CHECK(sqlite3_bind_text64(m_statement, index, value.data() ? value.data() : "", value.size(), SQLITE_TRANSIENT, SQLITE_UTF8) ==
                  SQLITE_OK);
    return *this;
}

Statement& Statement::bindNull(int index) {
    CELLOOM_CHECK(sqlite3_bind_null(m_statement, index) == SQLITE_OK);
    return *this;
}

Result<bool> Statement::next() {
    const int code = sqlite3_step(m_statement);
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    sqlite3* handle = sqlite3_db_handle(m_statement);
    Error error = databaseError(handle, code, *m_place);
    sqlite3_reset(m_statement);
    return tl::unexpected(std::move(error));
}

Status Statement::run() {
    CELLOOM_TRY(hasRow, next());
    while (hasRow) {
        CELLOOM_TRY(again, next());
        hasRow = again;
    }
    sqlite3_reset(m_statement);
    return {};
}

std::int64_t Statement::integer(int column) const {
    return sqlite3_column_int64(m_statement, column);
}

double Statement::real(int column) const {
    return isNull(column) ? std::numeric_limits<double>::quiet_NaN() : sqlite3_column_double(m_statement, column);
}

std::string Statement::text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(m_statement, column));
    return bytes ? std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(m_statement, column))) : std::string();
}

bool Statement::isNull(int column) const {
    return sqlite3_column_type(m_statement, column) == SQLITE_NULL;
}

// --- Database

Database::Database(Database&& other) noexcept
    : m_folder(std::move(other.m_folder)), m_handle(std::exchange(other.m_handle, nullptr)), m_place(std::move(other.m_place)),
      m_copy(std::exchange(other.m_copy, {})) {}

Database::~Database() {
    sqlite3_close_v2(m_handle); // a checkpoint that fails here happens at the next open
    std::error_code ignored;
    if (!m_copy.empty()) fs::remove_all(m_copy, ignored);
}

Result<Database> Database::openFile(const fs::path& path, int flags, int busyMs) {
    std::error_code ignored;
    fs::path file = fs::absolute(path, ignored);
    Database database(file.string());
    const char* vfs = nullptr;
    if (file.string().size() > kLongestForSqlite) {
        CELLOOM_TRY(folder, openFolder(file.parent_path()));
        database.m_folder = folder;
        file = "/proc/self/fd/" + std::to_string(*folder) + "/" + file.filename().string();
        vfs = shortPathVfs();
    }
    const int code = sqlite3_open_v2(file.c_str(), &database.m_handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, vfs);
    if (code != SQLITE_OK) return tl::unexpected(databaseError(database.m_handle, code, *database.m_place));
    sqlite3_busy_timeout(database.m_handle, busyMs);
    return database;
}

Result<Database> Database::openForWriting(const fs::path& path, const Schema& schema, int busyMs) {
    CELLOOM_TRY(database, openFile(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, busyMs));
    // NORMAL: a commit outlives any death of the process; only a power cut may take the last ones, and never the consistency.
    // Where more is needed, RunWriter::flush() commits with FULL.
    CELLOOM_TRY_STATUS(database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;"));
    CELLOOM_TRY_STATUS(database.migrate(schema));
    return database;
}

Result<Database> Database::openForReading(const fs::path& path, const Schema& schema, int busyMs) {
    const auto tryAt = [&](const fs::path& file, int flags) -> Result<Database> {
        CELLOOM_TRY(database, openFile(file, flags, busyMs));
        CELLOOM_TRY(version, database.version(schema)); // the first read: only now does SQLite touch the log
        if (version != static_cast<int>(schema.steps.size()))
            return fail(version == 0 ? "the database is empty." : "the database is of an older form.",
                        "It is brought up to date when its run is resumed.", path.string());
        return database;
    };
    Result<Database> direct = tryAt(path, SQLITE_OPEN_READONLY);
    if (direct || ::access(path.parent_path().c_str(), W_OK) == 0 || ::access(path.c_str(), R_OK) != 0) return direct;
    CELLOOM_TRY(folder, privateCopy(path));
    Result<Database> copy = tryAt(folder / path.filename(), SQLITE_OPEN_READWRITE);
    if (copy) {
        copy->m_copy = folder;
    } else {
        std::error_code ignored;
        fs::remove_all(folder, ignored);
    }
    return copy;
}

Result<std::int64_t> Database::number(const char* pragma) const {
    CELLOOM_TRY(statement, prepare(pragma));
    CELLOOM_TRY(hasRow, statement.next());
    return hasRow ? statement.integer(0) : 0;
}

Result<int> Database::version(const Schema& schema) const {
    CELLOOM_TRY(version, number("PRAGMA user_version"));
    CELLOOM_TRY(application, number("PRAGMA application_id"));
    const std::string& place = *m_place;
    if (application != 0 && application != schema.applicationId) return fail("is a database of another program.", {}, place);
    if (version > static_cast<std::int64_t>(schema.steps.size()))
        return fail("was written by a newer Celloom (schema " + std::to_string(version) + ", this one knows " +
                        std::to_string(schema.steps.size()) + ").",
                    "Update Celloom.", place);
    if (version != 0 && version < schema.floor)
        return fail("has schema " + std::to_string(version) + "; the oldest that this Celloom reads is " + std::to_string(schema.floor) +
                        ".",
                    "Open it once with an older Celloom.", place);
    return static_cast<int>(version);
}

Status Database::migrate(const Schema& schema) {
    CELLOOM_TRY(seen, version(schema));
    if (seen == static_cast<int>(schema.steps.size())) return {};
    CELLOOM_TRY_STATUS(execute("BEGIN IMMEDIATE"));
    const Status done = [&]() -> Status {
        CELLOOM_TRY(from, version(schema)); // again: another process may have been first
        for (std::size_t step = static_cast<std::size_t>(from); step < schema.steps.size(); ++step)
            CELLOOM_TRY_STATUS(execute(schema.steps[step]));
        const std::string marks = "PRAGMA user_version = " + std::to_string(schema.steps.size()) +
                                  "; PRAGMA application_id = " + std::to_string(schema.applicationId) + "; COMMIT";
        return execute(marks.c_str());
    }();
    if (!done) rollback();
    return done;
}

Status Database::execute(const char* sql) {
    const int code = sqlite3_exec(m_handle, sql, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return tl::unexpected(databaseError(m_handle, code, *m_place));
    return {};
}

Result<Statement> Database::prepare(std::string_view sql) const {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v2(m_handle, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
    if (code != SQLITE_OK) return tl::unexpected(databaseError(m_handle, code, *m_place));
    return Statement(statement, m_place);
}

std::int64_t Database::lastId() const {
    return sqlite3_last_insert_rowid(m_handle);
}
int Database::changes() const {
    return sqlite3_changes(m_handle);
}

void Database::rollback() {
    // After some errors SQLite has rolled back by itself; a failure here leaves nothing open either.
    if (!sqlite3_get_autocommit(m_handle)) sqlite3_exec(m_handle, "ROLLBACK", nullptr, nullptr, nullptr);
}

} // namespace celloom::store
