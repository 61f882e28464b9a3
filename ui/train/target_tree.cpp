#include "ui/train/target_tree.h"

#include "ui/common/format.h"

#include <algorithm>
#include <map>

namespace celloom::ui {

namespace {

constexpr double kBytesOfAValue = 4; // adapters are float32

/// Numbers found at each place of a folded path.
using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;

QString filled(const std::string& folded, const Ranges& ranges, std::size_t& used) {
    QString out;
    for (std::size_t i = 0; i < folded.size(); ++i) {
        if (folded.compare(i, 2, "{}") != 0 || used >= ranges.size()) {
            out += QLatin1Char(folded[i]);
            continue;
        }
        const auto [low, high] = ranges[used++];
        out += low == high ? QString::number(low) : QStringLiteral("{%1..%2}").arg(low).arg(high);
        ++i;
    }
    return out;
}

} // namespace

TargetTreeModel::TargetTreeModel(QObject* parent) : QAbstractItemModel(parent), m_nodes(1) {}

void TargetTreeModel::setAnalysis(const ModelAnalysisPtr& analysis, const LoraChoice& choice) {
    std::vector<QString> signature;
    if (analysis) {
        for (const graph::CellInstance& cell : analysis->expansion.model.cells)
            if (recipe::takesAdapter(cell)) signature.push_back(fromUtf8(cell.path));
    }
    const bool isSame = analysis && m_analysis && signature == m_signature &&
                        analysis->expansion.model.cells.size() == m_analysis->expansion.model.cells.size();
    if (!isSame) beginResetModel();
    m_analysis = analysis;
    m_choice = choice;
    if (!isSame) {
        m_signature = std::move(signature);
        m_nodes.assign(1, {});
        if (analysis) build(analysis->expansion.model);
    }
    count();
    if (!isSame) {
        endResetModel();
        return;
    }
    // One signal for each parent's rows.
    for (std::size_t i = 0; i < m_nodes.size(); ++i) {
        if (m_nodes[i].children.empty()) continue;
        const int first = m_nodes[i].children.front(), last = m_nodes[i].children.back();
        Q_EMIT dataChanged(createIndex(0, 0, static_cast<quintptr>(first)),
                           createIndex(static_cast<int>(m_nodes[i].children.size()) - 1, ColumnCount - 1, static_cast<quintptr>(last)));
    }
}

void TargetTreeModel::build(const graph::ExpandedModel& model) {
    std::map<std::string, Ranges> ranges; // by folded path, of every node
    std::map<std::string, int> byPath;
    struct Pending {
        std::string name, path;
    };
    std::vector<Pending> pending(1);
    for (std::size_t i = 0; i < model.cells.size(); ++i) {
        if (!recipe::takesAdapter(model.cells[i])) continue;
        const FoldedPath folded = foldedPath(model.cells[i].path);
        int parent = 0;
        std::string path;
        std::size_t used = 0;
        for (const std::string& name : folded.names) {
            path += (path.empty() ? "" : ".") + name;
            for (std::size_t at = name.find("{}"); at != std::string::npos; at = name.find("{}", at + 2)) ++used;
            auto [found, isNew] = byPath.try_emplace(path, static_cast<int>(m_nodes.size()));
            if (isNew) {
                Node fresh;
                fresh.parent = parent;
                fresh.row = static_cast<int>(m_nodes[static_cast<std::size_t>(parent)].children.size());
                m_nodes[static_cast<std::size_t>(parent)].children.push_back(found->second);
                m_nodes.push_back(std::move(fresh));
                pending.push_back({name, path});
            }
            Ranges& seen = ranges[path];
            for (std::size_t n = 0; n < used; ++n) {
                const std::int64_t number = folded.numbers[n];
                if (n >= seen.size()) seen.emplace_back(number, number);
                seen[n] = {std::min(seen[n].first, number), std::max(seen[n].second, number)};
            }
            parent = found->second;
            m_nodes[static_cast<std::size_t>(parent)].cells.push_back(i);
        }
        m_nodes[0].cells.push_back(i);
    }
    const std::size_t folded = m_nodes.size();
    for (std::size_t i = 1; i < folded; ++i) {
        const Ranges& numbers = ranges[pending[i].path];
        std::size_t used = 0;
        m_nodes[i].path = filled(pending[i].path, numbers, used);
        std::size_t inName = 0; // numbers in the node's own name are the last ones
        for (std::size_t at = pending[i].name.find("{}"); at != std::string::npos; at = pending[i].name.find("{}", at + 2)) ++inName;
        used = numbers.size() - inName;
        m_nodes[i].name = filled(pending[i].name, numbers, used);
    }
    for (std::size_t i = 1; i < folded; ++i)
        if (m_nodes[i].children.empty() && m_nodes[i].cells.size() > 1) addInstances(static_cast<int>(i), model);
}

/// Below a leaf that stands for several cells, each of them: "layers.3".
void TargetTreeModel::addInstances(int leaf, const graph::ExpandedModel& model) {
    const std::vector<std::size_t> cells = m_nodes[static_cast<std::size_t>(leaf)].cells;
    m_nodes[static_cast<std::size_t>(leaf)].holdsLayers = true;
    for (const std::size_t cell : cells) {
        Node one;
        one.path = fromUtf8(model.cells[cell].path);
        const FoldedPath folded = foldedPath(model.cells[cell].path);
        std::size_t used = 0, last = 0;
        for (std::size_t i = 0; i < folded.names.size(); ++i)
            if (folded.names[i].find("{}") != std::string::npos) last = i;
        Ranges numbers;
        for (const std::int64_t number : folded.numbers) numbers.emplace_back(number, number);
        for (std::size_t i = 0; i <= last; ++i) one.name += (i == 0 ? QString() : QStringLiteral(".")) + filled(folded.names[i], numbers, used);
        one.parent = leaf;
        one.row = static_cast<int>(m_nodes[static_cast<std::size_t>(leaf)].children.size());
        one.cells = {cell};
        m_nodes[static_cast<std::size_t>(leaf)].children.push_back(static_cast<int>(m_nodes.size()));
        m_nodes.push_back(std::move(one));
    }
}

void TargetTreeModel::count() {
    for (Node& node : m_nodes) {
        node.possible = node.ticked = node.values = 0;
        for (const std::size_t cell : node.cells) {
            if (!m_choice.possible[cell]) continue;
            ++node.possible;
            node.ticked += m_choice.ticked[cell] ? 1 : 0;
            node.values += m_choice.values[cell];
        }
    }
}

Qt::CheckState TargetTreeModel::state(const Node& node) {
    if (node.ticked == 0) return Qt::Unchecked;
    return node.ticked == node.possible ? Qt::Checked : Qt::PartiallyChecked;
}

QModelIndex TargetTreeModel::index(int row, int column, const QModelIndex& parent) const {
    if (!hasIndex(row, column, parent)) return {};
    const Node& above = parent.isValid() ? node(parent) : m_nodes[0];
    return createIndex(row, column, static_cast<quintptr>(above.children[static_cast<std::size_t>(row)]));
}

QModelIndex TargetTreeModel::parent(const QModelIndex& child) const {
    if (!child.isValid()) return {};
    const int above = node(child).parent;
    return above <= 0 ? QModelIndex() : createIndex(m_nodes[static_cast<std::size_t>(above)].row, 0, static_cast<quintptr>(above));
}

int TargetTreeModel::rowCount(const QModelIndex& parent) const {
    if (parent.isValid() && parent.column() != 0) return 0;
    return static_cast<int>((parent.isValid() ? node(parent) : m_nodes[0]).children.size());
}

int TargetTreeModel::columnCount(const QModelIndex&) const {
    return ColumnCount;
}

QVariant TargetTreeModel::text(const Node& node, int column) const {
    switch (column) {
    case Name:
        return node.name;
    case Adapters:
        return state(node) == Qt::PartiallyChecked ? tr("%1 of %2").arg(Format::count(node.ticked), Format::count(node.possible))
                                                   : Format::count(node.possible);
    case Parameters:
        return Format::count(node.values);
    default:
        return Format::bytes(static_cast<double>(node.values) * kBytesOfAValue);
    }
}

QVariant TargetTreeModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid()) return {};
    const Node& one = node(index);
    switch (role) {
    case Qt::DisplayRole:
        return text(one, index.column());
    case Qt::CheckStateRole:
        return index.column() == Name ? QVariant(state(one)) : QVariant();
    case Qt::TextAlignmentRole:
        return index.column() == Name ? QVariant() : QVariant(Qt::AlignRight | Qt::AlignVCenter);
    case Qt::ToolTipRole:
        return index.column() == Name ? one.path : tr("What ticking all of it gives, at the rank chosen");
    case Qt::AccessibleTextRole:
        return index.column() == Name ? QVariant(tr("%1, %2 adapters, %3 parameters").arg(one.path, Format::count(one.possible), Format::count(one.values)))
                                      : text(one, index.column());
    case PathRole:
        return one.path;
    case HoldsLayersRole:
        return one.holdsLayers;
    default:
        return {};
    }
}

QVariant TargetTreeModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal) return {};
    if (role == Qt::TextAlignmentRole) return section == Name ? QVariant(Qt::AlignLeft | Qt::AlignVCenter) : QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role != Qt::DisplayRole) return {};
    switch (section) {
    case Name:
        return tr("Cell");
    case Adapters:
        return tr("Adapters");
    case Parameters:
        return tr("Parameters");
    default:
        return tr("Size");
    }
}

Qt::ItemFlags TargetTreeModel::flags(const QModelIndex& index) const {
    if (!index.isValid()) return Qt::NoItemFlags;
    if (node(index).possible == 0) return Qt::ItemIsSelectable; // not in the chosen layers
    Qt::ItemFlags flags = Qt::ItemIsEnabled | Qt::ItemIsSelectable;
    if (index.column() == Name) flags |= Qt::ItemIsUserCheckable;
    return flags;
}

bool TargetTreeModel::setData(const QModelIndex& index, const QVariant& value, int role) {
    if (!index.isValid() || role != Qt::CheckStateRole || index.column() != Name) return false;
    std::vector<bool> ticked = m_choice.ticked;
    const bool isOn = value.toInt() == Qt::Checked;
    for (const std::size_t cell : node(index).cells)
        if (m_choice.possible[cell]) ticked[cell] = isOn;
    Q_EMIT tickRequested(ticked);
    return true;
}

QModelIndex TargetTreeModel::indexOf(const QString& path) const {
    for (std::size_t i = 1; i < m_nodes.size(); ++i)
        if (m_nodes[i].path == path) return createIndex(m_nodes[i].row, 0, static_cast<quintptr>(i));
    return {};
}

void TargetTreeModel::retranslate() {
    Q_EMIT headerDataChanged(Qt::Horizontal, 0, ColumnCount - 1);
    if (rowCount() > 0) Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
}

} // namespace celloom::ui
