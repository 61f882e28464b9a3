// The user's own composites: saved, versioned, used in other documents and brought up to date there.
#include "models/base/files.h"
#include "models/graph/expand.h"
#include "models/graph/json.h"
#include "models/library/standard.h"
#include "models/library/update.h"

#include <QTemporaryDir>
#include <QTest>
#include <atomic>
#include <set>
#include <thread>

using namespace celloom;
using namespace celloom::library;
using graph::Document;

namespace {

namespace fs = std::filesystem;

template <class T> T must(Result<T> result) {
    if (!result) qFatal("%s", result.error().text().c_str());
    return std::move(*result);
}
void must(const Status& status) {
    if (!status) qFatal("%s", status.error().text().c_str());
}

graph::Endpoint end(const std::string& path) {
    const auto dot = path.find('.');
    return dot == std::string::npos ? graph::Endpoint{"", path} : graph::Endpoint{path.substr(0, dot), path.substr(dot + 1)};
}
graph::Wire wire(const std::string& from, const std::string& to) {
    return {end(from), end(to)};
}

/// x [B, T, dim] -> two of `type` in a row, the composite's ports in and out
Document using_(const std::string& type) {
    Document out;
    out.main.inputs = {{"x", {"B", "T", "8"}}};
    out.main.outputs = {{"y", {"B", "T", "8"}}};
    out.main.cells = {{"first", type, {{"dim", std::int64_t(8)}}, {}, {}, {}}, {"second", type, {{"dim", std::int64_t(8)}}, {}, {}, {}}};
    out.main.wires = {wire("x", "first.x"), wire("first.out", "second.x"), wire("second.out", "y")};
    return out;
}

/// Gate: x [B, T, dim] -> Dense -> Sigmoid -> out
graph::Graph gate() {
    graph::Graph out;
    out.note = "A gate.";
    out.hyper = {{"dim", std::int64_t(4), "Size"}, {"biased", false, "Bias"}};
    out.inputs = {{"x", {"B", "T", "dim"}}};
    out.outputs = {{"out", {"B", "T", "dim"}}};
    out.cells = {{"dense", "Dense", {{"in_channels", std::string("dim")}, {"out_channels", std::string("dim")}, {"has_bias", std::string("biased")}}, {}, {}, {}},
                 {"sigmoid", "Sigmoid", {}, {}, {}, {}}};
    out.wires = {wire("x", "dense.x"), wire("dense.out", "sigmoid.x"), wire("sigmoid.out", "out")};
    return out;
}

Document withGate() {
    Document out = using_("Gate");
    out.composites["Gate"] = gate();
    return out;
}

CopyState stateOf(const Document& document, const std::string& composite, const WorkspaceLibrary& library) {
    for (const CopyStatus& status : compare(document, &library))
        if (status.composite == composite) return status.state;
    qFatal("%s has no origin", composite.c_str());
    return {};
}

QString textOf(const std::vector<Change>& changes) {
    QStringList out;
    for (const Change& change : changes) out << QString::fromStdString(toText(change));
    return out.join("; ");
}

} // namespace

class TestWorkspaceLibrary : public QObject {
    Q_OBJECT
    std::unique_ptr<QTemporaryDir> m_dir;
    std::unique_ptr<WorkspaceLibrary> m_library;

    /// A document that has version 1 of Gate; the library then has a version 2, made by `change`.
    template <class Change> Document withOlderGate(Change change) {
        must(m_library->save(withGate(), "Gate"));
        Document user = using_("Gate");
        must(copyInto(user, must(m_library->load("Gate"))));
        Document edited = withGate();
        change(edited.composites.at("Gate"));
        must(m_library->save(edited, "Gate"));
        return user;
    }

private Q_SLOTS:
    void init() {
        m_dir = std::make_unique<QTemporaryDir>();
        m_library = std::make_unique<WorkspaceLibrary>(fs::path(m_dir->path().toStdString()));
    }

    void aLibraryThatIsNotThereIsEmptyAndStaysSo() {
        QVERIFY(m_library->list().entries.empty() && m_library->list().damaged.empty());
        QVERIFY(!m_library->load("Gate"));
        QVERIFY(!fs::exists(m_library->folder()));
    }

    void anEntryIsUsedInAnotherDocument() {
        const Saved saved = must(m_library->save(withGate(), "Gate"));
        QVERIFY((saved.origin == graph::Origin{"workspace", "Gate", 1}) && saved.isNewVersion && saved.problems.empty());
        Document other = using_("Gate");
        QCOMPARE(must(copyInto(other, must(m_library->load("Gate")))).type, std::string("Gate"));
        const graph::Expansion expansion = graph::expand(other);
        QVERIFY2(expansion.ok(), expansion.firstError().text().c_str());
        QCOMPARE(expansion.model.parameterCount(), std::int64_t(2 * 8 * 8));
        QCOMPARE(stateOf(other, "Gate", *m_library), CopyState::Same);
        const Listing listing = m_library->list();
        QCOMPARE(listing.entries.size(), std::size_t(1));
        QCOMPARE(listing.entries[0].summary(), std::string("A gate."));
    }

    void anEntryIsADocumentThatOpensByItself() {
        must(m_library->save(withGate(), "Gate"));
        const Document document = must(graph::loadDocument(m_library->folder() / "Gate.cells.json"));
        QVERIFY(graph::expand(document).ok());
    }

    void savingAgainMakesAVersionOnlyWhereSomethingChanged() {
        Document document = withGate();
        must(m_library->save(document, "Gate"));
        document.composites.at("Gate").cells[0].position = graph::Position{1, 2};
        const Saved moved = must(m_library->save(document, "Gate"));
        QVERIFY(!moved.isNewVersion);
        QCOMPARE(moved.origin.version, std::int64_t(1));
        QVERIFY(must(m_library->load("Gate")).document.main.cells[0].position.has_value()); // but the newest has the new places
        document.composites.at("Gate").cells[1].type = "Tanh";
        QCOMPARE(must(m_library->save(document, "Gate")).origin.version, std::int64_t(2));
        QCOMPARE(m_library->versions("Gate"), (std::vector<std::int64_t>{1, 2}));
        QCOMPARE(must(m_library->load("Gate", 1)).document.main.cells[1].type, std::string("Sigmoid"));
        QCOMPARE(must(m_library->load("Gate")).document.main.cells[1].type, std::string("Tanh"));
        QVERIFY(fs::exists(m_library->folder() / "Gate@1.cells.json"));
    }

    void innerCompositesComeAlong() {
        Document document = using_("Outer");
        must(copyInto(document, "TransformerBlock"));
        graph::Graph outer = gate();
        outer.cells[1] = {"block", "TransformerBlock", {{"d_model", std::string("dim")}, {"num_heads", std::int64_t(2)}}, {}, {}, {}};
        outer.wires = {wire("x", "dense.x"), wire("dense.out", "block.x"), wire("block.out", "out")};
        document.composites["Outer"] = outer;
        must(m_library->save(document, "Outer"));
        Document other = using_("Outer");
        must(copyInto(other, must(m_library->load("Outer"))));
        QCOMPARE(other.composites.size(), std::size_t(5));
        QVERIFY(graph::expand(other).ok());
        for (const CopyStatus& status : compare(other, m_library.get())) {
            QCOMPARE(status.state, CopyState::Same);
            QCOMPARE(status.isInsideOthers, status.composite != "Outer");
        }
    }

    void whatCannotBeAnEntryIsRefused_data() {
        QTest::addColumn<QString>("composite");
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("words");
        QTest::newRow("no such composite") << "Gat" << "" << "Did you mean Gate";
        QTest::newRow("a path") << "Gate" << "../Gate" << "Names are letters";
        QTest::newRow("a version") << "Gate" << "Gate@2" << "Names are letters";
        QTest::newRow("a type of the catalogue") << "Gate" << "Dense" << "Choose another name";
        QTest::newRow("a name of the standard library") << "Gate" << "SwiGLU" << "Choose another name";
        QTest::newRow("unknown type inside") << "Strange" << "" << "There is no cell type";
        QTest::newRow("recursive") << "A" << "" << "A -> B -> A";
    }
    void whatCannotBeAnEntryIsRefused() {
        QFETCH(QString, composite);
        QFETCH(QString, name);
        QFETCH(QString, words);
        Document document = withGate();
        document.composites["Strange"].cells = {{"c", "Nothing", {}, {}, {}, {}}};
        document.composites["A"].cells = {{"b", "B", {}, {}, {}, {}}};
        document.composites["B"].cells = {{"a", "A", {}, {}, {}, {}}};
        if (name == "SwiGLU" && !findStandard("SwiGLU")) name = "FeedForward";
        const auto saved = m_library->save(document, composite.toStdString(), name.toStdString());
        QVERIFY(!saved);
        QVERIFY2(QString::fromStdString(saved.error().text()).contains(words), saved.error().text().c_str());
        QVERIFY(!fs::exists(m_library->folder()));
    }

    /// Gate version 2 would hold Outer, which holds Gate version 1: each save would add a level.
    void anEntryThatContainsItselfThroughAnotherIsRefused() {
        must(m_library->save(withGate(), "Gate"));
        Document document;
        must(copyInto(document, must(m_library->load("Gate"))));
        document.composites["Outer"] = gate();
        document.composites["Outer"].cells[1] = {"sigmoid", "Gate", {{"dim", std::string("dim")}}, {}, {}, {}};
        must(m_library->save(document, "Outer"));
        Document circle;
        must(copyInto(circle, must(m_library->load("Outer"))));
        circle.composites["New"] = gate();
        circle.composites["New"].cells[1] = {"sigmoid", "Outer", {{"dim", std::string("dim")}}, {}, {}, {}};
        const auto saved = m_library->save(circle, "New", "Gate");
        QVERIFY(!saved);
        QVERIFY2(saved.error().message.find("contain itself") != std::string::npos, saved.error().text().c_str());
        QCOMPARE(m_library->versions("Gate").size(), std::size_t(1));
    }

    void damagedEntriesAreReportedBesideTheOthers() {
        must(m_library->save(withGate(), "Gate"));
        must(writeFileAtomically(m_library->folder() / "Broken.cells.json", "{\"format\": \"celloom-cells\""));
        must(writeFileAtomically(m_library->folder() / "Circle.cells.json",
                                 R"({"format": "celloom-cells", "schema": 1, "main": {"cells": [{"name": "a", "type": "A"}]},
                                     "composites": {"A": {"cells": [{"name": "a", "type": "A"}]}}})"));
        must(writeFileAtomically(m_library->folder() / "notes.txt", "mine"));
        const Listing listing = m_library->list();
        QCOMPARE(listing.entries.size(), std::size_t(1));
        QCOMPARE(listing.damaged.size(), std::size_t(2));
        for (const DamagedEntry& damaged : listing.damaged) QVERIFY(!damaged.error.message.empty());
        Document document = withGate();
        const auto saved = m_library->save(document, "Gate", "Broken"); // what may be mended by hand is not written over
        QVERIFY(!saved);
        QVERIFY(m_library->load("Gate").has_value());
    }

    void aFilePutThereByHandFollowsTheNumberedOnes() {
        must(m_library->save(withGate(), "Gate"));
        Document edited = withGate();
        edited.composites.at("Gate").cells[1].type = "Tanh";
        must(m_library->save(edited, "Gate"));
        fs::copy_file(m_library->folder() / "Gate@1.cells.json", m_library->folder() / "Gate.cells.json", fs::copy_options::overwrite_existing);
        QCOMPARE(must(m_library->load("Gate")).version, std::int64_t(1)); // the same text as version 1, which is all there is
        edited.composites.at("Gate").cells[1].type = "ReLU";
        QCOMPARE(must(m_library->save(edited, "Gate")).origin.version, std::int64_t(2));
    }

    void manyThatSaveAtOnceLoseNoVersion() {
        std::vector<std::thread> threads;
        std::atomic<int> saved = 0;
        for (int i = 0; i < 8; ++i)
            threads.emplace_back([&, i] {
                Document document = withGate();
                document.composites.at("Gate").note = std::to_string(i);
                while (!m_library->save(document, "Gate")) std::this_thread::yield();
                ++saved;
            });
        for (std::thread& thread : threads) thread.join();
        QCOMPARE(saved.load(), 8);
        std::set<std::string> notes;
        for (const std::int64_t version : m_library->versions("Gate")) notes.insert(must(m_library->load("Gate", version)).document.main.note);
        QCOMPARE(notes.size(), std::size_t(8));
    }

    void removingDeletesAllVersions() {
        withOlderGate([](graph::Graph& changed) { changed.note = "newer"; });
        must(m_library->remove("Gate"));
        QVERIFY(m_library->list().entries.empty());
        QVERIFY(!m_library->remove("Gate"));
    }

    // ---- compare and update ----

    void statesAreTold() {
        Document user = withOlderGate([](graph::Graph& changed) { changed.cells[1].type = "Tanh"; });
        QCOMPARE(stateOf(user, "Gate", *m_library), CopyState::Newer);
        user.composites.at("Gate").hyper[0].value = std::int64_t(16);
        QCOMPARE(stateOf(user, "Gate", *m_library), CopyState::EditedAndNewer);
        Document fresh = using_("Gate");
        must(copyInto(fresh, must(m_library->load("Gate"))));
        QCOMPARE(stateOf(fresh, "Gate", *m_library), CopyState::Same);
        fresh.composites.at("Gate").cells[1].type = "ReLU";
        QCOMPARE(stateOf(fresh, "Gate", *m_library), CopyState::Edited);
        must(m_library->remove("Gate"));
        QCOMPARE(stateOf(fresh, "Gate", *m_library), CopyState::Gone);
    }

    void anUpdateReplacesTheCopyAndKeepsNameAndPlaces() {
        Document user = withOlderGate([](graph::Graph& changed) { changed.cells[1].type = "Tanh"; });
        user.composites.at("Gate").cells[0].position = graph::Position{5, 6};
        const UpdateReport report = must(update(user, m_library.get()));
        QCOMPARE(report.updated.size(), std::size_t(1));
        QVERIFY(report.refused.empty());
        QCOMPARE(textOf(report.updated[0].changes), QString("its inside changed"));
        QCOMPARE(user.composites.size(), std::size_t(1));
        const graph::Graph& now = user.composites.at("Gate");
        QCOMPARE(now.cells[1].type, std::string("Tanh"));
        QVERIFY(now.cells[0].position && now.cells[0].position->y == 6);
        QCOMPARE(now.origin->version, std::int64_t(2));
        QVERIFY(graph::expand(user).ok());
        QVERIFY(must(update(user, m_library.get())).updated.empty());
    }

    void aNewHyperParameterIsNoObstacle() {
        Document user = withOlderGate([](graph::Graph& changed) { changed.hyper.push_back({"slope", 0.5, "New"}); });
        const UpdateReport report = must(update(user, m_library.get()));
        QCOMPARE(textOf(report.updated.at(0).changes), QString("the hyper-parameter slope is new (0.5)"));
    }

    void whatWouldBreakIsRefusedWithItsPlace_data() {
        QTest::addColumn<int>("what");
        QTest::addColumn<QString>("path");
        QTest::addColumn<QString>("words");
        QTest::newRow("parameter gone") << 0 << "first" << "sets the hyper-parameter dim";
        QTest::newRow("port gone") << 1 << "first" << "wire at the output out";
        QTest::newRow("input new") << 2 << "first" << "no wire for the input mask";
        QTest::newRow("shape") << 3 << "second" << "x is [B, T, 16]";
        QTest::newRow("type of a port") << 4 << "first" << "which is int64";
    }
    void whatWouldBreakIsRefusedWithItsPlace() {
        QFETCH(int, what);
        QFETCH(QString, path);
        QFETCH(QString, words);
        Document user = withOlderGate([&](graph::Graph& g) {
            if (what == 0) {
                g.hyper[0].name = "size";
                g.inputs[0].shape[2] = g.outputs[0].shape[2] = "size";
                g.cells[0].params["in_channels"] = g.cells[0].params["out_channels"] = std::string("size");
            }
            if (what == 1) {
                g.outputs[0].name = "result";
                g.wires[2] = wire("sigmoid.out", "result");
            }
            if (what == 2) g.inputs.push_back({"mask", {"B", "T"}, "bool"});
            if (what == 3) {
                g.cells[0].params["out_channels"] = std::string("2 * dim");
                g.outputs[0].shape[2] = "2 * dim";
            }
            if (what == 4) g.inputs[0].dtype = "int64";
        });
        const std::string before = graph::toJson(user);
        const UpdateReport report = must(update(user, m_library.get()));
        QVERIFY(report.updated.empty());
        QCOMPARE(report.refused.size(), std::size_t(1));
        const graph::Problem& problem = report.refused[0].problems.at(0);
        QCOMPARE(QString::fromStdString(problem.path), path);
        QVERIFY2(QString::fromStdString(problem.message).contains(words), problem.message.c_str());
        QVERIFY(!problem.hint.empty());
        QCOMPARE(graph::toJson(user), before);
    }

    void anEditedCopyIsReplacedOnDemandAlone() {
        Document user = withOlderGate([](graph::Graph& changed) { changed.cells[1].type = "Tanh"; });
        user.composites.at("Gate").note = "mine";
        QVERIFY(must(update(user, m_library.get())).updated.empty());
        QVERIFY(!update(user, m_library.get(), {.composites = {"Gate"}}));
        QCOMPARE(must(update(user, m_library.get(), {.composites = {"Gate"}, .replacesEdited = true})).updated.size(), std::size_t(1));
        QCOMPARE(user.composites.at("Gate").note, std::string("A gate."));
        QCOMPARE(user.composites.size(), std::size_t(1));
    }

    /// Outer version 1 was made with Gate version 1: where Outer stays, so does the Gate inside it, while the user's own cell gets the newer one.
    void aCopyInsideAnotherEntryStaysWithIt() {
        must(m_library->save(withGate(), "Gate"));
        Document maker;
        must(copyInto(maker, must(m_library->load("Gate"))));
        maker.composites["Outer"] = gate();
        maker.composites["Outer"].cells[1] = {"sigmoid", "Gate", {{"dim", std::string("dim")}}, {}, {}, {}};
        maker.composites["Outer"].wires = {wire("x", "dense.x"), wire("dense.out", "sigmoid.x"), wire("sigmoid.out", "out")};
        must(m_library->save(maker, "Outer"));
        Document user = using_("Gate");
        user.main.cells[0].type = must(copyInto(user, must(m_library->load("Outer")))).type;
        Document edited = withGate();
        edited.composites.at("Gate").cells[1].type = "Tanh";
        must(m_library->save(edited, "Gate"));
        QCOMPARE(must(update(user, m_library.get())).updated.size(), std::size_t(1));
        QCOMPARE(stateOf(user, "Outer", *m_library), CopyState::Same);
        const std::string inner = user.composites.at("Outer").cells[1].type, own = user.main.cells[1].type;
        QCOMPARE(user.composites.at(inner).cells[1].type, std::string("Sigmoid"));
        QCOMPARE(user.composites.at(own).cells[1].type, std::string("Tanh"));
        QVERIFY(graph::expand(user).ok());
    }
};

QTEST_GUILESS_MAIN(TestWorkspaceLibrary)
#include "tst_workspace_library.moc"
