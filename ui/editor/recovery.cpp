#include "ui/editor/recovery.h"

#include "models/base/file_lock.h"
#include "models/base/files.h"
#include "models/graph/json.h"
#include "ui/common/format.h"

#include <QDateTime>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QJsonDocument>
#include <QUuid>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace celloom::ui {

namespace {

constexpr qint64 kMostAbout = 1 << 20; // bytes
constexpr int kMostLeft = 200;
constexpr qint64 kYoungSeconds = 60; // a folder that is younger may be one whose window is about to lock it
const QString kLockName = QStringLiteral("lock");
const QString kCells = QStringLiteral(".cells.json"), kAbout = QStringLiteral(".json");

std::optional<QJsonObject> readAbout(const QString& path) {
    QFile file(path + kAbout);
    if (!file.open(QIODevice::ReadOnly)) return {};
    const QJsonDocument about = QJsonDocument::fromJson(file.read(kMostAbout));
    return about.isObject() ? std::optional(about.object()) : std::nullopt;
}

} // namespace

Recovery::Recovery(const QString& root) : m_root(root) {
    if (isKept()) clearAway();
}

Recovery::~Recovery() {
    m_writer.reset();
    if (m_lock < 0) return;
    QFile::remove(m_folder + QLatin1Char('/') + kLockName);
    QDir().rmdir(m_folder); // only where nothing is kept any more
    ::close(m_lock);
}

/// The folder of this window, with its lock.
bool Recovery::prepare() {
    if (m_lock >= 0) return true;
    m_folder = m_root + QStringLiteral("/window-") + QUuid::createUuid().toString(QUuid::WithoutBraces).left(13);
    if (!QDir().mkpath(m_folder)) return false;
    m_lock = ::open(QFile::encodeName(m_folder + QLatin1Char('/') + kLockName).constData(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (m_lock >= 0 && lockWholeFile(m_lock)) return true;
    if (m_lock >= 0) ::close(m_lock);
    m_lock = -1;
    return false;
}

/// Folders that a killed window left, and that hold nothing any more.
void Recovery::clearAway() const {
    const QDateTime now = QDateTime::currentDateTime();
    for (const QFileInfo& folder : QDir(m_root).entryInfoList({QStringLiteral("window-*")}, QDir::Dirs)) {
        const QString lock = folder.filePath() + QLatin1Char('/') + kLockName;
        const bool isYoung = folder.lastModified().secsTo(now) < kYoungSeconds;
        if (isYoung || isFileLocked(toPath(lock)) || !QDir(folder.filePath()).entryList({QStringLiteral("*.json")}, QDir::Files).isEmpty()) continue;
        QFile::remove(lock);
        QDir().rmdir(folder.filePath());
    }
}

void Recovery::write(const QString& name, const DocumentPtr& document, const QJsonObject& about) {
    if (!isKept() || !prepare()) return;
    const QString path = m_folder + QLatin1Char('/') + name;
    m_writer->run([path, document, about] {
        const QByteArray text = QJsonDocument(about).toJson();
        if (!document || writeFileAtomically(toPath(path + kCells), graph::toJson(*document)))
            (void)writeFileAtomically(toPath(path + kAbout), std::string(text.constData(), static_cast<std::size_t>(text.size())));
    });
}

void Recovery::remove(const QString& name) {
    if (m_lock < 0) return; // nothing was ever written
    m_writer->run([path = m_folder + QLatin1Char('/') + name] {
        QFile::remove(path + kAbout);
        QFile::remove(path + kCells);
    });
}

/// Of windows that do not live any more.
QStringList Recovery::leftFolders() const {
    QStringList out;
    if (!isKept()) return out;
    for (const QFileInfo& folder : QDir(m_root).entryInfoList({QStringLiteral("window-*")}, QDir::Dirs))
        if (folder.filePath() != m_folder && !isFileLocked(toPath(folder.filePath() + QLatin1Char('/') + kLockName))) out.append(folder.filePath());
    return out;
}

std::vector<Recovery::Left> Recovery::left() const {
    std::vector<Left> out;
    for (const QString& folder : leftFolders()) {
        for (const QFileInfo& file : QDir(folder).entryInfoList({QLatin1Char('*') + kCells}, QDir::Files, QDir::Name)) {
            const QString path = file.filePath().chopped(kCells.size());
            const auto about = out.size() < kMostLeft ? readAbout(path) : std::nullopt;
            if (!about) continue;
            if (auto document = graph::loadDocument(toPath(file.filePath()))) out.push_back({std::move(*document), *about, path});
        }
    }
    std::stable_sort(out.begin(), out.end(), [](const Left& a, const Left& b) {
        return a.about.value(QStringLiteral("order")).toInt() < b.about.value(QStringLiteral("order")).toInt();
    });
    return out;
}

void Recovery::adopt(const Left& left, const QString& name) {
    adoptFiles(left.path, name);
}

std::optional<QJsonObject> Recovery::takeLeftRecipe() {
    std::optional<QJsonObject> newest;
    QString path;
    for (const QString& folder : leftFolders()) {
        const QString one = folder + QLatin1Char('/') + kRecipeName;
        if (newest && QFileInfo(one + kAbout).lastModified() <= QFileInfo(path + kAbout).lastModified()) continue;
        const auto about = readAbout(one);
        if (!about) continue;
        newest = about;
        path = one;
    }
    if (newest) adoptFiles(path, kRecipeName);
    return newest;
}

void Recovery::adoptFiles(const QString& from, const QString& name) {
    if (!isKept() || !prepare()) return;
    const QString path = m_folder + QLatin1Char('/') + name;
    if (!QFile::exists(from + kCells) || QFile::rename(from + kCells, path + kCells)) QFile::rename(from + kAbout, path + kAbout);
    const QString folder = QFileInfo(from).path(); // goes with the last of what it holds
    if (QDir(folder).entryList({QStringLiteral("*.json")}, QDir::Files).isEmpty()) {
        QFile::remove(folder + QLatin1Char('/') + kLockName);
        QDir().rmdir(folder);
    }
}

} // namespace celloom::ui
