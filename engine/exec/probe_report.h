// A probe as lines of JSON for programs and of text for a terminal (docs/file-formats.md).
#pragma once

#include "engine/exec/probe.h"

namespace celloom::engine {

/// One JSON object without a line end. Numbers have nine significant digits, those of maps four.
std::string beginLine(const graph::ExpandedModel& model, const Batch& batch, const ProbeOptions& options);
std::string inputLine(const ProbedWire& wire);
std::string cellLine(const ProbedCell& cell);
std::string gradientLine(const ProbedWire& wire);
std::string endLine(const ProbeSummary& summary, bool hasLoss, double seconds);

/// The same as a table whose columns stand below each other.
class ProbeTable {
public:
    explicit ProbeTable(const graph::ExpandedModel& model);
    std::string header() const;
    /// NaN and infinite values are counted at the end of the line.
    std::string row(const ProbedWire& wire) const;

private:
    std::size_t m_width = 4; // of the names
};

} // namespace celloom::engine
