#include "ui/train/script_editor.h"

#include "ui/common/theme.h"

#include <QHelpEvent>
#include <QMimeData>
#include <QPainter>
#include <QTextBlock>
#include <QToolTip>

#include <algorithm>

namespace celloom::ui {

namespace {

constexpr int kIndent = 4;
constexpr int kNumbersPadding = 8;

enum BlockState { Plain = -1, InDoubleQuotes = 1, InSingleQuotes = 2 }; // a text in three quotes that goes on

const QString kThreeDouble = QStringLiteral("\"\"\""), kThreeSingle = QStringLiteral("'''");

bool isWordOf(const QString& word, const QStringList& list) {
    return std::binary_search(list.begin(), list.end(), word);
}

const QStringList& keywords() {
    static const QStringList list = [] {
        QStringList words{"False", "None", "True", "and", "as", "assert", "break", "class", "continue", "def", "del", "elif", "else", "for", "from", "if", "import",
                          "in", "is", "not", "or", "pass", "raise", "return", "while"};
        words.sort();
        return words;
    }();
    return list;
}

const QStringList& builtins() {
    static const QStringList list = [] {
        QStringList words{"Callback", "Metric", "abs", "bool", "enumerate", "float", "int", "len", "math", "max", "min", "print", "range", "round", "self", "sorted", "str",
                          "sum", "super", "torch", "zip"};
        words.sort();
        return words;
    }();
    return list;
}

QString indentOf(const QString& line) {
    qsizetype end = 0;
    while (end < line.size() && line[end] == QLatin1Char(' ')) ++end;
    return line.left(end);
}

} // namespace

// ---- colours ----

ScriptHighlighter::ScriptHighlighter(QTextDocument* document, Theme& theme) : QSyntaxHighlighter(document), m_theme(theme) {
    connect(&theme, &Theme::changed, this, &QSyntaxHighlighter::rehighlight);
}

/// Colours a text from its opening quotes, or from the line's start where it goes on; returns where it ends.
int ScriptHighlighter::highlightText(const QString& text, int begin) {
    const bool isGoingOn = previousBlockState() > 0 && begin == 0;
    const bool isDouble = isGoingOn ? previousBlockState() == InDoubleQuotes : text[begin] == QLatin1Char('"');
    const QString three = isDouble ? kThreeDouble : kThreeSingle;
    const bool isThree = isGoingOn || text.mid(begin, 3) == three;
    const QString mark = isThree ? three : three.left(1);
    qsizetype end = begin + (isGoingOn ? 0 : mark.size());
    while (end < text.size() && text.mid(end, mark.size()) != mark) end += text[end] == QLatin1Char('\\') ? 2 : 1;
    const bool isClosed = end < text.size();
    end = std::min(end + mark.size(), text.size());
    if (isThree && !isClosed) setCurrentBlockState(isDouble ? InDoubleQuotes : InSingleQuotes);
    setFormat(begin, static_cast<int>(end) - begin, m_theme.color("good"));
    return static_cast<int>(end);
}

void ScriptHighlighter::highlightBlock(const QString& text) {
    setCurrentBlockState(Plain);
    int at = previousBlockState() > 0 ? highlightText(text, 0) : 0;
    while (at < text.size()) {
        const QChar c = text[at];
        if (c == QLatin1Char('#')) {
            setFormat(at, static_cast<int>(text.size()) - at, m_theme.color("muted"));
            return;
        }
        if (c == QLatin1Char('"') || c == QLatin1Char('\'')) {
            at = highlightText(text, at);
            continue;
        }
        if (!c.isLetterOrNumber() && c != QLatin1Char('_')) {
            ++at;
            continue;
        }
        int end = at + 1;
        while (end < text.size() && (text[end].isLetterOrNumber() || text[end] == QLatin1Char('_') || (c.isDigit() && text[end] == QLatin1Char('.')))) ++end;
        const QString word = text.mid(at, end - at);
        if (c.isDigit()) setFormat(at, end - at, m_theme.color("orange"));
        else if (isWordOf(word, keywords())) setFormat(at, end - at, m_theme.color("violet"));
        else if (isWordOf(word, builtins())) setFormat(at, end - at, m_theme.color("blue"));
        at = end;
    }
}

// ---- the editor ----

/// The strip with line numbers, beside the text.
class LineNumbers : public QWidget {
public:
    explicit LineNumbers(ScriptEditor* editor) : QWidget(editor), m_editor(editor) {}
    [[nodiscard]] QSize sizeHint() const override { return {m_editor->numbersWidth(), 0}; }

protected:
    void paintEvent(QPaintEvent* event) override { m_editor->paintNumbers(event); }

private:
    ScriptEditor* m_editor;
};

ScriptEditor::ScriptEditor(Theme& theme, QWidget* parent) : QPlainTextEdit(parent), m_theme(theme), m_numbers(new LineNumbers(this)) {
    setProperty("role", QStringLiteral("mono"));
    setLineWrapMode(NoWrap);
    setTabChangesFocus(false);
    new ScriptHighlighter(document(), theme);
    connect(this, &QPlainTextEdit::blockCountChanged, this, &ScriptEditor::arrangeNumbers);
    connect(this, &QPlainTextEdit::updateRequest, this, [this](const QRect& rect, int dy) {
        if (dy != 0) m_numbers->scroll(0, dy);
        else m_numbers->update(0, rect.y(), m_numbers->width(), rect.height());
    });
    connect(this, &QPlainTextEdit::cursorPositionChanged, this, [this] {
        m_numbers->update();
        refreshMarks();
    });
    connect(&theme, &Theme::changed, this, &ScriptEditor::refreshMarks);
    arrangeNumbers();
}

int ScriptEditor::numbersWidth() const {
    const int digits = std::max(2, static_cast<int>(QString::number(blockCount()).size()));
    return fontMetrics().horizontalAdvance(QLatin1Char('9')) * digits + 2 * kNumbersPadding;
}

void ScriptEditor::arrangeNumbers() {
    if (viewportMargins().left() != numbersWidth()) setViewportMargins(numbersWidth(), 0, 0, 0);
    const QRect inside = contentsRect();
    m_numbers->setGeometry(inside.left(), inside.top(), numbersWidth(), inside.height());
}

void ScriptEditor::resizeEvent(QResizeEvent* event) {
    QPlainTextEdit::resizeEvent(event);
    arrangeNumbers();
}

void ScriptEditor::changeEvent(QEvent* event) {
    QPlainTextEdit::changeEvent(event);
    if (event->type() != QEvent::FontChange && event->type() != QEvent::StyleChange) return;
    setTabStopDistance(kIndent * fontMetrics().horizontalAdvance(QLatin1Char(' ')));
    if (m_numbers) arrangeNumbers();
}

void ScriptEditor::paintNumbers(QPaintEvent* event) {
    QPainter painter(m_numbers);
    painter.fillRect(event->rect(), m_theme.color("sunken"));
    painter.setFont(font());
    const int current = textCursor().blockNumber();
    QTextBlock block = firstVisibleBlock();
    while (block.isValid()) {
        const QRectF area = blockBoundingGeometry(block).translated(contentOffset());
        if (area.top() > event->rect().bottom()) break;
        const int line = block.blockNumber() + 1;
        const bool isWrong = std::any_of(m_marks.begin(), m_marks.end(), [line](const Mark& mark) { return mark.line == line && mark.isError; });
        painter.setPen(m_theme.color(isWrong ? "bad" : block.blockNumber() == current ? "text" : "faint"));
        painter.drawText(QRectF(0, area.top(), m_numbers->width() - kNumbersPadding, fontMetrics().height()), Qt::AlignRight | Qt::AlignVCenter, QString::number(line));
        block = block.next();
    }
}

// ---- marks ----

void ScriptEditor::setMarks(std::vector<Mark> marks) {
    m_marks = std::move(marks);
    refreshMarks();
    m_numbers->update();
}

void ScriptEditor::setLit(std::vector<std::pair<int, int>> lines) {
    m_lit = std::move(lines);
    refreshMarks();
}

std::optional<QTextCursor> ScriptEditor::cursorOf(const Mark& mark) const {
    const QTextBlock block = document()->findBlockByNumber(mark.line - 1);
    if (mark.line < 1 || !block.isValid()) return {};
    const int size = static_cast<int>(block.text().size());
    const int begin = std::clamp(mark.column - 1, 0, size), end = std::clamp(begin + mark.length, begin, size);
    QTextCursor cursor(block);
    // at the end of a line the last sign is marked, so that there is something to see
    cursor.setPosition(block.position() + (begin == end && begin > 0 ? begin - 1 : begin));
    cursor.setPosition(block.position() + end, QTextCursor::KeepAnchor);
    return cursor;
}

QString ScriptEditor::markedText(const Mark& mark) const {
    const auto cursor = cursorOf(mark);
    return cursor ? cursor->selectedText() : QString();
}

void ScriptEditor::refreshMarks() {
    QList<QTextEdit::ExtraSelection> all;
    for (const auto& [first, last] : m_lit) {
        for (QTextBlock block = document()->findBlockByNumber(first - 1); block.isValid() && block.blockNumber() < last; block = block.next()) {
            QTextEdit::ExtraSelection line;
            line.format.setBackground(m_theme.color("accentSoft"));
            line.format.setProperty(QTextFormat::FullWidthSelection, true);
            line.cursor = QTextCursor(block);
            all.append(line);
        }
    }
    if (hasFocus() && !isReadOnly()) {
        QTextEdit::ExtraSelection line;
        line.format.setBackground(m_theme.color("hover"));
        line.format.setProperty(QTextFormat::FullWidthSelection, true);
        line.cursor = textCursor();
        line.cursor.clearSelection();
        all.append(line);
    }
    for (const Mark& mark : m_marks) {
        const auto cursor = cursorOf(mark);
        if (!cursor) continue;
        QTextEdit::ExtraSelection wave;
        wave.cursor = *cursor;
        wave.format.setUnderlineStyle(QTextCharFormat::WaveUnderline);
        wave.format.setUnderlineColor(m_theme.color(mark.isError ? "bad" : "warning"));
        all.append(wave);
    }
    setExtraSelections(all);
}

void ScriptEditor::goTo(int line, int column) {
    if (const auto cursor = cursorOf({line, column, 0, {}, true})) {
        QTextCursor place = *cursor;
        place.clearSelection();
        setTextCursor(place);
        centerCursor();
    }
    setFocus(Qt::OtherFocusReason);
}

bool ScriptEditor::viewportEvent(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const int position = cursorForPosition(help->pos()).position();
        for (const Mark& mark : m_marks) {
            const auto cursor = cursorOf(mark);
            if (!cursor || position < cursor->selectionStart() || position > cursor->selectionEnd()) continue;
            QToolTip::showText(help->globalPos(), mark.text, this);
            return true;
        }
    }
    if (event->type() == QEvent::FocusIn || event->type() == QEvent::FocusOut) refreshMarks();
    return QPlainTextEdit::viewportEvent(event);
}

// ---- keys ----

void ScriptEditor::keyPressEvent(QKeyEvent* event) {
    const bool isPlain = event->modifiers() == Qt::NoModifier;
    if (isReadOnly()) return QPlainTextEdit::keyPressEvent(event);
    if (event->key() == Qt::Key_Escape && isPlain) {
        QWidget::focusNextPrevChild(true); // QPlainTextEdit's own would keep it
        return;
    }
    if (event->key() == Qt::Key_Tab && isPlain) return indentSelection(true);
    if (event->key() == Qt::Key_Backtab) return indentSelection(false);
    if ((event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) && isPlain) return breakLine();
    if (event->key() == Qt::Key_Backspace && isPlain && eraseIndent()) return;
    QPlainTextEdit::keyPressEvent(event);
}

/// The selected lines, or spaces up to the next level where nothing is selected.
void ScriptEditor::indentSelection(bool isIn) {
    QTextCursor cursor = textCursor();
    if (isIn && !cursor.hasSelection()) {
        cursor.insertText(QString(kIndent - cursor.positionInBlock() % kIndent, QLatin1Char(' ')));
        return;
    }
    const int last = document()->findBlock(cursor.selectionEnd()).blockNumber();
    QTextBlock block = document()->findBlock(cursor.selectionStart());
    cursor.beginEditBlock();
    for (; block.isValid() && block.blockNumber() <= last; block = block.next()) {
        QTextCursor line(block);
        if (isIn) {
            line.insertText(QString(kIndent, QLatin1Char(' ')));
        } else {
            line.setPosition(block.position() + static_cast<int>(std::min<qsizetype>(kIndent, indentOf(block.text()).size())), QTextCursor::KeepAnchor);
            line.removeSelectedText();
        }
    }
    cursor.endEditBlock();
}

/// The new line is indented as the last one, one level deeper after a colon.
void ScriptEditor::breakLine() {
    QTextCursor cursor = textCursor();
    const QString before = cursor.block().text().left(cursor.positionInBlock());
    QString indent = indentOf(before);
    if (before.trimmed().endsWith(QLatin1Char(':'))) indent += QString(kIndent, QLatin1Char(' '));
    cursor.insertText(QLatin1Char('\n') + indent);
    setTextCursor(cursor);
    ensureCursorVisible();
}

bool ScriptEditor::eraseIndent() {
    QTextCursor cursor = textCursor();
    const int column = cursor.positionInBlock();
    if (cursor.hasSelection() || column == 0 || !cursor.block().text().left(column).trimmed().isEmpty()) return false;
    cursor.movePosition(QTextCursor::Left, QTextCursor::KeepAnchor, (column - 1) % kIndent + 1);
    cursor.removeSelectedText();
    return true;
}

void ScriptEditor::insertFromMimeData(const QMimeData* source) {
    if (!source->hasText()) return;
    QString text = source->text();
    text.replace(QLatin1String("\r\n"), QLatin1String("\n"));
    text.replace(QLatin1Char('\t'), QString(kIndent, QLatin1Char(' ')));
    insertPlainText(text);
}

} // namespace celloom::ui
