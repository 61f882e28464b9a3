// The verbs library and new as a user runs them: one composite saved in one document, used in another, and brought up to date there.
#include "models/base/files.h"
#include "models/graph/expand.h"
#include "models/graph/json.h"
#include "models/protocol/protocol.h"
#include "tests/app/verb_helper.h"

#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QTest>
#include <nlohmann/json.hpp>

using namespace celloom;
using namespace celloom::app::testing;
using nlohmann::json;

namespace {

/// x [B, T, 8] -> block -> y, block a composite of a Dense and `act`
std::string documentWith(const std::string& act, const std::string& dimName = "dim") {
    return R"({"format": "celloom-cells", "schema": 1, "main": {"inputs": [{"name": "x", "shape": ["B", "T", 8]}], "outputs": [{"name": "y", "shape": ["B", "T", 8]}],
        "cells": [{"name": "block", "type": "Mine", "params": {")" +
           dimName + R"(": 8}}], "wires": ["x -> block.x", "block.out -> y"]},
        "composites": {"Mine": {"note": "A block of mine.", "hyper": [{"name": ")" +
           dimName + R"(", "value": 4}], "inputs": [{"name": "x", "shape": ["B", "T", ")" + dimName + R"("]}],
        "outputs": [{"name": "out", "shape": ["B", "T", ")" +
           dimName + R"("]}], "cells": [{"name": "dense", "type": "Dense", "params": {"in_channels": ")" + dimName + R"(", "out_channels": ")" + dimName + R"("}},
        {"name": "act", "type": ")" +
           act + R"("}], "wires": ["x -> dense.x", "dense.out -> act.x", "act.out -> out"]}}})";
}

} // namespace

class TestLibraryVerbs : public QObject {
    Q_OBJECT
    std::unique_ptr<QTemporaryDir> m_folder;

    QString path(const char* name) const { return m_folder->filePath(name); }
    void write(const char* name, const std::string& text) const { QVERIFY(writeFileAtomically(path(name).toStdString(), text).has_value()); }
    Outcome run(QStringList arguments) const { return runEngine(QStringList{"--workspace", path("workspace")} + arguments); }
    json ask(QStringList arguments) const {
        const Outcome outcome = run(QStringList{"--json"} + arguments);
        return json::parse(outcome.out, nullptr, false);
    }

private Q_SLOTS:
    void init() { m_folder = std::make_unique<QTemporaryDir>(); }

    void listShowsTheStandardLibraryByCategory() {
        const Outcome outcome = run({"library", "list"});
        QCOMPARE(outcome.code, 0);
        QVERIFY2(outcome.out.find("MultiHeadAttention") != std::string::npos && outcome.out.find("Transformer\n") != std::string::npos, outcome.out.c_str());
        const json entries = ask({"library", "list"})["entries"];
        QVERIFY(std::any_of(entries.begin(), entries.end(), [](const json& entry) { return entry["name"] == "TransformerBlock" && entry["library"] == "celloom"; }));
    }

    void showTellsHyperParametersPortsAndParameters() {
        const Outcome outcome = run({"library", "show", "MultiHeadAttention"});
        QCOMPARE(outcome.code, 0);
        for (const char* part : {"num_kv_heads", "query", "[B, T, d_model]", "1050624 parameters"}) // 4 · (512 · 512 + 512)
            QVERIFY2(outcome.out.find(part) != std::string::npos, part);
        const Outcome wrong = run({"library", "show", "MultiheadAttention"});
        QCOMPARE(wrong.code, int(protocol::BadInput));
        QVERIFY2(wrong.err.find("Did you mean MultiHeadAttention") != std::string::npos, wrong.err.c_str());
    }

    void aCompositeIsSavedUsedElsewhereAndUpdatedThere() {
        write("one.cells.json", documentWith("SiLU"));
        QVERIFY(ask({"library", "save", path("one.cells.json"), "--composite", "Mine", "--link"})["origin"]["version"] == json(1));
        QVERIFY(ask({"library", "check", path("one.cells.json")})["composites"][0]["state"] == json("same"));
        QCOMPARE(run({"new", "multi-task", "--out", path("two.cells.json")}).code, 0);
        QVERIFY(ask({"library", "add", path("two.cells.json"), "Mine"})["added"] == json({"Mine"}));
        QVERIFY(ask({"library", "add", path("two.cells.json"), "Mine"})["added"] == json::array());
        write("one.cells.json", documentWith("Tanh"));
        QVERIFY(ask({"library", "save", path("one.cells.json"), "--composite", "Mine"})["origin"]["version"] == json(2));
        QVERIFY(ask({"library", "show", "Mine"})["versions"] == json({1, 2}));
        json rows = ask({"library", "check", path("two.cells.json")})["composites"];
        QVERIFY(std::any_of(rows.begin(), rows.end(), [](const json& row) { return row["composite"] == "Mine" && row["state"] == "newer" && row["newest"] == 2; }));
        const json report = ask({"library", "update", path("two.cells.json"), "--out", path("three.cells.json")});
        QCOMPARE(report["updated"].size(), std::size_t(1));
        QVERIFY(report["refused"].empty());
        const auto before = graph::loadDocument(path("two.cells.json").toStdString()), after = graph::loadDocument(path("three.cells.json").toStdString());
        QVERIFY(before && after);
        QCOMPARE(before->composites.at("Mine").cells[1].type, std::string("SiLU"));
        QCOMPARE(after->composites.at("Mine").cells[1].type, std::string("Tanh"));
    }

    void whatWouldBreakIsRefusedAndNothingWritten() {
        write("one.cells.json", documentWith("SiLU"));
        QCOMPARE(run({"library", "save", path("one.cells.json"), "--composite", "Mine", "--link"}).code, 0);
        write("changed.cells.json", documentWith("SiLU", "size"));
        QCOMPARE(run({"library", "save", path("changed.cells.json"), "--composite", "Mine"}).code, 0);
        const std::string before = *readFile(path("one.cells.json").toStdString());
        const Outcome outcome = run({"library", "update", path("one.cells.json")});
        QCOMPARE(outcome.code, int(protocol::BadInput));
        QVERIFY2(outcome.err.find("block: sets the hyper-parameter dim") != std::string::npos, outcome.err.c_str());
        QCOMPARE(*readFile(path("one.cells.json").toStdString()), before);
    }

    void aDamagedEntryIsToldBesideTheOthers() {
        QVERIFY(QDir().mkpath(path("workspace/library")));
        write("workspace/library/Broken.cells.json", "{");
        const Outcome outcome = run({"library", "list"});
        QCOMPARE(outcome.code, 0);
        QVERIFY2(outcome.err.find("Broken.cells.json cannot be used") != std::string::npos, outcome.err.c_str());
        QVERIFY(outcome.out.find("FeedForward") != std::string::npos);
        QCOMPARE(run({"library", "show", "Broken"}).code, int(protocol::BadInput));
        QCOMPARE(run({"library", "remove", "Broken"}).code, 0);
        QVERIFY(run({"library", "list"}).err.empty());
    }

    void newWritesATemplateInTheSizesAskedFor() {
        const Outcome listed = run({"new"});
        QVERIFY(listed.out.find("transformer-lm") != std::string::npos && listed.out.find("baichuan-tiny") != std::string::npos);
        QCOMPARE(run({"new", "transformer-lm", "--set", "d_model=64", "--set", "layers=2", "--out", path("lm.cells.json")}).code, 0);
        const auto document = graph::loadDocument(path("lm.cells.json").toStdString());
        QVERIFY(document);
        // embedding and head 4096 · 64 each; a block 4 · (64² + 64) + (64 · 256 + 256) + (256 · 64 + 64) + 2 norms of 2 · 64
        QCOMPARE(graph::expand(*document).model.parameterCount(), std::int64_t(2 * 4096 * 64 + 2 * (4 * (64 * 64 + 64) + 2 * 64 * 256 + 256 + 64 + 4 * 64)));
        const Outcome wrong = run({"new", "transformer-lm", "--set", "d_model=65", "--out", path("wrong.cells.json")});
        QCOMPARE(wrong.code, int(protocol::BadInput));
        QVERIFY2(wrong.err.find("blocks.0.attention.attention") != std::string::npos, wrong.err.c_str());
        QVERIFY(!QFile::exists(path("wrong.cells.json")));
        const Outcome unknown = run({"new", "transformer-ml", "--out", path("wrong.cells.json")});
        QVERIFY2(unknown.err.find("Did you mean transformer-lm") != std::string::npos, unknown.err.c_str());
    }
};

QTEST_GUILESS_MAIN(TestLibraryVerbs)
#include "tst_library_verbs.moc"
