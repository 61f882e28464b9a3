// "Last probe": what a probe found at the chosen cell, and the way to a new one. Part of the inspector; knows nothing of how a probe is made.
#pragma once

#include "ui/common/texts.h"
#include "ui/editor/probe_report.h"

#include <QWidget>

#include <memory>

class QCheckBox;
class QComboBox;
class QLabel;
class QPushButton;
class QVBoxLayout;

namespace celloom::ui {

class Theme;

class ProbePanel : public QWidget {
    Q_OBJECT
public:
    explicit ProbePanel(Theme& theme, QWidget* parent = nullptr);

    /// What goes through the model.
    enum class Data { OfRecipe, MadeUp };
    [[nodiscard]] Data data() const;
    [[nodiscard]] bool wantsGradients() const;
    void setRunning(bool isRunning);
    /// One line about the whole probe; `look`: "muted", "warning" or "problem".
    void setSummary(const QString& text, const char* look);
    /// What was found at the chosen box: its outputs' values, and attention. Null: nothing is known.
    void showValues(const std::shared_ptr<const ProbeReport>& report, const std::vector<std::string>& wires, const std::string& cell);

Q_SIGNALS:
    void probeRequested();
    void cancelRequested();

protected:
    void changeEvent(QEvent* event) override;

private:
    void rebuild();
    void addValues(const ProbedValues& values, bool isGradient);
    void addAttention(const ProbedAttention& attention);
    QLabel* addText(const char* role, const QString& text);

    Theme& m_theme;
    Texts m_texts;
    QLabel *m_title, *m_summary;
    QPushButton* m_probe;
    QComboBox* m_data;
    QCheckBox* m_gradients;
    QVBoxLayout* m_holder;
    QWidget* m_content = nullptr;
    QVBoxLayout* m_rows = nullptr;
    bool m_isRunning = false;
    int m_head = 0; // stays from cell to cell
    std::shared_ptr<const ProbeReport> m_report;
    std::vector<std::string> m_wires;
    std::string m_cell;
};

/// "0.003 ± 0.41", or how many are NaN or infinite.
QString shortNumbers(const ProbedValues& values);
/// "[2, 128, 256]"
QString sizesText(const ProbedValues& values);

} // namespace celloom::ui
