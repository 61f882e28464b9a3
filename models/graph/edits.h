// What can be done to a document, one function a gesture. Each leaves the document as it was where it fails, and keeps it sound: no two cells
// of a graph share a name, every wire has both ends, no port is fed twice, no circle is closed. Undo is difference.h's.
#pragma once

#include "models/base/result.h"
#include "models/graph/document.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace celloom::graph {

/// Which graph of a document: "" the main graph, else a composite's name.
using GraphName = std::string;
using CellNames = std::set<std::string>;

/// Null where the document has none of that name.
Graph* graphOf(Document& document, const GraphName& name);
const Graph* graphOf(const Document& document, const GraphName& name);
Cell* findCell(Graph& graph, const std::string& name);
const Cell* findCell(const Graph& graph, const std::string& name);

/// `wanted` or "wanted_2", "wanted_3", …: a name that no cell of the graph, no composite of the document has. Letters that no name may have
/// become _.
std::string freeCellName(const Graph& graph, const std::string& wanted);
std::string freeCompositeName(const Document& document, const std::string& wanted);
/// Names of the composites that a graph uses, also through others, as far as the document has them.
std::vector<std::string> compositesUsedBy(const Document& document, const Graph& graph);
/// Whether a cell of type `type` inside `graph` would make composites contain each other.
bool wouldRecurse(const Document& document, const GraphName& graph, const std::string& type);

/// Whether wires lead from one cell to another; they do to the cell itself.
bool leadsTo(const Graph& graph, const std::string& from, const std::string& to);

// ---- cells ----

/// Returns the new cell's name. Parameters that the type must be given and has no standard for are left to the inspector.
Result<std::string> addCell(Document& document, const GraphName& graph, const std::string& type, std::optional<Position> position = {},
                            const std::string& wantedName = {});
/// With their wires.
Status removeCells(Document& document, const GraphName& graph, const CellNames& cells);
Status renameCell(Document& document, const GraphName& graph, const std::string& cell, const std::string& name);
/// No value: the standard one.
Status setParam(Document& document, const GraphName& graph, const std::string& cell, const std::string& param, std::optional<ParamValue> value);
Status setRepeat(Document& document, const GraphName& graph, const std::string& cell, const std::string& repeat);
Status setNote(Document& document, const GraphName& graph, const std::string& cell, const std::string& note);
Status moveCells(Document& document, const GraphName& graph, const std::map<std::string, Position>& positions);

// ---- wires ----

/// A wire that ended at the same port gives way. Refused where it would close a circle.
Status addWire(Document& document, const GraphName& graph, const Wire& wire);
Status removeWire(Document& document, const GraphName& graph, const Wire& wire);
/// `cell`, without wires at these two ports, comes between the ends of `wire`.
Status insertOnWire(Document& document, const GraphName& graph, const Wire& wire, const std::string& cell, const std::string& inPort,
                    const std::string& outPort);

// ---- clipboard ----

/// The cells, the wires between them, the composites and hyper-parameters that they use, as the text of a document.
Result<std::string> copyCells(const Document& document, const GraphName& graph, const CellNames& cells);
/// Returns the new cells' names. Names that are taken change; a composite that is there with the same content is used, one that differs comes
/// in under another name; hyper-parameters that the graph lacks are added. Positions move by `offset`.
Result<std::vector<std::string>> pasteCells(Document& document, const GraphName& graph, const std::string& text, Position offset);
/// As copy and paste, and what feeds the originals from outside feeds the copies too.
Result<std::vector<std::string>> duplicateCells(Document& document, const GraphName& graph, const CellNames& cells, Position offset);

// ---- composites ----

/// The cells become one cell of a new composite; what crossed their border becomes its ports, and the hyper-parameters that they use become its
/// own. Returns the new cell's name. Refused where a way leads out of the group and into it again.
Result<std::string> groupCells(Document& document, const GraphName& graph, const CellNames& cells, const std::string& compositeName);
/// The reverse: the inside of a composite cell takes its place. Returns the cells' names. Refused for a repeated cell.
Result<std::vector<std::string>> ungroupCell(Document& document, const GraphName& graph, const std::string& cell);
Status renameComposite(Document& document, const std::string& composite, const std::string& name);
/// Refused while a cell uses it.
Status removeComposite(Document& document, const std::string& composite);

// ---- a graph's own ports and hyper-parameters ----

enum class PortSide { Input, Output };
Status addPort(Document& document, const GraphName& graph, PortSide side, const Port& port);
/// With its wires, also those of the cells that use a composite.
Status removePort(Document& document, const GraphName& graph, PortSide side, const std::string& port);
/// Another name, shape or dtype; wires follow the name.
Status changePort(Document& document, const GraphName& graph, PortSide side, const std::string& port, const Port& changed);

Status addHyper(Document& document, const GraphName& graph, const HyperParameter& hyper);
/// Refused while an expression names it.
Status removeHyper(Document& document, const GraphName& graph, const std::string& name);
/// Another name, value or help; expressions, and the cells that use a composite, follow the name.
Status changeHyper(Document& document, const GraphName& graph, const std::string& name, const HyperParameter& changed);

} // namespace celloom::graph
