#include "ui/shell/bottom_bar.h"

#include "ui/common/engine_client.h"
#include "ui/common/format.h"
#include "ui/common/theme.h"
#include "ui/common/widgets.h"
#include "ui/shell/language.h"
#include "ui/shell/services.h"

#include <QActionGroup>
#include <QEvent>
#include <QHBoxLayout>
#include <QMenu>
#include <QPainter>
#include <QSettings>
#include <QToolButton>

namespace celloom::ui {

namespace {

QPixmap dot(const QColor& color) {
    QPixmap pixmap(20, 20);
    pixmap.setDevicePixelRatio(2);
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(color);
    painter.drawEllipse(QRectF(1.5, 1.5, 7, 7));
    return pixmap;
}

QToolButton* menuButton(QWidget* parent) {
    QToolButton* button = makeQuietButton(parent);
    button->setPopupMode(QToolButton::InstantPopup);
    button->setMenu(new QMenu(button));
    return button;
}

} // namespace

BottomBar::BottomBar(Services& services, QWidget* parent) : QFrame(parent), m_services(services) {
    setProperty("role", QStringLiteral("statusbar"));
    setFixedHeight(30);
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(14, 1, 8, 1);
    layout->setSpacing(6);
    m_dot = new QLabel(this);
    m_engine = new ElidedLabel(Qt::ElideRight, this);
    m_engine->setProperty("role", QStringLiteral("small"));
    m_model = new ElidedLabel(Qt::ElideRight, this);
    m_model->setProperty("role", QStringLiteral("small"));
    m_language = menuButton(this);
    m_look = menuButton(this);
    layout->addWidget(m_dot);
    layout->addWidget(m_engine);
    layout->addSpacing(18);
    layout->addWidget(m_model, 1);
    layout->addWidget(m_language);
    layout->addWidget(m_look);

    auto* languages = new QActionGroup(this);
    for (const auto& [code, name] : {std::pair{"en", "English"}, std::pair{"zh_CN", "中文"}}) {
        QAction* action = m_language->menu()->addAction(QString::fromUtf8(name));
        action->setCheckable(true);
        languages->addAction(action);
        action->setChecked(services.language.shown() == QLatin1String(code));
        connect(action, &QAction::triggered, this, [this, code = QString::fromLatin1(code)] {
            m_services.settings.setValue(QStringLiteral("language"), code);
            m_services.language.choose(code);
        });
    }
    auto* looks = new QActionGroup(this);
    for (ThemeMode mode : {ThemeMode::System, ThemeMode::Light, ThemeMode::Dark}) {
        QAction* action = m_look->menu()->addAction(QString());
        action->setCheckable(true);
        action->setChecked(services.theme.mode() == mode);
        looks->addAction(action);
        m_texts.add([action, mode] {
            action->setText(mode == ThemeMode::System ? tr("As the system") : mode == ThemeMode::Light ? tr("Light") : tr("Dark"));
        });
        connect(action, &QAction::triggered, this, [this, mode] {
            m_services.settings.setValue(QStringLiteral("theme"), static_cast<int>(mode));
            m_services.theme.setMode(mode);
        });
    }
    m_texts.add([this] {
        m_language->setText(m_services.language.isChinese() ? QStringLiteral("中文") : QStringLiteral("English"));
        m_language->setAccessibleName(tr("Language"));
        m_language->setToolTip(tr("Language"));
        m_look->setAccessibleName(tr("Look"));
        m_look->setToolTip(tr("Light or dark"));
        refreshEngine();
        refreshModel();
        refreshLook();
    });
    for (QToolButton* button : {m_language, m_look}) button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    connect(&services.engine, &EngineClient::stateChanged, this, &BottomBar::refreshEngine);
    connect(&services.analyser, &ModelAnalyser::ready, this, &BottomBar::refreshModel);
    connect(&services.theme, &Theme::changed, this, [this] {
        refreshEngine();
        refreshLook();
    });
}

void BottomBar::refreshEngine() {
    const auto state = m_services.engine.state();
    const char* color = "warning";
    QString text;
    switch (state) {
    case EngineClient::State::Connected:
        color = "good";
        text = tr("Engine connected");
        break;
    case EngineClient::State::Starting:
        text = tr("Engine starting…");
        break;
    case EngineClient::State::Connecting:
        text = tr("Connecting to the engine…");
        break;
    case EngineClient::State::Unavailable:
        color = "bad";
        text = tr("Engine unavailable: %1").arg(m_services.engine.detail());
        break;
    }
    m_dot->setPixmap(dot(m_services.theme.color(color)));
    m_dot->setToolTip(m_services.engine.detail());
    m_engine->setText(text);
}

void BottomBar::refreshModel() {
    const ModelAnalysisPtr analysis = m_services.analyser.latest();
    if (!analysis || analysis->openError || !analysis->expansion.ok()) {
        m_model->setText({});
        return;
    }
    const auto& model = analysis->expansion.model;
    const graph::Cost sum = graph::total(analysis->costs);
    const QString text = analysis->hasTokens() ? tr("%1 · %2 parameters · %3 FLOPs per token forward") : tr("%1 · %2 parameters · %3 FLOPs per row forward");
    m_model->setText(text.arg(fromUtf8(model.name), Format::shortCount(static_cast<double>(model.parameterCount())), Format::shortCount(sum.forwardFlops / analysis->costUnits())));
}

void BottomBar::refreshLook() {
    m_language->setIcon(m_services.theme.icon(QStringLiteral("globe")));
    m_look->setIcon(m_services.theme.icon(QStringLiteral("sun")));
    m_look->setText(m_services.theme.mode() == ThemeMode::System  ? tr("As the system")
                    : m_services.theme.mode() == ThemeMode::Light ? tr("Light")
                                                                  : tr("Dark"));
}

void BottomBar::changeEvent(QEvent* event) {
    QFrame::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) m_texts.refresh();
}

} // namespace celloom::ui
