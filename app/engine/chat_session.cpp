#include "app/engine/chat_session.h"

#include "app/engine/model_options.h"
#include "engine/checkpoint/adapter_folder.h"
#include "engine/checkpoint/model_folder.h"
#include "engine/exec/device.h"
#include "engine/exec/runtime.h"
#include "engine/generate/stop_text.h"
#include "engine/generate/text_generator.h"
#include "engine/plugin/plugin.h"
#include "engine/script/trial.h"
#include "engine/text/chat_template.h"
#include "models/base/text.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

namespace celloom::app {
namespace fs = std::filesystem;
using protocol::Message;

namespace {

constexpr std::size_t kMaxColumns = 8;
constexpr std::size_t kMaxNameBytes = 4096; // of columns, models and adapters
constexpr std::size_t kMaxPromptBytes = 4u << 20;
constexpr std::size_t kMaxMessages = 10000;
constexpr std::size_t kMaxStopTexts = 16;
constexpr int kMaxNewTokens = 1000000;
constexpr int kAlternatives = 6;

/// Fields that may be left out; one that is there and of another kind is an error.
template <class T> Result<T> optionalField(const Message& message, const char* name, T otherwise) {
    const auto found = message.find(name);
    if (found == message.end() || found->is_null()) return otherwise;
    bool isRight = false;
    if constexpr (std::is_same_v<T, std::string>)
        isRight = found->is_string();
    else if constexpr (std::is_floating_point_v<T>)
        isRight = found->is_number();
    else
        isRight = found->is_number_integer();
    if (!isRight) return fail(std::string("\"") + name + "\" is of another kind than it should be.");
    return found->get<T>();
}

Result<std::string> nameField(const Message& message, const char* name) {
    CELLOOM_TRY(text, optionalField<std::string>(message, name, {}));
    if (text.empty() || text.size() > kMaxNameBytes) return fail(std::string("\"") + name + "\" must be a text that is not empty.");
    return text;
}

Result<std::vector<std::string>> listField(const Message& message, const char* name, std::size_t atMost) {
    std::vector<std::string> out;
    const auto found = message.find(name);
    if (found == message.end() || found->is_null()) return out;
    if (!found->is_array() || found->size() > atMost)
        return fail(std::string("\"") + name + "\" must be a list of at most " + std::to_string(atMost) + " texts.");
    for (const Message& item : *found) {
        if (!item.is_string() || item.get_ref<const std::string&>().size() > kMaxNameBytes)
            return fail(std::string("\"") + name + "\" must be a list of texts.");
        out.push_back(item.get<std::string>());
    }
    return out;
}

using SharedNetwork = std::shared_ptr<engine::Network>;

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A text that is being written.
struct Writing {
    Writing(std::int64_t number, const std::vector<std::int64_t>& prompt, engine::TokenGeneration source, const engine::Tokenizer& tokenizer,
            std::vector<std::string> stops)
        : request(number), promptCount(static_cast<std::int64_t>(prompt.size())), generation(std::move(source)), decoder(tokenizer, prompt),
          stop(std::move(stops)) {}

    std::int64_t request, promptCount, count = 0;
    engine::TokenGeneration generation;
    engine::StreamDecoder decoder;
    engine::StopText stop;
    Message tokens = Message::array(); // whose text is not shown yet
    Clock::time_point begin = Clock::now(), first;
};

struct Column {
    engine::ModelFolder folder;
    SharedNetwork network; // which other columns may use too
    std::unique_ptr<engine::Tokenizer> tokenizer;
    const engine::ChatTemplate* chatTemplate = nullptr; // what it was tuned with, else what its family was published with
    bool isTuned = false;                               // it says itself that it was tuned with that template
    std::vector<std::string> adapters;                  // as they were asked for
    std::vector<engine::AdapterWeight> active;          // the network's names of them
    std::unique_ptr<Writing> writing;
};

/// What is computed, whatever it is called: a run may train beside a base whose structure it has changed.
std::string structureOf(const graph::Document& document) {
    Message cells = Message::array();
    for (const graph::CellInstance& cell : graph::expand(document).model.cells) {
        Message parameters = Message::object();
        for (const auto& [name, value] : cell.params) std::visit([&](const auto& known) { parameters[name] = known; }, value);
        cells.push_back({cell.path, cell.type, std::move(parameters), cell.inputs, cell.outputs});
    }
    return cells.dump(-1, ' ', false, Message::error_handler_t::replace);
}

/// What tells a network from others: its structure, and the files it was filled with. Those that have been written anew since are others.
std::string identityOf(const engine::ModelFolder& folder) {
    std::string key = structureOf(folder.document);
    std::error_code code;
    for (const fs::path& file : folder.weightFiles) {
        const auto time = fs::last_write_time(file, code);
        key += fs::weakly_canonical(file, code).string() + "|" + (code ? std::string("?") : std::to_string(time.time_since_epoch().count())) + "|";
    }
    return key;
}

std::uint64_t bytesOf(const engine::ModelFolder& folder) {
    std::uint64_t bytes = 0;
    std::error_code code;
    for (const fs::path& file : folder.weightFiles)
        if (const auto size = fs::file_size(file, code); !code) bytes += size;
    return bytes;
}

Result<engine::SamplingOptions> samplingOf(const Message& request) {
    const auto found = request.find("sampling");
    const Message given = found == request.end() ? Message::object() : *found;
    if (!given.is_object()) return fail("\"sampling\" must be an object.");
    engine::SamplingOptions options;
    CELLOOM_TRY(longest, optionalField<std::int64_t>(given, "max_new_tokens", 256));
    if (longest < 1 || longest > kMaxNewTokens) return fail("\"max_new_tokens\" must be 1 to " + std::to_string(kMaxNewTokens) + ".");
    CELLOOM_TRY(temperature, optionalField<double>(given, "temperature", 0.8));
    CELLOOM_TRY(topK, optionalField<std::int64_t>(given, "top_k", 0));
    if (topK < 0 || topK > (1 << 30)) return fail("\"top_k\" must be 0 (off) or more.");
    CELLOOM_TRY(topP, optionalField<double>(given, "top_p", 0.95));
    CELLOOM_TRY(penalty, optionalField<double>(given, "repetition_penalty", 1.0));
    CELLOOM_TRY(seed, optionalField<std::int64_t>(given, "seed", 0));
    options.maxNewTokens = static_cast<int>(longest);
    options.temperature = temperature;
    options.topK = static_cast<int>(topK);
    options.topP = topP;
    options.repetitionPenalty = penalty;
    options.seed = static_cast<std::uint64_t>(seed);
    options.alternatives = kAlternatives;
    options.whenFull = engine::WhenFull::Stop; // a text that has lost its beginning would answer another question
    CELLOOM_TRY_STATUS(engine::checkSampling(options));
    return options;
}

Result<std::vector<engine::ChatMessage>> messagesOf(const Message& list) {
    if (!list.is_array() || list.size() > kMaxMessages)
        return fail("\"messages\" must be a list of at most " + std::to_string(kMaxMessages) + " messages.");
    std::vector<engine::ChatMessage> out;
    std::size_t bytes = 0;
    for (const Message& item : list) {
        if (!item.is_object()) return fail("a message must be an object with \"role\" and \"content\".");
        CELLOOM_TRY(role, optionalField<std::string>(item, "role", {}));
        CELLOOM_TRY(text, optionalField<std::string>(item, "content", {}));
        if (role != "system" && role != "user" && role != "assistant")
            return fail("\"role\" must be system, user or assistant, not " + inQuotes(role) + ".");
        if (!isUtf8(text)) return fail("a message is no UTF-8.");
        if ((bytes += text.size()) > kMaxPromptBytes) return fail("the conversation is too long.", "At most 4 MiB are taken: clear it.");
        using enum engine::ChatRole;
        out.push_back({role == "system" ? System : role == "user" ? User : Assistant, std::move(text)});
    }
    return out;
}

Message knownTemplates() {
    Message out = Message::array();
    for (const engine::ChatTemplate& known : engine::chatTemplates()) out.push_back({{"name", known.name}, {"label", known.label}});
    return out;
}

} // namespace

struct ChatSession::State {
    State(ChatPlace given, Emit sink) : place(std::move(given)), emit(std::move(sink)) { invocation.workspace = place.workspace; }

    ChatPlace place;
    Emit emit;
    Invocation invocation;
    std::optional<engine::DeviceChoice> device;
    std::map<std::string, std::weak_ptr<engine::Network>> networks; // by identityOf
    std::map<std::string, Column> columns;
    std::map<std::pair<const engine::Network*, std::string>, fs::file_time_type> adapterTimes; // when the file of a loaded one was written

    void say(const std::string& column, std::int64_t request, const Error& error) {
        Message event{{"type", "error"}, {"column", column}, {"message", error.message}, {"hint", error.hint}, {"place", error.place}};
        if (request >= 0) event["request"] = request;
        if (engine::isOutOfMemory(error)) event["kind"] = "out_of_memory";
        emit(event);
    }

    // --- columns

    Status chooseDevice() {
        if (device) return {};
        CELLOOM_TRY(opened, engine::openDevice(place.device));
        device = opened;
        engine::setThreads(place.threads);
        return {};
    }

    /// The network of these weights, which another column may have loaded already.
    Result<SharedNetwork> load(const std::string& column, const engine::ModelFolder& folder) {
        const std::string key = identityOf(folder);
        if (auto known = networks[key].lock()) return known;
        emit({{"type", "loading"}, {"column", column}, {"stage", "weights"}, {"bytes", bytesOf(folder)}});
        CELLOOM_TRY_STATUS(engine::checkCells(folder.document));
        CELLOOM_TRY(network, engine::loadNetwork(folder, {.device = device->device, .cells = engine::cellsOf(invocation.workspace)}));
        SharedNetwork shared = std::move(network);
        networks[key] = shared;
        return shared;
    }

    Status open(const std::string& name, const Message& request) {
        if (columns.size() >= kMaxColumns && !columns.contains(name))
            return fail("there are " + std::to_string(kMaxColumns) + " columns already.", "Close one first.");
        CELLOOM_TRY(model, nameField(request, "model"));
        CELLOOM_TRY(adapters, listField(request, "adapters", 8));
        emit({{"type", "loading"}, {"column", name}, {"stage", "model"}});
        columns.erase(name); // its weights may make room for the new ones
        dropAdapters();
        CELLOOM_TRY_STATUS(chooseDevice());
        Column column;
        CELLOOM_TRY(folder, openModel(model, invocation));
        column.folder = std::move(folder);
        if (column.folder.tokenizer.empty())
            return fail("has no tokenizer.model.", "Writing text needs the model's tokenizer beside its weights.",
                        column.folder.path.string());
        CELLOOM_TRY(tokenizer, engine::Tokenizer::load(column.folder.tokenizer));
        column.tokenizer = std::move(tokenizer);
        const fs::path ownAdapter = std::exchange(column.folder.adapter, {}); // a run that trained one: its base is shared with others
        CELLOOM_TRY(network, load(name, column.folder));
        column.network = std::move(network);
        column.adapters = std::move(adapters);
        CELLOOM_TRY(stored, engine::storedChatTemplate(column.folder.tokenizer.parent_path()));
        column.isTuned = stored != nullptr;
        column.chatTemplate = stored ? stored : &engine::defaultChatTemplate(column.network->model(), *column.tokenizer);
        if (!ownAdapter.empty()) CELLOOM_TRY_STATUS(addAdapter(name, column, ownAdapter));
        for (const std::string& adapter : column.adapters) {
            CELLOOM_TRY(path, adapterPath(adapter));
            CELLOOM_TRY_STATUS(addAdapter(name, column, path));
        }
        CELLOOM_TRY_STATUS(column.network->activate(column.active)); // adapters that do not go together are told now
        tellOpened(name, column, !ownAdapter.empty());
        columns[name] = std::move(column);
        return {};
    }

    // --- adapters, which lie beside the shared weights

    /// A path, or a run of the workspace.
    [[nodiscard]] Result<fs::path> adapterPath(const std::string& text) const {
        std::error_code code;
        if (fs::exists(text, code)) return fs::path(text);
        const auto run = store::Workspace{place.workspace}.findRun(text);
        if (!run) return fail(inQuotes(text) + " is neither a path nor a run in the workspace.", "Give an adapter's folder or a run.");
        return run->path;
    }

    Status addAdapter(const std::string& name, Column& column, const fs::path& path) {
        CELLOOM_TRY(folder, engine::openAdapterFolder(path));
        std::error_code code;
        const fs::path file = fs::weakly_canonical(folder.path / recipe::kAdapterWeights, code);
        const auto time = fs::last_write_time(file, code);
        engine::Network& network = *column.network;
        const std::vector<std::string> known = network.adapters();
        std::string key = file.parent_path().string(); // what errors call it
        while (std::find(known.begin(), known.end(), key) != known.end() && adapterTimes[{&network, key}] != time) key += " (newer)";
        if (std::find(known.begin(), known.end(), key) == known.end()) {
            emit({{"type", "loading"}, {"column", name}, {"stage", "adapters"}});
            CELLOOM_TRY_STATUS(engine::loadAdapter(network, key, folder));
            adapterTimes[{&network, key}] = time;
        }
        column.active.push_back({key, 1});
        if (!folder.notes || folder.notes->chatTemplate.empty()) return {};
        CELLOOM_TRY(taught, engine::chatTemplateNamed(folder.notes->chatTemplate));
        column.chatTemplate = taught;
        column.isTuned = true;
        return {};
    }

    /// Frees what no column uses any more.
    void dropAdapters() {
        for (const auto& [key, weak] : networks) {
            const SharedNetwork network = weak.lock();
            if (!network) continue;
            for (const std::string& adapter : network->adapters()) {
                const auto uses = [&](const auto& entry) {
                    const auto names = [&](const engine::AdapterWeight& active) { return active.name == adapter; };
                    return entry.second.network == network && std::any_of(entry.second.active.begin(), entry.second.active.end(), names);
                };
                if (std::any_of(columns.begin(), columns.end(), uses)) continue;
                // What fails here costs memory only; the next activate() tells whatever else is wrong.
                if (network->activate({})) static_cast<void>(network->removeAdapter(adapter).has_value());
            }
        }
    }

    void tellOpened(const std::string& name, const Column& column, bool hasOwnAdapter) {
        const graph::ExpandedModel& model = column.network->model();
        emit({{"type", "opened"},
              {"column", name},
              {"model", model.name},
              {"family", model.family},
              {"path", column.folder.path.string()},
              {"own_adapter", hasOwnAdapter},
              {"adapters", column.adapters},
              {"parameters", model.parameterCount()},
              {"context", engine::contextOf(model)},
              {"vocabulary", column.tokenizer->vocabSize()},
              {"template", column.chatTemplate->name},
              {"tuned", column.isTuned},
              {"templates", knownTemplates()},
              {"device", device->device.str()}});
    }

    // --- texts

    /// Ids of messages in the template asked for, or the model's own. The tokens that end an answer become stop tokens.
    static Result<std::vector<std::int64_t>> chatPrompt(const Column& column, const Message& request, engine::SamplingOptions& options) {
        CELLOOM_TRY(messages, messagesOf(request["messages"]));
        CELLOOM_TRY(name, optionalField<std::string>(request, "template", {}));
        const engine::ChatTemplate* chosen = column.chatTemplate;
        if (!name.empty() && name != "auto") {
            CELLOOM_TRY(named, engine::chatTemplateNamed(name));
            chosen = named;
        }
        if (const Status status = engine::checkConversation(messages, engine::ChatRole::User); !status)
            return fail("the conversation " + status.error().message, status.error().hint);
        const engine::ChatFormat format(*chosen, *column.tokenizer);
        options.stopTokens.insert(options.stopTokens.end(), format.stopTokens().begin(), format.stopTokens().end());
        return format.prompt(messages);
    }

    static Result<std::vector<std::int64_t>> promptOf(const Column& column, const Message& request, engine::SamplingOptions& options) {
        options.stopTokens = column.folder.endIds;
        if (const std::int64_t eos = column.tokenizer->eos(); eos >= 0) options.stopTokens.push_back(eos);
        if (request.contains("messages")) return chatPrompt(column, request, options);
        CELLOOM_TRY(text, optionalField<std::string>(request, "text", {}));
        if (text.size() > kMaxPromptBytes) return fail("the text is too long.", "At most 4 MiB are taken.");
        if (!isUtf8(text)) return fail("the text is no UTF-8.");
        const std::vector<std::int64_t> ids = engine::TextGenerator(*column.network, *column.tokenizer).encode(text);
        if (ids.empty()) return fail("there is no text to continue.");
        return ids;
    }

    Status generate(const std::string& name, std::int64_t request, const Message& message) {
        const auto found = columns.find(name);
        if (found == columns.end()) return fail("this column has no model.", "Open one first.");
        Column& column = found->second;
        if (column.writing) return fail("this column is still writing.", "Stop it, or wait until it has finished.");
        CELLOOM_TRY(options, samplingOf(message));
        CELLOOM_TRY(stops, listField(message.value("sampling", Message::object()), "stop", kMaxStopTexts));
        std::erase(stops, std::string());
        CELLOOM_TRY(prompt, promptOf(column, message, options));
        const auto promptCount = static_cast<std::int64_t>(prompt.size());
        CELLOOM_TRY(generation, engine::TokenGeneration::begin(*column.network, {{prompt, options}}));
        column.writing =
            std::make_unique<Writing>(request, prompt, std::move(generation), *column.tokenizer, std::move(stops));
        emit({{"type", "started"}, {"column", name}, {"request", request}, {"prompt_tokens", promptCount}});
        return {};
    }

    static double rateOf(const Writing& writing) {
        const double seconds = writing.count > 1 ? secondsSince(writing.first) : 0;
        return seconds > 0 ? static_cast<double>(writing.count - 1) / seconds : 0;
    }

    /// Tells a text, with the tokens that it came from.
    void show(const std::string& name, Writing& writing, const std::string& text, bool isLast) {
        if (text.empty() && !(isLast && !writing.tokens.empty())) return;
        emit({{"type", "delta"},
              {"column", name},
              {"request", writing.request},
              {"text", text},
              {"tokens", std::exchange(writing.tokens, Message::array())},
              {"count", writing.count},
              {"tokens_per_s", rateOf(writing)}});
    }

    void finish(const std::string& name, Column& column, const char* reason) {
        Writing& writing = *column.writing;
        const std::string rest = writing.stop.push(writing.decoder.finish()) + writing.stop.finish();
        show(name, writing, rest, true);
        emit({{"type", "done"},
              {"column", name},
              {"request", writing.request},
              {"reason", reason},
              {"count", writing.count},
              {"prompt_tokens", writing.promptCount},
              {"seconds", secondsSince(writing.begin)},
              {"tokens_per_s", rateOf(writing)}});
        column.writing.reset();
    }

    /// Embeddings may have rows that stand for no word.
    static Message tokenJson(const engine::Tokenizer& tokenizer, const engine::ScoredToken& token) {
        const std::string piece = token.id < tokenizer.vocabSize() ? tokenizer.piece(token.id) : "<" + std::to_string(token.id) + ">";
        return {{"id", token.id}, {"piece", piece}, {"p", std::exp(token.logProbability)}};
    }

    void advance(const std::string& name, Column& column) {
        Writing& writing = *column.writing;
        const auto step = [&]() -> Result<bool> {
            if (column.network->activeAdapters() != column.active) CELLOOM_TRY_STATUS(column.network->activate(column.active));
            return writing.generation.advance();
        };
        const Result<bool> goesOn = step();
        if (!goesOn) {
            const std::int64_t request = writing.request;
            finish(name, column, "error");
            return say(name, request, goesOn.error());
        }
        const engine::TokenResult& result = writing.generation.result(0);
        if (static_cast<std::int64_t>(result.tokens.size()) == writing.count) return finish(name, column, engine::nameOf(result.finish));
        if (writing.count++ == 0) writing.first = Clock::now();
        const engine::Tokenizer& tokenizer = *column.tokenizer;
        const engine::NewToken& next = result.tokens.back();
        Message token = tokenJson(tokenizer, {next.id, next.logProbability});
        Message others = Message::array();
        for (const engine::ScoredToken& other : next.alternatives) others.push_back(tokenJson(tokenizer, other));
        token["alternatives"] = std::move(others);
        writing.tokens.push_back(std::move(token));
        if (next.id < tokenizer.vocabSize()) show(name, writing, writing.stop.push(writing.decoder.push(next.id)), false);
        if (writing.stop.isFound()) finish(name, column, engine::nameOf(engine::Finish::StopText));
    }

    void close(const std::string& name) {
        columns.erase(name);
        dropAdapters();
    }

    void cancel(const std::string& name) {
        for (auto& [id, column] : columns)
            if (column.writing && (name.empty() || id == name)) finish(id, column, engine::nameOf(engine::Finish::Cancelled));
    }
};

ChatSession::ChatSession(ChatPlace place, Emit emit) : m(std::make_unique<State>(std::move(place), std::move(emit))) {}
ChatSession::~ChatSession() = default;

void ChatSession::handle(const Message& message) {
    const auto type = optionalField<std::string>(message, "type", {});
    const auto column = optionalField<std::string>(message, "column", {});
    const auto request = optionalField<std::int64_t>(message, "request", -1);
    const std::string name = column.value_or("");
    const auto carryOut = [&]() -> Status {
        if (!type || !column || !request) return fail("\"type\" and \"column\" must be texts, \"request\" a whole number.");
        if (*type == "cancel") return m->cancel(name), Status();
        if (name.empty() || name.size() > kMaxNameBytes) return fail("\"column\" must be a text that is not empty.");
        if (*type == "open") return m->open(name, message);
        if (*type == "close") return m->close(name), Status();
        if (*type == "generate") return m->generate(name, *request, message);
        return fail(inQuotes(*type) + " is no request.", "Requests: open, close, generate, cancel.");
    };
    try {
        if (const Status status = carryOut(); !status) m->say(name, request.value_or(-1), status.error());
    } catch (const std::exception& exception) { // what nobody expected: memory, mostly
        m->say(name, request.value_or(-1), engine::errorOf(exception));
    }
}

void ChatSession::advance() {
    for (auto& [name, column] : m->columns)
        if (column.writing) m->advance(name, column);
}

bool ChatSession::isWriting() const {
    for (const auto& [name, column] : m->columns)
        if (column.writing) return true;
    return false;
}

} // namespace celloom::app
