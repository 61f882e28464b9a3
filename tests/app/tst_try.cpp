// Chats through a real broker and a real child, with models whose next token is known: each token leads to one other.
#include "app/engine/broker/client.h"
#include "engine/checkpoint/adapter_folder.h"
#include "engine/checkpoint/model_folder.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"
#include "models/families/families.h"
#include "models/protocol/broker_lock.h"
#include "models/recipe/lora.h"
#include "tests/app/verb_helper.h"

#include <ATen/core/grad_mode.h>
#include <QElapsedTimer>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <csignal>
#include <functional>
#include <sys/prctl.h>
#include <sys/resource.h>

using namespace celloom;
using namespace std::chrono_literals;
using protocol::Message;
namespace fs = std::filesystem;

namespace {

constexpr int kPatience = 60000 * CELLOOM_TEST_TIME_FACTOR; // ms; how long a test waits before it calls something stuck
const QString kEngine = QStringLiteral(CELLOOM_BIN "/celloom-engine");
const fs::path kTokenizer = CELLOOM_FIXTURES "/tokenizer/sp_bpe_prefix.model";

/// The id of a piece; for bytes "<0xE4>".
std::int64_t idOf(const engine::Tokenizer& tokenizer, const std::string& piece) {
    for (std::int64_t id = 0; id < tokenizer.vocabSize(); ++id)
        if (tokenizer.piece(id) == piece) return id;
    qFatal("there is no piece %s", piece.c_str());
}

/// A model of one layer that does nothing: each token of the chain makes the one after it near certain. Embeddings are unit vectors, the
/// head maps each onto its successor.
void writeChain(const fs::path& folder, const std::vector<std::int64_t>& chain, bool isEndless) {
    const auto tokenizer = engine::Tokenizer::load(kTokenizer);
    auto document = families::buildPreset("baichuan-tiny");
    if (!tokenizer || !document) qFatal("no parts");
    const std::int64_t vocab = (*tokenizer)->vocabSize();
    CELLOOM_CHECK(graph::applyOverrides(*document, {{"vocab", vocab},
                                                    {"hidden", std::int64_t(32)},
                                                    {"layers", std::int64_t(1)},
                                                    {"max_positions", std::int64_t(8192)},
                                                    {"heads", std::int64_t(2)},
                                                    {"intermediate", std::int64_t(16)}}));
    auto model = graph::expand(*document);
    CELLOOM_CHECK(model.ok());
    recipe::TreatmentTable plain;
    plain.cells.resize(model.model.cells.size());
    auto network = engine::Network::create(model.model, plain, {});
    if (!network) qFatal("%s", network.error().text().c_str());
    at::NoGradGuard guard;
    for (engine::Parameter& parameter : (*network)->parameters()) {
        const bool isNorm = parameter.path.find("norm") != std::string::npos;
        parameter.tensor.fill_(isNorm ? 1 : 0);
        const bool isEmbedding = parameter.path.find("embed") != std::string::npos, isHead = parameter.path.find("head") != std::string::npos;
        for (std::size_t i = 0; i < chain.size(); ++i) {
            const auto unit = static_cast<std::int64_t>(i);
            if (isEmbedding) parameter.tensor[chain[i]][unit] = 1;
            if (isHead && (i + 1 < chain.size() || isEndless)) parameter.tensor[chain[i + 1 < chain.size() ? i + 1 : 1]][unit] = 10;
        }
    }
    if (auto status = engine::exportModel(**network, *document, kTokenizer, folder); !status) qFatal("%s", status.error().text().c_str());
}

/// An adapter of such a model's MLP, which remembers chatml: after the chain's one unit the text goes on as after the other. Where the
/// unit is, gate and up fill the first intermediate value, and down writes it over all else.
void writeAdapter(const fs::path& base, std::int64_t unit, std::int64_t other, const fs::path& folder) {
    const auto source = engine::openModelFolder(base);
    if (!source) qFatal("%s", source.error().text().c_str());
    const auto model = graph::expand(source->document);
    recipe::LoraSpec spec;
    spec.targets = {"gate_proj", "up_proj", "down_proj"};
    spec.standard = {.rank = 1, .alpha = 1};
    const auto treatment = recipe::resolveLora(model.model, spec);
    if (!treatment) qFatal("%s", treatment.error().text().c_str());
    auto network = engine::Network::create(model.model, *treatment, {});
    if (!network || !engine::loadWeights(*source, **network)) qFatal("no network");
    at::NoGradGuard guard;
    for (engine::Parameter& parameter : (*network)->parameters()) {
        if (!parameter.isAdapter) continue;
        const bool isDown = parameter.path.find("down_proj") != std::string::npos;
        parameter.tensor.fill_(0);
        if (parameter.path.ends_with("lora_A.weight"))
            parameter.tensor[0][isDown ? 0 : unit] = 1;
        else
            parameter.tensor[isDown ? other : 0][0] = isDown ? 10 : 1;
    }
    if (auto status = engine::saveAdapter(**network, "chatml", folder); !status) qFatal("%s", status.error().text().c_str());
}

/// A client of the broker with its chat.
class Chat {
public:
    explicit Chat(const fs::path& workspace) : m_client(app::BrokerClient::connect(store::Workspace{workspace}).value()) {
        pid = m_client->request({{"type", "try_open"}}).value()["pid"];
    }
    Result<Message> command(const Message& message) { return m_client->request(message); }
    void ask(const Message& request) { QVERIFY(m_client->request({{"type", "try_send"}, {"request", request}})); }
    void open(const std::string& column, const fs::path& model, const std::vector<std::string>& adapters = {}) {
        ask({{"type", "open"}, {"column", column}, {"model", model.string()}, {"adapters", adapters}});
    }
    void generate(const std::string& column, std::int64_t request, Message sampling = Message::object(), const std::string& text = "你") {
        sampling["temperature"] = 0;
        ask({{"type", "generate"}, {"column", column}, {"request", request}, {"text", text}, {"sampling", sampling}});
    }
    /// The next event that is as wanted; all that came until then are in `events`. A null where none came in time.
    Message await(const std::function<bool(const Message&)>& isWanted) {
        QElapsedTimer time;
        time.start();
        while (time.elapsed() < kPatience) {
            const auto event = m_client->nextEvent(1s);
            if (!event) return nullptr;
            if (!*event || (**event)["type"] != "try") continue;
            time.restart(); // it goes on, however slowly
            events.push_back((**event)["event"]);
            if (isWanted(events.back())) return events.back();
        }
        return nullptr;
    }
    Message await(const char* type, const std::string& column = {}) {
        return await([&](const Message& event) { return event["type"] == type && (column.empty() || event["column"] == column); });
    }
    [[nodiscard]] std::string textOf(const std::string& column) const {
        std::string out;
        for (const Message& event : events)
            if (event["type"] == "delta" && event["column"] == column) out += event["text"].get<std::string>();
        return out;
    }

    pid_t pid = 0;
    std::vector<Message> events;

private:
    std::unique_ptr<app::BrokerClient> m_client;
};

bool isGone(pid_t pid) {
    return QTest::qWaitFor([pid] { return ::kill(pid, 0) != 0; }, kPatience);
}

} // namespace

class TestTry : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void cleanupTestCase();
    void charactersArriveWhole();
    void columnsWriteAtTheSameTime();
    void columnsOfOneModelShareIt();
    void aBaseAndItsAdaptersWriteAtTheSameTime();
    void theTerminalChatTakesAdapters();
    void cancellingEndsATextAndTheColumnGoesOn();
    void aStopStringIsNeverShown();
    void aConversationIsAskedInTheTemplate();
    void whatIsWrongIsToldAndTheChatGoesOn_data();
    void whatIsWrongIsToldAndTheChatGoesOn();
    void aKilledChatSaysSoAndCanBeStartedAgain();
    void theChatGoesWithItsClient();
    void anIdleChatEndsByItself();
    void aClientThatDoesNotReadStopsItsOwnTextOnly();
    void aChatIsNicerThanTraining();

private:
    [[nodiscard]] fs::path workspace() const { return fs::path(m_folder.path().toStdString()) / "w"; }
    [[nodiscard]] fs::path once() const { return fs::path(m_folder.path().toStdString()) / "once"; }       // 你 -> 你文 in bytes, then the end
    [[nodiscard]] fs::path endless() const { return fs::path(m_folder.path().toStdString()) / "endless"; } // 你 -> 你你你…
    [[nodiscard]] fs::path shorter() const { return fs::path(m_folder.path().toStdString()) / "shorter"; } // once: 你 -> 你, then the end
    [[nodiscard]] fs::path longer() const { return fs::path(m_folder.path().toStdString()) / "longer"; }   // once: 你 -> 你你你…

    QTemporaryDir m_folder;
    QProcess m_broker;
};

void TestTry::initTestCase() {
    qputenv("XDG_RUNTIME_DIR", m_folder.path().toUtf8());
    const auto tokenizer = engine::Tokenizer::load(kTokenizer);
    QVERIFY(tokenizer.has_value());
    const auto id = [&](const char* piece) { return idOf(**tokenizer, piece); };
    const std::int64_t first = (*tokenizer)->encode("你").back();
    const std::vector<std::int64_t> you{first, id("<0xE4>"), id("<0xBD>"), id("<0xA0>")}; // 你 = E4 BD A0
    std::vector<std::int64_t> text = you;
    for (const char* byte : {"<0xE6>", "<0x96>", "<0x87>"}) text.push_back(id(byte)); // 文 = E6 96 87
    text.push_back((*tokenizer)->eos());
    writeChain(once(), text, false);
    writeChain(endless(), you, true);
    writeAdapter(once(), 3, 6, shorter()); // the chain's unit 3 is the end of 你, 6 that of 文, which ends the text
    writeAdapter(once(), 3, 0, longer());
    QVERIFY(store::Workspace::open(workspace()));
    m_broker.setProcessChannelMode(QProcess::ForwardedErrorChannel);
    m_broker.setChildProcessModifier([] { ::prctl(PR_SET_PDEATHSIG, SIGKILL); }); // a test that dies leaves no broker behind
    m_broker.start(kEngine, {"--workspace", QString::fromStdString(workspace().string()), "serve", "--idle-seconds", "0"});
    QVERIFY(QTest::qWaitFor([&] { return !protocol::livingBrokerSocket(store::Workspace{workspace()}).empty(); }, kPatience));
}

void TestTry::cleanupTestCase() {
    m_broker.terminate();
    if (!m_broker.waitForFinished(kPatience)) m_broker.kill();
}

// Cases 1: byte tokens arrive one by one, characters only whole.
void TestTry::charactersArriveWhole() {
    Chat chat(workspace());
    chat.open("a", once());
    const Message opened = chat.await("opened");
    QVERIFY(opened.is_object());
    QCOMPARE(opened["model"].get<std::string>(), std::string("baichuan-tiny"));
    chat.generate("a", 7);
    const Message done = chat.await("done");
    QVERIFY(done.is_object());
    QCOMPARE(done["request"].get<int>(), 7);
    QCOMPARE(done["count"].get<int>(), 6);
    QCOMPARE(done["reason"].get<std::string>(), std::string("stop_token"));
    std::vector<std::string> deltas;
    std::size_t tokens = 0;
    for (const Message& event : chat.events) {
        if (event["type"] != "delta") continue;
        deltas.push_back(event["text"]);
        QCOMPARE(event["tokens"].size(), std::size_t(3)); // a character's bytes come with it
        tokens += event["tokens"].size();
    }
    QCOMPARE(deltas, (std::vector<std::string>{"你", "文"}));
    QCOMPARE(tokens, std::size_t(6));
}

void TestTry::columnsWriteAtTheSameTime() {
    Chat chat(workspace());
    chat.open("a", once());
    chat.open("b", endless());
    chat.open("c", endless());
    for (const char* column : {"b", "c"}) chat.generate(column, 1, {{"max_new_tokens", 60}});
    chat.generate("a", 2);
    for (int i = 0; i < 3; ++i) QVERIFY(chat.await("done").is_object());
    QCOMPARE(chat.textOf("a"), std::string("你文"));
    for (const char* column : {"b", "c"}) QCOMPARE(chat.textOf(column).size(), std::size_t(20 * 3));
    // b's second text begins before its neighbour's has ended, and the other way round.
    const auto first = [&](const char* type, const std::string& column) {
        return std::find_if(chat.events.begin(), chat.events.end(),
                            [&](const Message& event) { return event["type"] == type && event["column"] == column; });
    };
    QVERIFY(first("delta", "c") < first("done", "b"));
    QVERIFY(first("delta", "b") < first("done", "c"));
    QVERIFY(first("delta", "a") < first("done", "b"));
}

void TestTry::columnsOfOneModelShareIt() {
    Chat chat(workspace());
    for (const char* column : {"a", "b"}) {
        chat.open(column, once());
        QVERIFY(chat.await("opened", column).is_object());
    }
    QCOMPARE(std::count_if(chat.events.begin(), chat.events.end(),
                           [](const Message& event) { return event["type"] == "loading" && event["stage"] == "weights"; }),
             1);
}

void TestTry::aBaseAndItsAdaptersWriteAtTheSameTime() {
    Chat chat(workspace());
    chat.open("base", once());
    QCOMPARE(chat.await("opened")["tuned"].get<bool>(), false);
    chat.open("longer", once(), {longer().string()});
    QVERIFY(chat.await("opened").is_object());
    chat.open("shorter", shorter()); // knows its base
    const Message opened = chat.await("opened", "shorter");
    QVERIFY(opened.is_object());
    QCOMPARE(opened["own_adapter"].get<bool>(), true);
    QCOMPARE(opened["template"].get<std::string>(), std::string("chatml"));
    QCOMPARE(opened["tuned"].get<bool>(), true);
    QCOMPARE(std::count_if(chat.events.begin(), chat.events.end(),
                           [](const Message& event) { return event["type"] == "loading" && event["stage"] == "weights"; }),
             1);

    for (const char* column : {"longer", "base", "shorter"}) chat.generate(column, 1, {{"max_new_tokens", 60}});
    for (int i = 0; i < 3; ++i) QVERIFY(chat.await("done").is_object());
    std::string often;
    for (int i = 0; i < 20; ++i) often += "你";
    QCOMPARE(chat.textOf("base"), std::string("你文"));
    QCOMPARE(chat.textOf("shorter"), std::string("你"));
    QCOMPARE(chat.textOf("longer"), often);
    const auto first = [&](const char* type, const std::string& column) {
        return std::find_if(chat.events.begin(), chat.events.end(),
                            [&](const Message& event) { return event["type"] == type && event["column"] == column; });
    };
    QVERIFY(first("delta", "longer") < first("done", "base"));
    QVERIFY(first("delta", "base") < first("done", "longer"));
    const app::testing::Outcome predicted =
        app::testing::runEngine({"predict", "--model", QString::fromStdString(once().string()), "--adapter", QString::fromStdString(longer().string()),
                                 "--temperature", "0", "--max-new-tokens", "60", "--prompt", "你", "--json"});
    QVERIFY2(predicted.out.find('"' + often + '"') != std::string::npos, (predicted.out + predicted.err).c_str());

    // An adapter goes with its column, and the others stay as they were.
    chat.ask({{"type", "close"}, {"column", "longer"}});
    chat.events.clear();
    for (const char* column : {"base", "shorter"}) chat.generate(column, 2);
    for (int i = 0; i < 2; ++i) QVERIFY(chat.await("done").is_object());
    QCOMPARE(chat.textOf("base"), std::string("你文"));
    QCOMPARE(chat.textOf("shorter"), std::string("你"));
}

void TestTry::theTerminalChatTakesAdapters() {
    QProcess chat;
    chat.start(kEngine, {"chat", "--model", QString::fromStdString(once().string()), "--adapter", QString::fromStdString(shorter().string()), "--template",
                         "none", "--temperature", "0"});
    chat.write("你\n");
    chat.closeWriteChannel();
    QVERIFY(chat.waitForFinished(kPatience));
    QCOMPARE(QString::fromUtf8(chat.readAllStandardOutput()), QStringLiteral("你\n"));
    QCOMPARE(chat.exitCode(), int(protocol::Ok));
}

void TestTry::cancellingEndsATextAndTheColumnGoesOn() {
    Chat chat(workspace());
    chat.open("a", endless());
    chat.generate("a", 1, {{"max_new_tokens", 1000000}});
    QVERIFY(chat.await("delta").is_object());
    chat.ask({{"type", "cancel"}, {"column", "a"}});
    QCOMPARE(chat.await("done")["reason"].get<std::string>(), std::string("cancelled"));
    chat.generate("a", 2, {{"max_new_tokens", 3}});
    const Message done = chat.await("done");
    QVERIFY(done.is_object());
    QCOMPARE(done["request"].get<int>(), 2);
    QCOMPARE(done["reason"].get<std::string>(), std::string("length"));
}

void TestTry::aStopStringIsNeverShown() {
    Chat chat(workspace());
    chat.open("a", once());
    chat.generate("a", 1, {{"stop", {"文"}}});
    QCOMPARE(chat.await("done")["reason"].get<std::string>(), std::string("stop_text"));
    QCOMPARE(chat.textOf("a"), std::string("你"));
    chat.events.clear();
    chat.generate("a", 2, {{"stop", {"文字"}}}); // begins, and does not come
    QCOMPARE(chat.await("done")["reason"].get<std::string>(), std::string("stop_token"));
    QCOMPARE(chat.textOf("a"), std::string("你文"));
}

void TestTry::aConversationIsAskedInTheTemplate() {
    const auto tokenizer = engine::Tokenizer::load(kTokenizer);
    const engine::ChatFormat format(*engine::findChatTemplate("chatml"), **tokenizer);
    using enum engine::ChatRole;
    const auto expected = format.prompt({{System, "短"}, {User, "你是谁"}, {Assistant, "文"}, {User, "你"}});
    Chat chat(workspace());
    chat.open("a", once());
    chat.ask({{"type", "generate"},
              {"column", "a"},
              {"request", 1},
              {"template", "chatml"},
              {"messages",
               {{{"role", "system"}, {"content", "短"}},
                {{"role", "user"}, {"content", "你是谁"}},
                {{"role", "assistant"}, {"content", "文"}},
                {{"role", "user"}, {"content", "你"}}}},
              {"sampling", {{"max_new_tokens", 1}}}});
    QCOMPARE(chat.await("started")["prompt_tokens"].get<std::size_t>(), expected.size());
    QVERIFY(chat.await("done").is_object());
}

void TestTry::whatIsWrongIsToldAndTheChatGoesOn_data() {
    QTest::addColumn<QByteArray>("request");
    QTest::addColumn<QByteArray>("says");
    const auto row = [](const char* name, const Message& request, const char* says) {
        QTest::newRow(name) << QByteArray::fromStdString(request.dump()) << QByteArray(says);
    };
    row("no model", {{"type", "open"}, {"column", "x"}, {"model", "/no/such/folder"}}, "/no/such/folder");
    row("no adapter", {{"type", "open"}, {"column", "x"}, {"model", once().string()}, {"adapters", {endless().string()}}}, "adapter_config.json");
    row("another family's", {{"type", "open"}, {"column", "x"}, {"model", once().string()}, {"adapters", {CELLOOM_FIXTURES "/lora_internlm2_wqkv/adapter"}}},
        "wqkv");
    row("twice", {{"type", "open"}, {"column", "x"}, {"model", longer().string()}, {"adapters", {longer().string()}}}, "twice");
    row("no column", {{"type", "open"}, {"model", "1"}}, "column");
    row("no request", {{"type", "sing"}, {"column", "x"}}, "sing");
    row("unknown column", {{"type", "generate"}, {"column", "y"}, {"request", 1}, {"text", "a"}}, "no model");
    row("wrong kind", {{"type", "generate"}, {"column", "a"}, {"request", "one"}, {"text", "a"}}, "whole number");
    row("sampling", {{"type", "generate"}, {"column", "a"}, {"request", 1}, {"text", "a"}, {"sampling", {{"top_p", 2}}}}, "top-p");
    row("template",
        {{"type", "generate"}, {"column", "a"}, {"request", 1}, {"template", "x"}, {"messages", {{{"role", "user"}, {"content", "a"}}}}},
        "chat template");
    row("turns", {{"type", "generate"}, {"column", "a"}, {"request", 1}, {"messages", Message::array()}}, "question");
}

void TestTry::whatIsWrongIsToldAndTheChatGoesOn() {
    QFETCH(QByteArray, request);
    QFETCH(QByteArray, says);
    Chat chat(workspace());
    chat.open("a", once());
    chat.ask(Message::parse(request.toStdString()));
    const Message error = chat.await("error");
    QVERIFY(error.is_object());
    QVERIFY2(error.dump().find(says.toStdString()) != std::string::npos, error.dump().c_str());
    chat.generate("a", 9);
    QVERIFY(chat.await("done").is_object());
}

void TestTry::aKilledChatSaysSoAndCanBeStartedAgain() {
    Chat chat(workspace());
    chat.open("a", endless());
    chat.generate("a", 1, {{"max_new_tokens", 1000000}});
    QVERIFY(chat.await("delta").is_object());
    ::kill(chat.pid, SIGKILL);
    const Message ended = chat.await("ended");
    QVERIFY(ended.is_object());
    QCOMPARE(ended["signal"].get<int>(), SIGKILL);
    QVERIFY(!ended["message"].get<std::string>().empty());
    QVERIFY(ended.contains("log_tail"));
    const auto late = chat.command({{"type", "try_send"}, {"request", {{"type", "cancel"}}}});
    QVERIFY(!late);
    const auto again = chat.command({{"type", "try_open"}});
    QVERIFY(again.has_value() && (*again)["pid"] != chat.pid);
    chat.open("a", once());
    QVERIFY(chat.await("opened").is_object());
}

void TestTry::theChatGoesWithItsClient() {
    pid_t writing = 0, loading = 0, closed = 0;
    {
        Chat chat(workspace());
        writing = chat.pid;
        chat.open("a", endless());
        chat.generate("a", 1, {{"max_new_tokens", 1000000}});
        QVERIFY(chat.await("delta").is_object());
        Chat other(workspace());
        loading = other.pid;
        other.open("a", endless());
        Chat third(workspace());
        closed = third.pid;
        QVERIFY(third.command({{"type", "try_close"}}).has_value());
        QVERIFY(isGone(closed));
    }
    QVERIFY(isGone(writing));
    QVERIFY(isGone(loading));
}

void TestTry::anIdleChatEndsByItself() {
    QProcess child;
    child.start(kEngine, {"--workspace", QString::fromStdString(workspace().string()), "try-child", "--idle-seconds", "1"});
    QVERIFY(child.waitForStarted());
    QVERIFY(child.waitForFinished(kPatience));
    QCOMPARE(child.exitCode(), int(protocol::Ok));
}

void TestTry::aClientThatDoesNotReadStopsItsOwnTextOnly() {
    constexpr int kTokens = 6000; // events of some megabytes: more than all buffers on the way hold
    Chat slow(workspace());
    slow.open("a", endless());
    slow.generate("a", 1, {{"max_new_tokens", kTokens}});
    Chat other(workspace()); // is served while the first one reads nothing
    other.open("a", once());
    other.generate("a", 1);
    QVERIFY(other.await("done").is_object());
    const Message done = slow.await("done"); // and no token was left out
    QVERIFY(done.is_object());
    QCOMPARE(done["count"].get<int>(), kTokens);
    QCOMPARE(slow.textOf("a").size(), std::size_t(kTokens)); // three bytes a character, three tokens a character
}

void TestTry::aChatIsNicerThanTraining() {
    Chat chat(workspace());
    chat.open("a", once());
    QVERIFY(chat.await("opened").is_object());
    QCOMPARE(::getpriority(PRIO_PROCESS, static_cast<id_t>(chat.pid)), std::min(19, ::getpriority(PRIO_PROCESS, 0) + 10));
}

QTEST_GUILESS_MAIN(TestTry)
#include "tst_try.moc"
