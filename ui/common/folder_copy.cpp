#include "ui/common/folder_copy.h"

#include "models/base/files.h"
#include "ui/common/format.h"

#include <QFile>

namespace celloom::ui {

namespace fs = std::filesystem;

namespace {

constexpr qint64 kPiece = 4 << 20;

tl::unexpected<Error> cannot(const QString& what, const fs::path& path, const QString& reason) {
    return fail(toUtf8(what + QStringLiteral(": ") + reason + QLatin1Char('.')), {}, path.string());
}

} // namespace

FolderCopy::~FolderCopy() {
    m_isCancelled = true;
}

void FolderCopy::start(std::vector<fs::path> files, const fs::path& target) {
    CELLOOM_CHECK(!m_isRunning);
    m_isRunning = true;
    m_isCancelled = false;
    m_copied = 0;
    m_background.run([this, files = std::move(files), target] { return copy(files, target); },
                     [this](const Result<bool>& made) {
                         m_isRunning = false;
                         if (!made)
                             Q_EMIT failed(made.error());
                         else if (*made)
                             Q_EMIT finished();
                         else
                             Q_EMIT cancelled();
                     });
}

Result<bool> FolderCopy::copy(const std::vector<fs::path>& files, const fs::path& target) {
    std::error_code code;
    if (fs::exists(target, code))
        return fail(toUtf8(tr("The folder is there already.")), toUtf8(tr("Choose a name that is free: nothing is overwritten.")), target.string());
    fs::path working = target;
    working += ".part";
    fs::create_directories(target.parent_path(), code);
    if (!fs::create_directory(working, code)) // ours alone
        return cannot(tr("The folder cannot be made"), working, fromUtf8(code ? code.message() : std::string("it is there already")));
    std::uint64_t whole = 1;
    for (const fs::path& file : files) {
        const auto size = fs::file_size(file, code);
        whole += code ? 0 : size;
    }
    Status status;
    for (const fs::path& file : files) {
        status = copyFile(file, working / file.filename(), whole);
        if (!status || m_isCancelled) break;
    }
    if (status && !m_isCancelled) status = syncFolder(working);
    if (status && !m_isCancelled) {
        fs::rename(working, target, code);
        if (!code) return true;
        status = cannot(tr("The folder cannot be given its name"), target, fromUtf8(code.message()));
    }
    fs::remove_all(working, code);
    if (!status) return tl::unexpected(status.error());
    return false;
}

Status FolderCopy::copyFile(const fs::path& from, const fs::path& to, std::uint64_t whole) {
    QFile source(pathText(from)), target(pathText(to));
    if (!source.open(QIODevice::ReadOnly)) return cannot(tr("The file cannot be read"), from, source.errorString());
    if (!target.open(QIODevice::WriteOnly | QIODevice::NewOnly)) return cannot(tr("The file cannot be written"), to, target.errorString());
    while (!source.atEnd() && !m_isCancelled) {
        const QByteArray piece = source.read(kPiece);
        if (piece.isEmpty()) return cannot(tr("The file cannot be read"), from, source.errorString());
        if (target.write(piece) != piece.size()) return cannot(tr("The file cannot be written"), to, target.errorString());
        m_copied += static_cast<std::uint64_t>(piece.size());
        m_background.tell([this, part = static_cast<double>(m_copied) / static_cast<double>(whole)] { Q_EMIT progressed(part); });
    }
    if (!target.flush()) return cannot(tr("The file cannot be written"), to, target.errorString());
    return {};
}

} // namespace celloom::ui
