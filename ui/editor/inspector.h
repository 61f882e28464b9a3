// The panel beside the canvas: what the chosen cell is, its parameters as written and as resolved, what it costs, how it is treated.
#pragma once

#include "ui/common/texts.h"
#include "ui/editor/graph_view.h"
#include "ui/editor/property_rows.h"
#include "ui/editor/model_level.h"

#include <QFrame>

#include <optional>

class QLabel;
class QVBoxLayout;

namespace celloom::ui {

struct Services;

class Inspector : public QFrame {
    Q_OBJECT
public:
    explicit Inspector(Services& services, QWidget* parent = nullptr);
    /// A field that one is typing in stays as it is while its place does, and is made anew when one leaves it.
    void show(const ModelAnalysisPtr& analysis, const ModelLevel& level, std::optional<std::size_t> box);
    void clear();
    /// Stays below everything else, whatever is chosen.
    void setFooter(QWidget* footer);

Q_SIGNALS:
    void left(); // by Escape
    void tuneRequested(); // the recipe tunes this model now
    void edited(const QString& name, const celloom::ui::GraphEdit& edit); // of the level's graph

protected:
    void changeEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    [[nodiscard]] bool isTyping() const;
    void catchUp();
    void rebuild();
    void fill();
    void addPorts(const LevelBox& box);
    void addTitle(const QString& title, const QString& type, const QString& path, const QString& summary);
    void addHeading(const QString& text);
    void addPair(const QString& name, const QString& value, const QString& tip = {});
    [[nodiscard]] PropertyRows rows();
    void addBox(const LevelBox& box);
    void addHyper(const std::vector<graph::HyperParameter>& hyper, bool isMain);
    void addCosts(const std::vector<std::size_t>& instances, std::int64_t parameters);
    void addWeightSizes(std::int64_t parameters);
    void addNote(const QString& text);
    void addFolder();
    void addTuneButton(const std::string& path, bool hasTokenizer);
    void addStartButton(const families::FolderContents& folder);
    void addTreatment(const std::vector<std::size_t>& instances, const std::string& path);

    Services& m_services;
    ModelAnalysisPtr m_analysis;
    ModelLevel m_level;
    std::optional<std::size_t> m_box;
    bool m_isBehind = false; // what is on show is older than m_analysis
    QWidget* m_content = nullptr;
    QVBoxLayout* m_rows = nullptr;
    QVBoxLayout* m_holder;
};

/// "frozen", "LoRA", "bfloat16": what differs from plain training in these instances; with a count where not all are alike.
std::vector<Badge> treatmentBadges(const ModelAnalysis& analysis, const std::vector<std::size_t>& instances);

} // namespace celloom::ui
