// Patterns over dotted paths, for rules and for lists of parameters.
#pragma once

#include "models/base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace celloom::recipe {

/// A pattern over dotted paths: `*` one name or a part of one, `**` any number of names, `{3..5}` a range, `{a,b}` alternatives:
/// "layers.{3..5}.*.W_pack". Parse once, match often.
class PathPattern {
public:
    static Result<PathPattern> parse(const std::string& text);
    [[nodiscard]] bool matches(const std::string& path) const;

private:
    struct Alternative {
        std::string text;                // a literal, unless it is a range
        std::int64_t low = 0, high = -1; // a range of whole numbers where low <= high
    };
    struct Piece {
        bool isStar = false;
        std::vector<Alternative> alternatives; // of a piece that is no star; a plain text is one literal
    };
    struct Name {
        bool isAnyNumber = false; // "**"
        std::vector<Piece> pieces;
    };
    static Result<Name> parseName(const std::string& name, const std::string& whole);
    static bool matchesName(const Name& name, std::string_view text);
    std::vector<Name> m_names;
};

/// False also for a malformed pattern; PathPattern::parse says what is wrong with it.
bool matches(const std::string& pattern, const std::string& path);

} // namespace celloom::recipe
