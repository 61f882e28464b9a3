// The first batch of a run, looked at before the run: a window with the tokens, counts and lengths; and the row in the form that
// makes it, on an engine process, with its progress and its errors.
#pragma once

#include "ui/common/engine_job.h"
#include "ui/common/texts.h"
#include "ui/train/preview_data.h"

#include <QDialog>
#include <QPointer>
#include <QTemporaryDir>
#include <QWidget>

#include <memory>

class QLabel;
class QProgressBar;
class QPushButton;
class QTimer;

namespace celloom::ui {

class RecipeDocument;
class Theme;
class TokenView;

/// Bars of the lengths of conversations.
class LengthHistogram : public QWidget {
    Q_OBJECT
public:
    explicit LengthHistogram(Theme& theme, QWidget* parent = nullptr);
    /// `mark`: the sequence length, beyond which conversations are shortened.
    void setBins(std::vector<PreviewBin> bins, std::int64_t mark);
    [[nodiscard]] QSize sizeHint() const override { return {280, 108}; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    Theme& m_theme;
    std::vector<PreviewBin> m_bins;
    std::int64_t m_mark = 0;
};

class BatchPreview : public QDialog {
    Q_OBJECT
public:
    BatchPreview(PreviewData data, Theme& theme, QWidget* parent = nullptr);
    [[nodiscard]] TokenView* tokens() const { return m_tokens; }

protected:
    void changeEvent(QEvent* event) override;

private:
    [[nodiscard]] QString factsText() const;
    [[nodiscard]] QString countsText() const;
    [[nodiscard]] QString warningText() const;

    PreviewData m_data;
    Texts m_texts;
    TokenView* m_tokens;
};

class PreviewRowWidget : public QWidget {
    Q_OBJECT
public:
    PreviewRowWidget(RecipeDocument& document, QString engineProgram, Theme& theme, QWidget* parent = nullptr);
    /// The window shown last; null when it was closed.
    [[nodiscard]] BatchPreview* shown() const { return m_shown; }

Q_SIGNALS:
    void fieldRequested(const QString& key); // an error is at this field

protected:
    void changeEvent(QEvent* event) override;

private:
    void start();
    void showBatch(const QByteArray& answer);
    void showError(const Error& error);
    void refresh();

    RecipeDocument& m_document;
    Theme& m_theme;
    Texts m_texts;
    EngineJob m_job;
    std::unique_ptr<QTemporaryDir> m_folder; // the recipe as it is now, for the engine
    QPushButton* m_start; // while it works, the same button cancels: the keyboard stays where it is
    QProgressBar* m_busy;
    QLabel* m_status;
    QLabel* m_problem;
    QPushButton* m_showField;
    QTimer* m_clock;
    QString m_field;
    QPointer<BatchPreview> m_shown;
};

} // namespace celloom::ui
