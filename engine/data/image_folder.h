// Folders of images, a sub-folder a class, as rows with the columns "image" [C,H,W] float32 and "label" int64.
#pragma once

#include "engine/data/dataset.h"
#include "engine/data/image_file.h"
#include "models/recipe/recipe.h"

#include <filesystem>
#include <string>
#include <vector>

namespace celloom::engine {

/// The images of folders, file by file.
struct ImageList {
    std::vector<std::string> classes;         // names of the sub-folders, sorted by their bytes; a label is the place here
    std::vector<std::filesystem::path> files; // class by class, sorted
    std::vector<std::int64_t> labels;
};

/// `folders`: each has a sub-folder a class, with PNG and JPEG files at any depth; sub-folders of the same name are one class. Hidden files are
/// passed over. With `classes` (of a training) these are the classes, and another is an error; otherwise they are those found. A folder
/// without images, a class without one, or an image that lies beside the classes are errors.
Result<ImageList> listImages(const std::vector<std::string>& folders, const std::string& field, const std::vector<std::string>& classes = {});

struct ImageOptions {
    std::int64_t channels = 3;
    std::int64_t width = 0, height = 0; // 0: as the files are, which must then all have one size
    std::int64_t cropPadding = 0;       // in training: shifted by up to so many pixels, the border filled with 0
    bool flips = false;                 // in training: mirrored left to right with one chance in two
    std::vector<float> mean, deviation; // of each channel of the values 0 … 1; empty: 0 and 1
    std::uint64_t seed = 0;
};
/// From the recipe's fields data.image_….
Result<ImageOptions> imageOptionsOf(const recipe::Recipe& recipe);

/// [H,W,C] -> [C,height,width], both uint8: bilinear with a filter as wide as the scale where it becomes smaller (anti-aliasing), as PIL's
/// Image.resize(…, BILINEAR) and PyTorch's interpolate(…, antialias=True) do; rounded.
at::Tensor resized(const Image& image, std::int64_t width, std::int64_t height);

/// Images beyond this much memory (as bytes, resized) are decoded again whenever they are asked for.
inline constexpr std::int64_t kMostCachedImageBytes = std::int64_t{1} << 30;

/// Rows (v / 255 - mean) / deviation. get() gives the image as it is, drawn() as a training sees it: shifted and mirrored as the draw says.
class ImageDataset : public Dataset {
public:
    /// Reads every file once, on all threads, so that a damaged one is an error that names it before anything is trained.
    static Result<std::shared_ptr<ImageDataset>> open(ImageList list, const ImageOptions& options);

    std::int64_t size() const override { return std::ssize(m_list.files); }
    std::int64_t lengthOf(std::int64_t) const override { return 1; }
    std::vector<std::string> columns() const override { return {"image", "label"}; }
    /// A file that changed since open() throws.
    Row get(std::int64_t index) const override;
    Row drawn(std::int64_t index, std::uint64_t draw) const override;
    const ImageList& list() const { return m_list; }

private:
    ImageDataset(ImageList list, const ImageOptions& options) : m_list(std::move(list)), m_options(options) {}
    at::Tensor pixels(std::int64_t index) const; // [C,H,W] uint8
    Row rowOf(const at::Tensor& image, std::int64_t index) const;

    ImageList m_list;
    ImageOptions m_options;
    at::Tensor m_cache; // [N,C,H,W] uint8; undefined where it would be too large
};

/// {"classes": [{"label": 0, "name": "cat", "images": 120}, …]}: labels.json of a run's folder.
std::string labelsToJson(const ImageList& list);

} // namespace celloom::engine
