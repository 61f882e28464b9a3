#include "engine/data/packed.h"

#include "engine/checkpoint/safetensors.h"
#include "engine/text/tokenizer.h"
#include "models/base/files.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>

namespace celloom::engine {
namespace {

constexpr const char* kCacheFormat = "celloom tokens 1"; // counts up when the same text would give other tokens

std::string cacheKey(const std::vector<std::string>& documents, const std::string& tokenizerHash) {
    std::string all = std::string(kCacheFormat) + "\n" + tokenizerHash + "\n";
    for (const std::string& document : documents) all += sha256(document) + "\n";
    return sha256(all).substr(0, 32);
}

/// A cache file that is damaged, or from another version, is none: it is made again.
bool readCache(const std::filesystem::path& path, std::size_t documents, TokenStream& stream) {
    if (!std::filesystem::exists(path)) return false;
    const auto file = SafetensorsFile::open(path);
    if (!file || !(*file)->has("ids") || !(*file)->has("starts")) return false;
    const auto ids = (*file)->tensor("ids"), starts = (*file)->tensor("starts");
    if (!ids || !starts || ids->scalar_type() != at::kInt || starts->scalar_type() != at::kLong || ids->dim() != 1 || starts->dim() != 1) return false;
    if (starts->size(0) != static_cast<std::int64_t>(documents) + 1 || (*starts)[-1].item<std::int64_t>() != ids->size(0)) return false;
    stream = {*ids, *starts};
    return true;
}

} // namespace

Result<TokenStream> tokenise(const std::vector<std::string>& documents, const Tokenizer& tokenizer, const std::function<bool()>& goOn) {
    std::vector<std::int32_t> ids;
    std::vector<std::int64_t> starts{0};
    for (const std::string& document : documents) {
        if (goOn && !goOn()) return fail(kStoppedMessage);
        for (const std::int64_t id : tokenizer.encode(document)) ids.push_back(static_cast<std::int32_t>(id));
        if (tokenizer.eos() >= 0) ids.push_back(static_cast<std::int32_t>(tokenizer.eos()));
        starts.push_back(static_cast<std::int64_t>(ids.size()));
    }
    TokenStream stream{at::empty({static_cast<std::int64_t>(ids.size())}, at::kInt), at::empty({static_cast<std::int64_t>(starts.size())}, at::kLong)};
    std::copy(ids.begin(), ids.end(), stream.ids.data_ptr<std::int32_t>());
    std::copy(starts.begin(), starts.end(), stream.starts.data_ptr<std::int64_t>());
    return stream;
}

Result<TokenStream> tokeniseCached(const std::vector<std::string>& documents, const Tokenizer& tokenizer, const std::string& tokenizerHash,
                                   const std::filesystem::path& cacheFolder, const std::function<bool()>& goOn) {
    const auto path = cacheFolder / ("tokens-" + cacheKey(documents, tokenizerHash) + ".safetensors");
    TokenStream stream;
    if (readCache(path, documents.size(), stream)) return stream;
    CELLOOM_TRY(fresh, tokenise(documents, tokenizer, goOn));
    std::error_code error;
    std::filesystem::create_directories(cacheFolder, error);
    if (error) return fail("cannot be made: " + error.message() + ".", "Check the workspace's permissions.", cacheFolder.string());
    CELLOOM_TRY_STATUS(writeSafetensors(path, {{"ids", fresh.ids}, {"starts", fresh.starts}}, {{"format", kCacheFormat}}));
    return fresh;
}

PackedDataset::PackedDataset(TokenStream stream, std::int64_t sequenceLength, DocumentAttention attention, std::int64_t padId)
    : m_stream(std::move(stream)), m_length(sequenceLength), m_attention(attention), m_padId(padId) {
    CELLOOM_CHECK(sequenceLength >= 2);
    const std::int64_t tokens = m_stream.ids.size(0);
    m_rows = tokens / m_length + (tokens % m_length >= 2 ? 1 : 0);
}

Row PackedDataset::get(std::int64_t index) const {
    CELLOOM_CHECK(index >= 0 && index < m_rows);
    const std::int64_t first = index * m_length, end = std::min(first + m_length, m_stream.ids.size(0)), used = end - first;
    Row row;
    row.inputIds = at::full({m_length}, m_padId, at::kLong);
    row.labels = at::full({m_length}, -100, at::kLong);
    row.inputIds.slice(0, 0, used).copy_(m_stream.ids.slice(0, first, end));
    row.labels.slice(0, 0, used).copy_(row.inputIds.slice(0, 0, used));
    if (m_attention == DocumentAttention::Full) return row;

    const std::int64_t* starts = m_stream.starts.data_ptr<std::int64_t>();
    const std::int64_t* startsEnd = starts + m_stream.starts.size(0) - 1;
    const std::int64_t* next = std::upper_bound(starts, startsEnd, first); // the first document that begins after the row's first token
    if (next == startsEnd || *next >= end) return row;                     // one document fills the row (and perhaps padding, which nobody looks at)
    row.segments = at::empty({m_length}, at::kLong);
    row.positions = at::empty({m_length}, at::kLong);
    std::int64_t* segments = row.segments.data_ptr<std::int64_t>();
    std::int64_t* positions = row.positions.data_ptr<std::int64_t>();
    std::int64_t* labels = row.labels.data_ptr<std::int64_t>();
    for (std::int64_t t = 0, segment = 0, position = 0; t < m_length; ++t, ++position) {
        if (next != startsEnd && *next == first + t) {
            ++segment;
            ++next;
            position = 0;
            labels[t] = -100;
        }
        segments[t] = segment;
        positions[t] = position;
    }
    return row;
}

} // namespace celloom::engine
