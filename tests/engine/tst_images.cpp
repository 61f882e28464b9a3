// Folders of images: decoding and resizing against Pillow, classes, random shifts that repeat, and what damaged files and folders give.
#include "engine/checkpoint/safetensors.h"
#include "engine/data/image_folder.h"
#include "engine/data/prepare.h"
#include "models/base/files.h"
#include "train_helper.h"

#include <ATen/ops/equal.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <QTemporaryDir>

#include <set>

using namespace celloom;
using namespace celloom::engine;
namespace fs = std::filesystem;

namespace {

const fs::path kImages = CELLOOM_FIXTURES "/images";

at::Tensor expected(const std::string& name) { return must(must(SafetensorsFile::open(kImages / "expected.safetensors"))->tensor(name)).to(at::kFloat); }

at::Tensor pixelsOf(const Image& image) { return resized(image, image.width, image.height).permute({1, 2, 0}).to(at::kFloat); }

double largestDifference(const at::Tensor& a, const at::Tensor& b) {
    return a.sizes() == b.sizes() ? (a - b).abs().max().item<double>() : 1e9;
}

} // namespace

class TestImages : public QObject {
    Q_OBJECT
    QTemporaryDir m_folder;
    fs::path path(const std::string& name) const { return fs::path(m_folder.path().toStdString()) / name; }

    void put(const std::string& name, const char* from = "colour.png") {
        fs::create_directories(path(name).parent_path());
        fs::copy_file(kImages / from, path(name), fs::copy_options::overwrite_existing);
    }
    void write(const std::string& name, const std::string& bytes) {
        fs::create_directories(path(name).parent_path());
        QVERIFY(writeFileAtomically(path(name), bytes));
    }
    ImageList list(const std::string& folder) { return must(listImages({path(folder).string()}, "data.train")); }
    QString errorOfList(const std::vector<std::string>& folders, const std::vector<std::string>& classes = {}) {
        std::vector<std::string> paths;
        for (const std::string& folder : folders) paths.push_back(path(folder).string());
        const auto found = listImages(paths, "data.validation", classes);
        return found ? QString() : QString::fromStdString(found.error().text());
    }

private Q_SLOTS:
    void everyKindDecodesAsInPillow_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<double>("tolerance"); // JPEG decoders may round differently
        for (const char* name : {"colour.png", "grey.png", "palette.png", "transparent.png", "two.png"}) QTest::newRow(name) << QString(name) << 0.0;
        for (const char* name : {"colour.jpg", "progressive.jpg", "grey.jpg"}) QTest::newRow(name) << QString(name) << 2.0;
    }
    void everyKindDecodesAsInPillow() {
        QFETCH(QString, name);
        QFETCH(double, tolerance);
        const std::string key = QString(name).replace('.', '_').toStdString();
        const at::Tensor rgb = pixelsOf(must(readImage(kImages / name.toStdString(), 3)));
        const at::Tensor grey = pixelsOf(must(readImage(kImages / name.toStdString(), 1))).squeeze(2);
        QVERIFY2(largestDifference(rgb, expected(key + ".rgb")) <= tolerance, key.c_str());
        QVERIFY2(largestDifference(grey, expected(key + ".grey")) <= tolerance, key.c_str());
    }

    void resizingEqualsPillowWithinOneStep() { // Pillow rounds twice, once for each direction
        for (const std::string name : {"colour.png", "colour.jpg"}) {
            const Image image = must(readImage(kImages / name, 3));
            const std::string key = name == "colour.png" ? "colour_png" : "colour_jpg";
            for (const auto& [width, height] : {std::pair(11, 7), std::pair(26, 6), std::pair(40, 33), std::pair(3, 3)}) {
                const at::Tensor mine = resized(image, width, height).permute({1, 2, 0}).to(at::kFloat);
                const std::string entry = key + "." + std::to_string(width) + "x" + std::to_string(height);
                QVERIFY2(largestDifference(mine, expected(entry)) <= (key == "colour_jpg" ? 3 : 1), entry.c_str());
            }
        }
    }

    void classesAreTheSortedFolders() {
        for (const char* name : {"animals/dog/2.png", "animals/dog/1.PNG", "animals/cat/deep/a.png", "animals/.hidden/x.png", "animals/Zebra/z.png"}) put(name);
        put("animals/Zebra/photo.JPEG", "colour.jpg");
        write("animals/dog/notes.txt", "no image");
        const ImageList found = list("animals");
        QVERIFY((found.classes == std::vector<std::string>{"Zebra", "cat", "dog"})); // by bytes: capitals first
        QVERIFY((found.labels == std::vector<std::int64_t>{0, 0, 1, 2, 2}));
        QCOMPARE(found.files[3].filename().string(), std::string("1.PNG"));
        QVERIFY(labelsToJson(found).find("\"name\": \"dog\"") != std::string::npos);
    }

    void validationImagesHaveTheLabelsOfTheTraining() {
        put("some/dog/1.png");
        const auto found = must(listImages({path("some").string()}, "data.validation", {"cat", "dog"}));
        QVERIFY((found.labels == std::vector<std::int64_t>{1}));
        QVERIFY(errorOfList({"some"}, {"cat"}).contains("\"dog\" that the training images do not have"));
    }

    void rowsAreChannelsFirstAndNormalised() {
        put("norm/a/1.png");
        const ImageOptions options{.channels = 3, .mean = {0.5f, 0.25f, 0}, .deviation = {2, 1, 0.5f}};
        const auto rows = must(ImageDataset::open(list("norm"), options));
        const Row row = rows->get(0);
        const at::Tensor expectedValues = expected("colour_png.rgb").permute({2, 0, 1}) / 255;
        for (const auto& [channel, mean, deviation] : {std::tuple(0, 0.5, 2.0), std::tuple(1, 0.25, 1.0), std::tuple(2, 0.0, 0.5)})
            QVERIFY(largestDifference(row.columns.at("image")[channel], (expectedValues[channel] - mean) / deviation) < 1e-6);
        QCOMPARE(row.columns.at("label").item<std::int64_t>(), std::int64_t(0));
        QVERIFY(row.columns.at("label").scalar_type() == at::kLong && row.columns.at("image").scalar_type() == at::kFloat);
    }

    void shiftsAndMirrorsRepeatWithTheirDraw() {
        for (int i = 0; i < 20; ++i) put("drawn/a/" + std::to_string(100 + i) + ".png");
        const ImageOptions options{.channels = 1, .cropPadding = 2, .flips = true, .seed = 5};
        const auto rows = must(ImageDataset::open(list("drawn"), options));
        const at::Tensor plain = rows->get(0).columns.at("image");
        const at::Tensor wide = at::constant_pad_nd(plain, {2, 2, 2, 2}, 0);
        std::set<std::tuple<std::int64_t, std::int64_t, bool>> seen;
        for (std::int64_t i = 0; i < 20; ++i)
            for (const std::uint64_t draw : {1, 2, 3}) {
                const at::Tensor image = rows->drawn(i, draw).columns.at("image");
                QVERIFY(at::equal(image, rows->drawn(i, draw).columns.at("image")));
                bool isFound = false; // all files are one picture: it must be one of its 50 variants
                for (std::int64_t across = 0; across < 5; ++across)
                    for (std::int64_t down = 0; down < 5; ++down)
                        for (const bool isMirrored : {false, true}) {
                            at::Tensor shifted = wide.narrow(2, across, plain.size(2)).narrow(1, down, plain.size(1));
                            if (isMirrored) shifted = shifted.flip({2});
                            if (!at::equal(image, shifted)) continue;
                            isFound = true;
                            seen.emplace(across, down, isMirrored);
                        }
                QVERIFY(isFound);
            }
        QVERIFY2(seen.size() > 25, qPrintable(QString::number(seen.size()))); // 60 draws of 50: 35 on average
        QVERIFY(at::equal(rows->get(0).columns.at("image"), plain)); // an evaluation sees them as they are
    }

    void epochsDrawAnewInOrderAndShuffled() {
        put("epochs/a/1.png");
        put("epochs/a/2.png");
        const auto rows = must(ImageDataset::open(list("epochs"), {.channels = 1, .cropPadding = 8, .seed = 1}));
        const auto imageOf = [](const Dataset& dataset) { return dataset.get(0).columns.at("image"); };
        QVERIFY(!at::equal(imageOf(EpochDataset(*rows, 1, 0)), imageOf(EpochDataset(*rows, 1, 1))));
        QVERIFY(at::equal(imageOf(EpochDataset(*rows, 1, 0)), imageOf(EpochDataset(*rows, 1, 0))));
        QVERIFY(at::equal(imageOf(ShuffledDataset(*rows, 1, 3)), imageOf(ShuffledDataset(*rows, 1, 3))));
        const std::shared_ptr<const Dataset> shared = rows;
        const SubsetDataset second(shared, {1});
        QVERIFY(at::equal(second.drawn(0, 9).columns.at("image"), rows->drawn(1, 9).columns.at("image")));
    }

    void foldersThatAreNoneAreRefused() {
        put("flat/1.png");
        QVERIFY(errorOfList({"flat"}).contains("lies beside the folders"));
        fs::create_directories(path("bare"));
        QVERIFY(errorOfList({"bare"}).contains("has no sub-folder"));
        fs::create_directories(path("hollow/cat"));
        QVERIFY(errorOfList({"hollow"}).contains("a class without"));
        QVERIFY(errorOfList({"nowhere"}).contains("is no folder"));
    }

    void damagedFilesAreNamed_data() {
        QTest::addColumn<QString>("from");
        QTest::addColumn<int>("keep"); // bytes; negative: so many fewer
        QTest::addColumn<QString>("said");
        QTest::newRow("a PNG cut short") << "colour.png" << 300 << "damaged PNG";
        QTest::newRow("a PNG's header alone") << "colour.png" << 20 << "damaged PNG";
        QTest::newRow("a JPEG cut short") << "colour.jpg" << -200 << "damaged JPEG";
        QTest::newRow("a progressive JPEG cut short") << "progressive.jpg" << -300 << "damaged JPEG";
        QTest::newRow("a JPEG's header alone") << "colour.jpg" << 30 << "damaged JPEG";
        QTest::newRow("four colours") << "cmyk.jpg" << 1000000 << "CMYK";
        QTest::newRow("an empty file") << "colour.png" << 0 << "neither a PNG nor a JPEG";
    }
    void damagedFilesAreNamed() {
        QFETCH(QString, from);
        QFETCH(int, keep);
        QFETCH(QString, said);
        const std::string bytes = must(readFile(kImages / from.toStdString()));
        put("damaged/a/0-good.png");
        put("damaged/a/2-good.png");
        write("damaged/a/1-bad.png", bytes.substr(0, keep < 0 ? bytes.size() - static_cast<std::size_t>(-keep) : static_cast<std::size_t>(keep)));
        const auto rows = ImageDataset::open(list("damaged"), {});
        QVERIFY(!rows);
        const QString text = QString::fromStdString(rows.error().text());
        QVERIFY2(text.contains(said) && text.contains("1-bad.png"), qPrintable(text));
    }

    void everyFlippedByteIsReadOrRefused() { // no crash and no wrong size, whatever a file says
        for (const char* name : {"colour.png", "progressive.jpg", "grey.jpg", "palette.png"}) {
            const std::string good = must(readFile(kImages / name));
            for (std::size_t at = 0; at < good.size(); ++at) {
                std::string bad = good;
                bad[at] = static_cast<char>(bad[at] ^ (at % 3 == 0 ? 0xff : 1 << (at % 8)));
                const auto image = decodeImage(bad, 3, name);
                if (image) QCOMPARE(std::ssize(image->pixels), image->width * image->height * 3);
            }
        }
    }

    void hugeSizesAreRefusedBeforeDecoding() {
        std::string png = must(readFile(kImages / "colour.png"));
        const auto big = [&](std::size_t at) { // width or height 60 000, with the CRC of the changed header
            png[at] = 0, png[at + 1] = 0, png[at + 2] = static_cast<char>(0xea), png[at + 3] = 0x60;
        };
        big(16);
        big(20);
        std::uint32_t crc = 0xffffffffu; // PNG specification, annex D
        for (std::size_t i = 12; i < 29; ++i) {
            crc ^= static_cast<unsigned char>(png[i]);
            for (int k = 0; k < 8; ++k) crc = crc & 1 ? 0xedb88320u ^ (crc >> 1) : crc >> 1;
        }
        crc = ~crc;
        for (std::size_t i = 0; i < 4; ++i) png[29 + i] = static_cast<char>(crc >> (24 - 8 * i));
        const auto image = decodeImage(png, 3, "big.png");
        QVERIFY(!image);
        QVERIFY2(image.error().text().find("60000 x 60000") != std::string::npos, image.error().text().c_str());
    }

    void imagesOfSeveralSizesNeedASize() {
        put("sizes/a/1.png");
        put("sizes/a/2.png", "small.png");
        const auto rows = ImageDataset::open(list("sizes"), {});
        QVERIFY(!rows);
        QVERIFY2(rows.error().text().find("data.image_width") != std::string::npos, rows.error().text().c_str());
        const auto sized = must(ImageDataset::open(list("sizes"), {.channels = 3, .width = 5, .height = 4}));
        QVERIFY((sized->get(1).columns.at("image").sizes() == at::IntArrayRef{3, 4, 5}));
    }

    void aRecipeReadsThemAsNamedColumns() {
        for (int i = 0; i < 10; ++i) put(std::string("set/") + (i % 2 ? "odd" : "even") + "/" + std::to_string(i) + ".png");
        recipe::Recipe recipe;
        QVERIFY(recipe.set("data.format", std::string("images")) && recipe.set("data.train", std::vector<std::string>{path("set").string()}) &&
                recipe.set("data.validation_fraction", 0.2) && recipe.set("data.image_channels", std::string("1")));
        const DataFiles files = must(findDataFiles(recipe));
        QVERIFY(files.areImages && files.areTensors);
        const PreparedData data = must(prepareTensors(recipe, files));
        QCOMPARE(data.train->size(), std::int64_t(8));
        QCOMPARE(data.validation->size(), std::int64_t(2));
        QCOMPARE(std::ssize(data.files), std::ptrdiff_t(10));
        QVERIFY((collate(*data.train, 0, 4).columns.at("image").sizes() == at::IntArrayRef{4, 1, 19, 26}));
        QVERIFY(recipe.set("data.validation", std::vector<std::string>{path("set").string()}));
        const auto twice = findDataFiles(recipe);
        QVERIFY(!twice && twice.error().text().find("among the training images") != std::string::npos);
        for (const auto& [key, value, said] : {std::tuple("data.image_mean", "0.5,0.5", "2 numbers for 1"), std::tuple("data.image_deviation", "0", "above 0"),
                                               std::tuple("data.image_width", "8", "Only one side")}) {
            recipe::Recipe wrong = recipe;
            QVERIFY(wrong.set("data.validation", std::vector<std::string>{}) && wrong.setFromText(key, value));
            const auto refused = prepareTensors(wrong, files);
            QVERIFY2(!refused && refused.error().text().find(said) != std::string::npos, said);
        }
    }
};

QTEST_GUILESS_MAIN(TestImages)
#include "tst_images.moc"
