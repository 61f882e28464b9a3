#include "engine/text/tokenizer.h"

#include "models/base/files.h"
#include "models/base/text.h"
#include "models/graph/json_text.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace celloom::engine {
namespace {

constexpr std::uint64_t kMaxModelBytes = 256ull << 20;
constexpr std::int64_t kFixedPieces = 3 + 256; // <unk>, <s>, </s> and the bytes
constexpr std::string_view kReplacement = "\xEF\xBF\xBD"; // U+FFFD

using Processor = sentencepiece::SentencePieceProcessor;

/// A token that a file beside the model adds, or gives another name.
struct AddedToken {
    std::string text;
    bool isSpecial = true;
};

constexpr std::uint64_t kMaxConfigBytes = 64ull << 20;
constexpr std::int64_t kMaxAdded = 1 << 16; // ids beyond the model's own pieces

/// tokenizer_config.json: {"added_tokens_decoder": {"92543": {"content": "<|im_start|>", "special": true}}}
Status readAddedTokens(const std::filesystem::path& path, std::map<std::int64_t, AddedToken>& out) {
    if (!std::filesystem::exists(path)) return {};
    CELLOOM_TRY(text, readFile(path, kMaxConfigBytes));
    CELLOOM_TRY(config, graph::parseJson(text, path.string()));
    const bool isConfig = path.filename() == "tokenizer_config.json";
    if (!config.is_object()) return fail("is no JSON object.", {}, path.string());
    if (isConfig && !config.contains("added_tokens_decoder")) return {};
    const auto& table = isConfig ? config["added_tokens_decoder"] : config;
    if (!table.is_object()) return fail("has an added_tokens_decoder that is no object.", {}, path.string());
    for (const auto& [key, value] : table.items()) { // added_tokens.json: {"<|im_start|>": 92543}
        std::int64_t id = -1;
        const bool isEntry = isConfig ? readNumber(key, id) && value.is_object() && value.contains("content") && value["content"].is_string()
                                      : value.is_number_integer();
        if (!isConfig && isEntry) id = value.get<std::int64_t>();
        if (!isEntry || id < 0) return fail("has an added token " + inQuotes(key) + " that is not understood.", {}, path.string());
        if (!isConfig)
            out.try_emplace(id, AddedToken{key, true});
        else
            out[id] = {value["content"].get<std::string>(), !value.contains("special") || value["special"] == true};
    }
    return {};
}

/// "<|…|>", "<name>", "[UNUSED_TOKEN_…]": the shapes of names that stand for something else than text.
bool looksSpecial(std::string_view name) {
    if (name.size() < 3) return false;
    return (name.starts_with('<') && name.ends_with('>')) || (name.starts_with("[UNUSED_TOKEN_") && name.ends_with(']'));
}

/// Of such names, those that are marks whatever kind of piece a file says they are.
bool isKnownMark(std::string_view name) {
    return (name.starts_with("<|") && name.ends_with("|>")) || name.starts_with("<reserved_") || name.starts_with("[UNUSED_TOKEN_") ||
           name == "<eoh>" || name == "<eoa>";
}

std::size_t firstCharacter(std::string_view text) {
    std::size_t length = 1;
    while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) ++length;
    return length;
}

class SentencePieceTokenizer : public Tokenizer {
public:
    Status read(const std::filesystem::path& model) {
        CELLOOM_TRY(bytes, readFile(model, kMaxModelBytes));
        // Protobuf messages that follow one another are merged: field 3 (normalizer_spec) with field 3 (add_dummy_prefix) = false.
        const std::string withoutPrefix = bytes + std::string("\x1a\x02\x18\x00", 4);
        if (!m_processor.LoadFromSerializedProto(bytes).ok() || !m_continuing.LoadFromSerializedProto(withoutPrefix).ok())
            return fail("is no SentencePiece model.", "Choose a tokenizer.model file.", model.string());
        CELLOOM_TRY_STATUS(readAddedTokens(model.parent_path() / "tokenizer_config.json", m_added));
        CELLOOM_TRY_STATUS(readAddedTokens(model.parent_path() / "added_tokens.json", m_added));
        m_size = m_processor.GetPieceSize();
        if (!m_added.empty() && m_added.rbegin()->first >= m_size + kMaxAdded)
            return fail("adds the token " + std::to_string(m_added.rbegin()->first) + " to a tokenizer of " + std::to_string(m_size) + " pieces.",
                        "Is it the tokenizer_config.json of another tokenizer?", model.string());
        if (!m_added.empty()) m_size = std::max<std::int64_t>(m_size, m_added.rbegin()->first + 1);
        collectSpecials();
        return {};
    }
    std::vector<std::int64_t> encode(const std::string& text) const override { return encodeWith(m_processor, text); }
    std::vector<std::int64_t> encodePlain(const std::string& text, bool isContinuation) const override {
        std::vector<std::int64_t> ids = encodeWith(isContinuation ? m_continuing : m_processor, text);
        return holdsSpecial(ids) ? encodeInParts(text, isContinuation) : ids;
    }
    /// Pieces of the model are joined by it; added tokens stand between them, special ones without text.
    std::string decode(const std::vector<std::int64_t>& ids) const override {
        std::string text;
        std::vector<int> run;
        bool isFirst = true;
        const auto flush = [&] {
            std::string part;
            CELLOOM_CHECK((isFirst ? m_processor : m_continuing).Decode(run, &part).ok());
            isFirst = isFirst && run.empty();
            text += part;
            run.clear();
        };
        for (const std::int64_t id : ids) {
            CELLOOM_CHECK(id >= 0 && id < m_size);
            const auto added = m_added.find(id);
            if (added == m_added.end()) {
                if (id < m_processor.GetPieceSize()) run.push_back(static_cast<int>(id));
                continue;
            }
            flush();
            if (!added->second.isSpecial) text += added->second.text;
        }
        flush();
        return text;
    }
    std::string piece(std::int64_t id) const override {
        CELLOOM_CHECK(id >= 0 && id < m_size);
        if (const auto added = m_added.find(id); added != m_added.end()) return added->second.text;
        return id < m_processor.GetPieceSize() ? m_processor.IdToPiece(static_cast<int>(id)) : std::string();
    }
    bool isByte(std::int64_t id) const override {
        CELLOOM_CHECK(id >= 0 && id < m_size);
        return id < m_processor.GetPieceSize() && !m_added.contains(id) && m_processor.IsByte(static_cast<int>(id));
    }
    int vocabSize() const override { return static_cast<int>(m_size); }
    std::int64_t bos() const override { return m_processor.bos_id(); }
    std::int64_t eos() const override { return m_processor.eos_id(); }
    std::int64_t pad() const override { return m_processor.pad_id(); }
    std::int64_t specialId(const std::string& name) const override {
        const auto found = m_specialByName.find(name);
        return found == m_specialByName.end() ? -1 : found->second;
    }
    bool isSpecial(std::int64_t id) const override { return m_specials.contains(id); }

private:
    void collectSpecials() {
        for (int id = 0; id < m_processor.GetPieceSize(); ++id) {
            const std::string& name = m_processor.IdToPiece(id);
            const bool isControl = m_processor.IsControl(id) || m_processor.IsUnknown(id);
            // SentencePiece scores user-defined pieces 0, learned ones by their rank or likelihood.
            const bool isDefined = looksSpecial(name) && !m_processor.IsByte(id) && (m_processor.GetScore(id) == 0 || isKnownMark(name));
            if (isControl || isDefined) addSpecial(name, id);
        }
        for (const auto& [id, token] : m_added)
            if (token.isSpecial) addSpecial(token.text, id);
    }
    void addSpecial(const std::string& name, std::int64_t id) {
        m_specials.insert(id);
        m_specialByName[name] = id; // an added token's name goes before a piece's
    }
    bool holdsSpecial(const std::vector<std::int64_t>& ids) const {
        return std::any_of(ids.begin(), ids.end(), [&](std::int64_t id) { return isSpecial(id) && id != m_processor.unk_id(); });
    }
    static std::vector<std::int64_t> encodeWith(const Processor& processor, const std::string& text) {
        std::vector<int> ids;
        const auto status = processor.Encode(text, &ids);
        CELLOOM_CHECK(status.ok()); // the model is loaded, and any bytes can be encoded
        return {ids.begin(), ids.end()};
    }
    /// The text cut behind the first character of each special token's name, so that no name stands whole in a part.
    std::vector<std::int64_t> encodeInParts(const std::string& text, bool isContinuation) const {
        std::vector<std::int64_t> out;
        const auto add = [&](const std::string& part) {
            std::vector<std::int64_t> ids = encodeWith(isContinuation ? m_continuing : m_processor, part);
            if (holdsSpecial(ids)) { // a name appeared by normalisation ("＜eoh＞"): character by character
                ids.clear();
                for (std::size_t at = 0, length = 0; at < part.size(); at += length) {
                    length = firstCharacter(std::string_view(part).substr(at));
                    const auto one = encodeWith(m_continuing, part.substr(at, length));
                    ids.insert(ids.end(), one.begin(), one.end());
                }
            }
            out.insert(out.end(), ids.begin(), ids.end());
            isContinuation = true;
        };
        std::size_t from = 0;
        for (std::size_t at = 0; at < text.size(); ++at) {
            const std::string_view rest = std::string_view(text).substr(at);
            const bool isName = std::any_of(m_specialByName.begin(), m_specialByName.end(),
                                            [&](const auto& special) { return !special.first.empty() && rest.starts_with(special.first); });
            if (!isName) continue;
            const std::size_t cut = at + firstCharacter(rest);
            add(text.substr(from, cut - from));
            from = cut;
            at = cut - 1;
        }
        if (from < text.size()) add(text.substr(from));
        return out;
    }

    Processor m_processor, m_continuing; // the second puts nothing in front of a text
    std::map<std::int64_t, AddedToken> m_added;
    std::unordered_set<std::int64_t> m_specials;
    std::unordered_map<std::string, std::int64_t> m_specialByName;
    std::int64_t m_size = 0;
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
    if (const std::int64_t most = numberAfter(said, "set it to a value <= "); most > 0)
        return {asked + "large for these texts: they give at most " + std::to_string(most) + ".",
                "Lower tokenizer.vocab_size to " + std::to_string(most) + " or less, or give more text.", "tokenizer.vocab_size"};
    const std::size_t bracket = said.rfind("] ");
    return {"no tokenizer of " + std::to_string(training.vocabSize) + " pieces can be trained on these texts" +
                (bracket == std::string::npos ? "" : " (" + said.substr(bracket + 2) + ")") + ".",
            "Choose another tokenizer.vocab_size, or give more text.", "tokenizer.vocab_size"};
}

} // namespace

std::vector<std::int64_t> Tokenizer::encodePlain(const std::string& text, bool) const { return encode(text); }

std::vector<std::filesystem::path> tokenizerFiles(const std::filesystem::path& model) {
    std::vector<std::filesystem::path> out{model};
    std::error_code error;
    for (const char* name : {"tokenizer_config.json", "added_tokens.json", "special_tokens_map.json", "chat_template.json"})
        if (const auto path = model.parent_path() / name; std::filesystem::is_regular_file(path, error)) out.push_back(path);
    return out;
}

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

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, const std::vector<std::int64_t>& before) : m_tokenizer(tokenizer) {
    // The last ids that make whole characters are enough: four bytes are the longest character.
    for (std::size_t count = 1; count <= std::min<std::size_t>(4, before.size()); ++count) {
        const std::vector<std::int64_t> tail(before.end() - static_cast<std::ptrdiff_t>(count), before.end());
        if (tail[0] < 0 || tail[0] >= tokenizer.vocabSize()) return;
        std::string text = tokenizer.decode(tail);
        if (text.empty() || text.find(kReplacement) != std::string::npos) continue;
        m_ids = tail;
        m_shown = std::move(text);
        return;
    }
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
