// Conversations as training rows: templates applied, labels masked, long ones shortened by a policy, short ones packed.
#pragma once

#include "engine/data/dataset.h"
#include "engine/data/instructions.h"

#include <functional>

namespace celloom::engine {

/// What happens to a conversation that is longer than the sequence length.
enum class Truncation {
    KeepAnswer, // its oldest rounds go, then the beginning of its last question; the end of an answer only where nothing else is left
    CutStart,   // its first tokens go
    CutEnd,     // its last tokens go, and with them perhaps the answer
    Drop        // it is left out
};

struct ChatDataOptions {
    std::int64_t sequenceLength = 256;
    Truncation truncation = Truncation::KeepAnswer;
    bool masksPrompt = true;       // only answers and their ends have labels; else every token has
    bool keepsUntrainable = false; // conversations left without any label stay in the data and teach nothing
    bool packs = false;            // several conversations a row, each attending to itself alone
    std::int64_t padId = 0;
};

/// What became of the conversations.
struct ChatStatistics {
    std::int64_t conversations = 0; // read
    std::int64_t truncated = 0;     // shortened
    std::int64_t dropped = 0;       // left out because they are too long
    std::int64_t untrainable = 0;   // without a label that counts; kept or left out as chosen
    std::int64_t rows = 0, tokens = 0, trainable = 0; // of what is left: rows, their tokens, labels that count
    std::int64_t longest = 0;                         // tokens before shortening
    struct Bin {
        std::int64_t upTo = 0, count = 0; // conversations of at most so many tokens (and more than the bin before), before shortening
    };
    std::vector<Bin> lengths; // upTo: powers of two
};

/// Rows of int64 [T], T at most the sequence length; not filled up (see collate). No token is added that the template did not give.
class ChatDataset : public Dataset {
public:
    /// `goOn` is asked before each conversation; false ends the work with kStoppedMessage.
    static Result<std::unique_ptr<ChatDataset>> create(const std::vector<Conversation>& conversations, const ChatFormat& format,
                                                       const ChatDataOptions& options, const std::function<bool()>& goOn = {});
    std::int64_t size() const override { return static_cast<std::int64_t>(m_rows.size()); }
    Row get(std::int64_t index) const override;
    std::int64_t lengthOf(std::int64_t index) const override;
    std::int64_t padId() const override { return m_padId; }
    const ChatStatistics& statistics() const { return m_statistics; }
    /// Numbers of the conversations in a row, in the order of `conversations`.
    const std::vector<std::int64_t>& conversationsOf(std::int64_t index) const { return m_sources[static_cast<std::size_t>(index)]; }

private:
    void add(const ChatTokens& tokens, std::int64_t source);
    void packRows(std::int64_t sequenceLength);

    struct Span {
        std::size_t first = 0, count = 0; // of m_ids and m_labels
    };
    std::vector<std::int32_t> m_ids, m_labels;
    std::vector<Span> m_samples;
    std::vector<std::int64_t> m_sampleSources;
    std::vector<std::vector<std::size_t>> m_rows; // samples of each row
    std::vector<std::vector<std::int64_t>> m_sources;
    std::int64_t m_padId = 0;
    ChatStatistics m_statistics;
};

/// Tokens of one conversation, no more than `length`; nothing where the policy leaves it out. `wasShortened` is told.
std::optional<ChatTokens> shortened(const std::vector<ChatMessage>& messages, const ChatFormat& format, std::int64_t length, Truncation policy,
                                    bool& wasShortened, std::int64_t& fullLength);

} // namespace celloom::engine
