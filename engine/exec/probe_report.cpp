#include "engine/exec/probe_report.h"

#include "models/base/text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace celloom::engine {
namespace {

using json = nlohmann::ordered_json;

/// The number with so many significant digits: lines stay short.
double digits(double value, int count) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*g", count, value);
    return std::strtod(text, nullptr);
}

json numberOrNull(double value) { return std::isfinite(value) ? json(digits(value, 9)) : json(); }

std::string dumped(const json& line) { return line.dump(-1, ' ', false, json::error_handler_t::replace); }

json toJson(const ProbedWire& wire) {
    const ValueStatistics& values = wire.values;
    json out{{"wire", wire.name}, {"port", wire.port}, {"shape", wire.shape}, {"type", wire.type}, {"count", values.count},
             {"nan", values.nan}, {"positive_infinity", values.positiveInfinity}, {"negative_infinity", values.negativeInfinity}, {"zeros", values.zeros}};
    const bool hasNumbers = values.finite() > 0;
    for (const auto& [name, value] : {std::pair("mean", values.mean), std::pair("deviation", values.deviation), std::pair("minimum", values.minimum),
                                      std::pair("maximum", values.maximum)})
        out[name] = hasNumbers ? numberOrNull(value) : json();
    out["histogram"] = values.histogram;
    return out;
}

json toJson(const AttentionMap& map) {
    json heads = json::array();
    const float* weight = map.weights.data();
    for (std::int64_t head = 0; head < map.heads; ++head) {
        json rows = json::array();
        for (std::int64_t r = 0; r < map.rows; ++r) {
            json row = json::array();
            for (std::int64_t c = 0; c < map.columns; ++c, ++weight) row.push_back(std::isfinite(*weight) ? json(digits(static_cast<double>(*weight), 4)) : json());
            rows.push_back(std::move(row));
        }
        heads.push_back(std::move(rows));
    }
    return {{"batch_row", map.batchRow}, {"queries", map.queries}, {"keys", map.keys}, {"heads", std::move(heads)}};
}

std::string shapeText(const std::vector<std::int64_t>& shape) {
    std::string out = "[";
    for (const std::int64_t dim : shape) out += (out.size() > 1 ? ", " : "") + std::to_string(dim);
    return out + "]";
}

std::string line(std::size_t width, const std::string& name, const std::string& type, const std::string& shape, const std::array<std::string, 4>& numbers,
                 const std::string& end) {
    char text[4096];
    std::snprintf(text, sizeof text, "%-*s  %-8s  %-18s %10s %10s %10s %10s%s", static_cast<int>(width), name.c_str(), type.c_str(), shape.c_str(), numbers[0].c_str(),
                  numbers[1].c_str(), numbers[2].c_str(), numbers[3].c_str(), end.c_str());
    return text;
}

} // namespace

std::string beginLine(const graph::ExpandedModel& model, const Batch& batch, const ProbeOptions& options) {
    return dumped({{"begin", {{"model", model.name}, {"family", model.family}, {"cells", model.cells.size()}, {"parameters", model.parameterCount()},
                              {"rows", batch.rows()}, {"bins", options.bins}, {"gradients", options.gradients}}}});
}

std::string inputLine(const ProbedWire& wire) { return dumped({{"input", wire.name}, {"wires", json::array({toJson(wire)})}}); }

std::string cellLine(const ProbedCell& cell) {
    json out{{"cell", cell.path}, {"type", cell.type}, {"index", cell.index}, {"of", cell.count}, {"seconds", digits(cell.seconds, 4)}, {"wires", json::array()}};
    for (const ProbedWire& wire : cell.wires) out["wires"].push_back(toJson(wire));
    for (const AttentionMap& map : cell.attention) out["attention"] = toJson(map);
    return dumped(out);
}

std::string gradientLine(const ProbedWire& wire) { return dumped({{"gradient", wire.name}, {"wires", json::array({toJson(wire)})}}); }

std::string endLine(const ProbeSummary& summary, bool hasLoss, double seconds) {
    json end{{"cells", summary.cells}, {"not_computed", summary.notComputed}, {"seconds", digits(seconds, 4)}};
    if (hasLoss) end["loss"] = numberOrNull(summary.loss);
    return dumped({{"end", end}});
}

ProbeTable::ProbeTable(const graph::ExpandedModel& model) {
    constexpr std::size_t kWidest = 72; // longer names push their own line aside
    for (const graph::ValueInfo& value : model.values) m_width = std::max(m_width, std::min(kWidest, value.producer.size()));
}

std::string ProbeTable::header() const { return line(m_width, "wire", "type", "shape", {"mean", "spread", "least", "greatest"}, ""); }

std::string ProbeTable::row(const ProbedWire& wire) const {
    const ValueStatistics& values = wire.values;
    std::array<std::string, 4> numbers{"-", "-", "-", "-"};
    if (values.finite() > 0) numbers = {roundedText(values.mean), roundedText(values.deviation), roundedText(values.minimum), roundedText(values.maximum)};
    std::string end;
    for (const auto& [count, name] : {std::pair(values.nan, "NaN"), std::pair(values.positiveInfinity, "+Inf"), std::pair(values.negativeInfinity, "-Inf")})
        if (count > 0) end += "  !! " + std::to_string(count) + " " + name;
    return line(m_width, wire.name, wire.type, shapeText(wire.shape), numbers, end);
}

} // namespace celloom::engine
