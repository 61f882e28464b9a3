#include "engine/data/preview.h"

#include "engine/data/packed.h"
#include "engine/exec/value_statistics.h"
#include "models/base/files.h"
#include "models/base/text.h"
#include "models/families/families.h"
#include "models/families/vocabulary.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace celloom::engine {
using nlohmann::json;
namespace fs = std::filesystem;
namespace {

/// The graph that the run would have, as far as templates and token ranges need it.
Result<graph::ExpandedModel> modelOf(const recipe::Recipe& recipe) {
    CELLOOM_TRY(document, families::openModel(recipe.text("model.source")));
    CELLOOM_TRY(overrides, recipe.modelOverrides());
    graph::Expansion expansion = graph::expand(document, overrides);
    if (!expansion.ok()) return tl::unexpected(expansion.firstError());
    return std::move(expansion.model);
}

Result<PreparedData> conversations(const recipe::Recipe& recipe, const DataFiles& files, const fs::path& folder, DataPreview& out) {
    CELLOOM_TRY(split, readInstructionSplit(recipe, files));
    CELLOOM_TRY(tokenizer, obtainTokenizer(recipe, textsOf(split.train), folder / "tokenizer.model"));
    out.tokenizer = std::move(tokenizer);
    CELLOOM_TRY(model, modelOf(recipe));
    CELLOOM_TRY(chosen, chooseChatTemplate(recipe.text("data.template"), folder, model, *out.tokenizer));
    const ChatFormat format(*chosen, *out.tokenizer);
    out.chatTemplate = chosen;
    out.fallbacks = format.fallbacks();
    out.formats = split.formats;
    CELLOOM_TRY(data, prepareInstructions(recipe, split, format, *out.tokenizer, {}));
    out.samples = data.samples;
    out.heldOut = data.heldOut;
    return data;
}

Result<PreparedData> prepare(const recipe::Recipe& recipe, const DataFiles& files, const fs::path& folder, DataPreview& out) {
    const fs::path target = folder / "tokenizer.model";
    if (files.areInstructions) return conversations(recipe, files, folder, out);
    if (files.areTensors) return prepareTensors(recipe, files);
    if (files.areTokens) {
        if (!recipe.text("tokenizer.path").empty()) {
            CELLOOM_TRY(tokenizer, obtainTokenizer(recipe, {}, target));
            out.tokenizer = std::move(tokenizer);
        }
        CELLOOM_TRY(model, modelOf(recipe));
        return prepareTokens(recipe, files, families::vocabularyOf(model));
    }
    CELLOOM_TRY(split, readTextSplit(recipe, files));
    CELLOOM_TRY(tokenizer, obtainTokenizer(recipe, split.train, target));
    out.tokenizer = std::move(tokenizer);
    CELLOOM_TRY(hash, sha256OfFile(target));
    return prepareText(recipe, std::move(split), *out.tokenizer, hash, folder, {});
}

json toJson(const ChatStatistics& s) {
    json lengths = json::array();
    for (const auto& bin : s.lengths) lengths.push_back({{"up_to", bin.upTo}, {"count", bin.count}});
    return {{"conversations", s.conversations}, {"truncated", s.truncated}, {"dropped", s.dropped}, {"untrainable", s.untrainable}, {"sequences", s.rows},
            {"tokens", s.tokens}, {"trainable", s.trainable}, {"longest", s.longest}, {"lengths", lengths}};
}

std::vector<std::int64_t> valuesOf(const at::Tensor& tensor, std::int64_t row, std::int64_t length) {
    const at::Tensor values = tensor[row].slice(0, 0, length).contiguous();
    return {values.const_data_ptr<std::int64_t>(), values.const_data_ptr<std::int64_t>() + length};
}

/// One row of the batch, without its padding.
struct ShownRow {
    std::vector<std::int64_t> ids, labels, segments, positions;
    bool isLearned(std::size_t i) const { return i > 0 && labels[i] != -100; }
};

ShownRow rowOf(const DataPreview& preview, std::int64_t row) {
    const std::int64_t length = preview.lengths[static_cast<std::size_t>(row)];
    ShownRow out{valuesOf(preview.batch.inputIds, row, length), valuesOf(preview.batch.labels, row, length), {}, {}};
    const Batch& batch = preview.batch;
    for (std::int64_t i = 0; i < length; ++i) {
        out.segments.push_back(0);
        out.positions.push_back(i);
    }
    if (batch.segments.defined()) out.segments = valuesOf(batch.segments, row, length);
    if (batch.positions.defined()) out.positions = valuesOf(batch.positions, row, length);
    return out;
}

/// Neighbours of one kind, decoded together so that characters of several tokens are whole.
std::string textOf(const ShownRow& row, const Tokenizer* tokenizer, bool isColoured) {
    enum class Kind { Prompt, Learned, Mark };
    std::string out;
    for (std::size_t i = 0; i < row.ids.size();) {
        const auto kindOf = [&](std::size_t at) {
            if (row.isLearned(at)) return Kind::Learned;
            return tokenizer && tokenizer->isSpecial(row.ids[at]) ? Kind::Mark : Kind::Prompt;
        };
        const Kind kind = kindOf(i);
        std::string text;
        std::vector<std::int64_t> run;
        const auto flush = [&] {
            if (tokenizer && !run.empty()) text += tokenizer->decode(run);
            run.clear();
        };
        std::size_t end = i;
        for (; end < row.ids.size() && kindOf(end) == kind && row.segments[end] == row.segments[i]; ++end) {
            if (tokenizer && !tokenizer->isSpecial(row.ids[end])) {
                run.push_back(row.ids[end]);
                continue;
            }
            flush();
            text += tokenizer ? tokenizer->piece(row.ids[end]) : std::to_string(row.ids[end]) + " ";
        }
        flush();
        const char* colour = kind == Kind::Learned ? "\x1b[32m" : kind == Kind::Mark ? "\x1b[35m" : "";
        if (isColoured)
            out += colour + text + (*colour ? "\x1b[0m" : "");
        else
            out += kind == Kind::Learned ? "⟦" + text + "⟧" : text;
        if (end < row.ids.size() && row.segments[end] != row.segments[i]) out += isColoured ? "\x1b[33m│\x1b[0m" : " ║ ";
        i = end;
    }
    return out;
}

std::string histogram(const std::vector<ChatStatistics::Bin>& bins) {
    std::int64_t most = 1;
    for (const auto& bin : bins) most = std::max(most, bin.count);
    std::string out;
    for (const auto& bin : bins) {
        const std::string upTo = std::to_string(bin.upTo);
        out += "  up to " + std::string(upTo.size() < 7 ? 7 - upTo.size() : 0, ' ') + upTo + " tokens  ";
        for (std::int64_t i = 0; i < (bin.count * 30 + most - 1) / most; ++i) out += "▇";
        out += " " + std::to_string(bin.count) + "\n";
    }
    return out;
}

/// All columns of the batch by name, tokens among them.
std::map<std::string, at::Tensor> columnsOf(const Batch& batch) {
    std::map<std::string, at::Tensor> out = batch.columns;
    if (batch.inputIds.defined()) out["input_ids"] = batch.inputIds;
    if (batch.labels.defined()) out["labels"] = batch.labels;
    return out;
}

const char* nameOf(const at::Tensor& tensor) { return at::isIntegralType(tensor.scalar_type(), false) ? "int64" : "float32"; }

std::string columnsToJson(const DataPreview& preview) {
    json files = json::array(), columns = json::array();
    for (const CorpusFile& file : preview.files) files.push_back({{"path", file.path.string()}, {"bytes", file.sizeBytes}, {"encoding", file.encoding}});
    for (const auto& [name, tensor] : columnsOf(preview.batch)) {
        const ValueStatistics values = statisticsOf(tensor);
        columns.push_back({{"name", name}, {"shape", tensor.sizes().vec()}, {"type", nameOf(tensor)}, {"minimum", values.minimum}, {"maximum", values.maximum},
                           {"mean", values.mean}, {"deviation", values.deviation}, {"histogram", values.histogram}});
    }
    const json out{{"files", files}, {"rows", preview.rows}, {"held_out_rows", preview.heldOutRows}, {"batch", {{"rows", preview.lengths.size()}, {"columns", columns}}}};
    return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string columnsToText(const DataPreview& preview) {
    constexpr std::size_t kFilesShown = 10;
    std::string out;
    for (std::size_t i = 0; i < std::min(kFilesShown, preview.files.size()); ++i) out += preview.files[i].path.string() + ": " + preview.files[i].encoding + "\n";
    if (preview.files.size() > kFilesShown) out += "… and " + std::to_string(preview.files.size() - kFilesShown) + " more files\n";
    out += std::to_string(preview.rows) + " rows, " + std::to_string(preview.heldOutRows) + " held out\n\nthe first batch:\n";
    for (const auto& [name, tensor] : columnsOf(preview.batch)) {
        const ValueStatistics values = statisticsOf(tensor);
        out += name + " [" + c10::Join(", ", tensor.sizes()) + "] " + nameOf(tensor) + ": " + roundedText(values.minimum) + " to " + roundedText(values.maximum) + ", mean " +
               roundedText(values.mean) + ", spread " + roundedText(values.deviation) + "\n";
    }
    return out;
}

} // namespace

bool DataPreview::areColumns() const { return !batch.inputIds.defined() || !batch.labels.defined() || !batch.columns.empty(); }

Result<DataPreview> previewData(const recipe::Recipe& recipe, const fs::path& folder, std::int64_t rows) {
    if (!recipe::trains(recipe)) return fail("is " + recipe.text("kind") + ", which has no first batch of a training.", "Preview a recipe of kind pretrain or finetune.", "kind");
    DataPreview out;
    CELLOOM_TRY(files, findDataFiles(recipe));
    CELLOOM_TRY(data, prepare(recipe, files, folder, out));
    out.isTokenizerTrained = out.tokenizer && recipe.text("tokenizer.path").empty() && recipe.text("model.weights").empty();
    out.files = data.files;
    out.dataset = data.train;
    out.rows = data.train->size();
    out.heldOutRows = data.validation ? data.validation->size() : 0;
    out.sequenceLength = data.sequenceLength;
    if (out.rows == 0) return fail("The data fill no sequence.", "Give more text, or lower train.sequence_length.", "data.train");
    const bool isShuffled = recipe.flag("data.shuffle"), isGrouped = files.areInstructions && recipe.flag("data.group_by_length");
    const std::int64_t batchSize = recipe.integer("train.batch_size");
    const ShuffledDataset shuffled(*data.train, static_cast<std::uint64_t>(recipe.integer("seed")), 0, isGrouped ? batchSize : 0);
    const EpochDataset inOrder(*data.train, static_cast<std::uint64_t>(recipe.integer("seed")), 0);
    const Dataset& ordered = isShuffled ? static_cast<const Dataset&>(shuffled) : inOrder;
    const std::int64_t count = std::min(rows > 0 ? rows : batchSize, out.rows);
    out.batch = collate(ordered, 0, count);
    for (std::int64_t i = 0; i < count; ++i) out.lengths.push_back(ordered.lengthOf(i));
    return out;
}

std::string toJson(const DataPreview& preview) {
    if (preview.areColumns()) return columnsToJson(preview);
    json files = json::array(), rows = json::array();
    for (std::size_t i = 0; i < preview.files.size(); ++i) {
        const CorpusFile& file = preview.files[i];
        files.push_back({{"path", file.path.string()}, {"bytes", file.sizeBytes}, {"encoding", file.encoding}});
        if (i < preview.formats.size()) files.back()["format"] = preview.formats[i];
    }
    for (std::size_t r = 0; r < preview.lengths.size(); ++r) {
        const ShownRow row = rowOf(preview, static_cast<std::int64_t>(r));
        json pieces = json::array(), special = json::array();
        for (const std::int64_t id : row.ids) {
            pieces.push_back(preview.tokenizer && id < preview.tokenizer->vocabSize() ? preview.tokenizer->piece(id) : std::string());
            special.push_back(preview.tokenizer && preview.tokenizer->isSpecial(id));
        }
        rows.push_back({{"ids", row.ids}, {"pieces", pieces}, {"special", special}, {"labels", row.labels}, {"segments", row.segments},
                        {"positions", row.positions}, {"padding", preview.batch.inputIds.size(1) - std::ssize(row.ids)}});
    }
    json out{{"files", files},
             {"sequences", preview.rows},
             {"held_out_sequences", preview.heldOutRows},
             {"sequence_length", preview.sequenceLength},
             {"batch", {{"rows", rows}, {"length", preview.batch.inputIds.size(1)}, {"learned", validLabels(preview.batch)}}}};
    if (preview.tokenizer) out["tokenizer"] = {{"vocabulary", preview.tokenizer->vocabSize()}, {"trained", preview.isTokenizerTrained}};
    if (preview.chatTemplate)
        out["template"] = {{"name", preview.chatTemplate->name}, {"label", preview.chatTemplate->label}, {"source", preview.chatTemplate->source}, {"fallbacks", preview.fallbacks}};
    if (preview.samples) out["samples"] = toJson(*preview.samples);
    if (preview.heldOut) out["held_out"] = toJson(*preview.heldOut);
    return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string toText(const DataPreview& preview, bool isColoured) {
    if (preview.areColumns()) return columnsToText(preview);
    std::string out;
    for (std::size_t i = 0; i < preview.files.size(); ++i)
        out += preview.files[i].path.string() + ": " + (i < preview.formats.size() ? preview.formats[i] + ", " : "") + preview.files[i].encoding + "\n";
    if (preview.chatTemplate) out += "template: " + preview.chatTemplate->label + " (" + preview.chatTemplate->source + ")\n";
    for (const std::string& sentence : preview.fallbacks) out += "  " + sentence + "\n";
    if (preview.tokenizer)
        out += "tokenizer: " + std::to_string(preview.tokenizer->vocabSize()) + " pieces" + (preview.isTokenizerTrained ? ", trained on these files" : "") + "\n";
    out += std::to_string(preview.rows) + " sequences of at most " + std::to_string(preview.sequenceLength) + " tokens, " +
           std::to_string(preview.heldOutRows) + " held out\n";
    if (preview.samples) {
        const ChatStatistics& s = *preview.samples;
        out += std::to_string(s.conversations) + " conversations: " + std::to_string(s.truncated) + " shortened, " + std::to_string(s.dropped) +
               " left out as too long, " + std::to_string(s.untrainable) + " without a trainable token; " + std::to_string(s.trainable) + " of " +
               std::to_string(s.tokens) + " tokens learned\n" + histogram(s.lengths);
    }
    for (std::size_t r = 0; r < preview.lengths.size(); ++r) {
        const ShownRow row = rowOf(preview, static_cast<std::int64_t>(r));
        std::int64_t learned = 0;
        for (std::size_t i = 0; i < row.ids.size(); ++i) learned += row.isLearned(i);
        out += "\nrow " + std::to_string(r + 1) + ": " + std::to_string(row.ids.size()) + " tokens, " + std::to_string(learned) + " learned\n" +
               textOf(row, preview.tokenizer.get(), isColoured) + "\n";
    }
    return out;
}

} // namespace celloom::engine
