// Lists as one line of text, for the command line and the form: items parted by commas outside of braces, or by line breaks.
// "\," is a comma inside an item, "\n" a line break; "\\", "\{" and "\}" stand for themselves.
#pragma once

#include <string>
#include <vector>

namespace celloom::recipe {

/// Outer blanks of items and empty items are dropped.
std::vector<std::string> listFromText(const std::string& text);
std::string listToText(const std::vector<std::string>& items);

} // namespace celloom::recipe
