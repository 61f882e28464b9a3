// The Model page's data: levels of a model with shapes and counts, and where the boxes go.
#include "models/graph/json.h"
#include "ui/common/model_analysis.h"
#include "ui/editor/graph_layout.h"
#include "ui/editor/model_level.h"

#include <QSignalSpy>
#include <QTest>

using namespace celloom;
using namespace celloom::ui;

namespace {

ModelAnalysis analysisOf(const std::string& preset, std::vector<std::string> rules = {}) {
    recipe::Recipe recipe;
    // A run on tokens trains no tokenizer, so that the vocabulary is the model's own.
    if (!recipe.set("model.source", preset) || !recipe.set("rules", std::move(rules)) || !recipe.set("data.format", std::string("tokens")))
        qFatal("bad recipe");
    return analyse(recipe);
}

const LevelBox* find(const ModelLevel& level, const std::string& name) {
    for (const LevelBox& box : level.boxes) {
        if (box.name == name) return &box;
    }
    return nullptr;
}

LayoutInput chain(int count) {
    LayoutInput input;
    for (int i = 0; i < count; ++i) input.boxes.push_back({160, 50});
    for (int i = 1; i < count; ++i) input.arrows.push_back({i - 1, i});
    return input;
}

void verifyApart(const LayoutInput& input, const LayoutResult& result) {
    QCOMPARE(result.centers.size(), input.boxes.size());
    QCOMPARE(result.curves.size(), input.arrows.size());
    std::vector<QRectF> boxes;
    for (std::size_t i = 0; i < input.boxes.size(); ++i)
        boxes.emplace_back(result.centers[i] - QPointF(input.boxes[i].width() / 2, input.boxes[i].height() / 2), input.boxes[i]);
    for (std::size_t a = 0; a < boxes.size(); ++a) {
        for (std::size_t b = a + 1; b < boxes.size(); ++b) QVERIFY(!boxes[a].intersects(boxes[b]));
    }
    for (const LayoutInput::Arrow& arrow : input.arrows)
        QVERIFY(result.centers[static_cast<std::size_t>(arrow.from)].y() < result.centers[static_cast<std::size_t>(arrow.to)].y());
}

} // namespace

class TestModelGraph : public QObject {
    Q_OBJECT

private Q_SLOTS:
    // Baichuan 7B: 32 layers, hidden 4096, 64 000 words, 7 000 559 616 parameters (its safetensors index).
    void baichuan7bHasItsLayersShapesAndParameters() {
        const ModelAnalysis analysis = analysisOf("baichuan-7b");
        QVERIFY(!analysis.openError && analysis.expansion.ok());
        const ModelLevel level = makeLevel(analysis, {});
        const LevelBox* layers = find(level, "layers");
        QVERIFY(layers);
        QVERIFY(layers->kind == BoxKind::Composite);
        QCOMPARE(layers->repeat, std::int64_t(32));
        QCOMPARE(layers->shape, std::string("[B, T, 4096]"));
        std::int64_t parameters = 0;
        for (const LevelBox& box : level.boxes) parameters += box.parameters;
        QCOMPARE(parameters, std::int64_t(7'000'559'616));
        QVERIFY(!level.wires.empty());
    }

    void hyperParametersOfAnInnerLevelHaveTheirValues() {
        const ModelAnalysis analysis = analysisOf("internlm2-7b"); // 32 query heads of 4096 / 32 numbers, 8 key/value heads
        const ModelLevel level = makeLevel(analysis, {{"layers", 3}, {"attention", 0}});
        QCOMPARE(std::get<std::int64_t>(level.hyper.at("kv_heads")), std::int64_t(8));
        QCOMPARE(std::get<std::int64_t>(level.hyper.at("heads")), std::int64_t(32));
        QCOMPARE(std::get<std::int64_t>(level.hyper.at("head_dim")), std::int64_t(128));
    }

    void steppingInShowsOneInstanceWithItsTreatment() {
        const ModelAnalysis analysis = analysisOf("baichuan-tiny", {"layers.1.**: freeze"});
        QVERIFY(!analysis.ruleError);
        const LevelPath second{{"layers", 1}};
        QVERIFY(isValid(analysis, second));
        QCOMPARE(repeatOf(analysis, second), std::int64_t(4));
        const ModelLevel level = makeLevel(analysis, second);
        QCOMPARE(level.prefix, std::string("layers.1."));
        for (const LevelBox& box : level.boxes) {
            for (std::size_t index : box.instances) {
                QVERIFY(analysis.expansion.model.cells[index].path.starts_with("layers.1."));
                QVERIFY(analysis.treatment.cells[index].frozen);
            }
        }
        QVERIFY(!isValid(analysis, {{"nothing", 0}}));
        QVERIFY(!isValid(analysis, {{"embed_tokens", 0}})); // no composite
    }

    void aPathOfTheExpansionIsFoundOnItsLevel() {
        const ModelAnalysis analysis = analysisOf("baichuan-tiny");
        for (const graph::CellInstance& cell : analysis.expansion.model.cells) {
            const auto place = locate(analysis, cell.path);
            QVERIFY2(place, cell.path.c_str());
            const ModelLevel level = makeLevel(analysis, place->first);
            const LevelBox* box = find(level, place->second);
            QVERIFY2(box && box->path == cell.path, cell.path.c_str());
        }
        QVERIFY(!locate(analysis, "layers.0.nothing"));
        QVERIFY(!locate(analysis, ""));
    }

    void theVocabularyFollowsTheTokenizerThatTheRunTrains() {
        recipe::Recipe recipe;
        QVERIFY(recipe.set("tokenizer.vocab_size", std::int64_t(5000)));
        QCOMPARE(analyse(recipe).expansion.model.hyperInteger("vocab", 0), std::int64_t(5000));
        QVERIFY(recipe.set("model.overrides", std::vector<std::string>{"vocab=6000"}));
        QCOMPARE(analyse(recipe).expansion.model.hyperInteger("vocab", 0), std::int64_t(6000));
    }

    void anIncompleteModelShowsExpressionsAndNoCounts() {
        recipe::Recipe recipe;
        QVERIFY(recipe.set("model.overrides", std::vector<std::string>{"heads=3"})); // 256 / 3 is no whole number
        const ModelAnalysis analysis = analyse(recipe);
        QVERIFY(!analysis.openError && !analysis.expansion.ok());
        const ModelLevel level = makeLevel(analysis, {});
        QCOMPARE(find(level, "layers")->repeatText, std::string("layers"));
        QCOMPARE(find(level, "layers")->parameters, std::int64_t(0));
    }

    void anInputWithoutAShapeIsAProblemAndIsShown() {
        for (const char* shape : {"", R"(, "shape": ["B", "2 +"])"}) {
            auto document = graph::fromJson(R"({"format":"celloom-cells","schema":1,"main":{"name":"s","inputs":[{"name":"x")" + std::string(shape) +
                                            R"(}],"outputs":[{"name":"y"}],"cells":[{"name":"c","type":"ReLU"}],"wires":["x -> c.x","c.out -> y"]}})");
            QVERIFY2(document, document ? "" : document.error().text().c_str());
            const ModelAnalysis analysis = analyse(recipe::Recipe(), std::make_shared<const graph::Document>(std::move(*document)));
            QVERIFY(!analysis.openError && !analysis.expansion.problems.empty());
            const ModelLevel level = makeLevel(analysis, {});
            QVERIFY(find(level, "x") && !find(level, "x")->outputs[0].shape);
            QCOMPARE(level.wires.size(), std::size_t(2));
        }
    }

    void aModelThatCannotBeOpenedSaysWhy() {
        const ModelAnalysis analysis = analysisOf("no-such-model");
        QVERIFY(analysis.openError.has_value());
        QVERIFY(!analysis.openError->message.empty());
    }

    void onlyTheNewestRequestIsAnswered() {
        ModelAnalyser analyser;
        QSignalSpy ready(&analyser, &ModelAnalyser::ready);
        recipe::Recipe recipe;
        for (const char* name : {"baichuan-13b", "baichuan-7b", "baichuan-tiny"}) {
            QVERIFY(recipe.set("model.source", std::string(name)));
            analyser.request(recipe);
        }
        QTRY_VERIFY(analyser.isSettled());
        QCOMPARE(analyser.latest()->source, std::string("baichuan-tiny"));
        QCOMPARE(ready.size(), 1);
    }

    void graphvizKeepsBoxesApartAndArrowsDownwards() {
        LayoutInput input = chain(5);
        input.arrows.push_back({0, 4}); // a way around
        verifyApart(input, arrangeByGraphviz(input));
    }

    void rowsKeepBoxesApartAndArrowsDownwards() {
        LayoutInput input = chain(4);
        input.boxes.push_back({300, 40});
        input.arrows.push_back({0, 4});
        input.arrows.push_back({4, 3});
        verifyApart(input, arrangeInRows(input));
        QCOMPARE(arrangeInRows({}).centers.size(), std::size_t(0));
    }

    void rowsEndOnACycle() {
        LayoutInput input = chain(3);
        input.arrows.push_back({2, 0});
        QCOMPARE(arrangeInRows(input).centers.size(), std::size_t(3));
    }

    // 2000 cells: the request is given up at once, the window has an arrangement, and a later request is answered.
    void aLargeArrangementCanBeCancelled() {
        GraphLayouter layouter{QString()};
        QSignalSpy ready(&layouter, &GraphLayouter::ready);
        constexpr int count = 2000 / CELLOOM_TEST_TIME_FACTOR; // whoever takes longer than the end of the program waits is ended while at work
        LayoutInput large = chain(count);
        for (int i = 0; i + 7 < count; i += 3) large.arrows.push_back({i, i + 7});
        layouter.request(large);
        QVERIFY(layouter.isBusy());
        layouter.cancel();
        QCOMPARE(ready.size(), 1);
        QCOMPARE(ready.first().first().value<LayoutResultPtr>()->centers.size(), std::size_t(count));
        QVERIFY(!layouter.isBusy());
    }

    void theNewestArrangementIsTheOneThatArrives() {
        GraphLayouter layouter{QString()};
        QSignalSpy ready(&layouter, &GraphLayouter::ready);
        layouter.request(chain(40));
        layouter.request(chain(3));
        QTRY_COMPARE(ready.size(), 1);
        QCOMPARE(ready.first().first().value<LayoutResultPtr>()->centers.size(), std::size_t(3));
    }
};

QTEST_GUILESS_MAIN(TestModelGraph)
#include "tst_model_graph.moc"
