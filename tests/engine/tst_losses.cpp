// Losses and metrics: values and gradients as PyTorch, scikit-learn, sacrebleu and rouge-score have them; losses.json says which versions.
#include "engine/kernels/cross_entropy.h"
#include "engine/train/losses.h"
#include "engine/train/metrics.h"
#include "engine/train/text_metrics.h"
#include "models/base/files.h"
#include "train_helper.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <nlohmann/json.hpp>

using namespace celloom;
using namespace celloom::engine;
using nlohmann::json;

namespace {

json fixture() { return json::parse(*readFile(std::filesystem::path(CELLOOM_FIXTURES) / "losses.json")); }

at::Tensor matrix(const json& rows) {
    std::vector<float> values;
    for (const json& row : rows)
        for (const json& value : row) values.push_back(value);
    return at::tensor(values).reshape({std::ssize(rows), std::ssize(rows[0])});
}

at::Tensor whole(const json& numbers) { return at::tensor(numbers.get<std::vector<std::int64_t>>(), at::kLong); }
at::Tensor column(const json& numbers) { return at::tensor(numbers.get<std::vector<float>>()); }

double furthest(const at::Tensor& a, const at::Tensor& b) { return a.sub(b).abs().max().item<double>(); }

/// Value and gradient of a loss on one batch: of each term weight · sum / items, as training takes it.
std::pair<double, at::Tensor> valueAndGradient(const Loss& loss, const at::Tensor& input, const Batch& batch) {
    at::AutoGradMode record(true);
    const at::Tensor x = input.clone().requires_grad_();
    const LossValues values = must(loss.values({{"logits", x}}, batch));
    const LossTerm& term = loss.terms()[0];
    const double divisor = term.reduction == Reduction::Mean ? static_cast<double>(loss.items(batch)[0]) : 1;
    const at::Tensor result = values.sums[0].mul(1 / divisor);
    result.backward();
    return {result.item<double>(), x.grad()};
}

/// What an evaluation hands to a metric.
struct Measured {
    at::Tensor predictions, targets;
    double of(Metric& metric, std::int64_t batchRows) const {
        metric.clear();
        SoftmaxCrossEntropyWithLogits loss({});
        for (std::int64_t first = 0; first < predictions.size(0); first += batchRows) {
            const LossValues values{{}, {{predictions.slice(0, first, first + batchRows), targets.slice(0, first, first + batchRows)}}};
            const MetricInput input{{}, loss, values, {}, {}};
            if (auto status = metric.update(input); !status) qFatal("%s", status.error().text().c_str());
        }
        return must(metric.eval());
    }
};

} // namespace

class TestLosses : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void valuesAndGradientsArePyTorchs_data() {
        QTest::addColumn<QString>("name");
        const json cases = fixture()["losses"]["cases"];
        for (const auto& [name, value] : cases.items()) QTest::newRow(name.c_str()) << QString::fromStdString(name);
    }
    void valuesAndGradientsArePyTorchs() {
        QFETCH(QString, name);
        const json losses = fixture()["losses"], expected = losses["cases"][name.toStdString()], data = losses["data"];
        TermOptions term;
        term.reduction = name.contains("sum") ? Reduction::Sum : Reduction::Mean;
        const double smoothing = name.contains("smoothing 0.1") ? 0.1 : 0;
        std::shared_ptr<Loss> loss;
        Batch batch;
        if (name.startsWith("sparse")) {
            loss = std::make_shared<SoftmaxCrossEntropyWithLogits>(SoftmaxCrossEntropyWithLogits::Options{term, true, smoothing});
            batch.columns["label"] = whole(data["classes"]);
        } else if (name.startsWith("dense")) {
            loss = std::make_shared<SoftmaxCrossEntropyWithLogits>(SoftmaxCrossEntropyWithLogits::Options{term, false, smoothing});
            batch.columns["label"] = matrix(data["shares"]);
        } else if (name.startsWith("mse") || name.startsWith("l1")) {
            loss = name.startsWith("l1") ? std::shared_ptr<Loss>(std::make_shared<L1Loss>(term)) : std::make_shared<MSELoss>(term);
            batch.columns["label"] = matrix(data["targets"]);
        } else {
            batch.columns["label"] = matrix(data["bits"]);
            if (name.startsWith("bce with"))
                loss = std::make_shared<BCEWithLogitsLoss>(term, at::Tensor(), name.contains("weight") ? column(data["positive_weight"]) : at::Tensor());
            else loss = std::make_shared<BCELoss>(term);
        }
        const auto [value, gradient] = valueAndGradient(*loss, matrix(expected["input"]), batch);
        QVERIFY2(std::abs(value - expected["loss"].get<double>()) < 2e-5, qPrintable(QString::number(value, 'g', 12)));
        QVERIFY(furthest(gradient, matrix(expected["gradient"])) < 2e-6);
    }

    void gradientsAgreeWithFiniteDifferences() { // of the fused kernel with label smoothing, whose derivative is its own
        const at::Tensor logits = drawn({3, 5}, 1).to(at::kDouble);
        const at::Tensor targets = whole({4, -100, 0});
        at::AutoGradMode record(true);
        const at::Tensor x = logits.to(at::kFloat).requires_grad_();
        kernels::crossEntropySum(x, targets, 0.2).backward();
        for (std::int64_t i = 0; i < 3; ++i)
            for (std::int64_t c = 0; c < 5; ++c) {
                const auto at = [&](double step) {
                    at::Tensor moved = logits.clone();
                    moved[i][c].add_(step);
                    return kernels::crossEntropySumReference(moved, targets, 0.2).item<double>();
                };
                const double expected = (at(1e-4) - at(-1e-4)) / 2e-4;
                QVERIFY(std::abs(x.grad()[i][c].item<double>() - expected) < 1e-4);
            }
    }

    void theFusedKernelSmoothsLongRows() { // several blocks, in float64 by LibTorch
        const at::Tensor logits = drawn({4, 9001}, 3).mul(3), targets = whole({5, 9000, -100, 17});
        const double expected = kernels::crossEntropySumReference(logits.to(at::kDouble), targets, 0.1).item<double>();
        QVERIFY(std::abs(kernels::crossEntropySum(logits, targets, 0.1).item<double>() - expected) < 1e-4 * expected);
        const double plain = kernels::crossEntropySumReference(logits.to(at::kDouble), targets).item<double>();
        QVERIFY(std::abs(kernels::crossEntropySum(logits, targets).item<double>() - plain) < 1e-4 * plain);
    }

    void whatDoesNotFitIsSaidWithBothShapes() {
        Batch batch;
        batch.columns["label"] = at::zeros({4, 2});
        const auto wrong = MSELoss().values({{"logits", at::zeros({4, 3})}}, batch);
        QVERIFY(!wrong && wrong.error().message.find("[4, 3]") != std::string::npos && wrong.error().message.find("[4, 2]") != std::string::npos);
        const auto missing = MSELoss({.output = "score"}).values({{"logits", at::zeros({4, 3})}}, batch);
        QVERIFY(!missing && missing.error().message.find("\"score\"") != std::string::npos && missing.error().hint.find("logits") != std::string::npos);
        QVERIFY(!SoftmaxCrossEntropyWithLogits({.sparse = true}).values({{"logits", at::zeros({4, 3})}}, batch)); // shares, not numbers of classes
        QVERIFY(MSELoss().values({{"logits", at::zeros({4, 2, 1})}}, batch)); // a last dimension of one is none
    }

    void severalOutputsHaveTheirOwnLossAndWeight() {
        const auto classes = std::make_shared<SoftmaxCrossEntropyWithLogits>(SoftmaxCrossEntropyWithLogits::Options{{.name = "kind", .label = "kind"}, true});
        const auto size = std::make_shared<MSELoss>(TermOptions{.name = "size", .output = "size", .label = "size", .weight = 0.3});
        const WeightedLoss both({classes, size});
        Batch batch;
        batch.columns = {{"kind", whole({0, 2})}, {"size", at::tensor({1.0f, 3.0f})}};
        QVERIFY((both.labels() == std::vector<std::string>{"kind", "size"}));
        QVERIFY((both.items(batch) == std::vector<std::int64_t>{2, 2}));
        const LossValues values = must(both.values({{"logits", at::zeros({2, 3})}, {"size", at::tensor({0.0f, 1.0f})}}, batch));
        QVERIFY(std::abs(values.sums[0].item<double>() - 2 * std::log(3.0)) < 1e-6);
        QCOMPARE(values.sums[1].item<double>(), 5.0); // 1 + 4
        QCOMPARE(both.terms()[1].weight, 0.3);
    }

    void metricsAreScikitLearnsWhateverTheBatches() {
        const json expected = fixture()["metrics"];
        const Measured data{matrix(expected["predictions"]), whole(expected["targets"])};
        Accuracy accuracy;
        TopKCategoricalAccuracy one(1), three(3);
        Precision precision;
        Recall recall;
        F1 f1;
        for (const std::int64_t batch : {40, 7}) {
            QCOMPARE(data.of(accuracy, batch), expected["accuracy"].get<double>());
            QCOMPARE(data.of(one, batch), expected["top_1_accuracy"].get<double>());
            QCOMPARE(data.of(three, batch), expected["top_3_accuracy"].get<double>());
            QVERIFY(std::abs(data.of(precision, batch) - expected["precision"].get<double>()) < 1e-12);
            QVERIFY(std::abs(data.of(recall, batch) - expected["recall"].get<double>()) < 1e-12);
            QVERIFY(std::abs(data.of(f1, batch) - expected["F1"].get<double>()) < 1e-12);
        }
        const std::vector<std::pair<const ClassMetric*, const char*>> each{{&precision, "precision per class"}, {&recall, "recall per class"}, {&f1, "F1 per class"}};
        for (const auto& [metric, name] : each) {
            const auto values = must(metric->perClass());
            QCOMPARE(values.size(), std::size_t(5));
            for (std::size_t c = 0; c < 5; ++c) QVERIFY(std::abs(values[c] - expected[name][c].get<double>()) < 1e-12);
        }
        const Measured lines{column(expected["numbers"]["predictions"]), column(expected["numbers"]["targets"])};
        MAE mae;
        MSE mse;
        QVERIFY(std::abs(lines.of(mae, 4) - expected["numbers"]["mae"].get<double>()) < 1e-6);
        QVERIFY(std::abs(lines.of(mse, 4) - expected["numbers"]["mse"].get<double>()) < 1e-6);
    }

    void ignoredTargetsAreNotMeasured() {
        Accuracy accuracy;
        const Measured data{at::tensor({1.0f, 0.0f, 0.0f, 1.0f, 1.0f, 0.0f}).reshape({3, 2}), whole({0, -100, 1})};
        QCOMPARE(data.of(accuracy, 3), 0.5);
        accuracy.clear();
        QVERIFY(!accuracy.eval()); // nothing seen is no number
    }

    void probabilitiesAreTwoClasses() {
        Accuracy accuracy;
        F1 f1;
        const Measured data{at::tensor({0.9f, 0.2f, 0.6f, 0.4f}), at::tensor({1.0f, 0.0f, 0.0f, 1.0f})};
        QCOMPARE(data.of(accuracy, 2), 0.5);
        QCOMPARE(data.of(f1, 2), 0.5); // each class: 1 right, 2 predicted, 2 meant
    }

    void whatAMetricCannotMeasureIsAnError() {
        TopKCategoricalAccuracy five(5);
        SoftmaxCrossEntropyWithLogits loss({});
        const LossValues values{{}, {{at::zeros({2, 3}), whole({0, 1})}}};
        const auto status = five.update(MetricInput{{}, loss, values, {}, {}});
        QVERIFY(!status && status.error().message.find("[2, 3]") != std::string::npos);
        MAE mae;
        QVERIFY(!mae.update(MetricInput{{}, loss, values, {}, {}}));
        const auto unknown = metricNamed("acuracy");
        QVERIFY(!unknown && unknown.error().hint.find("accuracy") != std::string::npos);
    }

    void bleuAndRougeAreThoseOfTheirOwnPackages() {
        const json texts = fixture()["metrics"]["texts"];
        BleuScore bleu;
        RougeL rouge;
        for (std::size_t i = 0; i < texts["candidates"].size(); ++i) {
            const auto candidate = wordsOf(texts["candidates"][i]), reference = wordsOf(texts["references"][i]);
            bleu.update(candidate, {reference});
            rouge.update(candidate, reference);
        }
        QVERIFY(std::abs(must(bleu.eval()) - texts["bleu"].get<double>()) < 1e-9);
        QVERIFY(std::abs(must(rouge.eval()) - texts["rouge_l"].get<double>()) < 1e-9);
    }

    void chineseCharactersAreWords() {
        QVERIFY((wordsOf("Hello 世界, ok。") == std::vector<std::string>{"hello", "世", "界", ",", "ok", "。"}));
        QVERIFY(wordsOf("").empty());
        QVERIFY((wordsOf("a\xE4") == std::vector<std::string>{"a\xE4"})); // broken at its end: nothing is read past it
    }
};

QTEST_GUILESS_MAIN(TestLosses)
#include "tst_losses.moc"
