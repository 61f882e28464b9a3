// safetensors, manifest and atomic folder: what is written reads back, and no hostile or cut file is believed.
#include "engine/checkpoint/atomic_folder.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/safetensors.h"
#include "models/base/files.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <QTemporaryDir>
#include <QTest>
#include <cstring>

using namespace celloom;
using namespace celloom::engine;
namespace fs = std::filesystem;

namespace {

std::string fileOf(const std::string& header, const std::string& data, std::uint64_t claimed = 0) {
    const std::uint64_t length = claimed ? claimed : header.size();
    std::string out(8, '\0');
    std::memcpy(out.data(), &length, 8);
    return out + header + data;
}

/// {"0":0,"1":0,…}, whose parsed form takes many times its bytes.
std::string manyKeys(int count) {
    std::string out = "{";
    for (int i = 0; i < count; ++i) out += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":0";
    return out + "}";
}

} // namespace

class TestSafetensors : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void readsTheFixtureOfTheReferenceImplementation();
    void whatIsWrittenReadsBackInEveryDtype();
    void sameTensorsGiveTheSameBytes();
    void unalignedTensorsAreReadAll();
    void tensorsOutliveTheFile();
    void refusesHostileFiles_data();
    void refusesHostileFiles();
    void refusesBytesThatAreNoBools();
    void aFailedWriteLeavesTheOldFile();
    void manifestNoticesEveryChange();
    void folderAppearsCompleteOrNotAtAll();

private:
    QTemporaryDir m_folder;
    fs::path path(const char* name) const { return fs::path(m_folder.path().toStdString()) / name; }
};

void TestSafetensors::readsTheFixtureOfTheReferenceImplementation() {
    const auto file = SafetensorsFile::open(fs::path(CELLOOM_FIXTURES) / "baichuan_7b/inputs.safetensors");
    QVERIFY2(file, file ? "" : file.error().text().c_str());
    QCOMPARE((*file)->names().size(), std::size_t(8));
    QCOMPARE((*file)->metadata().at("format"), std::string("pt"));
    const auto ids = (*file)->tensor("input_ids");
    QVERIFY(ids);
    QCOMPARE(ids->scalar_type(), at::kLong);
    QCOMPARE(ids->sizes().vec(), (std::vector<std::int64_t>{2, 24}));
    QVERIFY(!(*file)->tensor("nothing"));
}

void TestSafetensors::whatIsWrittenReadsBackInEveryDtype() {
    std::map<std::string, at::Tensor> tensors;
    for (const auto type :
         {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort, at::kChar, at::kByte, at::kBool})
        tensors[std::string("t.") + c10::toString(type)] = at::arange(2, at::kLong).reshape({2, 1}).expand({2, 3}).to(type);
    tensors["empty"] = at::zeros({0, 7});
    tensors["scalar"] = at::ones({});
    tensors["名字"] = at::ones({3}).slice(0, 0, 3, 2); // strided
    QVERIFY(writeSafetensors(path("all.safetensors"), tensors, {{"step", "12"}}));
    const auto file = SafetensorsFile::open(path("all.safetensors"));
    QVERIFY2(file, file ? "" : file.error().text().c_str());
    QCOMPARE((*file)->names().size(), tensors.size());
    QCOMPARE((*file)->metadata().at("step"), std::string("12"));
    for (const auto& [name, expected] : tensors) {
        const auto read = (*file)->tensor(name);
        QVERIFY(read);
        QCOMPARE(read->scalar_type(), expected.scalar_type());
        QVERIFY2(at::equal(*read, expected), name.c_str());
    }
}

void TestSafetensors::sameTensorsGiveTheSameBytes() {
    const std::map<std::string, at::Tensor> tensors{{"a", at::ones({2})}, {"b", at::zeros({3}, at::kByte)}};
    QVERIFY(writeSafetensors(path("1.safetensors"), tensors));
    QVERIFY(writeSafetensors(path("2.safetensors"), tensors));
    QCOMPARE(*sha256OfFile(path("1.safetensors")), *sha256OfFile(path("2.safetensors")));
}

void TestSafetensors::unalignedTensorsAreReadAll() {
    const std::string header =
        R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[1,5]},"y":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
    const float value = 2.5f;
    std::string data(5, '\7');
    std::memcpy(data.data() + 1, &value, 4);
    QVERIFY(writeFileAtomically(path("odd.safetensors"), fileOf(header, data)));
    const auto file = SafetensorsFile::open(path("odd.safetensors"));
    QVERIFY2(file, file ? "" : file.error().text().c_str());
    QCOMPARE((*file)->tensor("x")->item<float>(), 2.5f);
    QCOMPARE((*file)->tensor("y")->item<int>(), 7);
}

void TestSafetensors::tensorsOutliveTheFile() {
    QVERIFY(writeSafetensors(path("live.safetensors"), {{"a", at::ones({4096})}}));
    at::Tensor tensor;
    {
        const auto file = SafetensorsFile::open(path("live.safetensors"));
        QVERIFY(file);
        tensor = *(*file)->tensor("a");
    }
    QCOMPARE(tensor.sum().item<float>(), 4096.0f);
}

void TestSafetensors::refusesHostileFiles_data() {
    QTest::addColumn<QByteArray>("content");
    QTest::addColumn<QString>("says");
    const auto row = [](const char* name, const std::string& content, const char* says) {
        QTest::newRow(name) << QByteArray::fromStdString(content) << QString(says);
    };
    const std::string four(4, '\0');
    const auto one = [](const std::string& inner) { return "{\"x\":" + inner + "}"; };
    row("empty", "", "too short");
    row("seven bytes", "1234567", "too short");
    row("header longer than the file", fileOf("{}", "", 1000), "more bytes than the file");
    row("header of 2^63 bytes", fileOf("{}", "", 1ull << 63), "100 MB");
    row("not JSON", fileOf("{nonsense", ""), "no JSON object");
    row("an array", fileOf("[1,2,3]", ""), "no JSON object");
    row("invalid UTF-8", fileOf("{\"\xff\xfe\":1}", ""), "no JSON object");
    row("deep nesting", fileOf("{\"x\":" + std::string(100000, '['), ""), "too deep");
    row("a list that would fill the memory", fileOf(one("{\"shape\":[" + QByteArray("0,").repeated(1'000'000).toStdString() + "0]}"), ""), "too long");
    row("millions of names", fileOf(one(manyKeys(2'000'001)), ""), "more than 2000000 names");
    row("a name twice",
        fileOf(R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", four),
        "twice");
    row("no dtype", fileOf(one(R"({"shape":[4],"data_offsets":[0,4]})"), four), "lacks");
    row("unknown dtype", fileOf(one(R"({"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]})"), four), "F8_E4M3");
    row("dtype is a number", fileOf(one(R"({"dtype":7,"shape":[4],"data_offsets":[0,4]})"), four), "dtype 7");
    row("negative dimension", fileOf(one(R"({"dtype":"U8","shape":[-4],"data_offsets":[0,4]})"), four), "no valid shape");
    row("fraction", fileOf(one(R"({"dtype":"U8","shape":[4.0],"data_offsets":[0,4]})"), four), "no valid shape");
    row("overflowing shape", fileOf(one(R"({"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]})"), ""), "too large");
    row("offsets past the end", fileOf(one(R"({"dtype":"U8","shape":[40],"data_offsets":[0,40]})"), four), "byte 40 of 4");
    row("offsets backwards", fileOf(one(R"({"dtype":"U8","shape":[4],"data_offsets":[4,0]})"), four), "do not fit");
    row("offsets of another size", fileOf(one(R"({"dtype":"F32","shape":[4],"data_offsets":[0,4]})"), four), "do not fit");
    row("gap", fileOf(one(R"({"dtype":"U8","shape":[3],"data_offsets":[1,4]})"), four), "gap");
    row("overlap",
        fileOf(R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"y":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})", four),
        "overlaps");
    row("bytes at the end", fileOf(one(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})"), four + "more"), "4 bytes follow");
    row("metadata of numbers", fileOf(R"({"__metadata__":{"a":1}})", ""), "no string");
    row("a pickle", std::string("\x80\x02}q\0X\x01\0\0", 10) + std::string(50, 'x'), "100 MB");
}

void TestSafetensors::refusesHostileFiles() {
    QFETCH(QByteArray, content);
    QFETCH(QString, says);
    QVERIFY(writeFileAtomically(path("hostile.safetensors"), content.toStdString()));
    const auto file = SafetensorsFile::open(path("hostile.safetensors"));
    QVERIFY(!file);
    QVERIFY2(QString::fromStdString(file.error().message).contains(says), file.error().text().c_str());
    QVERIFY(!file.error().hint.empty() || says == "too short");
}

void TestSafetensors::refusesBytesThatAreNoBools() {
    QVERIFY(writeFileAtomically(path("bool.safetensors"), fileOf(R"({"x":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", "\1\2")));
    const auto file = SafetensorsFile::open(path("bool.safetensors"));
    QVERIFY(file);
    QVERIFY(!(*file)->tensor("x"));
}

void TestSafetensors::aFailedWriteLeavesTheOldFile() {
    fs::create_directories(path("kept/w.safetensors/sub")); // a folder in the way: the rename fails
    const auto status = writeSafetensors(path("kept/w.safetensors"), {{"a", at::ones({4})}});
    QVERIFY(!status);
    QVERIFY(fs::exists(path("kept/w.safetensors/sub")));
    QCOMPARE(std::distance(fs::directory_iterator(path("kept")), fs::directory_iterator()), 1);
}

void TestSafetensors::manifestNoticesEveryChange() {
    const fs::path folder = path("manifest");
    fs::create_directories(folder);
    QVERIFY(writeFileAtomically(folder / "a.bin", "hello"));
    QVERIFY(writeFileAtomically(folder / "b.bin", "world"));
    QVERIFY(writeManifest(folder));
    QVERIFY(verifyManifest(folder));
    // printf hello | sha256sum
    QVERIFY(readFile(folder / "manifest.json")->find("2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824") !=
            std::string::npos);

    QVERIFY(writeFileAtomically(folder / "a.bin", "hellO"));
    const auto changed = verifyManifest(folder);
    QVERIFY(!changed && changed.error().place.ends_with("a.bin"));
    QVERIFY(writeFileAtomically(folder / "a.bin", "hell"));
    QVERIFY(!verifyManifest(folder));
    fs::remove(folder / "a.bin");
    QVERIFY(!verifyManifest(folder));
    QVERIFY(writeFileAtomically(folder / "manifest.json", R"({"files":{"../x":{"bytes":1,"sha256":"0"}}})"));
    QVERIFY(!verifyManifest(folder));
}

void TestSafetensors::folderAppearsCompleteOrNotAtAll() {
    const fs::path target = path("steps/step-1");
    {
        auto folder = AtomicFolder::create(target);
        QVERIFY(folder);
        QVERIFY(AtomicFolder::isPartial(folder->path()));
        QVERIFY(writeFileAtomically(folder->path() / "a", "1"));
        QVERIFY(!fs::exists(target));
    }
    QVERIFY(fs::is_empty(path("steps"))); // abandoned: nothing stays
    for (const char* content : {"1", "2"}) {
        auto folder = AtomicFolder::create(target);
        QVERIFY(folder);
        QVERIFY(writeFileAtomically(folder->path() / "a", content));
        QVERIFY(folder->commit(AtomicFolder::Existing::Replace));
    }
    QCOMPARE(*readFile(target / "a"), std::string("2"));
    {
        auto folder = AtomicFolder::create(target);
        QVERIFY(folder);
        QVERIFY(!folder->commit());
    }
    QCOMPARE(std::distance(fs::directory_iterator(path("steps")), fs::directory_iterator()), 1);
    QVERIFY(!AtomicFolder::isPartial(target));
}

QTEST_GUILESS_MAIN(TestSafetensors)
#include "tst_safetensors.moc"
