// Sampling. The network is one whose scores are known: an embedding row is the logits' row, so the last token decides the next.
#include "engine/cells/cell.h"
#include "engine/exec/runtime.h"
#include "engine/generate/generate.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <QTest>
#include <cmath>
#include <set>

using namespace celloom;
using namespace celloom::engine;

namespace {

constexpr std::int64_t kWords = 6;

/// One Embedding [6,6] whose output is named logits; row i holds the scores after token i.
std::unique_ptr<Network> tableNetwork(const std::vector<double>& scores) {
    graph::ExpandedModel model;
    model.inputs = {{"input_ids", 0}};
    model.outputs = {{"logits", 1}};
    model.values.resize(2);
    graph::CellInstance cell;
    cell.path = "table";
    cell.type = "Embedding";
    cell.params = {{"padding_idx", std::int64_t(-1)}, {"shares_weight", false}};
    cell.inputs = {0};
    cell.outputs = {1};
    cell.weights = {{"weight", {kWords, kWords}, graph::WeightSpec::Init::Zeros}};
    model.cells = {cell};
    recipe::TreatmentTable plain;
    plain.cells.resize(1);
    auto network = Network::create(std::move(model), plain, {});
    at::NoGradGuard guard;
    at::Tensor table = (*network)->parameters()[0].tensor;
    for (std::int64_t row = 0; row < kWords; ++row)
        for (std::int64_t i = 0; i < kWords; ++i) table[row][i].fill_(scores[static_cast<std::size_t>(i)]);
    return std::move(*network);
}

using Ids = std::vector<std::int64_t>;

Ids run(Network& network, const SamplingOptions& options, const Ids& prompt = {0}) {
    const auto ids = generate(network, prompt, options);
    if (!ids) qFatal("%s", ids.error().text().c_str());
    return *ids;
}

} // namespace

class TestGenerate : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { setThreads(1); }
    void greedyTakesTheLikeliest();
    void theSameSeedGivesTheSameText();
    void frequenciesFollowTheTemperature();
    void topKAndTopPCutTheTail();
    void repetitionPenaltyMovesOn();
    void stopTokensEndTheTextAndAreNotPartOfIt();
    void theCallbackStreamsAndStops();
    void impossibleOptionsAreRefused();
    void scoresThatAreNotFiniteAreAnError();
};

void TestGenerate::greedyTakesTheLikeliest() {
    auto network = tableNetwork({0, 1, 5, 2, 5, 0});
    QCOMPARE(run(*network, {.maxNewTokens = 3, .temperature = 0}), (Ids{2, 2, 2})); // the first of two equals
}

void TestGenerate::theSameSeedGivesTheSameText() {
    auto network = tableNetwork({0, 0.1, 0.2, 0, 0.1, 0});
    const Ids a = run(*network, {.maxNewTokens = 40, .seed = 1});
    QCOMPARE(a, run(*network, {.maxNewTokens = 40, .seed = 1}));
    QVERIFY(a != run(*network, {.maxNewTokens = 40, .seed = 2}));
}

void TestGenerate::frequenciesFollowTheTemperature() {
    // Scores 0 and ln 3 for two words, the rest impossible: probabilities 1/4 and 3/4; at temperature 1/2 they are 1/10 and 9/10.
    auto network = tableNetwork({0, std::log(3.0), -1e9, -1e9, -1e9, -1e9});
    for (const auto& [temperature, expected] : {std::pair(1.0, 0.75), std::pair(0.5, 0.9)}) {
        const Ids ids = run(*network, {.maxNewTokens = 2000, .temperature = temperature, .seed = 7, .maxContext = 1});
        const double share = static_cast<double>(std::count(ids.begin(), ids.end(), 1)) / 2000;
        QVERIFY2(std::abs(share - expected) < 0.04, std::to_string(share).c_str()); // four standard deviations of 2000 draws
    }
}

void TestGenerate::topKAndTopPCutTheTail() {
    // Probabilities 0.5, 0.25, 0.15, 0.05, 0.04, 0.01
    auto network = tableNetwork({std::log(0.5), std::log(0.25), std::log(0.15), std::log(0.05), std::log(0.04), std::log(0.01)});
    const auto seen = [&](SamplingOptions options) {
        options.maxNewTokens = 600;
        options.seed = 3;
        options.maxContext = 1;
        const Ids ids = run(*network, options);
        return std::set<std::int64_t>(ids.begin(), ids.end());
    };
    QCOMPARE(seen({}).size(), std::size_t(6));
    QCOMPARE(seen({.topK = 2}), (std::set<std::int64_t>{0, 1}));
    QCOMPARE(seen({.topP = 0.7}), (std::set<std::int64_t>{0, 1})); // 0.5 + 0.25 reaches 0.7
    QCOMPARE(seen({.topP = 0.8}), (std::set<std::int64_t>{0, 1, 2}));
    QCOMPARE(seen({.topP = 0.01}), (std::set<std::int64_t>{0}));              // never empty
    QCOMPARE(seen({.topK = 3, .topP = 0.8}), (std::set<std::int64_t>{0, 1})); // of the three kept (0.9), 0.75 is 0.83
}

void TestGenerate::repetitionPenaltyMovesOn() {
    auto network = tableNetwork({3, 2.5, 2, -1, -1, -1});
    // 3 / 2 = 1.5 after it was seen, then 2.5 / 2, then 2 / 2: the largest is 3 again, as 1.5.
    QCOMPARE(run(*network, {.maxNewTokens = 4, .temperature = 0, .repetitionPenalty = 2}, {3}), (Ids{0, 1, 2, 0}));
    // Negative scores are multiplied: -1 becomes -3 and falls behind the other -1.
    auto negative = tableNetwork({-1, -1, -9, -9, -9, -9});
    QCOMPARE(run(*negative, {.maxNewTokens = 2, .temperature = 0, .repetitionPenalty = 3}, {0}), (Ids{1, 0}));
}

void TestGenerate::stopTokensEndTheTextAndAreNotPartOfIt() {
    auto network = tableNetwork({0, 0, 9, 0, 0, 0});
    QCOMPARE(run(*network, {.maxNewTokens = 5, .temperature = 0, .stopTokens = {2}}), Ids{});
}

void TestGenerate::theCallbackStreamsAndStops() {
    auto network = tableNetwork({0, 0, 9, 0, 0, 0});
    Ids streamed;
    const auto ids = generate(*network, {0}, {.maxNewTokens = 9, .temperature = 0}, [&](std::int64_t id) {
        streamed.push_back(id);
        return streamed.size() < 3;
    });
    QCOMPARE(streamed, (Ids{2, 2, 2}));
    QCOMPARE(*ids, streamed);
}

void TestGenerate::impossibleOptionsAreRefused() {
    auto network = tableNetwork({0, 0, 0, 0, 0, 0});
    QVERIFY(!generate(*network, {}, {}));
    QVERIFY(!generate(*network, {0}, {.temperature = -1}));
    QVERIFY(!generate(*network, {0}, {.temperature = NAN}));
    QVERIFY(!generate(*network, {0}, {.topK = -1}));
    QVERIFY(!generate(*network, {0}, {.topP = 0}));
    QVERIFY(!generate(*network, {0}, {.topP = 1.5}));
    QVERIFY(!generate(*network, {0}, {.repetitionPenalty = 0}));
    QVERIFY(!generate(*network, {kWords}, {})); // a token that the model does not have
}

void TestGenerate::scoresThatAreNotFiniteAreAnError() {
    auto network = tableNetwork({0, 0, NAN, 0, 0, 0});
    QVERIFY(!generate(*network, {0}, {}));
}

QTEST_GUILESS_MAIN(TestGenerate)
#include "tst_generate.moc"
