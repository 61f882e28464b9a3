// What a new model can begin from: nothing, a template, a preset of a family, the network of an example. A list with a search; Enter takes the chosen one.
#pragma once

#include "models/base/result.h"
#include "models/graph/document.h"

#include <QDialog>
#include <QString>

#include <vector>

class QLabel;
class QLineEdit;
class QPushButton;
class QTreeWidget;

namespace celloom::ui {

struct Services;

/// One thing to begin from.
struct ModelChoice {
    enum class Kind { Empty, Template, Preset, Example } kind = Kind::Empty;
    QString name;    // as it is listed; of a preset or template what a recipe calls it
    QString summary; // one sentence
    QString details; // parameters, where its numbers come from
    QString recipe;  // of an example: its file
};

/// All of them, as they are listed: the empty graph, templates, presets, the examples among the recipes of a folder (empty: none).
std::vector<ModelChoice> modelChoices(const QString& recipesFolder, bool isChinese);
/// Those that hold every word, in name, summary or details.
std::vector<ModelChoice> searchChoices(const std::vector<ModelChoice>& choices, const QString& words);
/// Of an example with the overrides of its recipe written into the graph. An empty graph for Kind::Empty.
Result<graph::Document> makeChosen(const ModelChoice& choice);

class NewModelDialog : public QDialog {
    Q_OBJECT
public:
    explicit NewModelDialog(Services& services, QWidget* parent = nullptr);

Q_SIGNALS:
    void chosen(const celloom::ui::ModelChoice& choice);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void fill();
    void describe();
    void take();
    [[nodiscard]] const ModelChoice* current() const;

    Services& m_services;
    std::vector<ModelChoice> m_all, m_shown;
    QLineEdit* m_search;
    QTreeWidget* m_list;
    QLabel *m_title, *m_summary, *m_details;
    QPushButton* m_create;
};

} // namespace celloom::ui
