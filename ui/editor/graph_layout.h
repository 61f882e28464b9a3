// Positions and curves for a graph's boxes, by Graphviz on a thread of its own. Knows no graph document: boxes and arrows only.
#pragma once

#include <QObject>
#include <QPainterPath>
#include <QPointF>
#include <QRectF>
#include <QSizeF>
#include <QThread>

#include <cstdint>
#include <memory>
#include <vector>

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
    std::vector<QPainterPath> curves; // of the arrows, from the bottom of one box to the top of the other
    QRectF bounds;
};
using LayoutResultPtr = std::shared_ptr<const LayoutResult>;

/// Graphviz's `dot`. Takes seconds for thousands of boxes; call it away from the window's thread, and only on one thread at a time.
LayoutResult arrangeByGraphviz(const LayoutInput& input);
/// Rows by the longest way from a source, at once. For what is shown until, or instead of, the better one.
LayoutResult arrangeInRows(const LayoutInput& input);

class GraphLayouter : public QObject {
    Q_OBJECT
public:
    explicit GraphLayouter(QObject* parent = nullptr);
    ~GraphLayouter() override;

    /// Starts arranging; a request before is given up.
    void request(LayoutInput input);
    /// Gives up the request under way and answers with rows.
    void cancel();
    [[nodiscard]] bool isBusy() const { return m_isBusy; }

Q_SIGNALS:
    void ready(const celloom::ui::LayoutResultPtr& result);

private:
    void run(std::uint64_t number, const std::shared_ptr<const LayoutInput>& input);

    QThread m_thread;
    QObject* m_worker;
    std::uint64_t m_number = 0; // of the newest request
    bool m_isBusy = false;      // the newest request is not answered
    bool m_isWorking = false;   // Graphviz is at work, perhaps on an older one: it cannot be stopped, only not listened to
    std::shared_ptr<const LayoutInput> m_input;
};

} // namespace celloom::ui
