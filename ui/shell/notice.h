// A line under the top bar that says what just happened: a refusal with its hint, a finished check. It stays until closed or replaced.
#pragma once

#include "ui/common/texts.h"

#include <QFrame>

#include <functional>
#include <optional>

class QLabel;
class QPushButton;
class QTimer;
class QToolButton;

namespace celloom::ui {

class Theme;

class Notice : public QFrame {
    Q_OBJECT
public:
    enum class Level { Info, Result, Warning, Error };
    Notice(Theme& theme, QWidget* parent = nullptr);

    struct Words {
        Level level = Level::Info;
        QString text, action;
        std::function<void()> act;
    };
    /// What is on show and would stay; nothing where it is hidden or goes by itself.
    [[nodiscard]] std::optional<Words> words() const;
    /// Infos go away by themselves after a few seconds; results stay to be read.
    void show(Level level, const QString& text);
    /// With one button that does something about it.
    void show(Level level, const QString& text, const QString& action, std::function<void()> act);
    void show(const Words& words) { show(words.level, words.text, words.action, words.act); }

protected:
    void changeEvent(QEvent* event) override;

private:
    Theme& m_theme;
    Texts m_texts;
    QLabel* m_icon;
    QLabel* m_text;
    QPushButton* m_action;
    QToolButton* m_close;
    QTimer* m_timer;
    Words m_words;
};

} // namespace celloom::ui
