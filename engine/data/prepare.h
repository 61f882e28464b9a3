// A recipe's data section, carried out: files found, read and split; a tokenizer loaded or trained; rows ready for training.
#pragma once

#include "engine/data/chat_dataset.h"
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
    bool areInstructions = false;
    bool areTensors = false; // named columns, of images too
    bool areImages = false;
};
Result<DataFiles> findDataFiles(const recipe::Recipe& recipe);

struct TextSplit {
    std::vector<CorpusFile> files;
    std::vector<std::string> train, validation; // documents
};
/// Reads everything; holds out documents by data.validation_fraction (drawn under the seed) where no validation files are given.
Result<TextSplit> readTextSplit(const recipe::Recipe& recipe, const DataFiles& files);

struct InstructionSplit {
    std::vector<CorpusFile> files;
    std::vector<std::string> formats; // of each file, as found
    std::vector<Conversation> train, validation;
};
/// The same for instruction files.
Result<InstructionSplit> readInstructionSplit(const recipe::Recipe& recipe, const DataFiles& files);
/// All that is said in the conversations: what a tokenizer is trained on where none is given.
std::vector<std::string> textsOf(const std::vector<Conversation>& conversations);

/// Puts the run's tokenizer at `target`, with the files that belong to it: a copy of the given one, or of the one in the folder of
/// model.weights, or one trained on the training documents alone. One that is there already (a resumed run) is used as it is.
Result<std::unique_ptr<Tokenizer>> obtainTokenizer(const recipe::Recipe& recipe, const std::vector<std::string>& trainingDocuments,
                                                   const std::filesystem::path& target);

struct PreparedData {
    std::shared_ptr<Dataset> train, validation; // validation may be null; in an evaluation, train
    std::vector<CorpusFile> files;
    std::int64_t sequenceLength = 0;
    ChatStatistics samples, heldOut; // of conversations
    std::string labels;              // of images: labelsToJson()
};
Result<PreparedData> prepareText(const recipe::Recipe& recipe, TextSplit split, const Tokenizer& tokenizer, const std::string& tokenizerHash,
                                 const std::filesystem::path& cacheFolder, const std::function<bool()>& goOn);
/// Rows of conversations; fails where none is left to learn from.
Result<PreparedData> prepareInstructions(const recipe::Recipe& recipe, const InstructionSplit& split, const ChatFormat& format,
                                         const Tokenizer& tokenizer, const std::function<bool()>& goOn);
/// The id that fills rows up: the tokenizer's pad, else its end token, else 0. No label ever sees it.
std::int64_t paddingId(const Tokenizer& tokenizer);
Result<PreparedData> prepareTokens(const recipe::Recipe& recipe, const DataFiles& files, std::int64_t vocabSize);
Result<PreparedData> prepareTensors(const recipe::Recipe& recipe, const DataFiles& files);

} // namespace celloom::engine
