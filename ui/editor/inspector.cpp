#include "ui/editor/inspector.h"

#include "models/catalog/catalog.h"
#include "models/graph/edits.h"
#include "ui/common/format.h"
#include "ui/common/recipe_document.h"
#include "ui/common/widgets.h"
#include "ui/editor/treatment_rows.h"
#include "ui/shell/language.h"
#include "ui/shell/services.h"

#include <QApplication>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

namespace celloom::ui {

namespace {

constexpr std::size_t kShownFiles = 6, kShownRemarks = 12;

} // namespace

std::vector<Badge> treatmentBadges(const ModelAnalysis& analysis, const std::vector<std::size_t>& instances) {
    const auto& table = analysis.treatment.cells;
    if (table.empty()) return {};
    std::size_t weighty = 0, frozen = 0, lora = 0, whole = 0, biases = 0, recompute = 0;
    std::set<std::string> types;
    std::set<std::int64_t> ranks;
    for (std::size_t index : instances) {
        const recipe::Treatment& treatment = table[index];
        const bool hasWeights = !analysis.expansion.model.cells[index].weights.empty(); // nothing else learns or is frozen
        weighty += hasWeights;
        if (treatment.lora) ranks.insert(treatment.lora->rank);
        lora += treatment.lora.has_value();
        whole += hasWeights && treatment.saveWhole;
        frozen += hasWeights && treatment.frozen && !treatment.lora && !treatment.saveWhole;
        biases += hasWeights && treatment.trainBias;
        recompute += treatment.recompute;
        if (!treatment.dtype.empty()) types.insert(treatment.dtype);
    }
    std::vector<Badge> badges;
    const auto add = [&](const QString& name, std::size_t count, std::size_t all, bool isQuiet = false) {
        if (count > 0) badges.push_back({count == all || instances.size() == 1 ? name : QStringLiteral("%1 %2").arg(name).arg(count), isQuiet});
    };
    const QString adapters = ranks.size() == 1 ? QCoreApplication::translate("celloom::ui::Inspector", "LoRA r=%1").arg(*ranks.begin())
                                               : QCoreApplication::translate("celloom::ui::Inspector", "LoRA");
    // A count after "r=8" would read as one number.
    if (ranks.size() == 1 && lora < weighty)
        badges.push_back({QStringLiteral("%1 × %2").arg(adapters).arg(lora)});
    else
        add(adapters, lora, weighty);
    add(QCoreApplication::translate("celloom::ui::Inspector", "learns whole"), whole, weighty);
    add(QCoreApplication::translate("celloom::ui::Inspector", "bias learns"), biases, weighty);
    add(QCoreApplication::translate("celloom::ui::Inspector", "frozen"), frozen, weighty, true);
    add(QCoreApplication::translate("celloom::ui::Inspector", "recompute"), recompute, instances.size(), true);
    for (const std::string& type : types) badges.push_back({fromUtf8(type)});
    return badges;
}

Inspector::Inspector(Services& services, QWidget* parent) : QFrame(parent), m_services(services) {
    setProperty("role", QStringLiteral("panel"));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    auto* scroll = new QScrollArea(this);
    scroll->setWidgetResizable(true);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setFocusPolicy(Qt::NoFocus);
    layout->addWidget(scroll);
    auto* holder = new QFrame(scroll);
    holder->setProperty("role", QStringLiteral("panel"));
    m_holder = new QVBoxLayout(holder);
    m_holder->setContentsMargins(16, 14, 16, 14);
    scroll->setWidget(holder);
    connect(qApp, &QApplication::focusChanged, this, &Inspector::catchUp, Qt::QueuedConnection); // the field that is left goes by it
}

void Inspector::show(const ModelAnalysisPtr& analysis, const ModelLevel& level, std::optional<std::size_t> box) {
    const auto nameOf = [](const ModelLevel& of, std::optional<std::size_t> at) { return at ? std::pair(of.boxes[*at].kind, of.boxes[*at].name) : std::pair(BoxKind::Cell, std::string()); };
    const bool isSamePlace = m_analysis && !m_analysis->openError && level.graphName == m_level.graphName && level.prefix == m_level.prefix && nameOf(level, box) == nameOf(m_level, m_box);
    m_analysis = analysis;
    m_level = level;
    m_box = box;
    m_isBehind = isSamePlace && isTyping();
    if (!m_isBehind) rebuild();
}

/// What is written is not committed yet.
bool Inspector::isTyping() const {
    const QWidget* field = m_content ? m_content->focusWidget() : nullptr;
    if (!field || !field->hasFocus()) return false;
    if (const auto* line = qobject_cast<const QLineEdit*>(field); line && line->isModified()) return true;
    if (const auto* text = qobject_cast<const QPlainTextEdit*>(field); text && text->document()->isModified()) return true;
    for (const QWidget* above = field; above && above != m_content; above = above->parentWidget())
        if (above->objectName() == QLatin1String(TreatmentRows::kForm) && above->isVisible()) return true;
    return false;
}

void Inspector::catchUp() {
    if (!m_isBehind || isTyping()) return;
    m_isBehind = false;
    rebuild();
}

void Inspector::clear() {
    m_analysis.reset();
    rebuild();
}

void Inspector::setFooter(QWidget* footer) {
    m_holder->addWidget(footer);
}

void Inspector::rebuild() {
    // The field that has the keyboard keeps it: an edit rebuilds them all.
    const QWidget* focused = m_content ? m_content->focusWidget() : nullptr;
    const QString focusedName = focused && focused->hasFocus() ? focused->objectName() : QString();
    const auto* oldLine = qobject_cast<const QLineEdit*>(focused);
    const bool wasWhole = oldLine && oldLine->selectedText() == oldLine->text(); // as Tab leaves it: what is typed replaces it
    const int cursor = oldLine ? oldLine->cursorPosition() : 0;
    fill();
    m_content->show(); // at once: what is not shown yet cannot have the keyboard
    if (focusedName.isEmpty()) return;
    auto* field = m_content->findChild<QWidget*>(focusedName);
    if (!field) return;
    field->setFocus();
    if (auto* line = qobject_cast<QLineEdit*>(field)) {
        line->setCursorPosition(cursor);
        if (wasWhole) line->selectAll();
    }
}

void Inspector::fill() {
    delete m_content;
    m_content = new QWidget(this);
    m_rows = new QVBoxLayout(m_content);
    m_rows->setContentsMargins(0, 0, 0, 0);
    m_rows->setSpacing(5);
    m_holder->insertWidget(0, m_content, 1);
    if (!m_analysis) {
        m_rows->addStretch(1);
        return;
    }
    const graph::ExpandedModel& model = m_analysis->expansion.model;
    const bool isChinese = m_services.language.isChinese();
    if (!m_box) {
        const bool isMain = m_level.prefix.empty();
        addTitle(fromUtf8(m_level.graph->name), isMain ? tr("model") : tr("composite"),
                 fromUtf8(m_level.prefix.substr(0, m_level.prefix.size() - (isMain ? 0 : 1))), fromUtf8(m_level.graph->note));
        if (isMain) addFolder(); // what one wants to know first of a folder that was opened just now
        addHyper(m_level.graph->hyper, isMain);
        std::vector<std::size_t> all;
        for (std::size_t i = 0; i < model.cells.size(); ++i) {
            if (model.cells[i].path.compare(0, m_level.prefix.size(), m_level.prefix) == 0) all.push_back(i);
        }
        std::int64_t parameters = 0;
        for (const LevelBox& box : m_level.boxes) parameters += box.parameters;
        addCosts(all, parameters);
        if (isMain && !m_analysis->costs.empty()) addWeightSizes(parameters);
        addTreatment(all, isMain ? std::string() : m_level.prefix.substr(0, m_level.prefix.size() - 1));
    } else {
        const LevelBox& box = m_level.boxes[*m_box];
        const catalog::CellType* about = box.kind == BoxKind::Cell ? catalog::find(box.type) : nullptr;
        QString summary = about ? fromUtf8(isChinese && !about->summaryZh.empty() ? about->summaryZh : about->summary) : QString();
        if (box.kind == BoxKind::Composite) summary = tr("A composite: double-click or Enter steps in.");
        const QString type = box.kind == BoxKind::Input ? tr("input") : box.kind == BoxKind::Output ? tr("output") : fromUtf8(box.type);
        addTitle(fromUtf8(box.name), type, fromUtf8(box.path), summary);
        addBox(box);
        addPorts(box);
        if (!box.instances.empty()) {
            addCosts(box.instances, box.parameters);
            addTreatment(box.instances, box.path);
        }
    }
    m_rows->addStretch(1);
}

void Inspector::addTitle(const QString& title, const QString& type, const QString& path, const QString& summary) {
    auto* name = makeLabel("brand", m_content);
    name->setText(title);
    name->setWordWrap(true);
    m_rows->addWidget(name);
    auto* kind = makeLabel("muted", m_content);
    kind->setText(type);
    m_rows->addWidget(kind);
    if (!path.isEmpty()) {
        auto* where = makeLabel("mono", m_content);
        where->setText(path);
        where->setWordWrap(true);
        where->setTextInteractionFlags(Qt::TextSelectableByMouse);
        m_rows->addWidget(where);
    }
    if (!summary.isEmpty()) {
        auto* text = makeLabel("muted", m_content);
        text->setText(summary);
        text->setWordWrap(true);
        m_rows->addWidget(text);
    }
    m_rows->addSpacing(6);
}

/// What comes in and what goes out.
void Inspector::addPorts(const LevelBox& box) {
    if (box.kind == BoxKind::Input || box.kind == BoxKind::Output) return;
    const auto add = [this](const QString& title, const std::vector<LevelPort>& ports) {
        if (ports.empty()) return;
        addHeading(title);
        for (const LevelPort& port : ports) {
            const QString shape = port.shape ? fromUtf8(graph::toString(*port.shape)) : port.isOptional ? tr("optional, not wired") : tr("not known");
            addPair(fromUtf8(port.name), shape, fromUtf8(port.dtype));
        }
    };
    add(tr("Inputs"), box.inputs);
    add(tr("Outputs"), box.outputs);
}

void Inspector::addHeading(const QString& text) {
    m_rows->addSpacing(6);
    m_rows->addWidget(makeLine(m_content));
    m_rows->addSpacing(4);
    auto* heading = makeLabel("title", m_content);
    heading->setText(text);
    m_rows->addWidget(heading);
}

void Inspector::addPair(const QString& name, const QString& value, const QString& tip) {
    auto* row = new QHBoxLayout;
    row->setSpacing(10);
    auto* left = makeLabel("muted", m_content);
    left->setText(name);
    auto* right = makeLabel("value", m_content);
    right->setText(value);
    right->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    right->setWordWrap(true);
    right->setTextInteractionFlags(Qt::TextSelectableByMouse);
    left->setToolTip(tip);
    row->addWidget(left);
    row->addWidget(right, 1);
    m_rows->addLayout(row);
}

/// Edits are handed on from the event loop: they rebuild the rows that they come from.
PropertyRows Inspector::rows() {
    return {m_content, m_rows, m_level, m_services.language.isChinese(), [this](const QString& name, const GraphEdit& edit) {
                QMetaObject::invokeMethod(this, [this, name, edit] { Q_EMIT edited(name, edit); }, Qt::QueuedConnection);
            }};
}

void Inspector::addHyper(const std::vector<graph::HyperParameter>& hyper, bool isMain) {
    addHeading(tr("Hyper-parameters"));
    PropertyRows fields = rows();
    for (const graph::HyperParameter& one : hyper) {
        fields.addHyper(one);
        if (isMain && m_analysis->vocabularyFollowsTokenizer && one.name == "vocab")
            addNote(tr("The run's vocabulary follows the tokenizer that it trains."));
    }
    fields.addNewHyper();
}

/// A cell's fields, or those of a port of the graph itself.
void Inspector::addBox(const LevelBox& box) {
    PropertyRows fields = rows();
    if (box.kind == BoxKind::Input || box.kind == BoxKind::Output) {
        const bool isInput = box.kind == BoxKind::Input;
        for (const graph::Port& port : isInput ? m_level.graph->inputs : m_level.graph->outputs)
            if (port.name == box.name) fields.addPort(port, isInput ? graph::PortSide::Input : graph::PortSide::Output);
        return;
    }
    const graph::Cell* cell = graph::findCell(*m_level.graph, box.name);
    if (!cell) return;
    fields.addName(*cell);
    fields.addParameters(*cell, box, *m_analysis);
    fields.addRepeatAndNote(*cell);
}

void Inspector::addCosts(const std::vector<std::size_t>& instances, std::int64_t parameters) {
    if (m_analysis->costs.empty()) return;
    graph::Cost sum;
    for (std::size_t index : instances) {
        sum.forwardFlops += m_analysis->costs[index].forwardFlops;
        sum.activationValues += m_analysis->costs[index].activationValues;
    }
    const auto whole = static_cast<double>(m_analysis->expansion.model.parameterCount());
    addHeading(tr("What it costs"));
    const QString share = whole > 0 ? QStringLiteral(" (%1 %)").arg(100.0 * static_cast<double>(parameters) / whole, 0, 'f', 1) : QString();
    addPair(tr("Parameters"), Format::shortCount(static_cast<double>(parameters)) + share, Format::count(parameters));
    if (!m_analysis->trainable.empty()) {
        std::int64_t learning = 0;
        for (std::size_t index : instances) learning += m_analysis->trainable[index];
        addPair(tr("Trainable"), Format::shortCount(static_cast<double>(learning)), tr("%1, adapters included").arg(Format::count(learning)));
    }
    const bool hasTokens = m_analysis->hasTokens();
    addPair(hasTokens ? tr("FLOPs per token, forward") : tr("FLOPs per row, forward"), Format::shortCount(sum.forwardFlops / m_analysis->costUnits()));
    addPair(tr("Activations in float32"), Format::bytes(static_cast<double>(sum.activationValues) * 4),
            hasTokens ? tr("Kept for the backward pass at batch %1, sequence %2").arg(m_analysis->batch).arg(m_analysis->sequence)
                      : tr("Kept for the backward pass at batch %1").arg(m_analysis->batch));
}

/// What the weights alone take, in memory and on disk.
void Inspector::addWeightSizes(std::int64_t parameters) {
    const auto count = static_cast<double>(parameters);
    addPair(tr("Weights in float32"), Format::bytes(4 * count));
    addPair(tr("in bfloat16 or float16"), Format::bytes(2 * count));
}

void Inspector::addNote(const QString& text) {
    auto* label = makeLabel("muted", m_content);
    label->setText(text);
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_rows->addWidget(label);
}

namespace {

QString remarkText(const families::NotUnderstood& remark) {
    using Kind = families::NotUnderstood::Kind;
    const QString what = fromUtf8(remark.what);
    switch (remark.kind) {
    case Kind::ConfigKey:
        return Inspector::tr("config.json: %1 is not read.").arg(what);
    case Kind::RemoteCode:
        return Inspector::tr("%1: Python code, which is never run.").arg(what);
    case Kind::MissingShard:
        return Inspector::tr("%1 is named by the index, but not there.").arg(what);
    case Kind::Tokenizer:
        return Inspector::tr("%1: a tokenizer of a kind that is not read; only tokenizer.model is.").arg(what);
    case Kind::ForeignWeights:
        return Inspector::tr("%1: weights in a format that is not read.").arg(what);
    }
    return what;
}

/// A graph's own file with nothing of a model's folder around it.
bool isLoneGraph(const std::string& source, const families::FolderContents& folder) {
    const std::string name = std::filesystem::path(source).filename().string();
    return name.ends_with(".cells.json") && name != "model.cells.json" && folder.weights.empty() && !folder.hasTokenizer && folder.notUnderstood.empty();
}

} // namespace

/// What lies in the model's folder, and what of it was not understood.
void Inspector::addFolder() {
    if (!m_analysis->folder) return;
    const families::FolderContents& folder = *m_analysis->folder;
    const bool isLone = isLoneGraph(m_analysis->source, folder);
    addHeading(isLone ? tr("File") : tr("Folder"));
    auto* where = makeLabel("mono", m_content);
    where->setText(isLone ? fromUtf8(m_analysis->source) : pathText(folder.path));
    where->setWordWrap(true);
    where->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_rows->addWidget(where);
    if (m_analysis->ownParameters > 0 && m_analysis->ownParameters != m_analysis->expansion.model.parameterCount())
        addPair(tr("Parameters as it is there"), Format::shortCount(static_cast<double>(m_analysis->ownParameters)),
                tr("The recipe changes it, for example to the tokenizer's vocabulary: %1").arg(Format::count(m_analysis->ownParameters)));
    for (std::size_t i = 0; i < folder.weights.size() && i < kShownFiles; ++i)
        addPair(fromUtf8(folder.weights[i].name), Format::bytes(static_cast<double>(folder.weights[i].bytes)));
    if (folder.weights.size() > kShownFiles) addNote(tr("and %n more", "", static_cast<int>(folder.weights.size() - kShownFiles)));
    if (folder.weights.size() > 1) addPair(tr("Weights together"), Format::bytes(static_cast<double>(folder.weightBytes())));
    if (isLone) {
        addNote(tr("A Cell graph by itself, without weights or tokenizer: a model trained from it begins empty."));
        return;
    }
    if (folder.weights.empty()) addNote(tr("No weights: a model trained from this folder begins empty."));
    if (!folder.statedType.empty()) addPair(tr("Type, says config.json"), fromUtf8(folder.statedType));
    addPair(tr("Tokenizer"), folder.hasTokenizer ? QStringLiteral("tokenizer.model") : tr("none that can be read"));
    addStartButton(folder);

    addHeading(tr("Not understood"));
    if (folder.notUnderstood.empty()) addNote(tr("Nothing: everything in the folder that matters was read."));
    for (std::size_t i = 0; i < folder.notUnderstood.size() && i < kShownRemarks; ++i) addNote(remarkText(folder.notUnderstood[i]));
    if (folder.notUnderstood.size() > kShownRemarks) addNote(tr("and %n more", "", static_cast<int>(folder.notUnderstood.size() - kShownRemarks)));
    if (folder.isCut) addNote(tr("The folder has more files than were looked at."));
}

/// A run may begin with the folder's weights and its tokenizer, where it does not already.
void Inspector::addStartButton(const families::FolderContents& folder) {
    const recipe::Recipe& recipe = m_services.recipe.recipe();
    const std::string path = toUtf8(pathText(folder.path));
    if (folder.weights.empty()) return;
    addTuneButton(path, folder.hasTokenizer);
    if (recipe.text("model.weights") == path) {
        addNote(tr("The recipe's run begins with these weights."));
        return;
    }
    auto* button = new QPushButton(tr("Begin the run with these weights"), m_content);
    button->setToolTip(tr("Sets the recipe's initial weights, and its tokenizer where the folder has one"));
    const bool hasTokenizer = folder.hasTokenizer;
    connect(button, &QPushButton::clicked, this, [this, path, hasTokenizer] {
        m_services.recipe.asOneStep([&] {
            m_services.recipe.setValue(QStringLiteral("model.weights"), path);
            if (hasTokenizer) m_services.recipe.setValue(QStringLiteral("tokenizer.path"), path + "/tokenizer.model");
        });
    });
    m_rows->addWidget(button);
}

/// The recipe at hand becomes one that tunes this model.
void Inspector::addTuneButton(const std::string& path, bool hasTokenizer) {
    auto* button = new QPushButton(tr("Fine-tune this"), m_content);
    button->setToolTip(tr("Makes the recipe one that tunes this model, with its weights and its tokenizer, and shows it in Train"));
    connect(button, &QPushButton::clicked, this, [this, path, hasTokenizer] {
        m_services.recipe.asOneStep([&] {
            m_services.recipe.setValue(QStringLiteral("kind"), std::string("finetune"));
            m_services.recipe.setValue(QStringLiteral("model.weights"), path);
            m_services.recipe.setValue(QStringLiteral("tokenizer.path"), hasTokenizer ? path + "/tokenizer.model" : std::string());
        });
        Q_EMIT tuneRequested();
    });
    m_rows->addWidget(button);
}

/// How the recipe treats these cells, and by which of its rules.
void Inspector::addTreatment(const std::vector<std::size_t>& instances, const std::string& path) {
    if (m_analysis->treatment.cells.empty() && !m_analysis->ruleError) return;
    if (!recipe::trains(m_services.recipe.recipe())) return;
    addHeading(tr("Treatment"));
    const bool hasWeights = std::any_of(instances.begin(), instances.end(), [this](std::size_t index) {
        const auto& weights = m_analysis->expansion.model.cells[index].weights;
        return std::any_of(weights.begin(), weights.end(), [](const graph::WeightSpec& weight) { return !weight.isBuffer; });
    });
    QStringList texts;
    for (const Badge& badge : treatmentBadges(*m_analysis, instances)) texts.append(badge.text);
    auto* label = makeLabel("muted", m_content);
    label->setText(m_analysis->ruleError ? Format::error(*m_analysis->ruleError)
                   : !texts.isEmpty()    ? texts.join(QStringLiteral(" · "))
                   : hasWeights          ? tr("Trained in full, in the run's precision.")
                                         : tr("No weights"));
    label->setWordWrap(true);
    m_rows->addWidget(label);
    TreatmentRows rows(m_content, m_rows, m_analysis, m_services.recipe, m_services.theme);
    rows.addSources(instances);
    rows.addRules(instances);
    rows.addNewRule(path, instances);
}

/// A field keeps Escape as long as it has something to restore; after that one is back on the canvas.
void Inspector::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape) Q_EMIT left();
    else QFrame::keyPressEvent(event);
}

void Inspector::changeEvent(QEvent* event) {
    QFrame::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) rebuild();
}

} // namespace celloom::ui
