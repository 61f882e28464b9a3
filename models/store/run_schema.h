// The tables of run.db, shared by its writer and its readers. A change is a new step at the end, never an edit of an old one.
#pragma once

#include "models/store/database.h"

namespace celloom::store {

/// `value` is NULL where a number is NaN or infinite, and `special` then says which: 'nan', 'inf', '-inf'.
inline const Schema& runSchema() {
    static const Schema schema{0x43656c72 /* "Celr" */, 1, {R"(
CREATE TABLE series(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE metrics(id INTEGER PRIMARY KEY, series INTEGER NOT NULL REFERENCES series(id), step INTEGER NOT NULL, epoch REAL,
                     value REAL, special TEXT, time REAL NOT NULL, superseded INTEGER NOT NULL DEFAULT 0);
CREATE INDEX metrics_by_series ON metrics(series, id);
CREATE TABLE events(id INTEGER PRIMARY KEY, time REAL NOT NULL, step INTEGER NOT NULL, level TEXT NOT NULL, kind TEXT NOT NULL,
                    message TEXT NOT NULL, hint TEXT NOT NULL, data TEXT NOT NULL);
CREATE TABLE samples(id INTEGER PRIMARY KEY, time REAL NOT NULL, step INTEGER NOT NULL, prompt TEXT NOT NULL, text TEXT NOT NULL);
CREATE TABLE progress(id INTEGER PRIMARY KEY CHECK(id = 1), state TEXT NOT NULL, stage TEXT NOT NULL, step INTEGER NOT NULL,
                      total_steps INTEGER NOT NULL, epoch REAL, total_epochs REAL, elapsed REAL, remaining REAL, updated REAL,
                      pid INTEGER NOT NULL);
CREATE TABLE counters(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO counters VALUES('generation', 0), ('flushes', 0);
)"}};
    return schema;
}

} // namespace celloom::store
