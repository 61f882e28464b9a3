// Prompts in and results out: rows, resuming, and what is refused.
#include "engine/generate/prediction_file.h"
#include "models/base/files.h"

#include <QTemporaryDir>
#include <QTest>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace celloom;
using namespace celloom::engine;
namespace fs = std::filesystem;

namespace {

const std::string kSettings = R"({"temperature": 0.8, "seed": 1})";

std::vector<PromptRow> prompts(int count) {
    std::vector<PromptRow> out;
    for (int i = 0; i < count; ++i) out.push_back({"prompt " + std::to_string(i), {}});
    return out;
}

std::vector<std::string> values(int count) {
    return std::vector<std::string>(static_cast<std::size_t>(count), R"({"text": "你好"})");
}

} // namespace

class TestPredictionFile : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void init() { m_out = path("results.jsonl"); }
    void textHasAPromptALine();
    void objectsKeepTheirFields();
    void badRowsAreNamed();
    void resultsGoOnAfterTheLastWholeLine();
    void otherSettingsAreRefusedAndNamed();
    void filesOfOtherOriginAreRefused();
    void oneWriterAtATime();

private:
    fs::path path(const char* name) const { return fs::path(m_folder.path().toStdString()) / QTest::currentTestFunction() += std::string("-") + name; }
    void write(const fs::path& file, const std::string& content) { QVERIFY(writeFileAtomically(file, content)); }
    QTemporaryDir m_folder;
    fs::path m_out;
};

void TestPredictionFile::textHasAPromptALine() {
    write(path("p.txt"), "一\r\n\n三");
    const auto file = readPrompts(path("p.txt"));
    QVERIFY(file);
    QCOMPARE(file->rows.size(), std::size_t(3));
    QCOMPARE(file->rows[0].prompt, std::string("一"));
    QCOMPARE(file->rows[1].prompt, std::string());
    QCOMPARE(file->rows[2].prompt, std::string("三"));
    QCOMPARE(file->encoding, std::string("UTF-8"));
    write(path("gb.txt"), "\xC4\xE3\xBA\xC3\n"); // 你好 in GB 18030
    QCOMPARE(readPrompts(path("gb.txt"))->rows[0].prompt, std::string("你好"));
}

void TestPredictionFile::objectsKeepTheirFields() {
    write(path("p.jsonl"), R"({"id": "a", "prompt": "一", "answer": 3})"
                           "\n");
    const auto file = readPrompts(path("p.jsonl"));
    QVERIFY(file);
    auto out = PredictionFile::open(m_out, kSettings);
    QVERIFY(out);
    QVERIFY(out->append(file->rows, {R"({"text": "二", "finish": "length"})"}));
    QCOMPARE(*readFile(m_out), std::string(R"({"row":1,"id":"a","prompt":"一","answer":3,"text":"二","finish":"length"})"
                                           "\n"));
}

void TestPredictionFile::badRowsAreNamed() {
    const auto refused = [&](const std::string& second, const char* says) {
        write(path("bad.jsonl"), "{\"prompt\": \"a\"}\n" + second + "\n");
        const auto file = readPrompts(path("bad.jsonl"));
        return !file && file.error().place.ends_with("row 2") && file.error().text().find(says) != std::string::npos;
    };
    QVERIFY(refused("{\"prompt\": ", "no JSON"));
    QVERIFY(refused("[1]", "no JSON object"));
    QVERIFY(refused("", "no JSON"));
    QVERIFY(refused("{\"instruction\": \"a\"}", "\"prompt\""));
    QVERIFY(refused("{\"messages\": []}", "\"prompt\""));
    QVERIFY(refused("{\"prompt\": 3}", "no text"));
    QVERIFY(refused("{\"prompt\": \"a\", \"text\": \"b\"}", "overwrite"));
    QVERIFY(refused("{\"prompt\": \"a\", \"b\": " + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}", "deeper"));
    write(path("empty.txt"), "");
    QVERIFY(!readPrompts(path("empty.txt")));
    write(path("broken.txt"), std::string("a\x80\xff\n\0", 5));
    QVERIFY(!readPrompts(path("broken.txt")));
    QVERIFY(!readPrompts(path("missing.txt")));
}

void TestPredictionFile::resultsGoOnAfterTheLastWholeLine() {
    {
        auto out = PredictionFile::open(m_out, kSettings);
        QVERIFY(out);
        QCOMPARE(out->rows(), 0);
        QVERIFY(out->append(prompts(2), values(2)));
        QCOMPARE(out->rows(), 2);
    }
    const std::string whole = *readFile(m_out);
    std::ofstream(m_out, std::ios::app) << R"({"row":3,"prompt":"prom)"; // what a kill leaves
    auto again = PredictionFile::open(m_out, kSettings);
    QVERIFY(again);
    QCOMPARE(again->rows(), 2);
    QCOMPARE(*readFile(m_out), whole);
    QVERIFY(again->append(prompts(1), values(1)));
    QVERIFY(readFile(m_out)->starts_with(whole + "{\"row\":3,"));
}

void TestPredictionFile::otherSettingsAreRefusedAndNamed() {
    {
        auto out = PredictionFile::open(m_out, kSettings);
        QVERIFY(out && out->append(prompts(1), values(1)));
    }
    const std::string before = *readFile(m_out);
    const auto other = PredictionFile::open(m_out, R"({"temperature": 0.7, "seed": 1})");
    QVERIFY(!other);
    QVERIFY2(other.error().message.find("temperature: 0.8 then, 0.7 now") != std::string::npos, other.error().text().c_str());
    QVERIFY(other.error().message.find("seed") == std::string::npos);
    QVERIFY(!PredictionFile::open(m_out, R"({"temperature": 0.8, "seed": 1, "top_k": 3})"));
    QCOMPARE(*readFile(m_out), before);
}

void TestPredictionFile::filesOfOtherOriginAreRefused() {
    write(m_out, "{\"row\":1}\n");
    QVERIFY(!PredictionFile::open(m_out, kSettings)); // nobody knows what made it
    fs::remove(m_out);
    {
        auto out = PredictionFile::open(m_out, kSettings);
        QVERIFY(out && out->append(prompts(2), values(2)));
    }
    std::string text = *readFile(m_out);
    text.replace(text.find("\"row\":2"), 7, "\"row\":7");
    write(m_out, text);
    const auto changed = PredictionFile::open(m_out, kSettings);
    QVERIFY(!changed);
    QVERIFY2(changed.error().message.find("line 2") != std::string::npos, changed.error().text().c_str());
}

void TestPredictionFile::oneWriterAtATime() {
    const auto first = PredictionFile::open(m_out, kSettings);
    QVERIFY(first);
    const auto second = PredictionFile::open(m_out, kSettings);
    QVERIFY(!second);
    QVERIFY2(second.error().message.find("another process") != std::string::npos, second.error().text().c_str());
}

QTEST_GUILESS_MAIN(TestPredictionFile)
#include "tst_prediction_file.moc"
