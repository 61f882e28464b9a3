#include "engine/generate/generate.h"

#include "engine/generate/key_value_cache.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <algorithm>
#include <optional>

namespace celloom::engine {
namespace {

using Ids = std::vector<std::int64_t>;

/// One text while it grows.
struct Row {
    Ids ids; // prompt and new tokens
    std::size_t computed = 0; // of ids, by the cache
    std::int64_t context = 0; // 0: no limit
    Sampler sampler;
    TokenResult result;
    bool isActive = true;
};

/// `texts` side by side, padded on the left. ids and mask [B,T], lengths [B].
Batch leftPadded(const std::vector<std::span<const std::int64_t>>& texts) {
    std::size_t longest = 0;
    for (const auto& text : texts) longest = std::max(longest, text.size());
    const auto rows = static_cast<std::int64_t>(texts.size()), length = static_cast<std::int64_t>(longest);
    Batch batch;
    batch.inputIds = at::zeros({rows, length}, at::kLong);
    batch.attentionMask = at::zeros({rows, length}, at::kLong);
    batch.positions = at::zeros({rows, length}, at::kLong);
    Ids lengths;
    for (std::int64_t row = 0; row < rows; ++row) {
        const auto& text = texts[static_cast<std::size_t>(row)];
        const auto count = static_cast<std::int64_t>(text.size());
        std::copy(text.begin(), text.end(), batch.inputIds.mutable_data_ptr<std::int64_t>() + (row + 1) * length - count);
        batch.attentionMask[row].narrow(0, length - count, count).fill_(1);
        batch.positions[row].narrow(0, length - count, count).copy_(at::arange(count));
        lengths.push_back(count);
    }
    batch.lengths = at::tensor(lengths, at::kLong);
    return batch;
}

} // namespace

std::int64_t contextOf(const graph::ExpandedModel& model) {
    for (const graph::CellInstance& cell : model.cells)
        if ((cell.type == "RotaryEmbedding" && cell.text("scaling") == "dynamic") || (cell.type == "Attention" && cell.text("position") == "alibi"))
            return 0;
    return model.hyperInteger("max_positions", 2048);
}

Status checkRequest(const TokenRequest& request, const graph::ExpandedModel& model) {
    CELLOOM_TRY_STATUS(checkSampling(request.sampling));
    if (request.prompt.empty()) return fail("the prompt is empty.", "Give at least one token, for example the one that begins a text.");
    const std::int64_t context = request.sampling.maxContext > 0 ? request.sampling.maxContext : contextOf(model);
    const auto length = static_cast<std::int64_t>(request.prompt.size());
    if (request.sampling.whenFull == WhenFull::Stop && context > 0 && length > context)
        return fail("the prompt has " + std::to_string(length) + " tokens, the context holds " + std::to_string(context) + ".",
                    "Shorten the prompt, or let the context slide.");
    return {};
}

const char* nameOf(Finish finish) {
    switch (finish) {
    case Finish::Length:
        return "length";
    case Finish::StopToken:
        return "stop_token";
    case Finish::StopText:
        return "stop_text";
    case Finish::ContextFull:
        return "context";
    case Finish::Cancelled:
        return "cancelled";
    }
    return "";
}

class TokenGeneration::Generator {
public:
    Generator(Network& network, const std::vector<TokenRequest>& requests, GenerateOptions options)
        : m_network(network), m_options(std::move(options)), m_isCacheable(KeyValueCache::check(network.model()).has_value()),
          m_fixedLength(KeyValueCache::lengthWithFixedBase(network.model())) {
        for (const TokenRequest& request : requests) {
            m_sampling.push_back(request.sampling);
            const std::int64_t context = request.sampling.maxContext > 0 ? request.sampling.maxContext : contextOf(network.model());
            m_rows.push_back({request.prompt, 0, context, Sampler(request.sampling, request.prompt), {}});
        }
        for (std::size_t row = 0; row < m_rows.size(); ++row) {
            m_rows[row].isActive = m_sampling[row].maxNewTokens > 0;
            endIfFull(row);
        }
    }

    Result<bool> advance() {
        if (!dropFinished()) return false;
        if (m_options.isCancelled && m_options.isCancelled()) {
            for (std::size_t row = 0; row < m_rows.size(); ++row) end(row, Finish::Cancelled);
            return false;
        }
        CELLOOM_TRY_STATUS(stepCached());
        CELLOOM_TRY_STATUS(stepAnew());
        return true;
    }
    TokenResult& result(std::size_t request) { return m_rows[request].result; }

private:
    void end(std::size_t row, Finish finish) {
        if (!m_rows[row].isActive) return;
        m_rows[row].isActive = false;
        m_rows[row].result.finish = finish;
    }
    bool isFull(const Row& row) const { return row.context > 0 && static_cast<std::int64_t>(row.ids.size()) > row.context; }
    void endIfFull(std::size_t row) {
        if (isFull(m_rows[row]) && m_sampling[row].whenFull == WhenFull::Stop) end(row, Finish::ContextFull);
    }
    bool canUseCache(const Row& row) const {
        const bool isFixed = m_fixedLength == 0 || static_cast<std::int64_t>(row.ids.size()) <= m_fixedLength;
        return m_options.useCache && m_isCacheable && isFixed && !isFull(row);
    }

    /// Sorts the texts that go on into those the cache serves and the others. False where none goes on.
    bool dropFinished() {
        std::vector<std::size_t> cached;
        Ids kept;
        m_anew.clear();
        if (!m_cache)
            for (std::size_t row = 0; row < m_rows.size(); ++row)
                if (m_rows[row].isActive && canUseCache(m_rows[row])) m_cached.push_back(row);
        for (std::size_t i = 0; i < m_cached.size(); ++i) {
            const Row& row = m_rows[m_cached[i]];
            if (!row.isActive || !canUseCache(row)) continue;
            cached.push_back(m_cached[i]);
            kept.push_back(static_cast<std::int64_t>(i));
        }
        if (m_cache && kept.size() < m_cached.size()) m_cache->keepRows(kept);
        if (!m_cache) m_cache.emplace(static_cast<std::int64_t>(cached.size()));
        m_cached = std::move(cached);
        for (std::size_t row = 0; row < m_rows.size(); ++row)
            if (m_rows[row].isActive && !canUseCache(m_rows[row])) m_anew.push_back(row);
        return !m_cached.empty() || !m_anew.empty();
    }

    /// One token more for each text of the cache; the first time their whole prompts are computed.
    Status stepCached() {
        if (m_cached.empty()) return {};
        std::vector<std::span<const std::int64_t>> texts;
        for (const std::size_t row : m_cached) texts.push_back(std::span<const std::int64_t>(m_rows[row].ids).subspan(m_rows[row].computed));
        Batch batch;
        if (m_cache->length() == 0) {
            batch = leftPadded(texts);
            batch.positions.reset();
            batch.lengths.reset();
        } else {
            Ids last;
            for (const auto& text : texts) last.push_back(text[0]);
            batch.inputIds = at::tensor(last, at::kLong).unsqueeze(1);
        }
        CELLOOM_TRY(scores, forward(batch, &*m_cache));
        for (const std::size_t row : m_cached) m_rows[row].computed = m_rows[row].ids.size();
        return choose(m_cached, scores);
    }

    Status stepAnew() {
        for (std::size_t begin = 0; begin < m_anew.size();) {
            // a cell that looks at other positions without a mask would see the padding: such models get one text at a time
            const std::size_t count = m_isCacheable ? m_anew.size() : 1;
            const std::vector<std::size_t> rows(m_anew.begin() + static_cast<std::ptrdiff_t>(begin),
                                                m_anew.begin() + static_cast<std::ptrdiff_t>(begin + count));
            std::vector<std::span<const std::int64_t>> texts;
            for (const std::size_t row : rows) {
                const std::span<const std::int64_t> ids(m_rows[row].ids);
                texts.push_back(isFull(m_rows[row]) ? ids.last(static_cast<std::size_t>(m_rows[row].context)) : ids);
            }
            CELLOOM_TRY(scores, forward(leftPadded(texts), nullptr));
            CELLOOM_TRY_STATUS(choose(rows, scores));
            begin += count;
        }
        return {};
    }

    /// Scores of the last position: [B,V] float32 on the host.
    Result<at::Tensor> forward(const Batch& batch, KeyValueCache* cache) {
        CELLOOM_TRY(outputs, m_network.forward(batch, {.lastPositionOnly = true, .cache = cache}));
        const auto logits = outputs.find("logits");
        if (logits == outputs.end()) return fail("this model has no output \"logits\".", "Only language models generate text.");
        const at::Tensor last = logits->second.select(1, logits->second.size(1) - 1).to(at::kCPU).contiguous(); // sync
        if (!isFinite(last)) return fail("the model's scores are not finite.", "Its weights may be damaged, or training diverged.");
        return last;
    }

    Status choose(const std::vector<std::size_t>& rows, at::Tensor& scores) {
        const auto width = static_cast<std::size_t>(scores.size(1));
        for (std::size_t i = 0; i < rows.size(); ++i) choose(rows[i], {scores.mutable_data_ptr<float>() + i * width, width});
        return {};
    }

    void choose(std::size_t index, std::span<float> scores) {
        Row& row = m_rows[index];
        const SamplingOptions& sampling = m_sampling[index];
        if (m_options.onScores) m_options.onScores(index, scores);
        NewToken token;
        std::vector<float> untouched;
        if (sampling.alternatives >= 0) untouched.assign(scores.begin(), scores.end());
        token.id = row.sampler.choose(scores);
        if (std::find(sampling.stopTokens.begin(), sampling.stopTokens.end(), token.id) != sampling.stopTokens.end())
            return end(index, Finish::StopToken);
        if (sampling.alternatives >= 0) {
            token.logProbability = logProbability(untouched, token.id);
            token.alternatives = likeliest(untouched, sampling.alternatives);
        }
        row.ids.push_back(token.id);
        row.result.tokens.push_back(token);
        if (m_options.onToken && !m_options.onToken(index, token)) return end(index, Finish::Cancelled);
        if (static_cast<int>(row.result.tokens.size()) >= sampling.maxNewTokens) return end(index, Finish::Length);
        endIfFull(index);
    }

    Network& m_network;
    const GenerateOptions m_options;
    std::vector<SamplingOptions> m_sampling;
    std::vector<Row> m_rows;
    bool m_isCacheable;
    std::int64_t m_fixedLength;
    std::optional<KeyValueCache> m_cache;
    std::vector<std::size_t> m_cached, m_anew; // numbers of the rows that go on; m_cached in the cache's order
};

TokenGeneration::TokenGeneration(std::unique_ptr<Generator> generator) : m_generator(std::move(generator)) {}
TokenGeneration::TokenGeneration(TokenGeneration&&) noexcept = default;
TokenGeneration& TokenGeneration::operator=(TokenGeneration&&) noexcept = default;
TokenGeneration::~TokenGeneration() = default;

Result<TokenGeneration> TokenGeneration::begin(Network& network, const std::vector<TokenRequest>& requests, GenerateOptions options) {
    for (const TokenRequest& request : requests) CELLOOM_TRY_STATUS(checkRequest(request, network.model()));
    return TokenGeneration(std::make_unique<Generator>(network, requests, std::move(options)));
}

Result<bool> TokenGeneration::advance() {
    return m_generator->advance();
}

const TokenResult& TokenGeneration::result(std::size_t request) const {
    return m_generator->result(request);
}

Result<std::vector<TokenResult>> generateTokens(Network& network, const std::vector<TokenRequest>& requests, const GenerateOptions& options) {
    CELLOOM_TRY(generation, TokenGeneration::begin(network, requests, options));
    while (true) {
        CELLOOM_TRY(goesOn, generation.advance());
        if (!goesOn) break;
    }
    std::vector<TokenResult> out;
    for (std::size_t i = 0; i < requests.size(); ++i) out.push_back(generation.result(i));
    return out;
}

Result<std::vector<std::int64_t>> generate(Network& network, const std::vector<std::int64_t>& prompt, const SamplingOptions& options,
                                           const std::function<bool(std::int64_t)>& onToken) {
    GenerateOptions streaming;
    if (onToken) streaming.onToken = [&](std::size_t, const NewToken& token) { return onToken(token.id); };
    CELLOOM_TRY(results, generateTokens(network, {{prompt, options}}, streaming));
    std::vector<std::int64_t> ids;
    for (const NewToken& token : results[0].tokens) ids.push_back(token.id);
    return ids;
}

} // namespace celloom::engine
