#include "models/protocol/protocol.h"

#include "models/base/files.h"

#include <cstdlib>
#include <unistd.h>

namespace celloom::protocol {
namespace fs = std::filesystem;
namespace {

constexpr int kMaxDepth = 64; // deeper JSON would exhaust the parser's stack

/// Nesting outside strings, counted before parsing.
bool isTooDeep(std::string_view line) {
    int depth = 0;
    bool inString = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (inString) {
            if (c == '\\')
                ++i;
            else if (c == '"')
                inString = false;
        } else if (c == '"') {
            inString = true;
        } else if (c == '{' || c == '[') {
            if (++depth > kMaxDepth) return true;
        } else if (c == '}' || c == ']') {
            --depth;
        }
    }
    return false;
}

Result<Message> parseLine(std::string_view line) {
    if (isTooDeep(line)) return fail("a message is nested deeper than " + std::to_string(kMaxDepth) + " levels.");
    Message message = Message::parse(line, nullptr, false);
    if (message.is_discarded()) return fail("a line is no JSON: " + std::string(line.substr(0, 80)));
    if (!message.is_object()) return fail("a line is JSON but no object: " + std::string(line.substr(0, 80)));
    const auto type = message.find("type");
    if (type == message.end() || !type->is_string()) return fail("a message has no \"type\": " + std::string(line.substr(0, 80)));
    return message;
}

} // namespace

std::vector<Result<Message>> LineReader::feed(std::string_view bytes) {
    std::vector<Result<Message>> messages;
    while (!bytes.empty()) {
        const std::size_t end = bytes.find('\n');
        const std::string_view piece = bytes.substr(0, end);
        if (!m_skipping && m_buffer.size() + piece.size() > kMaxLineBytes) {
            messages.push_back(fail("a line is longer than " + std::to_string(kMaxLineBytes) + " bytes."));
            m_buffer.clear();
            m_skipping = true;
        }
        if (!m_skipping) m_buffer.append(piece);
        if (end == std::string_view::npos) break;
        if (!m_skipping && m_buffer.find_first_not_of(" \t\r") != std::string::npos) messages.push_back(parseLine(m_buffer));
        m_buffer.clear();
        m_skipping = false;
        bytes.remove_prefix(end + 1);
    }
    return messages;
}

std::string toLine(const Message& message) {
    return message.dump(-1, ' ', false, Message::error_handler_t::replace) + '\n';
}

} // namespace celloom::protocol
