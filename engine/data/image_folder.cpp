#include "engine/data/image_folder.h"

#include "engine/cells/cell.h"
#include "models/base/text.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

namespace celloom::engine {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostImages = 10'000'000, kMostClasses = 100'000;

bool isHidden(const fs::path& path) { return path.filename().string().starts_with("."); }

tl::unexpected<Error> unreadable(const std::error_code& error, const fs::path& path) { return fail("cannot be read: " + error.message() + ".", {}, path.string()); }

/// The images of one class, sorted.
Result<std::vector<fs::path>> imagesIn(const fs::path& folder) {
    std::vector<fs::path> out;
    std::error_code error;
    for (fs::recursive_directory_iterator item(folder, error), end; !error && item != end; item.increment(error)) {
        if (isHidden(item->path())) {
            item.disable_recursion_pending();
            continue;
        }
        if (!item->is_regular_file(error) || !isImageFile(item->path())) continue;
        out.push_back(item->path());
        if (out.size() > kMostImages) return fail("holds more than " + std::to_string(kMostImages) + " images.", "Take a part of them.", folder.string());
    }
    if (error) return unreadable(error, folder);
    if (out.empty()) return fail("is a class without a PNG or JPEG file.", "Take the folder away, or put images into it.", folder.string());
    std::sort(out.begin(), out.end());
    return out;
}

/// Adds the files of a folder's classes, by class.
Status addFolder(const fs::path& folder, std::map<std::string, std::vector<fs::path>>& byClass) {
    const std::string hint = "Give a folder that has a sub-folder a class, with the images in these.";
    std::error_code error;
    if (!fs::is_directory(folder, error)) return fail("is no folder.", hint, folder.string());
    bool hasClass = false;
    for (fs::directory_iterator item(folder, error), end; !error && item != end; item.increment(error)) {
        if (isHidden(item->path())) continue;
        if (!item->is_directory(error)) {
            if (isImageFile(item->path())) return fail("lies beside the folders of the classes.", hint, item->path().string());
            continue;
        }
        hasClass = true;
        const std::string name = item->path().filename().string();
        if (!isUtf8(name)) return fail("has a sub-folder whose name is no UTF-8.", "Rename it.", folder.string());
        CELLOOM_TRY(files, imagesIn(item->path()));
        auto& all = byClass[name];
        all.insert(all.end(), files.begin(), files.end());
    }
    if (error) return unreadable(error, folder);
    if (!hasClass) return fail("has no sub-folder.", hint, folder.string());
    if (byClass.size() > kMostClasses) return fail("has more than " + std::to_string(kMostClasses) + " classes.", hint, folder.string());
    return {};
}

Result<std::vector<float>> numbersOf(const recipe::Recipe& recipe, const char* key, std::int64_t channels, bool mustBePositive) {
    std::vector<float> out;
    for (const std::string& text : recipe.list(key)) {
        float number = 0;
        if (!readNumber(text, number) || !std::isfinite(number) || (mustBePositive && number <= 0))
            return fail("has " + inQuotes(text) + (mustBePositive ? ", expected a number above 0." : ", expected a number."), {}, key);
        out.push_back(number);
    }
    if (out.size() == 1) out.resize(static_cast<std::size_t>(channels), out[0]);
    if (!out.empty() && std::ssize(out) != channels)
        return fail("has " + std::to_string(out.size()) + " numbers for " + std::to_string(channels) + " channels.", "Give one for each channel, or one for all.", key);
    return out;
}

/// [H,W,C] as a view of the image's own pixels.
at::Tensor viewOf(const Image& image) {
    return at::from_blob(const_cast<std::uint8_t*>(image.pixels.data()), {image.height, image.width, image.channels}, at::kByte);
}

/// The image in the size of the options, or as it is.
Result<at::Tensor> readResized(const fs::path& path, const ImageOptions& options) {
    CELLOOM_TRY(image, readImage(path, options.channels));
    const bool keepsSize = options.width == 0;
    return resized(image, keepsSize ? image.width : options.width, keepsSize ? image.height : options.height);
}

} // namespace

Result<ImageList> listImages(const std::vector<std::string>& folders, const std::string& field, const std::vector<std::string>& classes) {
    std::map<std::string, std::vector<fs::path>> byClass;
    for (const std::string& folder : folders) CELLOOM_TRY_STATUS(addFolder(folder, byClass));
    ImageList out{classes, {}, {}};
    if (classes.empty())
        for (const auto& [name, files] : byClass) out.classes.push_back(name);
    for (const auto& [name, files] : byClass) {
        const auto found = std::find(out.classes.begin(), out.classes.end(), name);
        if (found == out.classes.end())
            return fail("has a class " + inQuotes(name) + " that the training images do not have.", "There are: " + joined(out.classes) + ".", field);
        out.files.insert(out.files.end(), files.begin(), files.end());
        out.labels.resize(out.files.size(), found - out.classes.begin());
    }
    return out;
}

Result<ImageOptions> imageOptionsOf(const recipe::Recipe& recipe) {
    ImageOptions out;
    out.channels = recipe.text("data.image_channels") == "1" ? 1 : 3;
    out.width = recipe.integer("data.image_width");
    out.height = recipe.integer("data.image_height");
    if ((out.width == 0) != (out.height == 0)) return fail("Only one side of the images' size is given.", "Give both, or 0 for both to leave them as they are.", "data.image_width");
    out.cropPadding = recipe.integer("data.image_crop");
    out.flips = recipe.flag("data.image_flip");
    CELLOOM_TRY(mean, numbersOf(recipe, "data.image_mean", out.channels, false));
    CELLOOM_TRY(deviation, numbersOf(recipe, "data.image_deviation", out.channels, true));
    out.mean = std::move(mean);
    out.deviation = std::move(deviation);
    out.seed = static_cast<std::uint64_t>(recipe.integer("seed"));
    return out;
}

at::Tensor resized(const Image& image, std::int64_t width, std::int64_t height) {
    at::NoGradGuard guard;
    const at::Tensor pixels = viewOf(image).permute({2, 0, 1});
    if (image.width == width && image.height == height) return pixels.contiguous().clone();
    at::Tensor out = at::empty({image.channels, height, width}, at::kByte);
    for (std::int64_t c = 0; c < image.channels; ++c) { // one after another: a large photograph need not be there as floats three times
        const at::Tensor plane = pixels[c].to(at::kFloat).unsqueeze(0).unsqueeze(0);
        out[c].copy_(at::_upsample_bilinear2d_aa(plane, {height, width}, false)[0][0].round().clamp(0, 255));
    }
    return out;
}

Result<std::shared_ptr<ImageDataset>> ImageDataset::open(ImageList list, const ImageOptions& options) {
    std::shared_ptr<ImageDataset> out(new ImageDataset(std::move(list), options));
    const auto& files = out->m_list.files;
    CELLOOM_CHECK(!files.empty());
    CELLOOM_TRY(first, readResized(files[0], options));
    const std::int64_t count = std::ssize(files), bytes = first.numel();
    if (count <= kMostCachedImageBytes / bytes) out->m_cache = at::empty({count, first.size(0), first.size(1), first.size(2)}, at::kByte);
    std::mutex mutex;
    std::map<std::int64_t, Error> errors; // the first of them is told, whichever thread met its own first
    at::parallel_for(0, count, 8, [&](std::int64_t from, std::int64_t to) {
        for (std::int64_t i = from; i < to; ++i) {
            auto image = readResized(files[static_cast<std::size_t>(i)], options);
            if (image && image->sizes() != first.sizes())
                image = fail("is " + std::to_string(image->size(2)) + " x " + std::to_string(image->size(1)) + " pixels, the images before are " +
                                 std::to_string(first.size(2)) + " x " + std::to_string(first.size(1)) + ".",
                             "Give data.image_width and data.image_height, so that all become one size.", files[static_cast<std::size_t>(i)].string());
            if (image) {
                if (out->m_cache.defined()) out->m_cache[i].copy_(*image);
                continue;
            }
            const std::lock_guard lock(mutex);
            errors.emplace(i, image.error());
            return;
        }
    });
    if (!errors.empty()) return tl::unexpected(errors.begin()->second);
    return out;
}

at::Tensor ImageDataset::pixels(std::int64_t index) const {
    if (m_cache.defined()) return m_cache[index];
    auto image = readResized(m_list.files[static_cast<std::size_t>(index)], m_options);
    if (!image) throw std::runtime_error(image.error().text());
    return *image;
}

Row ImageDataset::rowOf(const at::Tensor& image, std::int64_t index) const {
    at::NoGradGuard guard;
    at::Tensor values = image.to(at::kFloat).div(255);
    if (!m_options.mean.empty()) values = values - at::tensor(m_options.mean).reshape({-1, 1, 1});
    if (!m_options.deviation.empty()) values = values / at::tensor(m_options.deviation).reshape({-1, 1, 1});
    Row row;
    row.columns.emplace("image", values);
    row.columns.emplace("label", at::scalar_tensor(m_list.labels[static_cast<std::size_t>(index)], at::kLong));
    return row;
}

Row ImageDataset::get(std::int64_t index) const { return rowOf(pixels(index), index); }

Row ImageDataset::drawn(std::int64_t index, std::uint64_t draw) const {
    at::Tensor image = pixels(index);
    const std::uint64_t bits = mixSeed(mixSeed(m_options.seed, draw), static_cast<std::uint64_t>(index));
    if (const std::int64_t padding = m_options.cropPadding; padding > 0) {
        const auto places = static_cast<std::uint64_t>(2 * padding + 1);
        const auto across = static_cast<std::int64_t>((bits >> 8 & 0xffffff) % places), down = static_cast<std::int64_t>((bits >> 32 & 0xffffff) % places);
        image = at::constant_pad_nd(image, {padding, padding, padding, padding}, 0).narrow(2, across, image.size(2)).narrow(1, down, image.size(1));
    }
    if (m_options.flips && (bits & 1) != 0) image = image.flip({2});
    return rowOf(image, index);
}

std::string labelsToJson(const ImageList& list) {
    std::vector<std::int64_t> counts(list.classes.size(), 0);
    for (const std::int64_t label : list.labels) ++counts[static_cast<std::size_t>(label)];
    nlohmann::ordered_json classes = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < list.classes.size(); ++i) classes.push_back({{"label", i}, {"name", list.classes[i]}, {"images", counts[i]}});
    return nlohmann::ordered_json{{"classes", classes}}.dump(2) + "\n";
}

} // namespace celloom::engine
