// Ctrl+C as a number to look at, for verbs that end their work in order.
#pragma once

#include <csignal>

namespace celloom::app {

/// While it lives, SIGINT and SIGTERM only count.
class InterruptCounter {
public:
    InterruptCounter();
    ~InterruptCounter();
    InterruptCounter(const InterruptCounter&) = delete;
    InterruptCounter& operator=(const InterruptCounter&) = delete;

    /// Signals since the last one was made.
    static int count();

private:
    struct sigaction m_interrupt {
    }, m_terminate{};
};

} // namespace celloom::app
