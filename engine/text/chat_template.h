// Chat templates: how messages become tokens. One table; training and prediction read the same rows, so that a model is asked exactly as
// it was taught. Special tokens are set by their ids; nothing that a message says can become one.
#pragma once

#include "engine/text/tokenizer.h"
#include "models/graph/expand.h"

#include <cstdint>
#include <string>
#include <vector>

namespace celloom::engine {

enum class ChatRole { System, User, Assistant };

struct ChatMessage {
    ChatRole role = ChatRole::User;
    std::string text;
    bool operator==(const ChatMessage&) const = default;
};

/// Fails unless there is at most one system message, first; then questions and answers in turns, beginning with a question, none of
/// them blank questions. `endsWith` is the role of the last: Assistant for training, User where an answer is to follow.
Status checkConversation(const std::vector<ChatMessage>& messages, ChatRole endsWith);

/// A piece of a template.
struct TemplatePart {
    enum class Kind {
        Text,    // as it is
        Special, // the first of `names` that the tokenizer has; else text (an answer's end: the end token)
        Mark,    // as Special, for what is text in the published tokenizers already
        Begin,   // the tokenizer's bos; nothing where it has none
        End      // the tokenizer's eos; nothing where it has none
    } kind = Kind::Text;
    std::vector<std::string> names; // of Text: the text
};

/// What stands around a message. Of an answer, `end` is learned with it; `after` only parts it from what follows.
struct TurnFormat {
    std::vector<TemplatePart> before, end, after;
};

struct ChatTemplate {
    std::string name, label;
    std::string source; // where the format was published
    std::vector<TemplatePart> begin;
    TurnFormat system, user, assistant;
    /// Baichuan 2: in the middle of a conversation an answer's end is not among the tokens; the mark of the next turn has it as its label.
    bool endsOnlyAtTheLast = false;
    std::string jinja; // the same for other tools: tokenizer_config.json's chat_template
};

const std::vector<ChatTemplate>& chatTemplates();
/// Null where there is none of this name.
const ChatTemplate* findChatTemplate(const std::string& name);
Result<const ChatTemplate*> chatTemplateNamed(const std::string& name);
/// The format that the model's family was published with; ChatML for families without one where the tokenizer has its marks, else plain.
const ChatTemplate& defaultChatTemplate(const graph::ExpandedModel& model, const Tokenizer& tokenizer);

/// What a token of a conversation belongs to.
enum class TokenPart : std::uint8_t { Mark, System, User, Answer, End };

struct ChatTokens {
    std::vector<std::int64_t> ids;
    std::vector<std::int64_t> labels; // answers and their ends; all else -100
    std::vector<TokenPart> parts;
};

/// A template with a tokenizer, which must outlive it.
class ChatFormat {
public:
    ChatFormat(const ChatTemplate& chatTemplate, const Tokenizer& tokenizer);

    /// A whole conversation, as it is trained on.
    [[nodiscard]] ChatTokens conversation(const std::vector<ChatMessage>& messages) const;
    /// Up to where the next answer begins: the very ids that stand before that answer in conversation().
    [[nodiscard]] std::vector<std::int64_t> prompt(const std::vector<ChatMessage>& messages) const;
    /// Tokens that end an answer.
    [[nodiscard]] const std::vector<std::int64_t>& stopTokens() const { return m_stopTokens; }
    /// What the tokenizer lacks and what is done instead, a sentence each; empty where it has all that the template names.
    [[nodiscard]] const std::vector<std::string>& fallbacks() const { return m_fallbacks; }
    [[nodiscard]] const ChatTemplate& chatTemplate() const { return m_template; }

private:
    class Writer;
    void write(Writer& writer, const std::vector<ChatMessage>& messages) const;
    void writeParts(Writer& writer, const std::vector<TemplatePart>& parts, TokenPart as) const;
    [[nodiscard]] std::int64_t idOf(const TemplatePart& part, bool isEnd) const; // -1: text, or nothing

    const ChatTemplate& m_template;
    const Tokenizer& m_tokenizer;
    std::vector<std::int64_t> m_stopTokens;
    std::vector<std::string> m_fallbacks;
};

/// chat_template.json beside a tokenizer: which template a model was tuned with. Other tools find the same as "chat_template" in
/// tokenizer_config.json, which is made where there is none.
Status writeChatTemplate(const ChatTemplate& chatTemplate, const Tokenizer& tokenizer, const std::filesystem::path& folder);
/// The template stored in the folder; null where none is. An unknown name is an error.
Result<const ChatTemplate*> storedChatTemplate(const std::filesystem::path& folder);
/// The template of a name; "auto": the one stored in `folder`, else the default.
Result<const ChatTemplate*> chooseChatTemplate(const std::string& name, const std::filesystem::path& folder, const graph::ExpandedModel& model,
                                               const Tokenizer& tokenizer);

} // namespace celloom::engine
