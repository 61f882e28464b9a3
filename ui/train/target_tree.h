// The model's cells that take a LoRA adapter, as a tree with check boxes: repeats folded, each leaf opening to its single layers.
#pragma once

#include "ui/common/model_analysis.h"
#include "ui/train/lora_targets.h"

#include <QAbstractItemModel>

#include <vector>

namespace celloom::ui {

class TargetTreeModel : public QAbstractItemModel {
    Q_OBJECT
public:
    enum Column { Name, Adapters, Parameters, Bytes, ColumnCount };
    static constexpr int PathRole = Qt::UserRole;            // "layers.{0..31}.self_attn.q_proj", or a single cell's path
    static constexpr int HoldsLayersRole = Qt::UserRole + 1; // its children are single cells

    explicit TargetTreeModel(QObject* parent = nullptr);

    /// Shows this model; null empties the tree. The same model again keeps what is unfolded.
    void setAnalysis(const ModelAnalysisPtr& analysis, const LoraChoice& choice);
    [[nodiscard]] QModelIndex indexOf(const QString& path) const; // by PathRole; invalid where there is none
    void retranslate();

    [[nodiscard]] QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
    [[nodiscard]] QModelIndex parent(const QModelIndex& child) const override;
    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
    [[nodiscard]] Qt::ItemFlags flags(const QModelIndex& index) const override;
    /// A change of a check box is asked for, not made: the recipe decides, and comes back through setAnalysis().
    bool setData(const QModelIndex& index, const QVariant& value, int role) override;

Q_SIGNALS:
    void tickRequested(const std::vector<bool>& ticked); // by cell of the model

private:
    struct Node {
        QString name, path;
        int parent = -1, row = 0;
        bool holdsLayers = false;
        std::vector<int> children;
        std::vector<std::size_t> cells; // all below it
        // of the cells that may get an adapter
        std::int64_t possible = 0, ticked = 0, values = 0;
    };
    void build(const graph::ExpandedModel& model);
    void addInstances(int leaf, const graph::ExpandedModel& model);
    void count();
    [[nodiscard]] const Node& node(const QModelIndex& index) const { return m_nodes[static_cast<std::size_t>(index.internalId())]; }
    [[nodiscard]] QVariant text(const Node& node, int column) const;
    [[nodiscard]] static Qt::CheckState state(const Node& node);

    ModelAnalysisPtr m_analysis;
    LoraChoice m_choice;
    std::vector<QString> m_signature; // paths of the cells shown
    std::vector<Node> m_nodes;        // the root first
};

} // namespace celloom::ui
