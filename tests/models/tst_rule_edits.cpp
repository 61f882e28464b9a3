// Rules made for the cells that one looks at: what they reach, which of them counts, and the list with one more.
#include "models/families/families.h"
#include "models/recipe/estimate.h"
#include "models/recipe/fit_memory.h"
#include "models/recipe/rule_edits.h"

#include <QTest>

using namespace celloom;
using namespace celloom::recipe;

namespace {

const graph::ExpandedModel& model() {
    static const graph::ExpandedModel made = graph::expand(*families::openModel("baichuan-tiny")).model; // 4 layers
    return made;
}

std::size_t cellAt(const std::string& path) {
    for (std::size_t i = 0; i < model().cells.size(); ++i)
        if (model().cells[i].path == path) return i;
    qFatal("%s", path.c_str());
    return 0;
}

std::vector<Rule> rules(const std::vector<std::string>& texts) {
    std::vector<Rule> out;
    for (const std::string& text : texts) out.push_back(parseRule(text).value());
    return out;
}

} // namespace

class TestRuleEdits : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aPatternForOneInstanceOrForAllRepeats() {
        const std::string cell = "layers.3.mlp.up_proj";
        QCOMPARE(patternFor(model(), cell, Reach::Instance), cell);
        QCOMPARE(patternFor(model(), cell, Reach::AllRepeats), std::string("layers.*.mlp.up_proj"));
        QCOMPARE(patternFor(model(), "layers.3.mlp", Reach::Instance), std::string("layers.3.mlp.**"));
        QCOMPARE(patternFor(model(), "layers.3", Reach::AllRepeats), std::string("layers.*.**"));
        QCOMPARE(patternFor(model(), "norm", Reach::AllRepeats), std::string("norm"));
        QCOMPARE(patternFor(model(), "", Reach::Instance), std::string("**"));
        QCOMPARE(cellsOf(model(), parseRule("layers.*.mlp.up_proj: freeze").value())->size(), std::size_t(4));
    }

    void theSamePatternReachesWhatResolvingReaches() {
        for (const char* text : {"layers.*: recompute", "layers.{1..2}.**: freeze", "**: lr_scale=2", "layers.*.mlp.up_proj: lora r=4"}) {
            const Rule rule = parseRule(text).value();
            const auto reached = cellsOf(model(), rule);
            QVERIFY(reached);
            const auto table = resolve(model(), {rule});
            QVERIFY2(table, text);
            std::vector<std::size_t> changed;
            for (std::size_t i = 0; i < table->cells.size(); ++i)
                if (table->cells[i] != Treatment{}) changed.push_back(i);
            QCOMPARE(*reached, changed);
        }
    }

    void aLaterRuleOverridesAnEarlierOne() {
        const auto list = rules({"**: freeze", "layers.*.mlp.up_proj: train", "norm: dtype=float32", "layers.0.mlp.up_proj: lr_scale=0.5"});
        const auto bearings = bearingsOn(model(), list, {cellAt("layers.0.mlp.up_proj")});
        QCOMPARE(bearings.size(), std::size_t(3));
        QCOMPARE(bearings[0].rule, std::size_t(0));
        QCOMPARE(bearings[0].cells, model().cells.size());
        QVERIFY(bearings[0].isOverridden);
        QCOMPARE(bearings[1].cells, std::size_t(4));
        QVERIFY(!bearings[1].isOverridden);
        QVERIFY(!bearings[2].isOverridden);
        const auto whole = bearingsOn(model(), list, {cellAt("layers.0.mlp.up_proj"), cellAt("norm")}); // frozen still holds for norm
        QVERIFY(!whole[0].isOverridden);
        QCOMPARE(whole[0].here, std::size_t(2));
    }

    void aNewRuleTakesThePlaceOfWhatItSaysAnew() {
        const std::vector<std::string> before{"norm: freeze lr_scale=2", "**: dtype=bfloat16"};
        QCOMPARE(*withRule(before, parseRule("norm: train").value()), (std::vector<std::string>{"norm: lr_scale=2", "**: dtype=bfloat16", "norm: train"}));
        QCOMPARE(*withRule(before, parseRule("norm: train lr_scale=1").value()), (std::vector<std::string>{"**: dtype=bfloat16", "norm: train lr_scale=1"}));
        QCOMPARE(*withRule({}, parseRule("norm: freeze").value()), (std::vector<std::string>{"norm: freeze"}));
        QVERIFY(!withRule({"no rule"}, parseRule("norm: freeze").value()));
    }

    void aStepThatIsTooLargeIsMadeInSmallerPieces() {
        Recipe recipe;
        QVERIFY(recipe.set("train.batch_size", std::int64_t{12}));
        QVERIFY(recipe.set("train.accumulation", std::int64_t{2}));
        const std::int64_t whole = estimate(recipe, model())->peakBytes;
        QVERIFY(!fitMemory(recipe, model(), whole)); // it fits as it is
        const auto fit = fitMemory(recipe, model(), whole - 1);
        QVERIFY(fit);
        QCOMPARE(fit->batch * fit->accumulation, std::int64_t{24}); // the same rows a step
        QCOMPARE(fit->batch, std::int64_t{6});
        QVERIFY(fit->peakBytes < whole);
        QVERIFY(!fitMemory(recipe, model(), 1)); // not even one row
    }

    void aMalformedPatternIsSaid() {
        Rule rule;
        rule.pattern = "layers.{3..";
        QVERIFY(!cellsOf(model(), rule));
    }
};

QTEST_GUILESS_MAIN(TestRuleEdits)
#include "tst_rule_edits.moc"
