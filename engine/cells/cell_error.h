// What a cell throws when it has more to say than a sentence: a hint, and a place inside the cell. The network hands it on as it is.
#pragma once

#include "models/base/result.h"

#include <exception>

namespace celloom::engine {

struct CellError : std::exception {
    explicit CellError(Error error) : error(std::move(error)) {}
    const char* what() const noexcept override { return error.message.c_str(); }
    Error error; // its place is the cell's path, perhaps with more; empty: the network knows the path
};

} // namespace celloom::engine
