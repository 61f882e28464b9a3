// Recomputed layers: the same numbers, bit for bit, as layers whose activations are kept.
#include "engine/exec/recompute.h"
#include "engine/exec/runtime.h"
#include "tests/engine/lora_helpers.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <QTest>

using namespace celloom;
using namespace celloom::engine;
using namespace celloom::engine::testing;

namespace {

std::vector<at::Tensor> gradientsOf(Network& network) {
    std::vector<at::Tensor> out;
    for (Parameter& parameter : network.parameters())
        if (!parameter.isFrozen) out.push_back(parameter.tensor.grad());
    return out;
}

} // namespace

class TestRecompute : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { setThreads(1); }

    void gradientsAreEqualBitForBit_data() {
        QTest::addColumn<bool>("isLora");
        QTest::addColumn<int>("level");
        QTest::newRow("every weight") << false << int(AmpLevel::O0);
        QTest::newRow("every weight, O2") << false << int(AmpLevel::O2);
        QTest::newRow("adapters with dropout over a frozen base") << true << int(AmpLevel::O0);
        QTest::newRow("adapters, O2") << true << int(AmpLevel::O2);
    }
    void gradientsAreEqualBitForBit() {
        QFETCH(bool, isLora);
        QFETCH(int, level);
        const Case fixture("lora_internlm_qv");
        const auto model = fixture.model();
        recipe::TreatmentTable plain;
        plain.cells.resize(model.cells.size());
        if (isLora) {
            recipe::LoraSpec spec;
            spec.targets = {"all-linear"};
            spec.standard = {4, 8, 0.3};
            plain = must(recipe::resolveLora(model, spec));
        }
        recipe::TreatmentTable recomputed = plain;
        must(recipe::resolveOnto(recomputed, model, {must(recipe::parseRule("layers.*: recompute"))}));
        NetworkOptions options;
        options.ampLevel = static_cast<AmpLevel>(level);
        double losses[2];
        std::vector<at::Tensor> gradients[2];
        for (int i = 0; i < 2; ++i) {
            const auto network = must(Network::create(model, i == 0 ? plain : recomputed, options));
            losses[i] = lossOf(*network, fixture.batch(0), 7);
            gradients[i] = gradientsOf(*network);
        }
        QCOMPARE(losses[0], losses[1]);
        QVERIFY(!gradients[0].empty() && gradients[0].size() == gradients[1].size());
        for (std::size_t i = 0; i < gradients[0].size(); ++i) QVERIFY(at::equal(gradients[0][i], gradients[1][i]));
    }

    void aPieceRunsOnceMoreInTheBackwardPassAndKeepsNothing() {
        int runs = 0;
        at::Tensor weight = at::ones({2}).requires_grad_(true);
        const at::Tensor x = at::ones({2}); // takes no gradient itself
        const auto out = recomputed(
            [&](const std::vector<at::Tensor>& inputs, bool isAgain) {
                if (isAgain != (++runs == 2)) qFatal("told wrongly");
                return std::vector<at::Tensor>{inputs[0] * weight * weight};
            },
            {x}, {weight});
        QCOMPARE(runs, 1);
        out[0].sum().backward();
        QCOMPARE(runs, 2);
        QVERIFY(at::equal(weight.grad(), at::ones({2}) * 2));
    }

    void withoutGradientsItRunsOnce() {
        const at::NoGradGuard guard;
        int runs = 0;
        const auto piece = [&](const std::vector<at::Tensor>& inputs, bool) {
            ++runs;
            return inputs;
        };
        QVERIFY(at::equal(recomputed(piece, {at::ones({1})}, {})[0], at::ones({1})));
        QCOMPARE(runs, 1);
    }
};

QTEST_GUILESS_MAIN(TestRecompute)
#include "tst_recompute.moc"
