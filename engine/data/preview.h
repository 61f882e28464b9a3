// What a run would read, before it runs: files as they were understood, counts, and the very first batch, token by token.
#pragma once

#include "engine/data/prepare.h"

#include <optional>

namespace celloom::engine {

struct DataPreview {
    std::vector<CorpusFile> files;
    std::vector<std::string> formats; // of instruction files
    std::unique_ptr<Tokenizer> tokenizer; // null where token files come without one
    bool isTokenizerTrained = false;      // none is given: the run would train this one
    const ChatTemplate* chatTemplate = nullptr; // of conversations
    std::vector<std::string> fallbacks;
    std::optional<ChatStatistics> samples, heldOut;
    std::int64_t rows = 0, heldOutRows = 0, sequenceLength = 0;
    std::shared_ptr<const Dataset> dataset; // that the run learns from
    Batch batch;                       // the first of the run: what its first step begins with
    std::vector<std::int64_t> lengths; // of the batch's rows, without padding; 1 of rows of named columns
    /// Whether the rows are named columns rather than tokens to be shown one by one.
    [[nodiscard]] bool areColumns() const;
};

/// Reads, tokenises and shuffles as the run would; the tokenizer and what goes with it are put into `folder`, which must exist. `rows`:
/// rows of the batch; 0: as many as the recipe's batch has.
Result<DataPreview> previewData(const recipe::Recipe& recipe, const std::filesystem::path& folder, std::int64_t rows = 0);

/// One JSON object (docs/file-formats.md).
std::string toJson(const DataPreview& preview);
/// For a terminal. `isColoured`: learned tokens green, marks violet, padding left out; otherwise learned text stands in ⟦ ⟧.
std::string toText(const DataPreview& preview, bool isColoured);

} // namespace celloom::engine
