#include "ui/common/background.h"

namespace celloom::ui {

Background::~Background() {
    {
        const std::lock_guard lock(m_mutex);
        m_isEnding = true;
    }
    m_hasMore.notify_one();
    if (m_thread.joinable()) m_thread.join();
}

void Background::enqueue(std::function<void()> work) {
    {
        const std::lock_guard lock(m_mutex);
        m_work.push_back(std::move(work));
    }
    if (m_thread.joinable()) m_hasMore.notify_one();
    else m_thread = std::thread([this] { workOn(); });
}

void Background::workOn() {
    std::unique_lock lock(m_mutex);
    for (;;) {
        m_hasMore.wait(lock, [this] { return m_isEnding || !m_work.empty(); });
        if (m_work.empty()) return;
        auto work = std::move(m_work.front());
        m_work.pop_front();
        lock.unlock();
        work();
        work = nullptr; // what it holds goes before anybody waits for it
        lock.lock();
    }
}

void Background::tell(std::function<void()> letter) {
    {
        const std::lock_guard lock(m_mutex);
        m_letters.push_back(std::move(letter));
    }
    QMetaObject::invokeMethod(this, "deliver", Qt::QueuedConnection);
}

/// One letter an event: reading it may end its reader, and this object with it.
void Background::deliver() {
    std::function<void()> letter;
    {
        const std::lock_guard lock(m_mutex);
        letter = std::move(m_letters.front());
        m_letters.pop_front();
    }
    letter();
}

} // namespace celloom::ui
