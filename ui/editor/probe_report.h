// What `celloom-engine probe --json` tells, line by line, as plain data: what was on each wire, where attention looked. No widgets.
#pragma once

#include "models/base/result.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace celloom::ui {

/// The numbers on one wire. Mean and the like are of the finite ones; not there where there are none.
struct ProbedValues {
    std::string wire; // "layers.0.mlp.up_proj.out", or an input's name
    std::string port, type;
    std::vector<std::int64_t> shape;
    std::int64_t count = 0, nan = 0, positiveInfinity = 0, negativeInfinity = 0, zeros = 0;
    std::optional<double> mean, deviation, minimum, maximum;
    std::vector<std::int64_t> histogram; // equal steps from minimum to maximum

    [[nodiscard]] std::int64_t infinite() const { return positiveInfinity + negativeInfinity; }
    [[nodiscard]] bool isBad() const { return nan + infinite() > 0; }
};

/// Where the queries of one batch row look.
struct ProbedAttention {
    std::int64_t batchRow = 0, queries = 0, keys = 0; // of the cell
    int rows = 0, columns = 0;                        // of the map
    std::vector<std::vector<float>> heads;            // rows x columns; NaN where a query sees no key
};

struct ProbedCell {
    std::string path, type;
    std::int64_t index = 0, of = 0;
    double seconds = 0;
    std::vector<std::string> wires; // keys of ProbeReport::values
    std::optional<ProbedAttention> attention; // of an attention cell
};

struct ProbeReport {
    std::int64_t cellCount = 0, rows = 0;
    bool hasGradients = false, isWhole = false;
    std::map<std::string, ProbedValues> values, gradients; // by wire
    std::map<std::string, ProbedCell> cells;               // by path
    std::set<std::string> notComputed;
    std::string newest; // the cell that was told of last
    std::int64_t done = 0;
    double seconds = 0;
    std::optional<double> loss;

    /// Takes in one line. Lines of an unknown kind are passed over; ones that are no JSON or lack what they must have are an error.
    Status take(std::string_view line);
    [[nodiscard]] const ProbedValues* valuesOn(const std::string& wire) const;
    [[nodiscard]] const ProbedValues* gradientOn(const std::string& wire) const;
};

} // namespace celloom::ui
