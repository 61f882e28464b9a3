#include "engine/generate/text_predictor.h"

#include "models/base/text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace celloom::engine {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

/// A token by its id, or by its piece ("<eoa>").
Result<std::int64_t> tokenNamed(const Tokenizer& tokenizer, const std::string& name) {
    std::int64_t id = -1;
    if (readNumber(name, id) && id >= 0) return id;
    if (id = tokenizer.specialId(name); id >= 0) return id;
    for (id = 0; id < tokenizer.vocabSize(); ++id)
        if (tokenizer.piece(id) == name) return id;
    return fail(inQuotes(name) + " is no token of this model.", "Give a token's number, or its piece as the tokenizer has it.", "--stop-token");
}

Result<std::vector<std::int64_t>> endTokens(const std::vector<std::string>& names, const ModelFolder& folder, const Tokenizer& tokenizer) {
    std::vector<std::int64_t> out = folder.endIds;
    if (out.empty() && tokenizer.eos() >= 0) out.push_back(tokenizer.eos());
    for (const std::string& name : names) {
        CELLOOM_TRY(id, tokenNamed(tokenizer, name));
        out.push_back(id);
    }
    return out;
}

Json scored(const Tokenizer& tokenizer, std::int64_t id, double logProbability) {
    return {{"id", id}, {"piece", id < tokenizer.vocabSize() ? tokenizer.piece(id) : std::string()}, {"logprob", logProbability}};
}

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json messagesOf(const std::vector<ChatMessage>& messages) {
    Json out = Json::array();
    for (const ChatMessage& message : messages) out.push_back({{"role", static_cast<int>(message.role)}, {"content", message.text}});
    return out;
}

/// What the results depend on, up to rounding. The weights are told by name, size and time: reading them all would take as long as a batch.
Json settingsOf(const TextPredictor& predictor, const PromptFile& prompts, const std::string& precision) {
    const LoadedModel& model = predictor.model();
    Json weights = Json::array(), adapters = Json::array();
    std::error_code code;
    for (const fs::path& file : model.folder.weightFiles)
        weights.push_back({{"file", file.filename().string()},
                           {"bytes", fs::file_size(file, code)},
                           {"time", fs::last_write_time(file, code).time_since_epoch().count()}});
    for (const MergedAdapter& adapter : model.adapters) adapters.push_back({{"path", fs::absolute(adapter.folder, code).lexically_normal().string()}, {"weight", adapter.weight}});
    const SamplingOptions& s = predictor.options().sampling;
    Json out{{"version", 1},
             {"prompts_sha256", prompts.sha256},
             {"prompts", prompts.rows.size()},
             {"model", fs::absolute(model.folder.path, code).lexically_normal().string()},
             {"weights", std::move(weights)},
             {"max_new_tokens", s.maxNewTokens},
             {"min_new_tokens", s.minNewTokens},
             {"temperature", s.temperature},
             {"top_k", s.topK},
             {"top_p", s.topP},
             {"repetition_penalty", s.repetitionPenalty},
             {"seed", s.seed},
             {"context", s.maxContext},
             {"when_full", s.whenFull == WhenFull::Stop ? "stop" : "slide"},
             {"chat_template", predictor.chat() ? predictor.chat()->chatTemplate().name : ""},
             {"messages_before", messagesOf(predictor.options().before)},
             {"stop", predictor.options().stopTexts},
             {"stop_tokens", s.stopTokens},
             {"alternatives", s.alternatives}};
    if (!adapters.empty()) out["adapters"] = std::move(adapters);
    if (!precision.empty()) out["precision"] = precision;
    return out;
}

/// Each prompt's request; what cannot be continued is told by its row.
Result<std::vector<TextRequest>> requestsOf(const TextPredictor& predictor, const PromptFile& prompts, const std::string& place) {
    std::vector<TextRequest> out;
    for (const PromptRow& row : prompts.rows) {
        auto request = predictor.requestFor(row);
        auto status = request ? checkRequest({request->prompt, request->sampling}, predictor.model().network->model()) : tl::unexpected(request.error());
        if (!status) return fail(status.error().message, status.error().hint, place + ", row " + std::to_string(out.size() + 1));
        out.push_back(std::move(*request));
    }
    return out;
}

} // namespace

Result<TextPredictor> TextPredictor::create(const LoadedModel& model, PredictOptions options, const fs::path& tokenizer) {
    CELLOOM_TRY_STATUS(checkSampling(options.sampling));
    TextPredictor out(model, std::move(options));
    out.m_tokenizerFile = tokenizer.empty() ? model.folder.tokenizer : tokenizer;
    if (out.m_tokenizerFile.empty())
        return fail("has no tokenizer.model.", "Predicting from text needs the model's tokenizer beside its weights.", model.folder.path.string());
    CELLOOM_TRY(loaded, Tokenizer::load(out.m_tokenizerFile));
    out.m_tokenizer = std::move(loaded);
    CELLOOM_TRY(ends, endTokens(out.m_options.stopTokens, model.folder, *out.m_tokenizer));
    out.m_options.sampling.stopTokens = std::move(ends);
    if (out.m_options.isChat) CELLOOM_TRY_STATUS(out.setUpChat());
    out.m_request = {{}, out.m_options.sampling, out.m_options.stopTexts};
    return out;
}

Status TextPredictor::setUpChat() {
    CELLOOM_TRY(chosen, chooseChatTemplate(m_options.chatTemplate, m_tokenizerFile.parent_path(), m_model.network->model(), *m_tokenizer));
    m_chat = std::make_unique<ChatFormat>(*chosen, *m_tokenizer);
    for (const std::int64_t id : m_chat->stopTokens()) m_options.sampling.stopTokens.push_back(id);
    return {};
}

Result<TextRequest> TextPredictor::requestFor(const std::string& prompt) const {
    if (m_options.isChat) return requestFor(std::vector<ChatMessage>{{ChatRole::User, prompt}});
    TextRequest out = m_request;
    out.prompt = TextGenerator(*m_model.network, *m_tokenizer).encode(prompt);
    return out;
}

Result<TextRequest> TextPredictor::requestFor(const PromptRow& row) const { return row.messages.empty() ? requestFor(row.prompt) : requestFor(row.messages); }

Result<TextRequest> TextPredictor::requestFor(const std::vector<ChatMessage>& asked) const {
    CELLOOM_CHECK(m_chat);
    std::vector<ChatMessage> messages = m_options.before;
    messages.insert(messages.end(), asked.begin(), asked.end());
    if (auto status = checkConversation(messages, ChatRole::User); !status) return fail("The conversation " + status.error().message, status.error().hint);
    TextRequest out = m_request;
    out.prompt = m_chat->prompt(messages);
    return out;
}

Result<TextResult> TextPredictor::predict(const TextRequest& request, const TextOptions& options) const {
    CELLOOM_TRY(results, TextGenerator(*m_model.network, *m_tokenizer).generate({request}, options));
    return std::move(results.front());
}

std::int64_t TextPredictor::context() const {
    const int given = m_options.sampling.maxContext;
    return given > 0 ? given : contextOf(m_model.network->model());
}

std::string TextPredictor::valuesOf(const TextResult& result) const {
    Json out{{"text", result.text}, {"finish", nameOf(result.finish)}, {"new_tokens", result.tokens.size()}};
    if (m_options.sampling.alternatives < 0) return dumped(out);
    Json tokens = Json::array();
    for (const NewToken& token : result.tokens) {
        tokens.push_back(scored(*m_tokenizer, token.id, token.logProbability));
        for (const ScoredToken& other : token.alternatives) tokens.back()["alternatives"].push_back(scored(*m_tokenizer, other.id, other.logProbability));
    }
    out["tokens"] = std::move(tokens);
    return dumped(out);
}

bool isSameAnswer(const std::string& answer, const std::string& expected) { return trimmed(answer) == trimmed(expected); }

Result<BatchResult> predictFile(const TextPredictor& predictor, const PromptFile& prompts, const std::string& place, const fs::path& out,
                                const BatchOptions& options) {
    CELLOOM_TRY(requests, requestsOf(predictor, prompts, place));
    CELLOOM_TRY(file, PredictionFile::open(out, dumped(settingsOf(predictor, prompts, options.precision))));
    BatchResult done{file.rows(), file.rows(), std::ssize(requests)};
    if (done.rows > done.total) return fail("has more rows than there are prompts.", "Choose another name.", out.string());
    const auto isCancelled = [&] { return options.isCancelled && options.isCancelled(); };
    TextGenerator generator(*predictor.model().network, predictor.tokenizer());
    const auto say = [&] {
        if (options.onProgress) options.onProgress({done.rows, done.total, generator.speed().tokensPerSecond()});
    };
    say();
    while (!done.isWhole() && !isCancelled()) {
        const auto begin = done.rows, end = std::min<std::int64_t>(done.total, begin + options.batchSize);
        TextOptions text{.useCache = predictor.options().useCache, .onDelta = {}, .isCancelled = isCancelled};
        CELLOOM_TRY(results, generator.generate({requests.begin() + begin, requests.begin() + end}, text));
        if (isCancelled()) break; // texts that were cut short are made again
        std::vector<std::string> values;
        for (std::size_t i = 0; i < results.size(); ++i) {
            const PromptRow& row = prompts.rows[static_cast<std::size_t>(begin) + i];
            Json value = Json::parse(predictor.valuesOf(results[i]));
            if (!row.messages.empty()) {
                const bool isMatch = isSameAnswer(results[i].text, row.expected);
                value["matches"] = isMatch;
                ++done.questions;
                done.matches += isMatch;
            }
            done.newTokens += std::ssize(results[i].tokens);
            values.push_back(dumped(value));
            if (options.onResult) options.onResult(row, results[i]);
        }
        CELLOOM_TRY_STATUS(file.append({prompts.rows.begin() + begin, prompts.rows.begin() + end}, values));
        done.rows = file.rows();
        say();
    }
    return done;
}

} // namespace celloom::engine
