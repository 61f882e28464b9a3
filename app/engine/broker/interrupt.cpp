#include "app/engine/broker/interrupt.h"

#include <atomic>

namespace celloom::app {
namespace {

std::atomic<int> g_interrupts{0}; // a signal handler can reach nothing else

} // namespace

InterruptCounter::InterruptCounter() {
    g_interrupts = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { ++g_interrupts; };
    ::sigaction(SIGINT, &action, &m_interrupt);
    ::sigaction(SIGTERM, &action, &m_terminate);
}

InterruptCounter::~InterruptCounter() {
    ::sigaction(SIGINT, &m_interrupt, nullptr);
    ::sigaction(SIGTERM, &m_terminate, nullptr);
}

int InterruptCounter::count() {
    return g_interrupts;
}

} // namespace celloom::app
