#include "ui/playground/column_view.h"

#include "ui/common/format.h"
#include "ui/common/theme.h"
#include "ui/common/widgets.h"
#include "ui/playground/transcript_view.h"

#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QEvent>
#include <QHBoxLayout>
#include <QMenu>
#include <QSignalBlocker>
#include <QStyleOptionComboBox>
#include <QStylePainter>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>

namespace celloom::ui {

namespace {
constexpr int kGrowMs = 40;
constexpr int kAdapterWidth = 150;

/// A box whose text ends in "…" where it does not fit.
class ElidedBox : public QComboBox {
public:
    using QComboBox::QComboBox;

protected:
    void paintEvent(QPaintEvent*) override {
        QStylePainter painter(this);
        QStyleOptionComboBox option;
        initStyleOption(&option);
        const QRect room = style()->subControlRect(QStyle::CC_ComboBox, &option, QStyle::SC_ComboBoxEditField, this);
        if (currentIndex() < 0) option.currentText = placeholderText();
        option.currentText = option.fontMetrics.elidedText(option.currentText, Qt::ElideRight, room.width() - 2);
        painter.drawComplexControl(QStyle::CC_ComboBox, option);
        painter.drawControl(QStyle::CE_ComboBoxLabel, option);
    }
};

} // namespace

ColumnView::ColumnView(Playground& playground, const QString& column, Theme& theme, QWidget* parent)
    : QFrame(parent), m_playground(playground), m_column(column), m_theme(theme) {
    setProperty("role", QStringLiteral("card"));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(12, 10, 12, 8);
    layout->setSpacing(6);
    layout->addWidget(buildHeader());
    auto* second = new QHBoxLayout;
    second->setSpacing(6);
    m_facts = new ElidedLabel(Qt::ElideRight, this);
    m_facts->setProperty("role", QStringLiteral("small"));
    m_adapter = makeQuietButton(this);
    m_adapter->setPopupMode(QToolButton::InstantPopup);
    m_adapter->setMenu(new QMenu(m_adapter));
    connect(m_adapter->menu(), &QMenu::aboutToShow, this, &ColumnView::fillAdapters);
    second->addWidget(m_facts, 1);
    second->addWidget(m_adapter);
    layout->addLayout(second);
    m_error = makeLabel("problem", this);
    m_error->setWordWrap(true);
    m_error->setTextInteractionFlags(Qt::TextSelectableByMouse);
    layout->addWidget(m_error);
    layout->addWidget(makeLine(this));
    m_transcript = new TranscriptView(playground, column, theme, this);
    layout->addWidget(m_transcript, 1);
    layout->addWidget(buildFooter());
    m_growing = new QTimer(this);
    m_growing->setSingleShot(true);
    m_growing->setInterval(kGrowMs);
    connect(m_growing, &QTimer::timeout, this, [this] {
        m_transcript->grow();
        refreshFooter();
    });
    connect(&playground, &Playground::answerGrew, this, [this](const QString& name) {
        if (name == m_column && !m_growing->isActive()) m_growing->start();
    });
    connect(&playground, &Playground::answerEnded, this, [this](const QString& name) {
        if (name != m_column) return;
        m_growing->stop();
        m_transcript->finish();
        refreshFooter();
    });
    connect(&playground, &Playground::columnChanged, this, [this](const QString& name) {
        if (name == m_column) refresh();
    });
    connect(&playground, &Playground::turnsChanged, this, [this] {
        m_growing->stop();
        m_transcript->rebuild();
        refreshFooter();
    });
    connect(&playground, &Playground::writingChanged, this, &ColumnView::refreshFooter);
    connect(&theme, &Theme::changed, m_transcript, &TranscriptView::rebuild);
    m_texts.add([this] {
        m_picker->setAccessibleName(tr("Model"));
        m_close->setToolTip(tr("Close this column"));
        m_close->setAccessibleName(tr("Close this column"));
        m_copy->setToolTip(tr("Copy the last answer"));
        m_copy->setAccessibleName(tr("Copy the last answer"));
        m_again->setToolTip(tr("Ask once more, with the next seed"));
        m_again->setAccessibleName(tr("Ask once more, with the next seed"));
        m_transcript->setAccessibleName(tr("Conversation"));
        setModels(m_models);
        m_transcript->rebuild();
        refresh();
        refreshFooter();
    });
}

QWidget* ColumnView::buildHeader() {
    auto* header = new QWidget(this);
    auto* row = new QHBoxLayout(header);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(6);
    m_picker = new ElidedBox(header);
    m_picker->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    m_picker->setMinimumContentsLength(8);
    connect(m_picker, &QComboBox::activated, this, &ColumnView::choose);
    m_close = makeQuietButton(header);
    connect(m_close, &QToolButton::clicked, this, [this] { m_playground.removeColumn(m_column); });
    row->addWidget(m_picker, 1);
    row->addWidget(m_close);
    const auto setIcons = [this] { m_close->setIcon(m_theme.icon(QStringLiteral("close"))); };
    setIcons();
    connect(&m_theme, &Theme::changed, this, setIcons);
    return header;
}

QWidget* ColumnView::buildFooter() {
    auto* footer = new QWidget(this);
    auto* row = new QHBoxLayout(footer);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(4);
    m_speed = new ElidedLabel(Qt::ElideRight, footer);
    m_speed->setProperty("role", QStringLiteral("small"));
    m_copy = makeQuietButton(footer);
    m_again = makeQuietButton(footer);
    connect(m_copy, &QToolButton::clicked, this, &ColumnView::copyAnswer);
    connect(m_again, &QToolButton::clicked, this, &ColumnView::regenerateRequested);
    row->addWidget(m_speed, 1);
    row->addWidget(m_again);
    row->addWidget(m_copy);
    const auto setIcons = [this] {
        m_copy->setIcon(m_theme.icon(QStringLiteral("copy")));
        m_again->setIcon(m_theme.icon(QStringLiteral("again")));
    };
    setIcons();
    connect(&m_theme, &Theme::changed, this, setIcons);
    return footer;
}

void ColumnView::setModels(const std::vector<ModelEntry>& models) {
    m_models = models;
    const QSignalBlocker blocker(m_picker);
    m_picker->clear();
    for (const ModelEntry& model : models) m_picker->addItem(model.label, model.source);
    if (!models.empty()) m_picker->insertSeparator(m_picker->count());
    m_picker->addItem(tr("Open folder…"));
    showSource();
}

/// Selects what the column has. A source that is not among the known ones (another workspace's run) is added.
void ColumnView::showSource() {
    const TryColumn* column = m_playground.column(m_column);
    if (!column) return;
    const QSignalBlocker blocker(m_picker);
    int index = column->source.isEmpty() ? -1 : m_picker->findData(column->source);
    if (index < 0 && !column->source.isEmpty()) {
        m_picker->insertItem(0, column->source.section(QLatin1Char('/'), -1, -1, QString::SectionSkipEmpty), column->source);
        index = 0;
    }
    m_picker->setCurrentIndex(index);
    m_picker->setPlaceholderText(tr("Choose a model…"));
    m_picker->setToolTip(column->source);
}

void ColumnView::choose(int index) {
    const QString source = m_picker->itemData(index).toString();
    showSource(); // until another model is really there
    if (source.isEmpty()) {
        Q_EMIT folderRequested(m_column);
        return;
    }
    const TryColumn* column = m_playground.column(m_column);
    if (column && column->source != source) m_playground.setModel(m_column, source, {}); // an adapter belongs to its base
}

void ColumnView::setAdapters(const std::vector<ModelEntry>& adapters) {
    m_adapters = adapters;
}

void ColumnView::fillAdapters() {
    QMenu* menu = m_adapter->menu();
    menu->clear();
    const TryColumn* column = m_playground.column(m_column);
    if (!column) return;
    const auto add = [&](const QString& label, const QStringList& adapters) {
        QAction* action = menu->addAction(label);
        action->setCheckable(true);
        action->setChecked(column->adapters == adapters);
        connect(action, &QAction::triggered, this, [this, adapters] { chooseAdapters(adapters); });
    };
    add(tr("No adapter"), {});
    for (const ModelEntry& adapter : m_adapters) add(adapter.label, {adapter.source});
    menu->addSeparator();
    connect(menu->addAction(tr("Open adapter folder…")), &QAction::triggered, this, [this] { Q_EMIT adapterRequested(m_column); });
}

void ColumnView::chooseAdapters(const QStringList& adapters) {
    const TryColumn* column = m_playground.column(m_column);
    if (column && column->adapters != adapters) m_playground.setModel(m_column, QString(column->source), adapters);
}

void ColumnView::setColoured(bool isColoured) {
    m_transcript->setColoured(isColoured);
}

const Answer* ColumnView::lastAnswer() const {
    if (m_playground.turns().empty()) return nullptr;
    const auto& answers = m_playground.turns().back().answers;
    const auto found = answers.find(m_column);
    return found == answers.end() ? nullptr : &found->second;
}

void ColumnView::copyAnswer() {
    if (const Answer* answer = lastAnswer()) QApplication::clipboard()->setText(answer->text());
}

void ColumnView::refresh() {
    const TryColumn* column = m_playground.column(m_column);
    if (!column) return;
    showSource();
    m_adapter->setVisible(!column->source.isEmpty() && (!column->hasOwnAdapter || !column->adapters.isEmpty()));
    QString adapter = column->adapters.isEmpty() ? tr("Adapter") : column->adapters.front().section(QLatin1Char('/'), -1, -1, QString::SectionSkipEmpty);
    for (const ModelEntry& known : m_adapters)
        if (column->adapters == QStringList{known.source} && !known.source.contains(QLatin1Char('/'))) adapter = known.label; // a run
    m_adapter->setText(m_adapter->fontMetrics().elidedText(adapter, Qt::ElideRight, kAdapterWidth) + QStringLiteral(" ▾"));
    m_facts->setMinimumHeight(m_adapter->sizeHint().height()); // columns without that button line up with others
    m_adapter->setToolTip(column->adapters.isEmpty() ? tr("An adapter on this model") : column->adapters.join(QLatin1Char('\n')));
    m_error->setVisible(column->state == TryColumn::State::Failed);
    m_error->setText(column->error);
    switch (column->state) {
    case TryColumn::State::Empty: m_facts->setText(tr("No model is chosen")); break;
    case TryColumn::State::Unloaded: m_facts->setText(tr("Not in memory; the next question loads it")); break;
    case TryColumn::State::Loading: m_facts->setText(tr("Loading…")); break;
    case TryColumn::State::Failed: m_facts->setText(tr("Not loaded")); break;
    case TryColumn::State::Ready: {
        const QString model = column->hasOwnAdapter ? tr("%1 + adapter").arg(column->model) : column->model;
        QStringList facts{model, tr("%1 parameters").arg(Format::shortCount(static_cast<double>(column->parameters)))};
        if (column->context > 0) facts.append(tr("context %1").arg(Format::count(column->context)));
        facts.append(column->device);
        m_facts->setText(facts.join(QStringLiteral(" · ")));
        break;
    }
    }
}

void ColumnView::refreshFooter() {
    const Answer* answer = lastAnswer();
    const bool hasText = answer && answer->count > 0;
    m_copy->setEnabled(hasText);
    m_again->setEnabled(answer && answer->isOver() && m_playground.canSend());
    if (!answer) {
        m_speed->setText({});
        return;
    }
    if (answer->state == Answer::State::Waiting) {
        const TryColumn* column = m_playground.column(m_column);
        m_speed->setText(column && column->state == TryColumn::State::Loading ? tr("Waits for the model…") : tr("Reads the question…"));
        return;
    }
    QString text = tr("%n token(s)", nullptr, static_cast<int>(answer->count));
    if (answer->tokensPerSecond > 0) text += QStringLiteral(" · ") + tr("%1 tokens/s").arg(Format::number(answer->tokensPerSecond, 3));
    m_speed->setText(text);
}

void ColumnView::changeEvent(QEvent* event) {
    QFrame::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) m_texts.refresh();
}

} // namespace celloom::ui
