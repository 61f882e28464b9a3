// The panel under the canvas: tabs in one row, folded to that row or as tall as the user drew it. Remembers tab, height and whether it is open.
#pragma once

#include "ui/common/texts.h"

#include <QFrame>
#include <QString>

#include <vector>

class QHBoxLayout;
class QStackedWidget;
class QToolButton;

namespace celloom::ui {

struct Services;

class BottomPanel : public QFrame {
    Q_OBJECT
public:
    explicit BottomPanel(Services& services, QWidget* parent = nullptr);

    /// `key` names the tab in the settings. The first one added is in front where nothing was remembered. `tools` stand in the row of tabs
    /// while the tab is in front.
    void addTab(const QString& key, QWidget* tab, QWidget* tools = nullptr);
    void setTitle(const QString& key, const QString& title, const QString& tip = {});
    [[nodiscard]] QString current() const;
    [[nodiscard]] bool isOpen() const { return m_isOpen; }
    [[nodiscard]] bool isShown(const QString& key) const { return m_isOpen && current() == key; }
    void setOpen(bool isOpen);
    /// In front, unfolded.
    void showTab(const QString& key);
    /// Folds or unfolds; what is unfolded takes the keyboard.
    void toggle();

    static constexpr int kLeastHeight = 110;

Q_SIGNALS:
    void shown(const QString& key); // a tab came in front, or the panel was unfolded

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    void applyHeight();
    void showTools();
    void drag(int globalY);
    void choose(int index);

    Services& m_services;
    QWidget* m_handle;
    QHBoxLayout* m_tabs;
    QToolButton* m_fold;
    QStackedWidget* m_stack;
    std::vector<QToolButton*> m_buttons;
    std::vector<QWidget*> m_tools; // null: none
    QHBoxLayout* m_row;
    std::vector<QString> m_keys;
    bool m_isOpen = true;
    int m_height;
    int m_dragFrom = 0, m_dragHeight = 0;
    Texts m_texts;
};

} // namespace celloom::ui
