#include "ui/shell/top_bar.h"

#include "ui/common/format.h"
#include "ui/common/recipe_document.h"
#include "ui/common/theme.h"
#include "ui/common/widgets.h"
#include "ui/shell/services.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QMenu>
#include <QPushButton>
#include <QToolButton>

namespace celloom::ui {

namespace {

const recipe::Field* deviceField() {
    for (const recipe::Field& field : recipe::fields()) {
        if (field.key == "device" || field.key.ends_with(".device")) return &field;
    }
    return nullptr;
}

} // namespace

TopBar::TopBar(Services& services, QWidget* parent) : QFrame(parent), m_services(services) {
    setProperty("role", QStringLiteral("bar"));
    setFixedHeight(46);
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(8, 6, 14, 6);
    layout->setSpacing(8);

    m_home = new QToolButton(this);
    m_home->setProperty("role", QStringLiteral("quiet"));
    m_home->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    m_home->setIconSize({20, 20});
    m_home->setText(QStringLiteral("Celloom"));
    QFont brand = m_home->font();
    brand.setPointSizeF(12);
    brand.setBold(true);
    m_home->setFont(brand);
    m_home->setFocusPolicy(Qt::StrongFocus);
    connect(m_home, &QToolButton::clicked, this, &TopBar::homeRequested);

    m_document = new ElidedLabel(Qt::ElideRight, this);
    m_document->setProperty("role", QStringLiteral("muted"));
    m_context = new ElidedLabel(Qt::ElideRight, this);

    m_device = new QToolButton(this);
    m_device->setProperty("role", QStringLiteral("chip"));
    m_device->setPopupMode(QToolButton::InstantPopup);
    m_device->setFocusPolicy(Qt::StrongFocus);
    m_device->setMenu(new QMenu(m_device));
    connect(m_device->menu(), &QMenu::aboutToShow, this, &TopBar::fillDeviceMenu);

    m_validate = new QPushButton(this);
    m_validate->setShortcut(Qt::Key_F7);
    connect(m_validate, &QPushButton::clicked, this, &TopBar::validateRequested);
    m_run = new QPushButton(this);
    m_run->setProperty("role", QStringLiteral("primary"));
    connect(m_run, &QPushButton::clicked, this, &TopBar::runRequested);

    layout->addWidget(m_home);
    layout->addWidget(m_document);
    layout->addSpacing(24);
    layout->addWidget(m_context, 1);
    layout->addWidget(m_device, 0, Qt::AlignVCenter);
    layout->addWidget(m_validate);
    layout->addWidget(m_run);

    m_texts.add([this] {
        m_home->setAccessibleName(tr("Start page"));
        m_home->setToolTip(tr("Start page"));
        m_device->setAccessibleName(tr("Device"));
        m_device->setToolTip(tr("Where the next run computes"));
        m_validate->setText(tr("Validate  F7"));
        m_validate->setToolTip(tr("Check the recipe and the model without running"));
        m_run->setText(tr("Run  F5"));
        // setText() forgets a shortcut only when the text holds one; these hold none, but the order keeps it certain.
        m_validate->setShortcut(Qt::Key_F7);
        m_run->setShortcut(Qt::Key_F5);
        m_run->setToolTip(m_runReason.isEmpty() ? tr("Start a run of this recipe") : m_runReason);
        refreshDocument();
        refreshDevice();
    });
    m_home->setIcon(services.theme.icon(QStringLiteral("celloom"), "accent"));
    connect(&services.theme, &Theme::changed, this,
            [this] { m_home->setIcon(m_services.theme.icon(QStringLiteral("celloom"), "accent")); });
    connect(&services.recipe, &RecipeDocument::titleChanged, this, &TopBar::refreshDocument);
    connect(&services.recipe, &RecipeDocument::replaced, this, &TopBar::refreshDevice);
    connect(&services.recipe, &RecipeDocument::valueChanged, this, &TopBar::refreshDevice);
}

void TopBar::setContext(const QString& text) {
    m_context->setText(text);
}

void TopBar::setRunEnabled(bool isEnabled, const QString& reason) {
    m_runReason = reason;
    m_run->setEnabled(isEnabled);
    m_run->setToolTip(reason.isEmpty() ? tr("Start a run of this recipe") : reason);
}

void TopBar::refreshDocument() {
    const RecipeDocument& document = m_services.recipe;
    const bool isUntitled = document.filePath().isEmpty() && document.name() == QLatin1String("untitled");
    m_document->setText((isUntitled ? tr("untitled") : document.name()) + (document.isModified() ? QStringLiteral(" *") : QString()));
}

void TopBar::refreshDevice() {
    const recipe::Field* field = deviceField();
    m_device->setVisible(field != nullptr);
    if (!field) return;
    const QString value = fromUtf8(m_services.recipe.recipe().toText(field->key));
    m_device->setText(tr("Device: %1").arg(value));
}

void TopBar::fillDeviceMenu() {
    QMenu* menu = m_device->menu();
    menu->clear();
    const recipe::Field* field = deviceField();
    if (!field) return;
    const QString key = fromUtf8(field->key);
    for (const std::string& choice : field->choices) {
        QAction* action = menu->addAction(fromUtf8(choice));
        action->setCheckable(true);
        action->setChecked(m_services.recipe.recipe().toText(field->key) == choice);
        connect(action, &QAction::triggered, this, [this, key, choice] { m_services.recipe.setValue(key, choice); });
    }
}

void TopBar::changeEvent(QEvent* event) {
    QFrame::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) m_texts.refresh();
}

} // namespace celloom::ui
