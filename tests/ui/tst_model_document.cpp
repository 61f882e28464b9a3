// The open model: named steps of undo, saving, and what a crash leaves behind.
#include "models/graph/edits.h"
#include "models/graph/json.h"
#include "ui/editor/model_document.h"

#include <QDir>
#include <QFile>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

using namespace celloom;
using namespace celloom::ui;

namespace {

graph::Document two() {
    graph::Document out;
    out.main.name = "two";
    out.main.cells = {{"a", "SiLU", {}, "", "", {}}, {"b", "SiLU", {}, "", "", {}}};
    out.main.wires = {{{"a", "out"}, {"b", "x"}}};
    return out;
}

std::function<Status(graph::Document&)> renaming(const std::string& from, const std::string& to) {
    return [=](graph::Document& document) { return graph::renameCell(document, "", from, to); };
}

} // namespace

class TestModelDocument : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void anEditIsOneNamedStep() {
        ModelDocument model;
        QVERIFY(!model.edit(QStringLiteral("nothing"), renaming("a", "c")));
        model.take(two(), QStringLiteral("two"));
        QSignalSpy changed(&model, &ModelDocument::changed);
        const DocumentPtr before = model.snapshot();
        QVERIFY(model.edit(QStringLiteral("Rename a"), renaming("a", "first")));
        QCOMPARE(changed.count(), 1);
        QVERIFY(model.isModified());
        QCOMPARE(model.undoStack().undoText(), QStringLiteral("Rename a"));
        QCOMPARE(before->main.cells[0].name, std::string("a")); // a snapshot never changes
        model.undoStack().undo();
        QCOMPARE(graph::toJson(*model.snapshot()), graph::toJson(*before));
        QVERIFY(!model.isModified());
        model.undoStack().redo();
        QCOMPARE(model.snapshot()->main.wires[0].from.cell, std::string("first"));
    }

    void aRefusedEditAndOneThatChangesNothingLeaveNoStep() {
        ModelDocument model;
        model.take(two(), QStringLiteral("two"));
        const Status status = model.edit(QStringLiteral("x"), renaming("a", "b"));
        QVERIFY(!status && QString::fromStdString(status.error().message).contains(QLatin1String("named b")));
        QVERIFY(model.edit(QStringLiteral("x"), renaming("a", "a")));
        QCOMPARE(model.undoStack().count(), 0);
    }

    void editsOfOneGestureAreOneStep() {
        ModelDocument model;
        model.take(two(), QStringLiteral("two"));
        for (const char* name : {"c", "cd", "cde"}) QVERIFY(model.edit(QStringLiteral("type"), renaming(model.snapshot()->main.cells[0].name, name), 7));
        QCOMPARE(model.undoStack().count(), 1);
        model.undoStack().undo();
        QCOMPARE(model.snapshot()->main.cells[0].name, std::string("a"));
        model.undoStack().redo();
        QCOMPARE(model.snapshot()->main.cells[0].name, std::string("cde"));
        QVERIFY(model.edit(QStringLiteral("type"), renaming("cde", "a"), 7)); // back where it began: no step at all
        QCOMPARE(model.undoStack().count(), 0);
    }

    void savingWritesTheFileAndUndoGoesOnBehindIt() {
        const QTemporaryDir folder;
        ModelDocument model;
        model.take(two(), QStringLiteral("two"));
        QVERIFY(model.edit(QStringLiteral("x"), renaming("a", "c")));
        const QString path = folder.filePath(QStringLiteral("m.cells.json"));
        QVERIFY(model.save(path));
        QVERIFY(!model.isModified());
        QCOMPARE(model.source(), path);
        QCOMPARE(graph::loadDocument(path.toStdString())->main.cells[0].name, std::string("c"));
        model.undoStack().undo();
        QVERIFY(model.isModified());
        QVERIFY(!model.save(folder.filePath(QStringLiteral("nowhere/m.cells.json"))));
        QVERIFY(model.isModified());
    }

    void unsavedEditsSurviveACrash() {
        const QTemporaryDir folder;
        const QString recovery = folder.filePath(QStringLiteral("recovery"));
        {
            ModelDocument model(recovery);
            QVERIFY(!model.recovered());
            model.take(two(), QStringLiteral("two"));
            QVERIFY(model.edit(QStringLiteral("x"), renaming("a", "c")));
            QTRY_VERIFY(QFile::exists(recovery + QStringLiteral("/model.json"))); // and then the window is killed
        }
        ModelDocument next(recovery);
        const auto found = next.recovered();
        QVERIFY(found.has_value());
        QCOMPARE(found->source, QStringLiteral("two"));
        next.take(two(), QStringLiteral("two"));
        next.restore(found->document);
        QCOMPARE(next.snapshot()->main.cells[0].name, std::string("c"));
        QVERIFY(next.isModified());
        next.undoStack().undo();
        QCOMPARE(next.snapshot()->main.cells[0].name, std::string("a"));
        next.discard();
        QVERIFY(!QFile::exists(recovery + QStringLiteral("/model.json")));
        QVERIFY(!ModelDocument(recovery).recovered());
    }

    void aDamagedRecoveryFileIsNoRecovery() {
        const QTemporaryDir folder;
        for (const char* name : {"model.json", "model.cells.json"}) {
            QFile file(folder.filePath(QLatin1String(name)));
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write("{\"format\": \"cell");
        }
        QVERIFY(!ModelDocument(folder.path()).recovered());
    }
};

QTEST_MAIN(TestModelDocument)
#include "tst_model_document.moc"
