// A run's events, newest first.
#pragma once

#include "models/store/run_store.h"

#include <QAbstractTableModel>

#include <deque>
#include <vector>

namespace celloom::ui {

class Theme;

class EventsModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { Time, Message, kColumns };
    explicit EventsModel(Theme& theme, QObject* parent = nullptr);

    void clear();
    /// Words or colours are another.
    void retranslate();
    /// In the order in which they happened.
    void add(const std::vector<store::EventRow>& events);

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;

private:
    Theme& m_theme;
    std::deque<store::EventRow> m_events; // newest first
};

} // namespace celloom::ui
