// scripts/bench canvas: how long large models take to open in the real window, and how many frames a second pan and zoom reach.
// `--write FOLDER` only writes the two large documents, to open them by hand. Frames are driven by mouse events and counted as they are painted and handed to the window system.
#include "large_graphs.h"
#include "models/base/files.h"
#include "models/graph/json.h"
#include "services_bench.h"
#include "ui/common/format.h"
#include "ui/editor/arranger.h"
#include "ui/editor/graph_view.h"
#include "ui/shell/main_window.h"

#include <QElapsedTimer>
#include <QGuiApplication>
#include <QTest>
#include <QWheelEvent>

#include <cstdio>

using namespace celloom;
using namespace celloom::ui;

namespace {

constexpr int kPatienceMs = 20'000;
constexpr int kFrames = 60;

/// Counts what is painted.
class Frames : public QObject {
public:
    explicit Frames(GraphView* view) : m_view(view) { view->viewport()->installEventFilter(this); }
    int painted = 0, withBoxes = 0;
    bool eventFilter(QObject*, QEvent* event) override {
        if (event->type() == QEvent::Paint) {
            ++painted;
            withBoxes += m_view->isShown();
        }
        return false;
    }

private:
    GraphView* m_view;
};

/// Until the event's frame is painted and the window system has it.
void finishFrame(Frames& frames, int before) {
    QElapsedTimer clock;
    clock.start();
    while (frames.painted == before) {
        QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents, 100);
        if (clock.elapsed() > kPatienceMs) qFatal("an event changed nothing on the canvas");
    }
    QGuiApplication::sync();
}

template <class Step> double framesPerSecond(Frames& frames, const Step& step) {
    QElapsedTimer clock;
    clock.start();
    for (int i = 0; i < kFrames; ++i) {
        const int before = frames.painted;
        step(i);
        finishFrame(frames, before);
    }
    return 1000.0 * kFrames / static_cast<double>(std::max<qint64>(1, clock.elapsed()));
}

void wheel(GraphView* view, int by) {
    const QPointF at = view->viewport()->rect().center();
    QWheelEvent event(at, view->viewport()->mapToGlobal(at), {}, {0, by}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(view->viewport(), &event);
}

double pan(GraphView* view, Frames& frames) {
    QWidget* surface = view->viewport();
    const QPoint middle = surface->rect().center();
    QTest::mousePress(surface, Qt::MiddleButton, {}, middle);
    const double rate = framesPerSecond(frames, [&](int i) { QTest::mouseMove(surface, middle + QPoint((i % 40 < 20 ? i % 20 : 20 - i % 20) * 8 + 3, (i % 20) * 6 + 1)); });
    QTest::mouseRelease(surface, Qt::MiddleButton, {}, middle);
    return rate;
}

double zoom(GraphView* view, Frames& frames) {
    return framesPerSecond(frames, [&](int i) { wheel(view, i % 20 < 10 ? 60 : -60); });
}

void zoomTo(GraphView* view, int percent) {
    view->zoomBy(percent / 100.0 / view->transform().m11());
    view->centerOn(view->contents().center());
    QCoreApplication::processEvents();
}

struct Window {
    test::ServicesBench bench;
    MainWindow window{bench.services};
    GraphView* view = window.findChild<GraphView*>();
    Frames frames{view};

    Window() {
        window.resize(1440, 900);
        window.showPage(PageId::Model);
        window.show();
        if (!QTest::qWaitForWindowExposed(&window)) qFatal("no window");
    }
    /// Milliseconds until the boxes are painted, and the longest time meanwhile that the event loop did not turn.
    std::pair<double, double> open(const QString& source) {
        settle();
        const int before = frames.withBoxes;
        QElapsedTimer clock;
        clock.start();
        bench.recipe.setValue(QStringLiteral("model.source"), toUtf8(source));
        double longest = 0;
        while (true) {
            const double begun = static_cast<double>(clock.nsecsElapsed()) / 1e6;
            QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents, 20);
            longest = std::max(longest, static_cast<double>(clock.nsecsElapsed()) / 1e6 - begun);
            if (isOf(source) && frames.withBoxes > before) break;
            if (clock.elapsed() > kPatienceMs) qFatal("nothing was shown");
        }
        QGuiApplication::sync();
        return {static_cast<double>(clock.nsecsElapsed()) / 1e6, longest};
    }

private:
    bool isOf(const QString& source) const { return bench.analyser.latest() && bench.analyser.latest()->source == toUtf8(source); }
    void settle() {
        if (!QTest::qWaitFor([this] { return bench.analyser.isSettled() && bench.analyser.latest(); }, kPatienceMs)) qFatal("no analysis");
        for (int i = 0; i < 20; ++i) QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
    }
};

void measure(const char* name, const QString& source) {
    Window one;
    const auto [opened, stalled] = one.open(source);
    std::printf("%-24s open %6.0f ms (longest without events %4.0f ms), %zu boxes, %zu wires\n", name, opened, stalled, one.view->level().boxes.size(), one.view->level().wires.size());
    QElapsedTimer clock;
    clock.start();
    if (!QTest::qWaitFor([&] { return !one.view->findChild<Arranger*>()->isBusy(); }, kPatienceMs)) qFatal("never arranged");
    std::printf("%-24s Graphviz's order %.1f s later\n", name, static_cast<double>(clock.elapsed()) / 1000);
    one.view->fit();
    QCoreApplication::processEvents();
    for (const int percent : {0, 20, 50, 100}) { // 0: the whole graph, or as much of it as the least zoom shows
        if (percent > 0) zoomTo(one.view, percent);
        const int at = one.view->zoomPercent();
        const double panned = pan(one.view, one.frames);
        const double zoomed = zoom(one.view, one.frames);
        std::printf("%-24s at %3d %%: pan %6.1f frames/s, zoom %6.1f frames/s\n", name, at, panned, zoomed);
        std::fflush(stdout);
    }
}

/// Of a box in the middle of the graph.
void measureEditing(const char* name, const QString& source) {
    Window one;
    one.open(source);
    if (!QTest::qWaitFor([&] { return !one.view->findChild<Arranger*>()->isBusy(); }, kPatienceMs)) qFatal("never arranged");
    zoomTo(one.view, 60);
    const auto& boxes = one.view->level().boxes;
    const auto places = one.view->positions();
    const graph::Position place = places.at(boxes[boxes.size() / 2].name);
    one.view->centerOn(place.x, place.y);
    QCoreApplication::processEvents();
    QWidget* surface = one.view->viewport();
    const QPoint at = one.view->mapFromScene(place.x, place.y), port = at + QPoint(0, static_cast<int>(27 * 0.6));
    QElapsedTimer clock;
    clock.start();
    QTest::mousePress(surface, Qt::LeftButton, {}, port);
    const double begun = static_cast<double>(clock.nsecsElapsed()) / 1e6;
    const double drawn = framesPerSecond(one.frames, [&](int i) { QTest::mouseMove(surface, port + QPoint(i % 2 ? 30 : 60, 40 + i)); });
    QTest::keyClick(one.view, Qt::Key_Escape);
    QTest::mouseRelease(surface, Qt::LeftButton, {}, port);
    QTest::mousePress(surface, Qt::LeftButton, {}, at);
    QTest::mouseMove(surface, at + QPoint(20, 20));
    const double dragged = framesPerSecond(one.frames, [&](int i) { QTest::mouseMove(surface, at + QPoint(i * 10 % 300, 40 + i * 10 % 300)); });
    clock.restart();
    QTest::mouseRelease(surface, Qt::LeftButton, {}, at + QPoint(200, 40));
    finishFrame(one.frames, one.frames.painted);
    std::printf("%-24s a wire begins after %.0f ms, then %.1f frames/s; dragging a box %.1f frames/s, letting it go (one edit) %.0f ms\n", name, begun, drawn, dragged, static_cast<double>(clock.nsecsElapsed()) / 1e6);
}

} // namespace

int main(int argc, char** argv) {
    QApplication application(argc, argv);
    const QTemporaryDir temporary;
    const bool onlyWrites = argc == 3 && QLatin1String(argv[1]) == QLatin1String("--write");
    const QDir folder(onlyWrites ? QString::fromLocal8Bit(argv[2]) : temporary.path());
    const auto write = [&](const char* name, const graph::Document& document) {
        const QString path = folder.filePath(QLatin1String(name));
        if (!writeFileAtomically(path.toStdString(), graph::toJson(document))) qFatal("cannot write");
        return path;
    };
    const QString flat = write("flat.cells.json", test::flatDocument()), nested = write("nested.cells.json", test::nestedDocument());
    if (onlyWrites) return 0;
    std::printf("platform %s, the window at 1440 x 900\n", qPrintable(QGuiApplication::platformName()));
    measure("flat, 2000 cells", flat);
    measureEditing("flat, 2000 cells", flat);
    measure("nested, 2000 cells", nested);
    measure("Baichuan-13B", QStringLiteral("baichuan-13b"));
    return 0;
}
