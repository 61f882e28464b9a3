#include "engine/data/instructions.h"

#include "engine/text/encoding.h"
#include "models/base/files.h"
#include "models/base/text.h"
#include "models/graph/json_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

namespace celloom::engine {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

constexpr std::uint64_t kMaxFileBytes = 4ull << 30;
constexpr std::size_t kMaxListBytes = std::size_t(1) << 30; // of a JSON list, which is parsed as a whole
constexpr std::size_t kMaxRowBytes = 64u << 20;
constexpr int kMaxDepth = 32;
constexpr std::size_t kNamedProblems = 5; // rows that one error names

/// The usual names of a question and an answer, most specific first.
const std::vector<std::pair<std::string, std::string>>& knownPairs() {
    static const std::vector<std::pair<std::string, std::string>> pairs{{"instruction", "output"}, {"instruction", "response"}, {"prompt", "response"},
                                                                        {"prompt", "completion"},  {"question", "answer"},      {"query", "response"},
                                                                        {"input", "output"}};
    return pairs;
}

bool hasList(const json& row, const char* key) { return row.is_object() && row.contains(key) && row[key].is_array(); }

std::string keysOf(const json& row) {
    std::vector<std::string> keys;
    if (row.is_object())
        for (const auto& item : row.items()) keys.push_back(inQuotes(item.key(), 40));
    return keys.empty() ? graph::describe(row) : "the keys " + joined(keys, 12);
}

const char* nameOf(InstructionFormat format) {
    switch (format) {
    case InstructionFormat::ShareGpt:
        return "sharegpt";
    case InstructionFormat::Messages:
        return "messages";
    default:
        return "alpaca";
    }
}

/// What a row looks like; nothing where it is like none.
std::optional<InstructionFormat> looksLike(const json& row) {
    if (hasList(row, "conversations")) return InstructionFormat::ShareGpt;
    if (hasList(row, "messages")) return InstructionFormat::Messages;
    if (row.is_object())
        for (const auto& [question, answer] : knownPairs())
            if (row.contains(question) && row.contains(answer)) return InstructionFormat::Alpaca;
    return {};
}

/// How the rows of one file are read.
struct Reading {
    InstructionFormat format = InstructionFormat::Auto;
    InstructionColumns columns; // of Alpaca, all names known
    std::string description;
};

std::string fittingHint(const json& row, InstructionFormat asked) {
    const auto fitting = looksLike(row);
    if (fitting == asked && asked != InstructionFormat::Alpaca) return "Correct these rows, or take them out.";
    if (!fitting || *fitting == asked) return "Name the columns of question and answer in data.columns, or choose another data.format.";
    return std::string("It looks like data.format \"") + nameOf(*fitting) + "\".";
}

/// The format of a file from its first row, or an error that says what is there.
Result<Reading> readingOf(const json& first, InstructionFormat asked, const InstructionColumns& columns) {
    Reading reading{asked, columns, {}};
    if (asked == InstructionFormat::Auto) {
        const auto found = columns.isGiven() ? InstructionFormat::Alpaca : looksLike(first);
        if (!found)
            return fail("row 1 has " + keysOf(first) + ", which is no format of instructions that is known.",
                        "Known are alpaca (instruction, input, output; question and answer; …), sharegpt (conversations) and messages. Other names of "
                        "columns can be given in data.columns.");
        reading.format = *found;
    }
    if (reading.format != InstructionFormat::Alpaca) {
        reading.description = nameOf(reading.format);
        return reading;
    }
    InstructionColumns& names = reading.columns;
    for (const auto& [question, answer] : knownPairs()) {
        const bool fits = first.is_object() && (!names.question.empty() || first.contains(question)) && (!names.answer.empty() || first.contains(answer));
        if (!fits) continue;
        if (names.question.empty()) names.question = question;
        if (names.answer.empty()) names.answer = answer;
    }
    if (names.question.empty() || names.answer.empty()) // the file will fail at its first row, with the usual names
        names.question = names.question.empty() ? "instruction" : names.question, names.answer = names.answer.empty() ? "output" : names.answer;
    if (names.input.empty() && names.question != "input") names.input = "input";
    if (names.system.empty()) names.system = "system";
    reading.description = "alpaca (" + names.question + (first.is_object() && first.contains(names.input) ? ", " + names.input : "") + ", " + names.answer + ")";
    return reading;
}

/// A text of a row by its key. Optional ones may be missing or null.
Result<std::string> textOf(const json& row, const std::string& key, bool isOptional) {
    if (!row.contains(key) || row[key].is_null()) {
        if (isOptional) return std::string();
        return fail("lacks " + inQuotes(key));
    }
    if (!row[key].is_string()) return fail("has " + graph::describe(row[key]) + " as " + inQuotes(key) + ", expected text");
    return row[key].get<std::string>();
}

Result<ChatRole> roleOf(const std::string& name) {
    if (name == "system") return ChatRole::System;
    if (name == "user" || name == "human") return ChatRole::User;
    if (name == "assistant" || name == "gpt" || name == "bot" || name == "model") return ChatRole::Assistant;
    return fail("has a message from " + inQuotes(name, 40) + "; system, user (human) and assistant (gpt) are known");
}

Result<std::vector<ChatMessage>> messagesOf(const json& list, const char* roleKey, const char* textKey) {
    std::vector<ChatMessage> messages;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const std::string which = ", message " + std::to_string(i + 1);
        if (!list[i].is_object()) return fail("has " + graph::describe(list[i]) + which + ", expected an object");
        const auto role = textOf(list[i], roleKey, false), text = textOf(list[i], textKey, false);
        if (!role) return fail(role.error().message + which);
        if (!text) return fail(text.error().message + which);
        const auto known = roleOf(*role);
        if (!known) return fail(known.error().message);
        messages.push_back({*known, *text});
    }
    return messages;
}

/// The rounds before the question: pairs of a question and its answer.
Status addHistory(std::vector<ChatMessage>& messages, const json& row, const InstructionColumns& names) {
    const bool isTaken = names.question == "history" || names.answer == "history" || names.input == "history" || names.system == "history";
    if (isTaken || !row.contains("history") || row["history"].is_null() || row["history"] == "") return {};
    const json& rounds = row["history"];
    const auto isRound = [](const json& one) { return one.is_array() && one.size() == 2 && one[0].is_string() && one[1].is_string(); };
    if (!rounds.is_array()) return fail("has " + graph::describe(rounds) + " as \"history\", expected a list of pairs of question and answer");
    for (std::size_t i = 0; i < rounds.size(); ++i) {
        if (!isRound(rounds[i])) return fail("has no pair of question and answer as round " + std::to_string(i + 1) + " of \"history\"");
        messages.push_back({ChatRole::User, rounds[i][0].get<std::string>()});
        messages.push_back({ChatRole::Assistant, rounds[i][1].get<std::string>()});
    }
    return {};
}

Result<std::vector<ChatMessage>> alpacaMessages(const json& row, const InstructionColumns& names) {
    CELLOOM_TRY(question, textOf(row, names.question, false));
    CELLOOM_TRY(answer, textOf(row, names.answer, false));
    CELLOOM_TRY(input, textOf(row, names.input, true));
    CELLOOM_TRY(system, textOf(row, names.system, true));
    std::vector<ChatMessage> messages;
    if (!system.empty()) messages.push_back({ChatRole::System, system});
    CELLOOM_TRY_STATUS(addHistory(messages, row, names));
    messages.push_back({ChatRole::User, input.empty() ? question : question + "\n" + input});
    messages.push_back({ChatRole::Assistant, answer});
    return messages;
}

/// One row as messages; the error's message is a part of a sentence: "lacks "output"".
Result<std::vector<ChatMessage>> messagesOfRow(const json& row, const Reading& reading) {
    if (!row.is_object()) return fail("is " + graph::describe(row) + ", expected an object");
    std::vector<ChatMessage> messages;
    if (reading.format == InstructionFormat::Alpaca) {
        CELLOOM_TRY(read, alpacaMessages(row, reading.columns));
        messages = std::move(read);
    } else {
        const bool isShareGpt = reading.format == InstructionFormat::ShareGpt;
        const char* key = isShareGpt ? "conversations" : "messages";
        if (!row.contains(key)) return fail("lacks " + inQuotes(key));
        if (!row[key].is_array()) return fail("has " + graph::describe(row[key]) + " as " + inQuotes(key) + ", expected a list");
        CELLOOM_TRY(read, isShareGpt ? messagesOf(row[key], "from", "value") : messagesOf(row[key], "role", "content"));
        if (isShareGpt && row.contains("system") && row["system"].is_string() && !row["system"].get_ref<const std::string&>().empty())
            read.insert(read.begin(), {ChatRole::System, row["system"].get<std::string>()});
        messages = std::move(read);
    }
    if (const auto status = checkConversation(messages, ChatRole::Assistant); !status) {
        std::string said = status.error().message;
        if (said.ends_with('.')) said.pop_back();
        return fail(said);
    }
    return messages;
}

/// The rows of a file, one after another; a row that is no JSON is a problem of its own.
class Rows {
public:
    Rows(const std::string& text, const std::string& place) : m_text(text), m_place(place) {}

    Status open() {
        const std::size_t first = m_text.find_first_not_of(" \t\r\n");
        if (first == std::string::npos) return fail("holds nothing.", "Take it out of the list.", m_place);
        m_isList = m_text[first] == '[';
        if (!m_isList) return {};
        CELLOOM_TRY(list, graph::parseJson(m_text, m_place, {kMaxListBytes, kMaxDepth}));
        m_list = std::move(list);
        if (m_list.empty()) return fail("is an empty list.", "Take it out of the list of files.", m_place);
        return {};
    }
    bool isList() const { return m_isList; }
    /// The next row, or an error that is a part of a sentence; nothing after the last.
    std::optional<Result<json>> next() {
        if (m_isList) return m_at < m_list.size() ? std::optional<Result<json>>(std::move(m_list[m_at++])) : std::nullopt;
        while (m_at < m_text.size()) {
            const std::size_t end = std::min(m_text.find('\n', m_at), m_text.size());
            std::string line = m_text.substr(m_at, end - m_at);
            m_at = end + 1;
            if (line.ends_with('\r')) line.pop_back();
            if (line.find_first_not_of(" \t") == std::string::npos) continue;
            auto parsed = graph::parseJson(line, {}, {kMaxRowBytes, kMaxDepth});
            if (!parsed) { // a part of a sentence
                std::string said = parsed.error().message;
                if (said.ends_with('.')) said.pop_back();
                return Result<json>(fail(std::move(said)));
            }
            return Result<json>(std::move(*parsed));
        }
        return {};
    }

private:
    const std::string& m_text;
    std::string m_place;
    bool m_isList = false;
    json m_list;
    std::size_t m_at = 0;
};

Error problemsError(const std::vector<std::string>& named, std::size_t count, const std::string& hint, const std::string& place) {
    std::string message;
    for (const std::string& one : named) message += (message.empty() ? "" : "; ") + one;
    if (count > named.size()) message += "; and " + std::to_string(count - named.size()) + " more rows are wrong";
    return {message + ". Nothing was imported.", hint, place};
}

Status readFileInto(InstructionSet& out, const std::string& text, InstructionFormat format, const InstructionColumns& columns, const std::string& place) {
    Rows rows(text, place);
    CELLOOM_TRY_STATUS(rows.open());
    std::optional<Reading> reading;
    std::vector<std::string> named;
    std::string hint;
    std::size_t problems = 0;
    std::int64_t number = 0;
    const auto wrong = [&](const std::string& what, const std::string& advice) {
        if (problems++ < kNamedProblems) named.push_back("row " + std::to_string(number) + " " + what);
        if (hint.empty()) hint = advice;
    };
    while (auto row = rows.next()) {
        ++number;
        if (!*row) {
            wrong(row->error().message, "Each line is one row: a JSON object.");
            continue;
        }
        if (!reading) {
            auto found = readingOf(**row, format, columns);
            if (!found) return fail(found.error().message, found.error().hint, place);
            reading = std::move(*found);
        }
        auto messages = messagesOfRow(**row, *reading);
        if (!messages)
            wrong(messages.error().message, fittingHint(**row, reading->format));
        else
            out.conversations.push_back({std::move(*messages), out.files.size() - 1, number});
    }
    if (problems > 0) return tl::unexpected(problemsError(named, problems, hint, place));
    out.formats.push_back(reading->description + (rows.isList() ? ", JSON" : ", JSON Lines"));
    return {};
}

} // namespace

InstructionFormat instructionFormatNamed(const std::string& name) {
    return name == "alpaca"     ? InstructionFormat::Alpaca
           : name == "sharegpt" ? InstructionFormat::ShareGpt
           : name == "messages" ? InstructionFormat::Messages
                                : InstructionFormat::Auto;
}

Result<InstructionColumns> InstructionColumns::parse(const std::vector<std::string>& items) {
    InstructionColumns out;
    const std::map<std::string, std::string InstructionColumns::*> names{{"question", &InstructionColumns::question},
                                                                         {"input", &InstructionColumns::input},
                                                                         {"answer", &InstructionColumns::answer},
                                                                         {"system", &InstructionColumns::system}};
    for (const std::string& item : items) {
        const std::size_t equals = item.find('=');
        const auto found = names.find(item.substr(0, equals));
        if (equals == std::string::npos || equals + 1 == item.size() || found == names.end())
            return fail("has " + inQuotes(item) + ".", "Give question, input, answer or system, an equals sign and the file's name for it: answer=reply.", "data.columns");
        if (!(out.*found->second).empty()) return fail("gives " + inQuotes(found->first) + " twice.", {}, "data.columns");
        out.*found->second = item.substr(equals + 1);
    }
    return out;
}

Result<InstructionSet> readInstructions(const std::vector<fs::path>& files, InstructionFormat format, const InstructionColumns& columns,
                                        const std::string& encoding) {
    InstructionSet out;
    for (const fs::path& path : files) {
        CELLOOM_TRY(bytes, readFile(path, kMaxFileBytes));
        CELLOOM_TRY(decoded, decodeText(bytes, path.string(), encoding));
        out.files.push_back({path, sha256(bytes), static_cast<std::int64_t>(bytes.size()), decoded.encoding});
        bytes = {};
        CELLOOM_TRY_STATUS(readFileInto(out, decoded.text, format, columns, path.string()));
    }
    return out;
}

Result<std::vector<ChatMessage>> messagesFromJson(const std::string& text, const std::string& place) {
    CELLOOM_TRY(parsed, graph::parseJson(text, place));
    const json* list = &parsed;
    for (const char* key : {"messages", "conversations"})
        if (hasList(parsed, key)) list = &parsed[key];
    if (!list->is_array() || list->empty()) return fail("holds no list of messages.", "Give [{\"role\": \"user\", \"content\": \"…\"}].", place);
    const bool isShareGpt = (*list)[0].is_object() && (*list)[0].contains("from");
    auto messages = isShareGpt ? messagesOf(*list, "from", "value") : messagesOf(*list, "role", "content");
    if (!messages) return fail(messages.error().message + ".", {}, place);
    return std::move(*messages);
}

} // namespace celloom::engine
