// The preview of the first batch: what the engine answers is read, shown token by token, and what it refuses is said where it was asked.
#include "ui/common/engine_job.h"
#include "ui/common/folder_copy.h"
#include "ui/common/recipe_document.h"
#include "ui/common/theme.h"
#include "ui/train/batch_preview.h"
#include "ui/train/preview_data.h"
#include "ui/train/token_view.h"

#include <QApplication>
#include <QFile>
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

using namespace celloom;
using namespace celloom::ui;

namespace {

/// Two conversations in one row: "你好" is asked, "好" and the end are learned; then "a" and its answer "b".
const char* kAnswer = R"({"files": [{"path": "/data/who.jsonl", "bytes": 2048, "encoding": "utf-8", "format": "alpaca"}],
 "sequences": 9, "held_out_sequences": 1, "sequence_length": 16, "tokenizer": {"vocabulary": 4096, "trained": false},
 "template": {"name": "internlm", "label": "InternLM", "source": "the base", "fallbacks": ["It has no <eoa>."]},
 "samples": {"conversations": 12, "truncated": 2, "dropped": 1, "untrainable": 1, "sequences": 9, "tokens": 70, "trainable": 20, "longest": 15,
             "lengths": [{"up_to": 8, "count": 5}, {"up_to": 16, "count": 7}]},
 "batch": {"length": 8, "learned": 3, "rows": [{"ids": [1, 50, 51, 2, 60, 61], "pieces": ["<s>", "\u2581\u4f60", "\u597d", "</s>", "a", "b"],
   "special": [true, false, false, true, false, false], "labels": [-100, -100, 51, 2, -100, 61], "segments": [0, 0, 0, 0, 1, 1],
   "positions": [0, 1, 2, 3, 0, 1], "padding": 2}]}})";

/// A program in place of celloom-engine.
QString makeEngine(const QTemporaryDir& folder, const QByteArray& script) {
    const QString path = folder.filePath(QStringLiteral("engine"));
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly)) return {};
    file.write("#!/bin/sh\n" + script);
    file.close();
    file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    return path;
}

} // namespace

class TestBatchPreview : public QObject {
    Q_OBJECT
    Theme m_theme{*qApp};

private Q_SLOTS:
    void anAnswerIsReadTokenByToken() {
        const auto data = readPreview(kAnswer);
        QVERIFY(data);
        QCOMPARE(data->rows.size(), std::size_t(1));
        const PreviewRow& row = data->rows[0];
        QCOMPARE(row.tokens.size(), std::size_t(6));
        QCOMPARE(row.learned(), std::int64_t(3));
        QCOMPARE(row.segments(), std::int64_t(2));
        QCOMPARE(row.padding, std::int64_t(2));
        QVERIFY(!row.tokens[1].isLearned && row.tokens[2].isLearned && row.tokens[3].isLearned);
        QCOMPARE(shownPiece(row.tokens[1]), QStringLiteral("·你"));
        const auto shown = [](const char* piece) { return shownPiece({0, 0, 0, QString::fromUtf8(piece), false, false}); };
        QCOMPARE(shown("<0x0A>"), QStringLiteral("⏎"));
        QCOMPARE(shown("<0x41>"), QStringLiteral("A"));
        QCOMPARE(shown("<0xE4>"), QStringLiteral("E4"));
        QCOMPARE(data->samples->untrainable, std::int64_t(1));
        QCOMPARE(data->fallbacks, QStringList{QStringLiteral("It has no <eoa>.")});
    }

    void whatIsNoAnswerIsRefused_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::newRow("nothing") << QByteArray();
        QTest::newRow("no JSON") << QByteArray("{");
        QTest::newRow("no batch") << QByteArray("{}");
        QTest::newRow("lists of different lengths") << QByteArray(R"({"batch": {"rows": [{"ids": [1], "pieces": []}]}})");
        QTest::newRow("a token of another type")
            << QByteArray(R"({"batch": {"rows": [{"ids": ["x"], "pieces": [""], "special": [false], "labels": [0], "segments": [0], "positions": [0]}]}})");
    }
    void whatIsNoAnswerIsRefused() {
        QFETCH(QByteArray, text);
        QVERIFY(!readPreview(text));
    }

    void keysAndMouseTellOfEachToken() {
        TokenView view(m_theme);
        view.resize(600, 300);
        view.setRows(readPreview(kAnswer)->rows);
        view.show();
        QSignalSpy described(&view, &TokenView::described);
        QTest::keyClick(&view, Qt::Key_Right);
        QTest::keyClick(&view, Qt::Key_Right);
        QCOMPARE(view.current(), (std::optional<TokenView::Place>(TokenView::Place{0, 1})));
        QVERIFY(described.last().at(0).toString().contains(QStringLiteral("50")));
        QVERIFY(described.last().at(0).toString().contains(QStringLiteral("not learned")));
        QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, view.rectOf({0, 5}).center());
        QCOMPARE(view.current(), (std::optional<TokenView::Place>(TokenView::Place{0, 5})));
        QVERIFY(described.last().at(0).toString().contains(QStringLiteral("position 1 · document 2")));
        // The second conversation stands apart from the first.
        QVERIFY(view.rectOf({0, 4}).left() - view.rectOf({0, 3}).right() > view.rectOf({0, 3}).left() - view.rectOf({0, 2}).right());
    }

    void everyTokenOfALongRowHasItsPlaceInTheWidth() {
        PreviewRow row;
        for (int i = 0; i < 3000; ++i) row.tokens.push_back({i, i, 0, QStringLiteral("词元%1").arg(i), false, i % 2 == 0});
        TokenView view(m_theme);
        view.resize(500, 300);
        view.setRows({row});
        for (std::size_t i = 0; i < row.tokens.size(); i += 97) {
            const QRect rect = view.rectOf({0, i});
            QVERIFY(rect.isValid() && rect.left() >= 0 && rect.right() < view.viewport()->width());
        }
        QTest::keyClick(&view, Qt::Key_End);
        QVERIFY(view.viewport()->rect().intersects(view.rectOf({0, 2999})));
    }

    void theButtonShowsTheBatchOfTheRecipeAtHand() {
        QTemporaryDir folder;
        const QString answer = folder.filePath(QStringLiteral("answer.json")), seen = folder.filePath(QStringLiteral("seen"));
        QFile file(answer);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(kAnswer);
        file.close();
        // What it was called with, and the recipe's content.
        const QString engine = makeEngine(folder, "echo \"$1 $2 $3\" > " + seen.toUtf8() + "; cat \"$4\" >> " + seen.toUtf8() + "; cat " + answer.toUtf8() + "\n");
        RecipeDocument document;
        document.setValue(QStringLiteral("name"), std::string("seen by the engine"));
        PreviewRowWidget row(document, engine, m_theme);
        row.show();
        row.findChildren<QPushButton*>().first()->click();
        QTRY_VERIFY(row.shown());
        QVERIFY(row.shown()->isVisible());
        QFile said(seen);
        QVERIFY(said.open(QIODevice::ReadOnly));
        const QByteArray text = said.readAll();
        QVERIFY(text.startsWith("--json data preview\n"));
        QVERIFY(text.contains("seen by the engine"));
        row.shown()->close();
    }

    void aRefusalStandsAtTheButtonWithItsPlaceAndLeadsToItsField() {
        QTemporaryDir folder;
        const QString engine = makeEngine(
            folder, "echo 'reading' >&2; echo '{\"error\": {\"message\": \"row 3 has no answer.\", \"hint\": \"Add it.\", \"place\": \"data.train\"}}' >&2; exit 3\n");
        RecipeDocument document;
        PreviewRowWidget row(document, engine, m_theme);
        row.show();
        QSignalSpy asked(&row, &PreviewRowWidget::fieldRequested);
        row.findChildren<QPushButton*>().first()->click();
        const auto labelWith = [&row](const QString& text) {
            const auto labels = row.findChildren<QLabel*>();
            return std::any_of(labels.begin(), labels.end(), [&](QLabel* label) { return label->isVisible() && label->text().contains(text); });
        };
        QTRY_VERIFY(labelWith(QStringLiteral("row 3 has no answer. Add it.")));
        row.findChildren<QPushButton*>().last()->click();
        QCOMPARE(asked.count(), 1);
        QCOMPARE(asked.first().first().toString(), QStringLiteral("data.train"));
    }

    void aCancelledJobEndsItsProcessAndAnswersNothing() {
        QTemporaryDir folder;
        EngineJob job(makeEngine(folder, "exec sleep 600\n"));
        QSignalSpy cancelled(&job, &EngineJob::cancelled), finished(&job, &EngineJob::finished), failed(&job, &EngineJob::failed);
        job.start({QStringLiteral("merge")});
        QVERIFY(job.isRunning());
        job.cancel();
        QTRY_COMPARE(cancelled.count(), 1);
        QVERIFY(!job.isRunning());
        QCOMPARE(finished.count() + failed.count(), qsizetype(0));
    }

    void anEngineThatIsNotThereOrDiesIsSaid() {
        QTemporaryDir folder;
        EngineJob missing(folder.filePath(QStringLiteral("nothing")));
        QSignalSpy failed(&missing, &EngineJob::failed);
        missing.start({});
        QCOMPARE(failed.count(), 1);
        EngineJob dying(makeEngine(folder, "kill -9 $$\n"));
        QSignalSpy died(&dying, &EngineJob::failed);
        dying.start({});
        QTRY_COMPARE(died.count(), 1);
    }

    void aCopiedFolderIsWholeOrNotThere() {
        QTemporaryDir folder;
        const auto path = [&](const char* name) { return std::filesystem::path(folder.filePath(QString::fromLatin1(name)).toStdString()); };
        for (const char* name : {"a.json", "b.safetensors"}) {
            QFile file(folder.filePath(QString::fromLatin1(name)));
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write(name);
        }
        FolderCopy copy;
        QSignalSpy finished(&copy, &FolderCopy::finished), failed(&copy, &FolderCopy::failed);
        copy.start({path("a.json"), path("b.safetensors")}, path("out"));
        QTRY_COMPARE(finished.count(), 1);
        QFile made(folder.filePath(QStringLiteral("out/b.safetensors")));
        QVERIFY(made.open(QIODevice::ReadOnly));
        QCOMPARE(made.readAll(), QByteArray("b.safetensors"));
        copy.start({path("a.json")}, path("out")); // never over something
        QTRY_COMPARE(failed.count(), 1);
        copy.start({path("a.json"), path("missing")}, path("other"));
        QTRY_COMPARE(failed.count(), 2);
        QVERIFY(!std::filesystem::exists(path("other")));
        QVERIFY(!std::filesystem::exists(path("other.part")));
    }
};

QTEST_MAIN(TestBatchPreview)
#include "tst_batch_preview.moc"
