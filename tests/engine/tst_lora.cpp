// LoRA against PEFT's own numbers (fixtures lora_*): losses, gradients, adapters, merged weights.
#include "engine/exec/runtime.h"
#include "engine/train/optimizer.h"
#include "tests/engine/lora_helpers.h"
#include "models/recipe/parameter_table.h"

#include <ATen/core/grad_mode.h>
#include <QTest>

using namespace celloom;
using namespace celloom::engine;
using namespace celloom::engine::testing;

namespace {

std::unique_ptr<Optimizer> optimizerOf(const json& settings, Network& network) {
    ParameterGroup group;
    for (Parameter& parameter : network.parameters()) {
        if (parameter.isFrozen) continue;
        group.paths.push_back(parameter.path);
        group.tensors.push_back(parameter.tensor);
    }
    group.weightDecay = settings["weight_decay"];
    return makeAdamW({group}, {settings["betas"][0], settings["betas"][1], settings["eps"]});
}

/// PEFT's name of a trained tensor while it trains: ".default" for the adapter's name, "modules_to_save" for whole modules.
std::string nameInTraining(const std::string& adapterName) {
    const auto put = [&](const std::string& before, const std::string& inserted) {
        const auto at = adapterName.rfind(before);
        return adapterName.substr(0, at) + inserted + adapterName.substr(at);
    };
    if (adapterName.ends_with("lora_magnitude_vector")) return adapterName + ".default.weight";
    if (adapterName.find("lora_") != std::string::npos) return put(".weight", ".default");
    if (adapterName.find("base_layer") != std::string::npos) return adapterName;
    return put(".weight", ".modules_to_save.default");
}

} // namespace

class TestLora : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { setThreads(1); }
    void trainingRepeatsPeft_data();
    void trainingRepeatsPeft();
};

void TestLora::trainingRepeatsPeft_data() {
    QTest::addColumn<QString>("name");
    for (const char* name : {"lora_internlm_qv", "lora_internlm_options", "lora_internlm_layers", "lora_internlm2_wqkv", "lora_baichuan_wpack",
                             "lora_internlm3_dora"})
        QTest::newRow(name) << QString(name);
}

void TestLora::trainingRepeatsPeft() {
    QFETCH(QString, name);
    const Case fixture(name);
    const auto network = fixture.trainable();
    const auto rows = recipe::parameterTable(network->model(), network->treatment());
    QCOMPARE(recipe::countParameters(rows).trainable, fixture.expected["trainable_params"].get<std::int64_t>());
    QVERIFY(largest(logitsOf(*network, fixture.batch(0)) - fixture.tensor("logits_before")) < fixture.tolerance("logits_abs"));

    const auto optimizer = optimizerOf(fixture.expected["optimizer"], *network);
    for (std::int64_t step = 0; step < 3; ++step) {
        optimizer->zeroGrad();
        const double loss = lossOf(*network, fixture.batch(step));
        QVERIFY2(std::abs(loss - fixture.expected["losses_f32"][static_cast<std::size_t>(step)].get<double>()) < fixture.tolerance("loss_abs"),
                 qPrintable(QString("loss %1").arg(loss, 0, 'g', 9)));
        for (const Parameter& parameter : network->parameters()) {
            QCOMPARE(parameter.tensor.grad().defined(), !parameter.isFrozen); // a frozen base has no gradients
            if (parameter.isFrozen) continue;
            const std::string expected = "grad_step" + std::to_string(step) + "." + nameInTraining(recipe::findPath(rows, parameter.path)->adapterName);
            if (!fixture.tensors->has(expected)) continue;
            QVERIFY2(largest(parameter.tensor.grad() - fixture.tensor(expected)) < fixture.tolerance("adapter_abs"), expected.c_str());
        }
        optimizer->step(fixture.expected["optimizer"]["lr"]);
    }

    const auto trained = must(SafetensorsFile::open(fixture.folder / "adapter/adapter_model.safetensors"));
    std::size_t compared = 0;
    for (const Parameter& parameter : network->parameters()) {
        const std::string& file = recipe::findPath(rows, parameter.path)->adapterName;
        if (file.empty()) continue;
        QVERIFY2(largest(parameter.tensor - must(trained->tensor(file))) < fixture.tolerance("adapter_abs"), file.c_str());
        ++compared;
    }
    QCOMPARE(compared, trained->names().size());
    QVERIFY(largest(logitsOf(*network, fixture.batch(0)) - fixture.tensor("logits_after")) < fixture.tolerance("logits_abs"));
    const at::NoGradGuard guard;
    const LossSum after = languageModelLoss(logitsOf(*network, fixture.batch(0)), fixture.batch(0).labels);
    QVERIFY(std::abs(after.sum.item<double>() / static_cast<double>(after.count) - fixture.expected["loss_batch0_after"].get<double>()) <
            10 * fixture.tolerance("loss_abs")); // the fixture's own float32 and float64 differ by as much
}

QTEST_GUILESS_MAIN(TestLora)
#include "tst_lora.moc"
