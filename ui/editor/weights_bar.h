// How an edited model stands to the weights that it was opened with: which of them still fit, and what to do where they do not.
#pragma once

#include "models/graph/expand.h"
#include "ui/common/background.h"
#include "ui/common/model_analysis.h"
#include "ui/common/texts.h"

#include <QFrame>
#include <QString>

#include <memory>
#include <string>
#include <vector>

class QLabel;
class QPushButton;

namespace celloom::ui {

class ElidedLabel;
class Theme;

/// Parameters of a model beside those of the folder that has weights. By path, as checkpoints name them.
struct WeightsFit {
    std::size_t fitting = 0;
    std::vector<std::string> missing; // the model has them, the folder does not
    std::vector<std::string> unused;  // the other way round
    std::vector<std::string> resized; // "lm_head.weight [64, 32], there [128, 32]"
    [[nodiscard]] bool isWhole() const { return missing.empty() && unused.empty() && resized.empty(); }
};
WeightsFit compareWeights(const graph::ExpandedModel& folder, const graph::ExpandedModel& model);

/// A line under the tool row, there while the model in front has to do with a folder with weights.
class WeightsBar : public QFrame {
    Q_OBJECT
public:
    explicit WeightsBar(Theme& theme, QWidget* parent = nullptr);

    /// `folder`: what the model was opened from or what the run begins with; empty: the line goes. `areUsed`: the recipe names them.
    void setFolder(const QString& folder, bool areUsed);
    void setAnalysis(const ModelAnalysisPtr& analysis);

Q_SIGNALS:
    void useRequested(const QString& folder, bool hasTokenizer);
    void dropRequested();

protected:
    void changeEvent(QEvent* event) override;

private:
    struct Folder {
        graph::ExpandedModel model;
        bool hasWeights = false, hasTokenizer = false;
    };
    void refresh();
    /// From the background; null where it is no model.
    static std::shared_ptr<const Folder> readFolder(const QString& path);
    [[nodiscard]] QString listed(const WeightsFit& fit) const;

    Theme& m_theme;
    Texts m_texts;
    QLabel* m_icon;
    ElidedLabel* m_text;
    QPushButton* m_action;
    QString m_path;
    bool m_areUsed = false;
    std::shared_ptr<const Folder> m_folder; // null while it is read, and where it is no model
    ModelAnalysisPtr m_analysis;
    Background m_background;
};

} // namespace celloom::ui
