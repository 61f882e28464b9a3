// The first thing a newcomer sees: what Celloom is, an example that runs at one press, recent runs, opening a recipe.
#pragma once

#include "ui/common/run_store.h"
#include "ui/shell/page.h"

#include <vector>

class QLabel;
class QVBoxLayout;

namespace celloom::ui {

class Card;
struct Services;

/// A recipe shipped with Celloom.
struct Example {
    QString path, name;
    bool isTuning = false;
    QString model;       // as the recipe names it
    QString missingBase; // the weights that it begins with, where they are not on this machine
};
/// The two journeys first: pretraining, then fine-tuning. A file that is no recipe is left out.
std::vector<Example> findExamples(const QString& folder);

class WelcomePage : public Page {
    Q_OBJECT
public:
    explicit WelcomePage(Services& services, QWidget* parent = nullptr);

Q_SIGNALS:
    void runExampleRequested(const QString& path);
    void openExampleRequested(const QString& path);
    void openRecipeRequested();
    void runChosen(const QString& folder);
    void historyRequested();

private:
    struct ExampleTexts {
        QString title, about, time;
    };
    QWidget* buildExample(const Example& example);
    static ExampleTexts textsOf(const Example& example);
    void showRuns(const RunListPtr& runs);

    Services& m_services;
    Card* m_recent;
    QVBoxLayout* m_recentRows;
    RunListPtr m_runs;
};

} // namespace celloom::ui
