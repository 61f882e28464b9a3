#include "ui/train/batch_preview.h"

#include "models/base/files.h"
#include "ui/common/format.h"
#include "ui/common/messages.h"
#include "ui/common/recipe_document.h"
#include "ui/common/theme.h"
#include "ui/common/widgets.h"
#include "ui/train/token_view.h"

#include <QEvent>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QPainter>
#include <QProgressBar>
#include <QPushButton>
#include <QTimer>
#include <QVBoxLayout>

#include <algorithm>

namespace celloom::ui {

LengthHistogram::LengthHistogram(Theme& theme, QWidget* parent) : QWidget(parent), m_theme(theme) {
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
    connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void LengthHistogram::setBins(std::vector<PreviewBin> bins, std::int64_t mark) {
    m_bins = std::move(bins);
    m_mark = mark;
    QStringList said;
    for (const PreviewBin& bin : m_bins) said.append(tr("up to %1 tokens: %2").arg(Format::count(bin.upTo), Format::count(bin.count)));
    setAccessibleDescription(said.join(QStringLiteral("; ")));
    setToolTip(said.join(QLatin1Char('\n')));
    update();
}

void LengthHistogram::paintEvent(QPaintEvent*) {
    if (m_bins.empty()) return;
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    QFont small = font();
    small.setPointSizeF(8);
    painter.setFont(small);
    const int lineHeight = QFontMetrics(small).height();
    std::int64_t most = 1;
    for (const PreviewBin& bin : m_bins) most = std::max(most, bin.count);
    const double step = static_cast<double>(width()) / static_cast<double>(m_bins.size());
    const int bottom = height() - lineHeight - 3, top = lineHeight + 1;
    for (std::size_t i = 0; i < m_bins.size(); ++i) {
        const PreviewBin& bin = m_bins[i];
        const double share = static_cast<double>(bin.count) / static_cast<double>(most);
        const double tall = bin.count == 0 ? 0 : std::max(2.0, share * (bottom - top));
        const QRectF bar(static_cast<double>(i) * step + 3, bottom - tall, step - 6, tall);
        painter.setPen(Qt::NoPen);
        painter.setBrush(m_theme.color(m_mark > 0 && bin.upTo > m_mark ? "warning" : "blue"));
        painter.drawRoundedRect(bar, 2, 2);
        painter.setPen(m_theme.color("muted"));
        const QRectF column(static_cast<double>(i) * step - 4, 0, step + 8, height());
        if (bin.count > 0) painter.drawText(QRectF(column.left(), bar.top() - lineHeight - 1, column.width(), lineHeight), Qt::AlignCenter, Format::count(bin.count));
        painter.drawText(QRectF(column.left(), bottom + 2, column.width(), lineHeight), Qt::AlignCenter,
                         QStringLiteral("≤") + Format::shortCount(static_cast<double>(bin.upTo)));
    }
    painter.setPen(m_theme.color("border"));
    painter.drawLine(0, bottom, width(), bottom);
}

BatchPreview::BatchPreview(PreviewData data, Theme& theme, QWidget* parent)
    : QDialog(parent), m_data(std::move(data)), m_tokens(new TokenView(theme, this)) {
    setAttribute(Qt::WA_DeleteOnClose);
    setModal(false);
    resize(1040, 700);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(16, 14, 16, 14);
    layout->setSpacing(10);
    auto* facts = makeLabel("value", this);
    auto* counts = makeLabel("muted", this);
    auto* warning = makeLabel("warning", this);
    for (QLabel* label : {facts, counts, warning}) {
        label->setWordWrap(true);
        label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    }
    auto* top = new QHBoxLayout;
    top->setSpacing(24);
    auto* words = new QVBoxLayout;
    words->setSpacing(5);
    for (QLabel* label : {facts, counts, warning}) words->addWidget(label);
    words->addStretch(1);
    top->addLayout(words, 1);
    auto* lengthsTitle = makeLabel("small", this);
    auto* lengths = new LengthHistogram(theme, this);
    auto* right = new QVBoxLayout;
    right->setSpacing(2);
    right->addWidget(lengthsTitle);
    right->addWidget(lengths);
    top->addLayout(right);
    const bool hasLengths = m_data.samples && !m_data.samples->lengths.empty();
    lengthsTitle->setVisible(hasLengths);
    lengths->setVisible(hasLengths);
    layout->addLayout(top);
    auto* legend = makeLabel("small", this);
    legend->setTextFormat(Qt::RichText);
    layout->addWidget(legend);
    layout->addWidget(m_tokens, 1);
    auto* status = makeLabel("muted", this);
    auto* close = new QPushButton(this);
    auto* bottom = new QHBoxLayout;
    bottom->addWidget(status, 1);
    bottom->addWidget(close);
    layout->addLayout(bottom);
    connect(close, &QPushButton::clicked, this, &QDialog::close);
    const auto hint = [] { return tr("Point at a token, or walk with the arrow keys."); };
    connect(m_tokens, &TokenView::described, status, [status, hint](const QString& text) { status->setText(text.isEmpty() ? hint() : text); });
    m_tokens->setRows(m_data.rows);
    m_tokens->setFocus();
    const auto setLegend = [legend, &theme] {
        const auto span = [&theme](const char* color, const QString& text) {
            return QStringLiteral("<span style=\"color:%1\">■</span> %2").arg(theme.color(color).name(), text);
        };
        legend->setText(QStringList{span("blue", tr("learned")), span("slate", tr("read, not learned")), span("violet", tr("framed: a mark")),
                                    span("orange", tr("border between documents"))}
                            .join(QStringLiteral("&nbsp;&nbsp;&nbsp;&nbsp;")));
    };
    connect(&theme, &Theme::changed, legend, setLegend);
    m_texts.add([this, facts, counts, warning, lengthsTitle, lengths, close, status, hint, setLegend] {
        setWindowTitle(tr("First batch of the run"));
        facts->setText(factsText());
        counts->setText(countsText());
        warning->setText(warningText());
        warning->setVisible(!warning->text().isEmpty());
        lengthsTitle->setText(tr("Tokens in a conversation"));
        lengths->setAccessibleName(lengthsTitle->text());
        if (m_data.samples) lengths->setBins(m_data.samples->lengths, m_data.sequenceLength);
        close->setText(tr("Close"));
        m_tokens->setAccessibleName(tr("Tokens of the batch"));
        status->setText(hint());
        setLegend();
    });
}

QString BatchPreview::factsText() const {
    QStringList lines;
    constexpr std::size_t kShown = 3;
    for (std::size_t i = 0; i < std::min(kShown, m_data.files.size()); ++i) {
        const PreviewFile& file = m_data.files[i];
        QStringList parts{QFileInfo(file.path).fileName(), file.format, file.encoding, Format::bytes(static_cast<double>(file.bytes))};
        parts.removeAll(QString());
        lines.append(parts.join(QStringLiteral(" · ")));
    }
    if (m_data.files.size() > kShown) lines.append(tr("and %n more file(s)", "", static_cast<int>(m_data.files.size() - kShown)));
    if (!m_data.templateName.isEmpty()) lines.append(tr("Chat template: %1 (%2)").arg(m_data.templateName, m_data.templateSource));
    if (m_data.vocabulary > 0)
        lines.append((m_data.isTokenizerTrained ? tr("Tokenizer of %1 pieces, trained on these files") : tr("Tokenizer of %1 pieces"))
                         .arg(Format::count(m_data.vocabulary)));
    return lines.join(QLatin1Char('\n'));
}

QString BatchPreview::countsText() const {
    if (!m_data.columns.empty()) {
        QStringList lines{tr("%1 rows to learn from, %2 held out.").arg(Format::count(m_data.sequences), Format::count(m_data.heldOut))};
        for (const PreviewColumn& column : m_data.columns)
            lines.append(QStringLiteral("%1 %2 %3: ").arg(column.name, column.shape, column.type) +
                         tr("%1 to %2, mean %3, spread %4").arg(Format::number(column.minimum), Format::number(column.maximum), Format::number(column.mean), Format::number(column.deviation)));
        return lines.join(QLatin1Char('\n'));
    }
    QString text = tr("%1 sequences of at most %2 tokens, %3 held out.")
                       .arg(Format::count(m_data.sequences), Format::count(m_data.sequenceLength), Format::count(m_data.heldOut));
    if (m_data.samples) {
        const PreviewSamples& s = *m_data.samples;
        text += QLatin1Char('\n') + tr("%1 conversations, the longest of %2 tokens; %3 of %4 tokens are learned.")
                                        .arg(Format::count(s.conversations), Format::count(s.longest), Format::count(s.trainable), Format::count(s.tokens));
    }
    return text + QLatin1Char('\n') +
           tr("This batch: %1 rows of %2 tokens, %3 learned.")
               .arg(Format::count(std::ssize(m_data.rows)), Format::count(m_data.batchLength), Format::count(m_data.learned));
}

QString BatchPreview::warningText() const {
    QStringList lines;
    for (const QString& sentence : m_data.fallbacks) lines.append(said(sentence));
    if (m_data.samples) {
        const PreviewSamples& s = *m_data.samples;
        if (s.truncated > 0) lines.append(tr("%1 conversations are too long and were shortened.").arg(Format::count(s.truncated)));
        if (s.dropped > 0) lines.append(tr("%1 conversations were left out.").arg(Format::count(s.dropped)));
        if (s.untrainable > 0) lines.append(tr("%1 conversations have no token to learn.").arg(Format::count(s.untrainable)));
    }
    return lines.join(QLatin1Char('\n'));
}

void BatchPreview::changeEvent(QEvent* event) {
    QDialog::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) m_texts.refresh();
}

PreviewRowWidget::PreviewRowWidget(RecipeDocument& document, QString engineProgram, Theme& theme, QWidget* parent)
    : QWidget(parent), m_document(document), m_theme(theme), m_job(std::move(engineProgram)) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 6, 0, 2);
    column->setSpacing(4);
    auto* row = new QHBoxLayout;
    row->setSpacing(10);
    m_start = new QPushButton(this);
    m_busy = new QProgressBar(this);
    m_busy->setRange(0, 0);
    m_busy->setTextVisible(false);
    m_busy->setFixedWidth(120);
    m_status = makeLabel("muted", this);
    for (QWidget* widget : std::initializer_list<QWidget*>{m_start, m_busy, m_status}) row->addWidget(widget);
    row->addStretch(1);
    column->addLayout(row);
    auto* below = new QHBoxLayout;
    m_problem = makeLabel("problem", this);
    m_problem->setWordWrap(true);
    m_problem->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_showField = new QPushButton(this);
    m_showField->setProperty("role", QStringLiteral("link"));
    below->addWidget(m_problem, 1);
    below->addWidget(m_showField, 0, Qt::AlignTop);
    column->addLayout(below);
    m_problem->hide();
    m_showField->hide();
    m_clock = new QTimer(this);
    m_clock->setInterval(500);
    connect(m_clock, &QTimer::timeout, this, &PreviewRowWidget::refresh);
    connect(m_start, &QPushButton::clicked, this, [this] {
        if (m_job.isRunning())
            m_job.cancel();
        else
            start();
    });
    connect(m_showField, &QPushButton::clicked, this, [this] { Q_EMIT fieldRequested(m_field); });
    connect(&m_job, &EngineJob::finished, this, &PreviewRowWidget::showBatch);
    connect(&m_job, &EngineJob::failed, this, &PreviewRowWidget::showError);
    connect(&m_job, &EngineJob::cancelled, this, &PreviewRowWidget::refresh);
    m_texts.add([this] {
        m_busy->setAccessibleName(tr("Reading the data"));
        m_showField->setText(tr("Show the field"));
        refresh();
    });
}

void PreviewRowWidget::start() {
    m_problem->hide();
    m_showField->hide();
    m_folder = std::make_unique<QTemporaryDir>();
    const QString path = m_folder->filePath(QStringLiteral("recipe.json"));
    if (Status status = writeFileAtomically(toPath(path), m_document.recipe().withAbsolutePaths().toJson()); !status) return showError(status.error());
    m_job.start({QStringLiteral("data"), QStringLiteral("preview"), path});
    refresh();
}

void PreviewRowWidget::refresh() {
    const bool isBusy = m_job.isRunning();
    m_busy->setVisible(isBusy);
    m_status->setVisible(isBusy);
    m_start->setText(isBusy ? tr("Cancel") : tr("Preview first batch"));
    m_start->setToolTip(isBusy ? QString() : tr("Reads and tokenises the data as the run would, and shows what its first step begins with"));
    m_status->setText(tr("Reading and tokenising the data, %1").arg(Format::duration(m_job.isRunning() ? m_job.seconds() : 0)));
    if (isBusy && !m_clock->isActive()) m_clock->start();
    if (!isBusy) m_clock->stop();
}

void PreviewRowWidget::showBatch(const QByteArray& answer) {
    refresh();
    auto data = readPreview(answer);
    if (!data) return showError(data.error());
    if (m_shown) m_shown->close();
    m_shown = new BatchPreview(std::move(*data), m_theme, window());
    m_shown->show();
}

void PreviewRowWidget::showError(const Error& error) {
    refresh();
    const bool isField = recipe::findField(error.place) != nullptr;
    m_field = isField ? fromUtf8(error.place) : QString();
    // The recipe's own file is a temporary one here, and its name says nothing.
    const bool isRecipe = m_folder && error.place.starts_with(toUtf8(m_folder->path()));
    m_problem->setText(Format::error(isField || isRecipe ? Error{error.message, error.hint, {}} : error));
    m_problem->show();
    m_showField->setVisible(isField);
}

void PreviewRowWidget::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) m_texts.refresh();
}

} // namespace celloom::ui
