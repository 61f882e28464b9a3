#include "engine/data/chat_dataset.h"

#include "engine/data/packed.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace celloom::engine {
namespace {

constexpr std::int32_t kIgnored = -100;
constexpr std::size_t kOpenRows = 64; // rows that a conversation may still be packed into

void erase(ChatTokens& tokens, std::size_t first, std::size_t count) {
    const auto from = static_cast<std::ptrdiff_t>(first), end = static_cast<std::ptrdiff_t>(first + count);
    tokens.ids.erase(tokens.ids.begin() + from, tokens.ids.begin() + end);
    tokens.labels.erase(tokens.labels.begin() + from, tokens.labels.begin() + end);
    tokens.parts.erase(tokens.parts.begin() + from, tokens.parts.begin() + end);
}

/// The messages without the round after the system message; empty where it is the only one.
std::vector<ChatMessage> withoutOldestRound(std::vector<ChatMessage> messages) {
    const std::ptrdiff_t first = messages[0].role == ChatRole::System ? 1 : 0;
    if (static_cast<std::ptrdiff_t>(messages.size()) - first <= 2) return {};
    messages.erase(messages.begin() + first, messages.begin() + first + 2);
    return messages;
}

/// Takes tokens out of the last run of `part`, from its start, until `length` is reached or the run is gone.
void cutPart(ChatTokens& tokens, TokenPart part, std::size_t length) {
    if (tokens.ids.size() <= length) return;
    std::size_t end = tokens.parts.size();
    while (end > 0 && tokens.parts[end - 1] != part) --end;
    std::size_t first = end;
    while (first > 0 && tokens.parts[first - 1] == part) --first;
    erase(tokens, first, std::min(end - first, tokens.ids.size() - length));
}

bool hasLabel(const ChatTokens& tokens) { // one that something stands before
    return std::any_of(tokens.labels.begin() + std::min<std::ptrdiff_t>(1, std::ssize(tokens.labels)), tokens.labels.end(),
                       [](std::int64_t label) { return label != kIgnored; });
}

void countLength(std::vector<ChatStatistics::Bin>& bins, std::int64_t length) {
    std::size_t at = 0;
    for (std::int64_t upTo = 8; upTo < length; upTo *= 2) ++at;
    while (bins.size() <= at) bins.push_back({std::int64_t(8) << bins.size(), 0});
    ++bins[at].count;
}

} // namespace

std::optional<ChatTokens> shortened(const std::vector<ChatMessage>& messages, const ChatFormat& format, std::int64_t limit, Truncation policy,
                                    bool& wasShortened, std::int64_t& fullLength) {
    const auto length = static_cast<std::size_t>(limit);
    ChatTokens tokens = format.conversation(messages);
    fullLength = std::ssize(tokens.ids);
    wasShortened = tokens.ids.size() > length;
    if (!wasShortened) return tokens;
    if (policy == Truncation::Drop) return {};
    if (policy == Truncation::CutStart) {
        erase(tokens, 0, tokens.ids.size() - length);
        return tokens;
    }
    if (policy == Truncation::KeepAnswer) {
        for (auto fewer = withoutOldestRound(messages); tokens.ids.size() > length && !fewer.empty(); fewer = withoutOldestRound(fewer))
            tokens = format.conversation(fewer);
        while (tokens.ids.size() > length && tokens.parts.back() == TokenPart::Mark) erase(tokens, tokens.ids.size() - 1, 1); // parts nothing
        cutPart(tokens, TokenPart::User, length);
        cutPart(tokens, TokenPart::System, length);
    }
    if (tokens.ids.size() > length) erase(tokens, length, tokens.ids.size() - length);
    return tokens;
}

Result<std::unique_ptr<ChatDataset>> ChatDataset::create(const std::vector<Conversation>& conversations, const ChatFormat& format,
                                                         const ChatDataOptions& options, const std::function<bool()>& goOn) {
    CELLOOM_CHECK(options.sequenceLength >= 2);
    auto out = std::make_unique<ChatDataset>();
    out->m_padId = options.padId;
    ChatStatistics& count = out->m_statistics;
    for (std::size_t i = 0; i < conversations.size(); ++i) {
        if (goOn && !goOn()) return fail(kStoppedMessage);
        bool wasShortened = false;
        std::int64_t fullLength = 0;
        auto tokens = shortened(conversations[i].messages, format, options.sequenceLength, options.truncation, wasShortened, fullLength);
        ++count.conversations;
        count.longest = std::max(count.longest, fullLength);
        countLength(count.lengths, fullLength);
        if (!tokens) {
            ++count.dropped;
            continue;
        }
        count.truncated += wasShortened;
        if (!options.masksPrompt) tokens->labels = tokens->ids;
        const bool isUntrainable = !hasLabel(*tokens);
        count.untrainable += isUntrainable;
        if (isUntrainable && !options.keepsUntrainable) continue;
        out->add(*tokens, static_cast<std::int64_t>(i));
    }
    if (options.packs) {
        out->packRows(options.sequenceLength);
    } else {
        for (std::size_t i = 0; i < out->m_samples.size(); ++i) out->m_rows.push_back({i});
    }
    for (const auto& samples : out->m_rows) {
        out->m_sources.emplace_back();
        for (const std::size_t sample : samples) out->m_sources.back().push_back(out->m_sampleSources[sample]);
    }
    count.rows = out->size();
    return out;
}

void ChatDataset::add(const ChatTokens& tokens, std::int64_t source) {
    m_samples.push_back({m_ids.size(), tokens.ids.size()});
    m_sampleSources.push_back(source);
    for (std::size_t i = 0; i < tokens.ids.size(); ++i) {
        m_ids.push_back(static_cast<std::int32_t>(tokens.ids[i]));
        m_labels.push_back(i == 0 ? kIgnored : static_cast<std::int32_t>(tokens.labels[i])); // nothing stands before the first
        m_statistics.trainable += m_labels.back() != kIgnored;
    }
    m_statistics.tokens += std::ssize(tokens.ids);
}

/// First fit: a conversation goes into the first of the newest rows that has room for it. The same conversations give the same rows.
void ChatDataset::packRows(std::int64_t sequenceLength) {
    const auto length = static_cast<std::size_t>(sequenceLength);
    std::vector<std::size_t> used;
    for (std::size_t sample = 0; sample < m_samples.size(); ++sample) {
        const std::size_t count = m_samples[sample].count;
        std::size_t row = m_rows.size() > kOpenRows ? m_rows.size() - kOpenRows : 0;
        while (row < m_rows.size() && used[row] + count > length) ++row;
        if (row == m_rows.size()) {
            m_rows.emplace_back();
            used.push_back(0);
        }
        m_rows[row].push_back(sample);
        used[row] += count;
    }
}

std::int64_t ChatDataset::lengthOf(std::int64_t index) const {
    std::size_t count = 0;
    for (const std::size_t sample : m_rows[static_cast<std::size_t>(index)]) count += m_samples[sample].count;
    return static_cast<std::int64_t>(count);
}

Row ChatDataset::get(std::int64_t index) const {
    CELLOOM_CHECK(index >= 0 && index < size());
    const auto& samples = m_rows[static_cast<std::size_t>(index)];
    const std::int64_t length = lengthOf(index);
    Row row{at::empty({length}, at::kLong), at::empty({length}, at::kLong), {}, {}};
    if (samples.size() > 1) {
        row.segments = at::empty({length}, at::kLong);
        row.positions = at::empty({length}, at::kLong);
    }
    std::int64_t* ids = row.inputIds.data_ptr<std::int64_t>();
    std::int64_t* labels = row.labels.data_ptr<std::int64_t>();
    std::size_t at = 0;
    for (std::size_t segment = 0; segment < samples.size(); ++segment) {
        const Span& span = m_samples[samples[segment]];
        for (std::size_t i = 0; i < span.count; ++i, ++at) {
            ids[at] = m_ids[span.first + i];
            labels[at] = m_labels[span.first + i];
            if (samples.size() == 1) continue;
            row.segments.data_ptr<std::int64_t>()[at] = static_cast<std::int64_t>(segment);
            row.positions.data_ptr<std::int64_t>()[at] = static_cast<std::int64_t>(i);
        }
    }
    return row;
}

} // namespace celloom::engine
