#include "ui/shell/language.h"

#include "models/base/result.h"

#include <QCoreApplication>
#include <QLibraryInfo>
#include <QLocale>

namespace celloom::ui {

void Language::choose(const QString& code) {
    const bool systemIsChinese = QLocale::system().language() == QLocale::Chinese;
    const QString next = code.isEmpty() ? (systemIsChinese ? QStringLiteral("zh_CN") : QStringLiteral("en")) : code;
    if (next == m_shown && !m_translator.isEmpty()) return;
    m_shown = next;
    if (isChinese()) {
        CELLOOM_CHECK(m_translator.load(QStringLiteral(":/i18n/celloom_zh_CN.qm")));
        QCoreApplication::installTranslator(&m_translator);
        // Qt's own dialogs, where the distribution has their translation; without it they stay English.
        if (m_qtTranslator.load(QStringLiteral("qtbase_zh_CN"), QLibraryInfo::path(QLibraryInfo::TranslationsPath)))
            QCoreApplication::installTranslator(&m_qtTranslator);
        if (m_messages.isEmpty()) m_messages.setBook(chineseMessages());
        QCoreApplication::installTranslator(&m_messages);
    } else {
        QCoreApplication::removeTranslator(&m_qtTranslator);
        QCoreApplication::removeTranslator(&m_messages);
        CELLOOM_CHECK(m_translator.load(QStringLiteral(":/i18n/celloom_en.qm"))); // plurals
        QCoreApplication::installTranslator(&m_translator);
    }
    QLocale::setDefault(QLocale(isChinese() ? QLocale::Chinese : QLocale::English));
    Q_EMIT changed();
}

} // namespace celloom::ui
