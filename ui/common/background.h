// Work away from the window's thread, and what came of it back there. All of the window's hand-overs between threads go through here.
#pragma once

#include <QObject>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

namespace celloom::ui {

/// One thread, started with the first work, and one piece of work after another. A member of whom it works for, declared after what the work
/// uses: nothing comes back once it is gone. Queues and locks are the standard library's, which thread sanitizers see through, as they do not
/// through Qt's thread pools and events.
class Background : public QObject {
    Q_OBJECT
public:
    Background() = default;
    /// Does what was asked for still, since a file may be among it, and tells nobody.
    ~Background() override;

    /// From the window's thread. `work()` is done away from it; then `done(what it returned)` is called on it. Neither throws.
    template <typename Work, typename Done>
    void run(Work work, Done done) {
        enqueue([this, work = std::move(work), done = std::move(done)]() mutable {
            if constexpr (std::is_void_v<std::invoke_result_t<Work&>>) {
                work();
                tell(std::move(done));
            } else {
                auto result = std::make_shared<std::invoke_result_t<Work&>>(work());
                tell([result, done = std::move(done)]() mutable { done(std::move(*result)); });
            }
        });
    }
    void run(std::function<void()> work) { enqueue(std::move(work)); }
    /// From within work: called on the window's thread, in the order of the calls.
    void tell(std::function<void()> letter);

private:
    Q_INVOKABLE void deliver();
    void enqueue(std::function<void()> work);
    void workOn();

    std::thread m_thread;
    std::mutex m_mutex; // over all below
    std::condition_variable m_hasMore;
    std::deque<std::function<void()>> m_work, m_letters;
    bool m_isEnding = false;
};

} // namespace celloom::ui
