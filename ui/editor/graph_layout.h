// Positions and curves for a graph's boxes, by Graphviz, away from the window's thread. Knows no graph document: boxes and arrows only.
#pragma once

#include "ui/common/background.h"

#include <QObject>
#include <QPainterPath>
#include <QPointF>
#include <QRectF>
#include <QSizeF>
#include <QString>

#include <cstdint>
#include <memory>
#include <vector>

class QProcess;

namespace celloom::ui {

struct LayoutInput {
    std::vector<QSizeF> boxes; // in pixels
    struct Arrow {
        int from = 0, to = 0; // indices into boxes
    };
    std::vector<Arrow> arrows;
};

struct LayoutResult {
    std::vector<QPointF> centers;     // of the boxes
    std::vector<QPainterPath> curves; // of the arrows, from the bottom of one box to the top of the other; empty: as whoever draws it likes
    QRectF bounds;
};
using LayoutResultPtr = std::shared_ptr<const LayoutResult>;

/// Graphviz's `dot`. Takes seconds for thousands of boxes; call it away from the window's thread, and only on one thread at a time.
LayoutResult arrangeByGraphviz(const LayoutInput& input);
/// Rows by the longest way from a source, ordered so that few arrows cross; thousands of boxes in milliseconds. For what is shown until, or
/// instead of, the better one.
LayoutResult arrangeInRows(const LayoutInput& input);

/// The other side of GraphLayouter's helper: reads a layout's input from standard input, arranges by Graphviz, writes the result to standard
/// output. Returns the exit code. Needs no application object.
int arrangeForParent();

class GraphLayouter : public QObject {
    Q_OBJECT
public:
    /// Graphviz cannot be stopped. More boxes than this are therefore arranged by a process of its own, which can.
    static constexpr std::size_t kMostOnThread = 300;

    /// `helper`: a program that calls arrangeForParent() when its only argument is kHelperArgument. Where it is not there, everything happens on
    /// the thread.
    explicit GraphLayouter(QString helper, QObject* parent = nullptr);
    ~GraphLayouter() override;
    static constexpr const char* kHelperArgument = "--arrange";

    /// Starts arranging; a request before is given up.
    void request(LayoutInput input);
    /// Gives up the request under way and answers with rows.
    void cancel();
    /// Gives up the request under way and does not answer.
    void forget();
    [[nodiscard]] bool isBusy() const { return m_isBusy; }

Q_SIGNALS:
    void ready(const celloom::ui::LayoutResultPtr& result);

private:
    void runOnThread(std::uint64_t number, const std::shared_ptr<const LayoutInput>& input);
    void runHelper();
    void endHelper();
    void answer(const LayoutResultPtr& result);

    QString m_helper;
    QProcess* m_process = nullptr;
    std::uint64_t m_number = 0; // of the newest request
    bool m_isBusy = false;      // the newest request is not answered
    bool m_isWorking = false;   // the thread is at work, perhaps on an older one: it is not stopped, only not listened to
    std::shared_ptr<const LayoutInput> m_input;
    Background m_background;
};

} // namespace celloom::ui
