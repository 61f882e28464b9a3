// The History page: every run, newest first, with search and filter; beside the table, the chosen run's facts, notes and actions.
#pragma once

#include "ui/common/run_actions.h"
#include "ui/shell/page.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;
class QStackedWidget;
class QTableView;
class QTimer;

namespace celloom::store {
struct RunRecord;
}

namespace celloom::ui {

class EmptyState;
class RunsFilter;
class RunsModel;
struct Services;

class HistoryPage : public Page {
    Q_OBJECT
public:
    explicit HistoryPage(Services& services, QWidget* parent = nullptr);

Q_SIGNALS:
    void runChosen(const QString& folder);
    void resumeRequested(const QString& folder);
    void cloneRequested(const QString& folder);
    void tryRequested(const QString& folder);
    void actionRequested(celloom::ui::RunAction action, const QString& folder);
    void failed(const QString& text);

private:
    QWidget* buildToolRow();
    QWidget* buildTable();
    QWidget* buildDetail();
    void buildActions(QWidget* panel);
    void fillStates();
    void refreshDetail();
    void refreshCount();
    void saveTexts();
    void askDelete();
    [[nodiscard]] const store::RunRecord* chosen() const;

    Services& m_services;
    RunsModel* m_model;
    RunsFilter* m_filter;
    QLineEdit* m_search;
    QComboBox* m_states;
    QLabel* m_count;
    QStackedWidget* m_stack;
    QTableView* m_table;
    EmptyState* m_empty;
    QWidget* m_detail;
    QLabel* m_name;
    QLabel* m_state;
    QLabel* m_facts;
    QLineEdit* m_tags;
    QPlainTextEdit* m_note;
    QPushButton* m_open;
    QPushButton* m_resume;
    QPushButton* m_clone;
    QPushButton* m_try;
    QPushButton* m_delete;
    RunActions* m_actions;
    QTimer* m_saveTimer;
    QString m_shown; // folder whose texts are in the edits
    int m_shownNumber = 0;
    bool m_hasChangedTags = false, m_hasChangedNote = false;
};

} // namespace celloom::ui
