// The files of resources/library and resources/templates as text, written by CMake into resources.cpp. Internal to models/library.
#pragma once

#include <string_view>
#include <vector>

namespace celloom::library {

struct Resource {
    std::string_view name; // without the ending: "MultiHeadAttention"
    std::string_view text;
};

std::vector<Resource> compositeResources();
std::vector<Resource> templateResources();

} // namespace celloom::library
