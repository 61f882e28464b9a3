#include "ui/editor/probe_report.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>

namespace celloom::ui {

namespace {

using nlohmann::json;

constexpr std::size_t kMostSide = 1024; // of an attention map

std::optional<double> realOr(const json& from, const char* key) {
    const auto found = from.find(key);
    return found != from.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

ProbedValues valuesFrom(const json& from) {
    ProbedValues out;
    from.at("wire").get_to(out.wire);
    from.at("port").get_to(out.port);
    from.at("type").get_to(out.type);
    from.at("shape").get_to(out.shape);
    from.at("count").get_to(out.count);
    from.at("nan").get_to(out.nan);
    from.at("positive_infinity").get_to(out.positiveInfinity);
    from.at("negative_infinity").get_to(out.negativeInfinity);
    from.at("zeros").get_to(out.zeros);
    from.at("histogram").get_to(out.histogram);
    out.mean = realOr(from, "mean");
    out.deviation = realOr(from, "deviation");
    out.minimum = realOr(from, "minimum");
    out.maximum = realOr(from, "maximum");
    return out;
}

ProbedAttention attentionFrom(const json& from) {
    ProbedAttention out;
    from.at("batch_row").get_to(out.batchRow);
    from.at("queries").get_to(out.queries);
    from.at("keys").get_to(out.keys);
    for (const json& head : from.at("heads")) {
        const std::size_t rows = head.size(), columns = rows > 0 ? head.front().size() : 0;
        if (rows > kMostSide || columns > kMostSide) throw std::length_error("an attention map is too large");
        std::vector<float>& weights = out.heads.emplace_back();
        weights.reserve(rows * columns);
        for (const json& row : head) {
            if (row.size() != columns) throw std::length_error("the rows of an attention map differ");
            for (const json& weight : row) weights.push_back(weight.is_number() ? weight.get<float>() : std::numeric_limits<float>::quiet_NaN());
        }
        if (out.heads.size() > 1 && (out.rows != static_cast<int>(rows) || out.columns != static_cast<int>(columns))) throw std::length_error("the heads of an attention map differ");
        out.rows = static_cast<int>(rows);
        out.columns = static_cast<int>(columns);
    }
    return out;
}

void takeCell(ProbeReport& report, const json& line) {
    ProbedCell cell;
    line.at("cell").get_to(cell.path);
    line.at("type").get_to(cell.type);
    line.at("index").get_to(cell.index);
    line.at("of").get_to(cell.of);
    line.at("seconds").get_to(cell.seconds);
    for (const json& wire : line.at("wires")) {
        ProbedValues values = valuesFrom(wire);
        cell.wires.push_back(values.wire);
        report.values[values.wire] = std::move(values);
    }
    if (const auto attention = line.find("attention"); attention != line.end()) cell.attention = attentionFrom(*attention);
    report.done = cell.index + 1;
    report.newest = cell.path;
    report.cells[cell.path] = std::move(cell);
}

void takeEnd(ProbeReport& report, const json& end) {
    end.at("not_computed").get_to(report.notComputed);
    end.at("seconds").get_to(report.seconds);
    report.loss = realOr(end, "loss");
    report.isWhole = true;
}

} // namespace

Status ProbeReport::take(std::string_view text) {
    const json line = json::parse(text, nullptr, false);
    if (!line.is_object()) return fail("The engine's probe wrote a line that is no JSON object.", "Are the window and celloom-engine of the same version?");
    try {
        if (line.contains("begin")) {
            line["begin"].at("cells").get_to(cellCount);
            line["begin"].at("rows").get_to(rows);
            line["begin"].at("gradients").get_to(hasGradients);
        } else if (line.contains("input")) {
            for (const json& wire : line.at("wires")) {
                ProbedValues input = valuesFrom(wire);
                values[input.wire] = std::move(input);
            }
        } else if (line.contains("cell")) {
            takeCell(*this, line);
        } else if (line.contains("gradient")) {
            for (const json& wire : line.at("wires")) gradients[wire.at("wire").get<std::string>()] = valuesFrom(wire);
        } else if (line.contains("end")) {
            takeEnd(*this, line["end"]);
        }
    } catch (const std::exception& error) {
        return fail(std::string("A line of the engine's probe cannot be read: ") + error.what() + ".", "Are the window and celloom-engine of the same version?");
    }
    return {};
}

const ProbedValues* ProbeReport::valuesOn(const std::string& wire) const {
    const auto found = values.find(wire);
    return found == values.end() ? nullptr : &found->second;
}

const ProbedValues* ProbeReport::gradientOn(const std::string& wire) const {
    const auto found = gradients.find(wire);
    return found == gradients.end() ? nullptr : &found->second;
}

} // namespace celloom::ui
