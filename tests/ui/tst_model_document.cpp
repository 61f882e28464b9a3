// The open model: named steps of undo, saving, and what a crash leaves behind.
#include "models/graph/edits.h"
#include "models/graph/json.h"
#include "ui/editor/open_models.h"

#include <QDir>
#include <QDirIterator>
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

    void unsavedEditsOfAllModelsSurviveACrash() {
        const QTemporaryDir folder;
        const QString recovery = folder.filePath(QStringLiteral("recovery"));
        const auto kept = [&](int count) { // the window's folder, its models' files
            QDirIterator files(recovery, {QStringLiteral("*.cells.json")}, QDir::Files, QDirIterator::Subdirectories);
            int found = 0;
            while (files.hasNext()) found += QFile::exists(files.next().chopped(QStringLiteral(".cells.json").size()) + QStringLiteral(".json"));
            return found == count;
        };
        std::vector<Recovery::Left> left;
        {
            OpenModels killed(recovery);
            killed.current().take(two(), QStringLiteral("/somewhere/two.cells.json"), QStringLiteral("/somewhere/two.cells.json"));
            killed.current().part = {{"hidden=8"}, "base"};
            ModelDocument& other = killed.add();
            other.takeUntitled(two(), 1);
            killed.add().take(two(), QStringLiteral("never edited"));
            QVERIFY(killed.edit(QStringLiteral("x"), renaming("a", "c")));
            QVERIFY(other.edit(QStringLiteral("x"), renaming("b", "d")));
            QTRY_VERIFY(kept(2));
            QVERIFY(OpenModels(recovery).left().empty()); // they belong to a window that lives
            // A killed window leaves its files and no lock: what a copy of the folder is.
            QVERIFY(QDir().rename(recovery, recovery + QStringLiteral("-of-the-killed")));
        }
        QVERIFY(QDir().rename(recovery + QStringLiteral("-of-the-killed"), recovery));
        OpenModels next(recovery);
        left = next.left();
        QCOMPARE(left.size(), std::size_t(2));
        next.current().take(two(), QStringLiteral("/somewhere/two.cells.json"), QStringLiteral("/somewhere/two.cells.json"));
        const auto models = next.bringBack(left);
        QCOMPARE(models.size(), std::size_t(2));
        QCOMPARE(models[0], &next.current()); // on top of what is open: a step that can be undone
        QCOMPARE(models[0]->snapshot()->main.cells[0].name, std::string("c"));
        models[0]->undoStack().undo();
        QCOMPARE(models[0]->snapshot()->main.cells[0].name, std::string("a"));
        models[0]->undoStack().redo();
        QVERIFY(models[1]->isUntitled() && models[1]->isModified());
        QCOMPARE(models[1]->snapshot()->main.cells[1].name, std::string("d"));
        QVERIFY(kept(2)); // until they are saved or given up
        for (ModelDocument* model : models) model->discard();
        QVERIFY(next.onlyHere().empty());
        QTRY_VERIFY(kept(0));
        QVERIFY(OpenModels(recovery).left().empty());
    }

    void whatGoesWithAModelComesBackWithIt() {
        ModelDocument before;
        before.take(two(), QStringLiteral("/m/two"));
        before.part = {{"hidden=8", "layers=2"}, "/m/base"};
        before.place.path = {{"layers", 3}};
        before.folder = QStringLiteral("/m/two");
        ModelDocument after;
        after.takeRecovered(two(), before.about());
        QVERIFY(after.part == before.part);
        QCOMPARE(after.place.path.size(), std::size_t(1));
        QCOMPARE(after.place.path[0].instance, std::int64_t(3));
        QCOMPARE(after.source(), before.source());
        QCOMPARE(after.folder, before.folder);
        QVERIFY(after.isModified());
    }

    void aDamagedRecoveryFileIsNoRecovery() {
        const QTemporaryDir folder;
        QVERIFY(QDir(folder.path()).mkdir(QStringLiteral("window-1")));
        for (const char* name : {"window-1/m.json", "window-1/m.cells.json"}) {
            QFile file(folder.filePath(QLatin1String(name)));
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write("{\"format\": \"cell");
        }
        QVERIFY(OpenModels(folder.path()).left().empty());
    }

    void aFileThatWasChangedOutsideIsNoticed() {
        const QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("m.cells.json"));
        const auto writeOutside = [&](const graph::Document& document, const char* space) {
            QFile file(path);
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write(QByteArray::fromStdString(graph::toJson(document)) + space);
        };
        ModelDocument model;
        model.take(two(), QStringLiteral("two"));
        QCOMPARE(model.onDisk(), OnDisk::Same); // no file of its own
        QVERIFY(model.save(path));
        QCOMPARE(model.onDisk(), OnDisk::Same);
        writeOutside(*model.snapshot(), "\n\n"); // other bytes, the same model
        QCOMPARE(model.onDisk(), OnDisk::Same);
        graph::Document other = two();
        other.main.note = "somebody else's";
        writeOutside(other, "");
        QCOMPARE(model.onDisk(), OnDisk::Changed);
        const QJsonObject about = model.about();
        model.takeChanged(*graph::loadDocument(path.toStdString()));
        QCOMPARE(model.onDisk(), OnDisk::Same);
        QVERIFY(!model.isModified());
        QCOMPARE(model.undoStack().undoText(), QStringLiteral("Read the file again"));
        model.undoStack().undo();
        QVERIFY(model.snapshot()->main.note.empty() && model.isModified());

        ModelDocument recovered; // its edits were made to what the file held before
        recovered.takeRecovered(two(), about);
        QCOMPARE(recovered.onDisk(), OnDisk::Changed);
        ModelDocument onTop;
        onTop.take(other, path, path);
        QCOMPARE(onTop.onDisk(), OnDisk::Same);
        onTop.restore(two(), about);
        QCOMPARE(onTop.onDisk(), OnDisk::Changed);
        QVERIFY(onTop.save(path));
        QCOMPARE(onTop.onDisk(), OnDisk::Same);

        QVERIFY(!onTop.isOnlyHere());
        QVERIFY(QFile::remove(path));
        QCOMPARE(onTop.onDisk(), OnDisk::Gone);
        QVERIFY(onTop.isOnlyHere());
        onTop.discard(); // its loss was agreed to
        QVERIFY(!onTop.isOnlyHere());
    }

    void aSourceMeansTheSameHoweverItIsWritten() {
        const QTemporaryDir folder;
        QVERIFY(QDir(folder.path()).mkdir(QStringLiteral("m")));
        QFile config(folder.filePath(QStringLiteral("m/config.json")));
        QVERIFY(config.open(QIODevice::WriteOnly));
        QCOMPARE(identityOf(config.fileName()), identityOf(folder.filePath(QStringLiteral("m"))));
        QCOMPARE(identityOf(folder.filePath(QStringLiteral("m/../m/"))), identityOf(folder.filePath(QStringLiteral("m"))));
        QCOMPARE(identityOf(QStringLiteral("baichuan-7b")), QStringLiteral("baichuan-7b"));
    }

    void theOneBesideAClosedModelComesToTheFront() {
        OpenModels models;
        models.current().take(two(), QStringLiteral("1"));
        for (const char* name : {"2", "3"}) models.add().take(two(), QLatin1String(name));
        models.setCurrent(models.at(1));
        models.remove(models.at(1));
        QCOMPARE(models.source(), QStringLiteral("3"));
        models.move(1, 0);
        QCOMPARE(models.at(0).source(), QStringLiteral("3"));
        models.remove(models.at(0));
        QCOMPARE(models.source(), QStringLiteral("1"));
        models.remove(models.at(0));
        QCOMPARE(models.count(), 1); // there always is one
        QVERIFY(!models.snapshot());
    }
};

QTEST_MAIN(TestModelDocument)
#include "tst_model_document.moc"
