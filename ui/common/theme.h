// The look: one set of named colours for light and one for dark, the stylesheet filled from it, and icons drawn in those colours.
#pragma once

#include <QColor>
#include <QIcon>
#include <QObject>
#include <QString>

#include <vector>

class QApplication;

namespace celloom::ui {

enum class ThemeMode { System, Light, Dark };

struct NamedColor {
    const char* name;
    QColor light, dark;
};

/// Every colour of the window, by name. The stylesheet refers to them as @name@.
const std::vector<NamedColor>& namedColors();

class Theme : public QObject {
    Q_OBJECT
public:
    explicit Theme(QApplication& application, QObject* parent = nullptr);

    void setMode(ThemeMode mode);
    [[nodiscard]] ThemeMode mode() const { return m_mode; }
    [[nodiscard]] bool isDark() const { return m_isDark; }
    /// A colour of namedColors(); an unknown name is a programmer's error.
    [[nodiscard]] QColor color(const char* name) const;
    /// An icon of resources/icons, drawn in the text's muted colour, in the accent when it is checked, faint when disabled.
    [[nodiscard]] QIcon icon(const QString& name) const;
    /// The same in one fixed colour.
    [[nodiscard]] QIcon icon(const QString& name, const char* colorName) const;

Q_SIGNALS:
    void changed();

private:
    void apply();

    QApplication& m_application;
    ThemeMode m_mode = ThemeMode::System;
    bool m_isDark = false;
    bool m_systemIsDark = false;
};

/// WCAG 2 contrast ratio of two opaque colours, 1 to 21.
double contrastRatio(const QColor& a, const QColor& b);

} // namespace celloom::ui
