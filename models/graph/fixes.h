// What mends a problem of a document: named edits. Each was tried: the problem is gone after it, and nothing new is wrong at its place.
#pragma once

#include "models/graph/edits.h"
#include "models/graph/expand.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace celloom::graph {

struct Fix {
    /// What `words` are, in this order.
    enum class Kind {
        AddWire,      // from, to
        RemoveWire,   // from, to
        MoveWireEnd,  // the port or cell that the wire had, the one it gets
        JoinByAdd,    // the input where both ended
        SetValue,     // parameter or hyper-parameter, value
        RemoveValue,  // parameter
        RenameValue,  // parameter, its right name
        SetType,      // cell, type
        TakeFromLibrary, // type
        RemoveCell,   // cell
        Rename,       // old name, new name
        NoRepeat,     // cell
        DeclareShape, // port, shape
        DeclareType,  // port, dtype
        RemovePort,   // port
        PutBetween    // type, from, to
    } kind = Kind::AddWire;
    std::vector<std::string> words;
    std::function<Status(Document&)> apply;
    /// In English: "Wire norm.out to lm_head.x".
    [[nodiscard]] std::string title() const;
};

/// Best first, at most kMostFixes; none where nothing certain is known. `overrides` as expand() took them when it found the problem. Expands the
/// document once for each fix that is tried: call it away from a window's thread.
inline constexpr std::size_t kMostFixes = 4;
std::vector<Fix> fixesFor(const Document& document, const Problem& problem, const std::map<std::string, ParamValue>& overrides = {});

/// Nothing is wrong yet: an input waits for its wire, a parameter for its value.
bool isStillMissing(const Problem& problem);

} // namespace celloom::graph
