// Adapters beside a base and on disk: PEFT's files give PEFT's logits, merging and swapping leave the base as it was, a wrong base is
// refused.
#include "engine/checkpoint/merge.h"
#include "engine/exec/runtime.h"
#include "models/recipe/parameter_table.h"
#include "tests/engine/cell_helpers.h"
#include "tests/engine/lora_helpers.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/tensor.h>
#include <QTemporaryDir>
#include <QTest>

using namespace celloom;
using namespace celloom::engine;
using namespace celloom::engine::testing;

namespace {

/// Copies of the base's own weights.
std::map<std::string, at::Tensor> weightsOf(const Network& network) {
    std::map<std::string, at::Tensor> out;
    for (const Parameter& parameter : network.parameters())
        if (!parameter.isAdapter) out[parameter.path] = parameter.tensor.detach().clone();
    return out;
}

bool areEqual(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b) {
    return a.size() == b.size() && std::all_of(a.begin(), a.end(), [&](const auto& item) { return at::equal(item.second, b.at(item.first)); });
}

std::string refusalOf(const Status& status) { return status ? std::string() : status.error().text(); }

} // namespace

class TestAdapters : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { setThreads(1); }
    void init() { m_folder = std::make_unique<QTemporaryDir>(); }

    // Case 15: A x = 3, scale 2, so that B A x scaled is [18 24]; W + 2 B A = I + 2 [[3 6], [4 8]].
    void aSmallAdapterAddsAndMergesAsByHand() {
        LoneCell dense("Dense", {{"in_channels", std::int64_t(2)}, {"out_channels", std::int64_t(2)}}, at::kFloat, at::kFloat);
        const at::NoGradGuard guard;
        dense.weights[0].copy_(at::eye(2));
        CellAdapter adapter;
        adapter.a = at::tensor({1.0f, 2.0f}).reshape({1, 2});
        adapter.b = at::tensor({3.0f, 4.0f}).reshape({2, 1});
        adapter.scale = recipe::LoraSettings{1, 2}.scale();
        dense.cell->setAdapters({adapter});
        const at::Tensor x = at::tensor({1.0f, 1.0f}).reshape({1, 1, 2});
        QVERIFY(at::equal(dense({x})[0].flatten(), at::tensor({19.0f, 25.0f})));
        QVERIFY(at::equal(mergedMatrix(adapter, dense.weights[0]), at::tensor({7.0f, 12.0f, 8.0f, 17.0f}).reshape({2, 2})));
    }

    void peftsFilesGivePeftsLogitsAndMerge_data() {
        QTest::addColumn<QString>("name");
        for (const char* name : {"lora_internlm_qv", "lora_internlm_options", "lora_internlm_layers", "lora_internlm2_wqkv", "lora_baichuan_wpack",
                             "lora_internlm3_dora"})
            QTest::newRow(name) << QString(name);
    }
    void peftsFilesGivePeftsLogitsAndMerge() {
        QFETCH(QString, name);
        const Case fixture(name);
        const auto network = fixture.plain();
        const auto base = weightsOf(*network);
        const Batch batch = fixture.batch(0);
        const double tolerance = fixture.tolerance("logits_abs");
        const at::Tensor before = logitsOf(*network, batch);
        QVERIFY(largest(before - fixture.tensor("logits_before")) < tolerance);
        must(loadAdapter(*network, "peft", must(openAdapterFolder(fixture.folder / "adapter"))));
        QVERIFY(at::equal(logitsOf(*network, batch), before)); // loaded, not yet active
        must(network->activate({{"peft", 1}}));
        const at::Tensor beside = logitsOf(*network, batch);
        QVERIFY(largest(beside - fixture.tensor("logits_after")) < tolerance);

        must(network->merge());
        QVERIFY(largest(logitsOf(*network, batch) - fixture.tensor("logits_merged")) < tolerance);
        const auto merged = weightsOf(*network);
        std::set<std::string> changed;
        for (const auto& [path, tensor] : merged) {
            const std::string key = families::checkpointName(network->model().family, path);
            if (!at::equal(tensor, base.at(path))) changed.insert(key);
            if (fixture.tensors->has("merged." + key)) QVERIFY2(largest(tensor - fixture.tensor("merged." + key)) < fixture.tolerance("adapter_abs"), key.c_str());
        }
        QVERIFY(changed == fixture.expected["merged_keys"].get<std::set<std::string>>());

        QVERIFY(refusalOf(network->merge()).find("already") != std::string::npos);
        QVERIFY(refusalOf(network->activate({})).find("merged") != std::string::npos);
        must(network->unmerge());
        QVERIFY(areEqual(weightsOf(*network), base));
        QVERIFY(at::equal(logitsOf(*network, batch), beside));
        must(network->activate({}));
        QVERIFY(at::equal(logitsOf(*network, batch), before));
    }

    void anAdapterWhoseBIsZeroEqualsTheBaseExactly() {
        const Case fixture("lora_internlm_qv");
        const auto network = fixture.plain();
        const at::Tensor before = logitsOf(*network, fixture.batch(0));
        must(loadAdapter(*network, "new", must(openAdapterFolder(fixture.folder / "adapter_init"))));
        must(network->activate({{"new", 1}}));
        QVERIFY(at::equal(logitsOf(*network, fixture.batch(0)), before));
    }

    // Weights mix linearly: W + a s B A + b s' B' A'.
    void adaptersAreSwappedAndMixedOnOneBase() {
        const Case first("lora_internlm_qv"), second("lora_internlm_layers");
        const auto network = first.plain();
        must(loadAdapter(*network, "first", must(openAdapterFolder(first.folder / "adapter"))));
        must(loadAdapter(*network, "second", must(openAdapterFolder(second.folder / "adapter"))));
        QVERIFY(!loadAdapter(*network, "second", must(openAdapterFolder(second.folder / "adapter"))));
        const at::Tensor base = logitsOf(*network, first.batch(0));
        must(network->activate({{"first", 1}}));
        QVERIFY(largest(logitsOf(*network, first.batch(0)) - first.tensor("logits_after")) < first.tolerance("logits_abs"));
        must(network->activate({{"second", 1}}));
        QVERIFY(largest(logitsOf(*network, second.batch(0)) - second.tensor("logits_after")) < second.tolerance("logits_abs"));
        must(network->activate({{"first", 0}, {"second", 0}}));
        QVERIFY(at::equal(logitsOf(*network, first.batch(0)), base));

        must(network->activate({{"first", 0.25}, {"second", -0.5}}));
        const auto own = weightsOf(*network);
        must(network->merge());
        const std::string path = "layers.1.self_attn.q_proj.weight", key = "merged.model." + path;
        const at::Tensor expected = own.at(path) + 0.25 * (first.tensor(key) - own.at(path)) - 0.5 * (second.tensor(key) - own.at(path));
        QVERIFY(largest(weightsOf(*network).at(path) - expected) < 1e-6);
        must(network->unmerge());
        QVERIFY(!network->removeAdapter("first"));
        must(network->activate({}));
        must(network->removeAdapter("first"));
        QVERIFY(!network->activate({{"first", 1}}));
        QVERIFY(at::equal(logitsOf(*network, first.batch(0)), base));
    }

    void anAdapterWithWeightsOfItsOwnWorksAlone() {
        const Case fixture("lora_internlm_options"), other("lora_internlm_qv");
        const auto network = fixture.plain();
        must(loadAdapter(*network, "options", must(openAdapterFolder(fixture.folder / "adapter"))));
        must(loadAdapter(*network, "other", must(openAdapterFolder(other.folder / "adapter"))));
        QVERIFY(!network->activate({{"options", 0.5}}));
        QVERIFY(!network->activate({{"options", 1}, {"other", 1}}));
        must(network->activate({{"other", 1}}));
        must(network->activate({{"options", 1}}));
        QVERIFY(largest(logitsOf(*network, fixture.batch(0)) - fixture.tensor("logits_after")) < fixture.tolerance("logits_abs"));
    }

    void savedAdaptersReadBackUnderPeftsNames_data() { peftsFilesGivePeftsLogitsAndMerge_data(); }
    void savedAdaptersReadBackUnderPeftsNames() {
        QFETCH(QString, name);
        const Case fixture(name);
        const auto trained = fixture.trainable();
        must(loadTrainedAdapter(*trained, must(openAdapterFolder(fixture.folder / "adapter"))));
        must(saveAdapter(*trained, "internlm", root() / "adapter"));
        const auto names = [](const fs::path& folder) {
            auto list = must(SafetensorsFile::open(folder / "adapter_model.safetensors"))->names();
            std::sort(list.begin(), list.end());
            return list;
        };
        QVERIFY(names(root() / "adapter") == names(fixture.folder / "adapter"));
        const AdapterFolder saved = must(openAdapterFolder(root() / "adapter"));
        QCOMPARE(saved.notes->chatTemplate, std::string("internlm"));
        const auto network = fixture.plain();
        must(loadAdapter(*network, "saved", saved));
        must(network->activate({{"saved", 1}}));
        QVERIFY(at::equal(logitsOf(*network, fixture.batch(0)), logitsOf(*trained, fixture.batch(0))));
    }

    void fourKeysOfAConfigSuffice() {
        const Case fixture("lora_internlm_qv");
        const auto network = fixture.plain();
        fs::copy_file(fixture.folder / "adapter/adapter_model.safetensors", root() / "adapter_model.safetensors");
        must(writeFileAtomically(root() / "adapter_config.json", R"({"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]})"));
        must(loadAdapter(*network, "a", must(openAdapterFolder(root()))));
        must(network->activate({{"a", 1}}));
        QVERIFY(largest(logitsOf(*network, fixture.batch(0)) - fixture.tensor("logits_after")) < fixture.tolerance("logits_abs"));
    }

    void whatDoesNotFitIsListedAtOnce() {
        const Case fixture("lora_internlm_qv"), other("lora_internlm2_wqkv");
        const auto network = fixture.plain();
        const auto config = [&](const char* text) {
            must(writeFileAtomically(root() / "adapter_config.json", text));
            return refusalOf(loadAdapter(*network, "a", must(openAdapterFolder(root()))));
        };
        fs::copy_file(fixture.folder / "adapter/adapter_model.safetensors", root() / "adapter_model.safetensors");
        const std::string ranks = config(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]})");
        QVERIFY2(ranks.find("[4, 64], expected [2, 64]") != std::string::npos && ranks.find("another base model") != std::string::npos, ranks.c_str());
        const std::string targets = config(R"({"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "o_proj"]})");
        QVERIFY2(targets.find("missing: base_model.model.model.layers.0.self_attn.o_proj.lora_A.weight") != std::string::npos &&
                     targets.find("unexpected: base_model.model.model.layers.0.self_attn.v_proj.lora_A.weight") != std::string::npos,
                 targets.c_str());
        const std::string family = refusalOf(loadAdapter(*network, "a", must(openAdapterFolder(other.folder / "adapter"))));
        QVERIFY2(family.find("wqkv") != std::string::npos && family.find("self_attn.q_proj") != std::string::npos, family.c_str());
        QVERIFY(network->adapters().empty());
    }

    // Case 16, with files: the adapter's tensors fit both bases.
    void anotherBaseIsRefused() {
        const Case fixture("lora_internlm_qv");
        must(saveAdapter(*fixture.trainable(), {}, root() / "adapter"));
        const AdapterFolder adapter = must(openAdapterFolder(root() / "adapter"));

        graph::Document larger = fixture.base.document;
        for (auto& hyper : larger.main.hyper)
            if (hyper.name == "vocab") hyper.value = std::int64_t(640);
        const auto drawn = must(Network::create(graph::expand(larger).model, must(recipe::resolve(graph::expand(larger).model, {})), {}));
        must(exportModel(*drawn, larger, {}, root() / "larger"));
        const auto other = must(loadNetwork(must(openModelFolder(root() / "larger")), {}));
        const std::string shapes = refusalOf(loadAdapter(*other, "a", adapter, OtherBase::Allow));
        QVERIFY2(shapes.find("[512, 64]") != std::string::npos && shapes.find("[640, 64]") != std::string::npos, shapes.c_str());

        const auto changed = fixture.plain();
        {
            const at::NoGradGuard guard;
            changed->parameters()[0].tensor.mul_(1.5);
        }
        must(exportModel(*changed, fixture.base.document, {}, root() / "changed"));
        const auto similar = must(loadNetwork(must(openModelFolder(root() / "changed")), {}));
        QVERIFY(refusalOf(loadAdapter(*similar, "a", adapter)).find("other weights") != std::string::npos);
        must(loadAdapter(*similar, "a", adapter, OtherBase::Allow));
        // The same weights in another type and another folder are the same base.
        must([&] {
            fs::create_directory(root() / "same");
            return writeModelFiles(*fixture.plain(), fixture.base.document, {}, root() / "same", at::kBFloat16);
        }());
        must(loadAdapter(*must(loadNetwork(must(openModelFolder(root() / "same")), {})), "a", adapter));
    }

    void anAdapterIsNotMergedTwice() {
        const Case fixture("lora_internlm_qv");
        const auto network = fixture.plain();
        const AdapterFolder adapter = must(openAdapterFolder(fixture.folder / "adapter"));
        must(loadAdapter(*network, "a", adapter));
        must(network->activate({{"a", 1}}));
        QVERIFY(!exportModel(*network, fixture.base.document, {}, root() / "never")); // plain weights cannot hold an adapter
        const MergeProof proof = must(mergeWithProof(*network, at::kFloat));
        QVERIFY(proof.inFloat32 < fixture.tolerance("logits_abs") && proof.asWritten == proof.inFloat32);
        QVERIFY(proof.ofAdapters > 100 * proof.inFloat32); // the adapter does something, and merging keeps it
        must(exportMerged(*network, fixture.base, {{adapter.path, 1}}, at::kFloat, root() / "merged"));
        const auto merged = must(loadNetwork(must(openModelFolder(root() / "merged")), {}));
        QVERIFY(largest(logitsOf(*merged, fixture.batch(0)) - fixture.tensor("logits_merged")) < fixture.tolerance("logits_abs"));
        QVERIFY(refusalOf(loadAdapter(*merged, "a", adapter)).find("already") != std::string::npos);
        must(loadAdapter(*merged, "b", must(openAdapterFolder(fixture.folder / "adapter_init"))));
    }

    // Case 11: adapters are float32, whatever the base is kept in, and what they learn is near.
    void adaptersTrainInFloat32BesideAHalfBase_data() {
        QTest::addColumn<int>("type");
        QTest::addColumn<QString>("level");
        for (const char* level : {"O0", "O1", "O2", "O3", "auto"}) {
            QTest::addRow("bfloat16, %s", level) << int(at::kBFloat16) << QString(level);
            QTest::addRow("float16, %s", level) << int(at::kHalf) << QString(level);
        }
    }
    void adaptersTrainInFloat32BesideAHalfBase() {
        QFETCH(int, type);
        QFETCH(QString, level);
        const Case fixture("lora_internlm_options");
        NetworkOptions options;
        options.baseType = options.halfType = static_cast<at::ScalarType>(type);
        options.ampLevel = *recipe::ampLevelNamed(level.toStdString());
        const auto network = fixture.trainable(options);
        const double loss = lossOf(*network, fixture.batch(0));
        QVERIFY(std::abs(loss - fixture.expected["losses_f32"][0].get<double>()) < 0.02); // the weights have 8 or 11 bits
        for (const Parameter& parameter : network->parameters()) {
            QCOMPARE(parameter.tensor.scalar_type(), parameter.isFrozen ? options.baseType : at::kFloat);
            QCOMPARE(parameter.tensor.grad().defined(), !parameter.isFrozen);
            if (!parameter.isFrozen) QCOMPARE(parameter.tensor.grad().scalar_type(), at::kFloat);
        }
    }

    void dropoutFollowsFromTheSeedAndIsOffOutsideOfTraining() {
        const Case fixture("lora_internlm_qv");
        AdapterFolder adapter = must(openAdapterFolder(fixture.folder / "adapter"));
        adapter.config.spec.standard.dropout = 0.5;
        const auto treatment = must(recipe::resolveLora(fixture.model(), adapter.config.spec));
        const auto network = must(Network::create(fixture.model(), treatment, {}));
        must(loadWeights(fixture.base, *network));
        must(loadTrainedAdapter(*network, adapter));
        const double first = lossOf(*network, fixture.batch(0), 1), again = lossOf(*network, fixture.batch(0), 1), other = lossOf(*network, fixture.batch(0), 2);
        QCOMPARE(first, again);
        QVERIFY(first != other);
        QVERIFY(largest(logitsOf(*network, fixture.batch(0)) - fixture.tensor("logits_after")) < fixture.tolerance("logits_abs"));
    }

private:
    std::unique_ptr<QTemporaryDir> m_folder;
    fs::path root() const { return m_folder->path().toStdString(); }
};

QTEST_GUILESS_MAIN(TestAdapters)
#include "tst_adapters.moc"
