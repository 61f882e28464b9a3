#include "engine/data/image_file.h"

#include "models/base/files.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

// libjpeg's header needs std::FILE and size_t before it.
#include <jpeglib.h>

#include <jerror.h>
#include <png.h>

namespace celloom::engine {
namespace {

constexpr int kMostScans = 500; // of a progressive JPEG: more is a file made to keep readers busy

Status checkSize(std::uint64_t width, std::uint64_t height, const std::string& place) {
    const auto side = static_cast<std::uint64_t>(kMostImageSide);
    if (width >= 1 && height >= 1 && width <= side && height <= side && width * height <= static_cast<std::uint64_t>(kMostImagePixels)) return {};
    return fail("is an image of " + std::to_string(width) + " x " + std::to_string(height) + " pixels, more than " + std::to_string(kMostImagePixels) + " in all.",
                "Make it smaller, or leave it out.", place);
}

tl::unexpected<Error> damaged(const std::string& kind, const std::string& why, const std::string& place) {
    return fail("is a damaged " + kind + ": " + why + ".", "Leave it out, or fetch it again.", place);
}

/// [n][3] to [n] grey, in fixed point with 16 bits, as PIL.
void toGrey(const std::uint8_t* rgb, std::size_t step, std::size_t count, std::uint8_t* grey) {
    for (std::size_t i = 0; i < count; ++i, rgb += step)
        grey[i] = static_cast<std::uint8_t>((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

// ---- PNG ----

Result<Image> decodePng(std::string_view bytes, std::int64_t channels, const std::string& place) {
    png_image png{};
    png.version = PNG_IMAGE_VERSION;
    if (!png_image_begin_read_from_memory(&png, bytes.data(), bytes.size())) return damaged("PNG", png.message, place);
    struct Closer {
        png_image& png;
        ~Closer() { png_image_free(&png); }
    } closer{png};
    CELLOOM_TRY_STATUS(checkSize(png.width, png.height, place));
    png.flags |= PNG_IMAGE_FLAG_16BIT_sRGB; // 16-bit files mean the same colours as 8-bit ones
    png.format = PNG_FORMAT_RGBA;           // dropping the transparency ourselves needs no background colour
    std::vector<std::uint8_t> rgba(PNG_IMAGE_SIZE(png));
    if (!png_image_finish_read(&png, nullptr, rgba.data(), 0, nullptr)) return damaged("PNG", png.message, place);
    if (PNG_IMAGE_FAILED(png)) return damaged("PNG", png.message, place);
    const std::size_t count = std::size_t{png.width} * png.height;
    Image image{png.width, png.height, channels, std::vector<std::uint8_t>(count * static_cast<std::size_t>(channels))};
    if (channels == 1) toGrey(rgba.data(), 4, count, image.pixels.data());
    else
        for (std::size_t i = 0; i < count; ++i) std::memcpy(&image.pixels[3 * i], &rgba[4 * i], 3);
    return image;
}

// ---- JPEG ----

/// libjpeg's errors, and those warnings that mean lost pixels, end decoding by longjmp: between setjmp and it nothing with a destructor may live.
struct JpegErrors {
    jpeg_error_mgr manager; // first: libjpeg gives this back
    std::jmp_buf jump;
    char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void giveUp(j_common_ptr info) {
    auto* errors = reinterpret_cast<JpegErrors*>(info->err);
    (*info->err->format_message)(info, errors->message);
    std::longjmp(errors->jump, 1);
}

void onMessage(j_common_ptr info, int level) {
    const int code = info->err->msg_code;
    const bool isHarmless = code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR;
    if (level < 0 && !isHarmless) giveUp(info);
}

void onProgress(j_common_ptr info) {
    auto* decompress = reinterpret_cast<j_decompress_ptr>(info);
    if (decompress->input_scan_number <= kMostScans) return;
    std::snprintf(reinterpret_cast<JpegErrors*>(info->err)->message, JMSG_LENGTH_MAX, "it has more than %d scans", kMostScans);
    std::longjmp(reinterpret_cast<JpegErrors*>(info->err)->jump, 1);
}

struct JpegReader {
    jpeg_decompress_struct info{};
    JpegErrors errors{};
    jpeg_progress_mgr progress{};

    JpegReader() {
        info.err = jpeg_std_error(&errors.manager);
        errors.manager.error_exit = giveUp;
        errors.manager.emit_message = onMessage;
        progress.progress_monitor = onProgress;
    }
    JpegReader(const JpegReader&) = delete;
    JpegReader& operator=(const JpegReader&) = delete;
    ~JpegReader() { jpeg_destroy_decompress(&info); }

    /// False: errors.message says why.
    bool readHeader(std::string_view bytes) {
        if (setjmp(errors.jump) != 0) return false;
        jpeg_create_decompress(&info);
        info.progress = &progress;
        jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
        jpeg_read_header(&info, TRUE);
        return true;
    }
    /// `pixels`: room for the whole image.
    bool readPixels(std::uint8_t* pixels, J_COLOR_SPACE space) {
        if (setjmp(errors.jump) != 0) return false;
        info.out_color_space = space;
        jpeg_start_decompress(&info);
        const std::size_t stride = std::size_t{info.output_width} * static_cast<std::size_t>(info.output_components);
        while (info.output_scanline < info.output_height) {
            JSAMPROW row = pixels + stride * info.output_scanline;
            jpeg_read_scanlines(&info, &row, 1);
        }
        jpeg_finish_decompress(&info);
        return true;
    }
};

Result<Image> decodeJpeg(std::string_view bytes, std::int64_t channels, const std::string& place) {
    JpegReader reader;
    if (!reader.readHeader(bytes)) return damaged("JPEG", reader.errors.message, place);
    CELLOOM_TRY_STATUS(checkSize(reader.info.image_width, reader.info.image_height, place));
    const bool isGrey = reader.info.jpeg_color_space == JCS_GRAYSCALE;
    if (!isGrey && reader.info.num_components != 3)
        return fail("is a JPEG of " + std::to_string(reader.info.num_components) + " colours (CMYK).", "Save it as RGB.", place);
    const std::size_t count = std::size_t{reader.info.image_width} * reader.info.image_height, given = isGrey ? 1 : 3;
    std::vector<std::uint8_t> pixels(count * given);
    if (!reader.readPixels(pixels.data(), isGrey ? JCS_GRAYSCALE : JCS_RGB)) return damaged("JPEG", reader.errors.message, place);
    Image image{reader.info.image_width, reader.info.image_height, channels, {}};
    if (given == static_cast<std::size_t>(channels)) {
        image.pixels = std::move(pixels);
        return image;
    }
    image.pixels.resize(count * static_cast<std::size_t>(channels));
    if (channels == 1) toGrey(pixels.data(), 3, count, image.pixels.data());
    else
        for (std::size_t i = 0; i < count; ++i) std::fill_n(&image.pixels[3 * i], 3, pixels[i]);
    return image;
}

} // namespace

bool isImageFile(const std::filesystem::path& path) {
    std::string ending = path.extension().string();
    std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
    return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

Result<Image> decodeImage(std::string_view bytes, std::int64_t channels, const std::string& place) {
    CELLOOM_CHECK(channels == 1 || channels == 3);
    if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return decodePng(bytes, channels, place);
    if (bytes.starts_with("\xff\xd8\xff")) return decodeJpeg(bytes, channels, place);
    return fail("is neither a PNG nor a JPEG, whatever its name says.", "Leave it out.", place);
}

Result<Image> readImage(const std::filesystem::path& path, std::int64_t channels) {
    CELLOOM_TRY(bytes, readFile(path, kMostImageFileBytes));
    return decodeImage(bytes, channels, path.string());
}

} // namespace celloom::engine
