// Text in and out: encodings, SentencePiece against the library's own recorded behaviour, and streamed decoding.
#include "engine/text/encoding.h"
#include "engine/text/tokenizer.h"
#include "models/base/files.h"

#include <ATen/ops/empty.h>
#include <QTemporaryDir>
#include <QTest>
#include <nlohmann/json.hpp>

using namespace celloom;
using namespace celloom::engine;

namespace {

const std::filesystem::path kTokenizerFixture = std::filesystem::path(CELLOOM_FIXTURES) / "tokenizer";

std::string unhex(const char* hex) { return QByteArray::fromHex(hex).toStdString(); }

/// Only what a StreamDecoder needs: byte pieces as in cases.md 1, decoded as SentencePiece does (a broken byte becomes U+FFFD).
class ByteTokenizer : public Tokenizer {
public:
    std::vector<std::int64_t> encode(const std::string& text) const override {
        std::vector<std::int64_t> ids;
        for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
        return ids;
    }
    std::string decode(const std::vector<std::int64_t>& ids) const override {
        std::string bytes, out;
        for (const auto id : ids) bytes += static_cast<char>(id);
        while (!bytes.empty()) {
            const std::size_t bad = std::min(firstInvalidUtf8(bytes), bytes.size());
            out += bytes.substr(0, bad);
            if (bad < bytes.size()) out += "\uFFFD";
            bytes.erase(0, bad + 1);
        }
        return out;
    }
    std::string piece(std::int64_t) const override { return {}; }
    bool isByte(std::int64_t) const override { return true; }
    int vocabSize() const override { return 256; }
    std::int64_t bos() const override { return -1; }
    std::int64_t eos() const override { return -1; }
    std::int64_t pad() const override { return -1; }
};

} // namespace

class TestText : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theSameTextInEveryEncodingIsTheSame_data() {
        QTest::addColumn<QByteArray>("hex");
        QTest::addColumn<QString>("encoding");
        // 你好 and a line feed, in each form; GB 18030: C4E3 BAC3.
        QTest::newRow("UTF-8") << QByteArray("e4bda0e5a5bd0a") << "UTF-8";
        QTest::newRow("UTF-8 with BOM") << QByteArray("efbbbfe4bda0e5a5bd0a") << "UTF-8 with BOM";
        QTest::newRow("UTF-16LE") << QByteArray("fffe604f7d590a00") << "UTF-16LE";
        QTest::newRow("UTF-16BE") << QByteArray("feff4f60597d000a") << "UTF-16BE";
        QTest::newRow("GB 18030") << QByteArray("c4e3bac30a") << "GB 18030";
    }
    void theSameTextInEveryEncodingIsTheSame() {
        QFETCH(QByteArray, hex);
        QFETCH(QString, encoding);
        const auto decoded = decodeText(unhex(hex));
        QVERIFY(decoded);
        QCOMPARE(decoded->text, std::string("你好\n"));
        QCOMPARE(QString::fromStdString(decoded->encoding), encoding);
    }

    void badBytesAreNamedByOffset_data() {
        QTest::addColumn<QByteArray>("hex");
        QTest::addColumn<QString>("offset");
        QTest::newRow("valid in none") << QByteArray("61e4bda0ff62") << "at byte 4";      // FF is no lead byte of either
        QTest::newRow("cut UTF-8 with BOM") << QByteArray("efbbbf61e4bd") << "at byte 4"; // E4 BD lacks its third byte
        QTest::newRow("lone surrogate") << QByteArray("fffe610000d86100") << "at byte 4";
        QTest::newRow("odd UTF-16") << QByteArray("fffe610062") << "at byte 4";
        QTest::newRow("zero byte") << QByteArray("610062") << "at byte 1";
    }
    void badBytesAreNamedByOffset() {
        QFETCH(QByteArray, hex);
        QFETCH(QString, offset);
        const auto decoded = decodeText(unhex(hex), "a.txt");
        QVERIFY(!decoded);
        QVERIFY2(QString::fromStdString(decoded.error().message).contains(offset), decoded.error().message.c_str());
        QCOMPARE(decoded.error().place, std::string("a.txt"));
        QVERIFY(!decoded.error().hint.empty());
    }

    void tokenizerAgreesWithTheLibrarysRecord() {
        const auto tokenizer = Tokenizer::load(kTokenizerFixture / "sp_bpe_prefix.model");
        QVERIFY(tokenizer);
        const auto record = nlohmann::json::parse(*readFile(kTokenizerFixture / "sp_bpe_prefix.json"));
        QCOMPARE((*tokenizer)->vocabSize(), record["vocab_size"].get<int>());
        QCOMPARE((*tokenizer)->bos(), record["bos"].get<std::int64_t>());
        QCOMPARE((*tokenizer)->eos(), record["eos"].get<std::int64_t>());
        QCOMPARE((*tokenizer)->pad(), record["pad"].get<std::int64_t>());
        for (const auto& one : record["cases"]) {
            const auto ids = (*tokenizer)->encode(one["text"].get<std::string>());
            QCOMPARE(ids, one["ids"].get<std::vector<std::int64_t>>());
            QCOMPARE((*tokenizer)->decode(ids), one["decoded"].get<std::string>());
            for (std::size_t i = 0; i < ids.size(); ++i) QCOMPARE((*tokenizer)->piece(ids[i]), one["pieces"][i].get<std::string>());
        }
    }

    void streamedPiecesJoinToTheWholeText() {
        const auto tokenizer = Tokenizer::load(kTokenizerFixture / "sp_bpe_prefix.model");
        const auto record = nlohmann::json::parse(*readFile(kTokenizerFixture / "sp_bpe_prefix.json"));
        for (const auto& one : record["cases"]) {
            StreamDecoder decoder(**tokenizer);
            std::string shown;
            for (const auto& id : one["ids"]) {
                const std::string delta = decoder.push(id.get<std::int64_t>());
                QVERIFY2(delta.find("\uFFFD") == std::string::npos, delta.c_str());
                shown += delta;
            }
            shown += decoder.finish();
            QCOMPARE(shown, one["decoded"].get<std::string>());
        }
    }

    void bytesOfAnUnfinishedCharacterAreHeldBack() {
        const ByteTokenizer tokenizer;
        StreamDecoder decoder(tokenizer);
        QCOMPARE(decoder.push(0xE4), std::string());
        QCOMPARE(decoder.push(0xBD), std::string());
        QCOMPARE(decoder.push(0xA0), std::string("你"));
        QCOMPARE(decoder.push(0xE5), std::string());
        QCOMPARE(decoder.push(0xA5), std::string());
        QCOMPARE(decoder.push(0xBD), std::string("好"));
        QCOMPARE(decoder.push(0xE5), std::string());
        QCOMPARE(decoder.finish(), std::string("\uFFFD")); // the text ended there: now it is known to be broken
    }

    void trainedTokenizerIsTheSameEachTimeAndLosesNothing() {
        QTemporaryDir folder;
        const std::filesystem::path first = (folder.path() + "/a.model").toStdString(), second = (folder.path() + "/b.model").toStdString();
        TokenizerTraining training;
        training.texts = {*readFile(std::filesystem::path(CELLOOM_SOURCE) / "resources/corpora/sanguo/001.txt"),
                          *readFile(std::filesystem::path(CELLOOM_SOURCE) / "resources/corpora/sanguo/002.txt")};
        training.vocabSize = 2600;
        const auto status = Tokenizer::train(training, first);
        QVERIFY2(status, status ? "" : status.error().text().c_str());
        QVERIFY(Tokenizer::train(training, second));
        QCOMPARE(*sha256OfFile(first), *sha256OfFile(second));
        const auto tokenizer = Tokenizer::load(first);
        QVERIFY(tokenizer);
        QCOMPARE((*tokenizer)->vocabSize(), 2600);
        QCOMPARE((*tokenizer)->eos(), std::int64_t(2));
        for (const std::string text : {"  two  spaces ", "第一回\n\n\t滚滚长江", "emoji 😀 12345", "\u3000全角"})
            QCOMPARE((*tokenizer)->decode((*tokenizer)->encode(text)), text);
    }

    void extraSymbolsAreWholePiecesAndNoTextIsEncodedToAControlSymbol() {
        QTemporaryDir folder;
        const std::filesystem::path path = (folder.path() + "/a.model").toStdString();
        TokenizerTraining training;
        training.texts = {"abcabcabcabc abc\n"};
        training.vocabSize = 270;
        training.controlSymbols = {"<eoh>", "<eoa>"};
        training.userSymbols = {"<|User|>"};
        QVERIFY(Tokenizer::train(training, path));
        const auto tokenizer = Tokenizer::load(path);
        QVERIFY(tokenizer);
        QCOMPARE((*tokenizer)->piece(3), std::string("<eoh>"));
        QCOMPARE((*tokenizer)->piece(4), std::string("<eoa>"));
        QCOMPARE((*tokenizer)->encode("<|User|>").size(), std::size_t(1));
        for (const std::int64_t id : (*tokenizer)->encode("<eoh><eoa></s>")) QVERIFY2(id > 4, "an attacker's text would end the turn");
        training.userSymbols = {"<eoh>"};
        QVERIFY(!Tokenizer::train(training, path));
        training.userSymbols = {"two words"};
        QVERIFY(!Tokenizer::train(training, path));
    }

    void impossibleVocabularyIsRefusedWithAHint() {
        QTemporaryDir folder;
        TokenizerTraining training;
        training.texts = {"短"};
        training.vocabSize = 100000;
        const auto status = Tokenizer::train(training, (folder.path() + "/a.model").toStdString());
        QVERIFY(!status);
        QVERIFY(!status.error().hint.empty());
        QVERIFY(QDir(folder.path()).isEmpty());
    }

    void aVocabularyThatDoesNotFitIsExplainedInTheUsersWords_data() {
        QTest::addColumn<int>("size");
        QTest::addColumn<QStringList>("said");
        // 26 letters and the line has no space: 26 characters, 256 bytes, <unk>, <s>, </s> are the least.
        QTest::newRow("too small") << 100 << QStringList{"a vocabulary of 100 pieces is too small", "26 different characters", "vocab_size to 285"};
        QTest::newRow("too large") << 5000 << QStringList{"a vocabulary of 5000 pieces is too large", "Lower tokenizer.vocab_size to"};
    }
    void aVocabularyThatDoesNotFitIsExplainedInTheUsersWords() {
        QFETCH(int, size);
        QFETCH(QStringList, said);
        QTemporaryDir folder;
        TokenizerTraining training;
        training.texts = {"abcdefghijklmnopqrstuvwxyz\nzyxwvutsrqponmlkjihgfedcba\n"};
        training.vocabSize = size;
        training.characterCoverage = 1;
        const auto status = Tokenizer::train(training, (folder.path() + "/a.model").toStdString());
        QVERIFY(!status);
        const QString text = QString::fromStdString(status.error().text());
        for (const QString& part : said) QVERIFY2(text.contains(part), qPrintable(text));
        for (const char* raw : {".cc", "src/", "required_chars", "[("}) QVERIFY2(!text.contains(raw), qPrintable(text));
    }

    void memoryThatIsNotThereThrowsThoughSentencePieceIsLoaded() {
        QVERIFY(Tokenizer::load(kTokenizerFixture / "sp_bpe_prefix.model"));
        QVERIFY_EXCEPTION_THROWN(at::empty({std::int64_t(1) << 46}, at::kByte), c10::Error); // 64 TiB; it once aborted the process
    }

    void somethingElseThanAModelIsRefused() {
        const auto tokenizer = Tokenizer::load(kTokenizerFixture / "sp_bpe_prefix.json");
        QVERIFY(!tokenizer);
        QVERIFY(QString::fromStdString(tokenizer.error().message).contains("no SentencePiece model"));
    }
};

QTEST_GUILESS_MAIN(TestText)
#include "tst_text.moc"
