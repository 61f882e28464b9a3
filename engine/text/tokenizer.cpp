#include "engine/text/tokenizer.h"

#include "models/base/files.h"
#include "models/base/text.h"

#include <algorithm>
#include <charconv>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>
#include <set>
#include <string_view>
#include <unordered_map>

namespace celloom::engine {
namespace {

constexpr std::uint64_t kMaxModelBytes = 256ull << 20;
constexpr std::int64_t kFixedPieces = 3 + 256; // <unk>, <s>, </s> and the bytes
constexpr std::string_view kReplacement = "\xEF\xBF\xBD"; // U+FFFD

class SentencePieceTokenizer : public Tokenizer {
public:
    Status read(const std::filesystem::path& model) {
        CELLOOM_TRY(bytes, readFile(model, kMaxModelBytes));
        if (const auto status = m_processor.LoadFromSerializedProto(bytes); !status.ok())
            return fail("is no SentencePiece model.", "Choose a tokenizer.model file.", model.string());
        return {};
    }
    std::vector<std::int64_t> encode(const std::string& text) const override {
        std::vector<int> ids;
        const auto status = m_processor.Encode(text, &ids);
        CELLOOM_CHECK(status.ok()); // the model is loaded, and any bytes can be encoded
        return {ids.begin(), ids.end()};
    }
    std::string decode(const std::vector<std::int64_t>& ids) const override {
        std::vector<int> known;
        known.reserve(ids.size());
        for (const std::int64_t id : ids) {
            CELLOOM_CHECK(id >= 0 && id < vocabSize());
            known.push_back(static_cast<int>(id));
        }
        std::string text;
        CELLOOM_CHECK(m_processor.Decode(known, &text).ok());
        return text;
    }
    std::string piece(std::int64_t id) const override {
        CELLOOM_CHECK(id >= 0 && id < vocabSize());
        return m_processor.IdToPiece(static_cast<int>(id));
    }
    bool isByte(std::int64_t id) const override {
        CELLOOM_CHECK(id >= 0 && id < vocabSize());
        return m_processor.IsByte(static_cast<int>(id));
    }
    int vocabSize() const override { return m_processor.GetPieceSize(); }
    std::int64_t bos() const override { return m_processor.bos_id(); }
    std::int64_t eos() const override { return m_processor.eos_id(); }
    std::int64_t pad() const override { return m_processor.pad_id(); }

private:
    sentencepiece::SentencePieceProcessor m_processor;
};

/// The lines of the texts, one by one, as SentencePiece's trainer pulls them. Line feeds become byte pieces, so that no piece
/// spans two paragraphs.
class LineIterator : public sentencepiece::SentenceIterator {
public:
    explicit LineIterator(const std::vector<std::string>& texts) : m_texts(texts) { Next(); }
    bool done() const override { return m_done; }
    const std::string& value() const override { return m_line; }
    sentencepiece::util::Status status() const override { return {}; }
    void Next() override {
        for (m_line.clear(); m_line.empty();) {
            if (m_text == m_texts.size()) {
                m_done = true;
                return;
            }
            const std::string& text = m_texts[m_text];
            const std::size_t end = std::min(text.find('\n', m_at), text.size());
            m_line = text.substr(m_at, end - m_at);
            m_at = end + 1;
            if (m_at >= text.size()) {
                ++m_text;
                m_at = 0;
            }
        }
    }

private:
    const std::vector<std::string>& m_texts;
    std::size_t m_text = 0, m_at = 0;
    std::string m_line;
    bool m_done = false;
};

/// The number after the last `mark` of a text; 0 where there is none.
std::int64_t numberAfter(const std::string& text, std::string_view mark) {
    const std::size_t at = text.rfind(mark);
    std::int64_t number = 0;
    if (at != std::string::npos) std::from_chars(text.data() + at + mark.size(), text.data() + text.size(), number);
    return number;
}

/// Symbols as SentencePiece's trainer takes them: one line of CSV.
Result<std::string> symbolList(const std::vector<std::string>& symbols, const char* field, std::set<std::string>& seen) {
    std::string out;
    for (const std::string& symbol : symbols) {
        if (symbol.empty() || symbol.find_first_of(",\"\r\n \t") != std::string::npos || !isUtf8(symbol))
            return fail(inQuotes(symbol) + " cannot be a piece.", "Symbols have no spaces, commas, quotes or line breaks.", field);
        if (!seen.insert(symbol).second || symbol == "<unk>" || symbol == "<s>" || symbol == "</s>")
            return fail(inQuotes(symbol) + " is a piece already.", "Name each symbol once.", field);
        out += (out.empty() ? "" : ",") + symbol;
    }
    return out;
}

/// SentencePiece speaks to its programmers: "./src/trainer_interface.cc(580) [(condition)] Vocabulary size is smaller than required_chars.
/// 500 vs 1654. …", or "… Please set it to a value <= 13450."
Error trainingError(const TokenizerTraining& training, const std::string& said) {
    const std::string asked = "a vocabulary of " + std::to_string(training.vocabSize) + " pieces is too ";
    const auto fixed = kFixedPieces + std::ssize(training.controlSymbols) + std::ssize(training.userSymbols);
    if (const std::int64_t least = numberAfter(said, " vs "); said.find("required_chars") != std::string::npos && least > fixed)
        return {asked + "small for these texts: they have " + std::to_string(least - fixed) + " different characters at coverage " +
                    numberText(training.characterCoverage) + ", and " + std::to_string(fixed) + " pieces stand for marks and single bytes.",
                "Raise tokenizer.vocab_size to " + std::to_string(least) + " or more, or lower tokenizer.character_coverage.", "tokenizer.vocab_size"};
    if (const std::int64_t most = numberAfter(said, "<= "); most > 0)
        return {asked + "large for these texts: they give at most " + std::to_string(most) + ".",
                "Lower tokenizer.vocab_size to " + std::to_string(most) + " or less, or give more text.", "tokenizer.vocab_size"};
    const std::size_t bracket = said.rfind("] ");
    return {"no tokenizer of " + std::to_string(training.vocabSize) + " pieces can be trained on these texts" +
                (bracket == std::string::npos ? "" : " (" + said.substr(bracket + 2) + ")") + ".",
            "Choose another tokenizer.vocab_size, or give more text.", "tokenizer.vocab_size"};
}

} // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::load(const std::filesystem::path& model) {
    auto tokenizer = std::make_unique<SentencePieceTokenizer>();
    CELLOOM_TRY_STATUS(tokenizer->read(model));
    return tokenizer;
}

Status Tokenizer::train(const TokenizerTraining& training, const std::filesystem::path& target) {
    if (training.texts.empty()) return fail("there is no text to train a tokenizer on.", "Choose text files for training.", "tokenizer");
    std::set<std::string> seen;
    CELLOOM_TRY(controls, symbolList(training.controlSymbols, "tokenizer.control_symbols", seen));
    CELLOOM_TRY(whole, symbolList(training.userSymbols, "tokenizer.user_symbols", seen));
    const std::unordered_map<std::string, std::string> options = {
        {"control_symbols", controls},
        {"user_defined_symbols", whole},
        {"model_type", training.modelType},
        {"vocab_size", std::to_string(training.vocabSize)},
        {"character_coverage", std::to_string(training.characterCoverage)},
        {"num_threads", std::to_string(training.threads)},
        {"byte_fallback", "true"},
        {"split_digits", "true"},
        {"allow_whitespace_only_pieces", "true"},
        {"normalization_rule_name", "identity"},
        {"remove_extra_whitespaces", "false"},
        {"add_dummy_prefix", "false"},
        {"max_sentence_length", "1000000"}, // longer lines would be left out without a word
        {"shuffle_input_sentence", "false"},
        {"unk_id", "0"}, {"bos_id", "1"}, {"eos_id", "2"}, {"pad_id", "-1"},
        {"minloglevel", "2"},
    };
    LineIterator lines(training.texts);
    std::string model;
    const auto status = sentencepiece::SentencePieceTrainer::Train(options, &lines, &model);
    if (!status.ok()) return tl::unexpected(trainingError(training, status.message()));
    return writeFileAtomically(target, model);
}

std::string StreamDecoder::push(std::int64_t id) {
    m_ids.push_back(id);
    std::string text = m_tokenizer.decode(m_ids);
    // At most the last three bytes can belong to a character that is still to be completed.
    for (std::size_t back = 0; back < 3 && back < m_ids.size() && m_tokenizer.isByte(m_ids[m_ids.size() - 1 - back]); ++back) {
        if (!text.ends_with(kReplacement)) break;
        text.resize(text.size() - kReplacement.size());
    }
    return show(std::move(text));
}

std::string StreamDecoder::finish() { return show(m_tokenizer.decode(m_ids)); }

std::string StreamDecoder::show(std::string text) {
    CELLOOM_CHECK(text.starts_with(m_shown)); // what was shown stays true
    std::string delta = text.substr(m_shown.size());
    m_shown = std::move(text);
    return delta;
}

} // namespace celloom::engine
