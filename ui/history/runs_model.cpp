#include "ui/history/runs_model.h"

#include "ui/common/format.h"
#include "ui/common/run_texts.h"

#include <QFont>

#include <cmath>

namespace celloom::ui {

void RunsModel::setRuns(const RunListPtr& runs) {
    const auto sameRuns = [&] {
        if (runs->size() != m_runs.size()) return false;
        for (std::size_t i = 0; i < m_runs.size(); ++i) {
            if ((*runs)[i].folder != m_runs[i].folder) return false;
        }
        return true;
    };
    if (sameRuns()) { // keeps selection and scroll position
        m_runs = *runs;
        if (!m_runs.empty()) Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, kColumns - 1));
        return;
    }
    beginResetModel();
    m_runs = *runs;
    endResetModel();
}

void RunsModel::setProgress(const QString& folder, std::int64_t step, std::int64_t totalSteps, double elapsedSeconds) {
    for (std::size_t i = 0; i < m_runs.size(); ++i) {
        if (fromUtf8(m_runs[i].folder) != folder) continue;
        m_runs[i].step = step;
        m_runs[i].totalSteps = totalSteps;
        m_runs[i].elapsedSeconds = elapsedSeconds;
        const int row = static_cast<int>(i);
        Q_EMIT dataChanged(index(row, Time), index(row, Steps));
    }
}

void RunsModel::setLatest(const QString& folder, const Latest& latest) {
    for (std::size_t i = 0; i < m_runs.size(); ++i) {
        if (fromUtf8(m_runs[i].folder) != folder) continue;
        m_runs[i].lastLoss = latest.loss;
        m_runs[i].lastPerplexity = latest.perplexity;
        m_runs[i].tokensPerSecond = latest.tokensPerSecond;
        const int row = static_cast<int>(i);
        Q_EMIT dataChanged(index(row, Loss), index(row, Speed));
    }
}

void RunsModel::setCurrent(const QString& folder) {
    if (m_current == folder) return;
    m_current = folder;
    if (!m_runs.empty()) Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, kColumns - 1), {Qt::FontRole});
}

const store::RunRecord* RunsModel::find(const QString& folder) const {
    for (const store::RunRecord& run : m_runs) {
        if (fromUtf8(run.folder) == folder) return &run;
    }
    return nullptr;
}

void RunsModel::retranslate() {
    Q_EMIT headerDataChanged(Qt::Horizontal, 0, kColumns - 1);
    if (!m_runs.empty()) Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, kColumns - 1));
}

int RunsModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_runs.size());
}

int RunsModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : kColumns;
}

QVariant RunsModel::text(const store::RunRecord& run, int column) const {
    const auto known = [](double value, auto&& format) { return std::isnan(value) ? QStringLiteral("–") : format(value); };
    switch (column) {
    case Number:
        return run.number;
    case Name:
        return fromUtf8(run.name);
    case Kind:
        return RunTexts::kind(run.kind);
    case State:
        return Format::runState(run.state);
    case Model:
        return fromUtf8(run.model);
    case Precision:
        return fromUtf8(run.precision);
    case Rate:
        return known(run.learningRate, [](double value) { return Format::rate(value); });
    case Loss:
        return known(run.lastLoss, [](double value) { return Format::number(value); });
    case Perplexity:
        return known(run.lastPerplexity, [](double value) { return Format::number(value, 3); });
    case Speed:
        return known(run.tokensPerSecond, [](double value) { return Format::count(std::llround(value)); });
    case Time:
        return Format::clock(run.elapsedSeconds);
    case Steps:
        return run.totalSteps > 0 ? QStringLiteral("%1 / %2").arg(Format::count(run.step), Format::count(run.totalSteps))
                                  : Format::count(run.step);
    case Created:
        return Format::dateAndTime(run.created);
    case Tags:
        return fromUtf8(run.tags);
    default:
        return {};
    }
}

QVariant RunsModel::sortKey(const store::RunRecord& run, int column) const {
    switch (column) {
    case Number:
        return run.number;
    case State:
        return static_cast<int>(run.state);
    case Rate:
        return run.learningRate;
    case Loss:
        return run.lastLoss;
    case Perplexity:
        return run.lastPerplexity;
    case Speed:
        return run.tokensPerSecond;
    case Time:
        return run.elapsedSeconds;
    case Steps:
        return static_cast<qlonglong>(run.step);
    case Created:
        return run.created;
    default:
        return text(run, column);
    }
}

QVariant RunsModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid | CheckIndexOption::ParentIsInvalid)) return {};
    const store::RunRecord& run = m_runs[static_cast<std::size_t>(index.row())];
    switch (role) {
    case Qt::DisplayRole:
        return text(run, index.column());
    case SortRole:
        return sortKey(run, index.column());
    case FolderRole:
        return fromUtf8(run.folder);
    case StateRole:
        return static_cast<int>(run.state);
    case SearchRole:
        return fromUtf8(run.name + '\n' + run.folder + '\n' + run.model + '\n' + run.tags + '\n' + run.note + '\n' + run.precision + '\n' + run.kind + '\n') + RunTexts::kind(run.kind) + QLatin1Char('\n') +
               RunTexts::outcome(run);
    case Qt::ToolTipRole: {
        if (index.column() == State) return RunTexts::outcome(run);
        if (index.column() == Name) return fromUtf8(run.note.empty() ? run.name : run.name + '\n' + run.note);
        return {};
    }
    case Qt::TextAlignmentRole: {
        const bool isNumber = index.column() == Number || (index.column() >= Rate && index.column() <= Steps);
        return QVariant::fromValue(Qt::Alignment((isNumber ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter));
    }
    case Qt::FontRole: {
        if (m_current.isEmpty() || fromUtf8(run.folder) != m_current) return {};
        QFont font;
        font.setBold(true);
        return font;
    }
    default:
        return {};
    }
}

QVariant RunsModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= kColumns) return {};
    if (role == Qt::TextAlignmentRole) {
        const bool isNumber = section == Number || (section >= Rate && section <= Steps);
        return QVariant::fromValue(Qt::Alignment((isNumber ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter));
    }
    if (role == Qt::ToolTipRole && section == Rate) return tr("The highest learning rate of the recipe");
    if (role != Qt::DisplayRole) return {};
    switch (section) {
    case Number:
        return tr("Run");
    case Name:
        return tr("Name");
    case Kind:
        return tr("Kind");
    case State:
        return tr("State");
    case Model:
        return tr("Model");
    case Precision:
        return tr("Precision");
    case Rate:
        return tr("Rate");
    case Loss:
        return tr("Loss");
    case Perplexity:
        return tr("Perplexity");
    case Speed:
        return tr("Tokens/s");
    case Time:
        return tr("Time");
    case Steps:
        return tr("Steps");
    case Created:
        return tr("Created");
    case Tags:
        return tr("Tags");
    default:
        return {};
    }
}

RunsFilter::RunsFilter(QObject* parent) : QSortFilterProxyModel(parent) {
    setSortRole(RunsModel::SortRole);
    setDynamicSortFilter(true);
}

void RunsFilter::setWords(const QString& words) {
    m_words = words.split(QLatin1Char(' '), Qt::SkipEmptyParts);
    invalidateFilter();
}

void RunsFilter::setStates(std::set<store::RunState> states) {
    m_states = std::move(states);
    invalidateFilter();
}

void RunsFilter::setOnlyNewest(int count, const QString& with) {
    if (m_newest == count && m_with == with) return;
    m_newest = count;
    m_with = with;
    invalidateFilter();
}

bool RunsFilter::filterAcceptsRow(int row, const QModelIndex& parent) const {
    const QModelIndex index = sourceModel()->index(row, 0, parent);
    if (m_newest > 0) { // the source is ordered newest first
        const bool isWith = index.data(RunsModel::FolderRole).toString() == m_with;
        return isWith || row < m_newest;
    }
    if (!m_states.empty() && !m_states.count(static_cast<store::RunState>(index.data(RunsModel::StateRole).toInt()))) return false;
    const QString text = index.data(RunsModel::SearchRole).toString();
    for (const QString& word : m_words) {
        if (!text.contains(word, Qt::CaseInsensitive)) return false;
    }
    return true;
}

/// Unknown numbers come last when sorted upwards.
bool RunsFilter::lessThan(const QModelIndex& left, const QModelIndex& right) const {
    const QVariant a = left.data(RunsModel::SortRole), b = right.data(RunsModel::SortRole);
    if (a.typeId() == QMetaType::Double && b.typeId() == QMetaType::Double) {
        const double x = a.toDouble(), y = b.toDouble();
        if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) && std::isnan(y);
        return x < y;
    }
    return QSortFilterProxyModel::lessThan(left, right);
}

} // namespace celloom::ui
