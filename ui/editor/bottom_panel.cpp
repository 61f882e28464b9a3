#include "ui/editor/bottom_panel.h"

#include "models/base/result.h"
#include "ui/common/theme.h"
#include "ui/common/widgets.h"
#include "ui/shell/services.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QSettings>
#include <QStackedWidget>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>

namespace celloom::ui {

namespace {

constexpr int kUsualHeight = 200; // of a panel that nobody drew taller, on a large window
constexpr int kUsualAbove = 380;  // on a small one the canvas gets this much first, and half of what is left
constexpr int kAbove = 240; // pixels that stay for what is above it
constexpr int kHandle = 5;
constexpr int kKeyStep = 24;
const QString kOpenKey = QStringLiteral("model/panel/open"), kHeightKey = QStringLiteral("model/panel/height"), kTabKey = QStringLiteral("model/panel/tab");

} // namespace

BottomPanel::BottomPanel(Services& services, QWidget* parent)
    : QFrame(parent), m_services(services), m_isOpen(services.settings.value(kOpenKey, true).toBool()),
      m_height(services.settings.value(kHeightKey, 0).toInt()) {
    setProperty("role", QStringLiteral("statusbar"));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 1, 0, 0);
    layout->setSpacing(0);
    m_handle = new QWidget(this);
    m_handle->setFixedHeight(kHandle);
    m_handle->setCursor(Qt::SplitVCursor);
    m_handle->setFocusPolicy(Qt::NoFocus);
    m_handle->installEventFilter(this);
    layout->addWidget(m_handle);
    m_row = new QHBoxLayout;
    m_row->setContentsMargins(8, 0, 10, 3);
    m_row->setSpacing(6);
    m_tabs = new QHBoxLayout;
    m_tabs->setSpacing(2);
    m_fold = makeQuietButton(this);
    connect(m_fold, &QToolButton::clicked, this, [this] { setOpen(!m_isOpen); });
    m_row->addLayout(m_tabs);
    m_row->addStretch(1);
    m_row->addWidget(m_fold);
    layout->addLayout(m_row);
    m_stack = new QStackedWidget(this);
    layout->addWidget(m_stack, 1);
    if (parent) parent->installEventFilter(this);
    connect(&services.theme, &Theme::changed, this, &BottomPanel::applyHeight);
    m_texts.add([this] { applyHeight(); });
}

void BottomPanel::addTab(const QString& key, QWidget* tab, QWidget* tools) {
    auto* button = makeQuietButton(this);
    button->setCheckable(true);
    button->setObjectName(QStringLiteral("tab:") + key);
    button->installEventFilter(this);
    const int index = static_cast<int>(m_keys.size());
    connect(button, &QToolButton::clicked, this, [this, index] {
        choose(index);
        setOpen(true);
    });
    m_tabs->addWidget(button);
    m_buttons.push_back(button);
    m_keys.push_back(key);
    m_stack->addWidget(tab);
    m_tools.push_back(tools);
    if (tools) m_row->insertWidget(m_row->indexOf(m_fold), tools);
    const QString wanted = m_services.settings.value(kTabKey).toString();
    if (index == 0 || key == wanted) choose(index);
    showTools();
}

void BottomPanel::setTitle(const QString& key, const QString& title, const QString& tip) {
    const auto found = std::find(m_keys.begin(), m_keys.end(), key);
    CELLOOM_CHECK(found != m_keys.end());
    QToolButton* button = m_buttons[static_cast<std::size_t>(found - m_keys.begin())];
    button->setText(title);
    button->setAccessibleName(title);
    button->setToolTip(tip);
}

QString BottomPanel::current() const {
    return m_keys.empty() ? QString() : m_keys[static_cast<std::size_t>(m_stack->currentIndex())];
}

void BottomPanel::choose(int index) {
    m_stack->setCurrentIndex(index);
    for (std::size_t i = 0; i < m_buttons.size(); ++i) m_buttons[i]->setChecked(static_cast<int>(i) == index);
    showTools();
    if (m_isOpen) Q_EMIT shown(current());
}

void BottomPanel::showTools() {
    for (std::size_t i = 0; i < m_tools.size(); ++i)
        if (m_tools[i]) m_tools[i]->setVisible(m_isOpen && static_cast<int>(i) == m_stack->currentIndex());
}

void BottomPanel::setOpen(bool isOpen) {
    if (isOpen != m_isOpen) {
        m_isOpen = isOpen;
        m_services.settings.setValue(kOpenKey, isOpen);
        applyHeight();
        showTools();
        if (isOpen) Q_EMIT shown(current());
    }
    m_services.settings.setValue(kTabKey, current());
}

void BottomPanel::showTab(const QString& key) {
    const auto found = std::find(m_keys.begin(), m_keys.end(), key);
    CELLOOM_CHECK(found != m_keys.end());
    choose(static_cast<int>(found - m_keys.begin()));
    setOpen(true);
}

void BottomPanel::toggle() {
    setOpen(!m_isOpen);
    if (m_isOpen) m_stack->currentWidget()->setFocus(Qt::ShortcutFocusReason);
}

void BottomPanel::applyHeight() {
    m_stack->setVisible(m_isOpen);
    m_handle->setVisible(m_isOpen);
    m_fold->setIcon(m_services.theme.icon(m_isOpen ? QStringLiteral("chevron-down") : QStringLiteral("up")));
    m_fold->setToolTip((m_isOpen ? tr("Fold the panel (%1)") : tr("Unfold the panel (%1)")).arg(QStringLiteral("Ctrl+`")));
    m_fold->setAccessibleName(m_isOpen ? tr("Fold the panel") : tr("Unfold the panel"));
    if (m_isOpen) {
        const int whole = parentWidget() ? parentWidget()->height() : 0;
        const int wanted = m_height > 0 ? std::max(kLeastHeight, m_height) : std::clamp((whole - kUsualAbove) / 2, kLeastHeight, kUsualHeight);
        setFixedHeight(whole > 0 ? std::min(wanted, std::max(kLeastHeight, whole - kAbove)) : wanted);
    } else {
        setMinimumHeight(0);
        setMaximumHeight(QWIDGETSIZE_MAX);
    }
    setSizePolicy(QSizePolicy::Preferred, m_isOpen ? QSizePolicy::Fixed : QSizePolicy::Maximum);
}

void BottomPanel::drag(int globalY) {
    m_height = std::max(kLeastHeight, m_dragHeight + m_dragFrom - globalY);
    applyHeight();
    m_height = std::min(m_height, maximumHeight());
}

bool BottomPanel::eventFilter(QObject* watched, QEvent* event) {
    if (watched == m_handle) {
        const bool isMouse = event->type() == QEvent::MouseButtonPress || event->type() == QEvent::MouseMove || event->type() == QEvent::MouseButtonRelease;
        if (!isMouse) return false;
        const auto* mouse = static_cast<QMouseEvent*>(event);
        if (event->type() == QEvent::MouseButtonPress && mouse->button() == Qt::LeftButton) {
            m_dragFrom = qRound(mouse->globalPosition().y());
            m_dragHeight = height();
        } else if (event->type() == QEvent::MouseMove && mouse->buttons().testFlag(Qt::LeftButton)) {
            drag(qRound(mouse->globalPosition().y()));
        } else if (event->type() == QEvent::MouseButtonRelease) {
            if (m_height > 0) m_services.settings.setValue(kHeightKey, m_height);
        }
        return false;
    }
    if (watched == parent() && event->type() == QEvent::Resize) applyHeight();
    if (event->type() != QEvent::KeyPress) return false;
    // on a tab: left and right change it, Ctrl with up and down the height
    const auto* key = static_cast<QKeyEvent*>(event);
    const auto found = std::find(m_buttons.begin(), m_buttons.end(), watched);
    if (found == m_buttons.end()) return false;
    const auto count = static_cast<int>(m_buttons.size()), at = static_cast<int>(found - m_buttons.begin());
    if (key->key() == Qt::Key_Left || key->key() == Qt::Key_Right) {
        const int next = (at + (key->key() == Qt::Key_Right ? 1 : count - 1)) % count;
        m_buttons[static_cast<std::size_t>(next)]->setFocus(Qt::TabFocusReason);
        m_buttons[static_cast<std::size_t>(next)]->click();
        return true;
    }
    if ((key->key() == Qt::Key_Up || key->key() == Qt::Key_Down) && key->modifiers() == Qt::ControlModifier && m_isOpen) {
        m_dragFrom = 0;
        m_dragHeight = height();
        drag(key->key() == Qt::Key_Up ? -kKeyStep : kKeyStep);
        m_services.settings.setValue(kHeightKey, m_height);
        return true;
    }
    return false;
}

void BottomPanel::changeEvent(QEvent* event) {
    QFrame::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) m_texts.refresh();
}

} // namespace celloom::ui
