// A composite of a library: with everything it needs, so that it can be copied into any document. docs/file-formats.md, "The library".
// The standard library ships with the product (standard.h); the workspace's own lies in files (workspace_library.h).
#pragma once

#include "models/base/result.h"
#include "models/graph/document.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace celloom::library {

inline constexpr const char* kStandard = "celloom";    // graph::Origin::library of the standard composites
inline constexpr const char* kWorkspace = "workspace"; // and of the user's own
inline constexpr int kMaxDepth = 32;                   // composites in composites

struct Entry {
    std::string library; // kStandard or kWorkspace
    std::string name;
    std::int64_t version = 1;
    std::string category;                      // "Attention", "Transformer", …; of the workspace's: "My cells"
    std::string summaryZh;                     // empty: as the English one
    std::map<std::string, std::string> helpZh; // of hyper-parameters, by name; where one is missing, as the English one
    std::vector<std::string> digests;          // of each version from 1 on; empty where they are not known
    graph::Document document;                  // the main graph is the composite; its origin is this entry

    [[nodiscard]] const std::string& summary() const { return document.main.note; }
    [[nodiscard]] graph::Origin origin() const { return {library, name, version}; }
};

/// SHA-256 over all that a composite says, its inner composites included whatever their names; not over positions, its own name and origin.
/// `type` empty: of the main graph. Fails where composites contain each other, or nest deeper than kMaxDepth.
Result<std::string> digestOf(const graph::Document& document, const std::string& type = {});
/// The digests of all composites that have one, by name.
std::map<std::string, std::string> digestsOf(const graph::Document& document);

/// Names of the composites that `graph` needs, also through others, as far as the document has them.
std::vector<std::string> neededBy(const graph::Document& document, const graph::Graph& graph);

struct Copied {
    std::string type;               // under which the entry now is in the document
    std::vector<std::string> added; // composites; empty where an identical one was there already
};

/// Puts the entry and all it needs into the document's composites. What is there already, whatever its name, is used and not copied again; a
/// name that is taken by something else gets a number behind it. On an error the document is as before.
Result<Copied> copyInto(graph::Document& document, const Entry& entry);
/// The same with an entry of the standard library. Unknown names are refused with the nearest known ones.
Result<Copied> copyInto(graph::Document& document, const std::string& standardName);

} // namespace celloom::library
