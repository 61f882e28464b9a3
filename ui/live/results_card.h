// What a run without steps found: the numbers of an evaluation, or how many prompts a prediction has answered and where its texts are.
#pragma once

#include "models/store/run_store.h"
#include "ui/common/widgets.h"

#include <map>
#include <vector>

class QGridLayout;
class QLabel;

namespace celloom::ui {

class ResultsCard : public Card {
    Q_OBJECT
public:
    explicit ResultsCard(QWidget* parent = nullptr);

    void clear();
    /// The newest of each metric that such a run reports counts; others are left out.
    void add(const std::vector<store::MetricRow>& rows);
    /// Below the numbers: where the texts are. Empty: nothing.
    void setPlace(const QString& text);
    void retranslate();
    /// "Perplexity" and "12.3": as they are shown, in their order.
    [[nodiscard]] std::vector<std::pair<QString, QString>> values() const;

private:
    void refresh();

    std::map<std::string, double> m_latest;
    QGridLayout* m_grid;
    QLabel* m_none;
    QLabel* m_place;
    std::vector<QWidget*> m_tiles;
};

} // namespace celloom::ui
