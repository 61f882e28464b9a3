// Result<T>: what a user, a file, a wire or a disk can cause comes back as a value, never as an exception.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace celloom {

/// One sentence on what happened, one hint on what to do, and where (a cell path, a recipe field, a file and line).
struct Error {
    std::string message;
    std::string hint;
    std::string place;

    /// "place: message hint", the empty parts left out.
    [[nodiscard]] std::string text() const;
};

template <class T> using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(std::string message, std::string hint = {}, std::string place = {}) {
    return tl::unexpected<Error>(Error{std::move(message), std::move(hint), std::move(place)});
}

/// Ends the program with file, line and reason when only a programmer can have caused it. On in every build.
[[noreturn]] void checkFailed(const char* condition, const char* file, int line);

} // namespace celloom

#define CELLOOM_CHECK(condition) ((condition) ? void(0) : ::celloom::checkFailed(#condition, __FILE__, __LINE__))

// Returns the error of a Result from the enclosing function: CELLOOM_TRY(value, readFile(path));
#define CELLOOM_CONCAT_(a, b) a##b
#define CELLOOM_CONCAT(a, b) CELLOOM_CONCAT_(a, b)
#define CELLOOM_TRY(name, expression) CELLOOM_TRY_(name, expression, CELLOOM_CONCAT(celloomTry, __LINE__))
#define CELLOOM_TRY_(name, expression, holder)                                                                                             \
    auto holder = (expression);                                                                                                            \
    if (!holder) return ::tl::unexpected(std::move(holder).error());                                                                       \
    auto name = std::move(*holder)
#define CELLOOM_TRY_STATUS(expression)                                                                                                     \
    do {                                                                                                                                   \
        if (auto celloomStatus = (expression); !celloomStatus) return ::tl::unexpected(std::move(celloomStatus).error());                  \
    } while (false)
