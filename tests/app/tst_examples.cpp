// The programs of docs/examples do what the user guide says of them.
#include <QProcess>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>

class TestExamples : public QObject {
    Q_OBJECT
    QTemporaryDir m_folder;

    QString outputOf(const QString& program, const QStringList& arguments) {
        QProcess process;
        process.start(QStringLiteral(CELLOOM_BIN "/") + program, arguments);
        if (!process.waitForFinished(300000 * CELLOOM_TEST_TIME_FACTOR)) process.kill();
        const QString output = QString::fromUtf8(process.readAllStandardOutput());
        if (process.exitStatus() != QProcess::NormalExit || process.exitCode() != 0)
            qWarning("%s: %s", qPrintable(program), process.readAllStandardError().constData());
        return output;
    }
    static QStringList captured(const QString& text, const char* pattern) {
        QStringList out;
        for (auto match = QRegularExpression(QString::fromUtf8(pattern), QRegularExpression::MultilineOption).globalMatch(text); match.hasNext();)
            out.append(match.next().captured(1));
        return out;
    }

private Q_SLOTS:
    void aProgramPretrainsTalksAndMeasures() {
        const QString output = outputOf(QStringLiteral("example_pretrain_and_talk"), {QStringLiteral(CELLOOM_SOURCE "/resources/corpora/sanguo"), m_folder.path()});
        const QStringList losses = captured(output, "^step \\d+ loss ([0-9.]+)$");
        QVERIFY2(losses.size() >= 4, qPrintable(output));
        QVERIFY2(losses.last().toDouble() < losses.first().toDouble() - 1, qPrintable(output)); // from ln 2600 = 7.9
        const QStringList texts = captured(output, "^却说曹操(.+)$");
        QVERIFY2(texts.size() == 1 && texts[0].size() >= 3, qPrintable(output));
        const QStringList measured = captured(output, "^perplexity ([0-9.]+) "), trained = captured(output, "while training ([0-9.]+)\\)");
        QVERIFY2(measured.size() == 1 && measured == trained, qPrintable(output)); // the same weights on the same chapter
        QVERIFY(QFile::exists(m_folder.filePath(QStringLiteral("pretrain/checkpoints/step-000060/model.safetensors"))));
    }

    void aProgramTrainsACellOfItsOwn() { // a straight line through the chess board does no better than one half
        const QString output = outputOf(QStringLiteral("example_own_cell"), {});
        const QStringList losses = captured(output, "^epoch \\d+ loss ([0-9.e-]+)$"), accuracy = captured(output, "^accuracy ([0-9.]+)$");
        QVERIFY2(losses.size() == 30 && losses.last().toDouble() < losses.first().toDouble() / 2, qPrintable(output));
        QVERIFY2(accuracy.size() == 1 && accuracy[0].toDouble() > 0.9, qPrintable(output));
    }
};

QTEST_GUILESS_MAIN(TestExamples)
#include "tst_examples.moc"
