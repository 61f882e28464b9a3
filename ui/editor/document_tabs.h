// The row of tabs above the canvas: which models are open, which one is in front, which have unsaved edits. Asks; changes nothing itself.
#pragma once

#include "ui/common/texts.h"

#include <QFrame>

class QTabBar;
class QToolButton;

namespace celloom::ui {

class ModelDocument;
class OpenModels;
class Theme;

class DocumentTabs : public QFrame {
    Q_OBJECT
public:
    DocumentTabs(OpenModels& models, Theme& theme, QWidget* parent = nullptr);

Q_SIGNALS:
    void chosen(int index);
    void closeRequested(int index);
    void newRequested();

protected:
    void changeEvent(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void refresh();
    [[nodiscard]] QString titleOf(const ModelDocument& model) const;
    void addTab();
    void showMenu(const QPoint& position);

    OpenModels& m_models;
    Theme& m_theme;
    Texts m_texts;
    QTabBar* m_bar;
    QToolButton* m_new;
    bool m_isRefreshing = false;
};

} // namespace celloom::ui
