// What each composite and cell of a model costs, as a tree: parameters, FLOPs, memory; instance by instance, or repeats folded into one row.
#pragma once

#include "ui/common/model_analysis.h"

#include <QAbstractItemModel>

#include <array>
#include <string>
#include <vector>

namespace celloom::ui {

class CostTreeModel : public QAbstractItemModel {
    Q_OBJECT
public:
    enum Column { Name, Type, Parameters, Flops, Activations, Weights, ColumnCount };
    static constexpr int PathRole = Qt::UserRole;      // of the first instance, as locate() takes it
    static constexpr int SortRole = Qt::UserRole + 1;  // numbers as numbers
    static constexpr int ShareRole = Qt::UserRole + 2; // 0 to 1, of the whole model

    explicit CostTreeModel(QObject* parent = nullptr);

    /// Null, or a model with errors: no rows.
    void setAnalysis(const ModelAnalysisPtr& analysis, bool isFolded);
    [[nodiscard]] QModelIndex indexOf(const std::string& path) const; // of an instance or of the repeated cell; invalid where there is none
    void retranslate();

    /// Of the whole model.
    struct Sums {
        double parameters = 0, flops = 0, activations = 0, weights = 0; // count; FLOPs forward per token; bytes; bytes
    };
    [[nodiscard]] const Sums& total() const { return m_nodes.front().sums; }

    [[nodiscard]] QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
    [[nodiscard]] QModelIndex parent(const QModelIndex& child) const override;
    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    struct Node {
        std::string name, path, type;
        std::size_t count = 0; // instances that it stands for
        int parent = -1, row = 0;
        std::vector<int> children;
        Sums sums;
    };
    void build();
    [[nodiscard]] const Node& node(const QModelIndex& index) const { return m_nodes[static_cast<std::size_t>(index.internalId())]; }
    [[nodiscard]] static double valueOf(const Sums& sums, int column);

    ModelAnalysisPtr m_analysis;
    bool m_isFolded = true;
    std::vector<Node> m_nodes; // the root first
};

} // namespace celloom::ui
