// Every fused kernel against its plain reference in float64: values and gradients. On CUDA where there is a GPU.
#include "engine/exec/device.h"
#include "engine/exec/runtime.h"
#include "engine/kernels/cross_entropy.h"
#include "engine/kernels/cuda_library.h"
#include "engine/kernels/rms_norm.h"
#include "engine/kernels/rotary.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <QTest>
#include <cmath>

using namespace celloom::engine;

namespace {

at::Tensor normal(at::IntArrayRef shape, std::uint64_t seed) {
    return at::randn(shape, at::detail::createCPUGenerator(seed), at::kFloat);
}
at::Tensor leaf(const at::Tensor& tensor) {
    return tensor.detach().clone().requires_grad_(true);
}

/// Largest difference relative to the largest expected value.
double difference(const at::Tensor& actual, const at::Tensor& expected) {
    const double scale = std::max(1e-30, expected.abs().max().item<double>());
    return (actual.to(at::kCPU, at::kDouble) - expected.to(at::kDouble)).abs().max().item<double>() / scale;
}

} // namespace

class TestKernels : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void rmsNormEqualsItsReference_data();
    void rmsNormEqualsItsReference();
    void rmsNormGivesTheSameBitsOnAnyNumberOfThreads();
    void rmsNormOnCudaEqualsItsReference();
    void rotaryEqualsItsReference_data();
    void rotaryEqualsItsReference();
    void crossEntropyEqualsItsReference_data();
    void crossEntropyEqualsItsReference();
    void crossEntropyOfExtremesIsRight();
    void crossEntropyRefusesLabelsOutsideTheVocabulary();
    void crossEntropyRefusesMoreRowsThanLabels();
};

namespace {

void compareRmsNorm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& dy, at::Device device) {
    const at::Tensor x1 = x.detach().to(device).clone().requires_grad_(true), w1 = weight.detach().to(device).clone().requires_grad_(true);
    const at::Tensor x2 = leaf(x.to(at::kDouble)), w2 = leaf(weight.to(at::kDouble));
    const at::Tensor y1 = kernels::rmsNorm(x1, w1, 1e-6), y2 = kernels::rmsNormReference(x2, w2, 1e-6);
    y1.backward(dy.to(device));
    y2.backward(dy.to(at::kDouble));
    QVERIFY(difference(y1, y2) < 2e-6);
    QVERIFY(difference(x1.grad(), x2.grad()) < 2e-6);
    QVERIFY(difference(w1.grad(), w2.grad()) < 5e-6);
}

} // namespace

void TestKernels::rmsNormEqualsItsReference_data() {
    QTest::addColumn<int>("rows");
    QTest::addColumn<int>("dim");
    QTest::newRow("two numbers") << 1 << 2;
    QTest::newRow("odd width") << 3 << 37;
    QTest::newRow("more rows than a task") << 100 << 64;
    QTest::newRow("wide") << 5 << 5120;
}

void TestKernels::rmsNormEqualsItsReference() {
    QFETCH(int, rows);
    QFETCH(int, dim);
    compareRmsNorm(normal({2, rows, dim}, 1), normal({dim}, 2), normal({2, rows, dim}, 3), at::kCPU);
    compareRmsNorm(normal({rows, 2, dim}, 4).transpose(0, 1), normal({dim}, 5), normal({dim, 2, rows}, 6).permute({1, 2, 0}), at::kCPU);
}

void TestKernels::rmsNormGivesTheSameBitsOnAnyNumberOfThreads() {
    at::Tensor first;
    for (const int threads : {1, 2, 3}) {
        setThreads(threads);
        const at::Tensor x = leaf(normal({333, 48}, 1)), weight = leaf(normal({48}, 2));
        kernels::rmsNorm(x, weight, 1e-6).backward(normal({333, 48}, 3));
        if (!first.defined()) first = weight.grad();
        QVERIFY(at::equal(first, weight.grad()));
    }
}

void TestKernels::rmsNormOnCudaEqualsItsReference() {
    const auto choice = openDevice("cuda");
    if (!choice) QSKIP("skipped: no GPU");
    QVERIFY2(kernels::cudaKernels() != nullptr, choice->note.c_str());
    for (const int dim : {1, 37, 256, 5120})
        compareRmsNorm(normal({3, 70, dim}, 1), normal({dim}, 2), normal({3, 70, dim}, 3), choice->device);
}

void TestKernels::rotaryEqualsItsReference_data() {
    QTest::addColumn<bool>("perRow");
    QTest::addColumn<bool>("half");
    QTest::newRow("one table") << false << false;
    QTest::newRow("a table for each row of the batch") << true << false;
    QTest::newRow("bfloat16") << false << true;
}

void TestKernels::rotaryEqualsItsReference() {
    QFETCH(bool, perRow);
    QFETCH(bool, half);
    const std::int64_t batch = 2, length = 5, heads = 3, dim = 10;
    const auto type = half ? at::kBFloat16 : at::kFloat;
    const at::Tensor wide = normal({batch, length, 3 * heads * dim}, 1).to(type);
    const at::Tensor angle = normal(perRow ? at::IntArrayRef{batch, length, dim / 2} : at::IntArrayRef{length, dim / 2}, 2);
    const at::Tensor cos = angle.cos(), sin = angle.sin();
    const at::Tensor x1 = leaf(wide), x2 = leaf(wide.to(at::kDouble));
    const auto middle = [&](const at::Tensor& x) { return x.narrow(2, heads * dim, heads * dim); }; // rows lie apart, as after a Split
    const at::Tensor y1 = kernels::rotate(middle(x1), cos, sin, dim);
    const at::Tensor y2 = kernels::rotateReference(middle(x2), cos.to(at::kDouble), sin.to(at::kDouble), dim);
    const at::Tensor dy = normal(y1.sizes(), 3);
    y1.backward(dy.to(type));
    y2.backward(dy.to(at::kDouble));
    QCOMPARE(y1.scalar_type(), type);
    const double tolerance = half ? 8e-3 : 1e-6; // bfloat16 keeps 8 bits
    QVERIFY(difference(y1, y2) < tolerance);
    QVERIFY(difference(x1.grad(), x2.grad()) < tolerance);
}

void TestKernels::crossEntropyEqualsItsReference_data() {
    QTest::addColumn<int>("rows");
    QTest::addColumn<int>("vocabulary");
    QTest::newRow("one word") << 4 << 1;
    QTest::newRow("odd vocabulary") << 9 << 1003;
    QTest::newRow("more than a block") << 3 << 9001;
}

void TestKernels::crossEntropyEqualsItsReference() {
    QFETCH(int, rows);
    QFETCH(int, vocabulary);
    const at::Tensor logits = normal({rows, vocabulary}, 1) * 4;
    at::Tensor targets = at::randint(0, vocabulary, {rows}, at::detail::createCPUGenerator(2), at::kLong);
    targets[1].fill_(kernels::kIgnoredTarget);
    const at::Tensor l1 = leaf(logits), l2 = leaf(logits.to(at::kDouble));
    const at::Tensor loss1 = kernels::crossEntropySum(l1, targets) / 3, loss2 = kernels::crossEntropySumReference(l2, targets) / 3;
    loss1.backward();
    loss2.backward();
    QVERIFY(std::abs(loss1.item<double>() - loss2.item<double>()) < 1e-6 * std::max(1.0, loss2.item<double>()));
    if (vocabulary > 1)
        QVERIFY(difference(l1.grad(), l2.grad()) < 2e-6);
    else
        QVERIFY(l1.grad().abs().max().item<double>() < 1e-6);
}

void TestKernels::crossEntropyOfExtremesIsRight() {
    const auto lossOf = [](float a, float b) {
        at::Tensor logits = at::randn({1, 2});
        logits[0][0].fill_(a);
        logits[0][1].fill_(b);
        return kernels::crossEntropySum(logits, at::randint(0, 1, {1}, at::kLong)).item<float>(); // target 0
    };
    QCOMPARE(lossOf(1e4f, -1e4f), 0.0f);
    QCOMPARE(lossOf(-1e4f, 1e4f), 2e4f);
    QCOMPARE(lossOf(3.0f, -INFINITY), 0.0f);
    QVERIFY(std::isnan(lossOf(NAN, 1.0f)));
    QVERIFY(std::isnan(lossOf(1.0f, NAN)));
    QVERIFY(std::isnan(lossOf(1.0f, INFINITY)) || std::isinf(lossOf(1.0f, INFINITY)));
}

void TestKernels::crossEntropyRefusesLabelsOutsideTheVocabulary() {
    for (const std::int64_t label : {-1, 4, -101})
        QVERIFY_THROWS_EXCEPTION(c10::Error, kernels::crossEntropySum(normal({1, 4}, 1), at::randint(label, label + 1, {1}, at::kLong)));
}

void TestKernels::crossEntropyRefusesMoreRowsThanLabels() { // a graph of one's own may make the sequence longer; the kernel read past the labels
    for (const std::int64_t labels : {0, 3, 5}) QVERIFY_THROWS_EXCEPTION(c10::Error, kernels::crossEntropySum(normal({4, 2}, 1), at::zeros({labels}, at::kLong)));
    QVERIFY_THROWS_EXCEPTION(c10::Error, kernels::crossEntropySum(normal({4}, 1), at::zeros({4}, at::kLong)));
}

QTEST_GUILESS_MAIN(TestKernels)
#include "tst_kernels.moc"
