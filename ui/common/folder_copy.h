// Copies a few files into a new folder on a thread of its own, with progress; a copy that fails or is given up leaves nothing behind.
#pragma once

#include "models/base/result.h"
#include "ui/common/background.h"

#include <QObject>

#include <atomic>
#include <filesystem>
#include <vector>

namespace celloom::ui {

class FolderCopy : public QObject {
    Q_OBJECT
public:
    explicit FolderCopy(QObject* parent = nullptr) : QObject(parent) {}
    /// Gives up and waits for the piece under way.
    ~FolderCopy() override;

    /// `target` must not be there yet; its parents are made. One copy at a time.
    void start(std::vector<std::filesystem::path> files, const std::filesystem::path& target);
    void cancel() { m_isCancelled = true; }
    [[nodiscard]] bool isRunning() const { return m_isRunning; }

Q_SIGNALS:
    void progressed(double part); // 0 to 1
    void finished();
    void failed(const celloom::Error& error);
    void cancelled();

private:
    /// Whether it was made; not when it was given up before the last step.
    Result<bool> copy(const std::vector<std::filesystem::path>& files, const std::filesystem::path& target);
    Status copyFile(const std::filesystem::path& from, const std::filesystem::path& to, std::uint64_t whole);

    bool m_isRunning = false;
    std::atomic<bool> m_isCancelled = false;
    std::uint64_t m_copied = 0; // the background's
    Background m_background;
};

} // namespace celloom::ui
