#include "ui/common/messages.h"

#include "models/catalog/catalog.h"
#include "models/library/standard.h"
#include "models/recipe/recipe.h"
#include "ui/common/format.h"

#include <QCoreApplication>
#include <QFile>
#include <QStringList>

#include <algorithm>
#include <numeric>

namespace celloom::ui {

namespace {

constexpr char kContext[] = "celloom::messages";
constexpr qsizetype kLongest = 4000; // characters of a text that is looked at
constexpr char16_t kFullWidth = 0x2e80; // Chinese characters and their punctuation begin here
constexpr int kDeepest = 4;          // messages within messages
constexpr qsizetype kMostSentences = 12;
constexpr QChar kCut(0x2026); // "…", where a list of names was cut

bool endsSentence(const QString& text, qsizetype at) {
    const QChar mark = text.at(at);
    return (mark == QLatin1Char('.') || mark == QLatin1Char('?') || mark == QLatin1Char('!')) && at + 2 < text.size() && text.at(at + 1) == QLatin1Char(' ') &&
           text.at(at + 2).isUpper();
}

/// Where sentences begin, and the end.
std::vector<qsizetype> bordersOf(const QString& text) {
    std::vector<qsizetype> out{0};
    for (qsizetype i = 0; i < text.size(); ++i)
        if (endsSentence(text, i)) out.push_back(i + 2);
    out.push_back(text.size());
    return out;
}

/// Names and numbers are no sentences: a part that holds the end of one was taken too wide; so was one of several words by a template
/// that says little itself ("from {0}").
bool isOnePart(const QString& part, qsizetype weight) {
    constexpr qsizetype kTelling = 12;
    int words = 1;
    bool isQuoted = false;
    for (qsizetype i = 0; i < part.size(); ++i) {
        if (part.at(i) == QLatin1Char('"')) isQuoted = !isQuoted;
        if (endsSentence(part, i)) return false;
        if (part.at(i) == kCut) break;
        if (!isQuoted && i > 0 && part.at(i) == QLatin1Char(' ') && part.at(i - 1).isLower()) ++words;
    }
    return weight >= kTelling || words < 2;
}

/// A part in quotes is taken whole, whatever it holds.
qsizetype behindQuote(const QString& text, qsizetype at) {
    const auto close = at < text.size() && text.at(at) == QLatin1Char('"') ? text.indexOf(QLatin1Char('"'), at + 1) : -1;
    return close < 0 ? at : close + 1;
}

/// Up to the first space that is followed by more; empty where the text's first word may go on in a place.
QString firstWord(const QString& literal) {
    const auto space = literal.indexOf(QLatin1Char(' '));
    return space > 0 ? literal.left(space) : QString();
}

} // namespace

QString said(const std::string& text) {
    return QCoreApplication::translate(kContext, text.c_str());
}

QString said(const QString& text) {
    return said(toUtf8(text));
}

QString said(const Error& error) {
    return followedBy(said(error.message), said(error.hint));
}

QString followedBy(const QString& text, const QString& next) {
    const bool isWide = !text.isEmpty() && text.back().unicode() >= kFullWidth; // its stop has the space in it
    return text.isEmpty() || next.isEmpty() || isWide ? text + next : text + QLatin1Char(' ') + next;
}

Result<MessageBook::Template> MessageBook::compile(const QString& english, const QString& translated) {
    const auto part = [](const QString& text, auto&& placeFound) -> Result<std::vector<QString>> {
        std::vector<QString> out(1);
        for (qsizetype i = 0; i < text.size(); ++i) {
            const auto close = text.at(i) == QLatin1Char('{') ? text.indexOf(QLatin1Char('}'), i) : -1;
            const bool isMessage = close > i + 2 && text.at(close - 1) == QLatin1Char('!');
            bool isNumber = false;
            const int number = close < 0 ? 0 : text.mid(i + 1, close - i - 1 - (isMessage ? 1 : 0)).toInt(&isNumber);
            if (!isNumber) {
                out.back() += text.at(i);
                continue;
            }
            if (!placeFound(number, isMessage)) return fail("has the place {" + std::to_string(number) + "}, which the English text has not, or in another order.");
            out.emplace_back();
            i = close;
        }
        return out;
    };
    Template out;
    int count = 0;
    CELLOOM_TRY(literals, part(english, [&count](int number, bool) { return number == count++; }));
    out.isMessage.resize(static_cast<std::size_t>(count));
    CELLOOM_TRY(around, part(translated, [&](int number, bool isMessage) {
                    if (number < 0 || number >= count) return false;
                    out.places.emplace_back(number, isMessage);
                    if (isMessage) out.isMessage[static_cast<std::size_t>(number)] = true;
                    return true;
                }));
    out.literals = std::move(literals);
    out.translated = std::move(around);
    out.weight = std::accumulate(out.literals.begin(), out.literals.end(), qsizetype{0}, [](qsizetype sum, const QString& one) { return sum + one.size(); });
    return out;
}

Result<MessageBook> MessageBook::read(const QString& text) {
    MessageBook book;
    const QStringList lines = text.split(QLatin1Char('\n'));
    QString english;
    for (qsizetype i = 0; i < lines.size(); ++i) {
        const QString& line = lines[i];
        const std::string place = "line " + std::to_string(i + 1);
        if (line.isEmpty() || (english.isEmpty() && line.startsWith(QLatin1Char('#')))) {
            if (!english.isEmpty()) return fail("the text before has no translation.", {}, place);
            continue;
        }
        if (english.isEmpty()) {
            english = line;
            continue;
        }
        auto form = compile(english, line);
        if (!form) return fail(form.error().message, {}, place);
        if (form->isMessage.empty()) book.m_exact.insert(english, line);
        else book.m_templates.push_back(std::move(*form));
        english.clear();
    }
    if (!english.isEmpty()) return fail("the last text has no translation.");
    std::stable_sort(book.m_templates.begin(), book.m_templates.end(), [](const Template& a, const Template& b) { return a.weight != b.weight ? a.weight > b.weight : a.isMessage.size() < b.isMessage.size(); });
    for (std::size_t i = 0; i < book.m_templates.size(); ++i) {
        const QString word = firstWord(book.m_templates[i].literals.front());
        if (word.isEmpty()) book.m_others.push_back(i);
        else book.m_byWord[word].push_back(i);
    }
    return book;
}

void MessageBook::add(const QString& english, const QString& translated) {
    if (!english.isEmpty() && !translated.isEmpty() && !m_exact.contains(english)) m_exact.insert(english, translated);
}

QString MessageBook::translate(const QString& text, int depth) const {
    if (text.isEmpty() || text.size() > kLongest || depth > kDeepest) return {};
    if (QString out = whole(text, depth); !out.isNull()) return out;
    // "layers.0.norm: The input x has no wire.": the place stays
    if (const auto colon = text.indexOf(QLatin1String(": ")); colon > 0 && !text.left(colon).contains(QLatin1Char(' '))) {
        const QString inner = translate(text.mid(colon + 2), depth + 1);
        if (!inner.isNull()) return text.left(colon) + QString::fromUtf8("：") + inner;
    }
    return sentences(text, depth);
}

/// The text as one message.
QString MessageBook::whole(const QString& text, int depth) const {
    if (depth > kDeepest) return {};
    if (const auto found = m_exact.constFind(text); found != m_exact.constEnd()) return *found;
    const auto match = [&text](const Template& form, std::vector<QString>& parts) {
        if (!text.startsWith(form.literals.front()) || !text.endsWith(form.literals.back())) return false;
        const qsizetype end = text.size() - form.literals.back().size();
        qsizetype at = form.literals.front().size();
        parts.clear();
        for (std::size_t i = 0; i < form.isMessage.size(); ++i) {
            const bool isLast = i + 1 == form.isMessage.size();
            const QString& next = form.literals[i + 1];
            if (!isLast && next.isEmpty()) { // the place beside it: both together, parted in fill()
                parts.emplace_back();
                continue;
            }
            const qsizetype until = isLast ? end : text.indexOf(next, behindQuote(text, at));
            if (until < at || until > end) return false;
            parts.push_back(text.mid(at, until - at));
            if (!form.isMessage[i] && !isOnePart(parts.back(), form.weight)) return false;
            at = until + (isLast ? 0 : next.size());
            for (std::size_t j = i; j > 0 && form.literals[j].isEmpty(); --j) std::swap(parts[j], parts[j - 1]);
        }
        return true;
    };
    std::vector<QString> parts;
    const auto best = [&](const std::vector<std::size_t>& among) {
        for (const std::size_t i : among)
            if (match(m_templates[i], parts)) return i;
        return m_templates.size();
    };
    std::size_t found = m_templates.size();
    const auto space = text.indexOf(QLatin1Char(' '));
    if (const auto bucket = m_byWord.constFind(space < 0 ? text : text.left(space)); bucket != m_byWord.constEnd()) found = best(*bucket);
    if (const std::size_t other = best(m_others); other < found) found = other; // sorted: the smaller index is the heavier
    if (found == m_templates.size() || !match(m_templates[found], parts)) return {};
    return fill(m_templates[found], parts, depth);
}

/// Sentence by sentence, each the longest run that is one message. Null where not one is known.
QString MessageBook::sentences(const QString& text, int depth) const {
    const auto borders = bordersOf(text);
    const auto count = static_cast<qsizetype>(borders.size()) - 1;
    if (count < 2 || count > kMostSentences) return {};
    QString out;
    bool isKnown = false;
    for (std::size_t first = 0; first + 1 < borders.size();) {
        std::size_t last = borders.size() - 1;
        QString one;
        for (; last > first; --last) {
            if (first == 0 && last == borders.size() - 1) continue; // that was tried
            one = whole(text.mid(borders[first], borders[last] - borders[first]).trimmed(), depth);
            if (!one.isNull()) break;
        }
        isKnown = isKnown || !one.isNull();
        if (one.isNull()) last = first + 1;
        if (one.isNull()) one = text.mid(borders[first], borders[last] - borders[first]).trimmed();
        out = followedBy(out, one);
        first = last;
    }
    return isKnown ? out : QString();
}

/// Two places side by side hold a name and what may follow it, a known text: "[2, 3]" and ", where T is 5 already".
void MessageBook::part(const Template& form, std::vector<QString>& parts, int depth) const {
    for (std::size_t i = parts.size(); i-- > 1;) {
        QString& first = parts[i - 1];
        if (!form.literals[i].isEmpty() || !form.isMessage[i]) continue;
        for (qsizetype at = 1; at < first.size() && parts[i].isEmpty(); ++at) {
            if (first.at(at).isLetterOrNumber() || whole(first.mid(at).trimmed(), depth + 1).isNull()) continue;
            parts[i] = first.mid(at);
            first.truncate(at);
        }
    }
}

QString MessageBook::fill(const Template& form, std::vector<QString> parts, int depth) const {
    part(form, parts, depth);
    QString out = form.translated.front();
    for (std::size_t i = 0; i < form.places.size(); ++i) {
        const auto [number, isMessage] = form.places[i];
        const QString& part = parts[static_cast<std::size_t>(number)];
        const QString inner = isMessage ? translate(part.trimmed(), depth + 1) : QString();
        if (const auto cut = inner.isNull() ? part.lastIndexOf(kCut) : -1; cut >= 0) { // "a, b … and 12 more"
            const QString rest = whole(part.mid(cut), depth + 1);
            out += part.left(cut) + (rest.isNull() ? part.mid(cut) : rest);
        } else {
            out += inner.isNull() ? part : inner;
        }
        out += form.translated[i + 1];
    }
    return out;
}

QString MessageTranslator::translate(const char* context, const char* sourceText, const char*, int) const {
    return qstrcmp(context, kContext) == 0 ? m_book.translate(QString::fromUtf8(sourceText)) : QString();
}

MessageBook chineseMessages() {
    QFile file(QStringLiteral(":/i18n/messages_zh_CN.txt"));
    CELLOOM_CHECK(file.open(QIODevice::ReadOnly));
    auto book = MessageBook::read(QString::fromUtf8(file.readAll()));
    CELLOOM_CHECK(book.has_value()); // a test reads the same file
    for (const catalog::CellType& type : catalog::all())
        for (const catalog::ParamDef& def : type.params) book->add(fromUtf8(def.help), fromUtf8(def.helpZh));
    for (const recipe::Field& field : recipe::fields()) book->add(fromUtf8(field.help), fromUtf8(field.helpZh));
    const auto addHelp = [&book](const graph::Document& document, const std::map<std::string, std::string>& helpZh) {
        for (const graph::HyperParameter& hyper : document.main.hyper)
            if (const auto found = helpZh.find(hyper.name); found != helpZh.end()) book->add(fromUtf8(hyper.help), fromUtf8(found->second));
    };
    for (const library::Entry& entry : library::standard()) addHelp(entry.document, entry.helpZh);
    for (const library::Template& one : library::templates()) addHelp(one.document, one.helpZh);
    return std::move(*book);
}

} // namespace celloom::ui
