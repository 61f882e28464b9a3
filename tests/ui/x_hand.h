// A hand at a real X server: a virtual screen of its own, mouse and keys as X events (xdotool), pictures of what is seen, and a count of gestures.
#pragma once

#include <QApplication>
#include <QDir>
#include <QPixmap>
#include <QProcess>
#include <QScreen>
#include <QTest>
#include <QWidget>

#include <cstdio>
#include <memory>

namespace celloom::test {

/// Starts Xvfb on a free display and points this process at it. Make it before the QApplication; null with a message where it cannot be.
inline std::unique_ptr<QProcess> startScreen(const QString& size) {
    auto server = std::make_unique<QProcess>();
    server->start(QStringLiteral("Xvfb"), {QStringLiteral("-displayfd"), QStringLiteral("1"), QStringLiteral("-screen"), QStringLiteral("0"), size + QStringLiteral("x24"),
                                           QStringLiteral("-nolisten"), QStringLiteral("tcp")});
    if (!server->waitForStarted() || !server->waitForReadyRead(20000)) {
        std::fprintf(stderr, "Xvfb did not start: %s\n", qPrintable(server->errorString() + QString::fromUtf8(server->readAllStandardError())));
        return nullptr;
    }
    qputenv("DISPLAY", ":" + server->readAllStandardOutput().trimmed());
    qputenv("QT_QPA_PLATFORM", "xcb");
    return server;
}

class XHand {
public:
    /// Pictures go into `folder`, numbered.
    explicit XHand(const QString& folder) : m_folder(folder) { QDir(folder).removeRecursively(); QDir().mkpath(folder); }

    // Each of these is one gesture.
    void click(const QPoint& at) { gesture({move(at), {QStringLiteral("click"), QStringLiteral("1")}}); }
    void click(const QWidget* widget) { click(middleOf(widget)); }
    void scrollDown(const QPoint& at) { gesture({move(at), {QStringLiteral("click"), QStringLiteral("--repeat"), QStringLiteral("20"), QStringLiteral("5")}}); }
    void key(const char* chord) { gesture({{QStringLiteral("key"), QString::fromLatin1(chord)}}); }
    void type(const QString& text) { gesture({{QStringLiteral("type"), QStringLiteral("--delay"), QStringLiteral("8"), text}}); }

    /// Gives a window the keyboard, as a window manager does when a dialog before it closes. No gesture.
    void focus(const QWidget& window) { steps({{QStringLiteral("windowfocus"), QString::number(window.winId())}}); }

    [[nodiscard]] int gestures() const { return m_gestures; }
    void startCounting() { m_gestures = 0; }
    void addToCount(int gestures) { m_gestures += gestures; }

    /// What the whole screen shows.
    void picture(const QString& name) {
        QTest::qWait(250); // texts and lists that follow after a moment
        const QString file = QStringLiteral("%1/%2-%3.png").arg(m_folder).arg(++m_pictures, 2, 10, QLatin1Char('0')).arg(name);
        QVERIFY2(QGuiApplication::primaryScreen()->grabWindow(0).save(file), qPrintable(file));
    }

    static QPoint middleOf(const QWidget* widget) { return widget->mapToGlobal(widget->rect().center()); }

private:
    static QStringList move(const QPoint& at) { return {QStringLiteral("mousemove"), QString::number(at.x()), QString::number(at.y())}; }
    void gesture(const std::vector<QStringList>& all) {
        ++m_gestures;
        steps(all);
    }
    static void steps(const std::vector<QStringList>& all) {
        for (const QStringList& step : all) {
            QProcess tool;
            tool.start(QStringLiteral("xdotool"), step);
            while (!tool.waitForFinished(5) && tool.state() != QProcess::NotRunning) QCoreApplication::processEvents();
            if (tool.error() == QProcess::FailedToStart || tool.exitCode() != 0) qFatal("xdotool %s: %s", qPrintable(step.join(QLatin1Char(' '))), qPrintable(tool.errorString()));
            QTest::qWait(20);
        }
    }

    QString m_folder;
    int m_gestures = 0, m_pictures = 0;
};

} // namespace celloom::test
