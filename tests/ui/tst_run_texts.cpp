// What a run's events and its end read like, in both languages: composed from kind and data, falling back to the engine's own words.
#include "ui/common/run_texts.h"
#include "ui/shell/language.h"

#include <QFile>
#include <QRegularExpression>
#include <QTest>

using namespace celloom;
using namespace celloom::ui;

namespace {

store::EventRow happened(const std::string& kind, const std::string& data) {
    store::EventRow row;
    row.kind = kind;
    row.message = "as the engine said it";
    row.data = data;
    return row;
}

store::RunRecord ended(store::RunState state, const std::string& outcome, std::int64_t step = 0) {
    store::RunRecord run;
    run.state = state;
    run.outcome = outcome;
    run.step = step;
    return run;
}

} // namespace

class TestRunTexts : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyKindWithItsDataIsSaidInChinese_data() {
        QTest::addColumn<QString>("data");
        const auto row = [](const char* kind, const char* data) { QTest::newRow(kind) << QString::fromLatin1(data); };
        row("data", R"({"files": 120, "encodings": {"UTF-8": 120}, "documents": 112, "held_out": 8})");
        row("tokenizer", R"({"vocabulary": 4096, "sequences": 3906, "sequence_length": 128})");
        row("baseline", R"({"perplexity": 222.15})");
        row("evaluation", R"({"loss": 3.5, "perplexity": 33.1, "tokens": 4096})");
        row("checkpoint", R"({"checkpoint": "step-000044"})");
        row("resumed", R"({"checkpoint": "step-000044", "step": 44})");
        row("changed", R"({"step": 13, "changes": [{"key": "optimizer.lr", "before": "0.001", "now": "0.0001"}], "rate": 0.0001, "keeps_fixed_rate": false})");
        row("overflow_storm", R"({"step": 40, "overflows": 30, "loss_scale": 1, "most": 1000})");
        row("diverged", R"({"step": 13, "gradient": true, "checkpoint": "step-000012"})");
        row("data_gone", R"({"path": "/data/rows.safetensors"})");
        row("complete", R"({"steps": 100})");
        row("overflow", R"({"step": 7, "loss_scale": 65536})");
        row("paused", R"({"step": 34})");
        row("continued", R"({"step": 34})");
        row("learning_rate", R"({"step": 35, "lr": 0.0001})");
        row("script_quiet", R"({"callback": "mine", "lines": 1000})");
        row("script_state", R"({"callback": "mine", "attributes": ["a"]})");
        row("callback_error", R"({"callback": "mine", "method": "step_end", "line": 5, "column": 9, "message": "no", "action": "disable"})");
        row("early_stopping", R"({"step": 40, "monitor": "eval_loss", "best": 2.5, "restored_step": 20})");
        row("comparison", R"({"perplexity": 98.5, "bigram": 222.15})");
        row("memory", R"({"peak_bytes": 186300000, "estimate_bytes": 186200000})");
        row("conversations", R"({"files": [], "conversations": 2155, "held_out": 113})");
        row("template", R"({"template": "internlm", "source": "internlm-chat-7b", "fallbacks": []})");
        row("samples", R"({"conversations": 2155, "sequences": 2150, "tokens": 154394, "trainable": 4361, "truncated": 3, "dropped": 5, "untrainable": 1, "longest": 122})");
        row("answers", R"({"matches": 31, "questions": 50, "wrong": []})");
        row("empty_step", R"({"step": 3})");
        row("plugin", R"({"library": "gated.so", "sha256": "0f1e", "stamp": "interface 1; celloom 0.1.0"})");
        row("trainable", R"({"trainable": 156160, "base": 5265664, "adapters": 156160, "cells": 28, "state_bytes": 1873920, "full_state_bytes": 63187968})");
        row("adapter", R"({"adapter": "/tmp/w/runs/0001-a/adapter"})");
        row("model", R"({"model": "/tmp/m", "parameters": 3500000, "adapters": []})");
        row("measured_data", R"({"files": 8, "documents": 8})");
        row("prompts", R"({"prompts": 50, "file": "/tmp/p.jsonl", "encoding": "UTF-8", "format": ""})");
        row("predictions", R"({"file": "/tmp/predictions.jsonl", "rows": 50, "prompts": 50, "new_rows": 50, "new_tokens": 400, "questions": 50, "matches": 31})");
        row("sampled", R"({"step": 12})");
        row("saved_already", R"({"step": 12})");
        row("not_possible", R"({"action": "save"})");
        row("finished", R"({"step": 100})");
        row("stopped", R"({"step": 44, "time_limit": false})");
    }
    void everyKindWithItsDataIsSaidInChinese() {
        QFETCH(QString, data);
        Language language;
        language.choose(QStringLiteral("zh_CN"));
        const QString text = RunTexts::event(happened(QTest::currentDataTag(), data.toStdString()));
        QVERIFY2(!text.contains(QStringLiteral("engine said")), qPrintable(text));
        static const QRegularExpression placeholder(QStringLiteral("%[0-9n]"));
        QVERIFY2(!text.contains(placeholder), qPrintable(text));
        bool hasChinese = false;
        for (const QChar c : text) hasChinese = hasChinese || c.script() == QChar::Script_Han;
        QVERIFY2(hasChinese, qPrintable(text));
    }

    void numbersOfTheDataAreInTheSentence() {
        Language language;
        language.choose(QStringLiteral("en"));
        QCOMPARE(RunTexts::event(happened("data", R"({"files": 120, "encodings": {"UTF-8": 120}, "documents": 112, "held_out": 8})")),
                 QStringLiteral("Read 120 files (UTF-8): 112 documents to learn from, 8 held out."));
        QCOMPARE(RunTexts::event(happened("learning_rate", R"({"step": 35, "lr": 0.0001})")),
                 QStringLiteral("From step 35 on the learning rate is 1.0e-4."));
        QCOMPARE(RunTexts::event(happened("early_stopping", R"({"step": 40, "monitor": "eval_loss", "best": 2.5, "restored_step": 20})")),
                 QStringLiteral("eval_loss improved no more: the run ends early, after step 40. Its weights are those of step 20 again."));
        QCOMPARE(RunTexts::event(happened("early_stopping", R"({"step": 40, "monitor": "eval_loss", "best": 2.5})")), // of an earlier version
                 QStringLiteral("eval_loss improved no more: the run ends early, after step 40."));
        QCOMPARE(RunTexts::event(happened("stopped", R"({"step": 44, "time_limit": true})")),
                 QStringLiteral("The time limit is reached: stopped after step 44."));
    }

    void oneIsSingular() {
        Language language;
        language.choose(QStringLiteral("en"));
        QCOMPARE(RunTexts::event(happened("finished", R"({"step": 1})")), QStringLiteral("Finished after 1 step."));
        QCOMPARE(RunTexts::event(happened("finished", R"({"prompts": 1})")), QStringLiteral("Finished: 1 prompt answered."));
        QCOMPARE(RunTexts::event(happened("stopped", R"({"batches": 2})")), QStringLiteral("Stopped after 2 batches."));
        QCOMPARE(RunTexts::event(happened("paused", "{}")), QStringLiteral("Paused."));
        QCOMPARE(RunTexts::event(happened("data", R"({"files": 1, "encodings": {"GB 18030": 1}, "documents": 1, "held_out": 0})")),
                 QStringLiteral("Read 1 file (GB 18030): 1 document to learn from, 0 held out."));
    }

    void whatIsNotUnderstoodIsShownAsItCame_data() {
        QTest::addColumn<QString>("kind");
        QTest::addColumn<QString>("data");
        QTest::newRow("unknown kind") << "device"
                                      << "{}";
        QTest::newRow("no data, as of an older engine") << "evaluation"
                                                        << "";
        QTest::newRow("data without its numbers") << "evaluation"
                                                  << R"({"loss": 3.5})";
        QTest::newRow("not JSON") << "paused"
                                  << "{";
    }
    void whatIsNotUnderstoodIsShownAsItCame() {
        QFETCH(QString, kind);
        QFETCH(QString, data);
        QCOMPARE(RunTexts::event(happened(kind.toStdString(), data.toStdString())), QStringLiteral("as the engine said it"));
    }

    void errorsKeepTheirWordsInATranslatedFrame() {
        Language language;
        language.choose(QStringLiteral("zh_CN"));
        store::EventRow row = happened("failed", "");
        row.hint = "And a hint.";
        QCOMPARE(RunTexts::event(row), QStringLiteral("失败：as the engine said it And a hint."));
    }

    void anEndIsSaidOnce_data() {
        QTest::addColumn<int>("state");
        QTest::addColumn<QString>("outcome");
        QTest::addColumn<QString>("english");
        QTest::addColumn<QString>("chinese");
        const auto row = [](const char* name, store::RunState state, const char* outcome, const char* english, const char* chinese) {
            QTest::newRow(name) << static_cast<int>(state) << QString::fromUtf8(outcome) << QString::fromUtf8(english)
                                << QString::fromUtf8(chinese);
        };
        using enum store::RunState;
        row("finished", Finished, "finished", "Finished", "已完成");
        row("stopped", Stopped, "stopped at step 44", "Stopped at step 44", "已停止于第 44 步");
        row("killed", Interrupted, "interrupted (signal 9)", "Interrupted: the process was killed (signal 9)",
            "已中断：进程被强制结束（信号 9）");
        row("crashed", Interrupted, "interrupted (signal 11)", "Interrupted: the process crashed (signal 11)",
            "已中断：进程崩溃（信号 11）");
        row("unseen", Interrupted, "interrupted (nobody saw how)", "Interrupted: the process is gone, and nobody saw how it ended",
            "已中断：进程已不存在，结束原因未知");
        row("refused", Failed, "failed (exit code 3): no such file", "Failed: recipe, model or data were refused. no such file",
            "失败：配方、模型或数据未被接受。no such file");
        row("full disk", Failed, "failed (exit code 7)", "Failed: the disk is full", "失败：磁盘已满");
        row("never", Failed, "never started", "Failed: it never started", "失败：从未启动");
        row("new words", Failed, "something new", "Failed: something new", "失败：something new");
        row("going on", Running, "", "Running", "运行中");
    }
    void anEndIsSaidOnce() {
        QFETCH(int, state);
        QFETCH(QString, outcome);
        QFETCH(QString, english);
        QFETCH(QString, chinese);
        const store::RunRecord run = ended(static_cast<store::RunState>(state), outcome.toStdString(), 44);
        Language language;
        language.choose(QStringLiteral("en"));
        QCOMPARE(RunTexts::outcome(run), english);
        language.choose(QStringLiteral("zh_CN"));
        QCOMPARE(RunTexts::outcome(run), chinese);
    }

    void theEnglishPluralsAreComplete() {
        QFile text(QStringLiteral(CELLOOM_SOURCE "/resources/translations/celloom_en.ts"));
        QVERIFY(text.open(QIODevice::ReadOnly));
        const QByteArray content = text.readAll();
        QVERIFY(content.contains("<numerusform>"));
        QVERIFY(!content.contains("unfinished"));
    }
};

QTEST_MAIN(TestRunTexts)
#include "tst_run_texts.moc"
