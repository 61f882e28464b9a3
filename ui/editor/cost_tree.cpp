#include "ui/editor/cost_tree.h"

#include "models/base/text.h"
#include "models/graph/edits.h"
#include "models/recipe/precision.h"
#include "ui/common/format.h"

#include <algorithm>
#include <map>
#include <set>

namespace celloom::ui {

namespace {

constexpr double kFloatBytes = 4;

std::vector<std::string> namesOf(const std::string& path) {
    std::vector<std::string> out;
    for (std::size_t from = 0; from <= path.size();) {
        const auto dot = std::min(path.find('.', from), path.size());
        out.push_back(path.substr(from, dot - from));
        from = dot + 1;
    }
    return out;
}

/// The steps of an instance's path: cells, and the numbers of repeated ones; folded, these are left out.
struct Step {
    std::string name; // "layers"; "3" for one of its instances
    std::string path; // "layers", "layers.3"
    std::string type;
};

std::vector<Step> stepsTo(const graph::Document& document, const std::string& path, bool isFolded) {
    std::vector<Step> out;
    const auto names = namesOf(path);
    const graph::Graph* graph = &document.main;
    std::string at;
    for (std::size_t i = 0; i < names.size() && graph; ++i) {
        const graph::Cell* cell = graph::findCell(*graph, names[i]);
        if (!cell) break;
        at += (at.empty() ? "" : ".") + names[i];
        out.push_back({names[i], at, cell->type});
        if (!cell->repeat.empty() && i + 1 < names.size()) {
            at += "." + names[++i];
            if (!isFolded) out.push_back({names[i], at, cell->type});
        }
        graph = graph::graphOf(document, cell->type);
    }
    return out;
}

} // namespace

CostTreeModel::CostTreeModel(QObject* parent) : QAbstractItemModel(parent), m_nodes(1) {}

void CostTreeModel::setAnalysis(const ModelAnalysisPtr& analysis, bool isFolded) {
    beginResetModel();
    m_analysis = analysis && !analysis->openError && !analysis->costs.empty() ? analysis : nullptr;
    m_isFolded = isFolded;
    m_nodes.assign(1, {});
    if (m_analysis) build();
    endResetModel();
}

void CostTreeModel::build() {
    const auto& cells = m_analysis->expansion.model.cells;
    const double units = m_analysis->costUnits();
    std::map<std::string, int> byKey; // of the way of names
    std::vector<std::set<std::string>> paths(1);
    for (std::size_t i = 0; i < cells.size(); ++i) {
        const graph::Cost& cost = m_analysis->costs[i];
        const bool hasTypes = i < m_analysis->precision.cells.size();
        const double bytes = hasTypes ? static_cast<double>(recipe::bytesOf(m_analysis->precision.cells[i].wire)) : kFloatBytes;
        const Sums own{static_cast<double>(cost.parameters), cost.forwardFlops / units, static_cast<double>(cost.activationValues) * bytes,
                       static_cast<double>(cost.parameters) * kFloatBytes};
        const auto add = [&own](Sums& sums) {
            sums.parameters += own.parameters;
            sums.flops += own.flops;
            sums.activations += own.activations;
            sums.weights += own.weights;
        };
        int parent = 0;
        std::string key;
        add(m_nodes[0].sums);
        for (const Step& step : stepsTo(m_analysis->document, cells[i].path, m_isFolded)) {
            key += step.name + ".";
            const auto [found, isNew] = byKey.try_emplace(key, static_cast<int>(m_nodes.size()));
            if (isNew) {
                Node fresh{step.name, step.path, step.type, 0, parent, static_cast<int>(m_nodes[static_cast<std::size_t>(parent)].children.size()), {}, {}};
                m_nodes[static_cast<std::size_t>(parent)].children.push_back(found->second);
                m_nodes.push_back(std::move(fresh));
                paths.emplace_back();
            }
            parent = found->second;
            add(m_nodes[static_cast<std::size_t>(parent)].sums);
            std::string instance = step.path; // with its own number, where it is repeated
            if (m_isFolded && cells[i].path.size() > step.path.size()) {
                const auto end = cells[i].path.find('.', step.path.size() + 1);
                const std::string number = cells[i].path.substr(step.path.size() + 1, end - step.path.size() - 1);
                std::int64_t value = 0;
                if (readNumber(std::string_view(number), value)) instance += "." + number;
            }
            paths[static_cast<std::size_t>(parent)].insert(std::move(instance));
        }
    }
    for (std::size_t i = 0; i < m_nodes.size(); ++i) m_nodes[i].count = paths[i].size();
}

double CostTreeModel::valueOf(const Sums& sums, int column) {
    switch (column) {
    case Parameters:
        return sums.parameters;
    case Flops:
        return sums.flops;
    case Activations:
        return sums.activations;
    case Weights:
        return sums.weights;
    default:
        return 0;
    }
}

QModelIndex CostTreeModel::index(int row, int column, const QModelIndex& parent) const {
    if (!hasIndex(row, column, parent)) return {};
    const Node& above = parent.isValid() ? node(parent) : m_nodes[0];
    return createIndex(row, column, static_cast<quintptr>(above.children[static_cast<std::size_t>(row)]));
}

QModelIndex CostTreeModel::parent(const QModelIndex& child) const {
    if (!child.isValid()) return {};
    const int above = node(child).parent;
    return above <= 0 ? QModelIndex() : createIndex(m_nodes[static_cast<std::size_t>(above)].row, 0, static_cast<quintptr>(above));
}

int CostTreeModel::rowCount(const QModelIndex& parent) const {
    if (parent.isValid() && parent.column() != 0) return 0;
    return static_cast<int>((parent.isValid() ? node(parent) : m_nodes[0]).children.size());
}

int CostTreeModel::columnCount(const QModelIndex&) const {
    return ColumnCount;
}

QVariant CostTreeModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid()) return {};
    const Node& one = node(index);
    const int column = index.column();
    const double value = valueOf(one.sums, column), whole = valueOf(m_nodes[0].sums, column);
    switch (role) {
    case Qt::DisplayRole:
        if (column == Name) return one.count > 1 ? QStringLiteral("%1  ×%2").arg(fromUtf8(one.name)).arg(one.count) : fromUtf8(one.name);
        if (column == Type) return fromUtf8(one.type);
        return column == Activations || column == Weights ? Format::bytes(value) : Format::shortCount(value);
    case Qt::TextAlignmentRole:
        return column <= Type ? QVariant() : QVariant(Qt::AlignRight | Qt::AlignVCenter);
    case Qt::ToolTipRole:
        if (column <= Type) return fromUtf8(one.path);
        return QStringLiteral("%1 · %2 %").arg(column == Activations || column == Weights ? Format::bytes(value) : Format::count(static_cast<std::int64_t>(value)))
            .arg(whole > 0 ? 100 * value / whole : 0, 0, 'f', 1);
    case SortRole:
        return column <= Type ? data(index, Qt::DisplayRole) : QVariant(value);
    case ShareRole:
        return column <= Type || whole <= 0 ? QVariant() : QVariant(value / whole);
    case PathRole:
        return fromUtf8(one.path);
    default:
        return {};
    }
}

QVariant CostTreeModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal) return {};
    if (role == Qt::TextAlignmentRole) return section <= Type ? QVariant(Qt::AlignLeft | Qt::AlignVCenter) : QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role == Qt::ToolTipRole) {
        if (section == Flops) return tr("Of one forward pass; a product and a sum are two");
        if (section == Activations) return tr("Kept for the backward pass, in the type of the run's precision");
        if (section == Weights) return tr("In float32, as they are kept while training");
        return {};
    }
    if (role != Qt::DisplayRole) return {};
    switch (section) {
    case Name:
        return tr("Cell");
    case Type:
        return tr("Type");
    case Parameters:
        return tr("Parameters");
    case Flops:
        return m_analysis && !m_analysis->hasTokens() ? tr("FLOPs a row") : tr("FLOPs a token");
    case Activations:
        return tr("Activations");
    default:
        return tr("Weights");
    }
}

QModelIndex CostTreeModel::indexOf(const std::string& path) const {
    if (!m_analysis) return {};
    const auto steps = stepsTo(m_analysis->document, path, m_isFolded);
    int at = 0;
    for (const Step& step : steps) {
        const auto& children = m_nodes[static_cast<std::size_t>(at)].children;
        const auto found = std::find_if(children.begin(), children.end(), [&](int child) { return m_nodes[static_cast<std::size_t>(child)].name == step.name; });
        if (found == children.end()) return {};
        at = *found;
    }
    return at == 0 ? QModelIndex() : createIndex(m_nodes[static_cast<std::size_t>(at)].row, 0, static_cast<quintptr>(at));
}

void CostTreeModel::retranslate() {
    Q_EMIT headerDataChanged(Qt::Horizontal, 0, ColumnCount - 1);
}

} // namespace celloom::ui
