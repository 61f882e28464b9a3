// One column of the Try page: which model, what it said, how fast. Its Playground column must exist as long as the view does.
#pragma once

#include "ui/common/texts.h"
#include "ui/playground/playground.h"

#include <QFrame>

#include <vector>

class QComboBox;
class QLabel;
class QTimer;
class QToolButton;

namespace celloom::ui {

class ElidedLabel;
class Theme;
class TranscriptView;

/// What can be chosen: a run, or a folder that was opened before.
struct ModelEntry {
    QString label, source;
};

class ColumnView : public QFrame {
    Q_OBJECT
public:
    ColumnView(Playground& playground, const QString& column, Theme& theme, QWidget* parent = nullptr);

    [[nodiscard]] const QString& column() const { return m_column; }
    void setModels(const std::vector<ModelEntry>& models);
    void setAdapters(const std::vector<ModelEntry>& adapters);
    void setColoured(bool isColoured);

Q_SIGNALS:
    void folderRequested(const QString& column);
    void adapterRequested(const QString& column);
    void regenerateRequested();

protected:
    void changeEvent(QEvent* event) override;

private:
    QWidget* buildHeader();
    QWidget* buildFooter();
    void choose(int index);
    void chooseAdapters(const QStringList& adapters);
    void fillAdapters();
    void showSource();
    void refresh();
    void refreshFooter();
    void copyAnswer();
    [[nodiscard]] const Answer* lastAnswer() const;

    Playground& m_playground;
    const QString m_column;
    Theme& m_theme;
    Texts m_texts;
    std::vector<ModelEntry> m_models, m_adapters;
    QComboBox* m_picker;
    QToolButton* m_close;
    QToolButton* m_adapter;
    ElidedLabel* m_facts;
    QLabel* m_error;
    TranscriptView* m_transcript;
    ElidedLabel* m_speed;
    QToolButton* m_copy;
    QToolButton* m_again;
    QTimer* m_growing; // text is added at most so many times a second
};

} // namespace celloom::ui
