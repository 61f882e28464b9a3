// Sizes that a new cell takes from what is wired to it.
#include "models/graph/fit.h"
#include "models/library/standard.h"

#include <QTest>

using namespace celloom;
using namespace celloom::graph;

namespace {

Dim number(std::int64_t value) { return {value, {}}; }
const Shape kStates{{1, "B"}, {1, "T"}, number(64)};

struct Bench {
    Document document;
    std::map<std::string, ParamValue> fitted(const std::string& type, const std::map<std::string, Shape>& inputs, const Scope& scope = {}) {
        const auto name = addCell(document, "", type);
        if (!name) return {};
        fitToInputs(document, "", *name, inputs, scope);
        return findCell(document.main, *name)->params;
    }
};
using Params = std::map<std::string, ParamValue>;

} // namespace

class TestFit : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aParameterThatTheInputDecidesIsSet() {
        QVERIFY((Bench().fitted("Dense", {{"x", kStates}}) == Params{{"in_channels", std::int64_t(64)}}));
        QVERIFY((Bench().fitted("LayerNorm", {{"x", kStates}}) == Params{{"dim", std::int64_t(64)}}));
        QVERIFY((Bench().fitted("LMHead", {{"x", kStates}}) == Params{{"hidden_size", std::int64_t(64)}}));
    }
    void channelsComeFromTheirOwnDimension() {
        const Shape image{{1, "B"}, number(3), number(16), number(20)};
        QVERIFY((Bench().fitted("Conv2d", {{"x", image}}).at("in_channels") == ParamValue(std::int64_t(3))));
    }
    void whatTheInputDoesNotDecideStaysOpen() {
        QVERIFY((Bench().fitted("Embedding", {{"ids", {{1, "B"}, {1, "T"}}}}) == Params{}));
        QVERIFY((Bench().fitted("Dense", {}) == Params{}));
        QVERIFY((Bench().fitted("Dense", {{"x", {{1, "B"}, {1, "N"}}}}) == Params{}));
    }
    void theOneHyperParameterOfThatSizeIsNamed() {
        QVERIFY((Bench().fitted("Dense", {{"x", kStates}}, {{"d_model", std::int64_t(64)}, {"layers", std::int64_t(2)}}) == Params{{"in_channels", std::string("d_model")}}));
        QVERIFY((Bench().fitted("Dense", {{"x", kStates}}, {{"d_model", std::int64_t(64)}, {"vocab", std::int64_t(64)}}) == Params{{"in_channels", std::int64_t(64)}}));
    }
    void whatWasSetStays() {
        Bench bench;
        bench.fitted("Dense", {});
        QVERIFY(setParam(bench.document, "", "dense", "in_channels", std::int64_t(8)).has_value());
        fitToInputs(bench.document, "", "dense", {{"x", kStates}}, {});
        QVERIFY((bench.document.main.cells[0].params == Params{{"in_channels", std::int64_t(8)}}));
    }
    void aCompositeTakesWhatItsPortDeclares() {
        Bench bench;
        const auto copied = library::copyInto(bench.document, "TransformerBlock");
        QVERIFY(copied.has_value());
        QVERIFY((bench.fitted(copied->type, {{"x", kStates}}) == Params{{"d_model", std::int64_t(64)}}));
    }
};

QTEST_GUILESS_MAIN(TestFit)
#include "tst_fit.moc"
