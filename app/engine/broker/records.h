// Records and rows as the protocol and --json write them. NaN is null where it means "unknown"; an infinite number is a string.
#pragma once

#include "models/protocol/protocol.h"
#include "models/store/index.h"
#include "models/store/run_store.h"

namespace celloom::app {

protocol::Message toJson(const store::RunRecord& record);
protocol::Message toJson(const store::Progress& progress);
protocol::Message toJson(const store::MetricRow& row); // a value that is no finite number: "nan", "inf", "-inf"
protocol::Message toJson(const store::EventRow& row);
protocol::Message toJson(const Error& error);
/// The last lines of a text file: at most `lines`, of at most 16 KiB together. Empty where there is none.
std::string tail(const std::filesystem::path& path, int lines);

} // namespace celloom::app
