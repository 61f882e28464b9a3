// Weights find their parameters in every format and under MindFormers' names; what does not fit is told at once, with a guess. Exported
// folders hold the same numbers.
#include "engine/checkpoint/export_folder.h"
#include "engine/checkpoint/model_folder.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/verify_folder.h"
#include "engine/exec/runtime.h"
#include "models/base/files.h"
#include "models/families/families.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <QTemporaryDir>
#include <QTest>
#include <nlohmann/json.hpp>

using namespace celloom;
using namespace celloom::engine;
namespace fs = std::filesystem;
using Tensors = std::map<std::string, at::Tensor>;

namespace {

fs::path fixture(const std::string& name) {
    return fs::path(CELLOOM_FIXTURES) / name;
}

Tensors tensorsOfFile(const fs::path& path) {
    const auto file = TensorFile::open(path);
    if (!file) qFatal("%s", file.error().text().c_str());
    Tensors out;
    for (const std::string& name : (*file)->names()) out[name] = (*file)->tensor(name)->clone();
    return out;
}

/// MindFormers' names, as its convert_weight.py gives them.
std::string theirName(std::string name) {
    const std::pair<const char*, const char*> pairs[] = {{"embed_tokens.weight", "tok_embeddings.embedding_weight"},
                                                         {".self_attn.q_proj.", ".attention.wq."},
                                                         {".self_attn.k_proj.", ".attention.wk."},
                                                         {".self_attn.v_proj.", ".attention.wv."},
                                                         {".self_attn.o_proj.", ".attention.wo."},
                                                         {".mlp.gate_proj.", ".feed_forward.w1."},
                                                         {".mlp.down_proj.", ".feed_forward.w2."},
                                                         {".mlp.up_proj.", ".feed_forward.w3."},
                                                         {".input_layernorm.", ".attention_norm."},
                                                         {".post_attention_layernorm.", ".ffn_norm."},
                                                         {".norm.", ".norm_out."}};
    for (const auto& [ours, theirs] : pairs)
        if (const auto at = name.find(ours); at != std::string::npos) name.replace(at, std::string(ours).size(), theirs);
    return name;
}

} // namespace

class TestWeights : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { setThreads(1); }
    void init() { m_folder = std::make_unique<QTemporaryDir>(); }
    void everyFormatGivesTheSameModel_data();
    void everyFormatGivesTheSameModel();
    void joinedProjectionsOfMindFormersAreTakenApart();
    void internlm2TakenApartIsJoined();
    void stateOfATrainingIsLeftOut();
    void aTiedHeadMustBeTheEmbedding();
    void guessesTheReason_data();
    void guessesTheReason();
    void indexesCannotLeaveTheFolder_data();
    void indexesCannotLeaveTheFolder();
    void linksInACircleAreNoFiles();
    void exportedFoldersHoldTheSameNumbers_data();
    void exportedFoldersHoldTheSameNumbers();
    void shardsAreAsLargeAsAsked();
    void configKeepsItsKeysAndEveryEndId();
    void mindSporeExportsReadBack_data();
    void mindSporeExportsReadBack();
    void nothingIsWrittenOnFailure();
    void verifyTellsWhatIsWrong();
    void sizesAreReadWithTheirUnits();

private:
    std::unique_ptr<QTemporaryDir> m_folder;
    fs::path root() const { return m_folder->path().toStdString(); }
    fs::path folderOf(const std::string& model, const char* name = "model") const {
        const fs::path folder = root() / name;
        fs::create_directories(folder);
        fs::copy_file(fixture(model) / "config.json", folder / "config.json", fs::copy_options::overwrite_existing);
        return folder;
    }
    fs::path folderWith(const std::string& model, const Tensors& tensors, const char* name = "model") const {
        const fs::path folder = folderOf(model, name);
        if (!writeSafetensors(folder / "model.safetensors", tensors)) qFatal("the weights cannot be written");
        return folder;
    }
    /// Parameters by checkpoint name, as the network got them.
    static Tensors loaded(const fs::path& path) {
        const auto folder = openModelFolder(path);
        if (!folder) qFatal("%s", folder.error().text().c_str());
        const auto network = loadNetwork(*folder, {});
        if (!network) qFatal("%s", network.error().text().c_str());
        Tensors out;
        for (const Parameter& parameter : (*network)->parameters())
            out[families::checkpointName((*network)->model().family, parameter.path)] = parameter.tensor.detach().clone();
        return out;
    }
    static Error refusalOf(const fs::path& path) {
        const auto folder = openModelFolder(path);
        if (!folder) return folder.error();
        const auto network = loadNetwork(*folder, {});
        return network ? Error{} : network.error();
    }
    static ExportSource sourceOf(const fs::path& path) {
        const auto folder = openModelFolder(path);
        if (!folder) qFatal("%s", folder.error().text().c_str());
        ExportSource out;
        out.document = folder->document;
        out.model = graph::expand(folder->document).model;
        auto plan = planWeights(folder->weightFiles, out.model, tensorsOf(out.model), path);
        if (!plan) qFatal("%s", plan.error().text().c_str());
        out.plan = std::move(*plan);
        out.folder = folder->path;
        if (fs::exists(out.folder / "config.json")) out.config = out.folder / "config.json";
        out.tokenizer = folder->tokenizer;
        return out;
    }
    static void compare(const Tensors& found, const Tensors& expected) {
        QCOMPARE(found.size(), expected.size());
        for (const auto& [name, tensor] : expected) {
            QVERIFY2(found.contains(name), name.c_str());
            QVERIFY2(at::equal(found.at(name).to(at::kFloat), tensor.to(at::kFloat)), name.c_str());
        }
    }
};

void TestWeights::everyFormatGivesTheSameModel_data() {
    QTest::addColumn<QString>("model");
    QTest::addColumn<QStringList>("files"); // source and name in the folder
    QTest::addColumn<int>("type");          // what the original was rounded to
    QTest::newRow("torch.save, bfloat16") << "baichuan_7b" << QStringList{"baichuan_7b.bf16.bin", "pytorch_model.bin"}
                                          << int(at::kBFloat16);
    QTest::newRow("torch.save, tied") << "llama/llama3_tied" << QStringList{"llama3_tied.f32.bin", "pytorch_model.bin"} << int(at::kFloat);
    QTest::newRow("torch.save, shards of float16")
        << "internlm2" << QStringList{"internlm2.f16/pytorch_model-00001-of-00002.bin", "pytorch_model-00001-of-00002.bin",
                                      "internlm2.f16/pytorch_model-00002-of-00002.bin", "pytorch_model-00002-of-00002.bin",
                                      "internlm2.f16/pytorch_model.bin.index.json",     "pytorch_model.bin.index.json"}
        << int(at::kHalf);
    QTest::newRow("MindSpore, float16, Baichuan") << "baichuan_7b" << QStringList{"baichuan_7b.f16.ckpt", "rank_0.ckpt"} << int(at::kHalf);
    QTest::newRow("MindSpore, bfloat16, InternLM2") << "internlm2" << QStringList{"internlm2.bf16.ckpt", "x.ckpt"} << int(at::kBFloat16);
}

void TestWeights::everyFormatGivesTheSameModel() {
    QFETCH(QString, model);
    QFETCH(QStringList, files);
    QFETCH(int, type);
    const fs::path folder = folderOf(model.toStdString());
    for (int i = 0; i < files.size(); i += 2)
        fs::copy_file(fixture("checkpoints/" + files[i].toStdString()), folder / files[i + 1].toStdString());
    Tensors expected = tensorsOfFile(fixture(model.toStdString()) / "model.safetensors");
    for (auto& item : expected) item.second = item.second.to(static_cast<at::ScalarType>(type));
    compare(loaded(folder), expected);
}

void TestWeights::joinedProjectionsOfMindFormersAreTakenApart() {
    const Tensors original = tensorsOfFile(fixture("internlm/model.safetensors"));
    Tensors theirs;
    for (const auto& [name, tensor] : original) theirs[theirName(name)] = tensor;
    for (const char* layer : {"model.layers.0.", "model.layers.1."}) {
        const auto join = [&](const std::string& into, const std::vector<std::string>& from) {
            std::vector<at::Tensor> parts;
            for (const std::string& name : from) {
                parts.push_back(theirs.at(layer + name));
                theirs.erase(layer + name);
            }
            theirs[layer + into] = at::cat(parts);
        };
        join("attention.w_qkv.weight", {"attention.wq.weight", "attention.wk.weight", "attention.wv.weight"});
        join("attention.w_qkv.bias", {"attention.wq.bias", "attention.wk.bias", "attention.wv.bias"});
        join("feed_forward.w_gate_hidden.weight", {"feed_forward.w1.weight", "feed_forward.w3.weight"});
    }
    compare(loaded(folderWith("internlm", theirs)), original);
    theirs["model.layers.0.attention.w_qkv.weight"] = at::ones({4 * 64, 64}); // one projection too many
    const Error error = refusalOf(folderWith("internlm", theirs, "long"));
    QVERIFY2(error.message.find("w_qkv.weight has 256 rows, of which the model has 192") != std::string::npos, error.text().c_str());
}

/// heads 8, kv_heads 2, head size 8: rows of wqkv are [4 query heads, key, value] twice.
void TestWeights::internlm2TakenApartIsJoined() {
    const Tensors original = tensorsOfFile(fixture("internlm2/model.safetensors"));
    Tensors theirs;
    for (const auto& [ours, tensor] : original) {
        std::string name = ours;
        if (name == "output.weight") name = "lm_head.weight";
        if (name == "model.norm.weight") name = "model.norm_out.weight";
        if (name == "model.tok_embeddings.weight") name = "model.tok_embeddings.embedding_weight";
        const auto at = name.find("wqkv");
        if (at == std::string::npos) {
            theirs[name] = tensor;
            continue;
        }
        const auto rows = [&](std::int64_t first, std::int64_t count) {
            return at::cat({tensor.narrow(0, first, count), tensor.narrow(0, 48 + first, count)}).contiguous();
        };
        theirs[std::string(name).replace(at, 4, "wq")] = rows(0, 32);
        theirs[std::string(name).replace(at, 4, "wk")] = rows(32, 8);
        theirs[std::string(name).replace(at, 4, "wv")] = rows(40, 8);
    }
    compare(loaded(folderWith("internlm2", theirs)), original);
}

void TestWeights::stateOfATrainingIsLeftOut() {
    Tensors theirs = tensorsOfFile(fixture("checkpoints/baichuan_7b.f16.ckpt"));
    theirs["adam_m.model.norm_out.weight"] = at::ones({64});
    theirs["global_step"] = at::ones({1}, at::kInt);
    const fs::path folder = folderWith("baichuan_7b", theirs);
    QCOMPARE(sourceOf(folder).plan.notRead,
             (std::vector<std::string>{"\"adam_m.model.norm_out.weight\" (state of a training)", "\"global_step\" (state of a training)"}));
}

void TestWeights::aTiedHeadMustBeTheEmbedding() {
    Tensors tensors = tensorsOfFile(fixture("llama/llama3_tied/model.safetensors"));
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone();
    QVERIFY(refusalOf(folderWith("llama/llama3_tied", tensors, "same")).message.empty());
    tensors["lm_head.weight"][3][5] += 1;
    const Error error = refusalOf(folderWith("llama/llama3_tied", tensors, "other"));
    QVERIFY2(error.message.find("lm_head.weight differs from the embedding") != std::string::npos, error.text().c_str());
    QVERIFY(error.hint.find("tie_word_embeddings") != std::string::npos);
}

void TestWeights::guessesTheReason_data() {
    QTest::addColumn<QString>("change");
    QTest::addColumn<QString>("guess");
    for (const auto& [change, guess] :
         {std::pair{"module.", "--strip-prefix module."}, std::pair{"base_model.model.", "--strip-prefix base_model.model."},
          std::pair{"inner", "without its head"}, std::pair{"vocabulary", "103168 words (as InternLM has), the model one of 512"},
          std::pair{"transposed", "[in, out]"}, std::pair{"wider", "80 wide, the model 64"}, std::pair{"llama", "names are those of Llama"},
          std::pair{"adapter", "adapter"}, std::pair{"quantised", "quantised"}, std::pair{"short", "missing"},
          std::pair{"long", "fewer layers"}})
        QTest::newRow(change) << QString(change) << QString(guess);
}

void TestWeights::guessesTheReason() {
    QFETCH(QString, change);
    QFETCH(QString, guess);
    Tensors tensors;
    for (const auto& [name, tensor] : tensorsOfFile(fixture("baichuan_7b/model.safetensors"))) {
        if (change.endsWith("."))
            tensors[change.toStdString() + name] = tensor;
        else if (change == "inner" && name.starts_with("model."))
            tensors[name.substr(6)] = tensor;
        else if (change == "vocabulary" && tensor.sizes()[0] == 512)
            tensors[name] = at::ones({103168, 1}).expand({103168, 64});
        else if (change == "transposed" && tensor.dim() == 2)
            tensors[name] = tensor.t();
        else if (change == "wider" && tensor.dim() == 2)
            tensors[name] = at::ones({tensor.sizes()[0], 80});
        else if (change == "llama" && name.find("W_pack") != std::string::npos)
            tensors[std::string(name).replace(name.find("W_pack"), 6, "q_proj")] = tensor;
        else if (change == "quantised" && name.find("mlp") != std::string::npos)
            tensors[name.substr(0, name.size() - 6) + "qweight"] = tensor;
        else if (!(change == "inner" || (change == "short" && name.find("layers.1.") != std::string::npos)))
            tensors[name] = tensor;
    }
    if (change == "adapter") tensors = {{"base_model.model.model.layers.0.self_attn.W_pack.lora_A.weight", at::ones({2, 64})}};
    if (change == "long") tensors["model.layers.2.mlp.up_proj.weight"] = at::ones({160, 64});
    const Error error = refusalOf(folderWith("baichuan_7b", tensors));
    QVERIFY2(QString::fromStdString(error.hint).contains(guess), error.text().c_str());
}

void TestWeights::indexesCannotLeaveTheFolder_data() {
    QTest::addColumn<QString>("shard");
    for (const char* shard : {"../../etc/passwd", "/etc/passwd", "../pytorch_model.bin", "a/b.bin", "model.safetensors", ".."})
        QTest::newRow(shard) << QString(shard);
}

void TestWeights::indexesCannotLeaveTheFolder() {
    QFETCH(QString, shard);
    const fs::path folder = folderOf("baichuan_7b");
    QVERIFY(
        writeFileAtomically(folder / "pytorch_model.bin.index.json", nlohmann::json{{"weight_map", {{"w", shard.toStdString()}}}}.dump()));
    const Error error = refusalOf(folder);
    QVERIFY2(error.message.find(shard.toStdString()) != std::string::npos && error.place.ends_with("index.json"), error.text().c_str());
}

void TestWeights::linksInACircleAreNoFiles() {
    const fs::path folder = folderOf("baichuan_7b");
    fs::create_symlink("b.bin", folder / "pytorch_model.bin");
    fs::create_symlink("pytorch_model.bin", folder / "b.bin");
    QVERIFY(refusalOf(folder).message.find("no weights") != std::string::npos);
    fs::remove(folder / "config.json");
    fs::create_symlink("config.json", folder / "config.json");
    QVERIFY(refusalOf(folder).message.find("config.json") != std::string::npos);
    fs::create_symlink("loop", root() / "loop");
    QVERIFY(refusalOf(root() / "loop").message.find("no model folder") != std::string::npos);
}

void TestWeights::exportedFoldersHoldTheSameNumbers_data() {
    QTest::addColumn<QString>("model");
    QTest::addColumn<int>("type"); // -1: as it is
    QTest::newRow("as it is") << "baichuan2_7b" << -1;
    QTest::newRow("bfloat16") << "internlm" << int(ElementType::BFloat16);
    QTest::newRow("float16") << "internlm3" << int(ElementType::Float16);
    QTest::newRow("tied") << "llama/llama3_tied" << int(ElementType::Float32);
    QTest::newRow("from shards") << "sharded_internlm2" << -1;
}

void TestWeights::exportedFoldersHoldTheSameNumbers() {
    QFETCH(QString, model);
    QFETCH(int, type);
    ExportOptions options;
    if (type >= 0) options.type = static_cast<ElementType>(type);
    const auto report = exportFolder(sourceOf(fixture(model.toStdString())), options, root() / "out");
    QVERIFY2(report, report ? "" : report.error().text().c_str());
    Tensors expected = loaded(fixture(model.toStdString()));
    const at::ScalarType scalar = scalarTypeOf(type >= 0 ? static_cast<ElementType>(type) : ElementType::Float32);
    for (auto& item : expected) item.second = item.second.to(scalar);
    compare(tensorsOfFile(root() / "out/model.safetensors"), expected);
    compare(loaded(root() / "out"), expected);
    const nlohmann::json config = nlohmann::json::parse(*readFile(root() / "out/config.json"));
    QCOMPARE(config.value(config.contains("dtype") ? "dtype" : "torch_dtype", ""), std::string(nameOf(report->type)));
}

void TestWeights::shardsAreAsLargeAsAsked() {
    ExportOptions options;
    options.maxShardBytes = 200'000; // the two matrices of 512 words have 131 072 bytes each
    const auto report = exportFolder(sourceOf(fixture("baichuan_7b")), options, root() / "out");
    QVERIFY2(report, report ? "" : report.error().text().c_str());
    const nlohmann::json index = nlohmann::json::parse(*readFile(root() / "out/model.safetensors.index.json"));
    QCOMPARE(index["metadata"]["total_size"].get<std::uint64_t>(), std::uint64_t(160064 * 4));
    Tensors all;
    for (const auto& item : fs::directory_iterator(root() / "out")) {
        if (item.path().extension() != ".safetensors") continue;
        QVERIFY(item.file_size() < 200'000 + 5'000);
        for (const auto& [name, tensor] : tensorsOfFile(item.path())) {
            QCOMPARE(index["weight_map"][name].get<std::string>(), item.path().filename().string());
            all[name] = tensor;
        }
    }
    compare(all, tensorsOfFile(fixture("baichuan_7b/model.safetensors")));
    compare(loaded(root() / "out"), all);
}

void TestWeights::configKeepsItsKeysAndEveryEndId() {
    const fs::path folder = folderWith("baichuan_7b", tensorsOfFile(fixture("baichuan_7b/model.safetensors")));
    auto config = nlohmann::ordered_json::parse(*readFile(folder / "config.json"));
    config["eos_token_id"] = {2, 7};
    config["auto_map"] = {{"AutoModelForCausalLM", "modeling_baichuan.BaiChuanForCausalLM"}};
    QVERIFY(writeFileAtomically(folder / "config.json", config.dump()));
    for (const auto& [name, content] :
         {std::pair{"generation_config.json", R"({"eos_token_id": [2, 11]})"}, std::pair{"tokenizer.model", "t"},
          std::pair{"tokenizer_config.json", "{}"}, std::pair{"modeling_baichuan.py", "# code"}, std::pair{"optimizer.pt", "x"}})
        QVERIFY(writeFileAtomically(folder / name, content));
    ExportOptions options;
    options.type = ElementType::BFloat16;
    const auto report = exportFolder(sourceOf(folder), options, root() / "out");
    QVERIFY2(report, report ? "" : report.error().text().c_str());
    QCOMPARE(report->left, std::vector<std::string>{"optimizer.pt"});
    config["torch_dtype"] = "bfloat16";
    QVERIFY(nlohmann::ordered_json::parse(*readFile(root() / "out/config.json")) == config);
    for (const char* name : {"generation_config.json", "tokenizer.model", "tokenizer_config.json", "modeling_baichuan.py"})
        QCOMPARE(*readFile(root() / "out" / name), *readFile(folder / name));
    QCOMPARE(openModelFolder(root() / "out")->endIds, (std::vector<std::int64_t>{2, 7, 11}));
}

void TestWeights::mindSporeExportsReadBack_data() {
    QTest::addColumn<QString>("model");
    for (const char* model : {"baichuan_7b", "baichuan2_7b", "internlm", "internlm2", "internlm3", "llama/llama3_tied"})
        QTest::newRow(model) << QString(model);
}

void TestWeights::mindSporeExportsReadBack() {
    QFETCH(QString, model);
    ExportOptions options;
    options.format = ExportOptions::Format::MindSpore;
    const auto report = exportFolder(sourceOf(fixture(model.toStdString())), options, root() / "out");
    QVERIFY2(report, report ? "" : report.error().text().c_str());
    compare(loaded(root() / "out"), loaded(fixture(model.toStdString())));
    const Tensors theirs = tensorsOfFile(root() / "out/model.ckpt");
    QVERIFY(theirs.contains("model.tok_embeddings.embedding_weight") && theirs.contains("model.norm_out.weight"));
    if (model == "baichuan_7b") { // the names that MindSpore's own file has
        const Tensors written = tensorsOfFile(fixture("checkpoints/baichuan_7b.f16.ckpt"));
        QCOMPARE(theirs.size(), written.size());
        for (const auto& [name, tensor] : written) QVERIFY2(at::equal(theirs.at(name).to(at::kHalf), tensor), name.c_str());
    }
}

void TestWeights::nothingIsWrittenOnFailure() {
    ExportSource source = sourceOf(folderWith("baichuan_7b", tensorsOfFile(fixture("baichuan_7b/model.safetensors"))));
    source.tokenizer = root() / "gone";
    QVERIFY(!exportFolder(source, {}, root() / "out/model"));
    QVERIFY(fs::is_empty(root() / "out"));
    fs::create_directories(root() / "there");
    QVERIFY(writeFileAtomically(root() / "there/file", "x"));
    source.tokenizer.clear();
    const auto refused = exportFolder(source, {}, root() / "there");
    QVERIFY(!refused && refused.error().message.find("exists") != std::string::npos);
    QCOMPARE(std::distance(fs::directory_iterator(root() / "there"), fs::directory_iterator()), 1);
}

void TestWeights::verifyTellsWhatIsWrong() {
    const auto report = verifyFolder(*openModelFolder(fixture("internlm2")));
    QVERIFY2(report, report ? "" : report.error().text().c_str());
    QCOMPARE(report->types, std::vector<std::string>{"float32"});
    Tensors tensors = tensorsOfFile(fixture("baichuan_7b/model.safetensors"));
    QCOMPARE(verifyFolder(*openModelFolder(folderWith("baichuan_7b", tensors)))->parameters, std::uint64_t(160064));
    tensors["model.norm.weight"][3] = std::numeric_limits<double>::quiet_NaN();
    tensors["lm_head.weight"][0] = std::numeric_limits<double>::infinity();
    const auto strange = verifyFolder(*openModelFolder(folderWith("baichuan_7b", tensors, "strange")));
    QVERIFY(!strange);
    for (const char* part : {"model.norm.weight (1 of 64 values)", "lm_head.weight (64 of 32768 values)"})
        QVERIFY2(strange.error().message.find(part) != std::string::npos, strange.error().text().c_str());
}

void TestWeights::sizesAreReadWithTheirUnits() {
    QCOMPARE(*parseBytes("5GB"), std::uint64_t(5'000'000'000));
    QCOMPARE(*parseBytes("500 mb"), std::uint64_t(500'000'000));
    QCOMPARE(*parseBytes("2GiB"), std::uint64_t(2) << 30);
    QCOMPARE(*parseBytes("4096"), std::uint64_t(4096));
    for (const char* wrong : {"", "GB", "0GB", "-1", "5 TB", "1e9", "99999999999999999999", "18446744073709551615GB"})
        QVERIFY2(!parseBytes(wrong), wrong);
}

QTEST_GUILESS_MAIN(TestWeights)
#include "tst_weights.moc"
