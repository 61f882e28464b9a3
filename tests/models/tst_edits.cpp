// Edits of a document, one by one and in long random sequences that are undone and redone.
#include "models/graph/difference.h"
#include "models/graph/edits.h"
#include "models/graph/expand.h"
#include "models/graph/json.h"
#include "models/families/families.h"

#include <QtTest>

#include <random>

using namespace celloom;
using namespace celloom::graph;

namespace {

Document chain() { // x -> up -> act -> down -> y, inside hidden 8
    Document out;
    out.main.hyper = {{"hidden", std::int64_t(8), ""}, {"inner", std::string("hidden * 2"), ""}};
    out.main.inputs = {{"x", {"B", "T", "hidden"}}};
    out.main.outputs = {{"y", {"B", "T", "hidden"}}};
    out.main.cells = {{"up", "Dense", {{"in_channels", std::string("hidden")}, {"out_channels", std::string("inner")}}, "", "", Position{0, 0}},
                      {"act", "SiLU", {}, "", "", Position{0, 100}},
                      {"down", "Dense", {{"in_channels", std::string("inner")}, {"out_channels", std::string("hidden")}}, "", "", Position{0, 200}}};
    out.main.wires = {{{"", "x"}, {"up", "x"}}, {{"up", "out"}, {"act", "x"}}, {{"act", "out"}, {"down", "x"}}, {{"down", "out"}, {"", "y"}}};
    return out;
}

std::int64_t parameters(const Document& document) {
    const Expansion expansion = expand(document);
    return expansion.ok() ? expansion.model.parameterCount() : -1;
}

QString messageOf(const Status& status) {
    return status ? QString() : QString::fromStdString(status.error().message + " " + status.error().hint);
}

/// What every edit keeps.
QString brokenRule(const Document& document) {
    QString out;
    const auto look = [&](const std::string& name, const Graph& graph) {
        CellNames cells;
        for (const Cell& cell : graph.cells)
            if (!cells.insert(cell.name).second) out = QString::fromStdString(name + ": two cells " + cell.name);
        std::set<std::pair<std::string, std::string>> fed;
        const auto has = [](const std::vector<Port>& ports, const std::string& port) {
            return std::any_of(ports.begin(), ports.end(), [&](const Port& other) { return other.name == port; });
        };
        for (const Wire& wire : graph.wires) {
            if (!fed.insert({wire.to.cell, wire.to.port}).second) out = QString::fromStdString(name + ": fed twice " + wire.to.cell);
            if (wire.from.cell.empty() ? !has(graph.inputs, wire.from.port) : !cells.contains(wire.from.cell)) out = "wire from nowhere";
            if (wire.to.cell.empty() ? !has(graph.outputs, wire.to.port) : !cells.contains(wire.to.cell)) out = "wire to nowhere";
        }
        for (const Cell& cell : graph.cells)
            if (wouldRecurse(document, name, cell.type)) out = "recursion";
    };
    look("", document.main);
    for (const auto& [name, graph] : document.composites) look(name, graph);
    for (const Problem& problem : expand(document).problems)
        if (problem.message.find("circle") != std::string::npos || problem.message.find("contain each other") != std::string::npos)
            out = QString::fromStdString(problem.message);
    return out;
}

/// One random edit; refused ones are edits too, and must change nothing.
void editAtRandom(Document& document, std::mt19937& random) {
    const auto below = [&](std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(random); };
    std::vector<GraphName> graphs{""};
    for (const auto& [name, graph] : document.composites) graphs.push_back(name);
    const GraphName where = graphs[below(graphs.size())];
    const Graph& graph = *graphOf(document, where);
    const auto anyCell = [&] { return graph.cells.empty() ? std::string("none") : graph.cells[below(graph.cells.size())].name; };
    const auto someCells = [&] {
        CellNames out;
        for (std::size_t i = below(4) + 1; i-- > 0;) out.insert(anyCell());
        return out;
    };
    const auto anyEnd = [&](bool isFrom) -> Endpoint {
        const auto& ports = isFrom ? graph.inputs : graph.outputs;
        if (!ports.empty() && below(4) == 0) return {"", ports[below(ports.size())].name};
        return {anyCell(), isFrom ? "out" : below(2) ? "x" : "a"};
    };
    const Position offset{static_cast<double>(below(50)), static_cast<double>(below(50))};
    const auto name = [&] { return "n" + std::to_string(below(6)); };
    static const std::vector<std::string> types{"Dense", "Add", "SiLU", "RMSNorm", "Nothing"};
    switch (below(20)) {
    case 0: case 1: (void)addCell(document, where, below(3) ? types[below(types.size())] : graphs[below(graphs.size())], offset); break;
    case 2: (void)removeCells(document, where, someCells()); break;
    case 3: (void)renameCell(document, where, anyCell(), name()); break;
    case 4: (void)setParam(document, where, anyCell(), below(2) ? "in_channels" : "hidden", below(3) ? std::optional<ParamValue>(std::string("hidden * 3")) : std::nullopt); break;
    case 5: (void)setRepeat(document, where, anyCell(), below(2) ? "2" : ""); break;
    case 6: (void)setNote(document, where, anyCell(), "注 " + name()); break;
    case 7: (void)moveCells(document, where, {{anyCell(), offset}, {anyCell(), offset}}); break;
    case 8: case 9: case 10: (void)addWire(document, where, {anyEnd(true), anyEnd(false)}); break;
    case 11: if (!graph.wires.empty()) (void)removeWire(document, where, graph.wires[below(graph.wires.size())]); break;
    case 12: if (!graph.wires.empty()) (void)insertOnWire(document, where, graph.wires[below(graph.wires.size())], anyCell(), "x", "out"); break;
    case 13: (void)duplicateCells(document, where, someCells(), offset); break;
    case 14: if (const auto text = copyCells(document, where, someCells())) (void)pasteCells(document, graphs[below(graphs.size())], *text, offset); break;
    case 15: if (document.composites.size() < 8) (void)groupCells(document, where, someCells(), name()); break;
    case 16: (void)ungroupCell(document, where, anyCell()); break;
    case 17:
        if (below(2)) (void)renameComposite(document, where, name());
        else (void)removeComposite(document, where);
        break;
    case 18: {
        const PortSide side = below(2) ? PortSide::Input : PortSide::Output;
        const auto& ports = side == PortSide::Input ? graph.inputs : graph.outputs;
        const std::string port = ports.empty() ? "none" : ports[below(ports.size())].name;
        if (below(3) == 0) (void)addPort(document, where, side, {name(), {"B"}});
        else if (below(2)) (void)removePort(document, where, side, port);
        else (void)changePort(document, where, side, port, {name(), {"B", "T"}});
        break;
    }
    default: {
        const std::string hyper = graph.hyper.empty() ? "none" : graph.hyper[below(graph.hyper.size())].name;
        if (below(3) == 0) (void)addHyper(document, where, {name(), std::int64_t(4), ""});
        else if (below(2)) (void)removeHyper(document, where, hyper);
        else (void)changeHyper(document, where, hyper, {name(), std::int64_t(6), "help"});
    }
    }
}

} // namespace

class TestEdits : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void deletingACellWithWiresAndParametersIsUndoneByteForByte();
    void tenThousandRandomEditsAreUndoneAndRedoneByteForByte();
    void aRefusedEditChangesNothing();
    void aWireReplacesTheOneAtItsPortAndClosesNoCircle();
    void aCellDroppedOnAWireStandsBetweenItsEnds();
    void renamingKeepsTheWires();
    void groupingKeepsWhatIsComputedAndUngroupingToo();
    void aGroupTakesTheHyperParametersThatItUses();
    void aGroupThatAWayLeavesAndEntersAgainIsRefused();
    void aPresetGroupedAndUngroupedKeepsItsParameterCount();
    void pastingIntoAnotherDocumentBringsCompositesAndHyperParameters();
    void pastingRenamesACompositeThatDiffers();
    void theClipboardIsReadWithCare();
    void aCompositeCannotComeIntoItself();
    void aRenamedHyperParameterIsFollowedByExpressionsAndUsers();
    void portsOfACompositeAreFollowedByItsUsers();
    void namesOfNewCellsFollowTheirTypes();
};

void TestEdits::deletingACellWithWiresAndParametersIsUndoneByteForByte() { // luna-studio#1383
    const Document before = chain();
    Document document = before;
    std::vector<Difference> done;
    for (int i = 0; i < 50; ++i) { // deleted, put elsewhere, wired again …
        const Document was = document;
        if (i % 2 == 0) QVERIFY(removeCells(document, "", {document.main.cells[static_cast<std::size_t>(i / 2) % document.main.cells.size()].name}));
        else QVERIFY(addCell(document, "", "Dense", Position{double(i), 0}));
        done.push_back(Difference::between(was, document));
    }
    while (!done.empty()) {
        done.back().revert(document);
        done.pop_back();
    }
    QCOMPARE(toJson(document), toJson(before));
}

void TestEdits::tenThousandRandomEditsAreUndoneAndRedoneByteForByte() {
    std::mt19937 random(20261130);
    int edits = 0, refused = 0;
    std::size_t largest = 0;
    while (edits < 10000) { // sequences of up to 60
        Document document = chain();
        std::vector<Difference> done;
        std::vector<std::string> states{toJson(document)};
        for (int i = 0; i < 60; ++i, ++edits) {
            const Document before = document;
            editAtRandom(document, random);
            const Difference difference = Difference::between(before, document);
            if (difference.isEmpty()) {
                QCOMPARE(toJson(document), states.back());
                ++refused;
                continue;
            }
            if (const QString rule = brokenRule(document); !rule.isEmpty()) QFAIL(qPrintable(rule + "\n" + QString::fromStdString(states.back() + toJson(document))));
            done.push_back(difference);
            states.push_back(toJson(document));
            largest = std::max(largest, document.main.cells.size());
        }
        QVERIFY(isSame(*fromJson(states.back()), document));
        for (std::size_t i = done.size(); i-- > 0;) {
            done[i].revert(document);
            QCOMPARE(toJson(document), states[i]);
        }
        for (std::size_t i = 0; i < done.size(); ++i) {
            done[i].apply(document);
            QCOMPARE(toJson(document), states[i + 1]);
        }
    }
    QVERIFY2(refused < edits * 2 / 3, "most edits were refused: the sequences test little");
    QVERIFY(largest > 8);
}

void TestEdits::aRefusedEditChangesNothing() {
    Document document = chain();
    const std::string before = toJson(document);
    QVERIFY(messageOf(removeCells(document, "", {"up", "uq"})).contains("Did you mean up"));
    QVERIFY(messageOf(renameCell(document, "", "up", "down")).contains("Another cell is named down"));
    QVERIFY(messageOf(renameCell(document, "", "up", "a b")).contains("letters, digits"));
    QVERIFY(messageOf(setParam(document, "", "up", "out_chanels", std::int64_t(3))).contains("out_channels"));
    QVERIFY(!addCell(document, "", "Dence"));
    QVERIFY(!addCell(document, "Nowhere", "Dense"));
    QVERIFY(!addWire(document, "", {{"up", "out"}, {"nobody", "x"}}));
    QVERIFY(messageOf(removeHyper(document, "", "inner")).contains("is used in"));
    QVERIFY(!ungroupCell(document, "", "up"));
    QCOMPARE(toJson(document), before);
}

void TestEdits::aWireReplacesTheOneAtItsPortAndClosesNoCircle() {
    Document document = chain();
    QVERIFY(addWire(document, "", {{"", "x"}, {"down", "x"}}));
    QCOMPARE(document.main.wires.size(), std::size_t(4));
    QVERIFY(document.main.wires.back() == (Wire{{"", "x"}, {"down", "x"}}));
    QVERIFY(messageOf(addWire(document, "", {{"act", "out"}, {"up", "x"}})).contains("circle"));
    QVERIFY(messageOf(addWire(document, "", {{"act", "out"}, {"act", "x"}})).contains("circle"));
}

void TestEdits::aCellDroppedOnAWireStandsBetweenItsEnds() {
    Document document = chain();
    const auto name = addCell(document, "", "Dropout");
    QVERIFY(name.has_value());
    QVERIFY(insertOnWire(document, "", {{"act", "out"}, {"down", "x"}}, *name, "x", "out"));
    QCOMPARE(parameters(document), std::int64_t(2 * 8 * 16));
    const auto& wires = document.main.wires;
    QVERIFY(std::find(wires.begin(), wires.end(), Wire{{"act", "out"}, {*name, "x"}}) != wires.end());
    QVERIFY(std::find(wires.begin(), wires.end(), Wire{{*name, "out"}, {"down", "x"}}) != wires.end());
    QVERIFY(std::find(wires.begin(), wires.end(), Wire{{"act", "out"}, {"down", "x"}}) == wires.end());
}

void TestEdits::renamingKeepsTheWires() {
    Document document = chain();
    QVERIFY(renameCell(document, "", "act", "激活"));
    QCOMPARE(parameters(document), std::int64_t(2 * 8 * 16));
    QVERIFY(document.main.wires[1] == (Wire{{"up", "out"}, {"激活", "x"}}));
}

void TestEdits::groupingKeepsWhatIsComputedAndUngroupingToo() {
    Document document = chain();
    const auto group = groupCells(document, "", {"act", "down"}, "Half");
    QVERIFY2(group.has_value(), group ? "" : group.error().message.c_str());
    QCOMPARE(document.main.cells.size(), std::size_t(2));
    QCOMPARE(document.composites.size(), std::size_t(1));
    QCOMPARE(parameters(document), std::int64_t(2 * 8 * 16));
    const auto names = ungroupCell(document, "", *group);
    QVERIFY2(names.has_value(), names ? "" : names.error().message.c_str());
    QCOMPARE(*names, (std::vector<std::string>{"act", "down"}));
    QVERIFY(document.composites.empty());
    QCOMPARE(parameters(document), std::int64_t(2 * 8 * 16));
    QCOMPARE(std::get<std::string>(findCell(document.main, "down")->params.at("in_channels")), std::string("inner"));
    QCOMPARE(findCell(document.main, "down")->position->y, 200.0);
}

void TestEdits::aGroupTakesTheHyperParametersThatItUses() {
    Document document = chain();
    QVERIFY(groupCells(document, "", {"up"}, "Up"));
    const Graph& inside = document.composites.at("Up");
    QCOMPARE(inside.hyper.size(), std::size_t(2)); // inner is written with hidden
    QVERIFY(changeHyper(document, "", "hidden", {"hidden", std::int64_t(10), ""}));
    QCOMPARE(parameters(document), std::int64_t(2 * 10 * 20));
}

void TestEdits::aGroupThatAWayLeavesAndEntersAgainIsRefused() {
    Document document = chain();
    const auto group = groupCells(document, "", {"up", "down"}, "Ends");
    QVERIFY(!group.has_value());
    QVERIFY(QString::fromStdString(group.error().message).contains("out of these cells"));
}

void TestEdits::aPresetGroupedAndUngroupedKeepsItsParameterCount() {
    auto preset = families::buildPreset("baichuan-tiny");
    QVERIFY(preset.has_value());
    Document document = *preset;
    const std::int64_t expected = parameters(document);
    QVERIFY(expected > 1000000);
    std::mt19937 random(5);
    int grouped = 0;
    for (int round = 0; round < 200; ++round) {
        std::vector<GraphName> graphs{""};
        for (const auto& [name, graph] : document.composites) graphs.push_back(name);
        const GraphName where = graphs[random() % graphs.size()];
        const Graph& graph = *graphOf(document, where);
        if (graph.cells.empty()) continue;
        if (random() % 2 == 0 && document.composites.size() < 12) {
            CellNames cells;
            for (int i = 0; i < 3; ++i) cells.insert(graph.cells[random() % graph.cells.size()].name);
            const bool hasRepeat = std::any_of(graph.cells.begin(), graph.cells.end(), [&](const Cell& cell) { return cells.contains(cell.name) && !cell.repeat.empty(); });
            if (hasRepeat) continue;
            grouped += groupCells(document, where, cells, "G").has_value();
        } else {
            (void)ungroupCell(document, where, graph.cells[random() % graph.cells.size()].name);
        }
        const Expansion expansion = expand(document);
        QVERIFY2(expansion.ok(), expansion.ok() ? "" : (expansion.firstError().place + ": " + expansion.firstError().message).c_str());
        QCOMPARE(expansion.model.parameterCount(), expected);
    }
    QVERIFY(grouped > 5);
}

void TestEdits::pastingIntoAnotherDocumentBringsCompositesAndHyperParameters() {
    Document from = chain();
    QVERIFY(groupCells(from, "", {"act", "down"}, "Half"));
    const auto text = copyCells(from, "", {"up", "Half"});
    Document to;
    const auto names = pasteCells(to, "", *text, {10, 20});
    QVERIFY2(names.has_value(), names ? "" : names.error().message.c_str());
    QCOMPARE(to.main.cells.size(), std::size_t(2));
    QCOMPARE(to.main.wires.size(), std::size_t(1));
    QVERIFY(to.composites.contains("Half"));
    QCOMPARE(to.main.hyper.size(), std::size_t(2));
    QCOMPARE(to.main.cells[0].position->x, 10.0);
    QVERIFY(pasteCells(to, "", *text, {}).has_value()); // once more: the same composite, other names
    QCOMPARE(to.composites.size(), std::size_t(1));
    QCOMPARE(to.main.cells[2].name, to.main.cells[0].name + "_2");
}

void TestEdits::pastingRenamesACompositeThatDiffers() {
    Document from = chain(), to = chain();
    QVERIFY(groupCells(from, "", {"act", "down"}, "Half"));
    QVERIFY(groupCells(to, "", {"act"}, "Half"));
    const auto text = copyCells(from, "", {from.main.cells[1].name});
    const auto names = pasteCells(to, "", *text, {});
    QVERIFY(names.has_value());
    QVERIFY(to.composites.contains("Half_2"));
    QCOMPARE(findCell(to.main, names->front())->type, std::string("Half_2"));
    QVERIFY(isSame(to.composites.at("Half_2"), from.composites.at("Half")));
}

void TestEdits::theClipboardIsReadWithCare() {
    Document document = chain();
    const std::string before = toJson(document);
    for (const std::string text : {"", "hello", "{}", "{\"format\": \"celloom-cells\", \"schema\": 1}"}) QVERIFY(!pasteCells(document, "", text, {}));
    QVERIFY(!pasteCells(document, "", R"({"format":"celloom-cells","schema":1,"main":{"cells":[{"name":"a","type":"SiLU"},{"name":"a","type":"SiLU"}]}})", {}));
    QVERIFY(!pasteCells(document, "", R"({"format":"celloom-cells","schema":1,"main":{"cells":[{"name":"a","type":"SiLU"}],"wires":["a.out -> b.x"]}})", {}));
    QCOMPARE(toJson(document), before);
    const auto saidOf = [&](const std::string& text) { return QString::fromStdString(pasteCells(document, "", text, {}).error().text()); };
    QVERIFY(saidOf("hello").contains("holds no cells"));
    QVERIFY(saidOf("{\"format\": \"celloom-cells\", ").contains("cannot be read: is not valid JSON (line 1, column 29)"));
    QVERIFY(saidOf(R"({"format":"celloom-cells","schema":1,"main":{"cells":[{"name":"a"}]}})").contains("cannot be read at main.cells[0]: lacks \"type\""));
}

void TestEdits::aCompositeCannotComeIntoItself() {
    Document document = chain();
    const auto outer = groupCells(document, "", {"up", "act"}, "Outer");
    QVERIFY(groupCells(document, "Outer", {"act"}, "Inner").has_value());
    QVERIFY(!addCell(document, "Inner", "Outer"));
    QVERIFY(!addCell(document, "Outer", "Outer"));
    const auto text = copyCells(document, "", {*outer});
    QVERIFY(!pasteCells(document, "Inner", *text, {}));
    QVERIFY(wouldRecurse(document, "Inner", "Outer") && !wouldRecurse(document, "Outer", "Inner"));
}

void TestEdits::aRenamedHyperParameterIsFollowedByExpressionsAndUsers() {
    Document document = chain();
    QVERIFY(groupCells(document, "", {"up"}, "Up"));
    QVERIFY(changeHyper(document, "Up", "inner", {"wide", std::string("hidden * 4"), ""}));
    const Cell& user = document.main.cells[0];
    QCOMPARE(std::get<std::string>(user.params.at("wide")), std::string("inner"));
    QVERIFY(!user.params.contains("inner"));
    QCOMPARE(std::get<std::string>(document.composites.at("Up").cells[0].params.at("out_channels")), std::string("wide"));
    QCOMPARE(parameters(document), std::int64_t(2 * 8 * 16));
    QVERIFY(changeHyper(document, "", "hidden", {"h", std::int64_t(8), ""}));
    QCOMPARE(std::get<std::string>(document.main.hyper[1].value), std::string("h * 2"));
    QCOMPARE(document.main.inputs[0].shape[2], std::string("h"));
}

void TestEdits::portsOfACompositeAreFollowedByItsUsers() {
    Document document = chain();
    const auto group = groupCells(document, "", {"act"}, "Act");
    QVERIFY(changePort(document, "Act", PortSide::Input, "x", {"features", {}}));
    QCOMPARE(parameters(document), std::int64_t(2 * 8 * 16));
    QVERIFY(removePort(document, "Act", PortSide::Output, "out"));
    QCOMPARE(document.main.wires.size(), std::size_t(3));
    QVERIFY(!removePort(document, "Act", PortSide::Output, "out"));
}

void TestEdits::namesOfNewCellsFollowTheirTypes() {
    Document document;
    for (const auto& [type, name] : {std::pair("Dense", "dense"), std::pair("Dense", "dense_2"), std::pair("RMSNorm", "rms_norm"), std::pair("LMHead", "lm_head"),
                                     std::pair("RotaryEmbedding", "rotary_embedding"), std::pair("SiLU", "silu"), std::pair("ReLU", "relu"), std::pair("GELU", "gelu")})
        QCOMPARE(addCell(document, "", type).value(), std::string(name));
    for (const auto& [composite, name] : {std::pair("LeakyReLU", "leaky_relu"), std::pair("PReLU", "prelu"), std::pair("SwiGLU", "swiglu"), std::pair("SwiGLUBlock", "swiglu_block"),
                                          std::pair("QuickGELU", "quick_gelu"), std::pair("ReLU6", "relu6"), std::pair("My_ReLU", "my_relu"), std::pair("MLPBlock", "mlp_block")}) {
        document.composites[composite] = {};
        QCOMPARE(addCell(document, "", composite).value(), std::string(name));
    }
}

QTEST_GUILESS_MAIN(TestEdits)
#include "tst_edits.moc"
