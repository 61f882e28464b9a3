// Sampling, batches and stop texts. One network's scores are known (an embedding row is the logits' row, so the last token decides the
// next); the others are compared with what transformers recorded (tests/oracle/make_generation.py).
#include "engine/cells/cell.h"
#include "engine/checkpoint/model_folder.h"
#include "engine/exec/runtime.h"
#include "engine/generate/generate.h"
#include "engine/generate/perplexity.h"
#include "engine/generate/stop_text.h"
#include "engine/generate/text_generator.h"
#include "models/base/files.h"
#include "models/families/families.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <QTest>
#include <cmath>
#include <nlohmann/json.hpp>
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

template <class T> T must(Result<T> result) {
    if (!result) qFatal("%s", result.error().text().c_str());
    return std::move(*result);
}

std::filesystem::path fixture(const char* name) {
    return std::filesystem::path(CELLOOM_FIXTURES) / name;
}

const nlohmann::json& recorded() {
    static const nlohmann::json json = nlohmann::json::parse(must(readFile(fixture("generation.json"))));
    return json;
}

std::unique_ptr<Network> recordedModel() {
    return must(loadNetwork(must(openModelFolder(fixture("llama/linear"))), {}));
}

SamplingOptions optionsOf(const nlohmann::json& json) {
    SamplingOptions out;
    out.temperature = json.value("temperature", 1.0);
    out.topK = json.value("top_k", 0);
    out.topP = json.value("top_p", 1.0);
    out.repetitionPenalty = json.value("repetition_penalty", 1.0);
    out.minNewTokens = json.value("min_new_tokens", 0);
    return out;
}

Ids idsOf(const TokenResult& result) {
    Ids out;
    for (const NewToken& token : result.tokens) out.push_back(token.id);
    return out;
}

/// A network over the words of the recorded tokenizer, and that tokenizer, which puts a space in front of a text.
struct Speaker {
    std::unique_ptr<Tokenizer> tokenizer = must(Tokenizer::load(fixture("tokenizer/sp_bpe_prefix.model")));
    std::unique_ptr<Network> network;
    Speaker() {
        const auto number = [](std::int64_t value) { return graph::ParamValue(value); };
        graph::Expansion expansion = graph::expand(must(families::buildPreset("baichuan-tiny")), {{"vocab", number(tokenizer->vocabSize())},
                                                                                                   {"hidden", number(32)},
                                                                                                   {"layers", number(2)},
                                                                                                   {"intermediate", number(48)}});
        recipe::TreatmentTable plain;
        plain.cells.resize(expansion.model.cells.size());
        network = must(Network::create(std::move(expansion.model), plain, {.seed = 8, .initStd = 0.3}));
    }
};

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
    void whatCanBeDrawnEqualsTransformers_data();
    void whatCanBeDrawnEqualsTransformers();
    void drawsFollowTheDistribution();
    void greedyBatchesEqualTransformers();
    void perplexityEqualsTransformers();
    void theBatchDoesNotChangeAText();
    void endTokensWaitForTheLeastLength();
    void probabilitiesAreTheModels();
    void aFullContextStopsOrSlides();
    void cancellingEndsEveryText();
    void stopTextsAreHeldBack();
    void stopTextsEndAcrossTokenBorders();
    void streamedTextIsTheDecodedText();
    void aFirstWordKeepsItsSpace();
    void impossibleRequestsAreRefused();
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

void TestGenerate::whatCanBeDrawnEqualsTransformers_data() {
    QTest::addColumn<int>("index");
    for (std::size_t i = 0; i < recorded()["sampling"].size(); ++i) {
        auto name = recorded()["sampling"][i];
        for (const char* key : {"prompt", "end_ids", "scores", "probabilities"}) name.erase(key);
        QTest::addRow("%zu: %s", i, name.dump().c_str()) << static_cast<int>(i);
    }
}

void TestGenerate::whatCanBeDrawnEqualsTransformers() {
    QFETCH(int, index);
    const auto& json = recorded()["sampling"][static_cast<std::size_t>(index)];
    SamplingOptions options = optionsOf(json);
    options.stopTokens = json["end_ids"].get<Ids>();
    const auto scores = json["scores"].get<std::vector<float>>();
    const auto expected = json["probabilities"].get<std::vector<double>>();
    std::vector<double> found(expected.size(), 0);
    double last = 1;
    for (const Sampler::Candidate& candidate : Sampler(options, json["prompt"].get<Ids>()).distribution(scores)) {
        found[static_cast<std::size_t>(candidate.id)] = candidate.probability;
        QVERIFY(candidate.probability <= last);
        last = candidate.probability;
    }
    for (std::size_t id = 0; id < expected.size(); ++id)
        QVERIFY2(std::abs(found[id] - expected[id]) < 1e-6, std::to_string(id).c_str()); // theirs are computed in float32
}

void TestGenerate::drawsFollowTheDistribution() {
    const auto& json = recorded()["sampling"][9]; // all of the options
    const SamplingOptions options = optionsOf(json);
    const auto scores = json["scores"].get<std::vector<float>>();
    const Ids prompt = json["prompt"].get<Ids>();
    std::map<std::int64_t, int> drawn;
    constexpr int kDraws = 4000;
    for (int i = 0; i < kDraws; ++i) {
        SamplingOptions seeded = options;
        seeded.seed = static_cast<std::uint64_t>(i);
        std::vector<float> copy = scores;
        ++drawn[Sampler(seeded, prompt).choose(copy)];
    }
    const auto candidates = Sampler(options, prompt).distribution(scores);
    QVERIFY(candidates.size() > 3 && drawn.size() <= candidates.size());
    for (const Sampler::Candidate& candidate : candidates) {
        const double deviation = std::sqrt(candidate.probability * (1 - candidate.probability) / kDraws);
        QVERIFY(std::abs(drawn[candidate.id] / double(kDraws) - candidate.probability) < 4.5 * deviation);
    }
}

void TestGenerate::greedyBatchesEqualTransformers() {
    const auto network = recordedModel();
    const auto& json = recorded()["greedy"];
    for (const auto& oneCase : json["cases"]) {
        std::vector<TokenRequest> requests;
        for (const auto& prompt : json["prompts"]) {
            requests.push_back({prompt.get<Ids>(), optionsOf(oneCase)});
            SamplingOptions& sampling = requests.back().sampling;
            sampling.temperature = 0;
            sampling.maxNewTokens = 20;
            sampling.stopTokens = json["end_ids"].get<Ids>();
            sampling.maxContext = 100; // past the 24 positions of the config, as transformers goes
        }
        const auto results = must(generateTokens(*network, requests));
        for (std::size_t row = 0; row < results.size(); ++row) {
            QCOMPARE(idsOf(results[row]), oneCase["ids"][row].get<Ids>());
            QCOMPARE(results[row].finish, results[row].tokens.size() == 20 ? Finish::Length : Finish::StopToken);
        }
    }
}

void TestGenerate::perplexityEqualsTransformers() {
    const auto network = recordedModel();
    const auto& json = recorded()["perplexity"];
    for (const auto& oneCase : json["cases"])
        for (const bool useCache : {true, false}) {
            PerplexityOptions options{.window = oneCase["window"], .stride = oneCase["stride"], .useCache = useCache};
            const auto result = must(perplexity(*network, json["ids"].get<Ids>(), options));
            QCOMPARE(result.tokens, oneCase["tokens"].get<std::int64_t>());
            QVERIFY(std::abs(result.nll - oneCase["nll"].get<double>()) < 1e-3); // of 500
            QVERIFY(std::abs(result.perplexity() - std::exp(oneCase["nll"].get<double>() / 100)) < 0.01);
        }
    QVERIFY(!perplexity(*network, {5}));
    QVERIFY(!perplexity(*network, json["ids"].get<Ids>(), {.window = 20, .stride = 20}));
}

void TestGenerate::theBatchDoesNotChangeAText() {
    const auto network = recordedModel();
    const SamplingOptions options{.maxNewTokens = 30, .temperature = 1.2, .topK = 40, .topP = 0.95, .maxContext = 100};
    std::vector<TokenRequest> requests;
    for (const std::uint64_t seed : {3, 4, 3, 5}) {
        requests.push_back({Ids(4 + 3 * seed, static_cast<std::int64_t>(10 + seed)), options});
        requests.back().sampling.seed = seed;
    }
    requests[1].sampling.maxNewTokens = 5; // leaves the batch early
    const auto together = must(generateTokens(*network, requests));
    for (std::size_t i = 0; i < requests.size(); ++i)
        QCOMPARE(idsOf(together[i]), idsOf(must(generateTokens(*network, {requests[i]}))[0]));
    QCOMPARE(idsOf(together[0]), idsOf(together[2]));
    QVERIFY(idsOf(together[0]) != idsOf(together[3]));
}

void TestGenerate::endTokensWaitForTheLeastLength() {
    auto network = tableNetwork({0, 3, 9, 0, 0, 0});
    QCOMPARE(run(*network, {.maxNewTokens = 9, .temperature = 0, .stopTokens = {2}, .minNewTokens = 3}), (Ids{1, 1, 1}));
}

void TestGenerate::probabilitiesAreTheModels() {
    auto network = tableNetwork({std::log(0.5), std::log(0.25), std::log(0.15), std::log(0.05), std::log(0.04), std::log(0.01)});
    SamplingOptions options{.maxNewTokens = 1, .temperature = 0, .repetitionPenalty = 50, .alternatives = 2};
    const auto result = must(generateTokens(*network, {{{0}, options}}))[0];
    QCOMPARE(result.tokens.size(), std::size_t(1));
    const NewToken& token = result.tokens[0];
    QCOMPARE(token.id, 1); // 0 was seen and is penalised: its log is negative and multiplied
    QVERIFY(std::abs(token.logProbability - std::log(0.25)) < 1e-6);
    QCOMPARE(token.alternatives.size(), std::size_t(2));
    QCOMPARE(token.alternatives[0].id, 0);
    QVERIFY(std::abs(token.alternatives[0].logProbability - std::log(0.5)) < 1e-6);
    QCOMPARE(token.alternatives[1].id, 1);
}

void TestGenerate::aFullContextStopsOrSlides() {
    const auto network = recordedModel();
    const Ids prompt{5, 6, 7, 8};
    TokenRequest request{prompt, {.maxNewTokens = 12, .temperature = 0, .maxContext = 8, .whenFull = WhenFull::Stop}};
    const auto stopped = must(generateTokens(*network, {request}))[0];
    QCOMPARE(stopped.finish, Finish::ContextFull);
    QCOMPARE(stopped.tokens.size(), std::size_t(5)); // the fifth follows the eight that are looked at
    request.sampling.whenFull = WhenFull::Slide;
    const auto slid = must(generateTokens(*network, {request}))[0];
    QCOMPARE(slid.finish, Finish::Length);
    Ids text = prompt;
    for (int i = 0; i < 12; ++i) { // each token from the last eight alone
        const Ids window(text.end() - std::min<std::ptrdiff_t>(8, static_cast<std::ptrdiff_t>(text.size())), text.end());
        text.push_back(run(*network, {.maxNewTokens = 1, .temperature = 0}, window)[0]);
    }
    QCOMPARE(idsOf(slid), Ids(text.begin() + 4, text.end()));
}

void TestGenerate::cancellingEndsEveryText() {
    const auto network = recordedModel();
    int steps = 0;
    GenerateOptions options;
    options.isCancelled = [&] { return steps++ == 3; };
    const auto results = must(generateTokens(*network, {{{5}, {.temperature = 0}}, {{6, 7}, {.temperature = 0}}}, options));
    for (const TokenResult& result : results) {
        QCOMPARE(result.finish, Finish::Cancelled);
        QCOMPARE(result.tokens.size(), std::size_t(3));
    }
}

void TestGenerate::stopTextsAreHeldBack() {
    StopText stop({"结束", "END"});
    QCOMPARE(stop.push("一二E"), std::string("一二"));
    QCOMPARE(stop.push("N"), std::string());
    QCOMPARE(stop.push("T"), std::string("ENT"));
    QCOMPARE(stop.push("结"), std::string());
    QCOMPARE(stop.push("果结"), std::string("结果"));
    QVERIFY(!stop.isFound());
    QCOMPARE(stop.push("束后"), std::string());
    QVERIFY(stop.isFound());
    QCOMPARE(stop.push("more") + stop.finish(), std::string());
    StopText unfinished({"\n\nUser:"});
    QCOMPARE(unfinished.push("a\n\nUse"), std::string("a"));
    QCOMPARE(unfinished.finish(), std::string("\n\nUse"));
    StopText repeated({"aab"}); // the beginning of a stop text inside its own beginning
    QCOMPARE(repeated.push("aaa"), std::string("a"));
    QCOMPARE(repeated.push("bc"), std::string());
    QVERIFY(repeated.isFound());
}

void TestGenerate::stopTextsEndAcrossTokenBorders() {
    Speaker speaker;
    TextGenerator generator(*speaker.network, *speaker.tokenizer);
    TextRequest request{generator.encode("话说天下大势"), {.maxNewTokens = 60, .temperature = 1, .seed = 2}, {}};
    const auto whole = must(generator.generate({request}))[0];
    const QString text = QString::fromStdString(whole.text);
    QVERIFY(text.size() > 30);
    for (int at : {8, 15, 22}) {
        request.stopTexts = {text.mid(at, 4).toStdString(), "never said"};
        std::string shown;
        TextOptions options;
        options.onDelta = [&](std::size_t, const std::string& delta, const NewToken*) {
            shown += delta;
            return true;
        };
        const auto stopped = must(generator.generate({request}, options))[0];
        QCOMPARE(stopped.finish, Finish::StopText);
        QCOMPARE(QString::fromStdString(stopped.text), text.left(text.indexOf(text.mid(at, 4))));
        QCOMPARE(shown, stopped.text);
    }
}

void TestGenerate::streamedTextIsTheDecodedText() { // words of bytes come often in a network that learned nothing
    Speaker speaker;
    TextGenerator generator(*speaker.network, *speaker.tokenizer);
    std::vector<TextRequest> requests;
    for (const char* prompt : {"滚滚长江东逝水", "Hello world", ""})
        requests.push_back({generator.encode(prompt), {.maxNewTokens = 80, .temperature = 1, .seed = 4}, {}});
    std::vector<std::string> shown(3);
    TextOptions options;
    options.onDelta = [&](std::size_t index, const std::string& delta, const NewToken*) {
        shown[index] += delta;
        return true;
    };
    const auto results = must(generator.generate(requests, options));
    for (std::size_t i = 0; i < 3; ++i) {
        Ids all = requests[i].prompt;
        const std::string before = speaker.tokenizer->decode(all);
        for (const NewToken& token : results[i].tokens) all.push_back(token.id);
        QCOMPARE(before + results[i].text, speaker.tokenizer->decode(all));
        QCOMPARE(shown[i], results[i].text);
    }
    QCOMPARE(generator.speed().newTokens, 240);
    QVERIFY(generator.speed().tokensPerSecond() > 0);
}

void TestGenerate::aFirstWordKeepsItsSpace() { // the recorded ids of "Hello world" are 327 ("▁Hello") and 331 ("▁world")
    const auto tokenizer = must(Tokenizer::load(fixture("tokenizer/sp_bpe_prefix.model")));
    StreamDecoder follows(*tokenizer, {327});
    QCOMPARE(follows.push(331), std::string(" world"));
    StreamDecoder begins(*tokenizer);
    QCOMPARE(begins.push(331), std::string("world"));
}

void TestGenerate::impossibleRequestsAreRefused() {
    const auto network = recordedModel();
    QVERIFY(!generateTokens(*network, {{{5}, {}}, {{}, {}}})); // an empty prompt
    const auto full = generateTokens(*network, {{Ids(9, 5), {.maxContext = 8, .whenFull = WhenFull::Stop}}});
    QVERIFY(!full);
    QVERIFY2(full.error().message.find("9 tokens") != std::string::npos, full.error().text().c_str());
    Speaker speaker;
    TextGenerator generator(*speaker.network, *speaker.tokenizer);
    QVERIFY(!generator.generate({{{5}, {}, {""}}}));
    QVERIFY(!generator.generate({{{5}, {}, {"\xff"}}}));
}

QTEST_GUILESS_MAIN(TestGenerate)
#include "tst_generate.moc"
