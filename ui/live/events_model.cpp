#include "ui/live/events_model.h"

#include "ui/common/format.h"
#include "ui/common/run_texts.h"
#include "ui/common/theme.h"

namespace celloom::ui {

namespace {
constexpr int kMostRows = 1000; // the database keeps them all
}

EventsModel::EventsModel(Theme& theme, QObject* parent) : QAbstractTableModel(parent), m_theme(theme) {
    connect(&theme, &Theme::changed, this, &EventsModel::retranslate);
}

void EventsModel::retranslate() {
    if (rowCount() > 0) Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, kColumns - 1));
}

void EventsModel::clear() {
    if (m_events.empty()) return;
    beginResetModel();
    m_events.clear();
    endResetModel();
}

void EventsModel::add(const std::vector<store::EventRow>& events) {
    if (events.empty()) return;
    const int count = static_cast<int>(events.size());
    beginInsertRows({}, 0, count - 1);
    for (const store::EventRow& event : events) m_events.push_front(event);
    endInsertRows();
    const int rows = rowCount();
    if (rows <= kMostRows) return;
    beginRemoveRows({}, kMostRows, rows - 1);
    m_events.resize(kMostRows);
    endRemoveRows();
}

int EventsModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_events.size());
}

int EventsModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : kColumns;
}

QVariant EventsModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid | CheckIndexOption::ParentIsInvalid)) return {};
    const store::EventRow& event = m_events[static_cast<std::size_t>(index.row())];
    const QString text = RunTexts::event(event);
    switch (role) {
    case Qt::DisplayRole:
        return index.column() == Time ? Format::timeOfDay(event.time) : text;
    case Qt::ToolTipRole:
        return QStringLiteral("%1\n%2").arg(tr("%1, step %2").arg(Format::dateAndTime(event.time), Format::count(event.step)), text);
    case Qt::ForegroundRole:
        if (index.column() == Time) return m_theme.color("muted");
        if (event.level == "error") return m_theme.color("bad");
        if (event.level == "warning") return m_theme.color("warning");
        return m_theme.color("text");
    default:
        return {};
    }
}

} // namespace celloom::ui
