// How the copies in a document stand to the libraries that they came from, and bringing them up to date.
//
// A copy that is as its library has it stays what its version says, with the copies inside it: only where the user's own graphs use a copy is
// it replaced. Copies that were edited are replaced on demand alone.
#pragma once

#include "models/graph/expand.h"
#include "models/library/workspace_library.h"

namespace celloom::library {

enum class CopyState {
    Same,           // as the library's newest version
    Newer,          // the library has a newer version; the copy was not touched
    Edited,         // changed in this document; the library has nothing newer
    EditedAndNewer, // both
    Gone            // the library does not have the entry
};
std::string toText(CopyState state); // "same", "newer version in the library", …: for people

struct CopyStatus {
    std::string composite; // its name in the document
    graph::Origin origin;
    CopyState state = CopyState::Same;
    std::int64_t newest = 0; // version in the library; 0 where it is gone
    bool isInsideOthers = false; // only unchanged copies of other entries use it: it goes with them
};

/// Composites that came from a library, by name. `workspace` null: its entries count as gone.
std::vector<CopyStatus> compare(const graph::Document& document, const WorkspaceLibrary* workspace);

/// One difference between two versions of an entry that those who use it can see.
struct Change {
    enum class Kind { HyperAdded, HyperRemoved, HyperValue, InputAdded, InputRemoved, OutputAdded, OutputRemoved, PortChanged, Inside };
    Kind kind;
    std::string name;          // of the hyper-parameter or port; empty for Inside
    std::string before, after; // values, or shape and type
};
std::vector<Change> changesBetween(const graph::Document& before, const std::string& type, const graph::Document& after, const std::string& newType);
std::string toText(const Change& change); // "the hyper-parameter dropout is gone"

struct UpdateOptions {
    std::vector<std::string> composites = {}; // names in the document; empty: all that have a newer version
    bool replacesEdited = false;
};

struct UpdateReport {
    struct Item {
        std::string composite; // its name in the document before
        graph::Origin before, after;
        std::vector<Change> changes;
        std::vector<graph::Problem> problems; // of a refused one: what would break, with the cell that uses it
    };
    std::vector<Item> updated, refused;
};

/// Brings copies to their library's newest version. One that would break what uses it (a parameter that is gone, a wire to a port that is gone, an
/// input that nothing feeds, shapes that fit no longer) is left as it is and reported as refused. Positions of cells that keep their names stay.
/// Fails, with the document as before, where `composites` names what cannot be updated.
Result<UpdateReport> update(graph::Document& document, const WorkspaceLibrary* workspace, const UpdateOptions& options = {});

} // namespace celloom::library
