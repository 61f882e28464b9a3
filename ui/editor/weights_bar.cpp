#include "ui/editor/weights_bar.h"

#include "models/base/text.h"
#include "models/families/families.h"
#include "models/families/folder_contents.h"
#include "ui/common/format.h"
#include "ui/common/theme.h"
#include "ui/common/widgets.h"

#include <QCoreApplication>
#include <QEvent>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QPushButton>

#include <map>

namespace celloom::ui {

namespace {

constexpr std::size_t kNamed = 3; // in the line; the tooltip has more

std::map<std::string, std::vector<std::int64_t>> parametersOf(const graph::ExpandedModel& model) {
    std::map<std::string, std::vector<std::int64_t>> out;
    for (const graph::CellInstance& cell : model.cells)
        for (const graph::WeightSpec& weight : cell.weights) out[cell.path + '.' + weight.name] = weight.dims;
    return out;
}

std::string shapeText(const std::vector<std::int64_t>& dims) {
    std::vector<std::string> texts;
    for (const std::int64_t dim : dims) texts.push_back(std::to_string(dim));
    return '[' + joined(texts) + ']';
}

} // namespace

WeightsFit compareWeights(const graph::ExpandedModel& folder, const graph::ExpandedModel& model) {
    WeightsFit fit;
    auto there = parametersOf(folder);
    for (const auto& [path, dims] : parametersOf(model)) {
        const auto found = there.find(path);
        if (found == there.end()) {
            fit.missing.push_back(path);
            continue;
        }
        if (found->second == dims) ++fit.fitting;
        else fit.resized.push_back(path + ' ' + shapeText(dims) + ", " + toUtf8(QCoreApplication::translate("celloom::ui::WeightsBar", "there")) + ' ' + shapeText(found->second));
        there.erase(found);
    }
    for (const auto& [path, dims] : there) fit.unused.push_back(path);
    return fit;
}

WeightsBar::WeightsBar(Theme& theme, QWidget* parent) : QFrame(parent), m_theme(theme) {
    setProperty("role", QStringLiteral("bar"));
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(14, 3, 10, 3);
    layout->setSpacing(8);
    m_icon = new QLabel(this);
    m_text = new ElidedLabel(Qt::ElideRight, this);
    m_action = new QPushButton(this);
    setRole(m_action, "link");
    layout->addWidget(m_icon);
    layout->addWidget(m_text, 1);
    layout->addWidget(m_action);
    connect(m_action, &QPushButton::clicked, this, [this] {
        if (m_areUsed) Q_EMIT dropRequested();
        else Q_EMIT useRequested(m_path, m_folder && m_folder->hasTokenizer);
    });
    connect(&theme, &Theme::changed, this, &WeightsBar::refresh);
    m_texts.add([this] { refresh(); });
}

std::shared_ptr<const WeightsBar::Folder> WeightsBar::readFolder(const QString& path) {
    const auto contents = families::folderContents(toPath(path));
    auto document = families::openModel(pathText(contents.path).toStdString());
    if (!document) return nullptr;
    graph::Expansion expansion = graph::expand(*document);
    if (!expansion.ok()) return nullptr;
    return std::make_shared<const Folder>(Folder{std::move(expansion.model), !contents.weights.empty(), contents.hasTokenizer});
}

void WeightsBar::setFolder(const QString& folder, bool areUsed) {
    m_areUsed = areUsed;
    if (folder != m_path) {
        m_path = folder;
        m_folder = nullptr;
        if (!folder.isEmpty())
            m_background.run([folder] { return readFolder(folder); },
                             [this, folder](std::shared_ptr<const Folder> read) {
                                 if (m_path != folder) return;
                                 m_folder = std::move(read);
                                 refresh();
                             });
    }
    refresh();
}

void WeightsBar::setAnalysis(const ModelAnalysisPtr& analysis) {
    m_analysis = analysis;
    refresh();
}

QString WeightsBar::listed(const WeightsFit& fit) const {
    QStringList parts;
    const auto add = [&](const QString& what, const std::vector<std::string>& names, std::size_t count) {
        if (!names.empty()) parts.append(what.arg(names.size()) + QLatin1Char(' ') + fromUtf8(joined(names, count)));
    };
    add(tr("without weights (%1):"), fit.missing, kNamed);
    add(tr("of another size (%1):"), fit.resized, kNamed);
    add(tr("left over (%1):"), fit.unused, kNamed);
    return parts.join(QStringLiteral("; "));
}

void WeightsBar::refresh() {
    const bool isKnown = m_folder && m_folder->hasWeights && m_analysis && !m_analysis->openError;
    setVisible(isKnown);
    m_action->setText(m_areUsed ? tr("Begin from scratch") : tr("Begin with these weights"));
    m_action->setToolTip(m_areUsed ? tr("Takes the weights out of the recipe; the graph stays as it is") : tr("Sets the recipe's initial weights, and its tokenizer where the folder has one"));
    if (!isKnown) return;
    const QString name = QFileInfo(m_path).fileName();
    const bool isComplete = m_analysis->expansion.ok();
    const WeightsFit fit = isComplete ? compareWeights(m_folder->model, m_analysis->expansion.model) : WeightsFit{};
    const bool isBroken = m_areUsed && isComplete && !fit.isWhole();
    QString text;
    if (!m_areUsed) text = tr("The weights of %1 are not used: a run of this model begins from scratch.").arg(name);
    else if (!isComplete) text = tr("A run begins with the weights of %1. Whether they fit is known once the model has no errors.").arg(name);
    else if (isBroken) text = tr("The weights of %1 do not fit any more, and a run would be refused: %2").arg(name, listed(fit));
    else text = tr("A run begins with the weights of %1: all %2 tensors fit. Cells without weights may come and go; adding, removing, renaming or resizing one with weights breaks this.").arg(name).arg(fit.fitting);
    m_text->setText(text);
    m_icon->setPixmap(m_theme.icon(isBroken ? QStringLiteral("warning") : QStringLiteral("check"), isBroken ? "warning" : m_areUsed ? "good" : "muted").pixmap(16, 16));
    m_icon->setVisible(m_areUsed && isComplete);
}

void WeightsBar::changeEvent(QEvent* event) {
    QFrame::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) m_texts.refresh();
}

} // namespace celloom::ui
