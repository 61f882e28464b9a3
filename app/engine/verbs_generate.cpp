// Verbs that generate from a model or measure it on text: predict (one prompt, or a file of them), perplexity.
#include "app/engine/broker/interrupt.h"
#include "app/engine/model_options.h"
#include "engine/data/instructions.h"
#include "engine/generate/perplexity.h"
#include "engine/generate/prediction_file.h"
#include "engine/generate/text_generator.h"
#include "engine/text/encoding.h"
#include "models/base/files.h"
#include "models/base/text.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace celloom::app {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

struct PredictArguments : ModelOptions {
    std::string prompt, promptFile, encoding = "auto";
    bool hasPrompt = false, useCache = true;
    int batchSize = 8;
    bool isChat = false; // prompts are questions, put through a chat template
    std::string system, messagesFile, chatTemplate = "auto";
    std::vector<engine::ChatMessage> before; // of the conversation that the question goes on with
    engine::SamplingOptions sampling;
    std::vector<std::string> stopTexts, stopTokens;
};

struct PerplexityArguments : ModelOptions {
    std::string text, encoding = "auto";
    std::int64_t window = 0, stride = 0;
};

void print(const Json& json) {
    std::printf("%s\n", json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

/// On a terminal one line that is written over and over; elsewhere nothing, so that logs stay short.
class ProgressLine {
public:
    explicit ProgressLine(bool isShown) : m_isShown(isShown && ::isatty(STDERR_FILENO) == 1) {}
    ~ProgressLine() { show({}); }
    void show(const std::string& text) const {
        if (m_isShown) std::fprintf(stderr, "\r\x1b[K%s", text.c_str());
    }

private:
    bool m_isShown;
};

// ---- predict ----

/// A model that can be asked: network, tokenizer, and the request that every prompt shares.
struct Asked {
    Loaded loaded;
    std::unique_ptr<engine::Tokenizer> tokenizer;
    engine::TextRequest request;
    std::unique_ptr<engine::ChatFormat> chat; // null: prompts are texts to continue
    std::vector<engine::ChatMessage> before;

    Result<engine::TextRequest> requestFor(const engine::TextGenerator& generator, const std::string& prompt) const {
        engine::TextRequest out = request;
        if (!chat) {
            out.prompt = generator.encode(prompt);
            return out;
        }
        std::vector<engine::ChatMessage> messages = before;
        messages.push_back({engine::ChatRole::User, prompt});
        if (auto status = engine::checkConversation(messages, engine::ChatRole::User); !status)
            return fail("The conversation " + status.error().message, status.error().hint);
        out.prompt = chat->prompt(messages);
        return out;
    }
};

/// The format of the model's conversations; what its tokenizer lacks goes to stderr.
Status setUpChat(Asked& asked, const PredictArguments& arguments) {
    const fs::path folder = asked.loaded.folder.tokenizer.parent_path();
    CELLOOM_TRY(chosen, engine::chooseChatTemplate(arguments.chatTemplate, folder, asked.loaded.network->model(), *asked.tokenizer));
    asked.chat = std::make_unique<engine::ChatFormat>(*chosen, *asked.tokenizer);
    std::fprintf(stderr, "Chat template: %s\n", chosen->label.c_str());
    for (const std::string& sentence : asked.chat->fallbacks()) std::fprintf(stderr, "%s\n", sentence.c_str());
    for (const std::int64_t id : asked.chat->stopTokens()) asked.request.sampling.stopTokens.push_back(id);
    asked.before = arguments.before;
    return {};
}

/// A token by its id, or by its piece ("<eoa>").
Result<std::int64_t> tokenNamed(const engine::Tokenizer& tokenizer, const std::string& name) {
    std::int64_t id = -1;
    if (readNumber(name, id) && id >= 0) return id;
    if (id = tokenizer.specialId(name); id >= 0) return id;
    for (id = 0; id < tokenizer.vocabSize(); ++id)
        if (tokenizer.piece(id) == name) return id;
    return fail(inQuotes(name) + " is no token of this model.", "Give a token's number, or its piece as the tokenizer has it.", "--stop-token");
}

Result<std::vector<std::int64_t>> endTokens(const PredictArguments& arguments, const engine::ModelFolder& folder,
                                            const engine::Tokenizer& tokenizer) {
    std::vector<std::int64_t> out = folder.endIds;
    if (out.empty() && tokenizer.eos() >= 0) out.push_back(tokenizer.eos());
    for (const std::string& name : arguments.stopTokens) {
        CELLOOM_TRY(id, tokenNamed(tokenizer, name));
        out.push_back(id);
    }
    return out;
}

Result<std::unique_ptr<engine::Tokenizer>> tokenizerOf(const engine::ModelFolder& folder) {
    if (folder.tokenizer.empty())
        return fail("has no tokenizer.model.", "Predicting from text needs the model's tokenizer beside its weights.", folder.path.string());
    return engine::Tokenizer::load(folder.tokenizer);
}

std::optional<Asked> ask(const PredictArguments& arguments, Invocation& invocation) {
    if (auto status = engine::checkSampling(arguments.sampling); !status) {
        invocation.fail(status.error(), protocol::Usage);
        return {};
    }
    auto loaded = load(arguments, invocation);
    if (!loaded) return {};
    auto tokenizer = tokenizerOf(loaded->folder);
    auto ends = tokenizer ? endTokens(arguments, loaded->folder, **tokenizer) : tl::unexpected(tokenizer.error());
    if (!ends) {
        invocation.fail(ends.error(), protocol::BadInput);
        return {};
    }
    Asked out{std::move(*loaded), std::move(*tokenizer), {{}, arguments.sampling, arguments.stopTexts}, nullptr, {}};
    out.request.sampling.stopTokens = std::move(*ends);
    if (auto status = arguments.isChat ? setUpChat(out, arguments) : Status(); !status) {
        invocation.fail(status.error(), protocol::BadInput);
        return {};
    }
    return out;
}

Json scored(const engine::Tokenizer& tokenizer, std::int64_t id, double logProbability) {
    return {{"id", id}, {"piece", id < tokenizer.vocabSize() ? tokenizer.piece(id) : std::string()}, {"logprob", logProbability}};
}

/// What a result says beside its prompt.
Json valuesOf(const engine::TextResult& result, const engine::Tokenizer& tokenizer, const engine::SamplingOptions& sampling) {
    Json out{{"text", result.text}, {"finish", engine::nameOf(result.finish)}, {"new_tokens", result.tokens.size()}};
    if (sampling.alternatives < 0) return out;
    Json tokens = Json::array();
    for (const engine::NewToken& token : result.tokens) {
        tokens.push_back(scored(tokenizer, token.id, token.logProbability));
        for (const engine::ScoredToken& other : token.alternatives)
            tokens.back()["alternatives"].push_back(scored(tokenizer, other.id, other.logProbability));
    }
    out["tokens"] = std::move(tokens);
    return out;
}

/// Where the text did not end by itself.
void sayHowItEnded(const engine::TextResult& result, const Asked& asked) {
    if (result.finish != engine::Finish::ContextFull) return;
    const int given = asked.request.sampling.maxContext;
    const std::int64_t context = given > 0 ? given : engine::contextOf(asked.loaded.network->model());
    std::fprintf(stderr, "The context of %lld tokens is full, so the text ends here. --when-full slide goes on without the oldest tokens.\n",
                 static_cast<long long>(context));
}

void predictOne(const PredictArguments& arguments, Invocation& invocation) {
    if (!isUtf8(arguments.prompt))
        return invocation.fail({"is no UTF-8 text.", "Set the terminal to UTF-8.", "--prompt"}, protocol::BadInput);
    auto asked = ask(arguments, invocation);
    if (!asked) return;
    engine::TextGenerator generator(*asked->loaded.network, *asked->tokenizer);
    engine::TextOptions options{.useCache = arguments.useCache};
    options.isCancelled = [] { return InterruptCounter::count() > 0; };
    if (!invocation.isJson)
        options.onDelta = [](std::size_t, const std::string& delta, const engine::NewToken*) {
            std::fputs(delta.c_str(), stdout);
            std::fflush(stdout);
            return true;
        };
    const auto request = asked->requestFor(generator, arguments.prompt);
    if (!request) return invocation.fail(request.error(), protocol::BadInput);
    const InterruptCounter counter;
    if (!invocation.isJson && !asked->chat) std::fputs(arguments.prompt.c_str(), stdout);
    const auto results = generator.generate({*request}, options);
    if (!invocation.isJson) std::fputc('\n', stdout);
    if (!results) return invocation.fail(results.error(), codeOf(results.error()));
    const engine::TextResult& result = results->front();
    if (result.finish == engine::Finish::Cancelled) invocation.exitCode = protocol::Interrupted;
    if (!invocation.isJson) return sayHowItEnded(result, *asked);
    Json out{{"prompt", arguments.prompt}};
    out.update(valuesOf(result, *asked->tokenizer, asked->request.sampling));
    for (const engine::NewToken& token : result.tokens) out["ids"].push_back(token.id);
    if (!out.contains("ids")) out["ids"] = Json::array();
    out["tokens_per_second"] = generator.speed().tokensPerSecond();
    print(out);
}

Json messagesOf(const std::vector<engine::ChatMessage>& messages) {
    Json out = Json::array();
    for (const engine::ChatMessage& message : messages) out.push_back({{"role", static_cast<int>(message.role)}, {"content", message.text}});
    return out;
}

/// What the results depend on, up to rounding. The weights are told by name, size and time: reading them all would take as long as a batch.
Json settingsOf(const Asked& asked, const engine::PromptFile& prompts) {
    Json weights = Json::array();
    std::error_code code;
    for (const fs::path& file : asked.loaded.folder.weightFiles)
        weights.push_back({{"file", file.filename().string()},
                           {"bytes", fs::file_size(file, code)},
                           {"time", fs::last_write_time(file, code).time_since_epoch().count()}});
    const engine::SamplingOptions& s = asked.request.sampling;
    return {{"version", 1},
            {"prompts_sha256", prompts.sha256},
            {"prompts", prompts.rows.size()},
            {"model", fs::absolute(asked.loaded.folder.path, code).lexically_normal().string()},
            {"weights", std::move(weights)},
            {"max_new_tokens", s.maxNewTokens},
            {"min_new_tokens", s.minNewTokens},
            {"temperature", s.temperature},
            {"top_k", s.topK},
            {"top_p", s.topP},
            {"repetition_penalty", s.repetitionPenalty},
            {"seed", s.seed},
            {"context", s.maxContext},
            {"when_full", s.whenFull == engine::WhenFull::Stop ? "stop" : "slide"},
            {"chat_template", asked.chat ? asked.chat->chatTemplate().name : ""},
            {"messages_before", messagesOf(asked.before)},
            {"stop", asked.request.stopTexts},
            {"stop_tokens", s.stopTokens},
            {"alternatives", s.alternatives}};
}

/// Each prompt's request; a prompt that cannot be continued is told by its row before anything is written.
Result<std::vector<engine::TextRequest>> requestsOf(const Asked& asked, const engine::TextGenerator& generator, const engine::PromptFile& prompts,
                                                    const std::string& place) {
    std::vector<engine::TextRequest> out;
    for (const engine::PromptRow& row : prompts.rows) {
        auto request = asked.requestFor(generator, row.prompt);
        if (!request) return fail(request.error().message, request.error().hint, place + ", row " + std::to_string(out.size() + 1));
        out.push_back(std::move(*request));
        const auto status = engine::checkRequest({out.back().prompt, out.back().sampling}, asked.loaded.network->model());
        if (!status) return fail(status.error().message, status.error().hint, place + ", row " + std::to_string(out.size()));
    }
    return out;
}

void sayBatchEnd(const engine::PredictionFile& file, std::int64_t before, std::size_t count, const PredictArguments& arguments,
                 Invocation& invocation) {
    const bool isWhole = file.rows() == static_cast<std::int64_t>(count);
    if (!isWhole) {
        invocation.exitCode = protocol::Interrupted;
        std::fprintf(stderr, "Stopped after %lld of %zu prompts. The same command goes on from there.\n", static_cast<long long>(file.rows()), count);
    }
    if (invocation.isJson) print({{"out", arguments.out}, {"rows", file.rows()}, {"new_rows", file.rows() - before}, {"complete", isWhole}});
    else if (isWhole && before == file.rows()) std::printf("%s was complete already: %zu rows\n", arguments.out.c_str(), count);
    else if (isWhole) std::printf("%s: %zu rows\n", arguments.out.c_str(), count);
}

void predictFile(const PredictArguments& arguments, Invocation& invocation) {
    if (arguments.out.empty())
        return invocation.fail({"is missing.", "Give the .jsonl file that the results go to.", "--out"}, protocol::Usage);
    const auto prompts = engine::readPrompts(arguments.promptFile, arguments.encoding);
    if (!prompts) return invocation.fail(prompts.error(), protocol::BadInput);
    auto asked = ask(arguments, invocation);
    if (!asked) return;
    engine::TextGenerator generator(*asked->loaded.network, *asked->tokenizer);
    const auto requests = requestsOf(*asked, generator, *prompts, arguments.promptFile);
    if (!requests) return invocation.fail(requests.error(), protocol::BadInput);
    auto file = engine::PredictionFile::open(arguments.out, settingsOf(*asked, *prompts).dump());
    if (!file) return invocation.fail(file.error(), protocol::BadInput);

    const std::int64_t before = file->rows();
    const auto count = static_cast<std::int64_t>(requests->size());
    if (before > count) return invocation.fail({"has more rows than there are prompts.", "Choose another name.", arguments.out}, protocol::BadInput);
    const ProgressLine progress(!invocation.isJson);
    const InterruptCounter counter;
    engine::TextOptions options{.useCache = arguments.useCache};
    options.isCancelled = [] { return InterruptCounter::count() > 0; };
    while (file->rows() < count && InterruptCounter::count() == 0) {
        const auto begin = file->rows(), end = std::min(count, begin + arguments.batchSize);
        const auto results = generator.generate({requests->begin() + begin, requests->begin() + end}, options);
        if (!results) return invocation.fail(results.error(), codeOf(results.error()));
        if (InterruptCounter::count() > 0) break; // texts that were cut short are made again
        std::vector<std::string> values;
        for (const engine::TextResult& result : *results)
            values.push_back(valuesOf(result, *asked->tokenizer, asked->request.sampling).dump(-1, ' ', false, Json::error_handler_t::replace));
        if (auto status = file->append({prompts->rows.begin() + begin, prompts->rows.begin() + end}, values); !status)
            return invocation.fail(status.error());
        std::array<char, 80> text{};
        std::snprintf(text.data(), text.size(), "%lld of %lld prompts, %.1f tokens/s", static_cast<long long>(file->rows()),
                      static_cast<long long>(count), generator.speed().tokensPerSecond());
        progress.show(text.data());
    }
    progress.show({});
    sayBatchEnd(*file, before, requests->size(), arguments, invocation);
}

/// --system and --messages: what stands before the question, and, without --prompt, the question itself.
Status readConversation(PredictArguments& arguments) {
    if (!arguments.messagesFile.empty()) {
        CELLOOM_TRY(bytes, readFile(arguments.messagesFile, 16u << 20));
        CELLOOM_TRY(decoded, engine::decodeText(bytes, arguments.messagesFile, arguments.encoding));
        CELLOOM_TRY(messages, engine::messagesFromJson(decoded.text, arguments.messagesFile));
        arguments.before = std::move(messages);
    }
    if (!arguments.system.empty()) {
        if (!arguments.before.empty() && arguments.before[0].role == engine::ChatRole::System)
            return fail("is given twice: in the file of messages too.", {}, "--system");
        arguments.before.insert(arguments.before.begin(), {engine::ChatRole::System, arguments.system});
    }
    arguments.isChat = arguments.isChat || !arguments.before.empty();
    const bool isQuestionThere = arguments.hasPrompt || !arguments.promptFile.empty();
    if (isQuestionThere || arguments.before.empty() || arguments.before.back().role != engine::ChatRole::User) return {};
    arguments.prompt = arguments.before.back().text;
    arguments.before.pop_back();
    arguments.hasPrompt = true;
    return {};
}

void runPredict(PredictArguments arguments, Invocation& invocation) {
    if (auto status = readConversation(arguments); !status) return invocation.fail(status.error(), protocol::BadInput);
    if (arguments.hasPrompt == !arguments.promptFile.empty())
        return invocation.fail({"give either --prompt or --prompts.", "--prompt continues one text, --prompts FILE those of a file.", {}},
                               protocol::Usage);
    if (arguments.hasPrompt && !arguments.out.empty())
        return invocation.fail({"goes with --prompts; one prompt's text goes to stdout.", {}, "--out"}, protocol::Usage);
    if (arguments.hasPrompt) predictOne(arguments, invocation);
    else predictFile(arguments, invocation);
}

void addPredictOptions(CLI::App& verb, PredictArguments& arguments) {
    engine::SamplingOptions& sampling = arguments.sampling;
    sampling.whenFull = engine::WhenFull::Stop;
    addSamplingOptions(verb, sampling, arguments.stopTexts);
    verb.add_option("--min-new-tokens", sampling.minNewTokens, "End tokens cannot come before so many others")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    verb.add_option("--stop-token", arguments.stopTokens, "End before this token (number or piece), beside the model's own; may be given several times")
        ->allow_extra_args(false);
    verb.add_option("--context", sampling.maxContext, "Tokens that the model looks at; 0: as many as it was trained on, or all where its positions reach further")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    verb.add_option("--when-full", sampling.whenFull, "When the context is full: stop, or slide (forget the oldest tokens; slow)")
        ->transform(CLI::CheckedTransformer(std::map<std::string, engine::WhenFull>{{"stop", engine::WhenFull::Stop}, {"slide", engine::WhenFull::Slide}}));
    verb.add_option("--alternatives", sampling.alternatives, "With JSON results: tell each token's log-probability and so many likeliest ones; -1: neither")
        ->check(CLI::Range(-1, 100))
        ->capture_default_str();
    verb.add_flag("!--no-cache", arguments.useCache, "Compute the whole text for each token; to check the cache");
}

void addPredict(CLI::App& app, Invocation& invocation) {
    auto arguments = std::make_shared<PredictArguments>();
    CLI::App* verb = app.add_subcommand("predict", "Continues a text and writes it to stdout as it comes; or all prompts of a file");
    verb->add_option("--model", arguments->model, kModelHelp)->required();
    CLI::Option* prompt = verb->add_option("--prompt", arguments->prompt, "The text to continue; empty: the start of a document");
    verb->add_option("--prompts", arguments->promptFile, "A file of prompts: text, one a line; or .jsonl, objects with \"prompt\"");
    verb->add_option("--out", arguments->out, "With --prompts: the .jsonl file for the results. One that is there is gone on with");
    verb->add_option("--encoding", arguments->encoding, "Of the prompts' file: auto, utf-8, utf-16 or gb18030")->capture_default_str();
    verb->add_option("--batch-size", arguments->batchSize, "Prompts computed together")->check(CLI::Range(1, 4096))->capture_default_str();
    verb->add_flag("--chat", arguments->isChat, "The prompt is a question; the model's chat template is put around it");
    verb->add_option("--system", arguments->system, "With a chat: the system message before the first question");
    verb->add_option("--messages", arguments->messagesFile, "With a chat: a JSON list of role and content that stands before the prompt, or ends with the question");
    verb->add_option("--template", arguments->chatTemplate, "With a chat: its format; auto: the one stored with the model, else its family's")
        ->capture_default_str();
    addPredictOptions(*verb, *arguments);
    addModelOptions(*verb, *arguments);
    addAdapterOptions(*verb, *arguments);
    verb->callback([arguments, prompt, &invocation] {
        arguments->hasPrompt = prompt->count() > 0;
        runPredict(*arguments, invocation);
    });
}

// ---- perplexity ----

Result<engine::DecodedText> readText(const std::string& path, const std::string& encoding) {
    CELLOOM_TRY(bytes, readFile(path));
    return engine::decodeText(bytes, path, encoding);
}

void runPerplexity(const PerplexityArguments& arguments, Invocation& invocation) {
    const auto text = readText(arguments.text, arguments.encoding);
    if (!text) return invocation.fail(text.error(), protocol::BadInput);
    auto loaded = load(arguments, invocation);
    if (!loaded) return;
    const auto tokenizer = tokenizerOf(loaded->folder);
    if (!tokenizer) return invocation.fail(tokenizer.error(), protocol::BadInput);
    const std::vector<std::int64_t> ids = (*tokenizer)->encode(text->text);
    const ProgressLine progress(!invocation.isJson);
    const InterruptCounter counter;
    engine::PerplexityOptions options{.window = arguments.window, .stride = arguments.stride};
    options.onProgress = [&](std::int64_t done) {
        progress.show(std::to_string(done) + " of " + std::to_string(ids.size()) + " tokens");
        return InterruptCounter::count() == 0;
    };
    const auto result = engine::perplexity(*loaded->network, ids, options);
    progress.show({});
    if (!result) return invocation.fail({result.error().message, result.error().hint, arguments.text}, codeOf(result.error()));
    if (!result->isWhole) {
        std::fprintf(stderr, "Stopped after %lld of %zu tokens.\n", static_cast<long long>(result->tokens), ids.size());
        invocation.exitCode = protocol::Interrupted;
        return;
    }
    const double bitsPerByte = result->nll / std::log(2.0) / static_cast<double>(text->text.size());
    if (invocation.isJson)
        return print({{"perplexity", result->perplexity()}, {"nll", result->nll}, {"tokens", result->tokens}, {"bits_per_byte", bitsPerByte},
                      {"bytes", text->text.size()}, {"window", result->window}, {"stride", result->stride}, {"encoding", text->encoding}});
    std::printf("perplexity %.4f over %lld tokens (%.4f bits a byte of %zu; window %lld, stride %lld; %s)\n", result->perplexity(),
                static_cast<long long>(result->tokens), bitsPerByte, text->text.size(), static_cast<long long>(result->window),
                static_cast<long long>(result->stride), text->encoding.c_str());
}

void addPerplexity(CLI::App& app, Invocation& invocation) {
    auto arguments = std::make_shared<PerplexityArguments>();
    CLI::App* verb = app.add_subcommand("perplexity", "Measures how well a model predicts a text file");
    verb->add_option("--model", arguments->model, kModelHelp)->required();
    verb->add_option("--text", arguments->text, "The text file; all of it is one document")->required();
    verb->add_option("--encoding", arguments->encoding, "auto, utf-8, utf-16 or gb18030")->capture_default_str();
    verb->add_option("--window", arguments->window, "Tokens that the model sees at once; 0: as many as it was trained on")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    verb->add_option("--stride", arguments->stride, "Tokens by which the window moves; 0: half the window")->check(CLI::NonNegativeNumber)->capture_default_str();
    addModelOptions(*verb, *arguments);
    addAdapterOptions(*verb, *arguments);
    verb->callback([arguments, &invocation] { runPerplexity(*arguments, invocation); });
}

} // namespace

void addGenerateVerbs(CLI::App& app, Invocation& invocation) {
    addPredict(app, invocation);
    addPerplexity(app, invocation);
}

} // namespace celloom::app
