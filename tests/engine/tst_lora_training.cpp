// LoRA as a run: a recipe repeats PEFT's trace, leaves the base's file alone, resumes exactly, and its run opens as a model.
#include "engine/exec/runtime.h"
#include "engine/train/llm_trainer.h"
#include "tests/engine/lora_helpers.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <QTemporaryDir>
#include <QTest>

using namespace celloom;
using namespace celloom::engine;
using namespace celloom::engine::testing;

class TestLoraTraining : public QObject {
    Q_OBJECT
    std::unique_ptr<QTemporaryDir> m_temporary;
    fs::path root() const { return m_temporary->path().toStdString(); }
    store::Workspace workspace() const { return must(store::Workspace::open(root() / "workspace")); }

    /// The fixture's three batches of two rows as a file of tokens, and its optimizer.
    json recipe(const Case& fixture) const {
        const fs::path data = root() / "data.safetensors";
        must(writeSafetensors(data, {{"input_ids", must(fixture.inputs->tensor("input_ids")).flatten(0, 1)},
                                     {"labels", must(fixture.inputs->tensor("labels")).flatten(0, 1)}}));
        const std::string base = (fs::path(CELLOOM_FIXTURES) / fixture.expected["base"].get<std::string>()).string();
        return {{"kind", "finetune"},
                {"model", {{"source", base}, {"weights", base}}},
                {"data", {{"train", {data.string()}}, {"validation_fraction", 0}, {"shuffle", false}}},
                {"train", {{"batch_size", 2}}},
                {"lora", {{"targets", {"q_proj", "v_proj"}}, {"rank", 4}, {"alpha", 8}, {"adapter", (fixture.folder / "adapter_init").string()}}},
                {"optimizer",
                 {{"lr", 1e-2}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}, {"weight_decay", 0.01}, {"clip_norm", 0}, {"no_decay", json::array()},
                  {"decay_vectors", true}}},
                {"schedule", {{"type", "constant"}}},
                {"threads", 1}};
    }

    RunResult run(const store::RunFolder& folder, const json& text) const {
        const auto loaded = must(recipe::Recipe::fromJson(text.dump()));
        const auto writer = must(store::RunWriter::open(folder.database()));
        must(writeFileAtomically(folder.recipe(), loaded.toJson()));
        LLMTrainer trainer({folder, workspace().cache(), *writer, nullptr, nullptr, [](const std::string&) {}}, loaded);
        return trainer.run();
    }

    static std::vector<double> losses(const store::RunFolder& folder) {
        std::vector<double> out;
        for (const auto& row : must(must(store::RunReader::open(folder.database()))->metricsAfter(0, 100000)))
            if (row.name == "train/loss") out.push_back(row.value);
        return out;
    }

private Q_SLOTS:
    void init() { m_temporary = std::make_unique<QTemporaryDir>(); }

    void aRecipeRepeatsPeftsTrace_data() {
        QTest::addColumn<QString>("name");
        QTest::newRow("two targets") << "lora_internlm_qv";
        QTest::newRow("rsLoRA, patterns, biases, a whole head") << "lora_internlm_options";
        QTest::newRow("one layer") << "lora_internlm_layers";
    }
    void aRecipeRepeatsPeftsTrace() {
        QFETCH(QString, name);
        const Case fixture(name);
        json text = recipe(fixture);
        if (name == "lora_internlm_options")
            text["lora"].update({{"targets", {"q_proj", "k_proj", "v_proj", "o_proj"}}, {"rslora", true}, {"bias", "lora_only"},
                                 {"rank_pattern", {"v_proj=2"}}, {"alpha_pattern", {"v_proj=6"}}, {"modules_to_save", {"lm_head"}}});
        if (name == "lora_internlm_layers") text["lora"]["layers_to_transform"] = {"1"};
        const auto baseFile = fs::path(text["model"]["weights"].get<std::string>()) / "model.safetensors";
        const std::string hash = must(sha256OfFile(baseFile));
        const auto folder = must(workspace().createRun("lora"));
        const RunResult result = run(folder, text);
        QVERIFY2(result.code == protocol::Ok, result.error.text().c_str());
        QCOMPARE(must(sha256OfFile(baseFile)), hash);

        const auto measured = losses(folder);
        QCOMPARE(measured.size(), std::size_t(3));
        for (std::size_t s = 0; s < 3; ++s) QVERIFY(std::abs(measured[s] - fixture.expected["losses_f32"][s].get<double>()) < fixture.tolerance("loss_abs"));
        const auto expected = must(SafetensorsFile::open(fixture.folder / "adapter/adapter_model.safetensors"));
        const auto saved = must(SafetensorsFile::open(folder.path / "adapter/adapter_model.safetensors"));
        QCOMPARE(saved->names().size(), expected->names().size());
        for (const std::string& tensor : expected->names())
            QVERIFY2(largest(must(saved->tensor(tensor)) - must(expected->tensor(tensor))) < fixture.tolerance("adapter_abs"), tensor.c_str());

        // A checkpoint holds what changed and nothing of the base; run, checkpoint and adapter open as the model that was trained.
        const fs::path checkpoint = folder.checkpoints() / "step-000003";
        QVERIFY(fs::exists(checkpoint / "adapter_model.safetensors") && !fs::exists(checkpoint / "model.safetensors"));
        for (const fs::path& path : {folder.path, checkpoint, folder.path / "adapter"}) {
            const auto network = must(loadNetwork(must(openModelFolder(path)), {}));
            QVERIFY2(largest(logitsOf(*network, fixture.batch(0)) - fixture.tensor("logits_after")) < fixture.tolerance("logits_abs"), path.c_str());
        }
    }

    void itSaysWhatLearns() {
        const Case fixture("lora_internlm_qv");
        const auto folder = must(workspace().createRun("lora"));
        QVERIFY(run(folder, recipe(fixture)).code == protocol::Ok);
        const auto events = must(must(store::RunReader::open(folder.database()))->eventsAfter(0, 1000));
        const auto found = std::find_if(events.begin(), events.end(), [](const auto& event) { return event.kind == "trainable"; });
        QVERIFY(found != events.end());
        const json data = json::parse(found->data);
        QCOMPARE(data["trainable"].get<int>(), 2048);
        QCOMPARE(data["base"].get<int>() + data["adapters"].get<int>(), fixture.expected["total_params_with_adapter"].get<int>());
        QVERIFY(data["state_bytes"].get<double>() <= 0.05 * data["full_state_bytes"].get<double>()); // gradients and moments
        QVERIFY2(found->message.find("1.26 %: 2048 of 162624") != std::string::npos, found->message.c_str());
    }

    void resumingIsExactWithDropoutAndRecomputation() {
        const Case fixture("lora_internlm_qv");
        json text = recipe(fixture);
        text["lora"]["dropout"] = 0.3;
        text["train"]["recompute"] = true;
        text["train"]["max_steps"] = 6;
        const auto whole = must(workspace().createRun("whole"));
        QVERIFY(run(whole, text).code == protocol::Ok);
        const auto parts = must(workspace().createRun("parts"));
        text["train"]["max_steps"] = 2;
        QVERIFY(run(parts, text).code == protocol::Ok);
        text["train"]["max_steps"] = 6;
        const RunResult resumed = run(parts, text);
        QVERIFY2(resumed.code == protocol::Ok, resumed.error.text().c_str());
        QVERIFY(losses(whole) == losses(parts));
        QVERIFY(must(readFile(whole.path / "adapter/adapter_model.safetensors")) == must(readFile(parts.path / "adapter/adapter_model.safetensors")));
    }

    void anAdapterOnAnAdapterIsRefusedAsABase() {
        const Case fixture("lora_internlm_qv");
        const auto first = must(workspace().createRun("first"));
        json text = recipe(fixture);
        QVERIFY(run(first, text).code == protocol::Ok);
        text["model"]["weights"] = first.path.string();
        const RunResult result = run(must(workspace().createRun("second")), text);
        QVERIFY(result.code == protocol::BadInput);
        QVERIFY2(result.error.hint.find("Merge") != std::string::npos, result.error.text().c_str());
    }
};

QTEST_GUILESS_MAIN(TestLoraTraining)
#include "tst_lora_training.moc"
