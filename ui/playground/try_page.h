// The Try page: one to four models answer the same question side by side. Question below, sampling at the right.
#pragma once

#include "ui/common/run_store.h"
#include "ui/playground/column_view.h"
#include "ui/playground/playground.h"
#include "ui/shell/page.h"

#include <QPlainTextEdit>

#include <vector>

class QComboBox;
class QHBoxLayout;
class QLineEdit;
class QPushButton;
class QStackedWidget;
class QToolButton;

namespace celloom::ui {

class EmptyState;
class SamplingPanel;
struct Services;

/// Where a question is typed: Enter sends it, Shift+Enter begins a line.
class QuestionEdit : public QPlainTextEdit {
    Q_OBJECT
public:
    explicit QuestionEdit(QWidget* parent = nullptr);

Q_SIGNALS:
    void submitted();

protected:
    void keyPressEvent(QKeyEvent* event) override;

private:
    void fit();
};

class TryPage : public Page {
    Q_OBJECT
public:
    explicit TryPage(Services& services, QWidget* parent = nullptr);

    /// A run's folder name, or a path: into the first column that has no model, or a new one.
    void open(const QString& source);
    /// A run that trained an adapter; its base goes into the column before it while the page shows no model.
    void openBesideBase(const QString& source, const QString& base);
    [[nodiscard]] QString context() const override;

Q_SIGNALS:
    void failed(const QString& text);
    void exampleRequested();

protected:
    void showEvent(QShowEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;

private:
    QWidget* buildEmpty();
    QWidget* buildContent();
    QWidget* buildTools();
    QWidget* buildQuestion();
    void onRuns(const RunListPtr& runs);
    void rebuildColumns();
    void refresh();
    void refreshEmpty();
    void fillModes();
    void takeMode();
    void submit();
    void askFolder(const QString& column);
    void askAdapter(const QString& column);
    void openFolder(const QString& column, const QString& path);
    void openAdapter(const QString& column, const QString& path);
    void refreshChoices();
    void save(bool isJson);
    [[nodiscard]] std::vector<ModelEntry> models() const;
    [[nodiscard]] std::vector<ModelEntry> adapters() const;

    Services& m_services;
    Playground m_playground;
    RunListPtr m_runs;
    QStringList m_folders, m_adapterFolders; // opened before, newest first
    QStackedWidget* m_stack;
    EmptyState* m_empty;
    QPushButton* m_newest;
    QPushButton* m_example;
    QHBoxLayout* m_columnRow;
    std::vector<ColumnView*> m_views;
    SamplingPanel* m_sampling;
    QComboBox* m_mode;   // free text, or a chat in a template
    QLineEdit* m_system; // of a chat
    QuestionEdit* m_question;
    QPushButton* m_send;
    QToolButton* m_add;
    QToolButton* m_colours;
    QToolButton* m_showSampling;
    QToolButton* m_save;
    QToolButton* m_clear;
};

} // namespace celloom::ui
