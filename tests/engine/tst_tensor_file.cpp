// Files of other programs: what torch.save and MindSpore wrote reads back equal; what is hostile or broken is refused with its reason, and
// nothing in a file ever runs.
#include "engine/checkpoint/safetensors.h"
#include "models/base/files.h"
#include "tests/engine/checkpoint_helper.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <QDir>
#include <QTemporaryDir>
#include <QTest>

using namespace celloom;
using namespace celloom::engine;
using namespace celloom::test;
namespace fs = std::filesystem;

namespace {

fs::path fixture(const std::string& name) {
    return fs::path(CELLOOM_FIXTURES) / name;
}

std::shared_ptr<TensorFile> opened(const fs::path& path) {
    auto file = TensorFile::open(path);
    if (!file) qFatal("%s", file.error().text().c_str());
    return *file;
}

at::Tensor read(const TensorFile& file, const std::string& name) {
    auto tensor = file.tensor(name);
    if (!tensor) qFatal("%s", tensor.error().text().c_str());
    return *tensor;
}

} // namespace

class TestTensorFile : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void checksumsAreThoseOfZip();
    void torchFilesEqualTheirSafetensors_data();
    void torchFilesEqualTheirSafetensors();
    void aModelInBfloat16EqualsItsOriginal();
    void tiedTensorsShareTheirBytes();
    void trainingCheckpointsAreUnwrapped();
    void mindSporeFilesHoldEveryType();
    void tensorsInPiecesAreJoined();
    void aModelOfMindSporeEqualsItsOriginal();
    void refusesOldAndOtherFormsOfTorch_data();
    void refusesOldAndOtherFormsOfTorch();
    void nothingInAPickleRuns_data();
    void nothingInAPickleRuns();
    void refusesHostilePickles_data();
    void refusesHostilePickles();
    void refusesHostileArchives_data();
    void refusesHostileArchives();
    void refusesHostileMindSporeFiles_data();
    void refusesHostileMindSporeFiles();
    void everyFlippedBitIsSeen();
    void everyCutIsSeen_data();
    void everyCutIsSeen();
    void whatIsNoFileIsRefused();

private:
    QTemporaryDir m_folder;
    fs::path write(const std::string& content, const char* name = "x.bin") const {
        const fs::path path = fs::path(m_folder.path().toStdString()) / name;
        if (!writeFileAtomically(path, content)) qFatal("cannot write");
        return path;
    }
    /// The reason, after every tensor was asked for; empty where the file is fine.
    static std::string refusalOf(const fs::path& path) {
        const auto file = TensorFile::open(path);
        if (!file) return file.error().text();
        for (const std::string& name : (*file)->names())
            if (const auto tensor = (*file)->tensor(name); !tensor) return tensor.error().text();
        return {};
    }
    void expectRefusal(const QByteArray& content, const QString& says, const char* name = "x.bin") const {
        const std::string reason = refusalOf(write(content.toStdString(), name));
        QVERIFY2(QString::fromStdString(reason).contains(says), ("said: " + reason).c_str());
    }
};

void TestTensorFile::checksumsAreThoseOfZip() {
    QCOMPARE(crc32("123456789"), 0xCBF43926u); // the check value of CRC-32/ISO-HDLC
    QCOMPARE(crc32("6789", crc32("12345")), 0xCBF43926u);
    QCOMPARE(crc32(""), 0u);
}

void TestTensorFile::torchFilesEqualTheirSafetensors_data() {
    QTest::addColumn<QString>("file");
    QTest::newRow("protocol 2") << QString("all_kinds.bin");
    QTest::newRow("protocol 4") << QString("all_kinds.protocol4.bin");
}

void TestTensorFile::torchFilesEqualTheirSafetensors() {
    QFETCH(QString, file);
    const auto torch = opened(fixture("checkpoints/" + file.toStdString()));
    const auto expected = opened(fixture("checkpoints/all_kinds.safetensors"));
    QCOMPARE(torch->names(), expected->names());
    for (const std::string& name : expected->names()) {
        const at::Tensor found = read(*torch, name), wanted = read(*expected, name);
        QCOMPARE(found.scalar_type(), wanted.scalar_type());
        QVERIFY2(found.sizes() == wanted.sizes() && at::equal(found.to(at::kDouble), wanted.to(at::kDouble)), name.c_str());
    }
    QVERIFY(!read(*torch, "transposed").is_contiguous());
}

void TestTensorFile::aModelInBfloat16EqualsItsOriginal() {
    const auto torch = opened(fixture("checkpoints/baichuan_7b.bf16.bin")), original = opened(fixture("baichuan_7b/model.safetensors"));
    QCOMPARE(torch->format(), TensorFile::Format::Torch);
    QCOMPARE(torch->names(), original->names());
    for (const std::string& name : torch->names()) QVERIFY(at::equal(read(*torch, name), read(*original, name).to(at::kBFloat16)));
}

void TestTensorFile::tiedTensorsShareTheirBytes() {
    const auto file = opened(fixture("checkpoints/llama3_tied.f32.bin"));
    QCOMPARE(read(*file, "lm_head.weight").const_data_ptr(), read(*file, "model.embed_tokens.weight").const_data_ptr());
}

void TestTensorFile::trainingCheckpointsAreUnwrapped() {
    const auto file = opened(fixture("checkpoints/training.bin"));
    QCOMPARE(file->names(), (std::vector<std::string>{"bias", "weight"}));
    QCOMPARE(file->notRead(), (std::vector<std::string>{"\"epoch\" (3)", "\"note\" (\"x\")"}));
}

void TestTensorFile::mindSporeFilesHoldEveryType() {
    const auto file = opened(fixture("checkpoints/all_kinds.ckpt")); // with a checksum at its end
    QCOMPARE(file->format(), TensorFile::Format::MindSpore);
    QCOMPARE(file->names().size(), std::size_t(15));
    const at::Tensor expected = read(*opened(fixture("checkpoints/all_kinds.safetensors")), "t.float64");
    for (const std::string& name : file->names()) {
        if (!name.starts_with("t.")) continue;
        QCOMPARE("t." + std::string(nameOf(file->entries().at(name).type)), name);
        QVERIFY2(at::equal(read(*file, name).to(at::kDouble), expected), name.c_str());
    }
    QCOMPARE(read(*file, "scalar").dim(), 0);
    QCOMPARE(read(*file, "scalar").item<double>(), 2.5);
    QCOMPARE(read(*file, "名字").sizes().vec(), (std::vector<std::int64_t>{2, 1}));
}

void TestTensorFile::tensorsInPiecesAreJoined() {
    const auto file = opened(fixture("checkpoints/split.ckpt"));
    QCOMPARE(file->entries().at("split").pieces.size(), std::size_t(5));
    QVERIFY(at::equal(read(*file, "split"), at::arange(1200, at::kFloat).reshape({300, 4})));
    QVERIFY(at::equal(read(*file, "z"), at::arange(4, at::kFloat)));
}

void TestTensorFile::aModelOfMindSporeEqualsItsOriginal() {
    const auto file = opened(fixture("checkpoints/baichuan_7b.f16.ckpt")), original = opened(fixture("baichuan_7b/model.safetensors"));
    const at::Tensor packed = read(*original, "model.layers.1.self_attn.W_pack.weight").to(at::kHalf);
    QVERIFY(at::equal(read(*file, "model.layers.1.attention.wk.weight"), packed.narrow(0, 64, 64)));
    QVERIFY(at::equal(read(*file, "model.norm_out.weight"), read(*original, "model.norm.weight").to(at::kHalf)));
}

void TestTensorFile::refusesOldAndOtherFormsOfTorch_data() {
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("says");
    QTest::newRow("before 1.6") << QString("legacy.bin") << QString("before 1.6");
    QTest::newRow("a whole module") << QString("whole_module.bin") << QString("torch.nn.modules.linear.Linear");
    QTest::newRow("one element as a thousand") << QString("expanded.bin") << QString("repeats elements");
}

void TestTensorFile::refusesOldAndOtherFormsOfTorch() {
    QFETCH(QString, file);
    QFETCH(QString, says);
    const std::string reason = refusalOf(fixture("checkpoints/" + file.toStdString()));
    QVERIFY2(QString::fromStdString(reason).contains(says), reason.c_str());
}

void TestTensorFile::nothingInAPickleRuns_data() {
    QTest::addColumn<QByteArray>("pickle"); // MARKER: the file that it would make
    QTest::addColumn<QString>("says");
    const auto row = [](const char* name, const std::string& pickle, const char* says) {
        QTest::newRow(name) << QByteArray::fromStdString(pickle) << QString(says);
    };
    row("REDUCE of os.system",
        "\x80\x02"
        "cposix\nsystem\n" +
            text("touch MARKER") + "\x85R.",
        "posix.system");
    row("builtins.exec",
        "\x80\x02"
        "cbuiltins\nexec\n" +
            text("open('MARKER','w')") + "\x85R.",
        "builtins.exec");
    row("eval behind a getattr",
        "\x80\x02"
        "c__builtin__\ngetattr\n",
        "__builtin__.getattr");
    row("STACK_GLOBAL",
        "\x80\x04"
        "\x8c\x05posix\x8c\x06system\x93" +
            text("touch MARKER") + "\x85R.",
        "posix.system");
    row("a name with dots below a module that is known",
        "\x80\x02"
        "ctorch._utils\n_rebuild_tensor_v2.__globals__\n.",
        "__globals__");
    row("as a tensor of a state dict", stateDict("cos\nsystem\n" + text("touch MARKER") + "\x85R"), "os.system");
    row("as a storage", stateDict(tensor(4, 0, {4}, {1}, "subprocess\nPopen")), "subprocess.Popen");
    row("INST of protocol 0", "(S'touch MARKER'\niposix\nsystem\n.", "instruction 83");
    row("torch.load again",
        "\x80\x02"
        "ctorch\nload\n.",
        "torch.load");
    row("a code object from a file",
        "\x80\x02"
        "ctorch.jit\nload\n.",
        "torch.jit.load");
}

void TestTensorFile::nothingInAPickleRuns() {
    QFETCH(QByteArray, pickle);
    QFETCH(QString, says);
    const QString marker = QDir(m_folder.path()).filePath("marker");
    pickle.replace("MARKER", "marker"); // of the same length: the pickle counts its bytes
    const QString before = QDir::currentPath();
    QVERIFY(QDir::setCurrent(m_folder.path()));
    expectRefusal(QByteArray::fromStdString(archiveOf(pickle.toStdString())), says);
    expectRefusal(pickle, says.startsWith("instruction") ? "neither" : says); // bare, without an archive
    QVERIFY(QDir::setCurrent(before));
    QVERIFY(!QFile::exists(marker));
}

/// Tensors "0", "1", … that are one call with a list of `length` arguments; the last one is damaged. Takes hours where each copies the list.
static std::string sharedArguments(int tensors, int length) {
    std::string good = tensor(4, 0, {4}, {1});
    good.resize(good.size() - 2); // without its "tR"
    std::string out = "\x80\x02Nq\1" + std::string("0}(") + text("first") + good;
    for (int i = 0; i < length; ++i) out += "h\1";
    out += "tRq\2";
    for (int i = 0; i < tensors; ++i) out += text(std::to_string(i)) + "h\2";
    return out + text("last") + "ctorch._utils\n_rebuild_tensor_v2\n(NNNNNNtRu.";
}

void TestTensorFile::refusesHostilePickles_data() {
    QTest::addColumn<QByteArray>("pickle");
    QTest::addColumn<QString>("says");
    const auto row = [](const char* name, const std::string& pickle, const char* says) {
        QTest::newRow(name) << QByteArray::fromStdString(pickle) << QString(says);
    };
    std::string doubling = "\x80\x02]q";
    doubling += '\0';
    for (int i = 0; i < 100; ++i)
        doubling += "]q" + std::string(1, char(i + 1)) + "(h" + std::string(1, char(i)) + "h" + std::string(1, char(i)) + "e";
    row("a list of twice the list before, 100 times", doubling + ".", "damaged");
    std::string own = "\x80\x02]q";
    own += std::string("\0h\0a.", 5);
    row("a list in itself", own, "a list");
    std::string dict = "\x80\x02}q";
    dict += std::string("\0", 1) + text("model") + std::string("h\0s.", 4);
    row("a dictionary in itself", dict, "no tensors");
    row("three million values", "\x80\x02" + std::string(3'000'000, ')') + ".", "more than 2000000 values");
    row("five million marks", "\x80\x02" + std::string(5'000'000, '('), "more than 2000000 values");
    row("one value five million times", "\x80\x02)" + std::string(5'000'000, '2') + ".", "more than 2000000 values");
    row("a text longer than the file", "\x80\x02X\xff\xff\xff\xff", "damaged");
    row("a text of 2^63 bytes", std::string("\x80\x04\x8d\0\0\0\0\0\0\0\x80", 11), "damaged");
    row("an empty stack", "\x80\x02R.", "damaged");
    row("a mark that is not there",
        "\x80\x02"
        "e.",
        "damaged");
    row("taking what a mark holds back", "\x80\x02)(0.", "damaged");
    row("a memo that is not there", "\x80\x02h\x05.", "damaged");
    row("no end", "\x80\x02})", "ends before its STOP");
    row("more than one value", "\x80\x02}}.", "damaged");
    row("a whole number of 255 bytes", "\x80\x02\x8a\xff" + std::string(255, '\1') + ".", "a large number");
    row("a whole number that is cut off", "\x80\x02\x8a\xff" + std::string(254, '\1'), "damaged");
    row("a storage of 2^80 elements", stateDict("ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\nFloatStorage\n" +
                                                text("0") + text("cpu") + "\x8a\x0b" + std::string(10, '\0') + "\1tQ" + number(0) +
                                                tuple({4}) + tuple({1}) + "\x89NtR"),
        "no valid storage");
    row("100 000 tensors described by one list of a million", sharedArguments(100'000, 1'000'000), "no valid storage");
    row("calling a text", "\x80\x02" + text("os") + ")R.", "damaged");
    row("a tensor that is none", stateDict("ctorch._utils\n_rebuild_tensor_v2\n)R"), "too few values");
    row("a parameter in a parameter", stateDict("ctorch._utils\n_rebuild_parameter\n(ctorch._utils\n_rebuild_parameter\n)RtR"),
        "without a tensor");
    row("a storage that is not there",
        stateDict("ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\nFloatStorage\n" + text("../../../etc/passwd") +
                  text("cpu") + number(4) + "tQ" + number(0) + tuple({4}) + tuple({1}) + "\x89NtR"),
        "not in the archive");
    row("a storage longer than its file", stateDict(tensor(400, 0, {4}, {1})), "16 bytes; the pickle claims 1600");
    row("a storage of 2^62 elements", stateDict(tensor(std::int64_t(1) << 62, 0, {4}, {1})), "too large");
    row("an offset behind the storage", stateDict(tensor(4, 5, {0}, {1})), "leaves its storage");
    row("a negative offset", stateDict(tensor(4, -1, {1}, {1})), "no valid offset");
    row("a negative length", stateDict(tensor(4, 0, {-4}, {1})), "no valid shape");
    row("a negative stride", stateDict(tensor(4, 3, {4}, {-1})), "no valid strides");
    row("a stride out of the storage", stateDict(tensor(4, 0, {2, 2}, {3, 1})), "leaves its storage");
    row("strides that overflow", stateDict(tensor(4, 0, {2, 2}, {INT64_MAX, INT64_MAX})), "leaves its storage");
    row("a shape that overflows", stateDict(tensor(4, 0, {INT64_MAX, 4}, {0, 0})), "too large");
    row("one element as 2^40", stateDict(tensor(4, 0, {std::int64_t(1) << 40}, {0})), "repeats elements");
    row("shape and strides of other lengths", stateDict(tensor(4, 0, {4}, {1, 1})), "different lengths");
    row("seventeen dimensions", stateDict(tensor(4, 0, std::vector<std::int64_t>(17, 1), std::vector<std::int64_t>(17, 1))),
        "no valid shape");
    row("complex numbers", stateDict(tensor(4, 0, {4}, {1}, "torch\nComplexFloatStorage")), "torch.ComplexFloatStorage");
    row("a name twice", "\x80\x02}(" + text("w") + tensor(4, 0, {4}, {1}) + text("w") + tensor(4, 0, {4}, {1}) + "u.", "twice");
    row("a name that is no UTF-8", "\x80\x02}(" + text("\xff\xfe") + tensor(4, 0, {4}, {1}) + "u.", "no UTF-8");
    row("a number", "\x80\x02K\x05.", "expected a dictionary");
}

void TestTensorFile::refusesHostilePickles() {
    QFETCH(QByteArray, pickle);
    QFETCH(QString, says);
    QCOMPARE(refusalOf(write(archiveOf(stateDict(tensor(4, 0, {2, 2}, {2, 1}))))), std::string()); // the same by hand, right
    expectRefusal(QByteArray::fromStdString(archiveOf(pickle.toStdString())), says);
}

void TestTensorFile::refusesHostileArchives_data() {
    QTest::addColumn<QByteArray>("content");
    QTest::addColumn<QString>("says");
    const auto row = [](const char* name, const std::string& content, const char* says) {
        QTest::newRow(name) << QByteArray::fromStdString(content) << QString(says);
    };
    const std::string good = stateDict(tensor(4, 0, {4}, {1})), storage(16, '\1');
    const auto with = [&](ZipPart pickle, ZipPart data) {
        pickle.name = "a/data.pkl";
        pickle.content = good;
        data.name = "a/data/0";
        data.content = storage;
        return zipOf({pickle, data});
    };
    row("wrong checksum of the pickle", with({.crcError = 1}, {}), "does not fit its checksum");
    row("wrong checksum of a storage", with({}, {.crcError = 1}), "\"a/data/0\" that does not fit its checksum");
    row("compressed", with({}, {.method = 8}), "compressed (method 8)");
    row("encrypted", with({}, {.flags = 1}), "encrypted");
    row("entry past the end", with({}, {.sizeError = 1'000'000}), "leaves the archive");
    row("entries that overlap", with({.sizeError = 30}, {}), "overlaps");
    row("header elsewhere", with({}, {.offsetError = -4}), "no header");
    row("header of another name", with({}, {.nameInHeader = "a/data/1"}), "contradicts the table");
    row("a name twice", zipOf({{"a/data.pkl", good}, {"a/data.pkl", good}}), "there twice");
    row("two pickles", zipOf({{"a/data.pkl", good}, {"b/data.pkl", good}}), "two files data.pkl");
    row("no pickle", zipOf({{"a/data/0", storage}}), "without a data.pkl");
    row("TorchScript", zipOf({{"a/data.pkl", good}, {"a/constants.pkl", "x"}}), "TorchScript");
    row("big-endian", zipOf({{"a/data.pkl", good}, {"a/data/0", storage}, {"a/byteorder", "big"}}), "byte order");
    row("more entries claimed", zipOf({{"a/data.pkl", good}}, 5), "more than its table of contents can hold");
    row("fewer entries claimed", zipOf({{"a/data.pkl", good}, {"a/data/0", storage}}, 0xFFFF), "more in its table of contents");
    row("cut", archiveOf(good).substr(0, 150), "no complete zip archive");
    row("something before it", "PK\3\4...." + archiveOf(good), "not where it says");
    std::string lies = archiveOf(good);
    const std::size_t end = lies.size() - 22;
    const auto zip64 = [&](std::uint64_t entries, std::uint64_t bytes, std::uint64_t offset, std::uint64_t where) {
        std::string out = lies;
        out.insert(end, "PK\6\6" + littleEndian(std::uint64_t(44)) + std::string(12, '\0') + littleEndian(entries) + littleEndian(entries) +
                            littleEndian(bytes) + littleEndian(offset) + "PK\6\7" + std::string(4, '\0') + littleEndian(where) +
                            littleEndian(1));
        return out;
    };
    std::uint32_t bytes = 0, offset = 0;
    std::memcpy(&bytes, lies.data() + end + 12, 4);
    std::memcpy(&offset, lies.data() + end + 16, 4);
    row("zip64 with other sizes", zip64(3, bytes + 1, offset, end), "contradict");
    row("zip64 with 2^63 entries", zip64(std::uint64_t(1) << 63, bytes, offset, end), "contradict");
    row("zip64 record elsewhere", zip64(3, bytes, offset, std::uint64_t(1) << 62), "not where it says");
    std::string saturated = archiveOf(good); // the size of the first entry says "look into the extra field", which is not there
    const std::size_t central = saturated.find("PK\1\2");
    saturated.replace(central + 24, 4, "\xff\xff\xff\xff");
    row("zip64 without its sizes", saturated, "lacks its zip64 sizes");
}

void TestTensorFile::refusesHostileArchives() {
    QFETCH(QByteArray, content);
    QFETCH(QString, says);
    expectRefusal(content, says);
}

void TestTensorFile::refusesHostileMindSporeFiles_data() {
    QTest::addColumn<QByteArray>("content");
    QTest::addColumn<QString>("says");
    const auto row = [](const char* name, const std::string& content, const char* says) {
        QTest::newRow(name) << QByteArray::fromStdString(content) << QString(says);
    };
    const std::string four(16, '\0');
    row("nested lengths of 2^60", "\n" + varint(1ull << 60) + "\n" + varint(1ull << 60), "bytes where");
    row("a number without an end", "\n" + std::string(20, '\xff'), "without an end");
    row("an inner length over the outer", field(1, "\n" + varint(100) + "x"), "bytes where");
    row("a group", "\x0b", "kind 3");
    row("2^63 rows", record("w", {1ull << 63}, "Float32", four), "negative");
    row("2^40 times 2^40", record("w", {1ull << 40, 1ull << 40}, "Float32", four), "too large");
    row("a thousand dimensions", record("w", std::vector<std::uint64_t>(1000, 1), "Float32", four), "16 dimensions");
    row("packed dimensions, ten million", field(1, field(1, "w") + field(2, field(1, std::string(10'000'000, '\1')))), "16 dimensions");
    row("bytes that do not fit the shape", record("w", {5}, "Float32", four), "20 bytes, but has 16");
    row("two tensors of one name",
        record("w", {4}, "Float32", four) + record("v", {4}, "Float32", four) + record("w", {4}, "Float32", four), "there twice");
    row("pieces that are too many", record("w", {4}, "Float32", four) + record("w", {4}, "Float32", four), "but has 32");
    row("two tensors in one record", field(1, field(1, "w") + field(2, "") + field(2, "")), "twice in one record");
    row("a name that is no UTF-8", record("\xff", {4}, "Float32", four), "no UTF-8");
    row("nothing that is a tensor", field(1, field(1, "w")), "no tensors");
    row("a wrong checksum", record("w", {4}, "Float32", four) + "crc_num" + std::string(10, '\0'), "checksum at its end");
}

void TestTensorFile::refusesHostileMindSporeFiles() {
    QFETCH(QByteArray, content);
    QFETCH(QString, says);
    QCOMPARE(refusalOf(write(record("w", {4}, "Float32", std::string(16, '\0')), "x.ckpt")), std::string());
    expectRefusal(content, says, "x.ckpt");
}

/// Every bit that says something: torch.save's padding and the zip format's dates say nothing.
void TestTensorFile::everyFlippedBitIsSeen() {
    const std::string good = archiveOf(stateDict(tensor(4, 0, {4}, {1})), "0123456789abcdef");
    const std::size_t pickleAt = good.find("archive/data.pkl") + 16, pickleEnd = good.find("PK\3\4", 4);
    const std::size_t storageAt = good.find("0123456789abcdef");
    for (std::size_t i = 0; i < good.size(); ++i) {
        if (!(i >= pickleAt && i < pickleEnd) && !(i >= storageAt && i < storageAt + 16)) continue;
        std::string flipped = good;
        flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
        QVERIFY2(refusalOf(write(flipped)).find("checksum") != std::string::npos, std::to_string(i).c_str());
    }
}

void TestTensorFile::everyCutIsSeen_data() {
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("name");
    QTest::newRow("torch") << QString("checkpoints/training.bin") << QString("x.bin");
    QTest::newRow("safetensors") << QString("checkpoints/all_kinds.safetensors") << QString("x.safetensors");
    QTest::newRow("MindSpore with a checksum") << QString("checkpoints/all_kinds.ckpt") << QString("x.ckpt");
}

void TestTensorFile::everyCutIsSeen() {
    QFETCH(QString, file);
    QFETCH(QString, name);
    const auto whole = readFile(fixture(file.toStdString()));
    QVERIFY(whole);
    // A MindSpore file may end after any record, and its mark "crc_num" is no part of the message: such a cut shows only in what is
    // missing.
    const auto tensors = opened(fixture(file.toStdString()))->names().size();
    for (std::size_t bytes = 0; bytes < whole->size(); bytes += 7) {
        const fs::path path = write(whole->substr(0, bytes), name.toUtf8());
        const auto cut = TensorFile::open(path);
        QVERIFY2(!cut || (name == "x.ckpt" && (*cut)->names().size() < tensors), std::to_string(bytes).c_str());
    }
}

void TestTensorFile::whatIsNoFileIsRefused() {
    const fs::path folder = m_folder.path().toStdString(), loop = folder / "loop.bin", other = folder / "other.bin";
    fs::create_symlink(other, loop);
    fs::create_symlink(loop, other);
    QVERIFY(refusalOf(loop).find("cannot be opened") != std::string::npos);
    QVERIFY(refusalOf(folder).find("no regular file") != std::string::npos);
    QVERIFY(refusalOf("/dev/zero").find("no regular file") != std::string::npos);
    QVERIFY(refusalOf(write("")).find("empty") != std::string::npos);
    QVERIFY(refusalOf(write("Not Found")).find("neither a safetensors file") != std::string::npos);
}

QTEST_GUILESS_MAIN(TestTensorFile)
#include "tst_tensor_file.moc"
