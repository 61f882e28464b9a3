// PNG and JPEG files as pixels. Knows no LibTorch, and trusts no file: sizes are checked before anything is decoded.
#pragma once

#include "models/base/result.h"

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace celloom::engine {

struct Image {
    std::int64_t width = 0, height = 0, channels = 1; // 1 grey, 3 red, green, blue
    std::vector<std::uint8_t> pixels;                 // [height][width][channels]
};

struct ImageSize {
    std::int64_t width = 0, height = 0;
};

inline constexpr std::uint64_t kMostImageFileBytes = 256ull << 20;
inline constexpr std::int64_t kMostImageSide = 1 << 16, kMostImagePixels = 1 << 26; // 64 megapixels

/// PNG (any kind; 16 bits become 8, transparency is dropped) or JPEG (grey or colour; CMYK is refused), told by its first bytes. `channels` 1 or
/// 3: colour becomes grey as ITU-R 601 weighs it (0.299 R + 0.587 G + 0.114 B, rounded, as PIL does). A file that is damaged, cut short or too
/// large is an error at `place`. Orientation tags and colour profiles are not looked at.
Result<Image> decodeImage(std::string_view bytes, std::int64_t channels, const std::string& place);
/// The same of a file.
Result<Image> readImage(const std::filesystem::path& path, std::int64_t channels);

/// Endings that image folders are searched for: ".png", ".jpg", ".jpeg", in any case.
bool isImageFile(const std::filesystem::path& path);

} // namespace celloom::engine
