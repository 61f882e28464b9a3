// What is wrong with the model, as one types: severity, message, hint, the place to go to, and what mends it.
#pragma once

#include "ui/common/model_analysis.h"
#include "ui/common/texts.h"

#include <QString>
#include <QPointer>
#include <QWidget>

#include <functional>
#include <optional>
#include <string>
#include <vector>

class QMenu;
class QTreeWidget;
class QTreeWidgetItem;

namespace celloom::ui {

class EmptyState;
struct Services;

/// What a button of a problem does: "Wire norm.out to x".
struct Remedy {
    QString title;
    std::function<void()> run;
};

struct ProblemRow {
    bool isError = true;
    QString message, hint;
    QString place;    // as it is shown: the cell's path, or "Train"
    std::string path; // of a cell; empty: the graph itself
    std::vector<Remedy> remedies;
    QString field = {}; // of the recipe, where it is the recipe's: "rules"
};

class ProblemsTab : public QWidget {
    Q_OBJECT
public:
    explicit ProblemsTab(Services& services, QWidget* parent = nullptr);

    /// Keeps the row that is chosen where it is still there.
    void setRows(std::vector<ProblemRow> rows);
    /// What was found out about a row later; `row` as in setRows().
    void setRemedies(std::size_t row, std::vector<Remedy> remedies);
    [[nodiscard]] const std::vector<ProblemRow>& rows() const { return m_rows; }
    /// The chosen row, or the first of the cell at `path`, or the first that can be mended.
    void mend(const std::string& path);
    /// Chooses the next row, or the one before, and asks to go there.
    void goToNext(int direction);

Q_SIGNALS:
    void jumpRequested(const std::string& path);
    void fieldRequested(const QString& key); // a field of the recipe

protected:
    void changeEvent(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void fillRow(std::size_t row);
    void jump(const QTreeWidgetItem* item);
    void mendRow(std::size_t row);

    Services& m_services;
    QTreeWidget* m_list;
    EmptyState* m_empty;
    std::vector<ProblemRow> m_rows;
    QPointer<QMenu> m_offers; // of one problem's fixes, while it is open
    Texts m_texts;
};

} // namespace celloom::ui
