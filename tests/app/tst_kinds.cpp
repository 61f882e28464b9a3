// Runs of kind evaluate and predict through the child program: their numbers against those of training and of the verbs, their events, their files.
#include "engine/checkpoint/safetensors.h"
#include "models/protocol/protocol.h"
#include "tests/app/run_helper.h"
#include "tests/app/verb_helper.h"

#include <ATen/ops/randint.h>

#include <cmath>
#include <fstream>

using namespace celloom;
using namespace celloom::test;
using nlohmann::json;

namespace {

const std::string kSmallBase = CELLOOM_SOURCE "/resources/models/internlm-small-sanguo";
const std::string kHeldOut = CELLOOM_SOURCE "/resources/instructions/closing-mark-held-out.jsonl";

std::map<std::string, double> latest(const store::RunFolder& folder) {
    std::map<std::string, double> out;
    const auto reader = store::RunReader::open(folder.database());
    if (!reader) qFatal("%s", reader.error().text().c_str());
    const auto rows = (*reader)->latest();
    if (!rows) qFatal("%s", rows.error().text().c_str());
    for (const store::MetricRow& row : *rows) out[row.name] = row.value;
    return out;
}

std::vector<json> linesOf(const fs::path& path) {
    std::vector<json> out;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) out.push_back(json::parse(line));
    return out;
}

} // namespace

class TestKinds : public QObject {
    Q_OBJECT
    RunWorkspace m_workspace;
    QTemporaryDir m_folder;

    fs::path at(const char* name) const { return fs::path(m_folder.path().toStdString()) / name; }

    store::RunFolder done(const json& recipe) {
        const auto folder = m_workspace.create(recipe);
        const ChildEnd end = m_workspace.run(folder);
        if (end.isKilled || end.code != 0) qFatal("%s%s", qPrintable(end.output), qPrintable(end.messages));
        return folder;
    }
    static json evaluation(const std::string& weights) {
        return {{"kind", "evaluate"}, {"model", {{"weights", weights}}}, {"train", {{"batch_size", 4}, {"sequence_length", 64}}}, {"threads", 1}};
    }
    json prediction() const {
        return {{"kind", "predict"},
                {"model", {{"weights", kSmallBase}}},
                {"predict", {{"input", at("prompts.txt").string()}, {"max_new_tokens", 8}, {"batch_size", 2}, {"seed", 5}}},
                {"threads", 1}};
    }

private Q_SLOTS:
    void initTestCase() { std::ofstream(at("prompts.txt")) << "却说曹操\n玄德曰\n孔明\n次日\n忽报\n"; }

    void anEvaluationGivesTheLossThatTrainingMeasured_data() {
        QTest::addColumn<QString>("data");
        QTest::newRow("validation files") << "{}";
        QTest::newRow("the held-out part") << R"({"data": {"validation": [], "validation_fraction": 0.1, "documents": "paragraph"}})";
    }
    void anEvaluationGivesTheLossThatTrainingMeasured() {
        QFETCH(QString, data);
        json recipe = smallRecipe();
        recipe["train"]["max_steps"] = 4;
        recipe.merge_patch(json::parse(data.toStdString()));
        const auto trained = done(recipe);
        recipe["kind"] = "evaluate";
        recipe["model"]["weights"] = trained.path.string(); // a run: its newest checkpoint
        const auto measured = done(recipe);
        QCOMPARE(latest(measured).at("eval/loss"), latest(trained).at("eval/loss"));
        QVERIFY(!latest(measured).contains("train/loss"));
        const json event = json::parse(events(measured, "evaluation").at(0).data);
        QCOMPARE(event["loss"].get<double>(), latest(trained).at("eval/loss"));
        QVERIFY(std::abs(std::log(event["perplexity"].get<double>()) - event["loss"].get<double>()) < 1e-9);
        QCOMPARE(events(measured, "finished").size(), std::size_t(1));
        const store::Progress end = progress(measured);
        QVERIFY(end.state == store::RunState::Finished && end.step == 3 && end.totalSteps == 3); // evaluate.max_batches
        QVERIFY(!fs::exists(measured.checkpoints()) && !measured.hasCheckpoint());
    }

    void tokenFilesAreMeasuredToo() {
        std::map<std::string, at::Tensor> tensors{{"input_ids", at::randint(0, 3200, {6, 32}, at::kLong)}};
        QVERIFY(engine::writeSafetensors(at("rows.safetensors"), tensors));
        json recipe = evaluation(kSmallBase);
        recipe["data"]["validation"] = {at("rows.safetensors").string()};
        const auto folder = done(recipe);
        const double loss = latest(folder).at("eval/loss");
        QVERIFY2(loss > std::log(3200) - 1, qPrintable(QString::number(loss))); // noise cannot be foretold: about ln V or worse
        QCOMPARE(json::parse(events(folder, "measured_data").at(0).data)["sequences"].get<int>(), 6);
        QCOMPARE(json::parse(events(folder, "evaluation").at(0).data)["tokens"].get<int>(), 6 * 31);
    }

    void theVerbMeasuresWhatItIsAskedFor() {
        const QString held = QString::fromStdString(kHeldOut), base = QString::fromStdString(kSmallBase);
        const QStringList arguments{"--json", "evaluate", "--model", base, "--data", held, "--template", "plain", "--sequence-length", "64", "--threads", "1", "--device", "cpu"};
        const auto verb = app::testing::runEngine(arguments + QStringList{"--metrics", "accuracy,top_5_accuracy"});
        QVERIFY2(verb.code == 0, verb.err.c_str());
        const json measured = json::parse(verb.out);
        json recipe = evaluation(kSmallBase);
        recipe["data"] = {{"validation", {kHeldOut}}, {"template", "plain"}};
        recipe["evaluate"] = {{"metrics", {"accuracy", "top_5_accuracy"}}};
        const auto run = latest(done(recipe));
        for (const char* name : {"loss", "accuracy", "top_5_accuracy"})
            QVERIFY2(std::abs(measured.at(name).get<double>() - run.at(std::string("eval/") + name)) < 1e-5, verb.out.c_str()); // in batches of another size
        QVERIFY(run.at("eval/top_5_accuracy") >= run.at("eval/accuracy"));
        const auto refused = app::testing::runEngine(arguments + QStringList{"--metrics", "accurate"});
        QVERIFY2(refused.code == int(protocol::BadInput) && refused.err.find("accurate") != std::string::npos, refused.err.c_str());
    }

    void questionsAreAnsweredWithAnAdapterBesideTheBase() {
        json tuning{{"kind", "finetune"},
                    {"model", {{"source", kSmallBase}, {"weights", kSmallBase}}},
                    {"data", {{"train", {CELLOOM_SOURCE "/resources/instructions/closing-mark-train.jsonl"}}, {"validation", {kHeldOut}}, {"template", "plain"}}},
                    {"lora", {{"targets", {"q_proj", "v_proj"}}}},
                    {"train", {{"batch_size", 8}, {"sequence_length", 64}, {"max_steps", 25}}},
                    {"optimizer", {{"lr", 0.01}}},
                    {"evaluate", {{"every_steps", 0}, {"generate", 4}, {"generate_tokens", 4}}},
                    {"threads", 1}};
        const auto tuned = done(tuning);
        json recipe = evaluation(kSmallBase);
        recipe["train"] = {{"batch_size", 8}, {"sequence_length", 64}};
        recipe["data"] = {{"validation", {kHeldOut}}, {"template", "plain"}};
        recipe["evaluate"] = {{"generate", 4}, {"generate_tokens", 4}};
        const auto base = done(recipe);
        recipe["model"]["adapters"] = {tuned.path.string()};
        const auto beside = done(recipe);
        recipe["model"]["adapters"] = json::array();
        recipe["model"]["weights"] = tuned.path.string(); // a run that trained an adapter: its base with it
        const auto own = done(recipe);
        QCOMPARE(latest(beside).at("eval/loss"), latest(tuned).at("eval/loss"));
        QCOMPARE(latest(own).at("eval/loss"), latest(tuned).at("eval/loss"));
        QVERIFY(latest(beside).at("eval/loss") < latest(base).at("eval/loss") - 1);
        QCOMPARE(latest(beside).at("eval/exact_match"), latest(tuned).at("eval/exact_match"));
        QCOMPARE(json::parse(events(base, "answers").at(0).data)["questions"].get<int>(), 4);
    }

    void aPredictionIsWhatTheVerbWrites() {
        const auto folder = done(prediction());
        const auto lines = linesOf(folder.path / "predictions.jsonl");
        QCOMPARE(lines.size(), std::size_t(5));
        QCOMPARE(lines[1]["prompt"].get<std::string>(), std::string("玄德曰"));
        QVERIFY(!lines[1]["text"].get<std::string>().empty());
        const QString out = QString::fromStdString(at("verb.jsonl").string());
        const auto verb = app::testing::runEngine({"predict", "--model", QString::fromStdString(kSmallBase), "--prompts", QString::fromStdString(at("prompts.txt").string()),
                                                   "--out", out, "--max-new-tokens", "8", "--batch-size", "2", "--seed", "5", "--threads", "1", "--device", "cpu"});
        QVERIFY2(verb.code == 0, verb.err.c_str());
        QCOMPARE(*readFile(out.toStdString()), *readFile(folder.path / "predictions.jsonl"));
        const json event = json::parse(events(folder, "predictions").at(0).data);
        QVERIFY(event["rows"] == 5 && event["prompts"] == 5);
        const store::Progress end = progress(folder);
        QVERIFY(end.state == store::RunState::Finished && end.step == 5 && end.totalSteps == 5);
    }

    void aPredictionGoesOnAfterItsLastText() {
        const auto whole = done(prediction()), cut = m_workspace.create(prediction());
        const std::string text = *readFile(whole.path / "predictions.jsonl");
        const std::size_t second = text.find('\n', text.find('\n') + 1) + 1;
        QVERIFY(writeFileAtomically(cut.path / "predictions.jsonl", text.substr(0, second + 9))); // and a line that a kill cut off
        fs::copy_file(whole.path / "predictions.jsonl.settings.json", cut.path / "predictions.jsonl.settings.json");
        const ChildEnd end = m_workspace.run(cut);
        QVERIFY2(end.code == 0, qPrintable(end.output + end.messages));
        QCOMPARE(*readFile(cut.path / "predictions.jsonl"), text);
        QCOMPARE(json::parse(events(cut, "predictions").at(0).data)["new_rows"].get<int>(), 3);
    }

    void questionsOfAnInstructionFileAreAskedAndCompared() {
        json recipe = prediction();
        recipe["predict"] = {{"input", kHeldOut}, {"max_new_tokens", 4}, {"temperature", 0}, {"batch_size", 16}};
        recipe["data"]["template"] = "plain";
        const auto folder = done(recipe);
        const auto lines = linesOf(folder.path / "predictions.jsonl");
        const auto matches = std::count_if(lines.begin(), lines.end(), [](const json& line) { return line["matches"].get<bool>(); });
        QVERIFY(lines.size() >= 50 && !lines[0]["expected"].get<std::string>().empty());
        const json event = json::parse(events(folder, "predictions").at(0).data);
        QVERIFY(event["questions"] == lines.size() && event["matches"] == matches);
    }

    void wrongCombinationsAreRefusedWithPlaceAndHint_data() {
        QTest::addColumn<QString>("recipe"); // on top of an evaluation of the small base
        QTest::addColumn<QString>("says");
        QTest::newRow("a preset") << R"({"model": {"weights": "baichuan-tiny"}})" << "a preset, which has no weights";
        QTest::newRow("a graph without weights") << R"({"model": {"weights": "@SOURCE@/docs"}})" << "docs";
        QTest::newRow("files that are not there") << R"({"data": {"validation": ["/nowhere/a.txt"]}})" << "data.validation";
        QTest::newRow("words that the model does not have") << R"({"data": {"validation": ["@TOKENS@"]}})" << "99999";
        QTest::newRow("conversations that are too long") << R"({"data": {"validation": ["@HELD@"], "truncation": "drop"}, "train": {"sequence_length": 2}})" << "Nothing is left to measure on";
        QTest::newRow("prompts that are not there") << R"({"kind": "predict", "predict": {"input": "/nowhere.txt"}})" << "/nowhere.txt";
        QTest::newRow("a prompt without text") << R"({"kind": "predict", "predict": {"input": "@ROWS@"}})" << "row 2";
        QTest::newRow("no adapter") << R"({"model": {"adapters": ["@SOURCE@"]}})" << "adapter_config.json";
    }
    void wrongCombinationsAreRefusedWithPlaceAndHint() {
        QFETCH(QString, recipe);
        QFETCH(QString, says);
        std::map<std::string, at::Tensor> tensors{{"input_ids", at::randint(99999, 100000, {2, 8}, at::kLong)}};
        QVERIFY(engine::writeSafetensors(at("foreign.safetensors"), tensors));
        std::ofstream(at("rows.jsonl")) << "{\"prompt\": \"a\"}\n{\"text\": \"b\"}\n";
        recipe.replace("@SOURCE@", CELLOOM_SOURCE).replace("@HELD@", QString::fromStdString(kHeldOut));
        recipe.replace("@TOKENS@", QString::fromStdString(at("foreign.safetensors").string())).replace("@ROWS@", QString::fromStdString(at("rows.jsonl").string()));
        json patched = evaluation(kSmallBase);
        patched["data"]["validation"] = {CELLOOM_SOURCE "/resources/corpora/sanguo/120.txt"};
        patched.merge_patch(json::parse(recipe.toStdString()));
        const ChildEnd end = m_workspace.run(m_workspace.create(patched));
        QCOMPARE(end.code, int(protocol::BadInput));
        QVERIFY2((end.output + end.messages).contains(says), qPrintable(end.output + end.messages));
    }
};

QTEST_GUILESS_MAIN(TestKinds)
#include "tst_kinds.moc"
