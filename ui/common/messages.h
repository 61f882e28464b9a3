// What models and engine say, in the window's language. They know no language but English: their texts are translated here, at the window's border,
// by templates with places for names and numbers ("The input {0} has no wire."). A text that no template knows stays as it is.
#pragma once

#include "models/base/result.h"

#include <QHash>
#include <QString>
#include <QTranslator>

#include <string>
#include <utility>
#include <vector>

namespace celloom::ui {

/// A text of models or engine as the window shows it. Everything of theirs that reaches a widget goes through here (Format::error() does).
QString said(const std::string& text);
QString said(const QString& text);
/// Message and hint, without the place.
QString said(const Error& error);

/// One sentence behind another, with a space between them where the language has one.
QString followedBy(const QString& text, const QString& next);

/// Templates of one language, compiled once. Bounded: long texts and deep nesting stay untranslated.
class MessageBook {
public:
    /// Blocks of two lines, English and translation, with an empty line or lines that begin with # between them.
    /// In the translation {0} is a part as it is, {0!} a part that is a message itself. Error: the line that breaks this.
    static Result<MessageBook> read(const QString& text);
    /// A text without places; longer than a template, it wins over it.
    void add(const QString& english, const QString& translated);

    /// Null where no template fits.
    [[nodiscard]] QString translate(const QString& text) const { return translate(text, 0); }
    [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(m_exact.size()) + m_templates.size(); }

private:
    struct Template {
        std::vector<QString> literals;            // what stands before, between and after the places
        std::vector<std::pair<int, bool>> places; // in the translation: which part, and whether it is a message itself
        std::vector<QString> translated;          // what stands around these
        std::vector<bool> isMessage;              // for each part
        qsizetype weight = 0;                     // literal characters: the most telling template wins
    };

    static Result<Template> compile(const QString& english, const QString& translated);
    [[nodiscard]] QString translate(const QString& text, int depth) const;
    [[nodiscard]] QString whole(const QString& text, int depth) const;
    [[nodiscard]] QString sentences(const QString& text, int depth) const;
    [[nodiscard]] QString fill(const Template& form, std::vector<QString> parts, int depth) const;
    void part(const Template& form, std::vector<QString>& parts, int depth) const;

    QHash<QString, QString> m_exact;
    std::vector<Template> m_templates;                 // heaviest first
    QHash<QString, std::vector<std::size_t>> m_byWord; // those that begin with a whole word
    std::vector<std::size_t> m_others;
};

/// The book as one of Qt's translators: installed with the window's language, asked by said().
class MessageTranslator : public QTranslator {
    Q_OBJECT
public:
    using QTranslator::QTranslator;

    void setBook(MessageBook book) { m_book = std::move(book); }
    [[nodiscard]] bool isEmpty() const override { return m_book.size() == 0; }
    QString translate(const char* context, const char* sourceText, const char* disambiguation = nullptr, int n = -1) const override;

private:
    MessageBook m_book;
};

/// What ships for Chinese, with the help texts of catalogue, recipe, library and templates, which say both languages themselves and which problems repeat as hints.
MessageBook chineseMessages();

} // namespace celloom::ui
