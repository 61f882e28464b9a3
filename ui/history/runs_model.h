// Runs as a table. Knows no widget and no database: it is given records.
#pragma once

#include "models/store/index.h"
#include "ui/common/run_store.h"

#include <QAbstractTableModel>
#include <QSortFilterProxyModel>

#include <optional>
#include <set>
#include <vector>

namespace celloom::ui {

class RunsModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { Number, Name, Kind, State, Model, Precision, Rate, Loss, Perplexity, Speed, Time, Steps, Created, Tags, kColumns };
    enum Role { FolderRole = Qt::UserRole + 1, SortRole, StateRole, SearchRole };

    explicit RunsModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

    void setRuns(const RunListPtr& runs);
    /// What the engine says of a run that is going, between two reads of the index.
    void setProgress(const QString& folder, std::int64_t step, std::int64_t totalSteps, double elapsedSeconds);
    /// What a run that is going measured last; NaN where it has not.
    struct Latest {
        double loss, perplexity, tokensPerSecond;
    };
    void setLatest(const QString& folder, const Latest& latest);
    /// This run's row is bold.
    void setCurrent(const QString& folder);
    [[nodiscard]] const store::RunRecord* find(const QString& folder) const;
    [[nodiscard]] const std::vector<store::RunRecord>& runs() const { return m_runs; }
    /// Words are another: the language changed.
    void retranslate();

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    [[nodiscard]] QVariant text(const store::RunRecord& run, int column) const;
    [[nodiscard]] QVariant sortKey(const store::RunRecord& run, int column) const;

    std::vector<store::RunRecord> m_runs;
    QString m_current;
};

/// Sorting by value, filtering by words (all must be found in name, model, tags, note or outcome) and by state.
class RunsFilter : public QSortFilterProxyModel {
    Q_OBJECT
public:
    explicit RunsFilter(QObject* parent = nullptr);
    void setWords(const QString& words);
    void setStates(std::set<store::RunState> states); // empty: all
    /// Only this run and the newest others, `count` rows in all; 0: every run.
    void setOnlyNewest(int count, const QString& with);

protected:
    [[nodiscard]] bool filterAcceptsRow(int row, const QModelIndex& parent) const override;
    [[nodiscard]] bool lessThan(const QModelIndex& left, const QModelIndex& right) const override;

private:
    QStringList m_words;
    std::set<store::RunState> m_states;
    int m_newest = 0;
    QString m_with;
};

} // namespace celloom::ui
