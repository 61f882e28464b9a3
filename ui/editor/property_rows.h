// The inspector's editable rows: a cell's name, parameters, repeat and note; a graph's ports and hyper-parameters. Each commits one named edit.
#pragma once

#include "models/graph/edits.h"
#include "ui/editor/model_level.h"

#include <QCoreApplication>
#include <QString>

#include <functional>
#include <optional>

class QLineEdit;
class QVBoxLayout;
class QWidget;

namespace celloom::catalog {
struct ParamDef;
}

namespace celloom::ui {

/// One change of the level's graph, with the name that undo shows.
using GraphEdit = std::function<Status(graph::Document&, const graph::GraphName&)>;
using EditSink = std::function<void(const QString& name, const GraphEdit& edit)>;

class PropertyRows {
    Q_DECLARE_TR_FUNCTIONS(celloom::ui::PropertyRows)
public:
    /// `rows` belongs to `holder`; committed edits are handed to `sink` later, from the event loop, since it may rebuild the rows.
    PropertyRows(QWidget* holder, QVBoxLayout* rows, const ModelLevel& level, bool isChinese, EditSink sink)
        : m_holder(holder), m_rows(rows), m_level(level), m_isChinese(isChinese), m_sink(std::move(sink)) {}

    void addName(const graph::Cell& cell);
    /// Of a type of the catalogue, or of a composite: its hyper-parameters.
    void addParameters(const graph::Cell& cell, const LevelBox& box, const ModelAnalysis& analysis);
    void addRepeatAndNote(const graph::Cell& cell);
    void addPort(const graph::Port& port, graph::PortSide side);
    void addHyper(const graph::HyperParameter& hyper);
    void addNewHyper();

private:
    /// `commit` makes an edit of a text, or says what is wrong with it. `remark` stands behind the field: "= 64".
    using Commit = std::function<Result<GraphEdit>(const QString& text)>;
    QLineEdit* addLine(const QString& label, const QString& id, const QString& text, const QString& tip, const QString& remark,
                       const QString& stepName, const Commit& commit);
    void addParameter(const graph::Cell& cell, const catalog::ParamDef& def, const std::optional<graph::ResolvedValue>& resolved);
    void addChoice(const QString& label, const QString& id, const QStringList& choices, int current, const QString& tip, const QString& stepName,
                   const std::function<GraphEdit(int)>& commit);
    void addFlag(const QString& label, const QString& id, bool isOn, const QString& tip, const QString& stepName,
                 const std::function<GraphEdit(bool)>& commit);
    void addText(const QString& label, const QString& id, const QString& text, const QString& tip, bool isCode, const QString& stepName,
                 const std::function<GraphEdit(const QString&)>& commit);

    QWidget* m_holder;
    QVBoxLayout* m_rows;
    const ModelLevel& m_level;
    bool m_isChinese;
    EditSink m_sink;
};

/// The wheel goes on to the panel, which scrolls: a choice does not change under the pointer.
void letWheelPass(QWidget* field);

/// Escape in a field whose text was changed brings that back and ends the edit; the next one goes on to whoever holds the field.
void letEscapeRestore(QLineEdit* line, const QString& text, const std::function<void()>& restored = {});

/// "hidden / heads", "64", "0.5", "true": a value as one types it, and back. What is no number and no yes or no is text.
QString paramText(const graph::ParamValue& value);
graph::ParamValue paramFromText(const QString& text);

} // namespace celloom::ui
