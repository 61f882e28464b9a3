#include "ui/playground/playground.h"

#include "ui/common/engine_client.h"
#include "ui/common/format.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace celloom::ui {

using nlohmann::json;

namespace {

constexpr int kKilled = 9;

/// Fields of another program's event: a missing or wrong one reads as the fallback, since an event must never stop the window.
QString textField(const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_string() ? fromUtf8(found->get_ref<const std::string&>()) : QString();
}

template <class T> T numberField(const json& object, const char* name, T fallback) {
    const auto found = object.find(name);
    return found != object.end() && found->is_number() ? found->get<T>() : fallback;
}

json listOf(const QStringList& texts) {
    json out = json::array();
    for (const QString& text : texts) out.push_back(toUtf8(text));
    return out;
}

json settingsOf(const Sampling& sampling, std::int64_t seed) {
    return {{"temperature", sampling.temperature},
            {"top_k", sampling.topK},
            {"top_p", sampling.topP},
            {"repetition_penalty", sampling.repetitionPenalty},
            {"max_new_tokens", sampling.maxNewTokens},
            {"seed", seed},
            {"stop", listOf(sampling.stops)}};
}

ScoredPiece pieceOf(const json& token) {
    return {textField(token, "piece"), numberField<double>(token, "p", -1)};
}

AnswerPart partOf(const json& event) {
    AnswerPart part{textField(event, "text"), {}};
    const auto tokens = event.find("tokens");
    if (tokens == event.end() || !tokens->is_array()) return part;
    for (const json& token : *tokens) {
        if (!token.is_object()) continue;
        AnswerPart::Token out{pieceOf(token), {}};
        const auto others = token.find("alternatives");
        if (others != token.end() && others->is_array())
            for (const json& other : *others)
                if (other.is_object()) out.alternatives.push_back(pieceOf(other));
        part.tokens.push_back(std::move(out));
    }
    return part;
}

QString errorText(const json& event) {
    return Format::error({toUtf8(textField(event, "message")), toUtf8(textField(event, "hint")), toUtf8(textField(event, "place"))});
}

const char* nameOf(Answer::State state) {
    switch (state) {
    case Answer::State::Done: return "done";
    case Answer::State::Stopped: return "stopped";
    case Answer::State::Failed: return "failed";
    default: return "writing";
    }
}

} // namespace

QString Answer::text() const {
    QString out;
    for (const AnswerPart& part : parts) out += part.text;
    return out;
}

Playground::Playground(EngineClient& engine, QObject* parent) : QObject(parent), m_engine(engine) {
    connect(&engine, &EngineClient::tryHappened, this, &Playground::onEvent);
    connect(&engine, &EngineClient::stateChanged, this, [this] {
        if (m_isOpen && m_engine.state() != EngineClient::State::Connected) loseAll(tr("The engine went away. Send again to go on."));
    });
}

TryColumn* Playground::find(const QString& name) {
    const auto found = std::find_if(m_columns.begin(), m_columns.end(), [&](const TryColumn& column) { return column.name == name; });
    return found == m_columns.end() ? nullptr : &*found;
}

const TryColumn* Playground::column(const QString& name) const {
    return const_cast<Playground*>(this)->find(name);
}

QString Playground::titleOf(const TryColumn& column) {
    const auto last = [](const QString& path) { return path.section(QLatin1Char('/'), -1, -1, QString::SectionSkipEmpty); };
    QString title = last(column.source);
    for (const QString& adapter : column.adapters) title += QStringLiteral(" + ") + last(adapter);
    return title;
}

bool Playground::isWriting() const {
    if (m_turns.empty()) return false;
    return std::any_of(m_turns.back().answers.begin(), m_turns.back().answers.end(),
                       [](const auto& entry) { return !entry.second.isOver(); });
}

bool Playground::canSend() const {
    return !isWriting() && std::any_of(m_columns.begin(), m_columns.end(), [](const TryColumn& column) { return !column.source.isEmpty(); });
}

// --- columns

QString Playground::addColumn(const QString& source, const QStringList& adapters) {
    CELLOOM_CHECK(static_cast<int>(m_columns.size()) < kMostColumns);
    TryColumn column;
    column.name = QStringLiteral("c%1").arg(m_nextColumn++);
    m_columns.push_back(column);
    Q_EMIT columnsChanged();
    if (!source.isEmpty()) setModel(column.name, source, adapters);
    return column.name;
}

void Playground::setModel(const QString& name, const QString& source, const QStringList& adapters) {
    TryColumn* column = find(name);
    CELLOOM_CHECK(column);
    if (!m_turns.empty()) // the old model's answer ends here
        if (const auto answer = m_turns.back().answers.find(name); answer != m_turns.back().answers.end() && !answer->second.isOver())
            end(name, answer->second, Answer::State::Stopped);
    TryColumn fresh;
    fresh.name = name;
    fresh.source = source;
    fresh.adapters = adapters;
    *column = fresh;
    if (!source.isEmpty()) load(*column);
    Q_EMIT columnChanged(name);
}

void Playground::removeColumn(const QString& name) {
    const auto found = std::find_if(m_columns.begin(), m_columns.end(), [&](const TryColumn& column) { return column.name == name; });
    if (found == m_columns.end()) return;
    const bool wasWriting = isWriting();
    if (m_isOpen) ask({{"type", "close"}, {"column", toUtf8(name)}});
    m_columns.erase(found);
    for (Turn& turn : m_turns) turn.answers.erase(name);
    std::erase_if(m_turns, [](const Turn& turn) { return turn.answers.empty(); });
    if (m_columns.empty() && m_isOpen) { // nothing is left that needs memory
        m_isOpen = false;
        m_engine.closeTry();
    }
    Q_EMIT columnsChanged();
    if (wasWriting != isWriting()) Q_EMIT writingChanged();
}

void Playground::ask(const json& request) {
    m_engine.sendTry(request, [this](const Status& status) {
        if (!status && m_isOpen) loseAll(Format::error(status.error()));
    });
}

/// The broker takes requests in order, so nothing needs to be waited for: what is wrong comes back as an event.
void Playground::load(TryColumn& column) {
    if (!m_isOpen) {
        m_isOpen = true;
        m_engine.openTry([this](const Status& status) {
            if (!status && m_isOpen) loseAll(Format::error(status.error()));
        });
    }
    if (!m_isOpen) return; // there is no engine, and that was said
    column.state = TryColumn::State::Loading;
    column.error.clear();
    ask({{"type", "open"}, {"column", toUtf8(column.name)}, {"model", toUtf8(column.source)}, {"adapters", listOf(column.adapters)}});
}

// --- questions

void Playground::send(const QString& question) {
    if (!canSend()) return;
    m_turns.push_back({question, {}});
    for (TryColumn& column : m_columns)
        if (!column.source.isEmpty()) m_turns.back().answers[column.name].seed = sampling.seed;
    Q_EMIT turnsChanged();
    Q_EMIT writingChanged();
    for (TryColumn& column : m_columns)
        if (!column.source.isEmpty()) ask(column, m_turns.back());
}

void Playground::ask(TryColumn& column, Turn& turn) {
    const auto entry = turn.answers.find(column.name);
    if (entry == turn.answers.end() || entry->second.isOver()) return;
    if (column.state == TryColumn::State::Unloaded || column.state == TryColumn::State::Failed) {
        load(column);
        Q_EMIT columnChanged(column.name);
        if (entry->second.isOver()) return;
    }
    Answer& answer = entry->second;
    answer.request = m_nextRequest++;
    json request{{"type", "generate"},
                 {"column", toUtf8(column.name)},
                 {"request", answer.request},
                 {"sampling", settingsOf(sampling, answer.seed)}};
    if (isChat) {
        json messages = json::array();
        if (!system.trimmed().isEmpty()) messages.push_back({{"role", "system"}, {"content", toUtf8(system)}});
        for (const Turn& earlier : m_turns) {
            if (&earlier == &turn) break;
            const auto said = earlier.answers.find(column.name);
            if (said == earlier.answers.end() || said->second.text().isEmpty()) continue; // this column knows nothing of it
            messages.push_back({{"role", "user"}, {"content", toUtf8(earlier.question)}});
            messages.push_back({{"role", "assistant"}, {"content", toUtf8(said->second.text())}});
        }
        messages.push_back({{"role", "user"}, {"content", toUtf8(turn.question)}});
        request["messages"] = std::move(messages);
        request["template"] = toUtf8(chatTemplate);
    } else {
        request["text"] = toUtf8(turn.question);
    }
    ask(request);
}

void Playground::stop() {
    if (!isWriting()) return;
    ask({{"type", "cancel"}});
    std::map<QString, Answer>& answers = m_turns.back().answers;
    for (auto& [name, answer] : answers)
        if (!answer.isOver()) end(name, answer, Answer::State::Stopped);
}

void Playground::regenerate() {
    if (m_turns.empty() || !canSend()) return;
    const QString question = m_turns.back().question;
    std::int64_t last = sampling.seed - 1;
    for (const auto& [name, answer] : m_turns.back().answers) last = std::max(last, answer.seed);
    m_turns.pop_back();
    const std::int64_t kept = std::exchange(sampling.seed, last + 1);
    send(question);
    sampling.seed = kept;
}

void Playground::clear() {
    stop();
    m_turns.clear();
    Q_EMIT turnsChanged();
    Q_EMIT writingChanged();
}

// --- what the engine tells

/// The last turn's answer that an event is about; null for an answer that is over or not there any more.
Answer* Playground::answerOf(const json& event) {
    if (m_turns.empty()) return nullptr;
    const auto found = m_turns.back().answers.find(textField(event, "column"));
    if (found == m_turns.back().answers.end() || found->second.isOver()) return nullptr;
    return found->second.request == numberField<std::int64_t>(event, "request", -1) ? &found->second : nullptr;
}

void Playground::end(const QString& column, Answer& answer, Answer::State state) {
    answer.state = state;
    Q_EMIT answerEnded(column);
    if (!isWriting()) Q_EMIT writingChanged();
}

void Playground::onEvent(const json& event) {
    const QString type = textField(event, "type"), name = textField(event, "column");
    if (type == QLatin1String("ended")) return onEnded(event);
    if (type == QLatin1String("error")) return onError(event);
    if (TryColumn* column = find(name); column && type == QLatin1String("opened")) return onOpened(*column, event);
    Answer* answer = answerOf(event);
    if (!answer) return;
    if (type == QLatin1String("started")) {
        answer->promptCount = numberField<std::int64_t>(event, "prompt_tokens", 0);
        return;
    }
    if (type != QLatin1String("delta") && type != QLatin1String("done")) return;
    answer->count = numberField<std::int64_t>(event, "count", answer->count);
    answer->tokensPerSecond = numberField<double>(event, "tokens_per_s", answer->tokensPerSecond);
    if (type == QLatin1String("delta")) {
        answer->state = Answer::State::Writing;
        answer->parts.push_back(partOf(event));
        Q_EMIT answerGrew(name);
        return;
    }
    answer->reason = textField(event, "reason");
    if (answer->reason != QLatin1String("error")) end(name, *answer, Answer::State::Done); // else its error follows
}

void Playground::onOpened(TryColumn& column, const json& event) {
    column.state = TryColumn::State::Ready;
    column.model = textField(event, "model");
    column.device = textField(event, "device");
    column.chatTemplate = textField(event, "template");
    const auto isTrue = [&](const char* name) {
        const auto found = event.find(name);
        return found != event.end() && found->is_boolean() && found->get<bool>();
    };
    column.isTuned = isTrue("tuned");
    column.hasOwnAdapter = isTrue("own_adapter");
    std::vector<ChatTemplateName> known;
    if (const auto list = event.find("templates"); list != event.end() && list->is_array())
        for (const json& one : *list)
            if (one.is_object()) known.push_back({textField(one, "name"), textField(one, "label")});
    // A model that was tuned to chat is asked as it was taught, unless somebody has begun otherwise.
    const bool isNews = known != m_templates || (column.isTuned && !isChat && m_turns.empty());
    if (column.isTuned && m_turns.empty()) isChat = true;
    m_templates = std::move(known);
    if (isNews) Q_EMIT templatesChanged();
    column.parameters = numberField<std::int64_t>(event, "parameters", 0);
    column.context = numberField<std::int64_t>(event, "context", 0);
    Q_EMIT columnChanged(column.name);
}

void Playground::onError(const json& event) {
    const QString name = textField(event, "column"), text = errorText(event);
    if (event.contains("request")) {
        Answer* answer = answerOf(event);
        if (!answer) return;
        answer->error = text;
        return end(name, *answer, Answer::State::Failed);
    }
    TryColumn* column = find(name);
    if (!column) {
        Q_EMIT failed(text);
        return;
    }
    column->state = TryColumn::State::Failed;
    column->error = text;
    Q_EMIT columnChanged(name);
}

void Playground::onEnded(const json& event) {
    if (!m_isOpen) return;
    const int signal = numberField<int>(event, "signal", 0), code = numberField<int>(event, "code", 0);
    if (signal == 0 && code == 0) return loseAll({}); // it had nothing to do
    QString text = tr("The chat ended with exit code %1. Runs are not affected; the next question starts it anew.").arg(code);
    if (signal != 0) text = tr("The chat crashed (signal %1). Runs are not affected; the next question starts it anew.").arg(signal);
    if (signal == kKilled)
        text = tr("The chat was killed (signal %1). Perhaps memory ran out: close a column, or choose a smaller model. Runs are not affected.")
                   .arg(signal);
    const QString log = textField(event, "log_tail").trimmed();
    loseAll(log.isEmpty() ? text : text + QLatin1Char('\n') + log);
}

/// The chat's process is gone: models have to be loaded again, which the next question does. An empty error: it had nothing to do.
void Playground::loseAll(const QString& error) {
    m_isOpen = false;
    if (m_engine.state() == EngineClient::State::Connected) m_engine.closeTry(); // it may only be stuck
    for (TryColumn& column : m_columns) {
        if (column.source.isEmpty()) continue;
        column.state = TryColumn::State::Unloaded;
        column.error.clear();
    }
    if (!m_turns.empty())
        for (auto& [name, answer] : m_turns.back().answers) {
            if (answer.isOver()) continue;
            answer.error = error;
            end(name, answer, error.isEmpty() ? Answer::State::Stopped : Answer::State::Failed);
        }
    for (const TryColumn& column : m_columns) Q_EMIT columnChanged(column.name);
    if (!error.isEmpty()) Q_EMIT failed(error);
}

// --- keeping a conversation

QString Playground::toMarkdown() const {
    QString out = QStringLiteral("# ") + tr("Conversation") + QStringLiteral("\n\n");
    for (const TryColumn& column : m_columns) {
        if (column.source.isEmpty()) continue;
        out += QStringLiteral("- %1: %2").arg(titleOf(column), column.source);
        for (const QString& adapter : column.adapters) out += QStringLiteral(" + ") + adapter;
        out += QLatin1Char('\n');
    }
    for (const Turn& turn : m_turns) {
        out += QStringLiteral("\n## ") + tr("Question") + QStringLiteral("\n\n") + turn.question + QLatin1Char('\n');
        for (const auto& [name, answer] : turn.answers) {
            const TryColumn* from = column(name);
            out += QStringLiteral("\n### %1\n\n").arg(from ? titleOf(*from) : name) + answer.text() + QLatin1Char('\n');
            if (!answer.error.isEmpty()) out += QStringLiteral("\n> ") + answer.error + QLatin1Char('\n');
        }
    }
    return out;
}

QByteArray Playground::toJson() const {
    json columns = json::array(), turns = json::array();
    for (const TryColumn& column : m_columns)
        columns.push_back({{"name", toUtf8(column.name)},
                           {"source", toUtf8(column.source)},
                           {"adapters", listOf(column.adapters)},
                           {"model", toUtf8(column.model)}});
    for (const Turn& turn : m_turns) {
        json answers = json::object();
        for (const auto& [name, answer] : turn.answers) {
            json tokens = json::array();
            for (const AnswerPart& part : answer.parts)
                for (const AnswerPart::Token& token : part.tokens)
                    tokens.push_back({{"piece", toUtf8(token.chosen.piece)},
                                      {"p", token.chosen.probability < 0 ? json() : json(token.chosen.probability)}});
            answers[toUtf8(name)] = {{"text", toUtf8(answer.text())},   {"state", nameOf(answer.state)},
                                     {"reason", toUtf8(answer.reason)}, {"error", toUtf8(answer.error)},
                                     {"seed", answer.seed},             {"tokens", std::move(tokens)},
                                     {"tokens_per_s", answer.tokensPerSecond}};
        }
        turns.push_back({{"question", toUtf8(turn.question)}, {"answers", std::move(answers)}});
    }
    const json out{{"schema", 1},
                   {"chat", isChat},
                   {"template", toUtf8(chatTemplate)},
                   {"system", toUtf8(system)},
                   {"sampling", settingsOf(sampling, sampling.seed)},
                   {"columns", std::move(columns)},
                   {"turns", std::move(turns)}};
    return QByteArray::fromStdString(out.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

} // namespace celloom::ui
