// Reads of run.db and celloom.db on a thread of their own; what was read comes back as plain data.
#pragma once

#include "models/base/result.h"
#include "models/store/index.h"
#include "models/store/run_store.h"
#include "ui/common/background.h"

#include <QObject>
#include <QString>

#include <functional>
#include <memory>
#include <vector>

namespace celloom::ui {

/// What is new in one run since the last delivery.
struct RunDelta {
    QString folder;          // name inside runs/
    bool startsOver = false; // forget what was delivered before: this is everything
    std::vector<store::MetricRow> metrics;
    std::vector<store::EventRow> events;
    std::vector<store::SampleRow> samples;
    store::Progress progress;
    bool hasProgress = false;
    bool hasMore = false; // rows are left: poll again
    QString error; // why nothing could be read; empty when all is well
};
using RunDeltaPtr = std::shared_ptr<const RunDelta>;
using RunListPtr = std::shared_ptr<const std::vector<store::RunRecord>>;

class RunStoreReader;

class RunStore : public QObject {
    Q_OBJECT
public:
    explicit RunStore(store::Workspace workspace, QObject* parent = nullptr);
    ~RunStore() override;

    [[nodiscard]] const store::Workspace& workspace() const { return m_workspace; }

    /// All runs, newest first → runsLoaded. Requests while one is under way are joined into one more.
    void refreshRuns();
    /// Follows one run (name of its folder): delivers everything once, then, on each poll(), what is new.
    void follow(const QString& folder);
    void poll();
    void setNote(int number, const QString& note);
    void setTags(int number, const QString& tags);
    /// The recipe a run was started with → recipeLoaded.
    void loadRecipe(const QString& folder);

Q_SIGNALS:
    void runsLoaded(const celloom::ui::RunListPtr& runs);
    void runRead(const celloom::ui::RunDeltaPtr& delta);
    void recipeLoaded(const QString& folder, const QString& json, const QString& error);
    void failed(const QString& error);

private:
    void change(std::function<Status(store::Index&)> edit);

    store::Workspace m_workspace;
    std::unique_ptr<RunStoreReader> m_reader; // used by the background alone
    bool m_isListing = false, m_listAgain = false;
    bool m_isPolling = false, m_pollAgain = false;
    Background m_background;
};

} // namespace celloom::ui
