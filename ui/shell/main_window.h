// The window: bars, pages, and the few things that cross them: run, validate, open a run, open a recipe.
#pragma once

#include "ui/common/model_analysis.h"
#include "ui/common/run_actions.h"
#include "ui/common/run_store.h"
#include "ui/common/texts.h"
#include "ui/shell/page_bar.h"

#include <QMainWindow>

#include <functional>

class QStackedWidget;

namespace celloom::ui {

class BottomBar;
class HistoryPage;
class LivePage;
class ModelPage;
class Notice;
class Page;
class RunExporter;
class TopBar;
class TrainPage;
class TryPage;
class WelcomePage;
struct Services;

class MainWindow : public QMainWindow {
    Q_OBJECT
public:
    explicit MainWindow(Services& services, QWidget* parent = nullptr);

    void showPage(PageId page);
    /// Once unsaved edits of the present recipe are saved or given up. `then` is called when it is open.
    void openRecipe(const QString& path, const std::function<void()>& then = {});
    void showWelcome();

protected:
    void closeEvent(QCloseEvent* event) override;
    void changeEvent(QEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;

private:
    void buildPages(QStackedWidget* stack);
    void connectEngine();
    void addShortcuts();
    void openStartingRun(const RunListPtr& runs);
    void refreshContext();
    void leavePage();

    [[nodiscard]] QString nameOfRecipe() const;
    /// Asks what becomes of unsaved edits of the recipe, if there are any. `then` is called unless the user cancels.
    void leaveRecipe(const std::function<void()>& then);
    void takeRecipe(recipe::Recipe recipe, const QString& name);
    void chooseRecipe();
    void run();
    void validate();
    void keepEdits();
    void rememberRecipe();
    /// Waits for the analysis of the recipe as it is now, then reports, and with `andRun` submits.
    void check(bool andRun);
    void finishCheck();
    void submit();
    void openRun(const QString& folder);
    void resumeRun(const QString& folder);
    void tryRun(const QString& folder);
    void cloneRun(const QString& folder);
    void actOnRun(RunAction action, const QString& folder);
    /// A new recipe that tunes this model: a folder or a checkpoint.
    void tune(const QString& model, const QString& name);

    Services& m_services;
    Texts m_texts;
    TopBar* m_top;
    PageBar* m_pages;
    BottomBar* m_bottom;
    Notice* m_notice;
    RunExporter* m_exporter;
    QStackedWidget* m_stack;
    WelcomePage* m_welcome;
    ModelPage* m_model;
    TrainPage* m_train;
    LivePage* m_live;
    HistoryPage* m_history;
    TryPage* m_try;
    std::vector<Page*> m_byId;
    bool m_isChecking = false, m_runAfterCheck = false, m_hasChosenStart = false;
    QString m_clonePending;
};

} // namespace celloom::ui
