#include "ui/common/theme.h"

#include "models/base/result.h"

#include <QApplication>
#include <QDir>
#include <QFile>
#include <QFont>
#include <QIconEngine>
#include <QPainter>
#include <QPalette>
#include <QPixmap>
#include <QStyleFactory>
#include <QSvgRenderer>

#include <cmath>
#include <cstring>

namespace celloom::ui {

const std::vector<NamedColor>& namedColors() {
    static const std::vector<NamedColor> colors = {
        {"window", "#f5f7fa", "#14171c"},         // behind the cards
        {"surface", "#ffffff", "#1c2027"},        // bars and cards
        {"sunken", "#f5f7fa", "#171a20"},         // chips, alternate rows
        {"field", "#ffffff", "#161a20"},          // where one types
        {"border", "#e2e6ec", "#2e343e"},         // quiet lines
        {"borderStrong", "#ccd3dd", "#414956"},   // around what can be pressed or typed into
        {"text", "#1b2130", "#e6e9ee"},           //
        {"muted", "#5d6675", "#a0a9b6"},          // labels, units
        {"faint", "#9aa3b0", "#626b79"},          // disabled
        {"accent", "#1f5fe0", "#79a6ff"},         // links, focus, the chosen page
        {"accentSoft", "#e6eefd", "#22314e"},     //
        {"primary", "#1f5fe0", "#2f68e0"},        // the run button, progress
        {"primaryHover", "#174fc2", "#3b74ec"},   //
        {"onPrimary", "#ffffff", "#ffffff"},      //
        {"focusOnPrimary", "#0b2a6b", "#ffffff"}, //
        {"hover", "#eef1f5", "#262b34"},          //
        {"pressed", "#e2e7ee", "#303744"},        //
        {"track", "#e4e8ee", "#2c323c"},          // behind a progress bar
        {"thumb", "#c9d0da", "#3d4551"},          // scroll bars
        {"grid", "#e8ebf0", "#2a3039"},           // of charts
        {"good", "#15803d", "#4ec27e"},           // running, finished
        {"warning", "#a65a00", "#e0a03f"},        //
        {"warningSoft", "#fdf1df", "#3a2d17"},    //
        {"bad", "#c62828", "#ff8080"},            // errors, NaN
        {"badSoft", "#fdecec", "#3d2224"},        //
        {"blue", "#2563eb", "#6d9dff"},           // train loss, rate
        {"orange", "#c96f06", "#f0a24a"},         // validation
        {"teal", "#0f766e", "#45c1b4"},           // throughput, attention
        {"violet", "#7c3aed", "#ab8bff"},         // gradient norm, dense and embedding
        {"pink", "#be185d", "#f08cb8"},           // activation functions
        {"brown", "#b45309", "#d98f4e"},          // memory, normalisation
        {"slate", "#64748b", "#8b99ad"},          // structure
        {"wire", "#94a3b8", "#5d6b80"},           // between cells
    };
    return colors;
}

namespace {

/// Draws one SVG whose strokes are `currentColor`, at any size.
class RecolouredIcon : public QIconEngine {
public:
    RecolouredIcon(QByteArray svg, QColor normal, QColor on, QColor disabled)
        : m_svg(std::move(svg)), m_normal(normal), m_on(on), m_disabled(disabled) {}

    void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State state) override {
        const QColor color = mode == QIcon::Disabled ? m_disabled : state == QIcon::On ? m_on : m_normal;
        QByteArray svg = m_svg;
        svg.replace("currentColor", color.name().toLatin1());
        QSvgRenderer(svg).render(painter, rect);
    }

    QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State state) override {
        if (size.isEmpty()) return {};
        QPixmap pixmap(size);
        if (pixmap.isNull()) return pixmap; // of a button without room
        pixmap.fill(Qt::transparent);
        QPainter painter(&pixmap);
        paint(&painter, QRect(QPoint(0, 0), size), mode, state);
        return pixmap;
    }

    QIconEngine* clone() const override { return new RecolouredIcon(*this); }

private:
    QByteArray m_svg;
    QColor m_normal, m_on, m_disabled;
};

QByteArray resource(const QString& path) {
    QFile file(path);
    const bool opened = file.open(QIODevice::ReadOnly);
    CELLOOM_CHECK(opened); // compiled in: only a wrong name in the code can miss
    return file.readAll();
}

double linear(double channel) {
    return channel <= 0.04045 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4);
}

double luminance(const QColor& color) {
    return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) + 0.0722 * linear(color.blueF());
}

} // namespace

double contrastRatio(const QColor& a, const QColor& b) {
    const double la = luminance(a), lb = luminance(b);
    return (std::max(la, lb) + 0.05) / (std::min(la, lb) + 0.05);
}

Theme::Theme(QApplication& application, QObject* parent) : QObject(parent), m_application(application) {
    m_systemIsDark = application.palette().color(QPalette::Window).lightness() < 128;
    application.setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
    QFont font = application.font();
    // Noto Sans CJK carries Latin too: the fonts of scripts/deps are enough for both languages.
    font.setFamilies(
        {QStringLiteral("Inter"), QStringLiteral("Noto Sans CJK SC"), QStringLiteral("Noto Sans"), QStringLiteral("DejaVu Sans")});
    font.setPointSizeF(9.75);
    application.setFont(font);
    apply();
}

QColor Theme::color(const char* name) const {
    for (const NamedColor& color : namedColors()) {
        if (std::strcmp(color.name, name) == 0) return m_isDark ? color.dark : color.light;
    }
    CELLOOM_CHECK(false && "unknown colour");
    return {};
}

QIcon Theme::icon(const QString& name) const {
    return QIcon(new RecolouredIcon(resource(QStringLiteral(":/icons/%1.svg").arg(name)), color("muted"), color("accent"), color("faint")));
}

QIcon Theme::icon(const QString& name, const char* colorName) const {
    return QIcon(
        new RecolouredIcon(resource(QStringLiteral(":/icons/%1.svg").arg(name)), color(colorName), color(colorName), color("faint")));
}

void Theme::setMode(ThemeMode mode) {
    m_mode = mode;
    apply();
    Q_EMIT changed();
}

void Theme::apply() {
    m_isDark = m_mode == ThemeMode::Dark || (m_mode == ThemeMode::System && m_systemIsDark);
    QPalette palette;
    palette.setColor(QPalette::Window, color("window"));
    palette.setColor(QPalette::Base, color("field"));
    palette.setColor(QPalette::AlternateBase, color("sunken"));
    palette.setColor(QPalette::Button, color("surface"));
    for (auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText, QPalette::ToolTipText})
        palette.setColor(role, color("text"));
    palette.setColor(QPalette::ToolTipBase, color("surface"));
    palette.setColor(QPalette::PlaceholderText, color("faint"));
    palette.setColor(QPalette::Highlight, color("primary"));
    palette.setColor(QPalette::HighlightedText, color("onPrimary"));
    palette.setColor(QPalette::Link, color("accent"));
    palette.setColor(QPalette::Light, color("surface"));
    palette.setColor(QPalette::Mid, color("border"));
    palette.setColor(QPalette::Dark, color("borderStrong"));
    for (auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
        palette.setColor(QPalette::Disabled, role, color("faint"));
    m_application.setPalette(palette);

    QString sheet = QString::fromUtf8(resource(QStringLiteral(":/theme/celloom.qss")));
    for (const NamedColor& named : namedColors())
        sheet.replace(QLatin1Char('@') + QLatin1String(named.name) + QLatin1Char('@'), (m_isDark ? named.dark : named.light).name());
    // Stylesheets take images by address only: those that they need exist once for each theme.
    const QString suffix = m_isDark ? QStringLiteral("dark") : QStringLiteral("light");
    sheet.replace(QLatin1String("@chevron@"), QStringLiteral(":/theme/chevron-%1.svg").arg(suffix));
    sheet.replace(QLatin1String("@sortUp@"), QStringLiteral(":/theme/chevron-up-%1.svg").arg(suffix));
    sheet.replace(QLatin1String("@dash@"), QStringLiteral(":/theme/dash.svg"));
    sheet.replace(QLatin1String("@tick@"), QStringLiteral(":/theme/tick.svg"));
    m_application.setStyleSheet(sheet);
}

} // namespace celloom::ui
