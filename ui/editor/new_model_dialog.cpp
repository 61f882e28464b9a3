#include "ui/editor/new_model_dialog.h"

#include "models/base/text.h"
#include "models/families/families.h"
#include "models/graph/expand.h"
#include "models/library/standard.h"
#include "models/recipe/recipe.h"
#include "ui/common/format.h"
#include "ui/common/theme.h"
#include "ui/common/widgets.h"
#include "ui/shell/language.h"
#include "ui/shell/services.h"

#include <QCoreApplication>
#include <QDialogButtonBox>
#include <QDir>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLineEdit>
#include <QPushButton>
#include <QTreeWidget>
#include <QVBoxLayout>

#include <algorithm>

namespace celloom::ui {

namespace {

constexpr int kIndexRole = Qt::UserRole;
constexpr int kListWidth = 300, kTextWidth = 300, kHeight = 420;

QString translated(const char* text) {
    return QCoreApplication::translate("celloom::ui::NewModelDialog", text);
}

QString groupOf(ModelChoice::Kind kind) {
    switch (kind) {
        case ModelChoice::Kind::Empty: return {};
        case ModelChoice::Kind::Template: return translated(QT_TRANSLATE_NOOP("celloom::ui::NewModelDialog", "Templates"));
        case ModelChoice::Kind::Preset: return translated(QT_TRANSLATE_NOOP("celloom::ui::NewModelDialog", "Language models"));
        case ModelChoice::Kind::Example: return translated(QT_TRANSLATE_NOOP("celloom::ui::NewModelDialog", "Networks of the examples"));
    }
    return {};
}

void addExamples(const QString& folder, std::vector<ModelChoice>& out) {
    for (const QFileInfo& file : QDir(folder).entryInfoList({QStringLiteral("*.json")}, QDir::Files, QDir::Name)) {
        const auto recipe = recipe::Recipe::load(toPath(file.absoluteFilePath()));
        if (!recipe) continue;
        const QString source = fromUtf8(recipe->withAbsolutePaths().text("model.source"));
        if (!families::isBuiltIn(toUtf8(source)) && !QFileInfo::exists(source)) continue; // a model that was not made yet
        const QString name = QFileInfo(source).fileName();
        const std::vector<std::string>& overrides = recipe->list("model.overrides");
        const QString summary = overrides.empty() ? translated(QT_TRANSLATE_NOOP("celloom::ui::NewModelDialog", "%1, as it is.")).arg(name)
                                                  : translated(QT_TRANSLATE_NOOP("celloom::ui::NewModelDialog", "%1 with %2.")).arg(name, fromUtf8(joined(overrides)));
        out.push_back({ModelChoice::Kind::Example, file.completeBaseName(), summary, {}, file.absoluteFilePath()});
    }
}

} // namespace

std::vector<ModelChoice> modelChoices(const QString& recipesFolder, bool isChinese) {
    const auto inLanguage = [isChinese](const std::string& english, const std::string& chinese) { return fromUtf8(isChinese && !chinese.empty() ? chinese : english); };
    std::vector<ModelChoice> out{{ModelChoice::Kind::Empty, translated(QT_TRANSLATE_NOOP("celloom::ui::NewModelDialog", "Empty graph")),
                                  translated(QT_TRANSLATE_NOOP("celloom::ui::NewModelDialog", "A canvas with nothing on it.")), {}, {}}};
    for (const library::Template& made : library::templates())
        out.push_back({ModelChoice::Kind::Template, fromUtf8(made.name), inLanguage(made.summary(), made.summaryZh), inLanguage(made.title, made.titleZh), {}});
    for (const families::Preset& preset : families::presets())
        out.push_back({ModelChoice::Kind::Preset, fromUtf8(preset.name), inLanguage(preset.summary, preset.summaryZh),
                       translated(QT_TRANSLATE_NOOP("celloom::ui::NewModelDialog", "%1 parameters")).arg(Format::shortCount(static_cast<double>(preset.parameters))) +
                           QLatin1Char('\n') + fromUtf8(preset.source),
                       {}});
    if (!recipesFolder.isEmpty()) addExamples(recipesFolder, out);
    return out;
}

std::vector<ModelChoice> searchChoices(const std::vector<ModelChoice>& choices, const QString& words) {
    const QStringList wanted = words.simplified().split(QLatin1Char(' '), Qt::SkipEmptyParts);
    std::vector<ModelChoice> out;
    std::copy_if(choices.begin(), choices.end(), std::back_inserter(out), [&](const ModelChoice& choice) {
        const QString text = choice.name + QLatin1Char('\n') + choice.summary + QLatin1Char('\n') + choice.details + QLatin1Char('\n') + groupOf(choice.kind);
        return std::all_of(wanted.begin(), wanted.end(), [&](const QString& word) { return text.contains(word, Qt::CaseInsensitive); });
    });
    std::stable_sort(out.begin(), out.end(), [&](const ModelChoice& a, const ModelChoice& b) { // names before what is only told
        const auto isNamed = [&](const ModelChoice& choice) { return !wanted.isEmpty() && choice.name.contains(wanted.front(), Qt::CaseInsensitive); };
        return isNamed(a) && !isNamed(b);
    });
    return out;
}

Result<graph::Document> makeChosen(const ModelChoice& choice) {
    if (choice.kind == ModelChoice::Kind::Empty) return graph::Document{};
    if (choice.kind != ModelChoice::Kind::Example) return families::openModel(toUtf8(choice.name));
    CELLOOM_TRY(recipe, recipe::Recipe::load(toPath(choice.recipe)));
    CELLOOM_TRY(overrides, recipe.modelOverrides());
    CELLOOM_TRY(document, families::openModel(recipe.withAbsolutePaths().text("model.source")));
    CELLOOM_TRY_STATUS(graph::applyOverrides(document, overrides));
    document.main.name = toUtf8(choice.name);
    return document;
}

NewModelDialog::NewModelDialog(Services& services, QWidget* parent) : QDialog(parent), m_services(services) {
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(tr("New model"));
    m_all = modelChoices(services.recipesFolder, services.language.isChinese());
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(16, 14, 16, 14);
    layout->setSpacing(10);
    m_search = new QLineEdit(this);
    m_search->setClearButtonEnabled(true);
    m_search->setPlaceholderText(tr("Search templates, presets and examples"));
    m_search->setAccessibleName(m_search->placeholderText());
    m_search->installEventFilter(this);
    layout->addWidget(m_search);
    auto* row = new QHBoxLayout;
    row->setSpacing(16);
    m_list = new QTreeWidget(this);
    m_list->setHeaderHidden(true);
    m_list->setRootIsDecorated(false);
    m_list->setIndentation(10);
    m_list->setUniformRowHeights(true);
    m_list->setFixedWidth(kListWidth);
    m_list->setMinimumHeight(kHeight);
    m_list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_list->setProperty("role", QStringLiteral("boxed"));
    m_list->setAccessibleName(tr("What to begin from"));
    row->addWidget(m_list);
    auto* text = new QVBoxLayout;
    text->setSpacing(8);
    m_title = makeLabel("title", this);
    m_summary = makeLabel("value", this);
    m_details = makeLabel("muted", this);
    for (QLabel* label : {m_title, m_summary, m_details}) {
        label->setWordWrap(true);
        label->setFixedWidth(kTextWidth);
        text->addWidget(label);
    }
    text->addStretch(1);
    row->addLayout(text);
    layout->addLayout(row, 1);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel, this);
    buttons->button(QDialogButtonBox::Cancel)->setText(tr("Cancel"));
    m_create = buttons->addButton(tr("Create"), QDialogButtonBox::AcceptRole);
    setRole(m_create, "primary");
    m_create->setDefault(true);
    layout->addWidget(buttons);
    connect(m_search, &QLineEdit::textChanged, this, &NewModelDialog::fill);
    connect(m_list, &QTreeWidget::currentItemChanged, this, &NewModelDialog::describe);
    connect(m_list, &QTreeWidget::itemDoubleClicked, this, &NewModelDialog::take);
    connect(buttons, &QDialogButtonBox::accepted, this, &NewModelDialog::take);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    fill();
    m_search->setFocus();
}

void NewModelDialog::fill() {
    m_shown = searchChoices(m_all, m_search->text());
    const bool isSearching = !m_search->text().trimmed().isEmpty();
    m_list->clear();
    QTreeWidgetItem* group = nullptr;
    QTreeWidgetItem* first = nullptr;
    for (std::size_t i = 0; i < m_shown.size(); ++i) {
        const QString name = groupOf(m_shown[i].kind);
        if (!isSearching && !name.isEmpty() && (!group || group->text(0) != name)) {
            group = new QTreeWidgetItem(m_list, {name});
            group->setFlags(Qt::ItemIsEnabled);
            QFont font = m_list->font();
            font.setBold(true);
            group->setFont(0, font);
            group->setForeground(0, m_services.theme.color("muted"));
        }
        auto* item = isSearching || name.isEmpty() ? new QTreeWidgetItem(m_list) : new QTreeWidgetItem(group);
        item->setText(0, m_shown[i].name);
        item->setToolTip(0, m_shown[i].summary);
        item->setData(0, kIndexRole, static_cast<int>(i));
        if (!first) first = item;
    }
    m_list->expandAll();
    if (first) m_list->setCurrentItem(first);
    describe();
}

const ModelChoice* NewModelDialog::current() const {
    const QTreeWidgetItem* item = m_list->currentItem();
    if (!item || !item->data(0, kIndexRole).isValid()) return nullptr;
    return &m_shown[static_cast<std::size_t>(item->data(0, kIndexRole).toInt())];
}

void NewModelDialog::describe() {
    const ModelChoice* choice = current();
    m_title->setText(choice ? choice->name : m_shown.empty() ? tr("Nothing is called so") : QString());
    m_summary->setText(choice ? choice->summary : QString());
    m_details->setText(choice ? choice->details : QString());
    m_create->setEnabled(choice);
}

void NewModelDialog::take() {
    const ModelChoice* choice = current();
    if (!choice) return;
    const ModelChoice taken = *choice;
    accept();
    Q_EMIT chosen(taken);
}

/// Up and down walk through the list without leaving the search line.
bool NewModelDialog::eventFilter(QObject* watched, QEvent* event) {
    if (watched == m_search && event->type() == QEvent::KeyPress) {
        const int key = static_cast<QKeyEvent*>(event)->key();
        if (key == Qt::Key_Down || key == Qt::Key_Up || key == Qt::Key_PageDown || key == Qt::Key_PageUp) {
            QCoreApplication::sendEvent(m_list, event);
            return true;
        }
    }
    return QDialog::eventFilter(watched, event);
}

} // namespace celloom::ui
