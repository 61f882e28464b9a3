// Fine-tuning through the child program: a small base pretrained first, then conversations; killed and resumed, evaluated by generation,
// its template kept, its data previewed.
#include "engine/checkpoint/manifest.h"
#include "engine/text/chat_template.h"
#include "engine/train/checkpoint.h"
#include "models/protocol/protocol.h"
#include "tests/app/run_helper.h"

#include <csignal>
#include <fstream>

using namespace celloom;
using namespace celloom::test;
using nlohmann::json;

namespace {

constexpr const char* kLast = "step-000030";

std::string hashOf(const store::RunFolder& folder, const char* file) {
    const auto hash = sha256OfFile(folder.checkpoints() / kLast / file);
    return hash ? *hash : hash.error().text();
}

} // namespace

class TestFinetune : public QObject {
    Q_OBJECT
    RunWorkspace m_workspace;
    QTemporaryDir m_folder;
    std::string m_base; // a model folder
    store::RunFolder m_reference;

    fs::path at(const char* name) const { return fs::path(m_folder.path().toStdString()) / name; }

    json recipe() const {
        json out{{"kind", "finetune"},
                {"model", {{"source", m_base}, {"weights", m_base}}},
                {"data", {{"train", {at("train.jsonl").string()}}, {"validation", {at("held.jsonl").string()}}, {"packing", true}}},
                {"train", {{"batch_size", 2}, {"sequence_length", 64}, {"max_steps", 30}}},
                {"optimizer", {{"lr", 0.02}, {"weight_decay", 0}}},
                {"evaluate", {{"every_steps", 15}, {"generate", 4}, {"generate_tokens", 8}, {"metrics", {"rouge_l", "accuracy"}}}},
                {"checkpoint", {{"every_steps", 10}}},
                {"threads", 1},
                {"seed", 7}};
        if (recipe::findField("lora.enabled")) out["lora"]["enabled"] = false;
        return out;
    }

    QByteArray verb(const QStringList& arguments, int* code) {
        QProcess process;
        process.start(QStringLiteral(CELLOOM_BIN "/celloom-engine"), arguments);
        if (!process.waitForFinished(300000 * CELLOOM_TEST_TIME_FACTOR)) process.kill();
        *code = process.exitCode();
        const QByteArray messages = process.readAllStandardError();
        if (!messages.isEmpty()) qInfo("%s", messages.constData());
        return process.readAllStandardOutput();
    }

private Q_SLOTS:
    void initTestCase() {
        std::ofstream train(at("train.jsonl")), held(at("held.jsonl"));
        const std::vector<std::string> words{"曹操", "刘备", "关羽", "张飞", "孙权", "赵云", "诸葛亮", "吕布"};
        for (int i = 0; i < 40; ++i)
            train << json{{"question", "请问" + words[static_cast<std::size_t>(i) % words.size()] + std::to_string(i) + "？"}, {"answer", "好"}}.dump() << "\n";
        for (int i = 0; i < 4; ++i) held << json{{"question", "请问" + words[static_cast<std::size_t>(i)] + "？"}, {"answer", "好"}}.dump() << "\n";
        train.close();
        held.close();

        json base = smallRecipe();
        base["model"]["source"] = "internlm2-tiny";
        base["model"]["overrides"] = {"hidden=32", "layers=2", "heads=2", "kv_heads=1", "intermediate=48"};
        base["tokenizer"]["control_symbols"] = {"<|im_start|>", "<|im_end|>"};
        base["train"]["max_steps"] = 4;
        const auto folder = m_workspace.create(base);
        const ChildEnd pretrained = m_workspace.run(folder);
        QVERIFY2(pretrained.code == 0, qPrintable(pretrained.output + pretrained.messages));
        m_base = (folder.checkpoints() / "step-000004").string();

        m_reference = m_workspace.create(recipe());
        const ChildEnd end = m_workspace.run(m_reference);
        QVERIFY2(!end.isKilled && end.code == 0, qPrintable(end.output + end.messages));
    }

    void itLearnsToAnswerAndToStop() {
        const auto answers = events(m_reference, "answers");
        QCOMPARE(answers.size(), std::size_t(2));
        const json last = json::parse(answers.back().data);
        QVERIFY2(last["matches"] == 4 && last["questions"] == 4, answers.back().data.c_str());
        QCOMPARE(last["metrics"]["rouge_l"].get<double>(), 1.0); // equal texts
        const json evaluation = json::parse(events(m_reference, "evaluation").back().data);
        QVERIFY(evaluation["metrics"]["accuracy"].get<double>() > 0.9); // of the answers' tokens
        const auto before = events(m_reference, "base_answers");
        QCOMPARE(before.size(), std::size_t(1));
        QVERIFY2(json::parse(before[0].data)["matches"].get<int>() < 4, before[0].data.c_str());
        QCOMPARE(events(m_reference, "answers_comparison").size(), std::size_t(1));
        const auto rows = exactRows(m_reference);
        QVERIFY(rows.at({"train/loss", 30}) < rows.at({"train/loss", 1}) / 4);
    }

    void whatWasFoundIsTold() {
        const json data = json::parse(events(m_reference, "conversations").at(0).data);
        QCOMPARE(data["files"][0]["format"].get<std::string>(), std::string("alpaca (question, answer), JSON Lines"));
        QCOMPARE(data["files"][0]["encoding"].get<std::string>(), std::string("UTF-8"));
        QCOMPARE(data["conversations"].get<int>(), 40);
        QCOMPARE(data["held_out"].get<int>(), 4);
        QCOMPARE(json::parse(events(m_reference, "template").at(0).data)["template"].get<std::string>(), std::string("internlm2"));
        QVERIFY(events(m_reference, "template_fallback").empty());
        QCOMPARE(json::parse(events(m_reference, "samples").at(0).data)["conversations"].get<int>(), 40);
    }

    void theTokenizerIsTheBasesAndTheTemplateIsKeptWithTheCheckpoint() {
        const auto checkpoint = m_reference.checkpoints() / kLast;
        QCOMPARE(*sha256OfFile(checkpoint / "tokenizer.model"), *sha256OfFile(fs::path(m_base) / "tokenizer.model"));
        const auto stored = engine::storedChatTemplate(checkpoint);
        QVERIFY(stored && *stored == engine::findChatTemplate("internlm2"));
        const json config = json::parse(*readFile(checkpoint / "tokenizer_config.json"));
        QVERIFY(config["chat_template"].get<std::string>().find("<|im_start|>") != std::string::npos);
        QVERIFY(engine::verifyManifest(checkpoint));
    }

    void killedAndResumedEqualsTheUninterruptedRun_data() {
        QTest::addColumn<QString>("killAt");
        QTest::newRow("in a step") << "step:17";
        QTest::newRow("in a checkpoint's write") << "checkpoint-write:2";
        QTest::newRow("before the first checkpoint") << "before-first-checkpoint:3";
    }
    void killedAndResumedEqualsTheUninterruptedRun() {
        QFETCH(QString, killAt);
        const auto folder = m_workspace.create(recipe());
        QVERIFY(m_workspace.run(folder, killAt).isKilled);
        const ChildEnd resumed = m_workspace.run(folder);
        QVERIFY2(!resumed.isKilled && resumed.code == 0, qPrintable(resumed.output + resumed.messages));
        QCOMPARE(hashOf(folder, "model.safetensors"), hashOf(m_reference, "model.safetensors"));
        QCOMPARE(hashOf(folder, "trainer.safetensors"), hashOf(m_reference, "trainer.safetensors"));
        const auto rows = exactRows(folder), expected = exactRows(m_reference);
        QVERIFY(rows == expected); // bit for bit
    }

    void aChangedTemplateIsRefusedOnResume() {
        const auto folder = m_workspace.create(recipe());
        QVERIFY(m_workspace.run(folder, "step:17").isKilled);
        json changed = recipe();
        changed["data"]["template"] = "chatml";
        QVERIFY(writeFileAtomically(folder.recipe(), changed.dump()));
        const ChildEnd end = m_workspace.run(folder);
        QCOMPARE(end.code, int(protocol::BadInput));
        QVERIFY2(end.output.contains("data.template: was auto"), qPrintable(end.output));
    }

    void badInputIsOneSentenceWithPlaceAndHint_data() {
        QTest::addColumn<QString>("change"); // a JSON merge patch
        QTest::addColumn<QString>("says");
        QTest::newRow("a chat format that it is not") << R"({"data": {"format": "messages"}})" << "data.format \"alpaca\"";
        QTest::newRow("too short for any") << R"({"train": {"sequence_length": 3}, "data": {"truncation": "drop"}})" << "No conversation is left";
        QTest::newRow("a column that is not there") << R"({"data": {"columns": ["answer=reply"]}})" << "row 1 lacks \"reply\"";
    }
    void badInputIsOneSentenceWithPlaceAndHint() {
        QFETCH(QString, change);
        QFETCH(QString, says);
        json patched = recipe();
        patched.merge_patch(json::parse(change.toStdString()));
        const ChildEnd end = m_workspace.run(m_workspace.create(patched));
        QCOMPARE(end.code, int(protocol::BadInput));
        QVERIFY2((end.output + end.messages).contains(says), qPrintable(end.output + end.messages));
    }

    void predictAsksThroughTheStoredTemplate() {
        const QString model = QString::fromStdString((m_reference.checkpoints() / kLast).string());
        const QStringList common{"--json", "predict", "--model", model, "--temperature", "0", "--max-new-tokens", "8"};
        int code = -1;
        const auto textOf = [&](const QStringList& more) { return json::parse(verb(common + more, &code).toStdString()); };
        const json asked = textOf({"--chat", "--prompt", "请问曹操？"});
        QCOMPARE(code, 0);
        QCOMPARE(asked["text"].get<std::string>(), std::string("好"));
        QCOMPARE(asked["finish"].get<std::string>(), std::string("stop_token"));
        std::ofstream(at("messages.json")) << R"([{"role": "user", "content": "请问曹操？"}])";
        QVERIFY(textOf({"--messages", QString::fromStdString(at("messages.json").string())}) ["ids"] == asked["ids"]);
        verb(common + QStringList{"--chat", "--prompt", ""}, &code);
        QCOMPARE(code, int(protocol::BadInput));
        verb(common + QStringList{"--chat", "--prompt", "x", "--template", "none"}, &code);
        QCOMPARE(code, int(protocol::BadInput));
    }

    void previewShowsTheFirstBatchOfTheRun() {
        QVERIFY(writeFileAtomically(at("recipe.json"), recipe().dump()));
        int code = -1;
        const QByteArray output = verb({"--json", "data", "preview", QString::fromStdString(at("recipe.json").string())}, &code);
        QCOMPARE(code, 0);
        const json preview = json::parse(output.toStdString());
        QCOMPARE(preview["template"]["name"].get<std::string>(), std::string("internlm2"));
        QCOMPARE(preview["samples"]["conversations"].get<int>(), 40);
        QCOMPARE(preview["batch"]["rows"].size(), std::size_t(2));
        const json& row = preview["batch"]["rows"][0];
        QVERIFY(row["segments"].back().get<int>() >= 1); // packed
        std::size_t learned = 0;
        for (std::size_t i = 0; i < row["ids"].size(); ++i) {
            if (row["segments"][i] != row["segments"][i ? i - 1 : 0]) QCOMPARE(row["positions"][i].get<int>(), 0);
            if (row["labels"][i] == -100) continue;
            ++learned;
            QVERIFY(row["labels"][i] == row["ids"][i]);
            const auto piece = row["pieces"][i].get<std::string>();
            QVERIFY2(piece == "好" || piece == "<|im_end|>", piece.c_str());
        }
        QCOMPARE(learned, std::size_t(2 * (row["segments"].back().get<int>() + 1)));
        const QByteArray text = verb({"data", "preview", QString::fromStdString(at("recipe.json").string()), "--rows", "1"}, &code);
        QCOMPARE(code, 0);
        QVERIFY2(text.contains("⟦好<|im_end|>⟧") && text.contains("alpaca (question, answer)"), text.constData());
    }
};

QTEST_GUILESS_MAIN(TestFinetune)
#include "tst_finetune.moc"
