// The protocol between a window or a command line and the broker, and between the broker and a child: one JSON object a line.
// Knows no socket and no process: bytes in, messages out. docs/protocol.md lists every command and event.
#pragma once

#include "models/base/exit_codes.h"
#include "models/base/result.h"
#include "models/store/run_folder.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace celloom::protocol {

inline constexpr int kVersion = 1;
inline constexpr std::size_t kMaxLineBytes = 8u << 20;

using Message = nlohmann::json; // always an object with "type"

/// Bytes become messages here, and nowhere else. Lines may arrive split anywhere or many at once. A line that is too long or no
/// JSON object becomes one error entry and reading goes on with the next line.
class LineReader {
public:
    std::vector<Result<Message>> feed(std::string_view bytes);
    [[nodiscard]] std::size_t pending() const { return m_buffer.size(); }

private:
    std::string m_buffer;
    bool m_skipping = false;
};

std::string toLine(const Message& message); // with the newline; invalid UTF-8 is replaced, never thrown

// --- client -> broker: {"type": T, "id": n, …}; each is answered by {"type": "reply", "id": n, "ok": bool, "error": {message, hint,
// place}, …}
//   hello {version, client}                -> reply {version, workspace, pid, sequence}
//   submit {recipe: object, name}          -> reply {run: "0042-…"}
//   resume {run, changes: {key: value}}    -> reply {run}
//   control {run, action: "pause"|"continue"|"stop"|"save"|"evaluate"|"sample"|"set_lr", value}   -> reply, once the child has it
//   list {}                                -> reply {runs: [record…]}
//   delete {run}                           -> reply
//   subscribe {after: sequence}            -> reply {sequence, missed: bool}; then events flow
//   shutdown {}                            -> reply; the broker ends, runs go on
// --- broker -> client, events: {"type": T, "seq": n, …}
//   run {record}                           a run was created or its state changed
//   progress {run, step, total_steps, stage, remaining_s, elapsed_s, rows: highest metric id}   at most 10 a second; read run.db for the
//   rows message {run, level, kind, message, hint, step}                                              a new event row worth showing at once
//   dropped {}                             this reader was too slow; read again from the databases
// The same `control`, `progress` and `message` run between broker and child, on the child's own socket, so that a new broker can adopt it.

/// Where the broker of this workspace listens: $XDG_RUNTIME_DIR/celloom/<hash>/broker.sock (or /tmp/celloom-<uid>/… with mode 0700).
std::filesystem::path brokerSocket(const store::Workspace& workspace);
std::filesystem::path childSocket(const store::Workspace& workspace, int runNumber);

} // namespace celloom::protocol
