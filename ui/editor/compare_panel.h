// The list of what differs between the model in front and another one, in place of the palette while one compares.
#pragma once

#include "models/graph/comparison.h"
#include "ui/common/texts.h"

#include <QFrame>
#include <QString>

#include <vector>

class QLabel;
class QToolButton;
class QTreeWidget;
class QTreeWidgetItem;

namespace celloom::ui {

class ElidedLabel;
class Theme;

class ComparePanel : public QFrame {
    Q_OBJECT
public:
    explicit ComparePanel(Theme& theme, QWidget* parent = nullptr);
    /// `other`: what the model is compared with, as it is called.
    void show(const QString& other, const std::vector<graph::Finding>& findings);

Q_SIGNALS:
    void chosen(const celloom::graph::Finding& finding);
    void closeRequested();

protected:
    void changeEvent(QEvent* event) override;

private:
    void fill();
    void jump(const QTreeWidgetItem* item);

    Theme& m_theme;
    Texts m_texts;
    ElidedLabel* m_title;
    QLabel *m_legend, *m_count;
    QToolButton* m_close;
    QTreeWidget* m_list;
    QString m_other;
    std::vector<graph::Finding> m_findings;
};

} // namespace celloom::ui
