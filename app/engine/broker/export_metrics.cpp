#include "app/engine/broker/export_metrics.h"

#include "app/engine/broker/records.h"
#include "models/store/run_store.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <unistd.h>

namespace celloom::app {
namespace {

constexpr int kRowsAtATime = 10000;

/// The shortest text that reads back as the same number.
std::string exact(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    std::array<char, 32> text{};
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

std::string quoted(const std::string& text) {
    if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
}

std::string csvLine(const store::MetricRow& row) {
    return std::to_string(row.id) + "," + std::to_string(row.step) + "," + exact(row.epoch) + "," + quoted(row.name) + "," +
           exact(row.value) + "," + exact(row.time) + "," + (row.isSuperseded ? "1" : "0") + "\n";
}

Result<std::int64_t> writeRows(const store::RunReader& reader, MetricFormat format, std::FILE* file) {
    std::int64_t seen = 0, count = 0;
    std::fputs(format == MetricFormat::Csv ? "id,step,epoch,name,value,time,superseded\n" : "[", file);
    while (true) {
        CELLOOM_TRY(rows, reader.metricsAfter(seen, kRowsAtATime));
        if (rows.empty()) break;
        for (const store::MetricRow& row : rows) {
            if (format == MetricFormat::Csv)
                std::fputs(csvLine(row).c_str(), file);
            else
                std::fputs(
                    ((count == 0 ? "\n" : ",\n") + toJson(row).dump(-1, ' ', false, protocol::Message::error_handler_t::replace)).c_str(),
                    file);
            ++count;
        }
        seen = rows.back().id;
    }
    if (format == MetricFormat::Json) std::fputs("\n]\n", file);
    if (std::fflush(file) != 0 || std::ferror(file) != 0)
        return fail(std::string("cannot be written: ") + std::strerror(errno) + ".", "Is the disk full?");
    return count;
}

} // namespace

Result<std::int64_t> writeMetrics(const std::filesystem::path& database, MetricFormat format, const std::filesystem::path& out) {
    CELLOOM_TRY(reader, store::RunReader::open(database));
    if (out.empty()) return writeRows(*reader, format, stdout);
    const std::string temporary = out.string() + ".part";
    std::FILE* file = std::fopen(temporary.c_str(), "wbe");
    if (!file)
        return fail(std::string("cannot be written: ") + std::strerror(errno) + ".", "Check the folder and its permissions.", out.string());
    Result<std::int64_t> count = writeRows(*reader, format, file);
    const bool isWritten = ::fsync(::fileno(file)) == 0;
    if (std::fclose(file) == 0 && isWritten && count && std::rename(temporary.c_str(), out.c_str()) == 0) return count;
    if (count) count = fail(std::string("cannot be written: ") + std::strerror(errno) + ".", {}, out.string());
    ::unlink(temporary.c_str());
    return count;
}

} // namespace celloom::app
