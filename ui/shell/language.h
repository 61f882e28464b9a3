// The window's language, switched while it runs.
#pragma once

#include "ui/common/messages.h"

#include <QObject>
#include <QString>
#include <QTranslator>

namespace celloom::ui {

class Language : public QObject {
    Q_OBJECT
public:
    explicit Language(QObject* parent = nullptr) : QObject(parent) {}

    /// "en" or "zh_CN"; empty follows the system. Every widget gets QEvent::LanguageChange.
    void choose(const QString& code);
    /// What is shown now: "en" or "zh_CN".
    [[nodiscard]] QString shown() const { return m_shown; }
    [[nodiscard]] bool isChinese() const { return m_shown == QLatin1String("zh_CN"); }

Q_SIGNALS:
    void changed();

private:
    QTranslator m_translator, m_qtTranslator;
    MessageTranslator m_messages; // of models and engine
    QString m_shown = QStringLiteral("en");
};

} // namespace celloom::ui
