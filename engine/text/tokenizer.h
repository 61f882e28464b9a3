// SentencePiece: a given tokenizer.model, or one trained on a corpus. Incremental decoding that never shows half a character.
#pragma once

#include "models/base/result.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace celloom::engine {

struct TokenizerTraining {
    std::vector<std::string> texts; // UTF-8
    int vocabSize = 4096;
    std::string modelType = "bpe"; // or "unigram"
    double characterCoverage = 0.9995;
    int threads = 1; // more can change the result
    std::vector<std::string> controlSymbols; // pieces that no text is encoded to: only templates give them ("<eoa>")
    std::vector<std::string> userSymbols;    // pieces that stay whole wherever the text has them ("<|User|>")
};

class Tokenizer {
public:
    /// A SentencePiece file, with the tokens that a tokenizer_config.json (added_tokens_decoder) and an added_tokens.json beside it add to
    /// it, or give other names to.
    static Result<std::unique_ptr<Tokenizer>> load(const std::filesystem::path& model);
    /// Byte fallback, digits split, no normalisation, nothing put in front: what is encoded decodes to itself. The same texts give the
    /// same file. unk 0, bos 1, eos 2, no pad, as Baichuan numbers them.
    static Status train(const TokenizerTraining& training, const std::filesystem::path& target);
    virtual ~Tokenizer() = default;
    virtual std::vector<std::int64_t> encode(const std::string& text) const = 0; // no bos, no eos
    virtual std::string decode(const std::vector<std::int64_t>& ids) const = 0;
    virtual std::string piece(std::int64_t id) const = 0;
    virtual bool isByte(std::int64_t id) const = 0; // a byte-fallback piece, "<0xE4>"
    virtual int vocabSize() const = 0;
    virtual std::int64_t bos() const = 0; // -1 where there is none
    virtual std::int64_t eos() const = 0;
    virtual std::int64_t pad() const = 0;

    // For chat templates, which alone may set special tokens (marks of turns, ends of answers):
    /// The special token of this name ("<|im_start|>"), or -1.
    virtual std::int64_t specialId(const std::string&) const { return -1; }
    virtual bool isSpecial(std::int64_t) const { return false; }
    /// As encode, but the name of a special token inside the text stays text, so that nobody can write a turn into a conversation.
    /// `isContinuation`: the text follows other text, so that nothing (SentencePiece's dummy prefix) is put in front.
    virtual std::vector<std::int64_t> encodePlain(const std::string& text, bool isContinuation = false) const;
};

/// The files that make up a tokenizer: the model, there or not, and what lies beside it and belongs to it.
std::vector<std::filesystem::path> tokenizerFiles(const std::filesystem::path& model);

/// Ids in one by one, text deltas out; bytes of an unfinished character are kept back (cases.md 1).
class StreamDecoder {
public:
    /// `before`: the ids that the text follows. They are not shown, but keep the space in front of a first word, which a tokenizer that
    /// begins texts with a space would otherwise take for its own.
    explicit StreamDecoder(const Tokenizer& tokenizer, const std::vector<std::int64_t>& before = {});
    std::string push(std::int64_t id);
    std::string finish();

private:
    std::string show(std::string text);

    const Tokenizer& m_tokenizer;
    std::vector<std::int64_t> m_ids;
    std::string m_shown;
};

} // namespace celloom::engine
