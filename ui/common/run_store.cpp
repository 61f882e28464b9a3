#include "ui/common/run_store.h"

#include "models/base/files.h"
#include "ui/common/format.h"

namespace celloom::ui {

namespace {
constexpr int kRowsAtOnce = 50'000; // a delivery stays small enough for the window to stay fluent
}

/// Keeps the databases open between reads.
class RunStoreReader {
public:
    explicit RunStoreReader(store::Workspace workspace) : m_workspace(std::move(workspace)) {}

    Result<std::vector<store::RunRecord>> runs() {
        CELLOOM_TRY_STATUS(openIndex());
        CELLOOM_TRY(runs, m_index->runs());
        for (store::RunRecord& run : runs) {
            const store::RunFolder folder{m_workspace.runs() / run.folder};
            run.hasCheckpoint = folder.hasCheckpoint();
            run.hasAdapter = folder.hasAdapter();
        }
        return runs;
    }

    Status change(const std::function<Status(store::Index&)>& edit) {
        CELLOOM_TRY_STATUS(openIndex());
        return edit(*m_index);
    }

    void follow(const QString& folder) {
        m_folder = folder;
        m_reader.reset();
        m_metric = m_event = m_sample = 0;
        m_generation = -1;
    }

    RunDelta read() {
        RunDelta delta;
        delta.folder = m_folder;
        if (Status status = readInto(delta); !status) delta.error = Format::error(status.error());
        return delta;
    }

private:
    Status openIndex() {
        if (m_index) return {};
        CELLOOM_TRY(index, store::Index::open(m_workspace));
        m_index = std::move(index);
        return {};
    }

    Status readInto(RunDelta& delta) {
        if (m_folder.isEmpty()) return {};
        if (!m_reader) {
            const store::RunFolder folder{m_workspace.runs() / toUtf8(m_folder)};
            std::error_code error;
            if (!std::filesystem::exists(folder.database(), error)) return {}; // the run has not begun to write
            CELLOOM_TRY(reader, store::RunReader::open(folder.database()));
            m_reader = std::move(reader);
        }
        CELLOOM_TRY(generation, m_reader->generation());
        if (generation != m_generation) {
            delta.startsOver = true;
            m_generation = generation;
            m_metric = m_event = m_sample = 0;
        }
        CELLOOM_TRY(progress, m_reader->progress());
        delta.progress = progress;
        delta.hasProgress = true;
        CELLOOM_TRY(metrics, m_reader->metricsAfter(m_metric, kRowsAtOnce));
        CELLOOM_TRY(events, m_reader->eventsAfter(m_event, kRowsAtOnce));
        CELLOOM_TRY(samples, m_reader->samplesAfter(m_sample, kRowsAtOnce));
        if (!metrics.empty()) m_metric = metrics.back().id;
        if (!events.empty()) m_event = events.back().id;
        if (!samples.empty()) m_sample = samples.back().id;
        delta.hasMore = metrics.size() == kRowsAtOnce || events.size() == kRowsAtOnce || samples.size() == kRowsAtOnce;
        delta.metrics = std::move(metrics);
        delta.events = std::move(events);
        delta.samples = std::move(samples);
        return {};
    }

    store::Workspace m_workspace;
    std::unique_ptr<store::Index> m_index;
    std::unique_ptr<store::RunReader> m_reader;
    QString m_folder;
    std::int64_t m_metric = 0, m_event = 0, m_sample = 0, m_generation = -1;
};

RunStore::RunStore(store::Workspace workspace, QObject* parent)
    : QObject(parent), m_workspace(std::move(workspace)), m_reader(std::make_unique<RunStoreReader>(m_workspace)) {}

RunStore::~RunStore() = default;

void RunStore::refreshRuns() {
    if (m_isListing) {
        m_listAgain = true;
        return;
    }
    m_isListing = true;
    m_background.run([reader = m_reader.get()] { return reader->runs(); },
                     [this](Result<std::vector<store::RunRecord>> runs) {
                         m_isListing = false;
                         if (runs) {
                             Q_EMIT runsLoaded(std::make_shared<const std::vector<store::RunRecord>>(std::move(*runs)));
                         } else {
                             Q_EMIT failed(Format::error(runs.error()));
                         }
                         if (std::exchange(m_listAgain, false)) refreshRuns();
                     });
}

void RunStore::follow(const QString& folder) {
    m_background.run([reader = m_reader.get(), folder] { reader->follow(folder); });
    poll();
}

void RunStore::poll() {
    if (m_isPolling) {
        m_pollAgain = true;
        return;
    }
    m_isPolling = true;
    m_background.run([reader = m_reader.get()] { return std::make_shared<const RunDelta>(reader->read()); },
                     [this](const RunDeltaPtr& delta) {
                         m_isPolling = false;
                         Q_EMIT runRead(delta);
                         if (std::exchange(m_pollAgain, false) || delta->hasMore) poll();
                     });
}

void RunStore::setNote(int number, const QString& note) {
    change([number, text = toUtf8(note)](store::Index& index) { return index.setNote(number, text); });
}

void RunStore::setTags(int number, const QString& tags) {
    change([number, text = toUtf8(tags)](store::Index& index) { return index.setTags(number, text); });
}

void RunStore::change(std::function<Status(store::Index&)> edit) {
    m_background.run([reader = m_reader.get(), edit = std::move(edit)] { return reader->change(edit); },
                     [this](const Status& status) {
                         if (!status) Q_EMIT failed(Format::error(status.error()));
                         refreshRuns();
                     });
}

void RunStore::loadRecipe(const QString& folder) {
    m_background.run([file = store::RunFolder{m_workspace.runs() / toUtf8(folder)}.recipe()] { return readFile(file, 8u << 20); },
                     [this, folder](const Result<std::string>& text) {
                         Q_EMIT recipeLoaded(folder, text ? fromUtf8(*text) : QString(), text ? QString() : Format::error(text.error()));
                     });
}

} // namespace celloom::ui
