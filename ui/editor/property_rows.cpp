#include "ui/editor/property_rows.h"

#include "models/base/text.h"
#include "models/catalog/catalog.h"
#include "models/graph/expression.h"
#include "models/graph/parameters.h"
#include "ui/common/format.h"
#include "ui/common/messages.h"
#include "ui/common/widgets.h"

#include <QCheckBox>
#include <QComboBox>
#include <QEvent>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLineEdit>
#include <QMetaObject>
#include <QPlainTextEdit>
#include <QPointer>
#include <QToolButton>
#include <QVBoxLayout>

namespace celloom::ui {

namespace {

constexpr int kLabelWidth = 104;

/// Calls back when a text field loses the keyboard.
class LeaveFilter : public QObject {
public:
    LeaveFilter(QObject* parent, std::function<void()> left) : QObject(parent), m_left(std::move(left)) {}
    bool eventFilter(QObject*, QEvent* event) override {
        if (event->type() == QEvent::FocusOut) m_left();
        return false;
    }

private:
    std::function<void()> m_left;
};

/// Keeps Escape for a field as long as that has something to restore.
class EscapeFilter : public QObject {
public:
    EscapeFilter(QObject* field, std::function<bool()> isChanged, std::function<void()> restore) : QObject(field), m_isChanged(std::move(isChanged)), m_restore(std::move(restore)) {}
    bool eventFilter(QObject*, QEvent* event) override {
        const bool isKey = event->type() == QEvent::KeyPress || event->type() == QEvent::ShortcutOverride;
        if (!isKey || static_cast<QKeyEvent*>(event)->key() != Qt::Key_Escape || !m_isChanged()) return false;
        event->accept(); // and no shortcut's
        if (event->type() == QEvent::KeyPress) m_restore();
        return true;
    }

private:
    std::function<bool()> m_isChanged;
    std::function<void()> m_restore;
};

QLabel* rowLabel(const QString& text, const QString& tip, QWidget* parent) {
    auto* label = new ElidedLabel(Qt::ElideRight, parent);
    setRole(label, "muted");
    label->setText(text);
    label->setFixedWidth(kLabelWidth);
    label->setToolTip(tip.isEmpty() ? text : tip);
    return label;
}

} // namespace

void letWheelPass(QWidget* field) {
    class Guard : public QObject {
    public:
        using QObject::QObject;
        bool eventFilter(QObject*, QEvent* event) override {
            if (event->type() != QEvent::Wheel) return false;
            event->ignore();
            return true;
        }
    };
    field->installEventFilter(new Guard(field));
}

void letEscapeRestore(QLineEdit* line, const QString& text, const std::function<void()>& restored) {
    line->installEventFilter(new EscapeFilter(
        line, [line, text] { return line->text() != text; },
        [line, text, restored] {
            line->setText(text);
            line->selectAll();
            setLook(line, "invalid", false);
            if (restored) restored();
        }));
}

QString paramText(const graph::ParamValue& value) {
    return fromUtf8(graph::toString(std::visit([](const auto& held) { return graph::ResolvedValue(held); }, value)));
}

graph::ParamValue paramFromText(const QString& typed) {
    const std::string text = toUtf8(typed.trimmed());
    std::int64_t whole = 0;
    double real = 0;
    if (readNumber(text, whole)) return whole;
    if (readNumber(text, real)) return real;
    if (text == "true" || text == "false") return text == "true";
    return text;
}

QLineEdit* PropertyRows::addLine(const QString& label, const QString& id, const QString& text, const QString& tip, const QString& remark,
                                 const QString& stepName, const Commit& commit) {
    auto* row = new QHBoxLayout;
    row->setSpacing(8);
    auto* name = rowLabel(label, tip, m_holder);
    auto* line = new QLineEdit(text, m_holder);
    line->setObjectName(id);
    line->setAccessibleName(label);
    line->setToolTip(tip);
    line->setCursorPosition(0);
    row->addWidget(name);
    row->addWidget(line, 1);
    if (!remark.isEmpty()) {
        auto* behind = makeLabel("small", m_holder);
        behind->setText(remark);
        row->addWidget(behind);
    }
    m_rows->addLayout(row);
    auto* problem = makeLabel("problem", m_holder);
    problem->setWordWrap(true);
    problem->hide();
    m_rows->addWidget(problem);
    letEscapeRestore(line, text, [problem] { problem->hide(); });
    QObject::connect(line, &QLineEdit::editingFinished, m_holder, [=, sink = m_sink] {
        if (line->text() == text) {
            line->setModified(false);
            setLook(line, "invalid", false);
            problem->hide();
            return;
        }
        auto edit = commit(line->text());
        setLook(line, "invalid", !edit.has_value());
        problem->setVisible(!edit.has_value());
        line->setModified(!edit.has_value()); // what is taken need not be kept
        if (edit) sink(stepName, *edit);
        else problem->setText(said(edit.error()));
    });
    return line;
}

void PropertyRows::addChoice(const QString& label, const QString& id, const QStringList& choices, int current, const QString& tip,
                             const QString& stepName, const std::function<GraphEdit(int)>& commit) {
    auto* row = new QHBoxLayout;
    row->setSpacing(8);
    auto* box = new QComboBox(m_holder);
    letWheelPass(box);
    box->setObjectName(id);
    box->setAccessibleName(label);
    box->setToolTip(tip);
    box->addItems(choices);
    box->setCurrentIndex(current);
    row->addWidget(rowLabel(label, tip, m_holder));
    row->addWidget(box, 1);
    m_rows->addLayout(row);
    QObject::connect(box, &QComboBox::activated, m_holder, [=, sink = m_sink](int index) {
        if (index != current) sink(stepName, commit(index));
    });
}

void PropertyRows::addFlag(const QString& label, const QString& id, bool isOn, const QString& tip, const QString& stepName,
                           const std::function<GraphEdit(bool)>& commit) {
    auto* row = new QHBoxLayout;
    row->setSpacing(8);
    auto* check = new QCheckBox(m_holder);
    check->setObjectName(id);
    check->setAccessibleName(label);
    check->setToolTip(tip);
    check->setChecked(isOn);
    row->addWidget(rowLabel(label, tip, m_holder));
    row->addWidget(check, 1);
    m_rows->addLayout(row);
    QObject::connect(check, &QCheckBox::toggled, m_holder, [=, sink = m_sink](bool on) { sink(stepName, commit(on)); });
}

void PropertyRows::addText(const QString& label, const QString& id, const QString& text, const QString& tip, bool isCode, const QString& stepName,
                           const std::function<GraphEdit(const QString&)>& commit) {
    m_rows->addWidget(rowLabel(label, tip, m_holder));
    auto* field = new QPlainTextEdit(text, m_holder);
    if (isCode) setRole(field, "mono");
    field->setObjectName(id);
    field->setAccessibleName(label);
    field->setToolTip(tip);
    field->setTabChangesFocus(!isCode);
    field->setFixedHeight(isCode ? 180 : 54);
    m_rows->addWidget(field);
    field->installEventFilter(new LeaveFilter(field, [=, sink = m_sink] {
        if (field->toPlainText() != text) sink(stepName, commit(field->toPlainText()));
    }));
    field->installEventFilter(new EscapeFilter(
        field, [field, text] { return field->toPlainText() != text; }, [field, text] { field->setPlainText(text); }));
}

// ---- cells ----

void PropertyRows::addName(const graph::Cell& cell) {
    const std::string old = cell.name;
    addLine(tr("Name"), QStringLiteral("name"), fromUtf8(old), tr("Letters, digits, _ and -. Checkpoints, rules and logs call the cell by it."), {},
            tr("Rename %1").arg(fromUtf8(old)), [old](const QString& text) -> Result<GraphEdit> {
                const std::string name = toUtf8(text.trimmed());
                if (name.empty()) return fail("A cell needs a name.");
                return GraphEdit([old, name](graph::Document& document, const graph::GraphName& graph) { return graph::renameCell(document, graph, old, name); });
            });
}

void PropertyRows::addParameter(const graph::Cell& cell, const catalog::ParamDef& def, const std::optional<graph::ResolvedValue>& resolved) {
    using enum catalog::ParamKind;
    const QString label = fromUtf8(def.name), id = QStringLiteral("param:") + label;
    const std::string cellName = cell.name, param = def.name;
    const QString stepName = tr("Change %1 of %2").arg(label, fromUtf8(cellName));
    QString tip = fromUtf8(m_isChinese && !def.helpZh.empty() ? def.helpZh : def.help);
    if (def.minimum > -1e299 || def.maximum < 1e299) tip += QLatin1Char('\n') + tr("From %1 to %2.").arg(fromUtf8(roundedText(def.minimum)), fromUtf8(roundedText(def.maximum)));
    if (!def.unit.empty()) tip += QLatin1Char(' ') + fromUtf8(def.unit);
    const auto given = cell.params.find(def.name);
    const auto set = [cellName, param](std::optional<graph::ParamValue> value) {
        return GraphEdit([=](graph::Document& document, const graph::GraphName& graph) { return graph::setParam(document, graph, cellName, param, value); });
    };
    const bool isNamed = given != cell.params.end() && std::holds_alternative<std::string>(given->second);
    if (def.kind == Flag && !isNamed) {
        const graph::ParamValue* value = given != cell.params.end() ? &given->second : def.standard ? &*def.standard : nullptr;
        const bool isOn = value && std::holds_alternative<bool>(*value) && std::get<bool>(*value);
        addFlag(label, id, isOn, tip, stepName, [set](bool on) { return set(on); });
        return;
    }
    if (def.kind == Choice) {
        QStringList choices;
        for (const std::string& choice : def.choices) choices << fromUtf8(choice);
        const graph::ParamValue* value = given != cell.params.end() ? &given->second : def.standard ? &*def.standard : nullptr;
        addChoice(label, id, choices, value ? static_cast<int>(choices.indexOf(paramText(*value))) : -1, tip, stepName,
                  [set, choices](int index) { return set(toUtf8(choices[index])); });
        return;
    }
    if (def.kind == Code) {
        addText(label, id, given == cell.params.end() ? QString() : paramText(given->second), tip, true, stepName,
                [set](const QString& text) { return set(toUtf8(text)); });
        return;
    }
    const QString shown = given != cell.params.end() ? paramText(given->second) : QString();
    const QString number = resolved ? fromUtf8(graph::toString(*resolved)) : QString();
    const bool isExpression = isNamed && number != shown && def.kind != Text;
    const graph::Scope scope = m_level.hyper;
    QLineEdit* line = addLine(label, id, shown, tip, isExpression && !number.isEmpty() && number.size() < 12 ? QStringLiteral("= ") + number : QString(), stepName,
                              [def, scope, set](const QString& text) -> Result<GraphEdit> {
                                  if (text.trimmed().isEmpty()) {
                                      if (!def.standard) return fail(def.name + " must be given.");
                                      return set(std::nullopt);
                                  }
                                  const bool isPlain = def.kind == Text || def.kind == Ports || def.kind == IntegerList;
                                  const graph::ParamValue value = isPlain ? graph::ParamValue(toUtf8(text)) : paramFromText(text);
                                  CELLOOM_TRY_STATUS(graph::resolveParam(def, value, scope));
                                  return set(value);
                              });
    if (def.standard) line->setPlaceholderText(paramText(*def.standard));
}

void PropertyRows::addParameters(const graph::Cell& cell, const LevelBox& box, const ModelAnalysis& analysis) {
    if (box.kind == BoxKind::Composite) {
        const auto composite = analysis.document.composites.find(cell.type);
        if (composite == analysis.document.composites.end()) return;
        for (const graph::HyperParameter& hyper : composite->second.hyper) {
            const auto given = cell.params.find(hyper.name);
            const std::string cellName = cell.name, param = hyper.name;
            const graph::Scope scope = m_level.hyper;
            const QString stepName = tr("Change %1 of %2").arg(fromUtf8(param), fromUtf8(cellName)), id = QStringLiteral("param:") + fromUtf8(param);
            if (const graph::ParamValue& now = given == cell.params.end() ? hyper.value : given->second; std::holds_alternative<bool>(now)) {
                addFlag(fromUtf8(param), id, std::get<bool>(now), said(hyper.help), stepName, [=](bool on) {
                    return GraphEdit([=](graph::Document& document, const graph::GraphName& graph) { return graph::setParam(document, graph, cellName, param, on); });
                });
                continue;
            }
            QString remark; // what an expression comes to
            if (given != cell.params.end() && std::holds_alternative<std::string>(given->second))
                if (const auto value = graph::evaluate(std::get<std::string>(given->second), scope)) remark = QStringLiteral("= ") + fromUtf8(graph::toString(*value));
            QLineEdit* line = addLine(fromUtf8(param), id, given == cell.params.end() ? QString() : paramText(given->second), said(hyper.help), remark, stepName,
                                      [=](const QString& text) -> Result<GraphEdit> {
                                          std::optional<graph::ParamValue> value;
                                          if (!text.trimmed().isEmpty()) value = paramFromText(text);
                                          if (value && std::holds_alternative<std::string>(*value))
                                              CELLOOM_TRY_STATUS(graph::evaluate(std::get<std::string>(*value), scope));
                                          return GraphEdit([=](graph::Document& document, const graph::GraphName& graph) {
                                              return graph::setParam(document, graph, cellName, param, value);
                                          });
                                      });
            line->setPlaceholderText(paramText(hyper.value));
        }
        return;
    }
    const catalog::CellType* type = catalog::find(cell.type);
    if (!type) return;
    for (const catalog::ParamDef& def : type->params) {
        std::optional<graph::ResolvedValue> resolved;
        const auto given = cell.params.find(def.name);
        if (given != cell.params.end() || def.standard)
            if (auto value = graph::resolveParam(def, given != cell.params.end() ? given->second : *def.standard, m_level.hyper)) resolved = std::move(*value);
        addParameter(cell, def, resolved);
    }
}

void PropertyRows::addRepeatAndNote(const graph::Cell& cell) {
    const std::string name = cell.name;
    const graph::Scope scope = m_level.hyper;
    QLineEdit* line = addLine(tr("Repeat"), QStringLiteral("repeat"), fromUtf8(cell.repeat),
                              tr("So many of it in a row, each fed by the one before; a number or an expression. Empty: one."), {}, tr("Repeat %1").arg(fromUtf8(name)),
                              [name, scope](const QString& text) -> Result<GraphEdit> {
                                  const std::string repeat = toUtf8(text.trimmed());
                                  if (!repeat.empty()) CELLOOM_TRY_STATUS(graph::evaluateInteger(repeat, scope));
                                  return GraphEdit([=](graph::Document& document, const graph::GraphName& graph) { return graph::setRepeat(document, graph, name, repeat); });
                              });
    line->setPlaceholderText(QStringLiteral("1"));
    addText(tr("Note"), QStringLiteral("note"), fromUtf8(cell.note), tr("For people to read; it goes with the document and into the code."), false,
            tr("Change the note of %1").arg(fromUtf8(name)), [name](const QString& text) {
                return GraphEdit([name, note = toUtf8(text)](graph::Document& document, const graph::GraphName& graph) { return graph::setNote(document, graph, name, note); });
            });
}

// ---- the graph's own ----

void PropertyRows::addPort(const graph::Port& port, graph::PortSide side) {
    const auto change = [old = port.name, side](const graph::Port& changed) {
        return GraphEdit([=](graph::Document& document, const graph::GraphName& graph) { return graph::changePort(document, graph, side, old, changed); });
    };
    const QString stepName = tr("Change the port %1").arg(fromUtf8(port.name));
    addLine(tr("Name"), QStringLiteral("name"), fromUtf8(port.name), tr("Data columns and losses call it by this name."), {}, stepName,
            [=](const QString& text) -> Result<GraphEdit> {
                graph::Port changed = port;
                changed.name = toUtf8(text.trimmed());
                return change(changed);
            });
    QStringList dims;
    for (const std::string& dim : port.shape) dims << fromUtf8(dim);
    addLine(tr("Shape"), QStringLiteral("shape"), dims.join(QStringLiteral(", ")),
            tr("Numbers, hyper-parameters and free letters, parted by commas: B, T, hidden. Empty: any shape."), {}, stepName,
            [=](const QString& text) -> Result<GraphEdit> {
                graph::Port changed = port;
                changed.shape.clear();
                QString plain = text.trimmed();
                if (plain.startsWith(QLatin1Char('[')) && plain.endsWith(QLatin1Char(']'))) plain = plain.mid(1, plain.size() - 2);
                if (!plain.trimmed().isEmpty())
                    for (const QString& dim : plain.split(QLatin1Char(','))) changed.shape.push_back(toUtf8(dim.trimmed()));
                for (const std::string& dim : changed.shape)
                    if (dim.empty()) return fail("A dimension is missing.", "Write for example B, T, 64.");
                return change(changed);
            });
    const QStringList types{QStringLiteral("float"), QStringLiteral("int64"), QStringLiteral("bool")};
    addChoice(tr("Type"), QStringLiteral("dtype"), types, static_cast<int>(types.indexOf(fromUtf8(port.dtype))), tr("float follows the run's precision."), stepName,
              [=](int index) {
                  graph::Port changed = port;
                  changed.dtype = toUtf8(types[index]);
                  return change(changed);
              });
}

void PropertyRows::addHyper(const graph::HyperParameter& hyper) {
    const auto found = m_level.hyper.find(hyper.name);
    const QString number = found == m_level.hyper.end() ? QString() : fromUtf8(graph::toString(found->second));
    const QString shown = paramText(hyper.value);
    graph::Scope scope = m_level.hyper;
    scope.erase(hyper.name);
    QLineEdit* line = addLine(fromUtf8(hyper.name), QStringLiteral("hyper:") + fromUtf8(hyper.name), shown,
                              said(hyper.help), number == shown || number.isEmpty() ? QString() : QStringLiteral("= ") + number,
                              tr("Change %1").arg(fromUtf8(hyper.name)), [hyper, scope](const QString& text) -> Result<GraphEdit> {
                                  if (text.trimmed().isEmpty()) // taken away
                                      return GraphEdit([name = hyper.name](graph::Document& document, const graph::GraphName& graph) { return graph::removeHyper(document, graph, name); });
                                  graph::HyperParameter changed = hyper;
                                  changed.value = paramFromText(text);
                                  if (const auto* expression = std::get_if<std::string>(&changed.value)) CELLOOM_TRY_STATUS(graph::evaluate(*expression, scope));
                                  return GraphEdit([=](graph::Document& document, const graph::GraphName& graph) { return graph::changeHyper(document, graph, hyper.name, changed); });
                              });
    if (line->toolTip().isEmpty()) line->setToolTip(tr("A number, or an expression over the others. Emptied, it is removed."));
}

void PropertyRows::addNewHyper() {
    addLine(tr("New"), QStringLiteral("new hyper"), {}, tr("Adds a hyper-parameter: name = value, as in hidden = 64."), {}, tr("Add a hyper-parameter"),
            [](const QString& text) -> Result<GraphEdit> {
                const auto equals = text.indexOf(QLatin1Char('='));
                if (equals < 0) return fail("Write name = value.", "For example hidden = 64.");
                const graph::HyperParameter hyper{toUtf8(text.left(equals).trimmed()), paramFromText(text.mid(equals + 1)), {}};
                return GraphEdit([=](graph::Document& document, const graph::GraphName& graph) { return graph::addHyper(document, graph, hyper); });
            })
        ->setPlaceholderText(tr("name = value"));
}

} // namespace celloom::ui
