// Instruction files and what becomes of them: formats told apart, rows that are wrong named, masks, truncation, packing, padding.
#include "engine/data/chat_dataset.h"
#include "engine/data/prepare.h"
#include "engine/exec/runtime.h"
#include "engine/train/model.h"
#include "models/base/files.h"
#include "models/families/families.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

#include <QTemporaryDir>
#include <QTest>
#include <cmath>
#include <fstream>

using namespace celloom;
using namespace celloom::engine;
namespace fs = std::filesystem;

namespace {

using Numbers = std::vector<std::int64_t>;

/// Spells text byte by byte: id 100 + byte. bos 1, eos 2 and, as in case 6, no pad of its own.
class SpellingTokenizer : public Tokenizer {
public:
    std::vector<std::int64_t> encode(const std::string& text) const override {
        std::vector<std::int64_t> ids;
        for (const char c : text) ids.push_back(100 + static_cast<unsigned char>(c));
        return ids;
    }
    std::string decode(const std::vector<std::int64_t>&) const override { return {}; }
    std::string piece(std::int64_t) const override { return {}; }
    bool isByte(std::int64_t) const override { return false; }
    int vocabSize() const override { return 400; }
    std::int64_t bos() const override { return 1; }
    std::int64_t eos() const override { return 2; }
    std::int64_t pad() const override { return -1; }
    std::int64_t specialId(const std::string& name) const override { return name == "<reserved_102>" ? 3 : name == "<reserved_103>" ? 4 : -1; }
};

const SpellingTokenizer kTokenizer;

/// Baichuan's format: [3] question [4] answer [2].
const ChatFormat& format() {
    static const ChatFormat one(*findChatTemplate("baichuan"), kTokenizer);
    return one;
}

Numbers numbers(const at::Tensor& tensor) {
    const at::Tensor flat = tensor.to(at::kLong).contiguous().view({-1});
    return {flat.data_ptr<std::int64_t>(), flat.data_ptr<std::int64_t>() + flat.numel()};
}

Conversation asked(const std::string& question, const std::string& answer) { return {{{ChatRole::User, question}, {ChatRole::Assistant, answer}}, 0, 1}; }

std::unique_ptr<ChatDataset> rowsOf(const std::vector<Conversation>& conversations, const ChatDataOptions& options) {
    auto rows = ChatDataset::create(conversations, format(), options);
    if (!rows) qFatal("%s", rows.error().text().c_str());
    return std::move(*rows);
}

constexpr std::int64_t X = -100;
std::int64_t letter(char c) { return 100 + static_cast<unsigned char>(c); }

graph::ExpandedModel smallModel(const char* preset = "baichuan-tiny") {
    graph::Expansion expansion = graph::expand(*families::buildPreset(preset), {{"vocab", std::int64_t(400)}, {"hidden", std::int64_t(16)}, {"layers", std::int64_t(2)}, {"heads", std::int64_t(2)}, {"intermediate", std::int64_t(24)}});
    if (!expansion.ok()) qFatal("%s", expansion.firstError().text().c_str());
    return std::move(expansion.model);
}

std::unique_ptr<Network> smallNetwork(const char* preset = "baichuan-tiny") {
    graph::ExpandedModel model = smallModel(preset);
    recipe::TreatmentTable plain;
    plain.cells.resize(model.cells.size());
    return std::move(*Network::create(std::move(model), plain, {.seed = 3}));
}

} // namespace

class TestInstructions : public QObject {
    Q_OBJECT
    QTemporaryDir m_folder;
    fs::path file(const QByteArray& content, const char* name = "rows.jsonl") {
        const fs::path path = fs::path(m_folder.path().toStdString()) / name;
        std::ofstream(path, std::ios::binary) << content.toStdString();
        return path;
    }
    Result<InstructionSet> read(const QByteArray& content, InstructionFormat format = InstructionFormat::Auto, const InstructionColumns& columns = {}) {
        return readInstructions({file(content)}, format, columns, "auto");
    }

private Q_SLOTS:
    void initTestCase() { setThreads(1); }

    void eachFormatIsToldByItsKeys_data() {
        QTest::addColumn<QByteArray>("content");
        QTest::addColumn<QString>("found");
        QTest::newRow("Alpaca, JSON Lines") << QByteArray(R"({"instruction": "Q", "input": "I", "output": "A"})") << "alpaca (instruction, input, output), JSON Lines";
        QTest::newRow("Alpaca, JSON") << QByteArray(R"([{"instruction": "Q\nI", "output": "A"}])") << "alpaca (instruction, output), JSON";
        QTest::newRow("prompt and response") << QByteArray(R"({"prompt": "Q\nI", "response": "A"})") << "alpaca (prompt, response), JSON Lines";
        QTest::newRow("question and answer") << QByteArray(R"({"id": 7, "question": "Q\nI", "answer": "A"})") << "alpaca (question, answer), JSON Lines";
        QTest::newRow("ShareGPT") << QByteArray(R"({"conversations": [{"from": "human", "value": "Q\nI"}, {"from": "gpt", "value": "A"}]})") << "sharegpt, JSON Lines";
        QTest::newRow("messages") << QByteArray("\n" R"({"messages": [{"role": "user", "content": "Q\nI"}, {"role": "assistant", "content": "A"}]})" "\r\n\n") << "messages, JSON Lines";
    }
    void eachFormatIsToldByItsKeys() {
        QFETCH(QByteArray, content);
        QFETCH(QString, found);
        const auto set = read(content);
        QVERIFY2(set, set ? "" : set.error().text().c_str());
        QCOMPARE(QString::fromStdString(set->formats.at(0)), found);
        QCOMPARE(set->conversations.size(), std::size_t(1));
        QVERIFY(set->conversations[0].messages == asked("Q\nI", "A").messages);
    }

    void systemMessagesAndSeveralTurnsAreKept() {
        const auto set = read(R"({"system": "S", "conversations": [{"from": "human", "value": "Q1"}, {"from": "gpt", "value": "A1"}, {"from": "user", "value": "Q2"}, {"from": "assistant", "value": ""}]})");
        QVERIFY2(set, set ? "" : set.error().text().c_str());
        const std::vector<ChatMessage> expected{{ChatRole::System, "S"}, {ChatRole::User, "Q1"}, {ChatRole::Assistant, "A1"}, {ChatRole::User, "Q2"}, {ChatRole::Assistant, ""}};
        QVERIFY(set->conversations[0].messages == expected);
    }

    void theHistoryOfAnAlpacaRowIsTheRoundsBefore() {
        const auto set = read(R"({"instruction": "Q3", "input": "", "output": "A3", "system": "S", "history": [["Q1", "A1"], ["Q2", "A2"]]})" "\n"
                              R"({"instruction": "Q", "output": "A", "history": []})" "\n" R"({"instruction": "Q", "output": "A", "history": null})");
        QVERIFY2(set, set ? "" : set.error().text().c_str());
        const std::vector<ChatMessage> expected{{ChatRole::System, "S"},     {ChatRole::User, "Q1"}, {ChatRole::Assistant, "A1"}, {ChatRole::User, "Q2"},
                                                {ChatRole::Assistant, "A2"}, {ChatRole::User, "Q3"}, {ChatRole::Assistant, "A3"}};
        QVERIFY(set->conversations[0].messages == expected);
        for (const int row : {1, 2}) QCOMPARE(set->conversations[std::size_t(row)].messages.size(), std::size_t(2));
    }

    void columnsOfOtherNamesCanBeGiven() {
        const auto columns = InstructionColumns::parse({"question=问", "answer=答", "system=角色"});
        QVERIFY(columns);
        const auto set = read(R"({"问": "Q", "答": "A", "角色": "S"})", InstructionFormat::Auto, *columns);
        QVERIFY2(set, set ? "" : set.error().text().c_str());
        QVERIFY(set->conversations[0].messages == (std::vector<ChatMessage>{{ChatRole::System, "S"}, {ChatRole::User, "Q"}, {ChatRole::Assistant, "A"}}));
        for (const std::string bad : {"question", "question=", "frage=a", "=b"}) QVERIFY(!InstructionColumns::parse({bad}));
        QVERIFY(!InstructionColumns::parse({"answer=a", "answer=b"}));
    }

    void badRowsAreNamedAndNothingIsImported() { // cases.md 3
        const QByteArray good = R"({"instruction": "Q", "output": "A"})" "\n";
        const auto set = read(good + good + R"({"instruction": "Q"})" "\n" + good + "{\"instruction\": \n" + good);
        QVERIFY(!set);
        const QString text = QString::fromStdString(set.error().text());
        for (const char* part : {"rows.jsonl", "row 3 lacks \"output\"", "row 5 is not valid JSON", "Nothing was imported"}) QVERIFY2(text.contains(part), qPrintable(text));
    }

    void theFittingFormatIsSuggested_data() { // cases.md 3: a chat file opened as instruction and answer
        QTest::addColumn<QByteArray>("content");
        QTest::addColumn<int>("opened");
        QTest::addColumn<QString>("suggested");
        const QByteArray chat = R"({"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]})";
        const QByteArray share = R"({"conversations": [{"from": "human", "value": "Q"}, {"from": "gpt", "value": "A"}]})";
        const QByteArray alpaca = R"({"instruction": "Q", "output": "A"})";
        QTest::newRow("messages as Alpaca") << chat << int(InstructionFormat::Alpaca) << "data.format \"messages\"";
        QTest::newRow("ShareGPT as Alpaca") << share << int(InstructionFormat::Alpaca) << "data.format \"sharegpt\"";
        QTest::newRow("Alpaca as messages") << alpaca << int(InstructionFormat::Messages) << "data.format \"alpaca\"";
        QTest::newRow("messages as ShareGPT") << chat << int(InstructionFormat::ShareGpt) << "data.format \"messages\"";
    }
    void theFittingFormatIsSuggested() {
        QFETCH(QByteArray, content);
        QFETCH(int, opened);
        QFETCH(QString, suggested);
        const auto set = read(content, InstructionFormat(opened));
        QVERIFY(!set);
        const QString text = QString::fromStdString(set.error().text());
        QVERIFY2(text.contains(suggested) && text.contains("row 1 lacks"), qPrintable(text));
    }

    void rowsThatCannotBeAreNamed_data() {
        QTest::addColumn<QByteArray>("content");
        QTest::addColumn<QString>("says");
        QTest::newRow("number as answer") << QByteArray(R"({"instruction": "Q", "output": 3})") << "has the number 3 as \"output\"";
        QTest::newRow("null answer") << QByteArray(R"({"instruction": "Q", "output": null})") << "lacks \"output\"";
        QTest::newRow("a list as row") << QByteArray("[[1]]") << "known";
        QTest::newRow("unknown keys") << QByteArray(R"({"foo": "a", "bar": "b"})") << "the keys \"bar\", \"foo\"";
        QTest::newRow("a role that is none") << QByteArray(R"({"messages": [{"role": "tool", "content": "x"}]})") << "from \"tool\"";
        QTest::newRow("no content") << QByteArray(R"({"messages": [{"role": "user"}]})") << "lacks \"content\", message 1";
        QTest::newRow("two questions") << QByteArray(R"({"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]})") << "message 2";
        QTest::newRow("no answer at the end") << QByteArray(R"({"messages": [{"role": "user", "content": "a"}]})") << "ends with a question";
        QTest::newRow("no advice about columns") << QByteArray(R"({"messages": [{"role": "assistant", "content": "a"}]})") << "Correct these rows";
        QTest::newRow("history that is text") << QByteArray(R"({"instruction": "Q", "output": "A", "history": "x"})") << "as \"history\", expected a list";
        QTest::newRow("half a round") << QByteArray(R"({"instruction": "Q", "output": "A", "history": [["a", "b"], ["c"]]})") << "round 2 of \"history\"";
        QTest::newRow("an empty question") << QByteArray(R"({"instruction": "", "output": "A"})") << "empty question";
        QTest::newRow("nothing") << QByteArray(" \n") << "holds nothing";
        QTest::newRow("an empty list") << QByteArray("[]") << "empty list";
        QTest::newRow("too deep") << QByteArray(R"({"instruction": )") + QByteArray(100, '[') + QByteArray(100, ']') + "}" << "deep";
    }
    void rowsThatCannotBeAreNamed() {
        QFETCH(QByteArray, content);
        QFETCH(QString, says);
        const auto set = read(content);
        QVERIFY(!set);
        QVERIFY2(QString::fromStdString(set.error().text()).contains(says), set.error().text().c_str());
    }

    void everyEncodingImportsIdentically() { // cases.md 2
        const QString rows = QStringLiteral("{\"instruction\": \"你好\", \"output\": \"好\"}\n{\"instruction\": \"再见\", \"output\": \"再见\"}\n");
        QByteArray utf16("\xFF\xFE");
        utf16.append(reinterpret_cast<const char*>(rows.utf16()), rows.size() * 2);
        QByteArray gb = rows.toUtf8(); // 你好 = C4 E3 BA C3, 再见 = D4 D9 BC FB, 好 = BA C3
        gb.replace("你好", "\xC4\xE3\xBA\xC3").replace("再见", "\xD4\xD9\xBC\xFB").replace("好", "\xBA\xC3");
        const auto plain = read(rows.toUtf8());
        QVERIFY(plain);
        const std::pair<QByteArray, const char*> encoded[] = {{"\xEF\xBB\xBF" + rows.toUtf8(), "UTF-8 with BOM"}, {utf16, "UTF-16LE"}, {gb, "GB 18030"}};
        for (const auto& [bytes, name] : encoded) {
            const auto set = read(bytes);
            QVERIFY2(set, name);
            QCOMPARE(set->files[0].encoding, std::string(name));
            QCOMPARE(set->conversations.size(), std::size_t(2));
            for (std::size_t i = 0; i < 2; ++i) QVERIFY(set->conversations[i].messages == plain->conversations[i].messages);
        }
        const auto bad = read(QByteArray("{\"instruction\": \"") + "\xFF\xFF" + "\"}");
        QVERIFY(!bad);
        QVERIFY2(bad.error().text().find("byte 17") != std::string::npos, bad.error().text().c_str());
    }

    void onlyAnswersAndTheirEndsAreLearned() {
        const auto rows = rowsOf({asked("ab", "xy")}, {});
        QCOMPARE(numbers(rows->get(0).inputIds), (Numbers{3, letter('a'), letter('b'), 4, letter('x'), letter('y'), 2}));
        QCOMPARE(numbers(rows->get(0).labels), (Numbers{X, X, X, X, letter('x'), letter('y'), 2}));
        ChatDataOptions all;
        all.masksPrompt = false;
        QCOMPARE(numbers(rowsOf({asked("ab", "xy")}, all)->get(0).labels), (Numbers{X, letter('a'), letter('b'), 4, letter('x'), letter('y'), 2}));
    }

    void aSampleExactlyAsLongAsTheSequenceKeepsItsAnswerLabels_data() { addPolicies(); }
    void aSampleExactlyAsLongAsTheSequenceKeepsItsAnswerLabels() { // cases.md 4
        QFETCH(int, policy);
        for (const bool packs : {false, true}) {
            const auto rows = rowsOf({asked("ab", "xy")}, {.sequenceLength = 7, .truncation = Truncation(policy), .packs = packs});
            QCOMPARE(rows->size(), std::int64_t(1));
            QCOMPARE(numbers(rows->get(0).labels), (Numbers{X, X, X, X, letter('x'), letter('y'), 2}));
            QCOMPARE(rows->statistics().truncated, std::int64_t(0));
        }
    }

    void aPromptLongerThanTheSequenceIsCountedAndInventsNothing_data() { addPolicies(); }
    void aPromptLongerThanTheSequenceIsCountedAndInventsNothing() { // cases.md 5
        QFETCH(int, policy);
        const Conversation longOne = asked("abcdefghij", "xy");
        const auto rows = rowsOf({longOne, asked("a", "z")}, {.sequenceLength = 6, .truncation = Truncation(policy)});
        const ChatStatistics& s = rows->statistics();
        QCOMPARE(s.conversations, std::int64_t(2));
        QCOMPARE(s.longest, std::int64_t(15));
        const Numbers first = numbers(rows->get(0).inputIds);
        switch (Truncation(policy)) {
        case Truncation::KeepAnswer: // marks and answer whole, the newest end of the question
            QCOMPARE(first, (Numbers{3, letter('j'), 4, letter('x'), letter('y'), 2}));
            QCOMPARE(s.truncated, std::int64_t(1));
            break;
        case Truncation::CutStart:
            QCOMPARE(first, (Numbers{letter('i'), letter('j'), 4, letter('x'), letter('y'), 2}));
            break;
        case Truncation::CutEnd: { // no answer is left, and no end token is invented
            QCOMPARE(s.untrainable, std::int64_t(1));
            QCOMPARE(rows->size(), std::int64_t(1)); // left out, as chosen …
            const auto kept = rowsOf({longOne}, {.sequenceLength = 6, .truncation = Truncation::CutEnd, .keepsUntrainable = true});
            QCOMPARE(kept->size(), std::int64_t(1)); // … or kept
            QCOMPARE(numbers(kept->get(0).inputIds), (Numbers{3, letter('a'), letter('b'), letter('c'), letter('d'), letter('e')}));
            QCOMPARE(numbers(kept->get(0).labels), Numbers(6, X));
            break;
        }
        case Truncation::Drop:
            QCOMPARE(s.dropped, std::int64_t(1));
            QCOMPARE(rows->size(), std::int64_t(1));
        }
    }

    void stepsWithoutALabelChangeNothingAndAreNoNumber() { // cases.md 5, where such samples are kept
        std::vector<Conversation> conversations{asked("abcdefghij", "xy"), asked("a", "z"), asked("abcdefghijk", "y")};
        const auto rows = rowsOf(conversations, {.sequenceLength = 6, .truncation = Truncation::CutEnd, .keepsUntrainable = true});
        QCOMPARE(rows->size(), std::int64_t(3));
        const auto network = smallNetwork();
        recipe::Recipe recipe;
        recipe::TreatmentTable plain;
        plain.cells.resize(network->model().cells.size());
        const auto optimizer = makeOptimizer(recipe, network->parameters(), plain);
        QVERIFY(optimizer);
        ModelOptions options;
        options.batchSize = 1;
        options.shuffle = false;
        options.runsEmptySteps = true;
        options.schedule.type = "constant";
        options.schedule.totalSteps = 3;
        Model model(*network, std::make_shared<LanguageModelLoss>(), optimizer->get(), {}, options);
        struct Watch : Callback {
            std::vector<bool> empty;
            std::vector<double> sums;
            Status stepEnd(RunContext& context) override {
                empty.push_back(context.originalArgs().isEmpty);
                double sum = 0;
                for (const Parameter& parameter : context.originalArgs().network->parameters()) sum += parameter.tensor.abs().sum().item<double>();
                sums.push_back(sum);
                return {};
            }
        } watch;
        const auto end = model.train(1, *rows, {&watch});
        QVERIFY2(end && *end == Model::End::Finished, end ? "" : end.error().text().c_str());
        QVERIFY(watch.empty == (std::vector<bool>{true, false, true}));
        QVERIFY(std::isfinite(watch.sums[2]) && watch.sums[0] != watch.sums[1] && watch.sums[1] == watch.sums[2]);
    }

    void oldRoundsGoBeforeTheAnswerDoes() {
        Conversation rounds;
        for (const char* text : {"aaaa", "bbbb", "cccc", "dd"}) rounds.messages.push_back({rounds.messages.size() % 2 ? ChatRole::Assistant : ChatRole::User, text});
        rounds.messages.insert(rounds.messages.begin(), {ChatRole::System, "S"});
        const auto rows = rowsOf({rounds}, {.sequenceLength = 12});
        QCOMPARE(numbers(rows->get(0).inputIds), (Numbers{letter('S'), 3, letter('c'), letter('c'), letter('c'), letter('c'), 4, letter('d'), letter('d'), 2}));
        QCOMPARE(rows->statistics().truncated, std::int64_t(1));
    }

    void anAnswerThatIsTooLongLosesItsEndAlone() {
        const auto rows = rowsOf({asked("a", "xxxxxxxxxx")}, {.sequenceLength = 6});
        QCOMPARE(numbers(rows->get(0).inputIds), (Numbers{3, 4, letter('x'), letter('x'), letter('x'), letter('x')})); // no end is invented
        QCOMPARE(numbers(rows->get(0).labels), (Numbers{X, X, letter('x'), letter('x'), letter('x'), letter('x')}));
    }

    void paddingIsNotTheEndThoughTheirIdsAreEqual() { // cases.md 6
        ChatDataOptions options;
        options.padId = paddingId(kTokenizer);
        QCOMPARE(options.padId, kTokenizer.eos());
        const auto rows = rowsOf({asked("ab", "xy"), asked("a", "z")}, options);
        const Batch batch = collate(*rows, 0, 2);
        QCOMPARE(numbers(batch.inputIds.select(0, 1)), (Numbers{3, letter('a'), 4, letter('z'), 2, 2, 2}));
        QCOMPARE(numbers(batch.labels.select(0, 1)), (Numbers{X, X, X, letter('z'), 2, X, X})); // the real end stays, pads have none
        QCOMPARE(validLabels(batch), std::int64_t(3 + 2));
    }

    void paddingChangesNoLossOfTheOthers() {
        const auto rows = rowsOf({asked("ab", "xy"), asked("a", "z")}, {});
        for (const char* preset : {"baichuan-tiny", "baichuan-tiny-alibi", "internlm2-tiny"}) {
            const auto network = smallNetwork(preset);
            const auto sumOf = [&](std::int64_t first, std::int64_t count) {
                const Batch batch = collate(*rows, first, count);
                return languageModelLoss(network->forward(batch)->at("logits"), batch.labels).sum.item<double>();
            };
            QVERIFY(std::abs(sumOf(0, 2) - sumOf(0, 1) - sumOf(1, 1)) < 1e-4);
        }
    }

    void packedConversationsEqualThemselvesAlone() { // cases.md 13
        const std::vector<Conversation> conversations{asked("abcdefghij", "xyz"), asked("ab", "xy"), asked("q", "uvw"), asked("abc", "")};
        const auto apart = rowsOf(conversations, {.sequenceLength = 24}), packed = rowsOf(conversations, {.sequenceLength = 24, .packs = true});
        QCOMPARE(apart->size(), std::int64_t(4));
        QCOMPARE(packed->size(), std::int64_t(2));
        QCOMPARE(packed->conversationsOf(0), (Numbers{0, 1}));
        QCOMPARE(packed->conversationsOf(1), (Numbers{2, 3}));
        const Row row = packed->get(1);
        QCOMPARE(numbers(row.segments), (Numbers{0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1}));
        QCOMPARE(numbers(row.positions), (Numbers{0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5}));
        QCOMPARE(row.labels[7].item<std::int64_t>(), X); // b's first label is ignored
        for (const char* preset : {"baichuan-tiny", "baichuan-tiny-alibi", "internlm2-tiny"}) {
            const auto network = smallNetwork(preset);
            const at::Tensor together = network->forward(collate(*packed, 0, 2))->at("logits");
            const at::Tensor first = network->forward(collate(*apart, 0, 1))->at("logits"), second = network->forward(collate(*apart, 1, 1))->at("logits");
            const std::int64_t a = first.size(1), b = second.size(1);
            QVERIFY((together[0].slice(0, 0, a) - first[0]).abs().max().item<double>() < 1e-5);
            QVERIFY((together[0].slice(0, a, a + b) - second[0]).abs().max().item<double>() < 1e-5);
        }
        QCOMPARE(packed->statistics().trainable, apart->statistics().trainable);
        QCOMPARE(validLabels(collate(*packed, 0, 2)), packed->statistics().trainable);
    }

    void packingLosesAndRepeatsNothing() {
        std::vector<Conversation> conversations;
        for (int i = 0; i < 300; ++i) conversations.push_back(asked(std::string(static_cast<std::size_t>(1 + i * 7 % 23), 'a'), std::string(static_cast<std::size_t>(i % 5), 'x')));
        const auto rows = rowsOf(conversations, {.sequenceLength = 40, .packs = true});
        Numbers seen;
        for (std::int64_t i = 0; i < rows->size(); ++i) {
            QVERIFY(rows->lengthOf(i) <= 40);
            for (const std::int64_t one : rows->conversationsOf(i)) seen.push_back(one);
        }
        std::sort(seen.begin(), seen.end());
        QCOMPARE(seen, numbers(at::arange(300)));
        QVERIFY(rows->size() * 40 < rows->statistics().tokens * 5 / 4); // rows are at least four fifths full
    }

    void theRecipesTemplatesAreThoseOfTheTable() {
        std::vector<std::string> names{"auto"};
        for (const ChatTemplate& one : chatTemplates()) names.push_back(one.name);
        QCOMPARE(recipe::findField("data.template")->choices, names);
    }

    void messagesOfAFileAreReadInBothSpellings() {
        const std::vector<ChatMessage> expected{{ChatRole::System, "S"}, {ChatRole::User, "Q"}};
        for (const char* text : {R"([{"role": "system", "content": "S"}, {"role": "user", "content": "Q"}])",
                                 R"({"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "Q"}]})",
                                 R"({"conversations": [{"from": "system", "value": "S"}, {"from": "human", "value": "Q"}]})"}) {
            const auto messages = messagesFromJson(text, "m.json");
            QVERIFY(messages && *messages == expected);
        }
        QVERIFY(!messagesFromJson("[]", "m.json"));
        QVERIFY(!messagesFromJson("[1]", "m.json"));
    }

private:
    static void addPolicies() {
        QTest::addColumn<int>("policy");
        QTest::newRow("keep the answer") << int(Truncation::KeepAnswer);
        QTest::newRow("cut the start") << int(Truncation::CutStart);
        QTest::newRow("cut the end") << int(Truncation::CutEnd);
        QTest::newRow("drop") << int(Truncation::Drop);
    }
};

QTEST_GUILESS_MAIN(TestInstructions)
#include "tst_instructions.moc"
