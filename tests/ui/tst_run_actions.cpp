// What a run that is over offers, what the engine is asked for then, and what comes of it.
#include "tests/ui/services_bench.h"
#include "ui/common/run_actions.h"
#include "ui/shell/run_exporter.h"
#include "ui/shell/welcome_page.h"

#include <QDialog>
#include <QDir>
#include <QFile>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>

using namespace celloom;
using namespace celloom::ui;

Q_DECLARE_METATYPE(celloom::store::RunRecord)

namespace {

void write(const QString& path, const QByteArray& text) {
    QDir().mkpath(QFileInfo(path).absolutePath());
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(text);
}

/// A workspace with one run, and a program in place of celloom-engine.
struct Bench : test::ServicesBench {
    QWidget window;

    QString run(const char* path) const { return folder.filePath(QStringLiteral("w/runs/0001-tuned/") + QString::fromLatin1(path)); }
    void setEngine(const QByteArray& script) const {
        write(services.engineProgram, "#!/bin/sh\n" + script);
        QFile::setPermissions(services.engineProgram, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    }
    /// Agrees to what the dialog suggests; where to, is returned.
    QString agree() {
        auto* dialog = window.findChild<QDialog*>(QStringLiteral("exportDialog"));
        if (!dialog) return {};
        const QString target = dialog->findChild<QLineEdit*>(QStringLiteral("exportTarget"))->text();
        dialog->accept();
        return target;
    }
};

store::RunRecord record(store::RunState state, bool hasCheckpoint, bool hasAdapter) {
    store::RunRecord run;
    run.folder = "0001-tuned";
    run.state = state;
    run.hasCheckpoint = hasCheckpoint;
    run.hasAdapter = hasAdapter;
    return run;
}

} // namespace

class TestRunActions : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aRunOffersWhatFitsIt_data() {
        QTest::addColumn<store::RunRecord>("run");
        QTest::addColumn<int>("buttons");
        QTest::newRow("going on") << record(store::RunState::Running, true, true) << 0;
        QTest::newRow("nothing saved") << record(store::RunState::Failed, false, false) << 0;
        QTest::newRow("tuned: merge, adapter") << record(store::RunState::Finished, true, true) << 2;
        QTest::newRow("pretrained: tune, export") << record(store::RunState::Stopped, true, false) << 2;
    }
    void aRunOffersWhatFitsIt() {
        QFETCH(store::RunRecord, run);
        QFETCH(int, buttons);
        RunActions actions(QBoxLayout::LeftToRight);
        actions.setRun(&run);
        int shown = 0;
        for (QPushButton* button : actions.findChildren<QPushButton*>()) shown += button->isVisibleTo(&actions) ? 1 : 0;
        QCOMPARE(shown, buttons);
        if (buttons == 0) return;
        QSignalSpy asked(&actions, &RunActions::requested);
        for (QPushButton* button : actions.findChildren<QPushButton*>())
            if (button->isVisibleTo(&actions)) button->click();
        QCOMPARE(asked.at(0).at(0).value<RunAction>(), run.hasAdapter ? RunAction::Merge : RunAction::FineTune);
        QCOMPARE(asked.at(1).at(0).value<RunAction>(), run.hasAdapter ? RunAction::ExportAdapter : RunAction::ExportModel);
        QCOMPARE(asked.at(0).at(1).toString(), QStringLiteral("0001-tuned"));
    }

    void theNewestCompleteCheckpointAndTheAdapterAreFound() {
        Bench bench;
        const store::RunFolder folder{bench.run("").toStdString()};
        QVERIFY(folder.newestCheckpoint().empty() && folder.adapter().empty());
        write(bench.run("checkpoints/step-000100/manifest.json"), "{}");
        write(bench.run("checkpoints/step-000200/manifest.json"), "{}");
        write(bench.run("checkpoints/step-000300/model.safetensors"), "half written");
        QCOMPARE(folder.newestCheckpoint().filename().string(), std::string("step-000200"));
        QVERIFY(folder.adapter().empty());
        write(bench.run("checkpoints/step-000200/adapter_config.json"), "{}");
        QCOMPARE(folder.adapter(), folder.newestCheckpoint());
        write(bench.run("adapter/adapter_config.json"), "{}");
        QCOMPARE(folder.adapter().filename().string(), std::string("adapter"));
    }

    void mergingAsksTheEngineAndTellsTheDifference() {
        Bench bench;
        const QString seen = bench.folder.filePath(QStringLiteral("seen"));
        bench.setEngine("echo \"$@\" > " + seen.toUtf8() + "; echo '{\"largest_logit_difference\": 3.5e-6, \"adapters_changed\": 1.25}'\n");
        RunExporter exporter(bench.services, &bench.window);
        bench.window.show();
        QSignalSpy done(&exporter, &RunExporter::done);
        exporter.ask(RunAction::Merge, QStringLiteral("0001-tuned"));
        const QString target = bench.agree();
        QVERIFY(target.endsWith(QStringLiteral("0001-tuned-merged")));
        QVERIFY(exporter.isVisible());
        QTRY_COMPARE(done.count(), 1);
        QVERIFY(!exporter.isVisible());
        QVERIFY(done.first().first().toString().contains(QStringLiteral("3.5e-06")));
        QFile said(seen);
        QVERIFY(said.open(QIODevice::ReadOnly));
        QCOMPARE(QString::fromUtf8(said.readAll()).trimmed(),
                 QStringLiteral("--json merge --model %1 --out %2 --dtype float32").arg(bench.run("").chopped(1), target));
    }

    void whatTheEngineRefusesIsSaid() {
        Bench bench;
        bench.setEngine("echo '{\"error\": {\"message\": \"was merged before.\", \"hint\": \"\", \"place\": \"\"}}' >&2; exit 3\n");
        RunExporter exporter(bench.services, &bench.window);
        QSignalSpy failed(&exporter, &RunExporter::failed);
        exporter.ask(RunAction::Merge, QStringLiteral("0001-tuned"));
        bench.agree();
        QTRY_COMPARE(failed.count(), 1);
        QVERIFY(failed.first().first().toString().contains(QStringLiteral("was merged before.")));
    }

    void anAdapterIsCopiedWithoutWhatIsTheTrainers() {
        Bench bench;
        for (const char* name : {"manifest.json", "trainer.safetensors", "adapter_config.json", "adapter_model.safetensors", "celloom_adapter.json"})
            write(bench.run("checkpoints/step-000200/") + QString::fromLatin1(name), name);
        RunExporter exporter(bench.services, &bench.window);
        QSignalSpy done(&exporter, &RunExporter::done);
        exporter.ask(RunAction::ExportAdapter, QStringLiteral("0001-tuned"));
        const QString target = bench.agree();
        QTRY_COMPARE(done.count(), 1);
        QCOMPARE(QDir(target).entryList(QDir::Files, QDir::Name),
                 (QStringList{QStringLiteral("adapter_config.json"), QStringLiteral("adapter_model.safetensors"), QStringLiteral("celloom_adapter.json")}));
    }

    void theWelcomePagesExamplesKnowTheirJourneyAndWhatTheyLack() {
        QTemporaryDir folder;
        const auto add = [&](const char* name, const char* text) { write(folder.filePath(QString::fromLatin1(name)), text); };
        add("a-tuned.json", R"({"schema": 1, "kind": "finetune", "model": {"source": "internlm-7b", "weights": "not-here"}})");
        add("b-tuned.json", R"({"schema": 1, "kind": "finetune", "model": {"source": "internlm-tiny", "weights": "base"}})");
        add("internlm-lora-closing-mark.json", R"({"schema": 1, "kind": "finetune", "model": {"source": "base", "weights": "base"}})");
        add("baichuan-tiny-sanguo.json", R"({"schema": 1})");
        add("broken.json", "{");
        QVERIFY(QDir(folder.path()).mkdir(QStringLiteral("base")));
        const std::vector<Example> examples = findExamples(folder.path());
        QCOMPARE(examples.size(), std::size_t(4));
        QCOMPARE(examples[0].name, QStringLiteral("baichuan-tiny-sanguo"));
        QVERIFY(!examples[0].isTuning);
        QCOMPARE(examples[1].name, QStringLiteral("internlm-lora-closing-mark"));
        QVERIFY(examples[1].isTuning && examples[1].missingBase.isEmpty());
        QCOMPARE(examples[2].name, QStringLiteral("b-tuned"));
        QCOMPARE(examples[3].missingBase, QStringLiteral("not-here"));
    }
};


QTEST_MAIN(TestRunActions)
#include "tst_run_actions.moc"
