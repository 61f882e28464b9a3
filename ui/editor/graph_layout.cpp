#include "ui/editor/graph_layout.h"

#include "ui/common/ending_process.h"

#include <QCoreApplication>
#include <QDataStream>
#include <QFile>
#include <QFileInfo>
#include <QProcess>

#include <graphviz/gvc.h>

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

namespace celloom::ui {

namespace {

constexpr double kPointsPerInch = 72;
constexpr double kRowGap = 46, kColumnGap = 36;
constexpr std::size_t kMostForGraphviz = 5000;

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

namespace {

/// What rows are made of: who feeds whom, and the row of each box.
struct Rows {
    std::vector<std::vector<std::size_t>> before, after; // neighbours by box
    std::vector<std::size_t> row;
    std::vector<std::vector<std::size_t>> members; // of each row, from left to right
    std::vector<std::size_t> alone;                // boxes without any arrow
};

/// Longest way from a source; of a circle (which a wrong document may have) some box begins.
std::vector<std::size_t> rowsOf(const Rows& rows) {
    const std::size_t count = rows.before.size();
    std::vector<std::size_t> row(count, 0), waiting(count), queue;
    std::vector<bool> isDone(count, false);
    for (std::size_t i = 0; i < count; ++i) {
        waiting[i] = rows.before[i].size();
        if (waiting[i] == 0) queue.push_back(i);
    }
    std::size_t taken = 0, begun = 0;
    while (true) {
        if (taken == queue.size()) {
            while (begun < count && (isDone[begun] || waiting[begun] == 0)) ++begun;
            if (begun == count) break;
            waiting[begun] = 0;
            queue.push_back(begun);
        }
        const std::size_t box = queue[taken++];
        isDone[box] = true;
        for (const std::size_t next : rows.after[box]) {
            if (isDone[next]) continue;
            row[next] = std::max(row[next], row[box] + 1);
            if (waiting[next] > 0 && --waiting[next] == 0) queue.push_back(next);
        }
    }
    for (std::size_t i = 0; i < count; ++i) { // a source stands right above what it feeds
        if (!rows.before[i].empty() || rows.after[i].empty()) continue;
        std::size_t least = count;
        for (const std::size_t next : rows.after[i]) least = std::min(least, row[next]);
        row[i] = least > 0 ? least - 1 : 0;
    }
    return row;
}

Rows makeRows(const LayoutInput& input) {
    Rows rows;
    const std::size_t count = input.boxes.size();
    rows.before.resize(count);
    rows.after.resize(count);
    for (const LayoutInput::Arrow& arrow : input.arrows) {
        if (arrow.from == arrow.to) continue;
        rows.after[static_cast<std::size_t>(arrow.from)].push_back(static_cast<std::size_t>(arrow.to));
        rows.before[static_cast<std::size_t>(arrow.to)].push_back(static_cast<std::size_t>(arrow.from));
    }
    rows.row = rowsOf(rows);
    for (std::size_t i = 0; i < count; ++i) {
        if (rows.before[i].empty() && rows.after[i].empty()) {
            rows.alone.push_back(i);
            continue;
        }
        if (rows.members.size() <= rows.row[i]) rows.members.resize(rows.row[i] + 1);
        rows.members[rows.row[i]].push_back(i);
    }
    return rows;
}

double mean(const std::vector<std::size_t>& boxes, const std::vector<double>& values, double otherwise) {
    if (boxes.empty()) return otherwise;
    double sum = 0;
    for (const std::size_t box : boxes) sum += values[box];
    return sum / static_cast<double>(boxes.size());
}

/// Each row in the order of its neighbours' middles, down and up again (the barycentre heuristic: Sugiyama, Tagawa and Toda, 1981).
void orderRows(Rows& rows) {
    std::vector<double> place(rows.row.size(), 0), wanted(rows.row.size(), 0);
    const auto number = [&](const std::vector<std::size_t>& line) {
        for (std::size_t i = 0; i < line.size(); ++i) place[line[i]] = (static_cast<double>(i) + 0.5) / static_cast<double>(line.size());
    };
    const auto sort = [&](std::vector<std::size_t>& line, const std::vector<std::vector<std::size_t>>& neighbours) {
        for (const std::size_t box : line) wanted[box] = mean(neighbours[box], place, place[box]);
        std::stable_sort(line.begin(), line.end(), [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });
        number(line);
    };
    for (const auto& line : rows.members) number(line);
    constexpr int sweeps = 3;
    for (int sweep = 0; sweep < sweeps; ++sweep) {
        for (auto& line : rows.members) sort(line, rows.before);
        for (auto line = rows.members.rbegin(); line != rows.members.rend(); ++line) sort(*line, rows.after);
    }
}

/// As near to `wanted` (in the sum of squares) as boxes can be that keep their order and their distance: neighbours that would overlap move as one
/// block to their common middle.
void spread(const std::vector<std::size_t>& line, const LayoutInput& input, const std::vector<double>& wanted, std::vector<double>& x) {
    struct Block {
        double sum = 0; // of wanted places, offsets taken off
        std::size_t first = 0, count = 0;
        [[nodiscard]] double place() const { return sum / static_cast<double>(count); }
    };
    std::vector<Block> blocks;
    std::vector<double> offset(line.size(), 0);
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (i > 0) offset[i] = offset[i - 1] + (input.boxes[line[i - 1]].width() + input.boxes[line[i]].width()) / 2 + kColumnGap;
        blocks.push_back({wanted[line[i]] - offset[i], i, 1});
        while (blocks.size() > 1 && blocks[blocks.size() - 2].place() > blocks.back().place()) {
            const Block last = blocks.back();
            blocks.pop_back();
            blocks.back().sum += last.sum;
            blocks.back().count += last.count;
        }
    }
    for (const Block& block : blocks)
        for (std::size_t i = block.first; i < block.first + block.count; ++i) x[line[i]] = block.place() + offset[i];
}

std::vector<double> placeRows(const Rows& rows, const LayoutInput& input) {
    std::vector<double> x(input.boxes.size(), 0), wanted(input.boxes.size(), 0);
    const auto pass = [&](const std::vector<std::size_t>& line, const std::vector<std::vector<std::size_t>>& neighbours) {
        for (const std::size_t box : line) wanted[box] = mean(neighbours[box], x, x[box]);
        spread(line, input, wanted, x);
    };
    for (const auto& line : rows.members) spread(line, input, x, x); // around the middle
    constexpr int sweeps = 3;
    for (int sweep = 0; sweep < sweeps; ++sweep) {
        for (auto line = rows.members.rbegin(); line != rows.members.rend(); ++line) pass(*line, rows.after);
        for (const auto& line : rows.members) pass(line, rows.before);
    }
    return x;
}

/// What is wired to nothing: beside each other below the rest, about as wide as high.
void placeAlone(const std::vector<std::size_t>& alone, const LayoutInput& input, double top, LayoutResult& result) {
    double area = 0;
    for (const std::size_t box : alone) area += (input.boxes[box].width() + kColumnGap) * (input.boxes[box].height() + kRowGap);
    const double widest = std::max(1200.0, std::sqrt(area) * 1.4);
    double x = 0, y = top, height = 0;
    for (const std::size_t box : alone) {
        const QSizeF size = input.boxes[box];
        if (x > 0 && x + size.width() > widest) {
            x = 0;
            y += height + kRowGap;
            height = 0;
        }
        result.centers[box] = {x + size.width() / 2, y + size.height() / 2};
        x += size.width() + kColumnGap;
        height = std::max(height, size.height());
    }
}

} // namespace

LayoutResult arrangeInRows(const LayoutInput& input) {
    Rows rows = makeRows(input);
    orderRows(rows);
    const std::vector<double> x = placeRows(rows, input);
    LayoutResult result;
    result.centers.resize(input.boxes.size());
    result.curves.resize(input.arrows.size());
    double y = 0;
    for (const std::vector<std::size_t>& line : rows.members) {
        double height = 0;
        for (const std::size_t box : line) height = std::max(height, input.boxes[box].height());
        for (const std::size_t box : line) result.centers[box] = {x[box], y + height / 2};
        y += height + kRowGap;
    }
    placeAlone(rows.alone, input, y, result);
    addBounds(input, result);
    return result;
}

// ---- the helper ----

namespace {

constexpr QDataStream::Version kStreamVersion = QDataStream::Qt_6_0;
constexpr quint32 kMostElements = 100'000; // of one curve

QByteArray bytesOf(const LayoutInput& input) {
    QByteArray bytes;
    QDataStream out(&bytes, QIODevice::WriteOnly);
    out.setVersion(kStreamVersion);
    out << static_cast<quint32>(input.boxes.size()) << static_cast<quint32>(input.arrows.size());
    for (const QSizeF& size : input.boxes) out << size;
    for (const LayoutInput::Arrow& arrow : input.arrows) out << static_cast<qint32>(arrow.from) << static_cast<qint32>(arrow.to);
    return bytes;
}

std::optional<LayoutInput> inputFrom(const QByteArray& bytes) {
    QDataStream in(bytes);
    in.setVersion(kStreamVersion);
    quint32 boxes = 0, arrows = 0;
    in >> boxes >> arrows;
    LayoutInput input;
    for (quint32 i = 0; i < boxes && in.status() == QDataStream::Ok; ++i) {
        QSizeF size;
        in >> size;
        input.boxes.push_back(size);
    }
    for (quint32 i = 0; i < arrows && in.status() == QDataStream::Ok; ++i) {
        qint32 from = 0, to = 0;
        in >> from >> to;
        if (from < 0 || to < 0 || from >= static_cast<qint32>(boxes) || to >= static_cast<qint32>(boxes)) return std::nullopt;
        input.arrows.push_back({from, to});
    }
    return in.status() == QDataStream::Ok ? std::optional(std::move(input)) : std::nullopt;
}

QByteArray bytesOf(const LayoutResult& result) {
    QByteArray bytes;
    QDataStream out(&bytes, QIODevice::WriteOnly);
    out.setVersion(kStreamVersion);
    for (const QPointF& center : result.centers) out << center;
    for (const QPainterPath& curve : result.curves) {
        out << static_cast<quint32>(curve.elementCount());
        for (int i = 0; i < curve.elementCount(); ++i) {
            const QPainterPath::Element element = curve.elementAt(i);
            out << static_cast<qint32>(element.type) << element.x << element.y;
        }
    }
    return bytes;
}

std::optional<QPainterPath> curveFrom(QDataStream& in) {
    quint32 count = 0;
    in >> count;
    if (count > kMostElements) return std::nullopt;
    QPainterPath curve;
    std::vector<QPointF> controls;
    for (quint32 i = 0; i < count && in.status() == QDataStream::Ok; ++i) {
        qint32 type = 0;
        double x = 0, y = 0;
        in >> type >> x >> y;
        if (type == QPainterPath::MoveToElement) curve.moveTo(x, y);
        else if (type == QPainterPath::LineToElement) curve.lineTo(x, y);
        else controls.emplace_back(x, y);
        if (controls.size() < 3) continue;
        curve.cubicTo(controls[0], controls[1], controls[2]);
        controls.clear();
    }
    return in.status() == QDataStream::Ok ? std::optional(curve) : std::nullopt;
}

std::optional<LayoutResult> resultFrom(const QByteArray& bytes, const LayoutInput& input) {
    QDataStream in(bytes);
    in.setVersion(kStreamVersion);
    LayoutResult result;
    for (std::size_t i = 0; i < input.boxes.size() && in.status() == QDataStream::Ok; ++i) {
        QPointF center;
        in >> center;
        result.centers.push_back(center);
    }
    for (std::size_t i = 0; i < input.arrows.size(); ++i) {
        const auto curve = curveFrom(in);
        if (!curve) return std::nullopt;
        result.curves.push_back(*curve);
    }
    if (in.status() != QDataStream::Ok) return std::nullopt;
    addBounds(input, result);
    return result;
}

} // namespace

int arrangeForParent() {
    QFile in, out;
    if (!in.open(stdin, QIODevice::ReadOnly) || !out.open(stdout, QIODevice::WriteOnly)) return 1;
    const auto input = inputFrom(in.readAll());
    if (!input) return 1;
    const QByteArray bytes = bytesOf(arrangeByGraphviz(*input));
    return out.write(bytes) == bytes.size() && out.flush() ? 0 : 1;
}

// ---- the layouter ----

GraphLayouter::GraphLayouter(QString helper, QObject* parent) : QObject(parent), m_helper(std::move(helper)) {}

GraphLayouter::~GraphLayouter() {
    endHelper();
}

void GraphLayouter::request(LayoutInput input) {
    forget();
    m_isBusy = true;
    m_input = std::make_shared<const LayoutInput>(std::move(input));
    if (m_input->boxes.size() > kMostOnThread && QFileInfo(m_helper).isExecutable()) runHelper();
    else if (!m_isWorking) runOnThread(m_number, m_input);
}

void GraphLayouter::answer(const LayoutResultPtr& result) {
    m_isBusy = false;
    Q_EMIT ready(result);
}

void GraphLayouter::runOnThread(std::uint64_t number, const std::shared_ptr<const LayoutInput>& input) {
    m_isWorking = true;
    m_background.run([input] { return std::make_shared<const LayoutResult>(arrangeByGraphviz(*input)); },
                     [this, number](const LayoutResultPtr& result) {
                         m_isWorking = false;
                         if (!m_isBusy || m_process) return;
                         if (number == m_number) answer(result);
                         else runOnThread(m_number, m_input);
                     });
}

void GraphLayouter::runHelper() {
    m_process = new QProcess(this);
    m_process->setChildProcessModifier([] { // ends with the window, and leaves it the processor
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)!::nice(5);
    });
    const auto finish = [this] {
        const auto result = m_process->exitStatus() == QProcess::NormalExit && m_process->exitCode() == 0 ? resultFrom(m_process->readAllStandardOutput(), *m_input) : std::nullopt;
        endHelper();
        answer(std::make_shared<const LayoutResult>(result ? *result : arrangeInRows(*m_input)));
    };
    connect(m_process, &QProcess::finished, this, finish);
    connect(m_process, &QProcess::errorOccurred, this, [finish](QProcess::ProcessError error) {
        if (error == QProcess::FailedToStart) finish();
    });
    m_process->start(m_helper, {QString::fromLatin1(kHelperArgument)});
    m_process->write(bytesOf(*m_input));
    m_process->closeWriteChannel();
}

void GraphLayouter::endHelper() {
    if (QProcess* process = std::exchange(m_process, nullptr)) letEnd(process, QCoreApplication::instance());
}

void GraphLayouter::forget() {
    ++m_number;
    m_isBusy = false;
    endHelper();
}

void GraphLayouter::cancel() {
    if (!m_isBusy) return;
    forget();
    Q_EMIT ready(std::make_shared<const LayoutResult>(arrangeInRows(*m_input)));
}

} // namespace celloom::ui
