// Verbs that chat: chat in the terminal, and try-child, which the broker starts for a Try page.
#include "app/engine/broker/interrupt.h"
#include "app/engine/model_options.h"
#include "app/engine/try_child.h"
#include "models/base/text.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <thread>
#include <unistd.h>

namespace celloom::app {
using protocol::Message;

namespace {

constexpr const char* kColumn = "chat";

struct ChatArguments : ModelOptions {
    std::vector<std::string> adapters;
    std::string chatTemplate = "auto", system;
    engine::SamplingOptions sampling;
    std::vector<std::string> stopTexts;
};

/// One model that is talked to line by line. "none" as template: each line is a text to continue.
class TerminalChat {
public:
    TerminalChat(const ChatArguments& arguments, Invocation& invocation)
        : m_arguments(arguments), m_invocation(invocation),
          m_session({invocation.workspace, arguments.device, arguments.threads}, [this](const Message& event) { take(event); }) {}

    void run() {
        m_session.handle({{"type", "open"}, {"column", kColumn}, {"model", m_arguments.model}, {"adapters", m_arguments.adapters}});
        if (m_hasFailed) return;
        if (!m_arguments.system.empty()) m_messages.push_back({{"role", "system"}, {"content", m_arguments.system}});
        for (std::string line; ask(line);) {
            if (line.empty()) continue;
            answer(line);
            if (m_hasFailed) return;
        }
    }

private:
    [[nodiscard]] bool isChat() const { return m_arguments.chatTemplate != "none"; }

    /// False at the end of the input.
    static bool ask(std::string& line) {
        if (::isatty(STDIN_FILENO) != 0) std::fputs("> ", stderr);
        return static_cast<bool>(std::getline(std::cin, line));
    }

    void answer(const std::string& question) {
        Message request{{"type", "generate"}, {"column", kColumn}, {"request", ++m_request}, {"sampling", samplingOf(m_arguments)}};
        if (isChat()) {
            m_messages.push_back({{"role", "user"}, {"content", question}});
            request["messages"] = m_messages;
            request["template"] = m_arguments.chatTemplate;
        } else {
            request["text"] = question;
        }
        m_answer.clear();
        const InterruptCounter interrupts; // Ctrl+C ends the answer; where none is written, the program
        m_session.handle(request);
        while (m_session.isWriting()) {
            if (InterruptCounter::count() > 0) m_session.handle({{"type", "cancel"}, {"column", kColumn}});
            m_session.advance();
        }
        if (isChat()) m_messages.push_back({{"role", "assistant"}, {"content", m_answer}});
    }

    void take(const Message& event) {
        const std::string type = event["type"];
        if (type == "error") {
            m_hasFailed = true;
            m_invocation.fail({event["message"], event["hint"], event["place"]},
                              event.value("kind", "") == "out_of_memory" ? protocol::OutOfMemory : protocol::BadInput);
        } else if (type == "opened") {
            std::fprintf(stderr, "%s, %s\n", event["model"].get<std::string>().c_str(),
                         isChat() ? ("template " + (m_arguments.chatTemplate == "auto" ? event["template"].get<std::string>()
                                                                                     : m_arguments.chatTemplate))
                                        .c_str()
                                  : "free text: each line is continued");
        } else if (type == "delta") {
            const std::string text = event["text"];
            m_answer += text;
            if (m_invocation.isJson) return;
            std::fputs(text.c_str(), stdout);
            std::fflush(stdout);
        } else if (type == "done" && m_invocation.isJson) {
            std::fputs(protocol::toLine({{"text", m_answer}, {"reason", event["reason"]}, {"tokens", event["count"]}}).c_str(), stdout);
            std::fflush(stdout);
        } else if (type == "done") {
            std::fputc('\n', stdout);
        }
    }

    static Message samplingOf(const ChatArguments& arguments) {
        const engine::SamplingOptions& sampling = arguments.sampling;
        return {{"temperature", sampling.temperature},
                {"top_k", sampling.topK},
                {"top_p", sampling.topP},
                {"repetition_penalty", sampling.repetitionPenalty},
                {"max_new_tokens", sampling.maxNewTokens},
                {"seed", static_cast<std::int64_t>(sampling.seed)},
                {"stop", arguments.stopTexts}};
    }

    const ChatArguments& m_arguments;
    Invocation& m_invocation;
    ChatSession m_session;
    Message m_messages = Message::array();
    std::string m_answer;
    std::int64_t m_request = 0;
    bool m_hasFailed = false;
};

void addChat(CLI::App& app, Invocation& invocation) {
    const auto arguments = std::make_shared<ChatArguments>();
    CLI::App* verb = app.add_subcommand("chat", "Talk to a model, line by line; Ctrl+C ends an answer, Ctrl+D the chat");
    verb->add_option("--model", arguments->model, kModelHelp)->required();
    verb->add_option("--adapter", arguments->adapters, "An adapter's folder, or a run that trained one; may be given several times")
        ->allow_extra_args(false);
    verb->add_option("--template", arguments->chatTemplate,
                     "The chat's format; auto: the one stored with the model, else its family's; none: each line is a text to continue")
        ->capture_default_str();
    verb->add_option("--system", arguments->system, "System message: how the model should behave");
    arguments->sampling.maxNewTokens = 512;
    addSamplingOptions(*verb, arguments->sampling, arguments->stopTexts);
    addModelOptions(*verb, *arguments);
    verb->callback([arguments, &invocation] {
        if (auto status = engine::checkSampling(arguments->sampling); !status) return invocation.fail(status.error(), protocol::Usage);
        TerminalChat(*arguments, invocation).run();
    });
}

struct TryChildArguments {
    std::string device = "auto";
    int threads = 0, idleSeconds = 900;
};

/// A chat beside a training run must not slow it much.
int halfOfTheProcessors() {
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / 2);
}

void addTryChild(CLI::App& app, Invocation& invocation) {
    const auto arguments = std::make_shared<TryChildArguments>();
    CLI::App* verb = app.add_subcommand("try-child", "Chat by requests on stdin (the broker calls this)");
    verb->group(""); // not in the help: people use chat
    verb->add_option("--device", arguments->device);
    verb->add_option("--threads", arguments->threads, "0: half of the processors")->check(CLI::Range(0, 4096));
    verb->add_option("--idle-seconds", arguments->idleSeconds)->check(CLI::Range(1, 1 << 20));
    verb->callback([arguments, &invocation] {
        const int threads = arguments->threads > 0 ? arguments->threads : halfOfTheProcessors();
        invocation.exitCode = runTryChild({invocation.workspace, arguments->device, threads}, std::chrono::seconds(arguments->idleSeconds));
    });
}

} // namespace

void addChatVerbs(CLI::App& app, Invocation& invocation) {
    addChat(app, invocation);
    addTryChild(app, invocation);
}

} // namespace celloom::app
