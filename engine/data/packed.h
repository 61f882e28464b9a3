// Documents of tokens packed one after another into rows of T tokens.
#pragma once

#include "engine/data/dataset.h"

#include <filesystem>
#include <functional>

namespace celloom::engine {

class Tokenizer;

/// Documents end to end, each closed by the end-of-sequence token where the tokenizer has one.
struct TokenStream {
    at::Tensor ids;    // int32 [N]
    at::Tensor starts; // int64 [D + 1]: document d is ids[starts[d], starts[d+1])
};

/// The message of the error that ends work which was asked to stop.
inline constexpr const char* kStoppedMessage = "stopped.";

/// `goOn` is asked before each document; false ends the work with kStoppedMessage.
Result<TokenStream> tokenise(const std::vector<std::string>& documents, const Tokenizer& tokenizer, const std::function<bool()>& goOn = {});

/// The same, from `cacheFolder` where these documents were tokenised with this tokenizer before. `tokenizerHash` is its file's SHA-256.
Result<TokenStream> tokeniseCached(const std::vector<std::string>& documents, const Tokenizer& tokenizer, const std::string& tokenizerHash,
                                   const std::filesystem::path& cacheFolder, const std::function<bool()>& goOn = {});

enum class DocumentAttention {
    Full,    // a row is one context, whatever it holds
    Document // attention stops at document borders, positions restart there, and a document's first label is ignored
};

/// Row r holds tokens [rT, (r+1)T). Labels are the ids; the last row is filled up with `padId`, whose labels are -100. A last row of one token has
/// nothing to predict and is left out.
class PackedDataset : public Dataset {
public:
    PackedDataset(TokenStream stream, std::int64_t sequenceLength, DocumentAttention attention, std::int64_t padId);
    std::int64_t size() const override { return m_rows; }
    Row get(std::int64_t index) const override;

private:
    TokenStream m_stream;
    std::int64_t m_length, m_rows;
    DocumentAttention m_attention;
    std::int64_t m_padId;
};

} // namespace celloom::engine
