#include "ui/shell/run_exporter.h"

#include "ui/common/format.h"
#include "ui/common/run_store.h"
#include "ui/common/widgets.h"
#include "ui/shell/services.h"

#include <QComboBox>
#include <QDialog>
#include <QDialogButtonBox>
#include <QEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QTimer>
#include <QVBoxLayout>

#include <nlohmann/json.hpp>

#include <algorithm>

namespace celloom::ui {

namespace fs = std::filesystem;

namespace {

/// What belongs to an adapter in its folder, whichever folder that is; a checkpoint holds more.
std::vector<fs::path> adapterFiles(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code code;
    for (const char* name : {"adapter_config.json", "adapter_model.safetensors", "celloom_adapter.json", "chat_template.json"})
        if (fs::exists(folder / name, code)) files.push_back(folder / name);
    return files;
}

/// Where to, and in which type and layout.
class ExportDialog : public QDialog {
    Q_DECLARE_TR_FUNCTIONS(celloom::ui::ExportDialog)
public:
    ExportDialog(RunAction action, const QString& run, const fs::path& folder, QWidget* parent)
        : QDialog(parent), m_target(new QLineEdit(this)), m_type(new QComboBox(this)), m_format(new QComboBox(this)), m_problem(makeLabel("problem", this)) {
        setAttribute(Qt::WA_DeleteOnClose);
        setObjectName(QStringLiteral("exportDialog"));
        setMinimumWidth(560);
        setWindowTitle(action == RunAction::Merge           ? tr("Merge and export")
                       : action == RunAction::ExportAdapter ? tr("Export adapter")
                                                            : tr("Export model"));
        auto* layout = new QVBoxLayout(this);
        layout->setContentsMargins(18, 16, 18, 16);
        layout->setSpacing(12);
        auto* about = makeLabel("muted", this);
        about->setWordWrap(true);
        about->setText(aboutText(action, run));
        m_problem->setWordWrap(true);
        layout->addWidget(about);
        const QString ending = action == RunAction::Merge           ? QStringLiteral("-merged")
                               : action == RunAction::ExportAdapter ? QStringLiteral("-adapter")
                                                                    : QStringLiteral("-model");
        m_target->setText(pathText(folder / toUtf8(run + ending)));
        layout->addLayout(buildForm(action));
        layout->addWidget(m_problem);
        buildButtons(*layout, action == RunAction::Merge);
        connect(m_target, &QLineEdit::textChanged, this, [this] { check(); });
        check();
    }

    [[nodiscard]] QString target() const { return m_target->text().trimmed(); }
    [[nodiscard]] QString type() const { return m_type->currentData().toString(); }     // empty: as it is
    [[nodiscard]] QString format() const { return m_format->currentData().toString(); } // empty: there is no choice

private:
    static QString aboutText(RunAction action, const QString& run) {
        switch (action) {
        case RunAction::Merge:
            return tr("The adapter of %1 is added to a copy of its base's weights, in float32, and rounded once. The base stays as it is. The "
                      "largest difference between the logits before and after is shown.")
                .arg(run);
        case RunAction::ExportAdapter:
            return tr("The adapter of %1 is copied as PEFT reads it: adapter_config.json and adapter_model.safetensors.").arg(run);
        default:
            return tr("The newest checkpoint of %1 is written as a folder that other tools read.").arg(run);
        }
    }

    QFormLayout* buildForm(RunAction action) {
        auto* form = new QFormLayout;
        auto* label = new QLabel(tr("New folder"), this);
        label->setBuddy(m_target);
        m_target->setObjectName(QStringLiteral("exportTarget"));
        m_target->setAccessibleName(label->text());
        auto* browse = new QPushButton(tr("Choose…"), this);
        auto* row = new QHBoxLayout;
        row->addWidget(m_target, 1);
        row->addWidget(browse);
        form->addRow(label, row);
        if (action == RunAction::ExportModel) m_type->addItem(tr("as it is"));
        for (const char* name : {"float32", "bfloat16", "float16"}) m_type->addItem(QString::fromLatin1(name), QString::fromLatin1(name));
        addChoice(*form, tr("Type of the weights"), m_type, action != RunAction::ExportAdapter);
        if (action == RunAction::ExportModel) {
            m_format->addItem(tr("Hugging Face (safetensors)"), QStringLiteral("safetensors"));
            m_format->addItem(tr("MindFormers (model.ckpt)"), QStringLiteral("mindspore"));
        }
        addChoice(*form, tr("Layout"), m_format, action == RunAction::ExportModel);
        connect(browse, &QPushButton::clicked, this, [this] { browseFolder(); });
        return form;
    }

    static void addChoice(QFormLayout& form, const QString& name, QComboBox* box, bool isThere) {
        box->setAccessibleName(name);
        box->setVisible(isThere);
        if (isThere) form.addRow(name, box);
    }

    void buildButtons(QVBoxLayout& layout, bool isMerge) {
        auto* buttons = new QDialogButtonBox(this);
        m_go = buttons->addButton(isMerge ? tr("Merge") : tr("Export"), QDialogButtonBox::AcceptRole);
        setRole(m_go, "primary");
        m_go->setDefault(true);
        buttons->addButton(tr("Cancel"), QDialogButtonBox::RejectRole);
        layout.addWidget(buttons);
        connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
        connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
    }

    void browseFolder() {
        auto* files = new QFileDialog(this, tr("Folder to make the export in"));
        files->setAttribute(Qt::WA_DeleteOnClose);
        files->setFileMode(QFileDialog::Directory);
        files->setOption(QFileDialog::ShowDirsOnly);
        connect(files, &QFileDialog::fileSelected, this,
                [this](const QString& folder) { m_target->setText(folder + QLatin1Char('/') + QFileInfo(target()).fileName()); });
        files->open();
    }

    void check() {
        const QString path = target();
        QString problem;
        if (!path.isEmpty() && !QFileInfo(path).isAbsolute())
            problem = tr("Give the whole path, from /.");
        else if (!path.isEmpty() && QFileInfo::exists(path))
            problem = tr("This is there already; nothing is overwritten. Choose another name.");
        m_problem->setText(problem);
        m_problem->setVisible(!problem.isEmpty());
        setLook(m_target, "invalid", !problem.isEmpty());
        m_go->setEnabled(!path.isEmpty() && problem.isEmpty());
    }

    QLineEdit* m_target;
    QComboBox* m_type;
    QComboBox* m_format;
    QLabel* m_problem;
    QPushButton* m_go = nullptr;
};

} // namespace

RunExporter::RunExporter(Services& services, QWidget* parent) : QFrame(parent), m_services(services), m_job(services.engineProgram) {
    setProperty("role", QStringLiteral("notice"));
    setProperty("level", QStringLiteral("info"));
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(14, 6, 8, 6);
    layout->setSpacing(12);
    m_text = makeLabel("value", this);
    m_bar = new QProgressBar(this);
    m_bar->setTextVisible(false);
    m_bar->setFixedWidth(180);
    m_cancel = new QPushButton(this);
    layout->addWidget(m_text);
    layout->addWidget(m_bar);
    layout->addStretch(1);
    layout->addWidget(m_cancel);
    m_clock = new QTimer(this);
    m_clock->setInterval(500);
    connect(m_clock, &QTimer::timeout, this, &RunExporter::refresh);
    connect(m_cancel, &QPushButton::clicked, this, [this] {
        m_job.cancel();
        m_copy.cancel();
    });
    connect(&m_job, &EngineJob::finished, this, &RunExporter::finish);
    connect(&m_copy, &FolderCopy::finished, this, [this] { finish({}); });
    connect(&m_copy, &FolderCopy::progressed, this, [this](double part) { m_bar->setValue(static_cast<int>(part * m_bar->maximum())); });
    const auto onFailed = [this](const Error& error) {
        refresh();
        Q_EMIT failed(Format::error(error));
    };
    connect(&m_job, &EngineJob::failed, this, onFailed);
    connect(&m_copy, &FolderCopy::failed, this, onFailed);
    connect(&m_job, &EngineJob::cancelled, this, &RunExporter::refresh);
    connect(&m_copy, &FolderCopy::cancelled, this, &RunExporter::refresh);
    m_texts.add([this] {
        m_cancel->setText(tr("Cancel"));
        m_bar->setAccessibleName(tr("Progress of the export"));
        refresh();
    });
}

void RunExporter::ask(RunAction action, const QString& run) {
    if (isRunning()) {
        Q_EMIT failed(tr("An export is under way; cancel it or wait for its end."));
        return;
    }
    auto* dialog = new ExportDialog(action, run, m_services.store.workspace().path / "exports", window());
    connect(dialog, &QDialog::accepted, this, [this, action, run, dialog] { begin({action, run, dialog->target(), dialog->type(), dialog->format()}); });
    dialog->open();
}

void RunExporter::begin(const Work& work) {
    m_work = work;
    const store::RunFolder folder{m_services.store.workspace().runs() / toUtf8(work.run)};
    m_bar->setRange(0, work.action == RunAction::ExportAdapter ? 1000 : 0);
    m_bar->setValue(0);
    switch (work.action) {
    case RunAction::ExportAdapter: {
        const std::vector<fs::path> files = adapterFiles(folder.adapter());
        if (files.empty()) {
            Q_EMIT failed(tr("The run has no adapter any more."));
            return;
        }
        m_copy.start(files, toPath(work.target));
        break;
    }
    case RunAction::Merge:
        m_job.start({QStringLiteral("merge"), QStringLiteral("--model"), pathText(folder.path), QStringLiteral("--out"), work.target,
                     QStringLiteral("--dtype"), work.type});
        break;
    default: {
        QStringList arguments{QStringLiteral("export-model"), pathText(folder.path), QStringLiteral("--out"), work.target, QStringLiteral("--format"), work.format};
        if (!work.type.isEmpty()) arguments << QStringLiteral("--dtype") << work.type;
        m_job.start(arguments);
        break;
    }
    }
    refresh();
}

void RunExporter::refresh() {
    const QString since = m_job.isRunning() ? QStringLiteral(" · ") + Format::duration(m_job.seconds()) : QString();
    m_text->setText((m_work.action == RunAction::Merge           ? tr("Merging the adapter of %1")
                     : m_work.action == RunAction::ExportAdapter ? tr("Copying the adapter of %1")
                                                                 : tr("Exporting the model of %1"))
                        .arg(m_work.run) +
                    since);
    setVisible(isRunning());
    if (isRunning() && !m_clock->isActive()) m_clock->start();
    if (!isRunning()) m_clock->stop();
}

QString RunExporter::doneText(const QByteArray& answer) const {
    if (m_work.action == RunAction::ExportAdapter) return tr("The adapter lies in %1.").arg(m_work.target);
    if (m_work.action == RunAction::ExportModel) return tr("The model lies in %1.").arg(m_work.target);
    const auto said = nlohmann::json::parse(answer.begin(), answer.end(), nullptr, false);
    const auto number = [&said](const char* name) {
        const auto found = said.is_object() ? said.find(name) : said.end();
        return said.is_object() && found != said.end() && found->is_number() ? Format::number(found->get<double>(), 3) : QStringLiteral("–");
    };
    QString text = tr("Merged into %1. Largest logit difference to base and adapter: %2, where the adapter changed logits by up to %3.")
                       .arg(m_work.target, number("largest_logit_difference"), number("adapters_changed"));
    if (m_work.type != QLatin1String("float32"))
        text += QLatin1Char(' ') + tr("Rounded to %1: %2.").arg(m_work.type, number("largest_logit_difference_as_written"));
    return text;
}

void RunExporter::finish(const QByteArray& answer) {
    refresh();
    Q_EMIT done(doneText(answer), m_work.target);
}

void RunExporter::changeEvent(QEvent* event) {
    QFrame::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) m_texts.refresh();
}

} // namespace celloom::ui
