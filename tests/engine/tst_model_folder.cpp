// Model folders: every form is opened, what does not fit is listed at once, exports appear whole and read back.
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/model_folder.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/exec/runtime.h"
#include "models/base/files.h"
#include "models/families/families.h"
#include "models/graph/json.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <QTemporaryDir>
#include <QTest>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

using namespace celloom;
using namespace celloom::engine;
namespace fs = std::filesystem;
using Tensors = std::map<std::string, at::Tensor>;

namespace {

fs::path fixture() {
    return fs::path(CELLOOM_FIXTURES) / "baichuan_7b";
}

Tensors fixtureTensors() {
    const auto file = SafetensorsFile::open(fixture() / "model.safetensors");
    Tensors out;
    for (const std::string& name : (*file)->names()) out[name] = *(*file)->tensor(name);
    return out;
}

bool sameWeights(const Network& a, const Network& b) {
    for (std::size_t i = 0; i < a.parameters().size(); ++i)
        if (!at::equal(a.parameters()[i].tensor, b.parameters()[i].tensor)) return false;
    return a.parameters().size() == b.parameters().size();
}

} // namespace

class TestModelFolder : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { setThreads(1); }
    void init() { m_folder = std::make_unique<QTemporaryDir>(); }
    void opensShards();
    void convertsHalfTypes_data();
    void convertsHalfTypes();
    void listsAllThatDoesNotFit();
    void ignoresWhatHoldsNothing();
    void refusesPickledWeights();
    void refusesIndexThatLeavesTheFolder();
    void refusesIndexThatIsNoIndex();
    void waitsForNoPipe();
    void saysWhatAFolderLacks();
    void opensTheNewestCompleteCheckpointOfARun();
    void everyEndIdIsRead();
    void exportReadsBackAndIsWhole();
    void changedGraphsAreExportedWithoutConfigJson();

private:
    std::unique_ptr<QTemporaryDir> m_folder;
    fs::path root() const { return m_folder->path().toStdString(); }
    /// A copy of the fixture's config.json, with these weights.
    fs::path folderWith(const char* name, const Tensors& tensors) const {
        const fs::path folder = root() / name;
        fs::create_directories(folder);
        fs::copy_file(fixture() / "config.json", folder / "config.json");
        if (!writeSafetensors(folder / "model.safetensors", tensors)) qFatal("the weights cannot be written");
        return folder;
    }
    static std::unique_ptr<Network> load(const fs::path& path) {
        auto folder = openModelFolder(path);
        if (!folder) qFatal("%s", folder.error().text().c_str());
        auto network = loadNetwork(*folder, {});
        if (!network) qFatal("%s", network.error().text().c_str());
        return std::move(*network);
    }
    static Error refusalOf(const fs::path& path) {
        const auto folder = openModelFolder(path);
        if (!folder) return folder.error();
        const auto network = loadNetwork(*folder, {});
        return network ? Error{} : network.error();
    }
};

void TestModelFolder::opensShards() {
    const Tensors all = fixtureTensors();
    Tensors parts[2];
    nlohmann::json index;
    int count = 0;
    for (const auto& [name, tensor] : all) {
        const int part = count++ % 2;
        parts[part][name] = tensor;
        index["weight_map"][name] = "model-0000" + std::to_string(part + 1) + "-of-00002.safetensors";
    }
    const fs::path folder = root() / "sharded";
    fs::create_directories(folder);
    fs::copy_file(fixture() / "config.json", folder / "config.json");
    for (int part = 0; part < 2; ++part)
        QVERIFY(writeSafetensors(folder / ("model-0000" + std::to_string(part + 1) + "-of-00002.safetensors"), parts[part]));
    QVERIFY(writeFileAtomically(folder / "model.safetensors.index.json", index.dump()));
    QVERIFY(sameWeights(*load(folder), *load(fixture())));
    fs::remove(folder / "model-00002-of-00002.safetensors");
    QVERIFY(refusalOf(folder).message.find("model-00002-of-00002.safetensors") != std::string::npos);
}

void TestModelFolder::convertsHalfTypes_data() {
    QTest::addColumn<int>("type");
    QTest::newRow("bfloat16") << int(at::kBFloat16);
    QTest::newRow("float16") << int(at::kHalf);
    QTest::newRow("float64") << int(at::kDouble);
}

void TestModelFolder::convertsHalfTypes() {
    QFETCH(int, type);
    Tensors converted = fixtureTensors();
    for (auto& item : converted) item.second = item.second.to(static_cast<at::ScalarType>(type));
    const auto network = load(folderWith("half", converted));
    for (const Parameter& parameter : network->parameters()) {
        QCOMPARE(parameter.tensor.scalar_type(), at::kFloat);
        QVERIFY(at::equal(parameter.tensor, converted.at(families::checkpointName("baichuan", parameter.path)).to(at::kFloat)));
    }
}

void TestModelFolder::listsAllThatDoesNotFit() {
    Tensors tensors = fixtureTensors();
    tensors.erase("model.layers.1.self_attn.o_proj.weight");
    tensors.erase("lm_head.weight");
    tensors["model.layers.2.mlp.up_proj.weight"] = at::ones({160, 64});
    tensors["model.norm.weight"] = at::ones({65});
    tensors["model.embed_tokens.weight"] = tensors["model.embed_tokens.weight"].to(at::kInt);
    const Error error = refusalOf(folderWith("misfit", tensors));
    for (const char* part : {"missing: model.layers.1.self_attn.o_proj.weight, lm_head.weight",
                             "unexpected: model.layers.2.mlp.up_proj.weight", "[65], expected [64]", "int32 [512, 64]"})
        QVERIFY2(error.message.find(part) != std::string::npos, error.text().c_str());
    QVERIFY(!error.hint.empty());
}

void TestModelFolder::ignoresWhatHoldsNothing() {
    Tensors tensors = fixtureTensors();
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = at::ones({8});
    QVERIFY(sameWeights(*load(folderWith("old", tensors)), *load(fixture())));
}

void TestModelFolder::refusesPickledWeights() {
    const fs::path folder = folderWith("pickle", {});
    fs::remove(folder / "model.safetensors");
    // cos\nsystem\n(S'touch ...'\ntR. : would run a command when unpickled
    QVERIFY(writeFileAtomically(folder / "pytorch_model.bin", "cos\nsystem\n(S'touch " + (root() / "marker").string() + "'\ntR."));
    const Error error = refusalOf(folder);
    QVERIFY2(error.message.find("os.system") != std::string::npos && error.place.ends_with("pytorch_model.bin"), error.text().c_str());
    QVERIFY(!fs::exists(root() / "marker"));
}

void TestModelFolder::refusesIndexThatLeavesTheFolder() {
    const fs::path folder = folderWith("leaving", {});
    fs::remove(folder / "model.safetensors");
    for (const char* name : {"../model.safetensors", "/etc/passwd", "weights.bin"}) {
        QVERIFY(writeFileAtomically(folder / "model.safetensors.index.json",
                                    nlohmann::json{{"weight_map", {{"lm_head.weight", name}}}}.dump()));
        QVERIFY(refusalOf(folder).place.ends_with("index.json"));
    }
}

void TestModelFolder::refusesIndexThatIsNoIndex() {
    const fs::path folder = folderWith("no index", {});
    fs::remove(folder / "model.safetensors");
    const std::string deep = std::string(1'000'000, '['), closed = std::string(1'000'000, ']');
    for (const std::string& text : {deep, R"({"weight_map":{"lm_head.weight":)" + deep + closed + "}}", std::string("hello")}) {
        QVERIFY(writeFileAtomically(folder / "model.safetensors.index.json", text));
        QVERIFY(refusalOf(folder).place.ends_with("index.json"));
    }
    QVERIFY(writeFileAtomically(folder / "model.safetensors.index.json", R"({"weight_map":{"a":"b\u0000.safetensors"}})"));
    QVERIFY(refusalOf(folder).hint.size() > 0);
}

void TestModelFolder::waitsForNoPipe() {
    const fs::path folder = folderWith("pipe", fixtureTensors());
    fs::remove(folder / "config.json");
    QCOMPARE(::mkfifo((folder / "config.json").c_str(), 0600), 0);
    QVERIFY(refusalOf(folder).message.find("config.json") != std::string::npos);
}

void TestModelFolder::saysWhatAFolderLacks() {
    fs::create_directories(root() / "empty");
    QVERIFY(refusalOf(root() / "empty").message.find("config.json") != std::string::npos);
    const fs::path folder = folderWith("no weights", {});
    fs::remove(folder / "model.safetensors");
    QVERIFY(refusalOf(folder).message.find("model.safetensors") != std::string::npos);
    QVERIFY(refusalOf(root() / "nowhere").message.find("no model folder") != std::string::npos);
    QVERIFY(writeFileAtomically(root() / "a.cells.json", graph::toJson(*families::buildPreset("baichuan-tiny"))));
    QVERIFY(refusalOf(root() / "a.cells.json").message.find("no weights") != std::string::npos);
}

void TestModelFolder::opensTheNewestCompleteCheckpointOfARun() {
    const fs::path run = root() / "0001-run";
    fs::create_directories(run / "checkpoints");
    QVERIFY(writeFileAtomically(run / "recipe.json", "{}"));
    QVERIFY(refusalOf(run).message.find("no checkpoint") != std::string::npos);
    for (const char* name : {"step-000090", "step-000200", "step-1000000", "step-000300"})
        fs::copy(folderWith(name, fixtureTensors()), run / "checkpoints" / name);
    for (const char* name : {"step-000090", "step-000200", "step-1000000"})
        QVERIFY(writeManifest(run / "checkpoints" / name)); // 300 was never finished
    const auto folder = openModelFolder(run);
    QVERIFY2(folder, folder ? "" : folder.error().text().c_str());
    QCOMPARE(folder->path.filename().string(), std::string("step-1000000"));
}

void TestModelFolder::everyEndIdIsRead() {
    const fs::path folder = folderWith("ends", fixtureTensors());
    QCOMPARE(openModelFolder(folder)->endIds, std::vector<std::int64_t>{2}); // of its config.json
    QVERIFY(writeFileAtomically(folder / "generation_config.json", R"({"eos_token_id": [2, 11, 7]})"));
    QCOMPARE(openModelFolder(folder)->endIds, (std::vector<std::int64_t>{2, 11, 7}));
    QVERIFY(writeFileAtomically(folder / "generation_config.json", R"({"eos_token_id": 7})"));
    QCOMPARE(openModelFolder(folder)->endIds, (std::vector<std::int64_t>{2, 7}));
    QVERIFY(writeFileAtomically(folder / "generation_config.json", R"({"eos_token_id": "</s>"})"));
    QVERIFY(refusalOf(folder).message.find("</s>") != std::string::npos);
}

void TestModelFolder::exportReadsBackAndIsWhole() {
    const auto network = load(fixture());
    const auto folder = openModelFolder(fixture());
    const fs::path tokenizer = root() / "tok";
    QVERIFY(writeFileAtomically(tokenizer, "a tokenizer"));
    QVERIFY(exportModel(*network, folder->document, tokenizer, root() / "out" / "model"));
    for (const char* name : {"model.safetensors", "config.json", "model.cells.json", "tokenizer.model"})
        QVERIFY(fs::exists(root() / "out" / "model" / name));
    QVERIFY(sameWeights(*load(root() / "out" / "model"), *network));
    // The names that other tools look for are those of the published checkpoint.
    const auto written = SafetensorsFile::open(root() / "out" / "model" / "model.safetensors"),
               original = SafetensorsFile::open(fixture() / "model.safetensors");
    QCOMPARE((*written)->names(), (*original)->names());
    QCOMPARE((*written)->metadata().at("format"), std::string("pt"));
    const auto again = exportModel(*network, folder->document, tokenizer, root() / "out" / "model");
    QVERIFY(!again);
    const auto failing = exportModel(*network, folder->document, root() / "missing", root() / "out" / "other");
    QVERIFY(!failing);
    QCOMPARE(std::distance(fs::directory_iterator(root() / "out"), fs::directory_iterator()), 1); // nothing half-made stays
}

void TestModelFolder::changedGraphsAreExportedWithoutConfigJson() {
    auto folder = openModelFolder(fixture());
    folder->document.family.clear();
    const auto network = loadNetwork(*openModelFolder(fixture()), {});
    QVERIFY(exportModel(**network, folder->document, {}, root() / "own"));
    QVERIFY(!fs::exists(root() / "own" / "config.json"));
    QVERIFY(fs::exists(root() / "own" / "model.cells.json"));
}

QTEST_GUILESS_MAIN(TestModelFolder)
#include "tst_model_folder.moc"
