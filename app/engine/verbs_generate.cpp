// Verbs that generate from a model or measure it on text: predict (one prompt, or a file of them), perplexity.
#include "app/engine/broker/interrupt.h"
#include "app/engine/model_options.h"
#include "engine/generate/perplexity.h"
#include "engine/generate/text_predictor.h"
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
    std::string prompt, promptFile, encoding = "auto", format = "auto";
    bool hasPrompt = false;
    int batchSize = 8;
    std::string system, messagesFile;
    engine::PredictOptions options;
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

/// A model that can be asked. The predictor refers to the model, so this stays where it is.
struct Asked {
    Loaded loaded;
    std::optional<engine::TextPredictor> predictor;
};

/// Null: it has been said what went wrong.
std::unique_ptr<Asked> ask(const PredictArguments& arguments, Invocation& invocation) {
    if (auto status = engine::checkSampling(arguments.options.sampling); !status) {
        invocation.fail(status.error(), protocol::Usage);
        return {};
    }
    auto loaded = load(arguments, invocation);
    if (!loaded) return {};
    auto out = std::make_unique<Asked>(Asked{std::move(*loaded), {}});
    auto predictor = engine::TextPredictor::create(out->loaded, arguments.options);
    if (!predictor) {
        invocation.fail(predictor.error(), protocol::BadInput);
        return {};
    }
    out->predictor.emplace(std::move(*predictor));
    if (const engine::ChatFormat* chat = out->predictor->chat()) { // what its tokenizer lacks is told
        std::fprintf(stderr, "Chat template: %s\n", chat->chatTemplate().label.c_str());
        for (const std::string& sentence : chat->fallbacks()) std::fprintf(stderr, "%s\n", sentence.c_str());
    }
    return out;
}

/// Where the text did not end by itself.
void sayHowItEnded(const engine::TextResult& result, const engine::TextPredictor& predictor) {
    if (result.finish != engine::Finish::ContextFull) return;
    std::fprintf(stderr, "The context of %lld tokens is full, so the text ends here. --when-full slide goes on without the oldest tokens.\n",
                 static_cast<long long>(predictor.context()));
}

void predictOne(const PredictArguments& arguments, Invocation& invocation) {
    if (!isUtf8(arguments.prompt))
        return invocation.fail({"is no UTF-8 text.", "Set the terminal to UTF-8.", "--prompt"}, protocol::BadInput);
    const auto asked = ask(arguments, invocation);
    if (!asked) return;
    const engine::TextPredictor& predictor = *asked->predictor;
    engine::TextGenerator generator(*asked->loaded.network, predictor.tokenizer());
    engine::TextOptions options{.useCache = arguments.options.useCache};
    options.isCancelled = [] { return InterruptCounter::count() > 0; };
    if (!invocation.isJson)
        options.onDelta = [](std::size_t, const std::string& delta, const engine::NewToken*) {
            std::fputs(delta.c_str(), stdout);
            std::fflush(stdout);
            return true;
        };
    const auto request = predictor.requestFor(arguments.prompt);
    if (!request) return invocation.fail(request.error(), protocol::BadInput);
    const InterruptCounter counter;
    if (!invocation.isJson && !predictor.chat()) std::fputs(arguments.prompt.c_str(), stdout);
    const auto results = generator.generate({*request}, options);
    if (!invocation.isJson) std::fputc('\n', stdout);
    if (!results) return invocation.fail(results.error(), codeOf(results.error()));
    const engine::TextResult& result = results->front();
    if (result.finish == engine::Finish::Cancelled) invocation.exitCode = protocol::Interrupted;
    if (!invocation.isJson) return sayHowItEnded(result, predictor);
    Json out{{"prompt", arguments.prompt}};
    out.update(Json::parse(predictor.valuesOf(result)));
    out["ids"] = Json::array();
    for (const engine::NewToken& token : result.tokens) out["ids"].push_back(token.id);
    out["tokens_per_second"] = generator.speed().tokensPerSecond();
    print(out);
}

void sayBatchEnd(const engine::BatchResult& done, const PredictArguments& arguments, Invocation& invocation) {
    if (!done.isWhole()) {
        invocation.exitCode = protocol::Interrupted;
        std::fprintf(stderr, "Stopped after %lld of %lld prompts. The same command goes on from there.\n", static_cast<long long>(done.rows),
                     static_cast<long long>(done.total));
    }
    if (invocation.isJson) {
        Json out{{"out", arguments.out}, {"rows", done.rows}, {"new_rows", done.rows - done.before}, {"complete", done.isWhole()}};
        if (done.questions > 0) out.update({{"questions", done.questions}, {"matches", done.matches}});
        return print(out);
    }
    const std::string matches =
        done.questions > 0 ? "; " + std::to_string(done.matches) + " of " + std::to_string(done.questions) + " answered exactly as expected" : "";
    if (done.isWhole() && done.before == done.rows) std::printf("%s was complete already: %lld rows\n", arguments.out.c_str(), static_cast<long long>(done.total));
    else if (done.isWhole()) std::printf("%s: %lld rows%s\n", arguments.out.c_str(), static_cast<long long>(done.total), matches.c_str());
}

void predictFile(PredictArguments arguments, Invocation& invocation) {
    if (arguments.out.empty())
        return invocation.fail({"is missing.", "Give the .jsonl file that the results go to.", "--out"}, protocol::Usage);
    const auto prompts = engine::readPromptFile({arguments.promptFile, arguments.encoding, arguments.format, {}});
    if (!prompts) return invocation.fail(prompts.error(), protocol::BadInput);
    arguments.options.isChat = arguments.options.isChat || prompts->areQuestions();
    const auto asked = ask(arguments, invocation);
    if (!asked) return;
    const ProgressLine progress(!invocation.isJson);
    const InterruptCounter counter;
    engine::BatchOptions batch{.batchSize = arguments.batchSize};
    batch.isCancelled = [] { return InterruptCounter::count() > 0; };
    batch.onProgress = [&](const engine::BatchOptions::Progress& now) {
        std::array<char, 80> text{};
        std::snprintf(text.data(), text.size(), "%lld of %lld prompts, %.1f tokens/s", static_cast<long long>(now.rows), static_cast<long long>(now.total),
                      now.tokensPerSecond);
        progress.show(text.data());
    };
    const auto done = engine::predictFile(*asked->predictor, *prompts, arguments.promptFile, arguments.out, batch);
    progress.show({});
    if (!done) return invocation.fail(done.error(), codeOf(done.error()));
    sayBatchEnd(*done, arguments, invocation);
}

/// --system and --messages: what stands before the question, and, without --prompt, the question itself.
Status readConversation(PredictArguments& arguments) {
    if (!arguments.messagesFile.empty()) {
        CELLOOM_TRY(bytes, readFile(arguments.messagesFile, 16u << 20));
        CELLOOM_TRY(decoded, engine::decodeText(bytes, arguments.messagesFile, arguments.encoding));
        CELLOOM_TRY(messages, engine::messagesFromJson(decoded.text, arguments.messagesFile));
        arguments.options.before = std::move(messages);
    }
    if (!arguments.system.empty()) {
        if (!arguments.options.before.empty() && arguments.options.before[0].role == engine::ChatRole::System)
            return fail("is given twice: in the file of messages too.", {}, "--system");
        arguments.options.before.insert(arguments.options.before.begin(), {engine::ChatRole::System, arguments.system});
    }
    arguments.options.isChat = arguments.options.isChat || !arguments.options.before.empty();
    const bool isQuestionThere = arguments.hasPrompt || !arguments.promptFile.empty();
    if (isQuestionThere || arguments.options.before.empty() || arguments.options.before.back().role != engine::ChatRole::User) return {};
    arguments.prompt = arguments.options.before.back().text;
    arguments.options.before.pop_back();
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
    else predictFile(std::move(arguments), invocation);
}

void addPredictOptions(CLI::App& verb, PredictArguments& arguments) {
    engine::SamplingOptions& sampling = arguments.options.sampling;
    sampling.whenFull = engine::WhenFull::Stop;
    addSamplingOptions(verb, sampling, arguments.options.stopTexts);
    verb.add_option("--min-new-tokens", sampling.minNewTokens, "End tokens cannot come before so many others")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    verb.add_option("--stop-token", arguments.options.stopTokens, "End before this token (number or piece), beside the model's own; may be given several times")
        ->allow_extra_args(false);
    verb.add_option("--context", sampling.maxContext, "Tokens that the model looks at; 0: as many as it was trained on, or all where its positions reach further")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    verb.add_option("--when-full", sampling.whenFull, "When the context is full: stop, or slide (forget the oldest tokens; slow)")
        ->transform(CLI::CheckedTransformer(std::map<std::string, engine::WhenFull>{{"stop", engine::WhenFull::Stop}, {"slide", engine::WhenFull::Slide}}));
    verb.add_option("--alternatives", sampling.alternatives, "With JSON results: tell each token's log-probability and so many likeliest ones; -1: neither")
        ->check(CLI::Range(-1, 100))
        ->capture_default_str();
    verb.add_flag("!--no-cache", arguments.options.useCache, "Compute the whole text for each token; to check the cache");
}

void addPredict(CLI::App& app, Invocation& invocation) {
    auto arguments = std::make_shared<PredictArguments>();
    CLI::App* verb = app.add_subcommand("predict", "Continues a text and writes it to stdout as it comes; or all prompts of a file");
    verb->add_option("--model", arguments->model, kModelHelp)->required();
    CLI::Option* prompt = verb->add_option("--prompt", arguments->prompt, "The text to continue; empty: the start of a document");
    verb->add_option("--prompts", arguments->promptFile, "A file of prompts: text, one a line; .jsonl, objects with \"prompt\"; or instructions, whose questions are asked");
    verb->add_option("--format", arguments->format, "Of the prompts' file: auto, text, alpaca, sharegpt or messages")
        ->check(CLI::IsMember({"auto", "text", "alpaca", "sharegpt", "messages"}))
        ->capture_default_str();
    verb->add_option("--out", arguments->out, "With --prompts: the .jsonl file for the results. One that is there is gone on with");
    verb->add_option("--encoding", arguments->encoding, "Of the prompts' file: auto, utf-8, utf-16 or gb18030")->capture_default_str();
    verb->add_option("--batch-size", arguments->batchSize, "Prompts computed together")->check(CLI::Range(1, 4096))->capture_default_str();
    verb->add_flag("--chat", arguments->options.isChat, "The prompt is a question; the model's chat template is put around it");
    verb->add_option("--system", arguments->system, "With a chat: the system message before the first question");
    verb->add_option("--messages", arguments->messagesFile, "With a chat: a JSON list of role and content that stands before the prompt, or ends with the question");
    verb->add_option("--template", arguments->options.chatTemplate, "With a chat: its format; auto: the one stored with the model, else its family's")
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

Result<std::unique_ptr<engine::Tokenizer>> tokenizerOf(const engine::ModelFolder& folder) {
    if (folder.tokenizer.empty()) return fail("has no tokenizer.model.", "Measuring text needs the model's tokenizer beside its weights.", folder.path.string());
    return engine::Tokenizer::load(folder.tokenizer);
}

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
