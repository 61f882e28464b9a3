// The part of a run that knows conversations: instruction files, chat templates, answers to held-out questions.
#include "engine/generate/text_predictor.h"
#include "engine/train/llm_trainer.h"
#include "engine/train/text_metrics.h"

#include "models/recipe/measures.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace celloom::engine {
using nlohmann::json;
namespace {

/// "alpaca (instruction, output), JSON Lines: 2 files; …"
std::string formatsOf(const InstructionSplit& split) {
    std::map<std::string, std::int64_t> counts;
    for (std::size_t i = 0; i < split.files.size(); ++i) ++counts[split.formats[i] + ", " + split.files[i].encoding];
    std::string out;
    for (const auto& [name, files] : counts) out += (out.empty() ? "" : "; ") + counted(files, "file") + " " + name;
    return out;
}

} // namespace

Status LLMTrainer::readConversations() {
    m_reporter.stage("reading text");
    CELLOOM_TRY(split, readInstructionSplit(m_recipe, m_files));
    CELLOOM_TRY_STATUS(checkCorpus(split.files));
    m_conversations = std::move(split);
    json files = json::array();
    for (std::size_t i = 0; i < m_conversations.files.size(); ++i)
        files.push_back({{"path", m_conversations.files[i].path.string()},
                         {"format", m_conversations.formats[i]},
                         {"encoding", m_conversations.files[i].encoding}});
    const auto learned = std::ssize(m_conversations.train), held = std::ssize(m_conversations.validation);
    m_reporter.info("conversations",
                    "Read " + formatsOf(m_conversations) + ": " + counted(learned, "conversation") + " to learn from, " + std::to_string(held) + " held out.",
                    json{{"files", files}, {"conversations", learned}, {"held_out", held}}.dump());
    m_reporter.stage("training the tokenizer");
    CELLOOM_TRY(tokenizer, obtainTokenizer(m_recipe, textsOf(m_conversations.train), m_setup.folder.tokenizer()));
    m_tokenizer = std::move(tokenizer);
    return {};
}

Status LLMTrainer::prepareConversations() {
    m_reporter.stage("tokenising");
    const auto folder = m_setup.folder.tokenizer().parent_path();
    CELLOOM_TRY(chosen, chooseChatTemplate(m_recipe.text("data.template"), folder, m_network->model(), *m_tokenizer));
    CELLOOM_TRY_STATUS(writeChatTemplate(*chosen, *m_tokenizer, folder));
    m_chat = std::make_unique<ChatFormat>(*chosen, *m_tokenizer);
    m_reporter.info("template", "Chat template: " + chosen->label + " (" + chosen->source + ").",
                    json{{"template", chosen->name}, {"source", chosen->source}, {"fallbacks", m_chat->fallbacks()}}.dump());
    for (const std::string& sentence : m_chat->fallbacks())
        m_reporter.warning("template_fallback", {sentence, {}, {}}, json{{"template", chosen->name}, {"sentence", sentence}}.dump());
    CELLOOM_TRY(data, prepareInstructions(m_recipe, m_conversations, *m_chat, *m_tokenizer, [this] { return !m_control.isStopAsked(); }));
    m_data = std::move(data);
    reportSamples(recipe::trains(m_recipe) ? m_data.samples : m_data.heldOut);
    m_conversations.train = {}; // as rows now
    return {};
}

void LLMTrainer::reportSamples(const ChatStatistics& s) {
    const bool keeps = m_recipe.text("data.untrainable") == "keep";
    std::string said = counted(s.rows, "sequence") + " of " + counted(s.tokens, "token") + ", " + std::to_string(s.trainable) + " of them learned; the longest of " +
                       counted(s.conversations, "conversation") + " has " + counted(s.longest, "token") + ".";
    const bool isPlain = s.truncated + s.dropped + s.untrainable == 0;
    if (s.truncated > 0) said += " " + std::to_string(s.truncated) + " are longer than the sequence and were shortened (" + m_recipe.text("data.truncation") + ").";
    if (s.dropped > 0) said += " " + std::to_string(s.dropped) + " are longer than the sequence and were left out.";
    if (s.untrainable > 0) said += " " + std::to_string(s.untrainable) + " samples have no trainable token and were " + (keeps ? "kept." : "left out.");
    json lengths = json::array();
    for (const auto& bin : s.lengths) lengths.push_back({{"up_to", bin.upTo}, {"count", bin.count}});
    const std::string data = json{{"conversations", s.conversations}, {"sequences", s.rows}, {"tokens", s.tokens}, {"trainable", s.trainable},
                                  {"truncated", s.truncated}, {"dropped", s.dropped}, {"untrainable", s.untrainable}, {"longest", s.longest},
                                  {"lengths", lengths}}
                                 .dump();
    if (isPlain)
        m_reporter.info("samples", said, data);
    else
        m_reporter.warning("samples", {said, {}, {}}, data);
}

/// A text to continue: of a run on conversations, a question.
std::vector<std::int64_t> LLMTrainer::promptOf(const std::string& text) const {
    return m_chat && !text.empty() ? m_chat->prompt({{ChatRole::User, text}}) : m_tokenizer->encode(text);
}

/// Answers to the last questions of held-out conversations [first, end).
Result<std::vector<std::string>> LLMTrainer::answersTo(std::int64_t first, std::int64_t end) {
    TokenRequest request;
    request.sampling.temperature = 0;
    request.sampling.maxNewTokens = static_cast<int>(m_recipe.integer("evaluate.generate_tokens"));
    request.sampling.stopTokens = m_chat->stopTokens();
    std::vector<TokenRequest> requests;
    for (std::int64_t i = first; i < end; ++i) {
        std::vector<ChatMessage> messages = m_conversations.validation[static_cast<std::size_t>(i)].messages;
        messages.pop_back();
        request.prompt = m_chat->prompt(messages);
        requests.push_back(request);
    }
    GenerateOptions options;
    options.isCancelled = [this] { return m_control.isStopAsked(); };
    CELLOOM_TRY(results, generateTokens(*m_network, requests, options));
    std::vector<std::string> answers;
    for (const TokenResult& result : results) {
        std::vector<std::int64_t> ids;
        for (const NewToken& token : result.tokens) ids.push_back(token.id);
        answers.push_back(m_tokenizer->decode(ids));
    }
    return answers;
}

std::int64_t LLMTrainer::questionsToAsk() const {
    return m_chat ? std::min(m_recipe.integer("evaluate.generate"), std::ssize(m_conversations.validation)) : 0;
}

/// The first held-out questions answered greedily. An answer counts where it equals the expected one but for white space around it.
/// `metric` gets the share that counts, which is returned; nothing where there is no question, or a stop was asked for meanwhile.
Result<std::optional<double>> LLMTrainer::answerQuestions(const std::string& metric, const std::string& event) {
    const auto asked = questionsToAsk();
    if (asked == 0) return std::nullopt;
    m_reporter.stage("answering");
    constexpr std::int64_t kTogether = 8, kShown = 3, kKept = 20; // prompts of one batch; samples; wrong answers in the event
    std::int64_t matches = 0;
    BleuScore bleu;
    RougeL rouge;
    json wrong = json::array();
    for (std::int64_t first = 0; first < asked; first += kTogether) {
        const std::int64_t end = std::min(first + kTogether, asked);
        CELLOOM_TRY(answers, answersTo(first, end));
        if (m_control.isStopAsked()) return std::nullopt;
        for (std::int64_t i = first; i < end; ++i) {
            const std::vector<ChatMessage>& messages = m_conversations.validation[static_cast<std::size_t>(i)].messages;
            const std::string &answer = answers[static_cast<std::size_t>(i - first)], &expected = messages.back().text, &question = messages[messages.size() - 2].text;
            const bool isMatch = isSameAnswer(answer, expected);
            matches += isMatch;
            bleu.update(wordsOf(answer), {wordsOf(expected)});
            rouge.update(wordsOf(answer), wordsOf(expected));
            if (i < kShown) m_reporter.sample(question, answer);
            if (!isMatch && std::ssize(wrong) < kKept) wrong.push_back({{"question", question}, {"expected", expected}, {"answer", answer}});
        }
    }
    const double share = static_cast<double>(matches) / static_cast<double>(asked);
    m_reporter.metric(metric, share);
    const std::string group = metric.substr(0, metric.find('/') + 1);
    json measured = json::object();
    for (const std::string& name : m_recipe.list("evaluate.metrics")) {
        if (!recipe::isTextMetric(name)) continue;
        CELLOOM_TRY(value, name == "bleu" ? bleu.eval() : rouge.eval());
        m_reporter.metric(group + name, value);
        measured[name] = value;
    }
    m_reporter.info(event, answersText(share) + " answered exactly as expected" + (event == "base_answers" ? " before training." : "."),
                    json{{"matches", matches}, {"questions", asked}, {"metrics", measured}, {"wrong", wrong}}.dump(-1, ' ', false, json::error_handler_t::replace));
    return share;
}

/// "35 of 50 held-out questions".
std::string LLMTrainer::answersText(double share) const {
    const auto asked = questionsToAsk();
    return std::to_string(std::llround(share * static_cast<double>(asked))) + " of " + counted(asked, "held-out question");
}

/// What the base answers before the first step: the yardstick of a fine-tuning, as the bigram model is of a pretraining.
Status LLMTrainer::measureBaseAnswers() {
    if (m_state.baselineMatch >= 0 || m_model->step() > 0) return {};
    CELLOOM_TRY(share, answerQuestions("baseline/exact_match", "base_answers"));
    m_state.baselineMatch = share.value_or(-1);
    return {};
}

Status LLMTrainer::checkAnswers() {
    CELLOOM_TRY(share, answerQuestions("eval/exact_match", "answers"));
    if (share) m_lastMatch = *share;
    m_reporter.stage(m_isTraining ? "training" : "evaluating");
    return {};
}

} // namespace celloom::engine
