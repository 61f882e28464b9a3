#include "ui/editor/model_document.h"

#include "models/base/files.h"
#include "models/graph/difference.h"
#include "models/graph/json.h"
#include "ui/common/format.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTimer>
#include <QUndoCommand>

namespace celloom::ui {

namespace {

constexpr int kMostSteps = 1000;

QString contentFile(const QString& folder) {
    return folder + QStringLiteral("/model.cells.json");
}
QString aboutFile(const QString& folder) {
    return folder + QStringLiteral("/model.json");
}

} // namespace

/// One step of undo: what differs between before and after.
class ModelDocument::Step : public QUndoCommand {
public:
    Step(ModelDocument& owner, const QString& name, graph::Difference difference, DocumentPtr after, int gesture)
        : m_owner(owner), m_difference(std::move(difference)), m_after(std::move(after)), m_gesture(gesture) {
        setText(name);
    }
    void redo() override {
        if (m_after) { // the first time it is at hand
            m_owner.set(std::exchange(m_after, nullptr));
            return;
        }
        auto next = std::make_shared<graph::Document>(*m_owner.m_document);
        m_difference.apply(*next);
        m_owner.set(std::move(next));
    }
    void undo() override {
        auto next = std::make_shared<graph::Document>(*m_owner.m_document);
        m_difference.revert(*next);
        m_owner.set(std::move(next));
    }
    int id() const override { return m_gesture == 0 ? -1 : m_gesture; }
    bool mergeWith(const QUndoCommand* other) override {
        const auto* next = static_cast<const Step*>(other); // the same id: a Step
        graph::Document before = *m_owner.m_document;       // redo() of the other one has run
        const graph::Document after = before;
        next->m_difference.revert(before);
        m_difference.revert(before);
        m_difference = graph::Difference::between(before, after);
        if (m_difference.isEmpty()) setObsolete(true);
        return true;
    }

private:
    ModelDocument& m_owner;
    graph::Difference m_difference;
    DocumentPtr m_after;
    int m_gesture;
};

ModelDocument::ModelDocument(const QString& recoveryFolder, QObject* parent)
    : QObject(parent), m_recoveryFolder(recoveryFolder), m_recoveryTimer(new QTimer(this)) {
    m_undo.setUndoLimit(kMostSteps);
    m_recoveryTimer->setSingleShot(true);
    m_recoveryTimer->setInterval(kRecoveryMs);
    connect(m_recoveryTimer, &QTimer::timeout, this, &ModelDocument::writeRecovery);
    connect(&m_undo, &QUndoStack::cleanChanged, this, &ModelDocument::titleChanged);
    if (m_recoveryFolder.isEmpty()) return;
    auto document = graph::loadDocument(toPath(contentFile(m_recoveryFolder)));
    QFile about(aboutFile(m_recoveryFolder));
    if (!document || !about.open(QIODevice::ReadOnly)) return;
    const QJsonObject names = QJsonDocument::fromJson(about.read(1 << 20)).object();
    m_recovered = Recovered{std::move(*document), names.value(QStringLiteral("source")).toString(), names.value(QStringLiteral("file")).toString()};
}

ModelDocument::~ModelDocument() = default;

void ModelDocument::set(DocumentPtr document) {
    m_document = std::move(document);
    if (!m_recoveryFolder.isEmpty() && !m_recoveryTimer->isActive()) m_recoveryTimer->start();
    Q_EMIT changed();
}

void ModelDocument::take(graph::Document document, const QString& source, const QString& filePath) {
    m_document = std::make_shared<const graph::Document>(std::move(document));
    m_source = source;
    m_filePath = filePath;
    m_undo.clear();
    m_recoveryTimer->stop();
    Q_EMIT replaced();
    Q_EMIT titleChanged();
}

void ModelDocument::restore(graph::Document document) {
    CELLOOM_CHECK(m_document);
    (void)edit(tr("Recover unsaved edits"), [&](graph::Document& now) -> Status {
        document.schema = now.schema;
        now = std::move(document);
        return {};
    });
}

Status ModelDocument::edit(const QString& name, const std::function<Status(graph::Document&)>& change, int gesture) {
    if (!m_document) return fail("No model is open.");
    auto next = std::make_shared<graph::Document>(*m_document);
    CELLOOM_TRY_STATUS(change(*next));
    auto difference = graph::Difference::between(*m_document, *next);
    if (difference.isEmpty()) return {};
    m_undo.push(new Step(*this, name, std::move(difference), std::move(next), gesture));
    return {};
}

Status ModelDocument::save(const QString& path) {
    if (!m_document) return fail("No model is open.");
    const QString absolute = QFileInfo(path).absoluteFilePath();
    CELLOOM_TRY_STATUS(writeFileAtomically(toPath(absolute), graph::toJson(*m_document)));
    m_filePath = m_source = absolute;
    m_undo.setClean();
    m_recoveryTimer->stop();
    forgetRecovery();
    Q_EMIT titleChanged();
    return {};
}

// ---- recovery ----

void ModelDocument::writeRecovery() {
    if (m_undo.isClean()) {
        forgetRecovery();
        return;
    }
    QDir().mkpath(m_recoveryFolder);
    const QJsonObject about{{QStringLiteral("source"), m_source}, {QStringLiteral("file"), m_filePath}};
    const QByteArray text = QJsonDocument(about).toJson();
    // What cannot be kept now is tried again after the next edit; the disk's trouble shows when the user saves.
    if (writeFileAtomically(toPath(contentFile(m_recoveryFolder)), graph::toJson(*m_document)))
        (void)writeFileAtomically(toPath(aboutFile(m_recoveryFolder)), std::string(text.constData(), static_cast<std::size_t>(text.size())));
}

std::optional<ModelDocument::Recovered> ModelDocument::recovered() const {
    return m_recovered;
}

void ModelDocument::discard() {
    m_undo.setClean();
    m_recoveryTimer->stop();
    forgetRecovery();
}

void ModelDocument::forgetRecovery() {
    m_recovered.reset();
    if (m_recoveryFolder.isEmpty()) return;
    QFile::remove(aboutFile(m_recoveryFolder));
    QFile::remove(contentFile(m_recoveryFolder));
}

} // namespace celloom::ui
