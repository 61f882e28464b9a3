// The importer in a limited child; what it found comes back as JSON.
#include "engine/code/import.h"
#include "engine/script/limited_child.h"
#include "models/graph/json.h"

#include <csignal>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

namespace celloom::engine::code {
namespace {

using nlohmann::json;

std::string answerOf(const ScriptResult<Imported>& result) {
    json out;
    if (result) {
        out["document"] = graph::toJson(result->document);
        out["class"] = result->className;
        out["notes"] = result->notes;
    } else {
        const ScriptProblem& problem = result.error();
        out["error"] = {{"message", problem.message},
                        {"hint", problem.hint},
                        {"line", problem.line},
                        {"column", problem.column},
                        {"length", problem.length}};
    }
    return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

ScriptProblem limitProblem(int status) {
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (signal == SIGXCPU || signal == SIGKILL)
        return {"Reading this source takes too long.", "It must be done within two seconds.", 0, 0, 1, {}, true};
    if (signal == SIGABRT)
        return {"Reading this source takes more memory than there is.", "Bring it in class by class.", 0, 0, 1, {}, true};
    return {"The parser ended at this source" + (signal ? " (signal " + std::to_string(signal) + ")." : std::string(".")),
            "Make it simpler.",
            0,
            0,
            1,
            {},
            true};
}

} // namespace

ScriptResult<Imported> tryImport(const std::string& text, const ImportOptions& options) {
    if (auto source = readCodeSource(text); !source)
        return tl::unexpected(source.error()); // the reader is bounded itself
    const auto answer = inLimitedChild([&] { return answerOf(importCode(text, options)); }, {});
    if (!answer)
        return tl::unexpected(
            ScriptProblem{"The source cannot be read: " + answer.error().message, answer.error().hint, 0, 0, 1, {}, false});
    const json in = json::parse(answer->text, nullptr, false);
    if (!in.is_object()) return tl::unexpected(limitProblem(answer->status));
    if (const auto error = in.find("error"); error != in.end())
        return tl::unexpected(
            ScriptProblem{error->at("message"), error->at("hint"), error->at("line"), error->at("column"), error->at("length"), {}, false});
    auto document = graph::fromJson(in.at("document").get_ref<const std::string&>());
    if (!document)
        return tl::unexpected(
            ScriptProblem{document.error().place + ": " + document.error().message, document.error().hint, 0, 0, 1, {}, false});
    return Imported{std::move(*document), in.at("class"), in.at("notes")};
}

} // namespace celloom::engine::code
