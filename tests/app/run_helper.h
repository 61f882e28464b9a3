// What tests of whole runs share: a workspace, recipes, the child as a process, and its metric rows.
#pragma once

#include "models/base/files.h"
#include "models/store/run_folder.h"
#include "models/store/run_store.h"

#include <QProcess>
#include <QTemporaryDir>
#include <QTest>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace celloom::test {
namespace fs = std::filesystem;

struct ChildEnd {
    bool isKilled = false; // by a signal
    int code = 0;          // exit code, or the signal
    QString output, messages;
};

class RunWorkspace {
public:
    explicit RunWorkspace(const fs::path& path = {}) : m_path(path.empty() ? fs::path(m_temporary.path().toStdString()) / "workspace" : path) {}
    const fs::path& path() const { return m_path; }

    /// A run's folder with its recipe, as the broker makes it.
    store::RunFolder create(const nlohmann::json& recipe) {
        auto workspace = store::Workspace::open(m_path);
        if (!workspace) qFatal("%s", workspace.error().text().c_str());
        auto folder = workspace->createRun("test");
        if (!folder) qFatal("%s", folder.error().text().c_str());
        if (auto status = writeFileAtomically(folder->recipe(), recipe.dump(2)); !status) qFatal("%s", status.error().text().c_str());
        return *folder;
    }

    /// Starts the run, or goes on with it.
    ChildEnd run(const store::RunFolder& folder, const QString& killAt = {}) {
        QProcess process;
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert("XDG_RUNTIME_DIR", m_temporary.path());
        if (!killAt.isEmpty()) environment.insert("CELLOOM_TEST_KILL_AT", killAt);
        process.setProcessEnvironment(environment);
        process.start(QStringLiteral(CELLOOM_BIN "/celloom-engine"), {"child", QString::fromStdString(folder.path.string())});
        if (!process.waitForFinished(300000 * CELLOOM_TEST_TIME_FACTOR)) process.kill();
        return {process.exitStatus() == QProcess::CrashExit, process.exitCode(), QString::fromUtf8(process.readAllStandardOutput()),
                QString::fromUtf8(process.readAllStandardError())};
    }

private:
    QTemporaryDir m_temporary;
    fs::path m_path;
};

/// Rows that training must repeat exactly, by name and step; those of a part that was run again are left out.
inline std::map<std::pair<std::string, std::int64_t>, double> exactRows(const store::RunFolder& folder) {
    static const std::set<std::string> names{"train/loss", "train/lr", "train/grad_norm", "train/loss_scale", "eval/loss", "eval/perplexity",
                                             "baseline/bigram_perplexity"};
    std::map<std::pair<std::string, std::int64_t>, double> out;
    const auto reader = store::RunReader::open(folder.database());
    if (!reader) qFatal("%s", reader.error().text().c_str());
    const auto rows = (*reader)->metricsAfter(0, 1000000);
    if (!rows) qFatal("%s", rows.error().text().c_str());
    for (const store::MetricRow& row : *rows) {
        if (row.isSuperseded || !names.contains(row.name)) continue;
        if (!out.emplace(std::pair(row.name, row.step), row.value).second) qFatal("%s of step %lld is there twice", row.name.c_str(), static_cast<long long>(row.step));
    }
    return out;
}

inline std::vector<store::EventRow> events(const store::RunFolder& folder, const std::string& kind) {
    std::vector<store::EventRow> out;
    const auto reader = store::RunReader::open(folder.database());
    if (!reader) return out;
    const auto rows = (*reader)->eventsAfter(0, 100000);
    if (!rows) return out;
    for (const auto& row : *rows)
        if (row.kind == kind) out.push_back(row);
    return out;
}

inline store::Progress progress(const store::RunFolder& folder) {
    const auto reader = store::RunReader::open(folder.database());
    if (!reader) qFatal("%s", reader.error().text().c_str());
    const auto row = (*reader)->progress();
    if (!row) qFatal("%s", row.error().text().c_str());
    return *row;
}

/// A model of a few thousand weights on four chapters: 12 steps, an evaluation and a checkpoint every 4.
inline nlohmann::json smallRecipe() {
    const std::string chapters = CELLOOM_SOURCE "/resources/corpora/sanguo/";
    return {{"model", {{"source", "baichuan-tiny"}, {"overrides", {"hidden=32", "layers=2", "heads=2", "intermediate=48"}}}},
            {"tokenizer", {{"vocab_size", 2600}}},
            {"data", {{"train", {chapters + "001.txt", chapters + "002.txt"}}, {"validation", {chapters + "003.txt"}}}},
            {"train", {{"batch_size", 2}, {"accumulation", 2}, {"sequence_length", 32}, {"max_steps", 12}}},
            {"optimizer", {{"lr", 0.003}}},
            {"schedule", {{"warmup_steps", 3}}},
            {"evaluate", {{"every_steps", 4}, {"max_batches", 3}}},
            {"checkpoint", {{"every_steps", 4}}},
            {"threads", 1},
            {"seed", 7}};
}

} // namespace celloom::test
