// Asks how a run goes on: where it stands, the settings that may change, and what that changes from which step on, before it is done.
#pragma once

#include "models/recipe/recipe.h"
#include "models/recipe/resume.h"
#include "models/store/run_folder.h"

#include <QDialog>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

class QGridLayout;
class QLabel;
class QPushButton;

namespace celloom::ui {

class ResumeDialog : public QDialog {
    Q_OBJECT
public:
    /// Settings to change, by key, as text; empty: none.
    using Changes = std::map<std::string, std::string>;
    /// Deletes itself when closed; `resume` is called once, where the user agrees.
    ResumeDialog(const store::RunFolder& folder, bool isChinese, std::function<void(const Changes&)> resume, QWidget* parent = nullptr);
    ~ResumeDialog() override;

private:
    struct Row {
        std::string key, before;
        QWidget* editor = nullptr;
    };
    void addRow(QGridLayout* grid, const recipe::Field& field);
    [[nodiscard]] static QString textOf(const QWidget* editor);
    [[nodiscard]] Changes changes() const;
    void refresh();
    QString standing(const std::string& checkpoint, const recipe::ResumeEffect& effect) const;
    QStringList sentences(const recipe::ResumeEffect& effect) const;
    QString labelOf(const std::string& key) const;

    const store::RunFolder m_folder;
    const bool m_isChinese;
    std::function<void(const Changes&)> m_resume;
    recipe::Recipe m_recipe;
    std::vector<Row> m_rows;
    QLabel* m_standing;
    QLabel* m_reason;
    QLabel* m_effect;
    QLabel* m_problem;
    QPushButton* m_go;
};

} // namespace celloom::ui
