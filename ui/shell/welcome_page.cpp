#include "ui/shell/welcome_page.h"

#include "models/recipe/recipe.h"
#include "ui/common/format.h"
#include "ui/common/theme.h"
#include "ui/common/widgets.h"
#include "ui/shell/services.h"

#include <QDir>
#include <QHBoxLayout>
#include <QPushButton>
#include <QScrollArea>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>

namespace celloom::ui {

namespace {

constexpr int kRecentRuns = 6;
constexpr int kColumnWidth = 760;
const QString kSanguo = QStringLiteral("baichuan-tiny-sanguo");
const QString kClosingMark = QStringLiteral("internlm-lora-closing-mark");

/// What a card says of an example.
struct Named {
    const char *name, *title, *about;
};
constexpr Named kLarger[] = {
    {"internlm-small-sanguo", QT_TRANSLATE_NOOP("celloom::ui::WelcomePage", "Pretrain a small InternLM on 三国演义"),
     QT_TRANSLATE_NOOP("celloom::ui::WelcomePage", "An InternLM of five layers reads the novel from random weights for 3,000 steps: the base that the example with the closing mark tunes.")},
    {"internlm-7b-lora", QT_TRANSLATE_NOOP("celloom::ui::WelcomePage", "Fine-tune InternLM-7B with LoRA"),
     QT_TRANSLATE_NOOP("celloom::ui::WelcomePage", "Adapters on the attention of all layers learn to follow instructions from the Alpaca data, in half precision with recomputation: for a large GPU.")},
};
/// The small nets, each with a part of its own to look at.
constexpr Named kSmallNets[] = {
    {"transformer-block-sanguo", QT_TRANSLATE_NOOP("celloom::ui::WelcomePage", "Transformer blocks that read 三国演义"),
     QT_TRANSLATE_NOOP("celloom::ui::WelcomePage", "A language model of a few plain Transformer blocks, attention and feed-forward each with its norm, that soon foretells the novel better than "
                                                   "counts of neighbouring tokens do.")},
    {"cross-attention-digit-questions", QT_TRANSLATE_NOOP("celloom::ui::WelcomePage", "Cross-attention: a question looks at pixels"),
     QT_TRANSLATE_NOOP("celloom::ui::WelcomePage", "Is this handwritten digit even, odd, above four, below five? The question's token attends to the 64 pixels and answers yes or no.")},
    {"fusion-digit-questions", QT_TRANSLATE_NOOP("celloom::ui::WelcomePage", "Multi-modal: a picture and words"),
     QT_TRANSLATE_NOOP("celloom::ui::WelcomePage", "A picture of a digit and the words of a question meet in a gate. Neither alone tells the answer, the two together do.")},
    {"multi-task-wine", QT_TRANSLATE_NOOP("celloom::ui::WelcomePage", "Multi-task: kind and colour of wines"),
     QT_TRANSLATE_NOOP("celloom::ui::WelcomePage", "From twelve measurements of a wine one net tells its cultivar and the intensity of its colour: two outputs, each with a loss and a weight.")},
    {"image-classifier-digits", QT_TRANSLATE_NOOP("celloom::ui::WelcomePage", "Images: handwritten digits"),
     QT_TRANSLATE_NOOP("celloom::ui::WelcomePage", "Convolutions, batch norms and pools learn ten digits from a folder of pictures.")},
};

/// The main example of each journey, then what runs here, then what needs a base first.
int rankOf(const Example& example) {
    return example.name == kSanguo ? 0 : example.name == kClosingMark ? 1 : example.missingBase.isEmpty() ? 2 : 3;
}

void clear(QLayout* layout) {
    while (QLayoutItem* item = layout->takeAt(0)) {
        if (QWidget* widget = item->widget()) widget->deleteLater();
        if (QLayout* inner = item->layout()) clear(inner);
        delete item;
    }
}

} // namespace

std::vector<Example> findExamples(const QString& folder) {
    std::vector<Example> examples;
    if (folder.isEmpty()) return examples;
    const QDir dir(folder);
    for (const QFileInfo& file : dir.entryInfoList({QStringLiteral("*.json")}, QDir::Files, QDir::Name)) {
        const auto recipe = recipe::Recipe::load(toPath(file.absoluteFilePath()));
        if (!recipe) continue;
        Example example{file.absoluteFilePath(), file.completeBaseName(), recipe->text("kind") == "finetune", fromUtf8(recipe->text("model.source")), {}};
        const std::string& weights = recipe->text("model.weights");
        std::error_code code;
        if (!weights.empty() && !std::filesystem::exists(recipe->resolvePath(weights), code)) example.missingBase = fromUtf8(weights);
        examples.push_back(std::move(example));
    }
    std::stable_sort(examples.begin(), examples.end(), [](const Example& a, const Example& b) { return rankOf(a) < rankOf(b); });
    return examples;
}

WelcomePage::WelcomePage(Services& services, QWidget* parent) : Page(parent), m_services(services) {
    auto* outer = new QVBoxLayout(this);
    outer->setContentsMargins(0, 0, 0, 0);
    auto* scroll = new QScrollArea(this);
    scroll->setProperty("role", QStringLiteral("page"));
    scroll->setWidgetResizable(true);
    scroll->setFocusPolicy(Qt::NoFocus);
    outer->addWidget(scroll);
    auto* content = new QWidget(scroll);
    scroll->setWidget(content);
    auto* row = new QHBoxLayout(content);
    row->setContentsMargins(24, 32, 24, 24);
    row->addStretch(1);
    auto* column = new QVBoxLayout;
    column->setSpacing(14);
    row->addLayout(column, 100);
    row->addStretch(1);

    auto* headline = makeLabel("headline", content);
    auto* about = makeLabel("muted", content);
    about->setWordWrap(true);
    headline->setMaximumWidth(kColumnWidth);
    about->setMaximumWidth(kColumnWidth);
    texts.add([headline, about] {
        headline->setText(tr("Build and train language models, cell by cell"));
        about->setText(
            tr("Celloom is a workbench for large language models: a network drawn as a graph of cells, a recipe that says how to train it, "
               "an engine that runs on while this window is closed, and a history of every run."));
    });
    column->addWidget(headline);
    column->addWidget(about);
    column->addSpacing(6);
    for (const Example& example : findExamples(services.recipesFolder)) column->addWidget(buildExample(example));

    auto* open = new Card(content);
    open->setMaximumWidth(kColumnWidth);
    auto* openRow = new QHBoxLayout;
    auto* openText = makeLabel("muted", open);
    openText->setWordWrap(true);
    auto* openButton = new QPushButton(open);
    openRow->addWidget(openText, 1);
    openRow->addWidget(openButton);
    open->body()->addLayout(openRow);
    connect(openButton, &QPushButton::clicked, this, &WelcomePage::openRecipeRequested);
    texts.add([open, openText, openButton] {
        open->setTitle(tr("Your own recipe"));
        openText->setText(tr("A recipe is one JSON file with everything about a run: model, data, optimizer, precision, seed."));
        openButton->setText(tr("Open recipe…"));
    });
    column->addWidget(open);

    m_recent = new Card(content);
    m_recent->setMaximumWidth(kColumnWidth);
    m_recentRows = new QVBoxLayout;
    m_recentRows->setSpacing(0);
    m_recent->body()->addLayout(m_recentRows);
    column->addWidget(m_recent);
    column->addStretch(1);
    texts.add([this] {
        m_recent->setTitle(tr("Recent runs"));
        if (m_runs) showRuns(m_runs);
    });
    m_recent->hide();
    connect(&services.store, &RunStore::runsLoaded, this, &WelcomePage::showRuns);
}

QWidget* WelcomePage::buildExample(const Example& example) {
    auto* card = new Card(this);
    card->setMaximumWidth(kColumnWidth);
    auto* journey = makeLabel("small", card);
    auto* text = makeLabel("value", card);
    text->setWordWrap(true);
    auto* time = makeLabel("small", card);
    time->setWordWrap(true);
    card->titleRow()->addWidget(journey);
    card->body()->addWidget(text);
    card->body()->addWidget(time);
    auto* buttons = new QHBoxLayout;
    auto* run = new QPushButton(card);
    const bool isMain = example.name == kSanguo;
    if (isMain) run->setProperty("role", QStringLiteral("primary"));
    auto* look = new QPushButton(card);
    buttons->addWidget(run);
    buttons->addWidget(look);
    buttons->addStretch(1);
    card->body()->addSpacing(2);
    card->body()->addLayout(buttons);
    connect(run, &QPushButton::clicked, this, [this, path = example.path] { Q_EMIT runExampleRequested(path); });
    connect(look, &QPushButton::clicked, this, [this, path = example.path] { Q_EMIT openExampleRequested(path); });
    run->setVisible(example.missingBase.isEmpty());
    texts.add([card, journey, text, time, run, look, example] {
        const ExampleTexts words = textsOf(example);
        card->setTitle(words.title);
        journey->setText(example.isTuning ? tr("Fine-tune") : tr("Pretrain"));
        text->setText(words.about);
        time->setText(words.time);
        time->setVisible(!words.time.isEmpty());
        run->setText(tr("Run"));
        run->setAccessibleName(tr("Run the example %1").arg(example.name));
        look->setText(tr("Open in the Train page"));
        look->setAccessibleName(tr("Open the example %1 in the Train page").arg(example.name));
    });
    return card;
}

WelcomePage::ExampleTexts WelcomePage::textsOf(const Example& example) {
    if (example.name == kSanguo)
        return {tr("Pretrain Baichuan tiny on 三国演义"),
                tr("A Baichuan model of about 5 million parameters learns classical Chinese from the novel Romance of the Three Kingdoms, "
                   "from random weights to text you can read."),
                tr("Two cores: a first sample of text within two minutes, about ten minutes in all. It goes on when this window is closed.")};
    if (example.name == kClosingMark)
        return {tr("Fine-tune InternLM with LoRA: which mark ends the sentence?"),
                tr("A small InternLM that knows the novel learns to answer a question: which mark closes this sentence? Only small matrices beside its "
                   "frozen weights learn; then base and adapter answer side by side in Try."),
                tr("Two cores: a few minutes. Held-out questions are counted before and after.")};
    for (const Named& net : kSmallNets)
        if (example.name == QLatin1String(net.name)) return {tr(net.title), tr(net.about), tr("Two cores: about a minute.")};
    const QString needed = example.missingBase.isEmpty()
                               ? QString()
                               : tr("Needs the folder %1 with the base's weights beside the recipe, or another under Weights.").arg(example.missingBase);
    for (const Named& larger : kLarger)
        if (example.name == QLatin1String(larger.name)) return {tr(larger.title), tr(larger.about), needed};
    return {example.name, example.isTuning ? tr("Fine-tunes %1.").arg(example.model) : tr("Pretrains %1.").arg(example.model), needed};
}

void WelcomePage::showRuns(const RunListPtr& runs) {
    m_runs = runs;
    clear(m_recentRows);
    m_recent->setVisible(!runs->empty());
    int shown = 0;
    for (const store::RunRecord& run : *runs) {
        if (shown++ == kRecentRuns) break;
        auto* row = new QWidget(m_recent);
        auto* layout = new QHBoxLayout(row);
        layout->setContentsMargins(0, 2, 0, 2);
        auto* open = new QPushButton(QStringLiteral("%1  %2").arg(run.number).arg(fromUtf8(run.name)), row);
        open->setProperty("role", QStringLiteral("link"));
        auto* state = new QLabel(Format::runState(run.state), row);
        state->setProperty("state", QString::fromLatin1(Format::stateLook(run.state)));
        auto* rest = makeLabel("small", row);
        QString facts = Format::dateAndTime(run.created);
        if (run.totalSteps > 0)
            facts = tr("step %1 of %2").arg(Format::count(run.step), Format::count(run.totalSteps)) + QStringLiteral(" · ") + facts;
        rest->setText(facts);
        layout->addWidget(open);
        layout->addWidget(state);
        layout->addStretch(1);
        layout->addWidget(rest);
        connect(open, &QPushButton::clicked, this, [this, folder = fromUtf8(run.folder)] { Q_EMIT runChosen(folder); });
        m_recentRows->addWidget(row);
    }
    if (static_cast<int>(runs->size()) > kRecentRuns) {
        auto* all = new QPushButton(tr("All runs in the history"), m_recent);
        all->setProperty("role", QStringLiteral("link"));
        connect(all, &QPushButton::clicked, this, &WelcomePage::historyRequested);
        m_recentRows->addWidget(all, 0, Qt::AlignLeft);
    }
}

} // namespace celloom::ui
