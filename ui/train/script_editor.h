// Where callbacks and metrics are typed: plain text with line numbers, colours for Python's words, spaces for tabs, and marks where something is
// wrong. Tab indents; Escape hands the keyboard on, so that nobody is caught in here.
#pragma once

#include <QPlainTextEdit>
#include <QSyntaxHighlighter>

#include <optional>
#include <utility>
#include <vector>

namespace celloom::ui {

class Theme;

/// Colours Python's words, numbers, texts and comments.
class ScriptHighlighter : public QSyntaxHighlighter {
    Q_OBJECT
public:
    ScriptHighlighter(QTextDocument* document, Theme& theme);

protected:
    void highlightBlock(const QString& text) override;

private:
    int highlightText(const QString& text, int begin);

    Theme& m_theme;
};

class ScriptEditor : public QPlainTextEdit {
    Q_OBJECT
public:
    /// A place that is marked; line and column count from 1, in characters. Line 0: the source as a whole, no mark.
    struct Mark {
        int line = 0, column = 0, length = 1;
        QString text;
        bool isError = true; // otherwise a warning
    };

    explicit ScriptEditor(Theme& theme, QWidget* parent = nullptr);
    void setMarks(std::vector<Mark> marks);
    [[nodiscard]] const std::vector<Mark>& marks() const { return m_marks; }
    /// What is underlined for a mark, in the document; empty where it has no place.
    [[nodiscard]] QString markedText(const Mark& mark) const;
    /// Lines, from the first to the last, that stand out: those of what is chosen elsewhere. Line numbers count from 1.
    void setLit(std::vector<std::pair<int, int>> lines);
    [[nodiscard]] const std::vector<std::pair<int, int>>& lit() const { return m_lit; }
    /// Puts the cursor there and takes the keyboard.
    void goTo(int line, int column);

protected:
    void keyPressEvent(QKeyEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void changeEvent(QEvent* event) override;
    bool viewportEvent(QEvent* event) override;
    void insertFromMimeData(const QMimeData* source) override;

private:
    friend class LineNumbers;
    [[nodiscard]] int numbersWidth() const;
    void paintNumbers(QPaintEvent* event);
    void arrangeNumbers();
    void refreshMarks();
    void indentSelection(bool isIn);
    void breakLine();
    bool eraseIndent();
    [[nodiscard]] std::optional<QTextCursor> cursorOf(const Mark& mark) const;

    Theme& m_theme;
    QWidget* m_numbers;
    std::vector<Mark> m_marks;
    std::vector<std::pair<int, int>> m_lit;
};

} // namespace celloom::ui
