#include "models/code/helpers.h"

#include <algorithm>

namespace celloom::code {
namespace {

constexpr const char* kRoundUp = R"(def round_up(x, multiple):
    """The smallest multiple that is not below x."""
    return math.ceil(x / multiple) * multiple
)";

constexpr const char* kAlibiSlopes = R"(def alibi_slopes(heads):
    """A slope for each head (arXiv:2108.12409): a geometric row for a power of two, every other one of twice as many for the rest."""
    n = 2 ** int(math.log2(heads))
    slopes = [2.0 ** (-8.0 / n * (i + 1)) for i in range(n)]
    return slopes + [2.0 ** (-8.0 / (2 * n) * (i + 1)) for i in range(0, 2 * (heads - n), 2)]
)";

// ---- MindSpore ----

constexpr const char* kRmsNormM = R"(class RMSNorm(nn.Cell):
    """x / sqrt(mean(x * x) + eps) * weight, over the last dimension."""

    def __init__(self, dim, eps=1e-06):
        super().__init__()
        self.eps = eps
        self.weight = Parameter(Tensor(np.ones(dim), ms.float32))

    def construct(self, x):
        return x * ops.rsqrt(ops.mean(ops.square(x), -1, True) + self.eps) * self.weight
)";

constexpr const char* kRotaryM = R"(class RotaryEmbedding(nn.Cell):
    """Turns each head's pairs (i, i + head_dim / 2) by position / base ** (2 * i / head_dim)."""

    def __init__(self, num_heads, head_dim, base=10000.0, scaling="none", factor=1.0, max_positions=4096, low_freq_factor=1.0, high_freq_factor=4.0):
        super().__init__()
        self.num_heads, self.head_dim, self.base = num_heads, head_dim, base
        self.scaling, self.factor, self.max_positions = scaling, factor, max_positions
        self.low_freq_factor, self.high_freq_factor = low_freq_factor, high_freq_factor

    def angles(self, length):
        base = self.base
        if self.scaling == "dynamic" and length > self.max_positions:
            base = base * (self.factor * length / self.max_positions - (self.factor - 1)) ** (self.head_dim / (self.head_dim - 2))
        exponents = np.arange(0, self.head_dim, 2, dtype=np.float32) / np.float32(self.head_dim)
        inverse = np.float32(1) / np.power(np.float32(base), exponents)
        if self.scaling == "llama3":
            waves = inverse * np.float32(self.max_positions / (2 * math.pi))
            kept = np.clip((waves - self.low_freq_factor) / (self.high_freq_factor - self.low_freq_factor), 0, 1).astype(np.float32)
            inverse = inverse * kept + inverse / np.float32(self.factor) * (1 - kept)
        positions = np.arange(length, dtype=np.float32)
        if self.scaling == "linear":
            positions = positions / np.float32(self.factor)
        angle = np.outer(positions, inverse)
        return Tensor(np.cos(angle), ms.float32).expand_dims(1), Tensor(np.sin(angle), ms.float32).expand_dims(1)

    def construct(self, x):
        batch, length, width = x.shape
        cos, sin = self.angles(length)
        heads = x.reshape(batch, length, self.num_heads, self.head_dim)
        a, b = ops.split(heads, self.head_dim // 2, -1)
        return ops.cat((a * cos - b * sin, b * cos + a * sin), -1).reshape(batch, length, width)
)";

constexpr const char* kAttentionM = R"(class Attention(nn.Cell):
    """softmax(q k / sqrt(head_dim) + position) v; each key and value head serves num_heads / num_kv_heads query heads in a row."""

    def __init__(self, num_heads, num_kv_heads, head_dim, causal=True, position="none", dropout=0.0):
        super().__init__()
        self.num_heads, self.num_kv_heads, self.head_dim = num_heads, num_kv_heads, head_dim
        self.causal, self.position = causal, position
        self.dropout = nn.Dropout(p=dropout)

    def heads(self, x, count):
        batch, length, _ = x.shape
        x = x.reshape(batch, length, count, self.head_dim).swapaxes(1, 2)
        return x if count == self.num_heads else ops.repeat_interleave(x, self.num_heads // count, 1)

    def construct(self, q, k, v, mask=None):
        batch, queries, width = q.shape
        keys = k.shape[1]
        q, k, v = self.heads(q, self.num_heads), self.heads(k, self.num_kv_heads), self.heads(v, self.num_kv_heads)
        scores = ops.matmul(q, k.swapaxes(-1, -2)) / math.sqrt(self.head_dim)
        if self.position == "alibi":
            distance = np.arange(keys)[None, :] - np.arange(queries)[:, None]
            scores = scores + Tensor(np.array(alibi_slopes(self.num_heads))[:, None, None] * distance, ms.float32)
        if self.causal:
            scores = scores.masked_fill(Tensor(np.triu(np.ones((queries, keys), bool), 1)), float("-inf"))
        if mask is not None:
            scores = scores.masked_fill(ops.logical_not(mask.astype(ms.bool_)).expand_dims(1), float("-inf"))
        weights = self.dropout(ops.softmax(scores, -1))
        return ops.matmul(weights, v).swapaxes(1, 2).reshape(batch, queries, width)
)";

constexpr const char* kLmHeadM = R"(class LMHead(nn.Cell):
    """A score for each word: x times the weight's rows. normalised: rows of length one; tied: the rows are the embedding's."""

    def __init__(self, hidden_size, vocab_size, kind="plain"):
        super().__init__()
        self.kind = kind
        if kind != "tied":
            self.weight = Parameter(Tensor(np.random.normal(0, 0.02, (vocab_size, hidden_size)), ms.float32))

    def construct(self, x, weight=None):
        rows = self.weight if weight is None else weight
        if self.kind == "normalised":
            rows = rows / ops.sqrt(ops.square(rows).sum(1, keepdims=True)).clip(1e-12, None)
        return ops.matmul(x, rows.swapaxes(0, 1))
)";

constexpr const char* kSplitGroupsM = R"(def split_groups(x, sizes, groups, axis=-1):
    """A dimension is `groups` equal groups in a row; each piece gathers its part of every group."""
    axis = axis % x.ndim
    before, after = x.shape[:axis], x.shape[axis + 1:]
    pieces = ops.split(x.reshape(*before, groups, x.shape[axis] // groups, *after), sizes, axis + 1)
    return [piece.reshape(*before, -1, *after) for piece in pieces]
)";

constexpr const char* kBranchM = R"(def branch(condition, when_true, when_false):
    """Rows whose condition is above 0 take when_true, the others when_false."""
    chosen = condition.reshape(condition.shape + (1,) * (when_true.ndim - condition.ndim)) > 0
    return ops.where(chosen, when_true, when_false)
)";

constexpr const char* kLearnedM = R"(class LearnedTensor(nn.Cell):
    """A learned tensor; with like, one for each of its rows."""

    def __init__(self, shape, init="normal"):
        super().__init__()
        begin = np.zeros(shape) if init == "zeros" else np.ones(shape) if init == "ones" else np.random.normal(0, 0.02, shape)
        self.weight = Parameter(Tensor(begin, ms.float32))

    def construct(self, like=None):
        return self.weight.value() if like is None else ops.broadcast_to(self.weight, (like.shape[0],) + self.weight.shape)
)";

constexpr const char* kExpertsM = R"(class MixtureOfExperts(nn.Cell):
    """Each token goes to the top_k likeliest of the experts; what they give is added up, weighed by the router's probabilities."""

    def __init__(self, hidden_size, intermediate_size, num_experts, top_k=2, kind="swiglu", renormalise=True, balance=0.01):
        super().__init__()
        self.num_experts, self.top_k, self.kind, self.renormalise = num_experts, top_k, kind, renormalise
        self.balance = balance  # of the loss that keeps experts equally busy; this class computes the output alone
        inner, outer = (num_experts, intermediate_size, hidden_size), (num_experts, hidden_size, intermediate_size)
        self.router = Parameter(Tensor(np.random.normal(0, 0.02, (num_experts, hidden_size)), ms.float32))
        if kind == "swiglu":
            self.gate = Parameter(Tensor(np.random.normal(0, 0.02, inner), ms.float32))
        self.up = Parameter(Tensor(np.random.normal(0, 0.02, inner), ms.float32))
        self.down = Parameter(Tensor(np.random.normal(0, 0.02, outer), ms.float32))

    def construct(self, x):
        probabilities = ops.softmax(ops.matmul(x, self.router.swapaxes(0, 1)), -1)
        weights, chosen = ops.topk(probabilities, self.top_k, -1)
        if self.renormalise:
            weights = weights / ops.sum(weights, -1, True)
        out = ops.zeros_like(x)
        for expert in range(self.num_experts):
            inner = ops.matmul(x, self.up[expert].swapaxes(0, 1))
            if self.kind == "swiglu":
                inner = ops.silu(ops.matmul(x, self.gate[expert].swapaxes(0, 1))) * inner
            else:
                inner = ops.gelu(inner)
            share = ops.sum(weights * (chosen == expert).astype(x.dtype), -1, True)
            out = out + share * ops.matmul(inner, self.down[expert].swapaxes(0, 1))
        return out
)";

// ---- PyTorch ----

constexpr const char* kRotaryP = R"(class RotaryEmbedding(nn.Module):
    """Turns each head's pairs (i, i + head_dim / 2) by position / base ** (2 * i / head_dim)."""

    def __init__(self, num_heads, head_dim, base=10000.0, scaling="none", factor=1.0, max_positions=4096, low_freq_factor=1.0, high_freq_factor=4.0):
        super().__init__()
        self.num_heads, self.head_dim, self.base = num_heads, head_dim, base
        self.scaling, self.factor, self.max_positions = scaling, factor, max_positions
        self.low_freq_factor, self.high_freq_factor = low_freq_factor, high_freq_factor

    def angles(self, length, device):
        base = self.base
        if self.scaling == "dynamic" and length > self.max_positions:
            base = base * (self.factor * length / self.max_positions - (self.factor - 1)) ** (self.head_dim / (self.head_dim - 2))
        exponents = torch.arange(0, self.head_dim, 2, device=device).float() / self.head_dim
        inverse = 1.0 / torch.pow(torch.tensor(base, dtype=torch.float32, device=device), exponents)
        if self.scaling == "llama3":
            waves = inverse * (self.max_positions / (2 * math.pi))
            kept = ((waves - self.low_freq_factor) / (self.high_freq_factor - self.low_freq_factor)).clamp(0, 1)
            inverse = inverse * kept + inverse / self.factor * (1 - kept)
        positions = torch.arange(length, device=device).float()
        if self.scaling == "linear":
            positions = positions / self.factor
        angle = torch.outer(positions, inverse).unsqueeze(1)
        return angle.cos(), angle.sin()

    def forward(self, x):
        cos, sin = self.angles(x.shape[1], x.device)
        a, b = x.unflatten(-1, (self.num_heads, self.head_dim)).chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)
)";

constexpr const char* kAttentionP = R"(class Attention(nn.Module):
    """softmax(q k / sqrt(head_dim) + position) v; each key and value head serves num_heads / num_kv_heads query heads in a row."""

    def __init__(self, num_heads, num_kv_heads, head_dim, causal=True, position="none", dropout=0.0):
        super().__init__()
        self.num_heads, self.num_kv_heads, self.head_dim = num_heads, num_kv_heads, head_dim
        self.causal, self.position = causal, position
        self.dropout = nn.Dropout(dropout)

    def heads(self, x, count):
        x = x.unflatten(-1, (count, self.head_dim)).transpose(1, 2)
        return x.repeat_interleave(self.num_heads // count, 1)

    def forward(self, q, k, v, mask=None):
        queries, keys = q.shape[1], k.shape[1]
        q, k, v = self.heads(q, self.num_heads), self.heads(k, self.num_kv_heads), self.heads(v, self.num_kv_heads)
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.head_dim)
        if self.position == "alibi":
            distance = torch.arange(keys, device=q.device) - torch.arange(queries, device=q.device).unsqueeze(1)
            scores = scores + torch.tensor(alibi_slopes(self.num_heads), device=q.device).view(-1, 1, 1) * distance
        if self.causal:
            scores = scores.masked_fill(torch.ones(queries, keys, dtype=torch.bool, device=q.device).triu(1), float("-inf"))
        if mask is not None:
            scores = scores.masked_fill(~mask.bool().unsqueeze(1), float("-inf"))
        weights = self.dropout(torch.softmax(scores, -1))
        return (weights @ v).transpose(1, 2).flatten(2)
)";

constexpr const char* kLmHeadP = R"(class LMHead(nn.Module):
    """A score for each word: x times the weight's rows. normalised: rows of length one; tied: the rows are the embedding's."""

    def __init__(self, hidden_size, vocab_size, kind="plain"):
        super().__init__()
        self.kind = kind
        if kind != "tied":
            self.weight = nn.Parameter(torch.randn(vocab_size, hidden_size) * 0.02)

    def forward(self, x, weight=None):
        rows = self.weight if weight is None else weight
        if self.kind == "normalised":
            rows = nn.functional.normalize(rows, dim=1)
        return x @ rows.T
)";

constexpr const char* kSplitGroupsP = R"(def split_groups(x, sizes, groups, axis=-1):
    """A dimension is `groups` equal groups in a row; each piece gathers its part of every group."""
    axis = axis % x.dim()
    return [piece.flatten(axis, axis + 1) for piece in torch.split(x.unflatten(axis, (groups, -1)), sizes, axis + 1)]
)";

constexpr const char* kBranchP = R"(def branch(condition, when_true, when_false):
    """Rows whose condition is above 0 take when_true, the others when_false."""
    chosen = condition.reshape(condition.shape + (1,) * (when_true.dim() - condition.dim())) > 0
    return torch.where(chosen, when_true, when_false)
)";

constexpr const char* kLearnedP = R"(class LearnedTensor(nn.Module):
    """A learned tensor; with like, one for each of its rows."""

    def __init__(self, shape, init="normal"):
        super().__init__()
        begin = torch.zeros(shape) if init == "zeros" else torch.ones(shape) if init == "ones" else torch.randn(shape) * 0.02
        self.weight = nn.Parameter(begin)

    def forward(self, like=None):
        return self.weight if like is None else self.weight.expand(like.shape[0], *self.weight.shape)
)";

constexpr const char* kExpertsP = R"(class MixtureOfExperts(nn.Module):
    """Each token goes to the top_k likeliest of the experts; what they give is added up, weighed by the router's probabilities."""

    def __init__(self, hidden_size, intermediate_size, num_experts, top_k=2, kind="swiglu", renormalise=True, balance=0.01):
        super().__init__()
        self.num_experts, self.top_k, self.kind, self.renormalise = num_experts, top_k, kind, renormalise
        self.balance = balance  # of the loss that keeps experts equally busy; this class computes the output alone
        self.router = nn.Parameter(torch.randn(num_experts, hidden_size) * 0.02)
        if kind == "swiglu":
            self.gate = nn.Parameter(torch.randn(num_experts, intermediate_size, hidden_size) * 0.02)
        self.up = nn.Parameter(torch.randn(num_experts, intermediate_size, hidden_size) * 0.02)
        self.down = nn.Parameter(torch.randn(num_experts, hidden_size, intermediate_size) * 0.02)

    def forward(self, x):
        probabilities = torch.softmax(x @ self.router.T, -1)
        weights, chosen = probabilities.topk(self.top_k, -1)
        if self.renormalise:
            weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for expert in range(self.num_experts):
            inner = x @ self.up[expert].T
            if self.kind == "swiglu":
                inner = nn.functional.silu(x @ self.gate[expert].T) * inner
            else:
                inner = nn.functional.gelu(inner)
            share = (weights * (chosen == expert)).sum(-1, keepdim=True)
            out = out + share * (inner @ self.down[expert].T)
        return out
)";

constexpr const char* kPairP = R"(def pair(value):
    """(value, value) of one number."""
    value = [value] if isinstance(value, int) else list(value)
    return tuple(value * 2 if len(value) == 1 else value)
)";

constexpr const char* kPaddedP = R"(class PaddedConv2d(nn.Module):
    """A convolution with MindSpore's padding: "same" also with a stride, or top, bottom, left and right apart."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, pad_mode="pad", padding=0, dilation=1, group=1, has_bias=False):
        super().__init__()
        self.kernel_size, self.stride, self.dilation, self.group = pair(kernel_size), pair(stride), pair(dilation), group
        self.pad_mode, self.sides = pad_mode, pair(padding)
        self.weight = nn.Parameter(torch.randn(out_channels, in_channels // group, *self.kernel_size) * 0.02)
        self.bias = nn.Parameter(torch.zeros(out_channels)) if has_bias else None

    def forward(self, x):
        sides = self.sides if len(self.sides) == 4 else (self.sides[0], self.sides[0], self.sides[1], self.sides[1])
        if self.pad_mode == "same":
            sides = []
            for size, window, step, apart in zip(x.shape[2:], self.kernel_size, self.stride, self.dilation):
                missing = max(0, ((size + step - 1) // step - 1) * step + apart * (window - 1) + 1 - size)
                sides += [missing // 2, missing - missing // 2]
        top, bottom, left, right = sides
        padded = nn.functional.pad(x, (left, right, top, bottom))
        return nn.functional.conv2d(padded, self.weight, self.bias, self.stride, 0, self.dilation, self.group)
)";

} // namespace

const std::vector<Helper>& helpers(Dialect dialect) {
    static const std::vector<Helper> mindSpore{
        {"round_up", "", kRoundUp, true},
        {"alibi_slopes", "", kAlibiSlopes, true},
        {"split_groups", "", kSplitGroupsM},
        {"branch", "", kBranchM},
        {"LearnedTensor", "Parameter", kLearnedM, false, true},
        {"RMSNorm", "RMSNorm", kRmsNormM, false, true},
        {"RotaryEmbedding", "RotaryEmbedding", kRotaryM, true, true},
        {"Attention", "Attention", kAttentionM, true, true, {"alibi_slopes"}},
        {"LMHead", "LMHead", kLmHeadM, false, true},
        {"MixtureOfExperts", "MixtureOfExperts", kExpertsM, false, true},
    };
    static const std::vector<Helper> pyTorch{
        {"round_up", "", kRoundUp, true},
        {"alibi_slopes", "", kAlibiSlopes, true},
        {"split_groups", "", kSplitGroupsP},
        {"branch", "", kBranchP},
        {"LearnedTensor", "Parameter", kLearnedP},
        {"pair", "", kPairP},
        {"PaddedConv2d", "Conv2d", kPaddedP, false, false, {"pair"}},
        {"RotaryEmbedding", "RotaryEmbedding", kRotaryP, true},
        {"Attention", "Attention", kAttentionP, true, false, {"alibi_slopes"}},
        {"LMHead", "LMHead", kLmHeadP},
        {"MixtureOfExperts", "MixtureOfExperts", kExpertsP},
    };
    return dialect == Dialect::MindSpore ? mindSpore : pyTorch;
}

const Helper* helperNamed(Dialect dialect, const std::string& name) {
    const auto& all = helpers(dialect);
    const auto found = std::find_if(all.begin(), all.end(), [&](const Helper& one) { return one.name == name; });
    return found == all.end() ? nullptr : &*found;
}

const Helper* helperOf(Dialect dialect, const std::string& type) {
    const auto& all = helpers(dialect);
    const auto found = std::find_if(all.begin(), all.end(), [&](const Helper& one) { return one.type == type; });
    return found == all.end() ? nullptr : &*found;
}

} // namespace celloom::code
