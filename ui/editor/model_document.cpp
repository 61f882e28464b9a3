#include "ui/editor/model_document.h"

#include "models/base/files.h"
#include "models/families/families.h"
#include "models/graph/difference.h"
#include "models/graph/json.h"
#include "ui/common/format.h"
#include "ui/common/undo_order.h"
#include "ui/editor/recovery.h"

#include <QCryptographicHash>
#include <QDateTime>
#include <QFileInfo>
#include <QJsonArray>
#include <QRegularExpression>
#include <QTimer>
#include <QUndoCommand>
#include <QUuid>

namespace celloom::ui {

namespace {

constexpr int kMostSteps = 1000;
const QString kEnding = QStringLiteral(".cells.json");
const QString kFileHash = QStringLiteral("file_sha256");

/// What a model is called that lies there.
QString nameOf(const QFileInfo& file) {
    if (isNamedByFolder(file.fileName())) return QFileInfo(file.path()).fileName();
    return file.fileName().endsWith(kEnding) ? file.fileName().chopped(kEnding.size()) : file.fileName();
}

QByteArray hashOf(const graph::Document& document) {
    return QCryptographicHash::hash(QByteArray::fromStdString(graph::toJson(document)), QCryptographicHash::Sha256).toHex();
}

} // namespace

bool isNamedByFolder(const QString& fileName) {
    return fileName == QLatin1String("config.json") || fileName == QLatin1String("model.cells.json");
}

QString identityOf(const QString& source) {
    if (source.isEmpty() || families::isBuiltIn(toUtf8(source))) return source;
    QFileInfo file(source);
    if (file.fileName() == QLatin1String("config.json")) file = QFileInfo(file.path());
    const QString canonical = file.canonicalFilePath();
    return canonical.isEmpty() ? file.absoluteFilePath() : canonical;
}

/// One step of undo: what differs between before and after.
class ModelDocument::Step : public DatedStep {
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

ModelDocument::ModelDocument(Recovery* recovery, QObject* parent)
    : QObject(parent), m_recovery(recovery), m_recoveryName(QUuid::createUuid().toString(QUuid::WithoutBraces)), m_recoveryTimer(new QTimer(this)) {
    m_undo.setUndoLimit(kMostSteps);
    m_recoveryTimer->setSingleShot(true);
    m_recoveryTimer->setInterval(kRecoveryMs);
    connect(m_recoveryTimer, &QTimer::timeout, this, &ModelDocument::writeRecovery);
    connect(&m_undo, &QUndoStack::cleanChanged, this, &ModelDocument::titleChanged);
}

ModelDocument::~ModelDocument() = default;

bool ModelDocument::isUntitledName(const QString& source) {
    static const QRegularExpression name(QStringLiteral("^untitled-\\d+\\.cells\\.json$"));
    const QFileInfo file(source);
    return name.match(file.fileName()).hasMatch() && !file.exists();
}

bool ModelDocument::isNamedBy(const QString& source) const {
    if (source.isEmpty() || m_source.isEmpty()) return false;
    if (m_isUntitled) return QFileInfo(source).fileName() == m_source && !QFileInfo::exists(source); // a recipe may have made a path of it
    return identityOf(source) == identityOf(m_source);
}

QString ModelDocument::title() const {
    if (m_isUntitled && m_document && !m_document->main.name.empty()) return fromUtf8(m_document->main.name);
    return nameOf(QFileInfo(m_source));
}

void ModelDocument::set(DocumentPtr document) {
    m_document = std::move(document);
    isImplicit = false;
    if (m_recovery && !m_recoveryTimer->isActive()) m_recoveryTimer->start();
    Q_EMIT changed();
}

void ModelDocument::begin(DocumentPtr document, const QString& source, const QString& filePath, bool isUntitled) {
    m_document = std::move(document);
    m_source = source;
    m_filePath = filePath;
    m_isUntitled = isUntitled;
    m_undo.clear();
    m_recoveryTimer->stop();
    m_fileHash.clear();
    m_sameStamp = {};
    Q_EMIT replaced();
    Q_EMIT titleChanged();
}

void ModelDocument::take(graph::Document document, const QString& source, const QString& filePath) {
    begin(std::make_shared<const graph::Document>(std::move(document)), source, filePath, false);
    if (!filePath.isEmpty()) keepFileState(*m_document);
}

void ModelDocument::takeUntitled(graph::Document document, int number) {
    begin(std::make_shared<const graph::Document>(std::move(document)), QStringLiteral("untitled-%1").arg(number) + kEnding, {}, true);
}

void ModelDocument::takeNothing(const QString& source) {
    begin(nullptr, source, {}, false);
}

void ModelDocument::restore(graph::Document document, const QJsonObject& about) {
    CELLOOM_CHECK(m_document);
    (void)edit(tr("Recover unsaved edits"), [&](graph::Document& now) -> Status {
        document.schema = now.schema;
        now = std::move(document);
        return {};
    });
    const QByteArray hash = about.value(kFileHash).toString().toLatin1();
    if (!hash.isEmpty() && hash != m_fileHash) m_sameStamp = {};
    if (!hash.isEmpty()) m_fileHash = hash; // the edits were made to what the file held then
}

void ModelDocument::takeChanged(graph::Document document) {
    (void)edit(tr("Read the file again"), [&](graph::Document& now) -> Status {
        now = document;
        return {};
    });
    discard();
    keepFileState(document);
}

// ---- the file ----

void ModelDocument::keepFileState(const graph::Document& document) {
    m_fileHash = hashOf(document);
    m_sameStamp = {};
}

OnDisk ModelDocument::onDisk() const {
    if (m_filePath.isEmpty() || m_fileHash.isEmpty()) return OnDisk::Same;
    const QFileInfo file(m_filePath);
    if (!file.exists()) return OnDisk::Gone;
    const Stamp stamp{file.size(), file.lastModified().toMSecsSinceEpoch()};
    if (stamp == m_sameStamp) return OnDisk::Same;
    const auto document = graph::loadDocument(toPath(m_filePath));
    if (!document || hashOf(*document) != m_fileHash) return OnDisk::Changed;
    m_sameStamp = stamp;
    return OnDisk::Same;
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
    DocumentPtr document = m_document;
    if (m_isUntitled && m_document->main.name.starts_with("untitled-")) { // from now on it is called as its file is; no edit of the user's
        auto named = std::make_shared<graph::Document>(*m_document);
        named->main.name = toUtf8(nameOf(QFileInfo(absolute)));
        document = std::move(named);
    }
    CELLOOM_TRY_STATUS(writeFileAtomically(toPath(absolute), graph::toJson(*document)));
    keepFileState(*document);
    if (document != m_document) set(std::move(document));
    m_filePath = m_source = absolute;
    m_isUntitled = false;
    m_undo.setClean();
    m_recoveryTimer->stop();
    forgetRecovery();
    Q_EMIT titleChanged();
    return {};
}

// ---- recovery ----

QJsonObject ModelDocument::about() const {
    QJsonArray overrides, path;
    for (const std::string& one : part.overrides) overrides.append(fromUtf8(one));
    for (const LevelStep& step : place.path) path.append(QJsonArray{fromUtf8(step.cell), static_cast<qint64>(step.instance)});
    return {{QStringLiteral("source"), m_source},   {QStringLiteral("file"), m_filePath}, {QStringLiteral("untitled"), m_isUntitled},
            {QStringLiteral("overrides"), overrides}, {QStringLiteral("weights"), fromUtf8(part.weights)}, {QStringLiteral("folder"), folder},
            {QStringLiteral("path"), path},         {QStringLiteral("order"), order},         {kFileHash, QString::fromLatin1(m_fileHash)}};
}

void ModelDocument::takeAbout(const QJsonObject& about) {
    part = {};
    for (const auto& one : about.value(QStringLiteral("overrides")).toArray()) part.overrides.push_back(toUtf8(one.toString()));
    part.weights = toUtf8(about.value(QStringLiteral("weights")).toString());
    folder = about.value(QStringLiteral("folder")).toString();
    place = {};
    for (const auto& step : about.value(QStringLiteral("path")).toArray())
        place.path.push_back({toUtf8(step.toArray().at(0).toString()), step.toArray().at(1).toInteger()});
    isImplicit = false;
}

void ModelDocument::takeLater(const QJsonObject& about) {
    takeAbout(about);
    begin(nullptr, about.value(QStringLiteral("source")).toString(), {}, false);
}

void ModelDocument::takeRecovered(graph::Document document, const QJsonObject& about) {
    takeAbout(about);
    begin(std::make_shared<const graph::Document>(std::move(document)), about.value(QStringLiteral("source")).toString(),
          about.value(QStringLiteral("file")).toString(), about.value(QStringLiteral("untitled")).toBool());
    m_fileHash = about.value(kFileHash).toString().toLatin1();
    m_undo.resetClean(); // no step of undo leads back to what is saved
}

void ModelDocument::writeRecovery() {
    if (!m_recovery) return;
    if (isModified()) m_recovery->write(m_recoveryName, m_document, about());
    else forgetRecovery();
}

void ModelDocument::discard() {
    m_undo.setClean();
    m_fileHash.clear();
    m_recoveryTimer->stop();
    forgetRecovery();
}

void ModelDocument::forgetRecovery() {
    if (m_recovery) m_recovery->remove(m_recoveryName);
}

} // namespace celloom::ui
