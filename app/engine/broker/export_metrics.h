// Every metric row of a run as CSV or JSON, streamed, so that a million rows need no memory.
#pragma once

#include "models/base/result.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace celloom::app {

enum class MetricFormat { Csv, Json };

/// To `out`, which appears whole or not at all; to stdout when it is empty. CSV: id,step,epoch,name,value,time,superseded with a
/// header; JSON: an array, one object a line. Values that are no finite numbers are nan, inf, -inf. Gives the number of rows.
Result<std::int64_t> writeMetrics(const std::filesystem::path& database, MetricFormat format, const std::filesystem::path& out);

} // namespace celloom::app
