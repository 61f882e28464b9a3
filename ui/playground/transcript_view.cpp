#include "ui/playground/transcript_view.h"

#include "ui/common/format.h"
#include "ui/common/theme.h"

#include <QAbstractTextDocumentLayout>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QScrollBar>
#include <QTextBlock>
#include <QTextFrame>
#include <QToolTip>

#include <algorithm>
#include <cmath>

namespace celloom::ui {

namespace {

constexpr int kTurn = QTextFormat::UserProperty, kPart = QTextFormat::UserProperty + 1; // of the text's format: whose tokens it is
constexpr int kBarWidth = 60;
constexpr double kUnlikely = 0.02, kStrongestTint = 0.36;
constexpr std::size_t kDescribedTokens = 3; // of a piece of text: a character in bytes has up to four

/// Spaces and line ends are to be seen.
QString visible(QString piece) {
    piece.replace(QChar(0x2581), QChar(0x2423)).replace(QLatin1Char(' '), QChar(0x2423)).replace(QLatin1Char('\n'), QChar(0x21b5));
    return piece.toHtmlEscaped();
}

QString percent(double probability) {
    return probability < 0 ? QString() : QString::number(100 * probability, 'f', probability < 0.0995 ? 2 : 1) + QStringLiteral(" %");
}

} // namespace

TranscriptView::TranscriptView(const Playground& playground, QString column, Theme& theme, QWidget* parent)
    : QTextEdit(parent), m_playground(playground), m_column(std::move(column)), m_theme(theme) {
    setReadOnly(true);
    setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    setFrameShape(QFrame::NoFrame);
    setProperty("role", QStringLiteral("transcript"));
    viewport()->setMouseTracking(true);
    document()->setDocumentMargin(2);
    rebuild();
}

const Answer* TranscriptView::answerOf(int turn) const {
    const auto& turns = m_playground.turns();
    if (turn < 0 || turn >= static_cast<int>(turns.size())) return nullptr;
    const auto& answers = turns[static_cast<std::size_t>(turn)].answers;
    const auto found = answers.find(m_column);
    return found == answers.end() ? nullptr : &found->second;
}

void TranscriptView::atBottom(const std::function<void()>& change) {
    QScrollBar* bar = verticalScrollBar();
    const bool follows = bar->value() >= bar->maximum() - 4; // who has scrolled up is reading
    change();
    if (follows) bar->setValue(bar->maximum());
}

void TranscriptView::rebuild() {
    clear();
    m_shownParts = 0;
    const auto& turns = m_playground.turns();
    for (int turn = 0; turn < static_cast<int>(turns.size()); ++turn) {
        const Answer* answer = answerOf(turn);
        if (!answer) continue;
        addQuestion(turns[static_cast<std::size_t>(turn)].question);
        addAnswer(turn, *answer);
    }
    verticalScrollBar()->setValue(verticalScrollBar()->maximum());
}

void TranscriptView::addQuestion(const QString& text) {
    QTextCursor cursor(document());
    cursor.movePosition(QTextCursor::End);
    QTextFrameFormat frame;
    frame.setBackground(m_theme.color("accentSoft"));
    frame.setPadding(6);
    frame.setTopMargin(document()->isEmpty() ? 0 : 10);
    frame.setBottomMargin(4);
    frame.setBorder(0);
    if (cursor.position() == 0) { // a frame cannot be the first thing: the line before it takes no room
        QTextBlockFormat none;
        none.setLineHeight(1, QTextBlockFormat::FixedHeight);
        cursor.setBlockFormat(none);
    }
    cursor.insertFrame(frame);
    QTextCharFormat plain;
    plain.setForeground(m_theme.color("text"));
    cursor.insertText(text, plain);
}

void TranscriptView::addAnswer(int turn, const Answer& answer) {
    m_shownParts = 0;
    addParts(turn, answer, 0);
    if (answer.isOver()) addEnd(answer);
}

void TranscriptView::addParts(int turn, const Answer& answer, std::size_t from) {
    QTextCursor cursor(document());
    cursor.movePosition(QTextCursor::End);
    cursor.beginEditBlock();
    for (std::size_t i = from; i < answer.parts.size(); ++i) {
        const AnswerPart& part = answer.parts[i];
        QTextCharFormat format;
        format.setForeground(m_theme.color("text"));
        format.setProperty(kTurn, turn);
        format.setProperty(kPart, static_cast<int>(i));
        double probability = 1; // of all its tokens
        for (const AnswerPart::Token& token : part.tokens)
            if (token.chosen.probability >= 0) probability *= token.chosen.probability;
        if (m_isColoured) {
            QColor tint = m_theme.color(probability < kUnlikely ? "bad" : "orange");
            tint.setAlphaF(static_cast<float>(kStrongestTint * (1 - std::sqrt(std::clamp(probability, 0.0, 1.0)))));
            format.setBackground(tint);
        }
        cursor.insertText(part.text, format);
    }
    cursor.endEditBlock();
    m_shownParts = answer.parts.size();
}

void TranscriptView::addEnd(const Answer& answer) {
    QString text;
    if (answer.state == Answer::State::Failed)
        text = answer.error;
    else if (answer.state == Answer::State::Stopped)
        text = tr("stopped");
    else if (answer.reason == QLatin1String("length"))
        text = tr("as many tokens as were asked for");
    else if (answer.reason == QLatin1String("context"))
        text = tr("the model's context is full");
    else if (answer.count == 0)
        text = tr("the model ended the text at once");
    if (text.isEmpty()) return;
    QTextCursor cursor(document());
    cursor.movePosition(QTextCursor::End);
    QTextCharFormat format;
    format.setForeground(m_theme.color(answer.state == Answer::State::Failed ? "bad" : "muted"));
    format.setFontPointSize(8.5);
    if (answer.count > 0) cursor.insertText(QStringLiteral("\n"), format);
    cursor.insertText(text, format);
}

void TranscriptView::grow() {
    const int last = static_cast<int>(m_playground.turns().size()) - 1;
    const Answer* answer = answerOf(last);
    if (!answer || answer->parts.size() <= m_shownParts) return;
    atBottom([&] { addParts(last, *answer, m_shownParts); });
}

void TranscriptView::finish() {
    grow();
    const Answer* answer = answerOf(static_cast<int>(m_playground.turns().size()) - 1);
    if (answer) atBottom([&] { addEnd(*answer); });
}

void TranscriptView::setColoured(bool isColoured) {
    if (std::exchange(m_isColoured, isColoured) == isColoured) return;
    const int kept = verticalScrollBar()->value();
    rebuild();
    verticalScrollBar()->setValue(kept);
}

// --- tokens

/// What the character at this position belongs to.
const AnswerPart* TranscriptView::partAt(int position) const {
    if (position < 0 || position + 1 >= document()->characterCount()) return nullptr;
    QTextCursor cursor(document());
    cursor.setPosition(position + 1); // a cursor's format is that of the character before it
    const QTextCharFormat format = cursor.charFormat();
    if (!format.hasProperty(kPart)) return nullptr;
    const Answer* answer = answerOf(format.intProperty(kTurn));
    const auto part = static_cast<std::size_t>(format.intProperty(kPart));
    return answer && part < answer->parts.size() ? &answer->parts[part] : nullptr;
}

QString TranscriptView::describe(const AnswerPart& part) const {
    const QString accent = m_theme.color("accent").name(), muted = m_theme.color("muted").name();
    const auto row = [&](const ScoredPiece& piece, bool isChosen) {
        const int bar = piece.probability < 0 ? 0 : std::max(1, static_cast<int>(std::lround(kBarWidth * piece.probability)));
        const QString name = visible(piece.piece);
        return QStringLiteral("<tr><td style=\"padding-right:10px\">%1</td><td align=\"right\" style=\"padding-right:8px\">%2</td>"
                              "<td><table cellspacing=\"0\" cellpadding=\"0\"><tr><td width=\"%3\" bgcolor=\"%4\">&nbsp;</td></tr></table></td></tr>")
            .arg(isChosen ? QStringLiteral("<b>%1</b>").arg(name) : name, percent(piece.probability))
            .arg(bar)
            .arg(isChosen ? accent : muted);
    };
    QString html;
    for (std::size_t i = 0; i < std::min(part.tokens.size(), kDescribedTokens); ++i) {
        const AnswerPart::Token& token = part.tokens[i];
        if (token.chosen.probability < 0) continue; // nothing is known but the text itself
        html += QStringLiteral("<table cellspacing=\"1\">");
        const auto same = [&](const ScoredPiece& other) { return other.piece == token.chosen.piece; };
        if (std::none_of(token.alternatives.begin(), token.alternatives.end(), same)) html += row(token.chosen, true);
        for (const ScoredPiece& other : token.alternatives) html += row(other, same(other));
        html += QStringLiteral("</table>");
    }
    return html;
}

void TranscriptView::showTokens(int position, const QPoint& at) {
    const AnswerPart* part = partAt(position);
    const QString text = part ? describe(*part) : QString();
    if (text.isEmpty())
        QToolTip::hideText();
    else
        QToolTip::showText(at, text, viewport());
}

void TranscriptView::mouseMoveEvent(QMouseEvent* event) {
    QTextEdit::mouseMoveEvent(event);
    if (event->buttons() != Qt::NoButton) return; // a selection is being made
    const QPointF inDocument = event->position() + QPointF(horizontalScrollBar()->value(), verticalScrollBar()->value());
    int position = document()->documentLayout()->hitTest(inDocument, Qt::ExactHit); // the border between characters that is nearest
    QTextCursor border(document());
    border.setPosition(std::max(0, position));
    if (position > 0 && event->position().x() < cursorRect(border).left()) --position;
    showTokens(position, event->globalPosition().toPoint());
}

/// The arrow keys move the caret: what is under it is told as under the pointer.
void TranscriptView::keyReleaseEvent(QKeyEvent* event) {
    QTextEdit::keyReleaseEvent(event);
    if (event->key() < Qt::Key_Home || event->key() > Qt::Key_PageDown) return;
    showTokens(textCursor().position(), viewport()->mapToGlobal(cursorRect().bottomLeft()));
}

} // namespace celloom::ui
