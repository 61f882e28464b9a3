// The question before a run goes on: where it stands, what changes from which step, what is refused.
#include "models/base/files.h"
#include "models/store/run_folder.h"
#include "ui/history/resume_dialog.h"

#include <QDialogButtonBox>
#include <QLabel>
#include <QLineEdit>
#include <QPointer>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>

#include <nlohmann/json.hpp>

using namespace celloom;
using namespace celloom::ui;
using nlohmann::json;

class TestResumeDialog : public QObject {
    Q_OBJECT
    QTemporaryDir m_folder;
    store::RunFolder m_run;
    ResumeDialog::Changes m_asked;
    int m_count = 0;

    /// A run of 200 steps of which 120 are done.
    void makeRun(const json& state) {
        const auto workspace = store::Workspace::open(m_folder.path().toStdString());
        QVERIFY(workspace.has_value());
        m_run = workspace->createRun("tiny").value();
        const std::string data = std::string(CELLOOM_SOURCE) + "/LICENSE";
        QVERIFY(writeFileAtomically(m_run.recipe(), json{{"data", {{"train", {data}}}}, {"train", {{"max_steps", 200}}}, {"optimizer", {{"lr", 0.001}}}}.dump()).has_value());
        const auto checkpoint = m_run.checkpoints() / "step-000120";
        std::filesystem::create_directories(checkpoint);
        QVERIFY(writeFileAtomically(checkpoint / "state.json", state.dump()).has_value());
        QVERIFY(writeFileAtomically(checkpoint / "manifest.json", "{}").has_value());
    }
    QPointer<ResumeDialog> open() {
        m_count = 0;
        auto* dialog = new ResumeDialog(m_run, false, [this](const ResumeDialog::Changes& changes) {
            m_asked = changes;
            ++m_count;
        });
        dialog->show();
        return dialog;
    }
    static QString said(const QDialog& dialog) {
        QStringList texts;
        for (const QLabel* label : dialog.findChildren<QLabel*>())
            if (label->isVisibleTo(&dialog)) texts.append(label->text());
        return texts.join(QLatin1Char('\n'));
    }
    static QPushButton* button(const QDialog& dialog) {
        const auto* box = dialog.findChild<QDialogButtonBox*>();
        for (QAbstractButton* one : box->buttons())
            if (box->buttonRole(one) == QDialogButtonBox::AcceptRole) return static_cast<QPushButton*>(one);
        return nullptr;
    }
    static void type(const QDialog& dialog, const char* key, const char* text) { dialog.findChild<QLineEdit*>(QString::fromLatin1(key))->setText(QString::fromLatin1(text)); }

private Q_SLOTS:
    void init() { makeRun({{"step", 120}, {"fixed_learning_rate", nullptr}, {"steps_per_epoch", 50}}); }

    void nothingChangedGoesOnAsItWas() {
        const auto dialog = open();
        QVERIFY2(said(*dialog).contains("Goes on from step-000120 with step 121 of 200."), qPrintable(said(*dialog)));
        button(*dialog)->click();
        QCOMPARE(m_count, 1);
        QVERIFY(m_asked.empty());
    }

    void aChangeIsSaidBeforeItIsMade() {
        const auto dialog = open();
        type(*dialog, "optimizer.lr", "1e-4");
        QVERIFY2(said(*dialog).contains("From step 121 on:") && said(*dialog).contains("0.001 → 0.0001"), qPrintable(said(*dialog)));
        button(*dialog)->click();
        QVERIFY(m_asked == (ResumeDialog::Changes{{"optimizer.lr", "1e-4"}}));
    }

    void aNumberWrittenDifferentlyIsNoChange() {
        const auto dialog = open();
        type(*dialog, "optimizer.lr", "1e-3");
        QVERIFY2(!said(*dialog).contains("From step"), qPrintable(said(*dialog)));
        dialog->reject();
        QCOMPARE(m_count, 0);
    }

    void fewerStepsThanAreDoneAndNonsenseAreRefused() {
        const auto dialog = open();
        for (const auto& [text, word] : {std::pair{"100", "120 steps are done already"}, {"many", "train.max_steps"}}) {
            type(*dialog, "train.max_steps", text);
            QVERIFY2(said(*dialog).contains(QLatin1String(word)), qPrintable(said(*dialog)));
            QVERIFY(!button(*dialog)->isEnabled());
        }
        type(*dialog, "train.max_steps", "300");
        QVERIFY(button(*dialog)->isEnabled());
        dialog->reject();
    }

    void aCompleteRunOffersMore() {
        const auto dialog = open();
        type(*dialog, "train.max_steps", "120");
        QVERIFY2(said(*dialog).contains("The run is complete"), qPrintable(said(*dialog)));
        QVERIFY(!button(*dialog)->isEnabled());
        type(*dialog, "train.max_steps", "240");
        QVERIFY(button(*dialog)->isEnabled());
        dialog->reject();
    }

    void aRateSetWhileRunningIsToldUntilItEnds() {
        makeRun({{"step", 120}, {"fixed_learning_rate", 0.0005}, {"steps_per_epoch", 50}});
        const auto dialog = open();
        QVERIFY2(said(*dialog).contains("The rate stays at"), qPrintable(said(*dialog)));
        type(*dialog, "optimizer.lr", "0.002");
        QVERIFY2(said(*dialog).contains("the schedule is in force again"), qPrintable(said(*dialog)));
        dialog->reject();
    }
};

QTEST_MAIN(TestResumeDialog)
#include "tst_resume_dialog.moc"
