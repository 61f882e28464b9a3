#include "engine/text/chat_template.h"

#include "models/base/files.h"
#include "models/base/text.h"
#include "models/graph/json_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace celloom::engine {
namespace {

using Parts = std::vector<TemplatePart>;

constexpr std::int64_t kIgnored = -100;
constexpr std::size_t kMaxConfigBytes = 16u << 20;
constexpr const char* kStoredName = "chat_template.json";
constexpr const char* kStoredFormat = "celloom-chat-template";

TemplatePart text(const char* words) { return {TemplatePart::Kind::Text, {words}}; }
TemplatePart special(std::vector<std::string> names) { return {TemplatePart::Kind::Special, std::move(names)}; }
ChatTemplate named(const char* name, const char* label, const char* source) {
    ChatTemplate t;
    t.name = name;
    t.label = label;
    t.source = source;
    return t;
}
const TemplatePart kBegin{TemplatePart::Kind::Begin, {}};
TemplatePart mark(const char* name) { return {TemplatePart::Kind::Mark, {name}}; }
const TemplatePart kEnd{TemplatePart::Kind::End, {}};

/// Baichuan-13B-Chat, modeling_baichuan.py, _build_chat_input: user_token_id 195, content, assistant_token_id 196, answer, eos; no bos.
/// Its tokenizer calls 195 and 196 <reserved_102> and <reserved_103>. It knows no system message: one stands before, as in Baichuan 2.
ChatTemplate baichuan() {
    ChatTemplate t = named("baichuan", "Baichuan", "Baichuan-13B-Chat, modeling_baichuan.py, _build_chat_input");
    t.user.before = {special({"<reserved_102>"})};
    t.assistant = {{special({"<reserved_103>"})}, {kEnd}, {}};
    t.jinja = "{% for message in messages %}{% if message['role'] == 'user' %}{{ '<reserved_102>' + message['content'] }}"
              "{% elif message['role'] == 'assistant' %}{{ '<reserved_103>' + message['content'] + eos_token }}"
              "{% else %}{{ message['content'] }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<reserved_103>' }}{% endif %}";
    return t;
}

/// Baichuan2-Chat, generation_utils.py, build_chat_input: the system text, then for each turn 195 or 196 and the content, no end token
/// between turns; fine-tune/fine-tune.py: the label at a user token is eos, the last answer is followed by eos. 195 and 196 are
/// <reserved_106> and <reserved_107>.
ChatTemplate baichuan2() {
    ChatTemplate t = named("baichuan2", "Baichuan 2", "Baichuan2, generation_utils.py, build_chat_input; fine-tune/fine-tune.py, preprocessing");
    t.user.before = {special({"<reserved_106>"})};
    t.assistant = {{special({"<reserved_107>"})}, {kEnd}, {}};
    t.endsOnlyAtTheLast = true;
    t.jinja = "{% for message in messages %}{% if message['role'] == 'user' %}{{ '<reserved_106>' + message['content'] }}"
              "{% elif message['role'] == 'assistant' %}{{ '<reserved_107>' + message['content'] }}"
              "{% else %}{{ message['content'] }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<reserved_107>' }}{% endif %}";
    return t;
}

/// internlm-chat-7b, modeling_internlm.py, build_inputs: "<s><|User|>:{query}<eoh>\n<|Bot|>:", answers closed by "<eoa>\n"; a later
/// revision adds "<|System|>:{meta_instruction}\n" after <s>. <s> stands once, at the beginning, as in that revision: the first one repeats
/// it before past questions but not before the newest, so that the same question would get other tokens once it is answered.
ChatTemplate internlm() {
    ChatTemplate t = named("internlm", "InternLM", "internlm-chat-7b, modeling_internlm.py, build_inputs");
    t.begin = {kBegin};
    t.system = {{mark("<|System|>"), text(":")}, {}, {text("\n")}};
    t.user = {{mark("<|User|>"), text(":")}, {}, {special({"<eoh>"}), text("\n")}};
    t.assistant = {{mark("<|Bot|>"), text(":")}, {special({"<eoa>"})}, {text("\n")}};
    t.jinja = "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}{{ '<|User|>:' + message['content'] + '<eoh>\\n' }}"
              "{% elif message['role'] == 'assistant' %}{{ '<|Bot|>:' + message['content'] + '<eoa>\\n' }}"
              "{% else %}{{ '<|System|>:' + message['content'] + '\\n' }}{% endif %}{% endfor %}"
              "{% if add_generation_prompt %}{{ '<|Bot|>:' }}{% endif %}";
    return t;
}

/// "<|im_start|>{role}\n{content}<|im_end|>\n". InternLM2's first files call the two tokens [UNUSED_TOKEN_146] and [UNUSED_TOKEN_145].
void useChatMl(ChatTemplate& t) {
    const TemplatePart start = special({"<|im_start|>", "[UNUSED_TOKEN_146]"}), end = special({"<|im_end|>", "[UNUSED_TOKEN_145]"});
    t.system = {{start, text("system\n")}, {}, {end, text("\n")}};
    t.user = {{start, text("user\n")}, {}, {end, text("\n")}};
    t.assistant = {{start, text("assistant\n")}, {end}, {text("\n")}};
    t.jinja = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
              "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
}

/// internlm2-chat-7b, modeling_internlm2.py, build_inputs, and tokenizer_config.json: ChatML after <s>; <|im_start|> 92543, <|im_end|> 92542.
ChatTemplate internlm2() {
    ChatTemplate t = named("internlm2", "InternLM2", "internlm2-chat-7b, modeling_internlm2.py, build_inputs");
    useChatMl(t);
    t.begin = {kBegin};
    t.jinja = "{{ bos_token }}" + t.jinja;
    return t;
}

/// internlm3-8b-instruct, tokenizer_config.json, chat_template: ChatML after <s>; <|im_end|> is 128131.
ChatTemplate internlm3() {
    ChatTemplate t = internlm2();
    t.name = "internlm3";
    t.label = "InternLM3";
    t.source = "internlm3-8b-instruct, tokenizer_config.json, chat_template";
    return t;
}

/// OpenAI's Chat Markup Language, as Hugging Face's documentation of chat templates gives it; nothing before the first turn.
ChatTemplate chatMl() {
    ChatTemplate t = named("chatml", "ChatML", "openai-python v0.27, chatml.md");
    useChatMl(t);
    return t;
}

/// No marks: the question on lines of its own, then the answer and the end token. Ours.
ChatTemplate plain() {
    ChatTemplate t = named("plain", "Plain", "Celloom: a line break after each question, the end token after each answer");
    t.system.after = t.user.after = {text("\n")};
    t.assistant.end = {kEnd};
    t.jinja = "{% for message in messages %}{{ message['content'] + (eos_token if message['role'] == 'assistant' else '\\n') }}{% endfor %}";
    return t;
}

bool hasCell(const graph::ExpandedModel& model, const std::string& type, const std::string& kind) {
    return std::any_of(model.cells.begin(), model.cells.end(),
                       [&](const graph::CellInstance& cell) { return cell.type == type && cell.text("kind") == kind; });
}

const char* nameOf(ChatRole role) {
    return role == ChatRole::System ? "a system message" : role == ChatRole::User ? "a question" : "an answer";
}

} // namespace

const std::vector<ChatTemplate>& chatTemplates() {
    static const std::vector<ChatTemplate> list{baichuan(), baichuan2(), internlm(), internlm2(), internlm3(), chatMl(), plain()};
    return list;
}

const ChatTemplate* findChatTemplate(const std::string& name) {
    const auto& all = chatTemplates();
    const auto found = std::find_if(all.begin(), all.end(), [&](const ChatTemplate& one) { return one.name == name; });
    return found == all.end() ? nullptr : &*found;
}

Result<const ChatTemplate*> chatTemplateNamed(const std::string& name) {
    if (const ChatTemplate* found = findChatTemplate(name)) return found;
    std::vector<std::string> known;
    for (const ChatTemplate& one : chatTemplates()) known.push_back(one.name);
    return fail("there is no chat template " + inQuotes(name) + ".", "Known are " + joined(known) + ".");
}

const ChatTemplate& defaultChatTemplate(const graph::ExpandedModel& model, const Tokenizer& tokenizer) {
    std::string name = model.family;
    if (name == "baichuan" && hasCell(model, "LMHead", "normalised")) name = "baichuan2"; // the head that Baichuan 2 alone has
    if (!findChatTemplate(name)) name = tokenizer.specialId("<|im_start|>") >= 0 ? "chatml" : "plain";
    return *findChatTemplate(name);
}

Status checkConversation(const std::vector<ChatMessage>& messages, ChatRole endsWith) {
    std::size_t at = 0;
    if (!messages.empty() && messages[0].role == ChatRole::System) ++at;
    if (at == messages.size()) return fail("holds no question.");
    for (bool isQuestion = true; at < messages.size(); ++at, isQuestion = !isQuestion) {
        const ChatRole expected = isQuestion ? ChatRole::User : ChatRole::Assistant;
        if (messages[at].role != expected)
            return fail("has " + std::string(nameOf(messages[at].role)) + " as message " + std::to_string(at + 1) + ", where " + nameOf(expected) +
                            " is expected.",
                        "After at most one system message, questions and answers take turns.");
        if (isQuestion && messages[at].text.empty()) return fail("has an empty question as message " + std::to_string(at + 1) + ".");
    }
    if (messages.back().role != endsWith)
        return fail("ends with " + std::string(nameOf(messages.back().role)) + ", not with " + nameOf(endsWith) + ".");
    return {};
}

/// Collects tokens. Text between two special tokens is encoded as one piece, as the published code does it, except where an answer begins:
/// there the text before is encoded by itself, since a prompt ends there, and the answer as its continuation.
class ChatFormat::Writer {
public:
    explicit Writer(const Tokenizer& tokenizer) : m_tokenizer(tokenizer) {}

    void text(const std::string& words, TokenPart part) {
        if (words.empty()) return;
        m_text += words;
        if (!m_borders.empty() && m_borders.back().second == part)
            m_borders.back().first = m_text.size();
        else
            m_borders.emplace_back(m_text.size(), part);
    }
    void flush() {
        if (m_text.empty()) return;
        const std::vector<std::int64_t> ids = m_tokenizer.encodePlain(m_text, m_followsText);
        std::size_t from = 0;
        for (std::size_t i = 0; i < m_borders.size(); ++i) {
            const auto& [bytes, part] = m_borders[i];
            std::size_t end = ids.size();
            if (i + 1 < m_borders.size()) end = std::clamp(m_tokenizer.encodePlain(m_text.substr(0, bytes), m_followsText).size(), from, ids.size());
            for (; from < end; ++from) token(ids[from], part);
        }
        m_text.clear();
        m_borders.clear();
        m_followsText = true;
    }
    void special(std::int64_t id, TokenPart part) {
        flush();
        token(id, part);
        m_followsText = false;
    }
    /// The next token's label, whatever that token is.
    void labelNext(std::int64_t label) { m_nextLabel = label; }

    ChatTokens tokens;

private:
    void token(std::int64_t id, TokenPart part) {
        const bool isLearned = part == TokenPart::Answer || part == TokenPart::End;
        tokens.ids.push_back(id);
        tokens.labels.push_back(m_nextLabel != kIgnored ? m_nextLabel : isLearned ? id : kIgnored);
        tokens.parts.push_back(part);
        m_nextLabel = kIgnored;
    }

    const Tokenizer& m_tokenizer;
    std::string m_text;
    std::vector<std::pair<std::size_t, TokenPart>> m_borders; // bytes of m_text up to where a part ends
    bool m_followsText = false;
    std::int64_t m_nextLabel = kIgnored;
};

ChatFormat::ChatFormat(const ChatTemplate& chatTemplate, const Tokenizer& tokenizer) : m_template(chatTemplate), m_tokenizer(tokenizer) {
    const auto note = [&](const std::string& sentence) {
        if (std::find(m_fallbacks.begin(), m_fallbacks.end(), sentence) == m_fallbacks.end()) m_fallbacks.push_back(sentence);
    };
    const auto look = [&](const Parts& parts, bool isEnd) {
        for (const TemplatePart& part : parts) {
            if (part.kind != TemplatePart::Kind::Special) continue;
            bool isThere = std::any_of(part.names.begin(), part.names.end(), [&](const auto& name) { return m_tokenizer.specialId(name) >= 0; });
            if (isThere) continue;
            note("The tokenizer has no token " + part.names[0] + ": " +
                 (!isEnd ? "it is encoded as text."
                  : idOf(part, true) >= 0 ? "answers end with " + m_tokenizer.piece(idOf(part, true)) + " instead."
                                          : "answers end with its text, and nothing stops one."));
        }
    };
    for (const TurnFormat* turn : {&m_template.system, &m_template.user, &m_template.assistant}) {
        look(turn->before, false);
        look(turn->end, true);
        look(turn->after, false);
    }
    for (const TemplatePart& part : m_template.assistant.end)
        if (const std::int64_t id = idOf(part, true); id >= 0) m_stopTokens.push_back(id);
    if (m_tokenizer.eos() >= 0 && std::find(m_stopTokens.begin(), m_stopTokens.end(), m_tokenizer.eos()) == m_stopTokens.end())
        m_stopTokens.push_back(m_tokenizer.eos());
    if (m_stopTokens.empty()) note("The tokenizer has no end token: the model cannot learn to stop.");
}

std::int64_t ChatFormat::idOf(const TemplatePart& part, bool isEnd) const {
    if (part.kind == TemplatePart::Kind::Begin) return m_tokenizer.bos();
    if (part.kind == TemplatePart::Kind::End) return m_tokenizer.eos();
    if (part.kind == TemplatePart::Kind::Text) return -1;
    for (const std::string& name : part.names)
        if (const std::int64_t id = m_tokenizer.specialId(name); id >= 0) return id;
    return isEnd ? m_tokenizer.eos() : -1;
}

void ChatFormat::writeParts(Writer& writer, const Parts& parts, TokenPart as) const {
    for (const TemplatePart& part : parts) {
        const std::int64_t id = idOf(part, as == TokenPart::End);
        if (id >= 0)
            writer.special(id, as);
        else if (!part.names.empty())
            writer.text(part.names[0], as);
    }
}

void ChatFormat::write(Writer& writer, const std::vector<ChatMessage>& messages) const {
    writeParts(writer, m_template.begin, TokenPart::Mark);
    for (const ChatMessage& message : messages) {
        const bool isLast = &message == &messages.back();
        if (message.role != ChatRole::Assistant) {
            const bool isSystem = message.role == ChatRole::System;
            const TurnFormat& turn = isSystem ? m_template.system : m_template.user;
            writeParts(writer, turn.before, TokenPart::Mark);
            writer.text(message.text, isSystem ? TokenPart::System : TokenPart::User);
            writeParts(writer, turn.after, TokenPart::Mark);
            continue;
        }
        writeParts(writer, m_template.assistant.before, TokenPart::Mark);
        writer.flush();
        writer.text(message.text, TokenPart::Answer);
        writer.flush();
        if (m_template.endsOnlyAtTheLast && !isLast) {
            writer.labelNext(m_tokenizer.eos() >= 0 ? m_tokenizer.eos() : kIgnored);
        } else {
            writeParts(writer, m_template.assistant.end, TokenPart::End);
            writer.flush();
        }
        writeParts(writer, m_template.assistant.after, TokenPart::Mark);
    }
}

ChatTokens ChatFormat::conversation(const std::vector<ChatMessage>& messages) const {
    CELLOOM_CHECK(checkConversation(messages, ChatRole::Assistant));
    Writer writer(m_tokenizer);
    write(writer, messages);
    writer.flush();
    return std::move(writer.tokens);
}

std::vector<std::int64_t> ChatFormat::prompt(const std::vector<ChatMessage>& messages) const {
    CELLOOM_CHECK(checkConversation(messages, ChatRole::User));
    Writer writer(m_tokenizer);
    write(writer, messages);
    writeParts(writer, m_template.assistant.before, TokenPart::Mark);
    writer.flush();
    return std::move(writer.tokens.ids);
}

Status writeChatTemplate(const ChatTemplate& chatTemplate, const Tokenizer& tokenizer, const std::filesystem::path& folder) {
    const auto path = folder / "tokenizer_config.json";
    nlohmann::ordered_json config = nlohmann::ordered_json::object();
    if (std::filesystem::exists(path)) {
        CELLOOM_TRY(content, readFile(path, kMaxConfigBytes));
        CELLOOM_TRY_STATUS(graph::parseJson(content, path.string(), {kMaxConfigBytes}).map([](const auto&) {}));
        config = nlohmann::ordered_json::parse(content);
    } else {
        if (tokenizer.bos() >= 0) config["bos_token"] = tokenizer.piece(tokenizer.bos());
        if (tokenizer.eos() >= 0) config["eos_token"] = tokenizer.piece(tokenizer.eos());
    }
    config["chat_template"] = chatTemplate.jinja;
    CELLOOM_TRY_STATUS(writeFileAtomically(path, config.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"));
    const nlohmann::ordered_json out{{"format", kStoredFormat},
                                     {"schema", 1},
                                     {"template", chatTemplate.name},
                                     {"source", chatTemplate.source}};
    return writeFileAtomically(folder / kStoredName, out.dump(2) + "\n");
}

Result<const ChatTemplate*> storedChatTemplate(const std::filesystem::path& folder) {
    const auto path = folder / kStoredName;
    if (!std::filesystem::exists(path)) return nullptr;
    CELLOOM_TRY(content, readFile(path, 1 << 20));
    CELLOOM_TRY(stored, graph::parseJson(content, path.string()));
    const auto word = [&](const char* key) {
        return stored.is_object() && stored.contains(key) && stored[key].is_string() ? stored[key].get<std::string>() : std::string();
    };
    if (word("format") != kStoredFormat) return nullptr; // another tool's file of that name
    auto found = chatTemplateNamed(word("template"));
    if (!found) return fail(found.error().message, found.error().hint, path.string());
    return *found;
}

Result<const ChatTemplate*> chooseChatTemplate(const std::string& name, const std::filesystem::path& folder, const graph::ExpandedModel& model,
                                               const Tokenizer& tokenizer) {
    if (name != "auto") return chatTemplateNamed(name);
    CELLOOM_TRY(stored, storedChatTemplate(folder));
    return stored ? stored : &defaultChatTemplate(model, tokenizer);
}

} // namespace celloom::engine
