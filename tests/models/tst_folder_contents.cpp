// What is told of a model's folder before anything is loaded.
#include "models/base/files.h"
#include "models/families/folder_contents.h"

#include <QTemporaryDir>
#include <QtTest>

using namespace celloom;
namespace fs = std::filesystem;
using Kind = families::NotUnderstood::Kind;

class TestFolderContents : public QObject {
    Q_OBJECT
    QTemporaryDir m_temporary;

    fs::path folder(const char* name) {
        const fs::path path = fs::path(m_temporary.path().toStdString()) / name;
        fs::create_directories(path);
        return path;
    }
    static void write(const fs::path& path, const std::string& text) {
        if (auto status = writeFileAtomically(path, text); !status) qFatal("%s", status.error().text().c_str());
    }
    static std::vector<std::string> of(const families::FolderContents& contents, Kind kind) {
        std::vector<std::string> out;
        for (const auto& remark : contents.notUnderstood)
            if (remark.kind == kind) out.push_back(remark.what);
        return out;
    }
    using Texts = std::vector<std::string>;

private Q_SLOTS:
    void shardsOfAFixtureAreListedWithTheirSizes() {
        const fs::path path = fs::path(CELLOOM_FIXTURES) / "sharded_internlm2";
        const auto contents = families::folderContents(path);
        QCOMPARE(contents.weights.size(), std::size_t(4));
        std::int64_t bytes = 0;
        for (int i = 1; i <= 4; ++i) {
            const std::string name = "model-0000" + std::to_string(i) + "-of-00004.safetensors";
            QCOMPARE(contents.weights[static_cast<std::size_t>(i - 1)].name, name);
            bytes += static_cast<std::int64_t>(fs::file_size(path / name));
        }
        QCOMPARE(contents.weightBytes(), bytes);
        QCOMPARE(contents.statedType, std::string("float32"));
        QVERIFY(!contents.hasTokenizer);
        QVERIFY(of(contents, Kind::MissingShard).empty());
        // A file of the folder stands for it.
        QCOMPARE(families::folderContents(path / "config.json").weights.size(), std::size_t(4));
    }

    void whatIsNotUnderstoodIsNamed() {
        const fs::path path = folder("odd");
        write(path / "config.json",
              R"({"architectures": ["LlamaForCausalLM"], "vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
                  "intermediate_size": 24, "torch_dtype": "bfloat16", "a_new_idea": 3})");
        write(path / "modeling_new.py", "raise SystemExit");
        write(path / "tokenizer.json", "{}");
        write(path / "model.gguf", "GGUF");
        write(path / "trainer.safetensors", "of a checkpoint");
        write(path / "pytorch_model-00001-of-00002.bin", "12345");
        write(path / "model.safetensors.index.json", R"({"weight_map": {"a": "model-1.safetensors", "b": "model-1.safetensors"}})");
        const auto contents = families::folderContents(path);
        QCOMPARE(of(contents, Kind::ConfigKey), (Texts{"a_new_idea = 3"}));
        QCOMPARE(of(contents, Kind::RemoteCode), (Texts{"modeling_new.py"}));
        QCOMPARE(of(contents, Kind::Tokenizer), (Texts{"tokenizer.json"}));
        QCOMPARE(of(contents, Kind::ForeignWeights), (Texts{"model.gguf"}));
        QCOMPARE(of(contents, Kind::MissingShard), (Texts{"\"model-1.safetensors\""}));
        QCOMPARE(contents.statedType, std::string("bfloat16"));
        QCOMPARE(contents.weights.size(), std::size_t(1));
        QCOMPARE(contents.weights[0].bytes, std::int64_t(5));
        QVERIFY(contents.weights[0].format == families::WeightFile::Format::PyTorch);
        write(path / "tokenizer.model", "");
        QVERIFY(of(families::folderContents(path), Kind::Tokenizer).empty()); // the one that is read is there, too
    }

    void aRunShowsItsNewestCheckpoint() {
        const fs::path run = folder("run");
        for (const char* step : {"step-000010", "step-000020"}) {
            fs::create_directories(run / "checkpoints" / step);
            write(run / "checkpoints" / step / "model.safetensors", step);
        }
        write(run / "model.cells.json", "{}");
        QCOMPARE(families::folderContents(run).path.filename().string(), std::string("step-000020"));
    }

    void whatIsNotThereHoldsNothing() {
        const auto contents = families::folderContents(folder("empty") / "nowhere");
        QVERIFY(contents.weights.empty() && contents.notUnderstood.empty());
    }
};

QTEST_GUILESS_MAIN(TestFolderContents)
#include "tst_folder_contents.moc"
