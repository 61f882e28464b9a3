#include "models/recipe/list_text.h"

#include <string_view>

namespace celloom::recipe {
namespace {

bool hasBalancedBraces(const std::string& text) {
    int depth = 0;
    for (const char c : text) {
        depth += c == '{' ? 1 : c == '}' ? -1 : 0;
        if (depth < 0) return false;
    }
    return depth == 0;
}

std::string escapeItem(const std::string& item) {
    const bool isBalanced = hasBalancedBraces(item);
    std::string out;
    int depth = 0;
    for (const char c : item) {
        const bool isBrace = c == '{' || c == '}';
        if (isBrace && isBalanced) depth += c == '{' ? 1 : -1;
        if (c == '\n')
            out += "\\n";
        else if (c == '\\' || (c == ',' && depth == 0) || (isBrace && !isBalanced))
            out += std::string("\\") + c;
        else
            out += c;
    }
    return out;
}

} // namespace

std::vector<std::string> listFromText(const std::string& text) {
    std::vector<std::string> out;
    std::string item;
    int depth = 0;
    const auto finish = [&] {
        const auto first = item.find_first_not_of(" \t\r"), last = item.find_last_not_of(" \t\r");
        if (first != std::string::npos) out.push_back(item.substr(first, last - first + 1));
        item.clear();
        depth = 0;
    };
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '\\' && i + 1 < text.size() && std::string_view(",\\{}n").find(text[i + 1]) != std::string_view::npos) {
            item += text[++i] == 'n' ? '\n' : text[i];
        } else if ((c == ',' && depth == 0) || c == '\n') {
            finish();
        } else {
            depth += c == '{' ? 1 : c == '}' && depth > 0 ? -1 : 0;
            item += c;
        }
    }
    finish();
    return out;
}

std::string listToText(const std::vector<std::string>& items) {
    std::string out;
    for (std::size_t i = 0; i < items.size(); ++i) out += (i ? "," : "") + escapeItem(items[i]);
    return out;
}

} // namespace celloom::recipe
