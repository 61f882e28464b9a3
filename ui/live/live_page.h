// The Live page: one run as it goes: state and control, curves, samples, events, and how other runs compare.
#pragma once

#include "ui/common/run_actions.h"
#include "ui/common/run_store.h"
#include "ui/live/run_curves.h"
#include "ui/shell/page.h"

#include <deque>
#include <vector>

class QGridLayout;
class QStackedWidget;
class QTableView;
class QTextBrowser;
class QTimer;
class QToolButton;

namespace celloom::ui {

class EmptyState;
class EventsModel;
class MetricCard;
class ResultsCard;
class RunHeader;
class RunsFilter;
class RunsModel;
class Card;
struct RunMessage;
struct Services;

class LivePage : public Page {
    Q_OBJECT
public:
    explicit LivePage(Services& services, QWidget* parent = nullptr);

    /// Shows this run (name of its folder) from now on.
    void open(const QString& folder);
    [[nodiscard]] QString run() const { return m_folder; }
    [[nodiscard]] QString context() const override;

Q_SIGNALS:
    void runChosen(const QString& folder);
    void resumeRequested(const QString& folder);
    void tryRequested(const QString& folder);
    void welcomeRequested();
    void runActionRequested(celloom::ui::RunAction action, const QString& folder);
    void failed(const QString& text);

private:
    QWidget* buildContent();
    QWidget* buildCharts();
    QWidget* buildSamples();
    QWidget* buildEvents();
    QWidget* buildCompare();
    void buildChartControls(Card* card);
    QWidget* buildEmpty();
    void connectServices();

    void onRead(const RunDeltaPtr& delta);
    void onRuns(const RunListPtr& runs);
    void act(const QString& action, std::optional<double> value = {});
    void askRate();
    void readRecipe();
    void showAbilities();
    void pollSoon();
    void showCurves();
    void showSamples();
    void setAxis(XAxis axis);
    void setSmoothing(double weight);

    Services& m_services;
    QString m_folder;
    std::string m_kind; // of the run's recipe
    bool m_hasValidation = false;
    RunCurves m_curves;
    std::deque<store::SampleRow> m_samples; // newest first
    QTimer* m_pollTimer;                    // joins the engine's reports
    QTimer* m_heartbeat;                    // reads on where no engine reports
    XAxis m_axis = XAxis::Step;
    double m_smoothing = 0.9;

    QStackedWidget* m_stack;
    EmptyState* m_empty;
    RunHeader* m_header;
    std::vector<MetricCard*> m_cards;
    MetricCard* m_loss;
    QGridLayout* m_grid;
    ResultsCard* m_results; // of a run that makes no steps, in place of the charts
    Card* m_samplesCard;
    QToolButton* m_setRate;
    QToolButton* m_evaluate;
    QToolButton* m_sample;
    QToolButton* m_axisButton;
    QToolButton* m_smoothButton;
    QToolButton* m_logButton;
    QTextBrowser* m_sampleView;
    EmptyState* m_noSamples;
    QStackedWidget* m_sampleStack;
    EventsModel* m_events;
    QTableView* m_eventView;
    RunsModel* m_runs;
    RunsFilter* m_compareFilter;
    QTableView* m_compare;
};

} // namespace celloom::ui
