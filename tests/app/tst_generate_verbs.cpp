// predict and perplexity as a user runs them.
#include "engine/checkpoint/model_folder.h"
#include "models/base/files.h"
#include "models/families/families.h"
#include "models/protocol/protocol.h"
#include "tests/app/verb_helper.h"

#include <QElapsedTimer>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>
#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>

using namespace celloom;
using namespace celloom::app::testing;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

template <class T> T must(Result<T> result) {
    if (!result) qFatal("%s", result.error().text().c_str());
    return std::move(*result);
}

std::vector<std::string> linesOf(const std::string& text) {
    std::vector<std::string> out;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        out.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return out;
}

} // namespace

class TestGenerateVerbs : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void aPromptIsContinued();
    void theCacheChangesNothing();
    void stopTextsAndTokensEndTheText();
    void aFileOfPromptsBecomesJsonLines();
    void anInterruptedFileGoesOn();
    void otherOptionsDoNotMix();
    void perplexityOfAFile();
    void wrongUseIsSaid();

private:
    QString path(const char* name) const { return m_folder.filePath(name); }
    void write(const char* name, const std::string& text) { QVERIFY(writeFileAtomically(path(name).toStdString(), text)); }
    QStringList predict(const QStringList& more) const { return QStringList{"predict", "--model", m_model, "--device", "cpu"} + more; }
    QTemporaryDir m_folder;
    QString m_model;
};

void TestGenerateVerbs::initTestCase() { // a small model with random weights over the words of the recorded tokenizer
    m_model = path("model");
    graph::Document document = must(families::buildPreset("baichuan-tiny"));
    const auto number = [](std::int64_t value) { return graph::ParamValue(value); };
    QVERIFY(graph::applyOverrides(document, {{"vocab", number(2600)},
                                             {"hidden", number(32)},
                                             {"layers", number(2)},
                                             {"intermediate", number(48)},
                                             {"max_positions", number(64)}}));
    graph::ExpandedModel model = graph::expand(document).model;
    recipe::TreatmentTable plain;
    plain.cells.resize(model.cells.size());
    const auto network = must(engine::Network::create(std::move(model), plain, {.seed = 2, .initStd = 0.3}));
    QVERIFY(engine::exportModel(*network, document, CELLOOM_FIXTURES "/tokenizer/sp_bpe_prefix.model", m_model.toStdString()));
}

void TestGenerateVerbs::aPromptIsContinued() {
    const QStringList common = predict({"--prompt", "话说天下大势", "--max-new-tokens", "12", "--seed", "3"});
    const Outcome text = runEngine(common), parsed = runEngine(common + QStringList{"--json", "--alternatives", "3"});
    QVERIFY2(text.code == 0 && parsed.code == 0, (text.err + parsed.err).c_str());
    const json result = json::parse(parsed.out);
    QCOMPARE(text.out, "话说天下大势" + result["text"].get<std::string>() + "\n");
    QCOMPARE(result["new_tokens"].get<int>(), 12);
    QCOMPARE(result["ids"].size(), std::size_t(12));
    QCOMPARE(result["finish"].get<std::string>(), std::string("length"));
    for (const json& token : result["tokens"]) {
        QCOMPARE(token["alternatives"].size(), std::size_t(3));
        QVERIFY(token["logprob"].get<double>() <= token["alternatives"][0]["logprob"].get<double>());
    }
    const Outcome full = runEngine(predict({"--prompt", "a", "--max-new-tokens", "500", "--stop-token", "2599"}));
    QVERIFY2(full.code == 0 && full.err.find("context of 64 tokens is full") != std::string::npos, full.err.c_str());
    const Outcome slid = runEngine(predict({"--prompt", "a", "--max-new-tokens", "80", "--min-new-tokens", "80", "--when-full", "slide", "--json"}));
    QCOMPARE(json::parse(slid.out)["new_tokens"].get<int>(), 80);
}

void TestGenerateVerbs::theCacheChangesNothing() {
    const QStringList common = predict({"--prompt", "Hello", "--max-new-tokens", "40", "--temperature", "0", "--json"});
    const json with = json::parse(runEngine(common).out), without = json::parse(runEngine(common + QStringList{"--no-cache"}).out);
    QCOMPARE(with["ids"].dump(), without["ids"].dump());
}

void TestGenerateVerbs::stopTextsAndTokensEndTheText() {
    const QStringList common = predict({"--prompt", "Hello", "--max-new-tokens", "30", "--seed", "9", "--json"});
    const json whole = json::parse(runEngine(common).out);
    const QString text = QString::fromStdString(whole["text"]);
    const QString stop = text.mid(text.size() / 2, 3);
    const json stopped = json::parse(runEngine(common + QStringList{"--stop", "never said", "--stop", stop}).out);
    QCOMPARE(QString::fromStdString(stopped["text"]), text.left(text.indexOf(stop)));
    QCOMPARE(stopped["finish"].get<std::string>(), std::string("stop_text"));
    const int id = whole["ids"][10];
    const json ended = json::parse(runEngine(common + QStringList{"--stop-token", QString::number(id)}).out);
    QVERIFY(ended["new_tokens"].get<int>() <= 10);
    QCOMPARE(ended["finish"].get<std::string>(), std::string("stop_token"));
}

void TestGenerateVerbs::aFileOfPromptsBecomesJsonLines() {
    write("prompts.jsonl", "{\"prompt\": \"Hello world\", \"id\": 7}\n{\"prompt\": \"滚滚长江\"}\n{\"prompt\": \"a\"}\n");
    const QStringList common = predict({"--max-new-tokens", "8", "--seed", "5"});
    const QStringList batch = common + QStringList{"--prompts", path("prompts.jsonl"), "--out", path("r.jsonl"), "--batch-size", "2"};
    const Outcome outcome = runEngine(batch);
    QVERIFY2(outcome.code == 0, outcome.err.c_str());
    const auto lines = linesOf(*readFile(path("r.jsonl").toStdString()));
    QCOMPARE(lines.size(), std::size_t(3));
    QCOMPARE(json::parse(lines[0])["id"].get<int>(), 7);
    const char* prompts[] = {"Hello world", "滚滚长江", "a"};
    for (std::size_t i = 0; i < 3; ++i) { // each as it is alone
        const json row = json::parse(lines[i]);
        QCOMPARE(row["row"].get<std::size_t>(), i + 1);
        QCOMPARE(row["prompt"].get<std::string>(), std::string(prompts[i]));
        const json alone = json::parse(runEngine(common + QStringList{"--prompt", prompts[i], "--json"}).out);
        QCOMPARE(row["text"].get<std::string>(), alone["text"].get<std::string>());
    }
    const Outcome again = runEngine(batch);
    QVERIFY2(again.code == 0 && again.out.find("complete already") != std::string::npos, again.out.c_str());
}

void TestGenerateVerbs::anInterruptedFileGoesOn() {
    std::string prompts;
    for (int i = 0; i < 400; ++i) prompts += "第" + std::to_string(i) + "回\n";
    write("many.txt", prompts);
    const auto command = [&](const char* out) {
        return predict({"--max-new-tokens", "40", "--min-new-tokens", "40", "--prompts", path("many.txt"), "--out", path(out), "--threads", "1", "--batch-size", "4"});
    };
    const auto count = [&] {
        const auto text = readFile(path("cut.jsonl").toStdString());
        return text ? std::count(text->begin(), text->end(), '\n') : 0;
    };
    for (const int signal : {SIGINT, SIGKILL}) {
        const auto before = count();
        QProcess process;
        process.start(CELLOOM_BIN "/celloom-engine", command("cut.jsonl"));
        QTRY_VERIFY_WITH_TIMEOUT(count() > before, 60000 * CELLOOM_TEST_TIME_FACTOR);
        ::kill(static_cast<pid_t>(process.processId()), signal);
        QVERIFY(process.waitForFinished(60000 * CELLOOM_TEST_TIME_FACTOR));
        QVERIFY(count() < 400);
        if (signal != SIGINT) continue;
        QCOMPARE(process.exitCode(), int(protocol::Interrupted));
        QVERIFY(process.readAllStandardError().contains("goes on from there"));
    }
    const Outcome rest = runEngine(command("cut.jsonl")), whole = runEngine(command("whole.jsonl"));
    QVERIFY2(rest.code == 0 && whole.code == 0, (rest.err + whole.err).c_str());
    QCOMPARE(count(), 400);
    QCOMPARE(*readFile(path("cut.jsonl").toStdString()), *readFile(path("whole.jsonl").toStdString()));
}

void TestGenerateVerbs::otherOptionsDoNotMix() {
    write("two.txt", "a\nb\n");
    const QStringList common = predict({"--max-new-tokens", "2", "--prompts", path("two.txt"), "--out", path("two.jsonl")});
    QCOMPARE(runEngine(common).code, 0);
    const Outcome other = runEngine(common + QStringList{"--temperature", "0.3"});
    QCOMPARE(other.code, int(protocol::BadInput));
    QVERIFY2(other.err.find("temperature: 0.8 then, 0.3 now") != std::string::npos, other.err.c_str());
    write("two.txt", "a\nc\n");
    QVERIFY(runEngine(common).err.find("prompts_sha256") != std::string::npos);
}

void TestGenerateVerbs::perplexityOfAFile() { // the numbers behind it are held to PyTorch's by tst_generate
    write("text.txt", "话说天下大势，分久必合，合久必分。");
    const Outcome outcome = runEngine({"perplexity", "--model", m_model, "--device", "cpu", "--text", path("text.txt"), "--json"});
    QVERIFY2(outcome.code == 0, outcome.err.c_str());
    const json result = json::parse(outcome.out);
    QCOMPARE(result["tokens"].get<int>(), 16); // 17 pieces as recorded in sp_bpe_prefix.json; the first has nothing before it
    QCOMPARE(result["bytes"].get<int>(), 51);  // 17 characters of three bytes
    QCOMPARE(result["window"].get<int>(), 64);
    QVERIFY(std::abs(std::log(result["perplexity"].get<double>()) * 16 - result["nll"].get<double>()) < 1e-6);
    QVERIFY(std::abs(result["bits_per_byte"].get<double>() * 51 * std::log(2.0) - result["nll"].get<double>()) < 1e-6);
}

void TestGenerateVerbs::wrongUseIsSaid() {
    QCOMPARE(runEngine(predict({})).code, int(protocol::Usage));
    QCOMPARE(runEngine(predict({"--prompt", "a", "--prompts", "b.txt"})).code, int(protocol::Usage));
    QCOMPARE(runEngine(predict({"--prompts", "b.txt"})).code, int(protocol::Usage));
    const Outcome token = runEngine(predict({"--prompt", "a", "--stop-token", "<no such>"}));
    QVERIFY2(token.code == protocol::BadInput && token.err.find("no token") != std::string::npos, token.err.c_str());
    write("long.txt", "a\n" + std::string(300, 'x') + "\n");
    const Outcome row = runEngine(predict({"--prompts", path("long.txt"), "--out", path("never.jsonl")}));
    QVERIFY2(row.code == protocol::BadInput && row.err.find("row 2") != std::string::npos, row.err.c_str());
    QVERIFY(!QFile::exists(path("never.jsonl")));
}

QTEST_GUILESS_MAIN(TestGenerateVerbs)
#include "tst_generate_verbs.moc"
