#include "ui/editor/document_tabs.h"

#include "ui/common/theme.h"
#include "ui/common/widgets.h"
#include "ui/editor/open_models.h"

#include <QApplication>
#include <QClipboard>
#include <QEvent>
#include <QHBoxLayout>
#include <QMenu>
#include <QMouseEvent>
#include <QTabBar>
#include <QToolButton>

#include <algorithm>

namespace celloom::ui {

namespace {
constexpr int kHeight = 32;
}

DocumentTabs::DocumentTabs(OpenModels& models, Theme& theme, QWidget* parent) : QFrame(parent), m_models(models), m_theme(theme) {
    setProperty("role", QStringLiteral("tabrow"));
    setFixedHeight(kHeight);
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(8, 3, 8, 0);
    layout->setSpacing(2);
    m_bar = new QTabBar(this);
    m_bar->setProperty("role", QStringLiteral("documents"));
    m_bar->setMovable(true);
    m_bar->setExpanding(false);
    m_bar->setDrawBase(false);
    m_bar->setUsesScrollButtons(true);
    m_bar->setElideMode(Qt::ElideMiddle);
    m_bar->setFocusPolicy(Qt::TabFocus); // a click leaves the keyboard with the canvas
    m_bar->setContextMenuPolicy(Qt::CustomContextMenu);
    m_bar->installEventFilter(this);
    m_new = makeQuietButton(this);
    layout->addWidget(m_bar);
    layout->addWidget(m_new);
    layout->addStretch(1);
    connect(m_bar, &QTabBar::currentChanged, this, [this](int index) {
        if (!m_isRefreshing && index >= 0) Q_EMIT chosen(index);
    });
    connect(m_bar, &QTabBar::tabMoved, this, [this](int from, int to) {
        if (!m_isRefreshing) m_models.move(from, to);
    });
    connect(m_bar, &QWidget::customContextMenuRequested, this, &DocumentTabs::showMenu);
    connect(m_new, &QToolButton::clicked, this, &DocumentTabs::newRequested);
    for (auto changed : {&OpenModels::listChanged, &OpenModels::currentChanged, &OpenModels::titleChanged}) connect(&models, changed, this, &DocumentTabs::refresh);
    const auto setIcons = [this] {
        m_new->setIcon(m_theme.icon(QStringLiteral("plus")));
        for (int i = 0; i < m_bar->count(); ++i)
            if (auto* close = qobject_cast<QToolButton*>(m_bar->tabButton(i, QTabBar::RightSide))) close->setIcon(m_theme.icon(QStringLiteral("close")));
    };
    connect(&theme, &Theme::changed, this, setIcons);
    m_texts.add([this, setIcons] {
        setIcons();
        m_bar->setAccessibleName(tr("Open models"));
        m_new->setAccessibleName(tr("New model"));
        m_new->setToolTip(tr("New model (Ctrl+T)"));
        refresh();
    });
}

void DocumentTabs::addTab() {
    const int index = m_bar->addTab(QString());
    auto* close = makeQuietButton(m_bar);
    close->setIcon(m_theme.icon(QStringLiteral("close")));
    close->setIconSize(QSize(10, 10));
    close->setFocusPolicy(Qt::NoFocus); // Ctrl+W is the keyboard's
    connect(close, &QToolButton::clicked, this, [this, close] {
        for (int i = 0; i < m_bar->count(); ++i)
            if (m_bar->tabButton(i, QTabBar::RightSide) == close) {
                Q_EMIT closeRequested(i);
                return;
            }
    });
    m_bar->setTabButton(index, QTabBar::RightSide, close);
}

/// Models of one name are told apart by the folders that they lie in.
QString DocumentTabs::titleOf(const ModelDocument& model) const {
    const QString title = model.title();
    if (title.isEmpty()) return tr("Opening…");
    const auto folders = [](const ModelDocument& of, qsizetype count) { // the innermost last, as they stand above what the title names
        QStringList parts = of.isUntitled() ? QStringList() : of.source().split(QLatin1Char('/'), Qt::SkipEmptyParts);
        if (!parts.isEmpty() && isNamedByFolder(parts.back())) parts.removeLast();
        if (!parts.isEmpty()) parts.removeLast();
        return parts.mid(std::max<qsizetype>(0, parts.size() - count)).join(QLatin1Char('/'));
    };
    const auto isTaken = [&](qsizetype count) {
        for (int i = 0; i < m_models.count(); ++i)
            if (const ModelDocument& other = m_models.at(i); &other != &model && other.title() == title && folders(other, count) == folders(model, count)) return true;
        return false;
    };
    qsizetype count = 0;
    while (isTaken(count) && folders(model, count) != folders(model, count + 1)) ++count;
    const QString where = folders(model, count);
    return where.isEmpty() ? title : title + QStringLiteral(" — ") + where;
}

void DocumentTabs::refresh() {
    m_isRefreshing = true;
    while (m_bar->count() > m_models.count()) m_bar->removeTab(m_bar->count() - 1);
    while (m_bar->count() < m_models.count()) addTab();
    for (int i = 0; i < m_models.count(); ++i) {
        const ModelDocument& model = m_models.at(i);
        const QString title = titleOf(model);
        QString shown = title;
        m_bar->setTabText(i, shown.replace(QLatin1Char('&'), QLatin1String("&&")) + (model.isModified() ? QStringLiteral(" *") : QString()));
        QStringList tip{model.isUntitled() ? tr("Not saved to a file yet") : model.source()};
        if (!model.isUntitled() && model.filePath().isEmpty() && model.source() == model.title()) tip = {tr("The preset or template %1").arg(title)};
        if (model.isModified()) tip.append(tr("Has unsaved changes"));
        m_bar->setTabToolTip(i, tip.join(QLatin1Char('\n')));
        if (QWidget* close = m_bar->tabButton(i, QTabBar::RightSide)) {
            close->setAccessibleName(tr("Close %1").arg(title));
            close->setToolTip(tr("Close (Ctrl+W)"));
        }
    }
    m_bar->setCurrentIndex(m_models.indexOf(m_models.current()));
    m_isRefreshing = false;
}

void DocumentTabs::showMenu(const QPoint& position) {
    const int index = m_bar->tabAt(position);
    if (index < 0) return;
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    connect(menu->addAction(tr("Close")), &QAction::triggered, this, [this, index] { Q_EMIT closeRequested(index); });
    const ModelDocument& model = m_models.at(index);
    QAction* copy = menu->addAction(tr("Copy the path"));
    copy->setEnabled(!model.isUntitled());
    connect(copy, &QAction::triggered, this, [source = model.source()] { QApplication::clipboard()->setText(source); });
    menu->popup(m_bar->mapToGlobal(position));
}

bool DocumentTabs::eventFilter(QObject* watched, QEvent* event) {
    if (watched == m_bar && event->type() == QEvent::MouseButtonRelease) {
        const auto* mouse = static_cast<QMouseEvent*>(event);
        const int index = m_bar->tabAt(mouse->position().toPoint());
        if (mouse->button() == Qt::MiddleButton && index >= 0) {
            Q_EMIT closeRequested(index);
            return true;
        }
    }
    return QFrame::eventFilter(watched, event);
}

void DocumentTabs::changeEvent(QEvent* event) {
    QFrame::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) m_texts.refresh();
}

} // namespace celloom::ui
