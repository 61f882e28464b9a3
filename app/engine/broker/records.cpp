#include "app/engine/broker/records.h"

#include <cmath>
#include <fstream>

namespace celloom::app {
using protocol::Message;
namespace {

constexpr std::streamoff kTailBytes = 16 << 10;

Message number(double value) {
    if (std::isnan(value)) return nullptr;
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    return value;
}

} // namespace

Message toJson(const store::RunRecord& run) {
    return {{"number", run.number},
            {"folder", run.folder},
            {"name", run.name},
            {"kind", run.kind},
            {"state", store::toString(run.state)},
            {"outcome", run.outcome},
            {"model", run.model},
            {"precision", run.precision},
            {"created", number(run.created)},
            {"started", number(run.started)},
            {"ended", number(run.ended)},
            {"step", run.step},
            {"total_steps", run.totalSteps},
            {"elapsed_s", number(run.elapsedSeconds)},
            {"loss", number(run.lastLoss)},
            {"perplexity", number(run.lastPerplexity)},
            {"tokens_per_s", number(run.tokensPerSecond)},
            {"lr", number(run.learningRate)},
            {"parent", run.parent},
            {"tags", run.tags},
            {"note", run.note}};
}

Message toJson(const store::Progress& progress) {
    return {{"state", store::toString(progress.state)},
            {"stage", progress.stage},
            {"step", progress.step},
            {"total_steps", progress.totalSteps},
            {"epoch", number(progress.epoch)},
            {"total_epochs", number(progress.totalEpochs)},
            {"elapsed_s", number(progress.elapsedSeconds)},
            {"remaining_s", number(progress.remainingSeconds)},
            {"updated", number(progress.updated)},
            {"pid", progress.pid}};
}

Message toJson(const store::MetricRow& row) {
    Message value = std::isnan(row.value) ? Message("nan") : number(row.value);
    return {{"id", row.id},
            {"step", row.step},
            {"epoch", number(row.epoch)},
            {"name", row.name},
            {"value", std::move(value)},
            {"time", row.time},
            {"superseded", row.isSuperseded}};
}

Message toJson(const store::EventRow& row) {
    return {{"id", row.id},     {"time", row.time},       {"step", row.step}, {"level", row.level},
            {"kind", row.kind}, {"message", row.message}, {"hint", row.hint}, {"data", row.data}};
}

Message toJson(const Error& error) {
    return {{"message", error.message}, {"hint", error.hint}, {"place", error.place}};
}

std::string tail(const std::filesystem::path& path, int lines) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) return {};
    const std::streamoff size = file.tellg();
    std::string text(static_cast<std::size_t>(std::min(size, kTailBytes)), '\0');
    file.seekg(size - static_cast<std::streamoff>(text.size()));
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    std::size_t start = text.size();
    for (int found = 0; start > 0; --start)
        if (text[start - 1] == '\n' && start != text.size() && ++found == lines) break;
    if (start == 0 && size > kTailBytes) start = std::min(text.find('\n'), text.size() - 1) + 1; // the first line may be a part of one
    return text.substr(start);
}

} // namespace celloom::app
