// A recipe's data section, carried out: files found, read and split; a tokenizer loaded or trained; rows ready for training.
#pragma once

#include "engine/data/dataset.h"
#include "engine/data/sources.h"
#include "engine/text/tokenizer.h"
#include "models/recipe/recipe.h"

#include <functional>

namespace celloom::engine {

/// What data.train and data.validation name.
struct DataFiles {
    std::vector<std::filesystem::path> train, validation;
    bool areTokens = false;
};
Result<DataFiles> findDataFiles(const recipe::Recipe& recipe);

struct TextSplit {
    std::vector<CorpusFile> files;
    std::vector<std::string> train, validation; // documents
};
/// Reads everything; holds out documents by data.validation_fraction (drawn under the seed) where no validation files are given.
Result<TextSplit> readTextSplit(const recipe::Recipe& recipe, const DataFiles& files);

/// Puts the run's tokenizer.model at `target`: a copy of the given one, or one trained on the training documents alone. One that is there
/// already (a resumed run) is used as it is.
Result<std::unique_ptr<Tokenizer>> obtainTokenizer(const recipe::Recipe& recipe, const std::vector<std::string>& trainingDocuments,
                                                   const std::filesystem::path& target);

struct PreparedData {
    std::unique_ptr<Dataset> train, validation; // validation may be null
    std::vector<CorpusFile> files;
    std::int64_t sequenceLength = 0;
};
Result<PreparedData> prepareText(const recipe::Recipe& recipe, TextSplit split, const Tokenizer& tokenizer, const std::string& tokenizerHash,
                                 const std::filesystem::path& cacheFolder, const std::function<bool()>& goOn);
Result<PreparedData> prepareTokens(const recipe::Recipe& recipe, const DataFiles& files, std::int64_t vocabSize);

} // namespace celloom::engine
