// Generation with a key/value cache against the full computation, which the fixtures of tst_network hold to PyTorch's numbers.
#include "engine/checkpoint/model_folder.h"
#include "engine/exec/runtime.h"
#include "engine/generate/generate.h"
#include "engine/generate/key_value_cache.h"
#include "models/families/families.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <QTest>

using namespace celloom;
using namespace celloom::engine;

namespace {

template <class T> T must(Result<T> result) {
    if (!result) qFatal("%s", result.error().text().c_str());
    return std::move(*result);
}

constexpr std::int64_t kWindow = 48; // the presets' trained length here

/// A preset's structure at a size for tests, with weights large enough that attention is far from uniform.
std::unique_ptr<Network> smallPreset(const std::string& name, const NetworkOptions& options = {.seed = 5, .initStd = 0.3}) {
    const auto number = [](std::int64_t value) { return graph::ParamValue(value); };
    graph::Expansion expansion = graph::expand(must(families::buildPreset(name)), {{"vocab", number(120)},
                                                                                    {"hidden", number(32)},
                                                                                    {"layers", number(2)},
                                                                                    {"intermediate", number(48)},
                                                                                    {"max_positions", number(kWindow)}});
    if (!expansion.ok()) qFatal("%s", expansion.firstError().text().c_str());
    recipe::TreatmentTable plain;
    plain.cells.resize(expansion.model.cells.size());
    return must(Network::create(std::move(expansion.model), plain, options));
}

/// "fixture:NAME" or the name of a preset.
std::unique_ptr<Network> networkNamed(const std::string& name) {
    const std::string mark = "fixture:";
    if (!name.starts_with(mark)) return smallPreset(name);
    return must(loadNetwork(must(openModelFolder(std::filesystem::path(CELLOOM_FIXTURES) / name.substr(mark.size()))), {}));
}

std::vector<std::int64_t> someIds(std::int64_t count, std::int64_t start) {
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < count; ++i) out.push_back((i * 7 + start * 31) % 89 + 3);
    return out;
}

/// 64 greedy steps of three prompts together, all of which cross the trained window on the way.
std::vector<TokenRequest> crossingPrompts(const Network& network) {
    const std::int64_t window = network.model().hyperInteger("max_positions", 0);
    std::vector<TokenRequest> out;
    for (const std::int64_t before : {58, 31, 9}) { // tokens from the prompt's end to the window's
        const std::int64_t length = std::max<std::int64_t>(3, window - before);
        out.push_back({someIds(length, before), {.maxNewTokens = 64, .temperature = 0, .maxContext = 1000}});
    }
    return out;
}

using Scores = std::vector<std::vector<at::Tensor>>; // by prompt and step

std::vector<TokenResult> generateWith(Network& network, const std::vector<TokenRequest>& requests, bool useCache, Scores& scores) {
    scores.assign(requests.size(), {});
    GenerateOptions options{.useCache = useCache};
    options.onScores = [&](std::size_t row, std::span<const float> values) {
        scores[row].push_back(at::tensor(std::vector<float>(values.begin(), values.end())));
    };
    return must(generateTokens(network, requests, options));
}

double largest(const at::Tensor& difference) {
    return difference.abs().max().item<double>();
}

at::Tensor idTensor(const std::vector<std::int64_t>& ids) {
    return at::tensor(ids, at::kLong).unsqueeze(0);
}

} // namespace

class TestKeyValueCache : public QObject {
    Q_OBJECT

    static void everyFamily_data();

private Q_SLOTS:
    void initTestCase() { setThreads(1); }
    void cachedEqualsUncachedAcrossTheTrainedWindow_data() { everyFamily_data(); }
    void cachedEqualsUncachedAcrossTheTrainedWindow();
    void severalNewTokensEqualOneAfterTheOther_data() { everyFamily_data(); }
    void severalNewTokensEqualOneAfterTheOther();
    void aChangedRotaryBaseIsRefused();
    void aFailedPassLeavesTheCacheAsItWas();
    void rowsCanBeDropped();
    void halfPrecisionStaysNear();
    void cellsThatLookElsewhereAreNamed();
};

void TestKeyValueCache::everyFamily_data() {
    QTest::addColumn<QString>("name");
    for (const char* name : {"baichuan_7b", "baichuan_13b", "baichuan2_7b", "baichuan2_13b", "internlm", "internlm2", "internlm2_bias", "internlm3",
                             "internlm3_qkvbias", "llama/llama3_tied", "llama/dynamic",
                             "llama/linear"})
        QTest::newRow(name) << QString("fixture:") + name;
    for (const families::Preset& preset : families::presets())
        if (preset.name.find("-tiny") != std::string::npos) QTest::newRow(preset.name.c_str()) << QString::fromStdString(preset.name);
}

void TestKeyValueCache::cachedEqualsUncachedAcrossTheTrainedWindow() {
    QFETCH(QString, name);
    const auto network = networkNamed(name.toStdString());
    const auto requests = crossingPrompts(*network);
    Scores cached, uncached;
    const auto a = generateWith(*network, requests, true, cached), b = generateWith(*network, requests, false, uncached);
    for (std::size_t row = 0; row < requests.size(); ++row) {
        QCOMPARE(a[row].tokens.size(), std::size_t(64));
        std::vector<std::int64_t> ids = requests[row].prompt;
        QVERIFY(static_cast<std::int64_t>(ids.size() + 64) > network->model().hyperInteger("max_positions", 0));
        double spread = 0;
        for (std::size_t step = 0; step < 64; ++step) {
            QVERIFY2(largest(cached[row][step] - uncached[row][step]) < 1e-4, std::to_string(step).c_str());
            if (step % 9 == 0) { // the prompt alone, unpadded: the computation that the fixtures check
                const at::Tensor alone = must(network->forward({.inputIds = idTensor(ids)})).at("logits")[0][-1];
                QVERIFY2(largest(cached[row][step] - alone) < 1e-4, std::to_string(step).c_str());
            }
            spread = std::max(spread, largest(cached[row][step] - cached[row][0]));
            QCOMPARE(a[row].tokens[step].id, b[row].tokens[step].id);
            ids.push_back(a[row].tokens[step].id);
        }
        QVERIFY(spread > 0.1); // the comparison means something
    }
}

void TestKeyValueCache::severalNewTokensEqualOneAfterTheOther() {
    QFETCH(QString, name);
    const auto network = networkNamed(name.toStdString());
    const auto all = someIds(20, 4);
    const at::Tensor ids = idTensor(all).repeat({2, 1});
    const at::Tensor expected = must(network->forward({.inputIds = ids})).at("logits");
    at::Tensor mask = at::ones({2, 9}, at::kLong);
    mask[1].narrow(0, 0, 4).fill_(0); // the second row begins later
    const at::Tensor late = must(network->forward({.inputIds = ids.narrow(1, 4, 16)})).at("logits");
    KeyValueCache cache(2);
    must(network->forward({.inputIds = ids.narrow(1, 0, 9), .attentionMask = mask}, {.cache = &cache}));
    const at::Tensor next = must(network->forward({.inputIds = ids.narrow(1, 9, 11)}, {.cache = &cache})).at("logits");
    QVERIFY(largest(next[0] - expected[0].narrow(0, 9, 11)) < 1e-5);
    QVERIFY(largest(next[1] - late[1].narrow(0, 5, 11)) < 1e-5);
    QCOMPARE(cache.counts(), (std::vector<std::int64_t>{20, 16}));
    QCOMPARE(cache.length(), 20);
}

void TestKeyValueCache::aChangedRotaryBaseIsRefused() {
    const auto network = networkNamed("fixture:internlm2");
    QCOMPARE(KeyValueCache::lengthWithFixedBase(network->model()), 48);
    KeyValueCache cache(1);
    must(network->forward({.inputIds = idTensor(someIds(48, 1))}, {.cache = &cache}));
    const auto past = network->forward({.inputIds = idTensor({5})}, {.cache = &cache});
    QVERIFY(!past);
    QVERIFY2(past.error().message.find("trained window of 48") != std::string::npos, past.error().text().c_str());
}

void TestKeyValueCache::aFailedPassLeavesTheCacheAsItWas() {
    const auto network = networkNamed("fixture:baichuan_7b");
    const auto ids = someIds(9, 2);
    KeyValueCache cache(1);
    must(network->forward({.inputIds = idTensor({ids.begin(), ids.end() - 1})}, {.cache = &cache}));
    QVERIFY(!network->forward({.inputIds = idTensor({1 << 20})}, {.cache = &cache})); // no such token
    QCOMPARE(cache.length(), 8);
    const at::Tensor next = must(network->forward({.inputIds = idTensor({ids.back()})}, {.cache = &cache})).at("logits");
    QVERIFY(largest(next[0][0] - must(network->forward({.inputIds = idTensor(ids)})).at("logits")[0][8]) < 1e-5);
}

void TestKeyValueCache::rowsCanBeDropped() {
    const auto network = networkNamed("fixture:internlm3");
    const at::Tensor ids = at::cat({idTensor(someIds(8, 1)), idTensor(someIds(8, 2)), idTensor(someIds(8, 3))});
    KeyValueCache cache(3);
    must(network->forward({.inputIds = ids.narrow(1, 0, 7)}, {.cache = &cache}));
    const std::uint64_t before = cache.sizeBytes();
    cache.keepRows({2, 0});
    QCOMPARE(cache.sizeBytes() * 3, before * 2);
    const at::Tensor last = at::cat({ids.narrow(0, 2, 1), ids.narrow(0, 0, 1)}).narrow(1, 7, 1);
    const at::Tensor next = must(network->forward({.inputIds = last}, {.cache = &cache})).at("logits");
    const at::Tensor expected = must(network->forward({.inputIds = ids})).at("logits");
    QVERIFY(largest(next[0][0] - expected[2][7]) < 1e-5);
    QVERIFY(largest(next[1][0] - expected[0][7]) < 1e-5);
}

void TestKeyValueCache::halfPrecisionStaysNear() { // bfloat16 keeps 8 bits: results near those of float32, as without a cache
    const auto network = smallPreset("baichuan-tiny", {.ampLevel = AmpLevel::O2, .seed = 5, .initStd = 0.1});
    const auto exact = smallPreset("baichuan-tiny", {.seed = 5, .initStd = 0.1});
    const auto ids = someIds(12, 6);
    KeyValueCache cache(1);
    must(network->forward({.inputIds = idTensor({ids.begin(), ids.end() - 1})}, {.cache = &cache}));
    const at::Tensor next = must(network->forward({.inputIds = idTensor({ids.back()})}, {.cache = &cache})).at("logits")[0][0];
    const at::Tensor plain = must(network->forward({.inputIds = idTensor(ids)})).at("logits")[0][11];
    const at::Tensor wanted = must(exact->forward({.inputIds = idTensor(ids)})).at("logits")[0][11];
    QVERIFY(largest(next - wanted) < 2 * largest(plain - wanted) + 0.01);
}

void TestKeyValueCache::cellsThatLookElsewhereAreNamed() {
    graph::ExpandedModel model = smallPreset("baichuan-tiny")->model();
    QVERIFY(KeyValueCache::check(model));
    for (graph::CellInstance& cell : model.cells)
        if (cell.path == "layers.1.self_attn.attention") cell.params["causal"] = false;
    const auto checked = KeyValueCache::check(model);
    QVERIFY(!checked);
    QCOMPARE(QString::fromStdString(checked.error().place), QString("layers.1.self_attn.attention"));
}

QTEST_GUILESS_MAIN(TestKeyValueCache)
#include "tst_key_value_cache.moc"
