#include "models/recipe/path_pattern.h"

#include "models/base/text.h"

#include <algorithm>

namespace celloom::recipe {
namespace {

constexpr std::size_t kMaxPatternBytes = 1024;

tl::unexpected<Error> badPattern(const std::string& pattern, const std::string& what) {
    return fail("the pattern " + inQuotes(pattern) + " " + what + ".", "Patterns look like layers.{3..5}.*.W_pack or **.norm.");
}

/// Splits at `separator` outside of braces.
std::vector<std::string> splitOutsideBraces(const std::string& text, char separator) {
    std::vector<std::string> out(1);
    bool isInside = false;
    for (const char c : text) {
        if (c == '{' || c == '}') isInside = c == '{';
        if (c == separator && !isInside)
            out.emplace_back();
        else
            out.back() += c;
    }
    return out;
}

bool isWholeNumber(std::string_view text) {
    return !text.empty() && text.size() <= 18 && text.find_first_not_of("0123456789") == std::string_view::npos &&
           (text.size() == 1 || text[0] != '0');
}

} // namespace

Result<PathPattern::Name> PathPattern::parseName(const std::string& name, const std::string& whole) {
    Name out;
    if (name.empty()) return badPattern(whole, "has an empty name");
    if (name == "**") {
        out.isAnyNumber = true;
        return out;
    }
    for (std::size_t i = 0; i < name.size();) {
        Piece piece;
        if (name[i] == '*') {
            if (i + 1 < name.size() && name[i + 1] == '*') return badPattern(whole, "joins ** with other text in one name");
            piece.isStar = true;
            ++i;
        } else if (name[i] == '{') {
            const auto close = name.find('}', i);
            if (close == std::string::npos) return badPattern(whole, "has a { without its }");
            for (const std::string& item : splitOutsideBraces(name.substr(i + 1, close - i - 1), ',')) {
                Alternative alternative{item};
                const auto dots = item.find("..");
                if (item.empty() || item.find_first_of("{*") != std::string::npos)
                    return badPattern(whole, "has braces that hold no plain name or range");
                if (dots != std::string::npos) {
                    const bool isRange = readNumber(std::string_view(item).substr(0, dots), alternative.low) &&
                                         readNumber(std::string_view(item).substr(dots + 2), alternative.high);
                    if (!isRange || alternative.low < 0 || alternative.low > alternative.high)
                        return badPattern(whole, "has " + inQuotes(item) + ", which is no range such as 3..5");
                } else if (item.find('.') != std::string::npos) {
                    return badPattern(whole, "has a dot inside braces");
                }
                piece.alternatives.push_back(std::move(alternative));
            }
            i = close + 1;
        } else {
            const auto end = std::min(name.find_first_of("*{", i), name.size());
            piece.alternatives.push_back({name.substr(i, end - i)});
            if (piece.alternatives.back().text.find('}') != std::string::npos) return badPattern(whole, "has a } without its {");
            i = end;
        }
        out.pieces.push_back(std::move(piece));
    }
    return out;
}

Result<PathPattern> PathPattern::parse(const std::string& text) {
    if (text.empty()) return fail("the pattern is empty.", "** matches every cell.");
    if (text.size() > kMaxPatternBytes) return fail("the pattern is longer than " + std::to_string(kMaxPatternBytes) + " bytes.");
    if (text.find_first_of(" \t\r\n:") != std::string::npos) return badPattern(text, "has a space or a colon");
    PathPattern out;
    for (const std::string& name : splitOutsideBraces(text, '.')) {
        CELLOOM_TRY(parsed, parseName(name, text));
        out.m_names.push_back(std::move(parsed));
    }
    return out;
}

/// All positions that the pieces so far can reach, moved on piece by piece: polynomial whatever the pattern.
bool PathPattern::matchesName(const Name& name, std::string_view text) {
    std::vector<bool> reached(text.size() + 1);
    reached[0] = true;
    for (const Piece& piece : name.pieces) {
        std::vector<bool> next(text.size() + 1);
        for (std::size_t at = 0; at <= text.size(); ++at) {
            if (!reached[at]) continue;
            if (piece.isStar) {
                std::fill(next.begin() + static_cast<std::ptrdiff_t>(at), next.end(), true);
                break;
            }
            for (const Alternative& alternative : piece.alternatives) {
                if (alternative.low > alternative.high) {
                    if (text.substr(at).starts_with(alternative.text)) next[at + alternative.text.size()] = true;
                    continue;
                }
                std::int64_t number = 0;
                for (std::size_t length = 1; at + length <= text.size() && isWholeNumber(text.substr(at, length)); ++length)
                    if (readNumber(text.substr(at, length), number) && number >= alternative.low && number <= alternative.high)
                        next[at + length] = true;
            }
        }
        reached = std::move(next);
    }
    return reached[text.size()];
}

bool PathPattern::matches(const std::string& path) const {
    std::vector<bool> reached(m_names.size() + 1); // names of the pattern that the path so far has used up
    const auto skipAnyNumber = [&] {
        for (std::size_t i = 0; i < m_names.size(); ++i)
            if (reached[i] && m_names[i].isAnyNumber) reached[i + 1] = true;
    };
    reached[0] = true;
    skipAnyNumber();
    for (std::size_t from = 0; from <= path.size();) {
        const auto dot = std::min(path.find('.', from), path.size());
        const auto name = std::string_view(path).substr(from, dot - from);
        std::vector<bool> next(m_names.size() + 1);
        for (std::size_t i = 0; i < m_names.size(); ++i) {
            if (!reached[i]) continue;
            if (m_names[i].isAnyNumber)
                next[i] = true;
            else if (matchesName(m_names[i], name))
                next[i + 1] = true;
        }
        reached = std::move(next);
        skipAnyNumber();
        from = dot + 1;
    }
    return reached[m_names.size()];
}

bool matches(const std::string& pattern, const std::string& path) {
    const auto parsed = PathPattern::parse(pattern);
    return parsed && parsed->matches(path);
}

} // namespace celloom::recipe
