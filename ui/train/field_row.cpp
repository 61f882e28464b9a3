#include "ui/train/field_row.h"

#include "ui/common/format.h"
#include "ui/common/recipe_document.h"
#include "ui/common/theme.h"
#include "ui/common/widgets.h"
#include "ui/shell/language.h"

#include <QAbstractItemView>
#include <QCheckBox>
#include <QComboBox>
#include <QEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLineEdit>
#include <QMenu>
#include <QPlainTextEdit>
#include <QSignalBlocker>
#include <QToolButton>
#include <QVBoxLayout>
#include <QWheelEvent>

#include <algorithm>

namespace celloom::ui {

using recipe::FieldKind;

namespace {

constexpr int kLabelWidth = 168;
constexpr int kUnitWidth = 76;
constexpr int kNumberWidth = 150;

bool isNumber(FieldKind kind) {
    return kind == FieldKind::Integer || kind == FieldKind::Real;
}
bool isList(FieldKind kind) {
    return kind == FieldKind::PathList || kind == FieldKind::TextList || kind == FieldKind::RuleList || kind == FieldKind::ScriptList;
}

QString shortNumber(double value, FieldKind kind) {
    return kind == FieldKind::Integer ? QString::number(static_cast<qint64>(value)) : QString::number(value, 'g', 6);
}

} // namespace

QString fieldLabel(const recipe::Field& field, bool isChinese) {
    return fromUtf8(isChinese && !field.labelZh.empty() ? field.labelZh : field.label);
}
QString fieldHelp(const recipe::Field& field, bool isChinese) {
    return fromUtf8(isChinese && !field.helpZh.empty() ? field.helpZh : field.help);
}
QString fieldUnit(const recipe::Field& field, bool isChinese) {
    return fromUtf8(isChinese && !field.unitZh.empty() ? field.unitZh : field.unit);
}

QString FieldRow::rangeOf(const recipe::Field& field) {
    if (!isNumber(field.kind)) return {};
    const bool hasLeast = field.minimum > -1e300, hasMost = field.maximum < 1e300 && field.maximum < 9007199254740991.0;
    const QString least = shortNumber(field.minimum, field.kind), most = shortNumber(field.maximum, field.kind);
    if (hasLeast && hasMost) return tr("%1 to %2").arg(least, most);
    if (hasLeast) return tr("at least %1").arg(least);
    if (hasMost) return tr("at most %1").arg(most);
    return tr("any number");
}

FieldRow::FieldRow(const recipe::Field& field, RecipeDocument& document, Theme& theme, Language& language, QWidget* parent)
    : QWidget(parent), m_field(field), m_key(fromUtf8(field.key)), m_document(document), m_theme(theme), m_language(language) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 1, 0, 1);
    column->setSpacing(2);
    auto* row = new QHBoxLayout;
    row->setSpacing(8);
    m_label = new QLabel(this);
    m_label->setFixedWidth(kLabelWidth);
    m_label->setWordWrap(true);
    m_unit = makeLabel("muted", this);
    m_unit->setFixedWidth(kUnitWidth);
    m_help = makeQuietButton(this);
    m_help->setFocusPolicy(Qt::NoFocus); // focus on the control shows the help; Tab goes from control to control
    m_problem = makeLabel("problem", this);
    m_problem->setWordWrap(true);
    m_problem->hide();

    row->addWidget(m_label, 0, isList(field.kind) ? Qt::AlignTop : Qt::AlignVCenter);
    buildEditor();
    row->addWidget(m_editor, 1);
    if (m_path) row->addWidget(m_path, 0, Qt::AlignTop);
    if (isNumber(field.kind) || field.kind == FieldKind::Choice) {
        m_editor->setMaximumWidth(isNumber(field.kind) ? kNumberWidth : 2 * kNumberWidth);
        row->addWidget(m_unit);
        row->addStretch(1);
    } else {
        m_unit->hide();
    }
    row->addWidget(m_help, 0, isList(field.kind) ? Qt::AlignTop : Qt::AlignVCenter);
    column->addLayout(row);
    auto* below = new QHBoxLayout; // under the control, not under the label
    below->addSpacing(kLabelWidth + 8);
    below->addWidget(m_problem, 1);
    below->addSpacing(40);
    column->addLayout(below);

    m_label->setBuddy(m_editor);
    m_editor->installEventFilter(this);
    connect(m_help, &QToolButton::clicked, this, [this] { Q_EMIT helpRequested(&m_field); });
    const auto setIcons = [this] {
        m_help->setIcon(m_theme.icon(QStringLiteral("help")));
        if (m_path) m_path->setIcon(m_theme.icon(QStringLiteral("folder")));
    };
    setIcons();
    connect(&theme, &Theme::changed, this, setIcons);
    retranslate();
    refresh();
}

void FieldRow::buildEditor() {
    switch (m_field.kind) {
    case FieldKind::Flag:
        m_editor = buildFlag();
        break;
    case FieldKind::Choice:
        m_editor = buildChoice(false);
        break;
    case FieldKind::PathList:
    case FieldKind::TextList:
    case FieldKind::RuleList:
    case FieldKind::ScriptList: // one JSON object a line; the Train page has a panel in its place
        m_editor = buildList();
        break;
    default:
        m_editor = m_field.choices.empty() ? buildLine() : buildChoice(true);
        break;
    }
    if (m_field.kind == FieldKind::Path || m_field.kind == FieldKind::PathList) addPathButton(m_field.kind == FieldKind::PathList);
    m_editor->setObjectName(m_key);
}

QWidget* FieldRow::buildLine() {
    auto* edit = new QLineEdit(this);
    connect(edit, &QLineEdit::textEdited, this, &FieldRow::commitText);
    return edit;
}

QWidget* FieldRow::buildChoice(bool isFree) {
    auto* box = new QComboBox(this);
    box->setEditable(isFree);
    if (isFree) box->setInsertPolicy(QComboBox::NoInsert);
    for (const std::string& choice : m_field.choices) box->addItem(fromUtf8(choice));
    box->setFocusPolicy(Qt::StrongFocus); // the wheel scrolls the form, it does not change values
    if (isFree) {
        connect(box, &QComboBox::editTextChanged, this, &FieldRow::commitText);
    } else {
        connect(box, &QComboBox::currentTextChanged, this, &FieldRow::commitText);
    }
    return box;
}

QWidget* FieldRow::buildFlag() {
    auto* box = new QCheckBox(this);
    connect(box, &QCheckBox::toggled, this, [this](bool isOn) {
        m_isCommitting = true;
        m_document.setValue(m_key, isOn);
        m_isCommitting = false;
        refreshMark();
    });
    return box;
}

QWidget* FieldRow::buildList() {
    auto* edit = new QPlainTextEdit(this);
    edit->setTabChangesFocus(true);
    edit->setLineWrapMode(QPlainTextEdit::NoWrap);
    edit->setFixedHeight(m_field.kind == FieldKind::RuleList ? 96 : 64);
    if (m_field.kind == FieldKind::RuleList) edit->setProperty("role", QStringLiteral("mono"));
    connect(edit, &QPlainTextEdit::textChanged, this, [this, edit] { commitList(edit->toPlainText()); });
    return edit;
}

void FieldRow::addPathButton(bool isList) {
    m_path = makeQuietButton(this);
    m_path->setPopupMode(QToolButton::InstantPopup);
    auto* menu = new QMenu(m_path);
    m_path->setMenu(menu);
    connect(menu->addAction(QString()), &QAction::triggered, this, [this, isList] { choosePath(false, isList); });
    connect(menu->addAction(QString()), &QAction::triggered, this, [this, isList] { choosePath(true, isList); });
}

void FieldRow::choosePath(bool isFolder, bool isList) {
    auto* dialog = new QFileDialog(window(), fieldLabel(m_field, m_language.isChinese()));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(isFolder ? QFileDialog::Directory : isList ? QFileDialog::ExistingFiles : QFileDialog::ExistingFile);
    const auto& folder = m_document.recipe().folder();
    if (!folder.empty()) dialog->setDirectory(pathText(folder));
    connect(dialog, &QFileDialog::filesSelected, this, [this, isList](const QStringList& files) {
        if (!isList) {
            m_document.setValue(m_key, toUtf8(files.value(0)));
            return;
        }
        std::vector<std::string> all = m_document.recipe().list(m_field.key);
        for (const QString& file : files) all.push_back(toUtf8(file));
        m_document.setValue(m_key, all);
    });
    dialog->open();
}

void FieldRow::commitText(const QString& text) {
    m_isCommitting = true;
    if (isNumber(m_field.kind) && text.trimmed().isEmpty()) {
        m_document.reset(m_key, RecipeDocument::Gesture::Typing); // the placeholder shows which value that is
    } else if (isNumber(m_field.kind)) {
        m_document.setText(m_key, text.trimmed());
    } else {
        m_document.setValue(m_key, toUtf8(text), m_field.kind == FieldKind::Choice ? RecipeDocument::Gesture::Whole : RecipeDocument::Gesture::Typing);
    }
    m_isCommitting = false;
    refreshMark();
}

void FieldRow::commitList(const QString& text) {
    std::vector<std::string> items;
    for (const QString& line : text.split(QLatin1Char('\n'))) {
        if (const QString item = line.trimmed(); !item.isEmpty()) items.push_back(toUtf8(item));
    }
    m_isCommitting = true;
    m_document.setValue(m_key, items, RecipeDocument::Gesture::Typing);
    m_isCommitting = false;
    refreshMark();
}

void FieldRow::refresh() {
    if (m_isCommitting) return;
    const bool isPending = !m_document.pendingError(m_key).message.empty();
    const QSignalBlocker blocker(m_editor);
    if (auto* edit = qobject_cast<QLineEdit*>(m_editor)) {
        edit->setText(isPending ? m_document.pendingText(m_key) : fromUtf8(m_document.recipe().toText(m_field.key)));
        edit->setCursorPosition(0);
    } else if (auto* box = qobject_cast<QComboBox*>(m_editor)) {
        const QString text = fromUtf8(m_document.recipe().toText(m_field.key));
        if (box->isEditable()) {
            box->setEditText(text);
        } else {
            box->setCurrentText(text);
        }
    } else if (auto* flag = qobject_cast<QCheckBox*>(m_editor)) {
        flag->setChecked(m_document.recipe().flag(m_field.key));
    } else if (auto* list = qobject_cast<QPlainTextEdit*>(m_editor)) {
        QStringList lines;
        for (const std::string& item : m_document.recipe().list(m_field.key)) lines.append(fromUtf8(item));
        list->setPlainText(isPending ? m_document.pendingText(m_key) : lines.join(QLatin1Char('\n')));
    }
    refreshMark();
}

/// A field that is not at its default has a bold label.
void FieldRow::refreshMark() {
    QFont font = m_label->font();
    const bool isChanged = !m_document.recipe().isDefault(m_field.key);
    if (font.bold() == isChanged) return;
    font.setBold(isChanged);
    m_label->setFont(font);
}

void FieldRow::setProblem(const QString& text, bool isError) {
    setRole(m_problem, isError ? "problem" : "warning");
    m_problem->setText(text);
    m_problem->setVisible(!text.isEmpty());
    setLook(m_editor, "invalid", !text.isEmpty() && isError);
    m_editor->setAccessibleDescription(text);
}

QString FieldRow::problem() const {
    return m_problem->text();
}

void FieldRow::retranslate() {
    const bool isChinese = m_language.isChinese();
    const QString label = fieldLabel(m_field, isChinese);
    m_label->setText(label);
    m_unit->setText(fieldUnit(m_field, isChinese));
    const QString range = rangeOf(m_field);
    const QString standard = [&] {
        recipe::Recipe fresh;
        return fromUtf8(fresh.toText(m_field.key));
    }();
    QString tip = fieldHelp(m_field, isChinese);
    if (!range.isEmpty()) tip += QLatin1Char('\n') + tr("Range: %1. Default: %2.").arg(range, standard);
    m_editor->setToolTip(tip);
    m_editor->setAccessibleName(label);
    m_help->setAccessibleName(tr("Help on %1").arg(label));
    m_help->setToolTip(tip);
    if (auto* edit = qobject_cast<QLineEdit*>(m_editor)) edit->setPlaceholderText(isNumber(m_field.kind) ? standard : QString());
    if (auto* list = qobject_cast<QPlainTextEdit*>(m_editor)) {
        list->setPlaceholderText(m_field.kind == FieldKind::PathList   ? tr("One file, folder or pattern a line")
                                 : m_field.kind == FieldKind::RuleList ? QStringLiteral("layers.{3..5}.**.W_pack: lora r=8 alpha=16")
                                                                       : tr("One a line"));
    }
    if (m_path) {
        const bool isMany = m_field.kind == FieldKind::PathList;
        m_path->menu()->actions().at(0)->setText(isMany ? tr("Add files…") : tr("Choose a file…"));
        m_path->menu()->actions().at(1)->setText(isMany ? tr("Add a folder…") : tr("Choose a folder…"));
        m_path->setAccessibleName(tr("Choose files for %1").arg(label));
        m_path->setToolTip(tr("Choose…"));
    }
}

void FieldRow::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) retranslate();
}

bool FieldRow::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::FocusIn) Q_EMIT helpRequested(&m_field);
    if (event->type() == QEvent::ShortcutOverride) { // the recipe's undo, not the control's own
        auto* key = static_cast<QKeyEvent*>(event);
        if (key->matches(QKeySequence::Undo) || key->matches(QKeySequence::Redo)) {
            event->ignore();
            return true;
        }
    }
    if (event->type() == QEvent::Wheel && qobject_cast<QComboBox*>(watched)) {
        event->ignore();
        return true;
    }
    return QWidget::eventFilter(watched, event);
}

} // namespace celloom::ui
