#include "ui/live/results_card.h"

#include "ui/common/format.h"

#include <QGridLayout>
#include <QLabel>
#include <QVBoxLayout>

#include <cmath>

namespace celloom::ui {

namespace {

constexpr int kTilesInARow = 4;

struct Known {
    const char *metric, *name;
    enum Form { Number, Share, Count } form;
};
constexpr Known kKnown[] = {
    {"eval/loss", QT_TRANSLATE_NOOP("celloom::ui::ResultsCard", "Loss"), Known::Number},
    {"eval/perplexity", QT_TRANSLATE_NOOP("celloom::ui::ResultsCard", "Perplexity"), Known::Number},
    {"eval/accuracy", QT_TRANSLATE_NOOP("celloom::ui::ResultsCard", "Accuracy"), Known::Share},
    {"eval/exact_match", QT_TRANSLATE_NOOP("celloom::ui::ResultsCard", "Answered exactly as expected"), Known::Share},
    {"predict/rows", QT_TRANSLATE_NOOP("celloom::ui::ResultsCard", "Texts written"), Known::Count},
    {"predict/exact_match", QT_TRANSLATE_NOOP("celloom::ui::ResultsCard", "Answered exactly as expected"), Known::Share},
    {"predict/tokens_per_s", QT_TRANSLATE_NOOP("celloom::ui::ResultsCard", "Tokens a second"), Known::Count},
};

QString valueText(double value, Known::Form form) {
    if (!std::isfinite(value)) return Format::number(value);
    if (form == Known::Count) return Format::count(std::llround(value));
    return form == Known::Share ? QStringLiteral("%1 %").arg(QString::number(100 * value, 'f', 1)) : Format::number(value);
}

QWidget* makeTile(const QString& name, const QString& value, QWidget* parent) {
    auto* tile = new QWidget(parent);
    auto* layout = new QVBoxLayout(tile);
    layout->setContentsMargins(0, 4, 18, 8);
    layout->setSpacing(2);
    QLabel* caption = makeLabel("small", tile);
    caption->setText(name);
    QLabel* number = makeLabel("title", tile);
    number->setText(value);
    number->setTextInteractionFlags(Qt::TextSelectableByMouse);
    number->setAccessibleName(name + QStringLiteral(": ") + value);
    QFont font = number->font();
    font.setPointSizeF(font.pointSizeF() * 1.8);
    number->setFont(font);
    layout->addWidget(caption);
    layout->addWidget(number);
    return tile;
}

} // namespace

ResultsCard::ResultsCard(QWidget* parent) : Card(parent) {
    m_none = makeLabel("muted", this);
    m_none->setWordWrap(true);
    auto* holder = new QWidget(this);
    m_grid = new QGridLayout(holder);
    m_grid->setContentsMargins(0, 0, 0, 0);
    for (int column = 0; column < kTilesInARow; ++column) m_grid->setColumnStretch(column, 1);
    m_place = makeLabel("small", this);
    m_place->setWordWrap(true);
    m_place->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_place->hide();
    for (QWidget* widget : std::initializer_list<QWidget*>{m_none, holder, m_place}) body()->addWidget(widget);
    retranslate();
}

void ResultsCard::clear() {
    m_latest.clear();
    setPlace({});
    refresh();
}

void ResultsCard::add(const std::vector<store::MetricRow>& rows) {
    bool isNews = false;
    for (const store::MetricRow& row : rows) {
        if (row.isSuperseded || !(row.name.starts_with("eval/") || row.name.starts_with("predict/"))) continue;
        m_latest[row.name] = row.value;
        isNews = true;
    }
    if (isNews) refresh();
}

void ResultsCard::setPlace(const QString& text) {
    m_place->setText(text);
    m_place->setVisible(!text.isEmpty());
}

void ResultsCard::retranslate() {
    setTitle(tr("Results"));
    m_none->setText(tr("The numbers appear here as soon as the run has them."));
    refresh();
}

std::vector<std::pair<QString, QString>> ResultsCard::values() const {
    std::vector<std::pair<QString, QString>> out;
    std::map<std::string, double> others = m_latest;
    for (const Known& known : kKnown) {
        const auto found = m_latest.find(known.metric);
        if (found == m_latest.end()) continue;
        out.emplace_back(tr(known.name), valueText(found->second, known.form));
        others.erase(known.metric);
    }
    for (const auto& [name, value] : others) // under the name that the recipe gives them
        out.emplace_back(fromUtf8(name).section(QLatin1Char('/'), 1), valueText(value, Known::Number));
    return out;
}

void ResultsCard::refresh() {
    for (QWidget* tile : m_tiles) delete tile;
    m_tiles.clear();
    for (const auto& [name, value] : values()) {
        const int at = static_cast<int>(m_tiles.size());
        m_tiles.push_back(makeTile(name, value, this));
        m_grid->addWidget(m_tiles.back(), at / kTilesInARow, at % kTilesInARow);
    }
    m_none->setVisible(m_tiles.empty());
}

} // namespace celloom::ui
