#include "engine/generate/perplexity.h"

#include "engine/generate/key_value_cache.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/tensor.h>
#include <algorithm>
#include <cmath>

namespace celloom::engine {
namespace {

constexpr std::int64_t kPiece = 256; // tokens whose logits exist at once

/// Losses summed of ids[from..] given all before them in the window. `from` >= 1.
Result<double> windowLoss(Network& network, const at::Tensor& ids, std::int64_t from, bool useCache) {
    const std::int64_t length = ids.size(0), piece = useCache ? kPiece : length;
    KeyValueCache cache(1);
    double sum = 0;
    for (std::int64_t begin = 0; begin + 1 < length; begin += piece) { // the last token predicts nothing
        const std::int64_t end = std::min(begin + piece, length);
        Batch batch;
        batch.inputIds = ids.narrow(0, begin, end - begin).unsqueeze(0);
        CELLOOM_TRY(outputs, network.forward(batch, {.cache = useCache ? &cache : nullptr}));
        const auto logits = outputs.find("logits");
        if (logits == outputs.end()) return fail("this model has no output \"logits\".", "Only language models have a perplexity.");
        const std::int64_t first = std::max(begin, from - 1), last = std::min(end, length - 1); // positions whose next token counts
        if (first >= last) continue;
        const at::Tensor losses = at::cross_entropy_loss(logits->second[0].narrow(0, first - begin, last - first),
                                                         ids.narrow(0, first + 1, last - first).to(logits->second.device()), {},
                                                         at::Reduction::None);
        sum += losses.sum(at::kDouble).item<double>(); // sync
    }
    return sum;
}

} // namespace

double PerplexityResult::perplexity() const {
    return std::exp(nll / static_cast<double>(tokens));
}

Result<PerplexityResult> perplexity(Network& network, const std::vector<std::int64_t>& ids, const PerplexityOptions& options) {
    const auto count = static_cast<std::int64_t>(ids.size());
    if (count < 2) return fail("the text has fewer than two tokens.", "A perplexity needs a token and one that follows it.");
    PerplexityResult out;
    out.window = options.window > 0 ? options.window : network.model().hyperInteger("max_positions", 2048);
    out.stride = options.stride > 0 ? options.stride : std::max<std::int64_t>(1, out.window / 2);
    if (out.window < 2) return fail("the window must hold at least two tokens.");
    if (out.stride >= out.window && count > out.window)
        return fail("the stride must be smaller than the window of " + std::to_string(out.window) + " tokens.",
                    "Tokens at the start of a window would have nothing before them.");
    const std::int64_t fixed = KeyValueCache::lengthWithFixedBase(network.model());
    const bool useCache = options.useCache && KeyValueCache::check(network.model()) && (fixed == 0 || out.window <= fixed);
    const at::Tensor all = at::tensor(ids, at::kLong);
    std::int64_t scored = 1; // tokens that are done, the first being given
    for (std::int64_t begin = 0; scored < count; begin += out.stride) {
        const std::int64_t end = std::min(begin + out.window, count);
        CELLOOM_TRY(sum, windowLoss(network, all.narrow(0, begin, end - begin), scored - begin, useCache));
        out.nll += sum;
        out.tokens += end - scored;
        scored = end;
        ++out.windows;
        if (options.onProgress && !options.onProgress(out.tokens)) {
            out.isWhole = scored == count;
            break;
        }
    }
    if (!std::isfinite(out.nll)) return fail("the loss is not finite.", "The model's weights may be damaged, or training diverged.");
    return out;
}

} // namespace celloom::engine
