// docs/recipe.md and docs/recipe.zh_CN.md: the fields as a page for readers, made from fields(). A test holds the files to this text.
#pragma once

#include <string>

namespace celloom::recipe {

enum class Language { English, Chinese };
std::string fieldReference(Language language);

} // namespace celloom::recipe
