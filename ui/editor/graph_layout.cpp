#include "ui/editor/graph_layout.h"

#include <graphviz/gvc.h>

#include <algorithm>
#include <string>

namespace celloom::ui {

namespace {

constexpr double kPointsPerInch = 72;
constexpr double kRowGap = 46, kColumnGap = 36;
constexpr std::size_t kMostForGraphviz = 5000;
constexpr int kMostWaitMs = 1500;

void set(void* object, const char* name, const char* value) {
    // Graphviz takes char* and copies.
    agsafeset(object, const_cast<char*>(name), const_cast<char*>(value), const_cast<char*>(""));
}

/// One Graphviz graph with its context; everything is freed at the end.
class Graphviz {
public:
    explicit Graphviz(const LayoutInput& input) : m_context(gvContext()), m_graph(agopen(const_cast<char*>("g"), Agdirected, nullptr)) {
        set(m_graph, "rankdir", "TB");
        set(m_graph, "nodesep", "0.45");
        set(m_graph, "ranksep", "0.5");
        set(m_graph, "splines", "spline");
        set(m_graph, "nslimit", "4"); // bounds the time on large graphs
        set(m_graph, "nslimit1", "4");
        for (std::size_t i = 0; i < input.boxes.size(); ++i) {
            Agnode_t* node = agnode(m_graph, const_cast<char*>(std::to_string(i).c_str()), 1);
            set(node, "shape", "box");
            set(node, "fixedsize", "true");
            set(node, "label", "");
            set(node, "width", std::to_string(input.boxes[i].width() / kPointsPerInch).c_str());
            set(node, "height", std::to_string(input.boxes[i].height() / kPointsPerInch).c_str());
            m_nodes.push_back(node);
        }
        for (std::size_t i = 0; i < input.arrows.size(); ++i) {
            Agedge_t* edge = agedge(m_graph, m_nodes[static_cast<std::size_t>(input.arrows[i].from)],
                                    m_nodes[static_cast<std::size_t>(input.arrows[i].to)], const_cast<char*>(std::to_string(i).c_str()), 1);
            set(edge, "tailport", "s");
            set(edge, "headport", "n");
            set(edge, "dir", "none");
            m_edges.push_back(edge);
        }
    }
    ~Graphviz() {
        if (m_isLaidOut) gvFreeLayout(m_context, m_graph);
        agclose(m_graph);
        gvFreeContext(m_context);
    }
    Graphviz(const Graphviz&) = delete;
    Graphviz& operator=(const Graphviz&) = delete;

    bool layOut() {
        m_isLaidOut = gvLayout(m_context, m_graph, "dot") == 0;
        return m_isLaidOut;
    }

    LayoutResult result() const {
        const double height = GD_bb(m_graph).UR.y;
        const auto point = [height](const pointf& p) { return QPointF(p.x, height - p.y); }; // Graphviz counts upwards
        LayoutResult result;
        for (Agnode_t* node : m_nodes) result.centers.push_back(point(ND_coord(node)));
        for (Agedge_t* edge : m_edges) {
            QPainterPath path;
            const splines* spline = ED_spl(edge);
            for (std::size_t b = 0; spline && b < static_cast<std::size_t>(spline->size); ++b) {
                const bezier& curve = spline->list[b];
                path.moveTo(point(curve.list[0]));
                for (std::size_t i = 1; i + 2 < static_cast<std::size_t>(curve.size); i += 3)
                    path.cubicTo(point(curve.list[i]), point(curve.list[i + 1]), point(curve.list[i + 2]));
            }
            result.curves.push_back(path);
        }
        return result;
    }

private:
    GVC_t* m_context;
    Agraph_t* m_graph;
    std::vector<Agnode_t*> m_nodes;
    std::vector<Agedge_t*> m_edges;
    bool m_isLaidOut = false;
};

QPainterPath straightCurve(QPointF from, QPointF to) {
    QPainterPath path(from);
    const double bend = std::max(20.0, std::abs(to.y() - from.y()) / 2);
    path.cubicTo(from + QPointF(0, bend), to - QPointF(0, bend), to);
    return path;
}

void addBounds(const LayoutInput& input, LayoutResult& result) {
    for (std::size_t i = 0; i < input.boxes.size(); ++i) {
        const QSizeF size = input.boxes[i];
        result.bounds |= QRectF(result.centers[i] - QPointF(size.width() / 2, size.height() / 2), size);
    }
    for (const QPainterPath& curve : result.curves) result.bounds |= curve.boundingRect();
}

} // namespace

LayoutResult arrangeByGraphviz(const LayoutInput& input) {
    if (input.boxes.empty() || input.boxes.size() > kMostForGraphviz) return arrangeInRows(input);
    Graphviz graph(input);
    if (!graph.layOut()) return arrangeInRows(input);
    LayoutResult result = graph.result();
    for (std::size_t i = 0; i < input.arrows.size(); ++i) {
        if (!result.curves[i].isEmpty()) continue;
        const auto from = static_cast<std::size_t>(input.arrows[i].from), to = static_cast<std::size_t>(input.arrows[i].to);
        result.curves[i] = straightCurve(result.centers[from] + QPointF(0, input.boxes[from].height() / 2),
                                         result.centers[to] - QPointF(0, input.boxes[to].height() / 2));
    }
    addBounds(input, result);
    return result;
}

LayoutResult arrangeInRows(const LayoutInput& input) {
    const std::size_t count = input.boxes.size();
    std::vector<std::size_t> row(count, 0);
    // Longest way from a source. Each pass settles one more row; a cycle ends at the bound.
    for (std::size_t pass = 0; pass < count; ++pass) {
        bool hasMoved = false;
        for (const LayoutInput::Arrow& arrow : input.arrows) {
            const auto from = static_cast<std::size_t>(arrow.from), to = static_cast<std::size_t>(arrow.to);
            if (row[to] < row[from] + 1 && row[from] + 1 < count) {
                row[to] = row[from] + 1;
                hasMoved = true;
            }
        }
        if (!hasMoved) break;
    }
    LayoutResult result;
    result.centers.resize(count);
    const std::size_t rows = count == 0 ? 0 : *std::max_element(row.begin(), row.end()) + 1;
    std::vector<std::vector<std::size_t>> members(rows);
    for (std::size_t i = 0; i < count; ++i) members[row[i]].push_back(i);
    double y = 0;
    for (const std::vector<std::size_t>& line : members) {
        double width = 0, height = 0;
        for (std::size_t i : line) {
            width += input.boxes[i].width() + kColumnGap;
            height = std::max(height, input.boxes[i].height());
        }
        double x = -(width - kColumnGap) / 2;
        for (std::size_t i : line) {
            result.centers[i] = {x + input.boxes[i].width() / 2, y + height / 2};
            x += input.boxes[i].width() + kColumnGap;
        }
        y += height + kRowGap;
    }
    for (const LayoutInput::Arrow& arrow : input.arrows) {
        const auto from = static_cast<std::size_t>(arrow.from), to = static_cast<std::size_t>(arrow.to);
        result.curves.push_back(straightCurve(result.centers[from] + QPointF(0, input.boxes[from].height() / 2),
                                              result.centers[to] - QPointF(0, input.boxes[to].height() / 2)));
    }
    addBounds(input, result);
    return result;
}

GraphLayouter::GraphLayouter(QObject* parent) : QObject(parent), m_worker(new QObject) {
    m_thread.setObjectName(QStringLiteral("celloom-layout"));
    m_worker->moveToThread(&m_thread);
    connect(&m_thread, &QThread::finished, m_worker, &QObject::deleteLater);
    m_thread.start();
}

GraphLayouter::~GraphLayouter() {
    m_thread.quit();
    if (m_thread.wait(kMostWaitMs)) return;
    m_thread.terminate(); // Graphviz has no way to stop; the program is ending
    m_thread.wait();
}

void GraphLayouter::request(LayoutInput input) {
    ++m_number;
    m_isBusy = true;
    m_input = std::make_shared<const LayoutInput>(std::move(input));
    if (!m_isWorking) run(m_number, m_input);
}

void GraphLayouter::run(std::uint64_t number, const std::shared_ptr<const LayoutInput>& input) {
    m_isWorking = true;
    QMetaObject::invokeMethod(m_worker, [this, number, input] {
        auto result = std::make_shared<const LayoutResult>(arrangeByGraphviz(*input));
        QMetaObject::invokeMethod(this, [this, number, result] {
            m_isWorking = false;
            if (number == m_number && m_isBusy) {
                m_isBusy = false;
                Q_EMIT ready(result);
            } else if (m_isBusy) {
                run(m_number, m_input);
            }
        });
    });
}

void GraphLayouter::cancel() {
    if (!m_isBusy) return;
    m_isBusy = false;
    Q_EMIT ready(std::make_shared<const LayoutResult>(arrangeInRows(*m_input)));
}

} // namespace celloom::ui
