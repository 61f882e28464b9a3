// The bar of six pages on the left.
#pragma once

#include "ui/common/texts.h"

#include <QFrame>

#include <vector>

class QToolButton;

namespace celloom::ui {

class Theme;

enum class PageId { Model, Data, Train, Live, History, Try };
inline constexpr int kPageCount = 6;

class PageBar : public QFrame {
    Q_OBJECT
public:
    PageBar(Theme& theme, QWidget* parent = nullptr);
    /// Marks this page; without one (the welcome) none is marked.
    void setCurrent(PageId page);
    void clearCurrent();

Q_SIGNALS:
    void chosen(celloom::ui::PageId page);

protected:
    void changeEvent(QEvent* event) override;

private:
    void refreshIcons();

    Theme& m_theme;
    Texts m_texts;
    std::vector<QToolButton*> m_buttons;
};

} // namespace celloom::ui
