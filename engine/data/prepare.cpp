#include "engine/data/prepare.h"

#include "engine/checkpoint/model_folder.h"
#include "engine/data/image_folder.h"
#include "engine/data/packed.h"
#include "engine/data/tensor_files.h"
#include "engine/data/token_file.h"
#include "models/base/files.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace celloom::engine {
namespace fs = std::filesystem;
namespace {

bool isTokenFile(const fs::path& path) { return path.extension() == ".safetensors"; }

Result<bool> areTokenFiles(const recipe::Recipe& recipe, const std::vector<fs::path>& files) {
    if (recipe.text("data.format") != "auto") return recipe.text("data.format") == "tokens";
    const auto tokens = std::count_if(files.begin(), files.end(), isTokenFile);
    if (tokens != 0 && tokens != static_cast<std::ptrdiff_t>(files.size()))
        return fail("mixes text files and token files.", "Give files of one kind, or set data.format.", "data.train");
    return tokens != 0;
}

bool isInstructionFile(const fs::path& path) { return path.extension() == ".jsonl" || path.extension() == ".json"; }
bool isEvaluation(const recipe::Recipe& recipe) { return recipe.text("kind") == "evaluate"; }
/// A pretraining takes JSON for text.
bool mayReadInstructions(const recipe::Recipe& recipe) { return recipe.text("kind") != "pretrain"; }

Result<bool> areInstructionFiles(const recipe::Recipe& recipe, const std::vector<fs::path>& files) {
    const std::string& format = recipe.text("data.format");
    if (format != "auto") return format == "alpaca" || format == "sharegpt" || format == "messages";
    if (!mayReadInstructions(recipe)) return false;
    const auto found = std::count_if(files.begin(), files.end(), isInstructionFile);
    if (found != 0 && found != std::ssize(files))
        return fail("mixes instruction files (.json, .jsonl) with others.", "Give files of one kind, or set data.format.", "data.train");
    return found != 0;
}

ChatDataOptions chatDataOptions(const recipe::Recipe& recipe, const Tokenizer& tokenizer) {
    ChatDataOptions options;
    options.sequenceLength = recipe.integer("train.sequence_length");
    const std::string& truncation = recipe.text("data.truncation");
    options.truncation = truncation == "cut-start" ? Truncation::CutStart
                         : truncation == "cut-end" ? Truncation::CutEnd
                         : truncation == "drop"    ? Truncation::Drop
                                                   : Truncation::KeepAnswer;
    options.masksPrompt = recipe.flag("data.mask_prompt");
    options.keepsUntrainable = recipe.text("data.untrainable") == "keep";
    options.packs = recipe.flag("data.packing");
    options.padId = paddingId(tokenizer);
    return options;
}

/// The tokenizer and what lies beside it, into the folder of `target`.
Status copyTokenizer(const fs::path& from, const fs::path& target) {
    CELLOOM_TRY_STATUS(Tokenizer::load(from).map([](const auto&) {}));
    std::vector<fs::path> files = tokenizerFiles(from);
    std::rotate(files.begin(), files.begin() + 1, files.end()); // the model last: where it is, all is
    for (const fs::path& file : files) {
        CELLOOM_TRY(bytes, readFile(file, 256ull << 20));
        CELLOOM_TRY_STATUS(writeFileAtomically(file == from ? target : target.parent_path() / file.filename(), bytes));
    }
    return {};
}

DocumentUnit documentUnit(const recipe::Recipe& recipe) {
    const std::string& unit = recipe.text("data.documents");
    return unit == "file" ? DocumentUnit::File : unit == "paragraph" ? DocumentUnit::Paragraph : DocumentUnit::BlankLine;
}

/// Which of `count` documents or rows are held out by data.validation_fraction, drawn under the seed: at least one, never all.
Result<std::vector<bool>> drawHeldOut(const recipe::Recipe& recipe, std::size_t count) {
    const double fraction = recipe.real("data.validation_fraction");
    std::vector<bool> isHeld(count);
    if (fraction <= 0) return isHeld;
    if (count < 2)
        return fail("the training files hold a single document or conversation; nothing can be held out of it for validation.",
                    "Name validation files, set data.validation_fraction to 0, or split a text by data.documents.", "data.validation_fraction");
    const std::int64_t all = static_cast<std::int64_t>(count);
    const std::int64_t held = std::clamp<std::int64_t>(std::llround(fraction * static_cast<double>(count)), 1, all - 1);
    const auto order = shuffledOrder(all, static_cast<std::uint64_t>(recipe.integer("seed")));
    for (std::int64_t i = 0; i < held; ++i) isHeld[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = true;
    return isHeld;
}

Status holdOutDocuments(const recipe::Recipe& recipe, TextSplit& split) {
    CELLOOM_TRY(isHeld, drawHeldOut(recipe, split.train.size()));
    std::vector<std::string> train;
    for (std::size_t d = 0; d < split.train.size(); ++d) (isHeld[d] ? split.validation : train).push_back(std::move(split.train[d]));
    split.train = std::move(train);
    return {};
}

Status holdOutRows(const recipe::Recipe& recipe, std::shared_ptr<const Dataset> all, PreparedData& data) {
    CELLOOM_TRY(isHeld, drawHeldOut(recipe, static_cast<std::size_t>(all->size())));
    std::vector<std::int64_t> train, validation;
    for (std::size_t r = 0; r < isHeld.size(); ++r) (isHeld[r] ? validation : train).push_back(static_cast<std::int64_t>(r));
    data.train = std::make_unique<SubsetDataset>(all, std::move(train));
    if (!validation.empty()) data.validation = std::make_unique<SubsetDataset>(all, std::move(validation));
    return {};
}

} // namespace

namespace {

/// Training and validation images. The classes are those of the training folders, also where only the validation is looked at.
struct ImageSplit {
    ImageList train, validation;
};
Result<ImageSplit> listImageSplit(const recipe::Recipe& recipe) {
    ImageSplit out;
    CELLOOM_TRY(train, listImages(recipe.list("data.train"), "data.train"));
    CELLOOM_TRY(validation, listImages(recipe.list("data.validation"), "data.validation", train.classes));
    std::set<fs::path> learned;
    std::error_code code;
    for (const fs::path& path : train.files) learned.insert(fs::weakly_canonical(path, code));
    for (const fs::path& path : validation.files)
        if (learned.contains(fs::weakly_canonical(path, code)))
            return fail("is among the training images too.", "Validation images must not be learned from.", "data.validation: " + path.string());
    return ImageSplit{std::move(train), std::move(validation)};
}

Result<DataFiles> findImages(const recipe::Recipe& recipe) {
    CELLOOM_TRY(split, listImageSplit(recipe));
    DataFiles out{std::move(split.train.files), std::move(split.validation.files), false, false, true, true};
    if (isEvaluation(recipe) && !out.validation.empty()) out.train.clear();
    else if (out.train.empty()) return fail("names no folder.", "Choose a folder with a sub-folder of images for each class.", "data.train");
    return out;
}

} // namespace

Result<DataFiles> findDataFiles(const recipe::Recipe& recipe) {
    const std::string& format = recipe.text("data.format");
    if (format == "images") return findImages(recipe);
    std::vector<std::string> endings{".txt", ".safetensors"};
    if (format == "tensors") endings = {".safetensors"};
    else if (format == "alpaca" || format == "sharegpt" || format == "messages") endings = {".json", ".jsonl"};
    else if (mayReadInstructions(recipe) && format == "auto") endings.insert(endings.end(), {".json", ".jsonl"});
    CELLOOM_TRY(train, expandFiles(recipe.list("data.train"), "data.train", endings));
    CELLOOM_TRY(validation, expandFiles(recipe.list("data.validation"), "data.validation", endings));
    if (isEvaluation(recipe) && !validation.empty()) train.clear(); // what the model learned from is not looked at
    else if (train.empty()) return fail("names no file.", "Choose the text, token or instruction files to learn from.", "data.train");
    for (const fs::path& path : validation)
        if (std::any_of(train.begin(), train.end(), [&](const fs::path& other) { std::error_code e; return fs::equivalent(path, other, e); }))
            return fail("is among the training files too.", "Validation files must not be learned from.", "data.validation: " + path.string());
    std::vector<fs::path> all = train;
    all.insert(all.end(), validation.begin(), validation.end());
    CELLOOM_TRY(areInstructions, areInstructionFiles(recipe, all));
    CELLOOM_TRY(areTokens, areInstructions ? Result<bool>(false) : areTokenFiles(recipe, all));
    return DataFiles{std::move(train), std::move(validation), areTokens, areInstructions, format == "tensors"};
}

Result<TextSplit> readTextSplit(const recipe::Recipe& recipe, const DataFiles& files) {
    const std::string& encoding = recipe.text("data.encoding");
    CELLOOM_TRY(train, readText(files.train, documentUnit(recipe), encoding));
    TextSplit split{std::move(train.files), std::move(train.documents), {}};
    if (files.validation.empty()) {
        CELLOOM_TRY_STATUS(holdOutDocuments(recipe, split));
        return split;
    }
    CELLOOM_TRY(validation, readText(files.validation, documentUnit(recipe), encoding));
    split.files.insert(split.files.end(), validation.files.begin(), validation.files.end());
    split.validation = std::move(validation.documents);
    return split;
}

Result<InstructionSplit> readInstructionSplit(const recipe::Recipe& recipe, const DataFiles& files) {
    CELLOOM_TRY(columns, InstructionColumns::parse(recipe.list("data.columns")));
    const auto read = [&](const std::vector<fs::path>& paths) {
        return readInstructions(paths, instructionFormatNamed(recipe.text("data.format")), columns, recipe.text("data.encoding"));
    };
    CELLOOM_TRY(train, read(files.train));
    InstructionSplit split{std::move(train.files), std::move(train.formats), {}, {}};
    if (files.validation.empty()) {
        CELLOOM_TRY(isHeld, drawHeldOut(recipe, train.conversations.size()));
        for (std::size_t i = 0; i < isHeld.size(); ++i) (isHeld[i] ? split.validation : split.train).push_back(std::move(train.conversations[i]));
        return split;
    }
    split.train = std::move(train.conversations);
    CELLOOM_TRY(validation, read(files.validation));
    for (Conversation& one : validation.conversations) one.file += split.files.size();
    split.files.insert(split.files.end(), validation.files.begin(), validation.files.end());
    split.formats.insert(split.formats.end(), validation.formats.begin(), validation.formats.end());
    split.validation = std::move(validation.conversations);
    return split;
}

std::vector<std::string> textsOf(const std::vector<Conversation>& conversations) {
    std::vector<std::string> out;
    for (const Conversation& one : conversations)
        for (const ChatMessage& message : one.messages) out.push_back(message.text);
    return out;
}

Result<std::unique_ptr<Tokenizer>> obtainTokenizer(const recipe::Recipe& recipe, const std::vector<std::string>& trainingDocuments,
                                                   const fs::path& target) {
    if (fs::exists(target)) return Tokenizer::load(target);
    if (const std::string& given = recipe.text("tokenizer.path"); !given.empty()) {
        CELLOOM_TRY_STATUS(copyTokenizer(given, target));
        return Tokenizer::load(target);
    }
    if (const std::string& weights = recipe.text("model.weights"); !weights.empty()) {
        CELLOOM_TRY(base, openModelFolder(weights));
        if (base.tokenizer.empty() && mayReadInstructions(recipe))
            return fail("holds no tokenizer.model, and no other tokenizer is given.", "Give tokenizer.path: the one that the base was trained with.", weights);
        if (!base.tokenizer.empty()) {
            CELLOOM_TRY_STATUS(copyTokenizer(base.tokenizer, target));
            return Tokenizer::load(target);
        }
    }
    TokenizerTraining training;
    training.texts = trainingDocuments;
    training.vocabSize = static_cast<int>(recipe.integer("tokenizer.vocab_size"));
    training.modelType = recipe.text("tokenizer.type");
    training.characterCoverage = recipe.real("tokenizer.character_coverage");
    training.controlSymbols = recipe.list("tokenizer.control_symbols");
    training.userSymbols = recipe.list("tokenizer.user_symbols");
    CELLOOM_TRY_STATUS(Tokenizer::train(training, target));
    return Tokenizer::load(target);
}

Result<PreparedData> prepareText(const recipe::Recipe& recipe, TextSplit split, const Tokenizer& tokenizer, const std::string& tokenizerHash,
                                 const fs::path& cacheFolder, const std::function<bool()>& goOn) {
    const std::int64_t length = recipe.integer("train.sequence_length");
    const DocumentAttention attention = recipe.text("data.attention") == "document" ? DocumentAttention::Document : DocumentAttention::Full;
    const std::int64_t pad = paddingId(tokenizer);
    const auto pack = [&](const std::vector<std::string>& documents) -> Result<std::unique_ptr<Dataset>> {
        CELLOOM_TRY(stream, tokeniseCached(documents, tokenizer, tokenizerHash, cacheFolder, goOn));
        return std::make_unique<PackedDataset>(std::move(stream), length, attention, pad);
    };
    PreparedData data;
    data.files = std::move(split.files);
    data.sequenceLength = length;
    if (!isEvaluation(recipe)) {
        CELLOOM_TRY(train, pack(split.train));
        data.train = std::move(train);
    }
    if (split.validation.empty()) return data;
    CELLOOM_TRY(validation, pack(split.validation));
    if (validation->size() == 0) return fail("hold no text to measure the loss on.", "Add validation text.", "data.validation");
    data.validation = std::move(validation);
    return data;
}

std::int64_t paddingId(const Tokenizer& tokenizer) { return tokenizer.pad() >= 0 ? tokenizer.pad() : std::max<std::int64_t>(tokenizer.eos(), 0); }

Result<PreparedData> prepareInstructions(const recipe::Recipe& recipe, const InstructionSplit& split, const ChatFormat& format,
                                         const Tokenizer& tokenizer, const std::function<bool()>& goOn) {
    ChatDataOptions options = chatDataOptions(recipe, tokenizer);
    PreparedData data;
    data.files = split.files;
    data.sequenceLength = options.sequenceLength;
    if (!isEvaluation(recipe)) {
        CELLOOM_TRY(train, ChatDataset::create(split.train, format, options, goOn));
        data.samples = train->statistics();
        if (train->size() == 0)
            return fail("No conversation is left to learn from: of " + std::to_string(data.samples.conversations) + ", " + std::to_string(data.samples.dropped) +
                            " are too long and " + std::to_string(data.samples.untrainable) + " have no trainable token.",
                        "Raise train.sequence_length, or choose another data.truncation.", "train.sequence_length");
        data.train = std::move(train);
    }
    options.keepsUntrainable = false; // nothing could be measured on them
    CELLOOM_TRY(validation, ChatDataset::create(split.validation, format, options, goOn));
    data.heldOut = validation->statistics();
    if (validation->size() > 0) data.validation = std::move(validation);
    return data;
}

namespace {

/// Path, hash and size of all files: a resumed run must find them as they were.
Status remember(const DataFiles& files, const char* kind, PreparedData& data) {
    for (const auto* list : {&files.train, &files.validation})
        for (const fs::path& path : *list) {
            CELLOOM_TRY(hash, sha256OfFile(path));
            data.files.push_back({path, hash, static_cast<std::int64_t>(fs::file_size(path)), kind});
        }
    return {};
}

/// Opens the files and shares their rows out: as the files say, or with a part held out; of an evaluation all are validation rows.
template <typename Open>
Status shareOut(const recipe::Recipe& recipe, const DataFiles& files, const Open& open, PreparedData& data) {
    CELLOOM_TRY(first, open(files.train.empty() ? files.validation : files.train));
    if (files.train.empty()) {
        data.validation = std::move(first);
        return {};
    }
    if (files.validation.empty()) return holdOutRows(recipe, std::move(first), data);
    data.train = std::move(first);
    CELLOOM_TRY(validation, open(files.validation));
    data.validation = std::move(validation);
    return {};
}

Result<PreparedData> prepareImages(const recipe::Recipe& recipe, const DataFiles& files) {
    PreparedData data;
    CELLOOM_TRY_STATUS(remember(files, "images", data));
    CELLOOM_TRY(split, listImageSplit(recipe));
    CELLOOM_TRY(options, imageOptionsOf(recipe));
    data.sequenceLength = 1;
    data.labels = labelsToJson(split.train.files.empty() ? split.validation : split.train);
    if (!files.train.empty()) {
        CELLOOM_TRY(train, ImageDataset::open(std::move(split.train), options));
        if (files.validation.empty()) {
            CELLOOM_TRY_STATUS(holdOutRows(recipe, std::move(train), data));
            return data;
        }
        data.train = std::move(train);
    }
    CELLOOM_TRY(validation, ImageDataset::open(std::move(split.validation), options));
    data.validation = std::move(validation);
    return data;
}

} // namespace

Result<PreparedData> prepareTensors(const recipe::Recipe& recipe, const DataFiles& files) {
    if (files.areImages) return prepareImages(recipe, files);
    PreparedData data;
    data.sequenceLength = 1;
    CELLOOM_TRY_STATUS(remember(files, "tensors", data));
    CELLOOM_TRY_STATUS(shareOut(recipe, files, openTensorFiles, data));
    return data;
}

Result<PreparedData> prepareTokens(const recipe::Recipe& recipe, const DataFiles& files, std::int64_t vocabSize) {
    PreparedData data;
    CELLOOM_TRY_STATUS(remember(files, "tokens", data));
    const auto open = [&](const std::vector<fs::path>& paths) {
        auto rows = TokenFileDataset::open(paths, vocabSize);
        if (rows && data.sequenceLength == 0) data.sequenceLength = (*rows)->sequenceLength(); // of the first
        return rows;
    };
    CELLOOM_TRY_STATUS(shareOut(recipe, files, open, data));
    return data;
}

} // namespace celloom::engine
