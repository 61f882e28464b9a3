// docs/recipe.md and docs/recipe.zh_CN.md: the fields as a page for readers, made from fields(). A test holds the files to this text.
#pragma once

#include <string>

namespace celloom::recipe {

enum class Language { English, Chinese };
std::string fieldReference(Language language);
/// docs/presets.md and docs/presets.zh_CN.md: every preset with its total and where that comes from.
std::string presetReference(Language language);

} // namespace celloom::recipe
