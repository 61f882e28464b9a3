// Two graphs beside each other: what a reader is told. Expected by hand.
#include "models/graph/comparison.h"

#include <QTest>

using namespace celloom;
using namespace celloom::graph;

namespace {

Document base() {
    Document out;
    out.main.name = "m";
    out.main.hyper = {{"hidden", std::int64_t(8), ""}};
    out.main.inputs = {{"x", {"B", "hidden"}}};
    out.main.outputs = {{"y", {}}};
    out.main.cells = {{"a", "Dense", {{"out_channels", std::string("hidden")}}, "", "", Position{0, 0}}, {"b", "Block", {}, "4", "", Position{0, 90}}};
    out.main.wires = {{{"", "x"}, {"a", "x"}}, {{"a", "out"}, {"b", "x"}}, {{"b", "out"}, {"", "y"}}};
    Graph inner;
    inner.cells = {{"act", "SiLU", {}, "", "", {}}};
    out.composites["Block"] = inner;
    Graph outer;
    outer.cells = {{"block", "Block", {}, "", "", {}}};
    out.composites["Outer"] = outer;
    return out;
}

} // namespace

class TestComparison : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void nothingDiffersButPlaces() {
        Document moved = base();
        moved.main.cells[0].position = Position{400, 20};
        moved.main.cells[1].position.reset();
        std::swap(moved.main.cells[0], moved.main.cells[1]); // nor does the order
        QVERIFY(compare(base(), moved).empty());
    }

    void cellsThatCameWentAndChangedAreNamed() {
        Document after = base();
        after.main.cells = {{"a", "Dense", {{"out_channels", std::string("2 * hidden")}, {"has_bias", false}}, "", "", {}}, {"c", "ReLU", {}, "", "", {}}};
        const auto findings = compare(base(), after);
        QCOMPARE(findings.size(), std::size_t(3));
        QVERIFY(findings[0].fate == Fate::Removed && findings[0].name == "b" && findings[0].before->repeat == "4");
        QVERIFY(findings[1].fate == Fate::Changed && findings[1].name == "a");
        QCOMPARE(findings[1].fields.size(), std::size_t(2));
        QVERIFY((findings[1].fields[0] == FieldChange{"out_channels", "hidden", "2 * hidden"}));
        QVERIFY((findings[1].fields[1] == FieldChange{"has_bias", "", "false"}));
        QVERIFY(findings[2].fate == Fate::Added && findings[2].name == "c");
    }

    void wiresPortsAndHyperParametersToo() {
        Document after = base();
        after.main.hyper[0].value = std::int64_t(16);
        after.main.inputs[0].shape = {"B", "T", "hidden"};
        after.main.wires.pop_back();
        const auto findings = compare(base(), after);
        QCOMPARE(findings.size(), std::size_t(3));
        QVERIFY(findings[0].what == Finding::What::Hyper);
        QVERIFY((findings[0].fields[0] == FieldChange{"value", "8", "16"}));
        QVERIFY((findings[1].fields[0] == FieldChange{"shape", "[B, hidden]", "[B, T, hidden]"}));
        QVERIFY(findings[2].what == Finding::What::Wire && findings[2].fate == Fate::Removed);
        QCOMPARE(findings[2].name, std::string("b.out -> y"));
    }

    void aPortThatIsFedFromElsewhereIsOneChange() {
        Document after = base();
        after.main.wires[2].from = {"a", "out"}; // the output's
        after.main.wires.push_back({{"b", "out"}, {"c", "x"}});
        const auto findings = compare(base(), after);
        QCOMPARE(findings.size(), std::size_t(2));
        QVERIFY(findings[0].what == Finding::What::Wire && findings[0].fate == Fate::Changed);
        QCOMPARE(findings[0].name, std::string("a.out -> y"));
        QVERIFY((findings[0].fields == std::vector<FieldChange>{{"from", "b.out", "a.out"}}));
        QVERIFY((*findings[0].wireBefore == Wire{{"b", "out"}, {"", "y"}}));
        QVERIFY(findings[1].fate == Fate::Added && findings[1].name == "b.out -> c.x");
    }

    void whatDiffersInsideIsSaidOfTheCompositesAround() {
        Document after = base();
        after.composites["Block"].cells[0].type = "GELU";
        after.composites["New"] = {};
        const auto findings = compare(base(), after);
        QCOMPARE(findings.size(), std::size_t(2));
        QCOMPARE(findings[0].graph, std::string("Block"));
        QVERIFY(findings[1].what == Finding::What::Composite && findings[1].fate == Fate::Added);
        QCOMPARE(differingComposites(after, findings), (std::set<std::string>{"Block", "New", "Outer"}));
    }
};

QTEST_APPLESS_MAIN(TestComparison)
#include "tst_comparison.moc"
