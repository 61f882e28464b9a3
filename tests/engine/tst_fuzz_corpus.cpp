// Every file of the fuzzers' corpora goes through the readers again: seeds, and what a fuzzer once found.
#include "models/base/files.h"
#include "tests/fuzz/fuzz_targets.h"

#include <QTest>

using namespace celloom;
namespace fs = std::filesystem;

class TestFuzzCorpus : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void noFileEndsTheProgram_data();
    void noFileEndsTheProgram();
};

void TestFuzzCorpus::noFileEndsTheProgram_data() {
    QTest::addColumn<int>("target");
    const char* names[] = {"safetensors", "torch", "pickle", "ckpt", "graph", "code"};
    for (int i = 0; i < 6; ++i) QTest::newRow(names[i]) << i;
}

void TestFuzzCorpus::noFileEndsTheProgram() {
    QFETCH(int, target);
    void (*const targets[])(std::string_view) = {fuzz::safetensors, fuzz::torch, fuzz::pickle, fuzz::ckpt, fuzz::graph, fuzz::code};
    int files = 0;
    for (const auto& item : fs::directory_iterator(fs::path(CELLOOM_SOURCE) / "tests/fuzz/corpus" / QTest::currentDataTag())) {
        const auto content = readFile(item.path());
        QVERIFY(content);
        targets[target](*content);
        ++files;
    }
    QVERIFY(files >= 4);
}

QTEST_GUILESS_MAIN(TestFuzzCorpus)
#include "tst_fuzz_corpus.moc"
