// Colours that can be read, icons that exist, and a translation without gaps.
#include "ui/common/format.h"
#include "ui/common/theme.h"
#include "ui/shell/language.h"

#include <QApplication>
#include <QDir>
#include <QFile>
#include <QTest>
#include <QXmlStreamReader>

#include <limits>

using namespace celloom;
using namespace celloom::ui;

class TestLook : public QObject {
    Q_OBJECT
    Theme m_theme{*qApp};

private Q_SLOTS:
    // WCAG 2.1, 1.4.3: 4.5 for text; 1.4.11: 3 for what is no text. Disabled things are excepted.
    void everyTextCanBeReadInBothThemes_data() {
        QTest::addColumn<QString>("front");
        QTest::addColumn<QString>("back");
        QTest::addColumn<double>("least");
        for (const char* back : {"window", "surface", "sunken", "field", "hover", "accentSoft"}) {
            for (const char* front : {"text", "muted"})
                QTest::addRow("%s on %s", front, back) << QString::fromLatin1(front) << QString::fromLatin1(back) << 4.5;
        }
        for (const char* front : {"accent", "good", "warning", "bad"})
            QTest::addRow("%s on surface", front) << QString::fromLatin1(front) << QStringLiteral("surface") << 4.5;
        QTest::addRow("accent on accentSoft") << QStringLiteral("accent") << QStringLiteral("accentSoft") << 4.5;
        QTest::addRow("text on badSoft") << QStringLiteral("text") << QStringLiteral("badSoft") << 4.5;
        QTest::addRow("text on warningSoft") << QStringLiteral("text") << QStringLiteral("warningSoft") << 4.5;
        QTest::addRow("onPrimary on primary") << QStringLiteral("onPrimary") << QStringLiteral("primary") << 4.5;
        for (const char* front : {"blue", "orange", "teal", "violet", "brown", "pink", "slate"})
            QTest::addRow("%s on surface", front) << QString::fromLatin1(front) << QStringLiteral("surface") << 3.0;
    }
    void everyTextCanBeReadInBothThemes() {
        QFETCH(QString, front);
        QFETCH(QString, back);
        QFETCH(double, least);
        for (ThemeMode mode : {ThemeMode::Light, ThemeMode::Dark}) {
            m_theme.setMode(mode);
            const double ratio = contrastRatio(m_theme.color(front.toLatin1().constData()), m_theme.color(back.toLatin1().constData()));
            QVERIFY2(
                ratio >= least,
                qPrintable(
                    QStringLiteral("%1 theme: %2").arg(m_theme.isDark() ? QStringLiteral("dark") : QStringLiteral("light")).arg(ratio)));
        }
    }

    void theStylesheetNamesOnlyColoursThatExist() {
        for (ThemeMode mode : {ThemeMode::Light, ThemeMode::Dark}) {
            m_theme.setMode(mode);
            QVERIFY(!qApp->styleSheet().contains(QLatin1Char('@')));
        }
    }

    void everyIconDrawsInTheThemesColour() {
        const QStringList names = QDir(QStringLiteral(":/icons")).entryList();
        QVERIFY(!names.isEmpty());
        for (const QString& name : names) {
            const QImage image = m_theme.icon(name.chopped(4), "bad").pixmap(32, 32).toImage();
            bool isDrawn = false;
            for (int y = 0; y < image.height() && !isDrawn; ++y) {
                for (int x = 0; x < image.width() && !isDrawn; ++x) isDrawn = image.pixelColor(x, y).alpha() > 128;
            }
            QVERIFY2(isDrawn, qPrintable(name));
        }
    }

    void theChineseTranslationHasNoGaps() {
        QFile file(QStringLiteral(CELLOOM_SOURCE "/resources/translations/celloom_zh_CN.ts"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        QXmlStreamReader reader(&file);
        QString source;
        int count = 0;
        static const QRegularExpression place(QStringLiteral("%(?:L?\\d+|n)"));
        const auto placesOf = [](const QString& text) {
            QStringList places;
            for (auto match = place.globalMatch(text); match.hasNext();) places.append(match.next().captured());
            places.sort();
            return places;
        };
        while (!reader.atEnd()) {
            reader.readNext();
            if (!reader.isStartElement()) continue;
            if (reader.name() == QLatin1String("source")) source = reader.readElementText();
            if (reader.name() != QLatin1String("translation")) continue;
            QVERIFY2(!reader.attributes().hasAttribute(QStringLiteral("type")), qPrintable(source)); // unfinished or vanished
            const QString text = reader.readElementText(QXmlStreamReader::IncludeChildElements).trimmed(); // of a plural: its one form
            QVERIFY2(!text.isEmpty(), qPrintable(source));
            QCOMPARE(placesOf(text), placesOf(source));
            ++count;
        }
        QVERIFY(!reader.hasError());
        QVERIFY(count > 200);
    }

    void theLanguageChangesWhileTheProgramRuns() {
        Language language;
        language.choose(QStringLiteral("zh_CN"));
        QCOMPARE(Format::runState(store::RunState::Running), QStringLiteral("运行中"));
        language.choose(QStringLiteral("en"));
        QCOMPARE(Format::runState(store::RunState::Running), QStringLiteral("Running"));
    }

    void numbersReadAsPeopleWriteThem() {
        const QChar space(0x00a0);
        QCOMPARE(Format::count(103168), QStringLiteral("103") + space + QStringLiteral("168"));
        QCOMPARE(Format::count(-1234), QStringLiteral("-1") + space + QStringLiteral("234"));
        QCOMPARE(Format::count(999), QStringLiteral("999"));
        QCOMPARE(Format::rate(3e-4), QStringLiteral("3.0e-4"));
        QCOMPARE(Format::rate(1.25e-5), QStringLiteral("1.25e-5"));
        QCOMPARE(Format::clock(1120), QStringLiteral("18:40"));
        QCOMPARE(Format::clock(3727), QStringLiteral("1:02:07"));
        QCOMPARE(Format::bytes(6.1 * 1024 * 1024 * 1024), QStringLiteral("6.10") + space + QStringLiteral("GiB"));
        QCOMPARE(Format::number(2.9137), QStringLiteral("2.914"));
        QCOMPARE(Format::number(std::numeric_limits<double>::quiet_NaN()), QStringLiteral("NaN"));
        QCOMPARE(Format::number(std::numeric_limits<double>::infinity()), QStringLiteral("∞"));
        QCOMPARE(Format::duration(-1), QStringLiteral("–"));
    }
};

QTEST_MAIN(TestLook)
#include "tst_look.moc"
