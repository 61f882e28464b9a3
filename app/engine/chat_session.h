// Models in columns that answer at once: what the child of the Try page and the verb chat share. Requests and events are those of
// docs/protocol.md, "Try". Columns of the same base share one loaded base. One thread; knows no pipe and no process.
#pragma once

#include "models/protocol/protocol.h"

#include <functional>
#include <memory>
#include <string>

namespace celloom::app {

struct ChatPlace {
    std::string workspace;       // where runs are looked for
    std::string device = "auto"; // auto, cpu or cuda
    int threads = 0;             // of one operation; 0: all processors
};

class ChatSession {
public:
    using Emit = std::function<void(const protocol::Message&)>;

    ChatSession(ChatPlace place, Emit emit);
    ~ChatSession();

    /// Carries out one request; what happens, errors included, goes out as events.
    void handle(const protocol::Message& request);
    /// Writes one token in each column that is writing, in turn. Nothing to do where isWriting() is false.
    void advance();
    [[nodiscard]] bool isWriting() const;

private:
    struct State;
    std::unique_ptr<State> m;
};

} // namespace celloom::app
