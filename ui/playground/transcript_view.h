// What one column said: questions and answers as text that grows. The tokens behind the text under the pointer, or under the caret, and
// what else the model considered, are shown beside it.
#pragma once

#include "ui/playground/playground.h"

#include <QTextEdit>

#include <functional>

namespace celloom::ui {

class Theme;

class TranscriptView : public QTextEdit {
    Q_OBJECT
public:
    TranscriptView(const Playground& playground, QString column, Theme& theme, QWidget* parent = nullptr);

    /// Writes everything anew: turns, theme or language have changed.
    void rebuild();
    /// Adds what the last answer has more.
    void grow();
    /// The last answer has ended: says why, where that is not plain.
    void finish();
    /// Text is tinted by how sure the model was of it.
    void setColoured(bool isColoured);

protected:
    void mouseMoveEvent(QMouseEvent* event) override;
    void keyReleaseEvent(QKeyEvent* event) override;

private:
    void addQuestion(const QString& text);
    void addAnswer(int turn, const Answer& answer);
    void addParts(int turn, const Answer& answer, std::size_t from);
    void addEnd(const Answer& answer);
    [[nodiscard]] const Answer* answerOf(int turn) const;
    [[nodiscard]] const AnswerPart* partAt(int position) const;
    [[nodiscard]] QString describe(const AnswerPart& part) const;
    void showTokens(int position, const QPoint& at);
    void atBottom(const std::function<void()>& change);

    const Playground& m_playground;
    const QString m_column;
    Theme& m_theme;
    std::size_t m_shownParts = 0; // of the last answer
    bool m_isColoured = false;
};

} // namespace celloom::ui
