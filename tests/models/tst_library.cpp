// The standard library: what its composites cost, what a copy brings into a document, and that no version changes unseen.
#include "models/catalog/catalog.h"
#include "models/graph/cost.h"
#include "models/graph/expand.h"
#include "models/graph/json.h"
#include "models/library/standard.h"

#include <QFile>
#include <QTest>

using namespace celloom;
using namespace celloom::library;
using graph::ParamValue;

namespace {

using Sizes = std::map<std::string, ParamValue>;

template <class T> T must(Result<T> result) {
    if (!result) qFatal("%s", result.error().text().c_str());
    return std::move(*result);
}

graph::ExpandedModel expanded(const graph::Document& document, const Sizes& sizes = {}) {
    graph::Expansion expansion = graph::expand(document, sizes);
    for (const graph::Problem& problem : expansion.problems)
        qCritical("%s: %s %s", problem.path.c_str(), problem.message.c_str(), problem.hint.c_str());
    if (!expansion.problems.empty()) qFatal("%s does not expand", document.main.name.c_str());
    return std::move(expansion.model);
}

bool entryHas(const std::string& name, const std::string& hyper) {
    for (const graph::HyperParameter& parameter : findStandard(name)->document.main.hyper)
        if (parameter.name == hyper) return true;
    return false;
}

} // namespace

using WholeSizes = std::map<std::string, qint64>;
Q_DECLARE_METATYPE(WholeSizes)

class TestLibrary : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void everyEntrySaysWhatItIsInBothLanguages() {
        QVERIFY(!standard().empty());
        for (const Entry& entry : standard()) {
            QVERIFY2(!entry.summary().empty() && !entry.summaryZh.empty() && !entry.category.empty(), entry.name.c_str());
            QVERIFY2(!catalog::find(entry.name), entry.name.c_str());
            QCOMPARE(entry.document.main.hyper.size(), entry.helpZh.size());
            for (const graph::HyperParameter& hyper : entry.document.main.hyper)
                QVERIFY2(!hyper.help.empty() && entry.helpZh.contains(hyper.name), (entry.name + "." + hyper.name).c_str());
            for (const auto* ports : {&entry.document.main.inputs, &entry.document.main.outputs})
                for (const graph::Port& port : *ports) QVERIFY2(!port.shape.empty(), (entry.name + "." + port.name).c_str());
        }
    }

    void everyEntryExpandsWithItsOwnSizes() {
        for (const Entry& entry : standard()) expanded(entry.document);
    }

    /// A change without a new version would make every copy look edited. Where this fails on purpose, raise the version and add the digest.
    void noVersionChangesUnseen() {
        std::string wrong;
        for (const Entry& entry : standard()) {
            const std::string digest = must(digestOf(entry.document));
            if (entry.digests.size() != static_cast<std::size_t>(entry.version) || entry.digests.back() != digest)
                wrong += entry.name + " " + std::to_string(entry.version) + " " + digest + "\n";
        }
        QVERIFY2(wrong.empty(), wrong.c_str());
    }

    /// d = d_model, f = d_ff, h heads, k key/value heads of d / h numbers, r = B · T rows. A Dense of i to o has i·o (+ o) parameters and 2·i·o (+ o) FLOPs a row; the
    /// attention core B·h·T·S·(4·d/h + 5); LayerNorm 8, RMSNorm 5, GELU 8, ReLU 1, SiLU 5, Multiply, Residual and rotation 1, 1 and 3 a number (models/catalog).
    void parametersAndFlopsEqualADerivation_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<bool>("isSmall");
        for (const char* name : {"MultiHeadAttention", "SelfAttention", "CrossAttention", "RotarySelfAttention", "FeedForward", "FeedForwardReLU", "SwiGLU", "TransformerBlock",
                                 "PostNormTransformerBlock", "RotaryTransformerBlock", "CrossAttentionBlock", "TransformerDecoderBlock"})
            for (const bool isSmall : {true, false}) QTest::newRow(qPrintable(QString(name) + (isSmall ? " small" : " large"))) << name << isSmall;
    }
    void parametersAndFlopsEqualADerivation() {
        QFETCH(QString, name);
        QFETCH(bool, isSmall);
        const std::int64_t d = isSmall ? 16 : 768, h = isSmall ? 4 : 12, B = isSmall ? 2 : 3, T = isSmall ? 5 : 128, S = isSmall ? 7 : 50, f = isSmall ? 40 : 3000;
        const bool isRotary = name.startsWith("Rotary") || name == "SwiGLU", isFed = name.contains("Feed") || name == "SwiGLU" || name.contains("Block");
        const std::int64_t k = isRotary && name != "SwiGLU" ? h / 2 : h, kd = k * (d / h), bias = isRotary ? 0 : 1;
        Sizes sizes{{"d_model", d}};
        if (name != "SwiGLU" && !name.startsWith("Feed")) sizes["num_heads"] = h;
        if (k != h) sizes["num_kv_heads"] = k;
        if (isFed) sizes["d_ff"] = f;
        double parameters = 0, flops = 0;
        const auto dense = [&](std::int64_t in, std::int64_t out, std::int64_t rows) {
            parameters += static_cast<double>(in * out + bias * out);
            flops += static_cast<double>(rows) * static_cast<double>(2 * in * out + bias * out);
        };
        const auto each = [&](std::int64_t numbers, double perNumber) { flops += static_cast<double>(numbers) * perNumber; };
        const auto attention = [&](std::int64_t keys) { // of T queries
            dense(d, d, B * T);
            dense(d, kd, B * keys);
            dense(d, kd, B * keys);
            dense(d, d, B * T);
            each(B * h * T * keys, 4.0 * static_cast<double>(d / h) + 5);
            if (isRotary) each(B * T * (d + kd), 3);
        };
        const auto norm = [&] {
            parameters += static_cast<double>(isRotary ? d : 2 * d);
            each(B * T * d, isRotary ? 5 : 8);
        };
        const auto feedForward = [&](double act) {
            dense(d, f, B * T);
            if (isRotary) dense(d, f, B * T);
            each(B * T * f, isRotary ? 5 + 1 : act);
            dense(f, d, B * T);
        };
        const double act = name.contains("ReLU") || name.startsWith("PostNorm") ? 1 : 8;
        const bool seesContext = name.contains("Cross") || name.contains("Decoder"), seesItself = name == "SelfAttention" || name == "RotarySelfAttention" || (name.contains("Block") && name != "CrossAttentionBlock");
        if (seesItself) attention(T);
        if (seesContext || name == "MultiHeadAttention") attention(S);
        if (isFed) feedForward(act);
        if (name.contains("Block"))
            for (int i = 0; i < 1 + int(seesItself) + int(seesContext); ++i) {
                norm();
                each(B * T * d, 1); // the residual
            }
        if (entryHas(name.toStdString(), "dropout")) sizes["dropout"] = 0.0; // a Dropout that drops nothing costs nothing
        const graph::ExpandedModel model = expanded(findStandard(name.toStdString())->document, sizes);
        std::map<std::string, std::int64_t> symbols{{"B", B}, {"T", T}};
        if (seesContext || name == "MultiHeadAttention") symbols["S"] = S;
        const graph::Cost cost = graph::total(graph::costs(model, symbols));
        QCOMPARE(cost.forwardFlops, flops);
        QCOMPARE(static_cast<double>(cost.parameters), parameters);
        QCOMPARE(static_cast<double>(model.parameterCount()), parameters);
    }

    void otherEntriesHaveTheParametersOfADerivation_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<WholeSizes>("sizes");
        QTest::addColumn<qint64>("parameters");
        QTest::newRow("ResidualDenseBlock") << "ResidualDenseBlock" << WholeSizes{{"dim", 10}, {"hidden", 30}} << qint64(2 * 10 + 10 * 30 + 30 + 30 * 10 + 10);
        QTest::newRow("ClassifierHead") << "ClassifierHead" << WholeSizes{{"dim", 10}, {"classes", 3}} << qint64(2 * 10 + 10 * 3 + 3);
        QTest::newRow("SequenceClassifierHead") << "SequenceClassifierHead" << WholeSizes{{"dim", 10}, {"classes", 3}} << qint64(2 * 10 + 10 * 3 + 3);
        QTest::newRow("RegressionHead") << "RegressionHead" << WholeSizes{{"dim", 10}, {"outputs", 2}} << qint64(2 * 10 + 10 * 2 + 2);
        QTest::newRow("GatedFusion") << "GatedFusion" << WholeSizes{{"dim", 10}} << qint64(2 * 10 * 10 + 10);
        QTest::newRow("ConvBlock") << "ConvBlock" << WholeSizes{{"in_channels", 3}, {"out_channels", 8}, {"kernel_size", 5}, {"stride", 2}, {"height", 9}, {"width", 12}} << qint64(3 * 8 * 25 + 2 * 8);
        QTest::newRow("ResidualConvBlock") << "ResidualConvBlock" << WholeSizes{{"channels", 6}} << qint64(2 * (6 * 6 * 9 + 2 * 6));
        QTest::newRow("PatchEmbedding") << "PatchEmbedding" << WholeSizes{{"channels", 3}, {"height", 12}, {"width", 8}, {"patch_size", 4}, {"d_model", 16}} << qint64(3 * 16 * 16 + 16 + 3 * 2 * 16);
        QTest::newRow("LearnedPositions") << "LearnedPositions" << WholeSizes{{"length", 7}, {"d_model", 16}} << qint64(7 * 16);
        QTest::newRow("MixtureOfExpertsBlock") << "MixtureOfExpertsBlock" << WholeSizes{{"d_model", 16}, {"num_heads", 4}, {"d_ff", 24}, {"num_experts", 3}, {"top_k", 2}}
                                               << qint64(4 * 16 * 16 + 2 * 16 + 3 * 16 + 3 * 3 * 16 * 24); // attention, norms, router, experts of gate, up and down
    }
    void otherEntriesHaveTheParametersOfADerivation() {
        QFETCH(QString, name);
        QFETCH(WholeSizes, sizes);
        QFETCH(qint64, parameters);
        Sizes given;
        for (const auto& [key, value] : sizes) given[key] = std::int64_t(value);
        QCOMPARE(qint64(expanded(findStandard(name.toStdString())->document, given).parameterCount()), parameters);
    }

    /// Those of the two tables above are all there are.
    void everyEntryHasADerivation() {
        QFile source(CELLOOM_SOURCE "/tests/models/tst_library.cpp");
        QVERIFY(source.open(QIODevice::ReadOnly));
        const QByteArray text = source.readAll();
        for (const Entry& entry : standard()) QVERIFY2(text.contains(("\"" + entry.name + "\"").c_str()), entry.name.c_str());
    }

    void everyTemplateExpandsAndSaysWhatItIs() {
        for (const Template& made : templates()) {
            QVERIFY2(!made.summary().empty() && !made.summaryZh.empty() && !made.title.empty() && !made.titleZh.empty(), made.name.c_str());
            expanded(made.document);
            for (const graph::HyperParameter& hyper : made.document.main.hyper) QVERIFY2(!hyper.help.empty() && made.helpZh.contains(hyper.name), (made.name + "." + hyper.name).c_str());
        }
    }

    void aCopyBringsWhatItNeedsAndItsOrigin() {
        graph::Document document;
        const Copied copied = must(copyInto(document, "TransformerBlock"));
        QCOMPARE(copied.type, std::string("TransformerBlock"));
        QCOMPARE(document.composites.size(), std::size_t(4)); // block, self-attention, attention, feed-forward
        QVERIFY((document.composites.at("MultiHeadAttention").origin == graph::Origin{"celloom", "MultiHeadAttention", 1}));
        document.main.inputs = {{"x", {"B", "T", "64"}}};
        document.main.outputs = {{"y", {"B", "T", "64"}}};
        document.main.cells = {{"block", copied.type, {{"d_model", std::int64_t(64)}, {"num_heads", std::int64_t(4)}}, "3", {}, {}}};
        document.main.wires = {{{"", "x"}, {"block", "x"}}, {{"block", "out"}, {"", "y"}}};
        const auto again = must(graph::fromJson(graph::toJson(document)));
        QCOMPARE(expanded(again).parameterCount(), std::int64_t(3 * (4 * (64 * 64 + 64) + (64 * 256 + 256) + (256 * 64 + 64) + 4 * 64)));
    }

    void copyingAgainChangesNothing() {
        graph::Document document;
        must(copyInto(document, "TransformerBlock"));
        const std::string before = graph::toJson(document);
        const Copied again = must(copyInto(document, "TransformerBlock")), inner = must(copyInto(document, "MultiHeadAttention"));
        QCOMPARE(again.type, std::string("TransformerBlock"));
        QVERIFY(again.added.empty() && inner.added.empty());
        QCOMPARE(graph::toJson(document), before);
    }

    void aTakenNameGetsANumberAndInnerReferencesFollow() {
        graph::Document document;
        document.composites["MultiHeadAttention"].note = "my own";
        const Copied copied = must(copyInto(document, "CrossAttention"));
        QCOMPARE(copied.type, std::string("CrossAttention"));
        QCOMPARE(document.composites.at("MultiHeadAttention").note, std::string("my own"));
        QCOMPARE(document.composites.at("CrossAttention").cells[0].type, std::string("MultiHeadAttention_2"));
        QCOMPARE(must(copyInto(document, "MultiHeadAttention")).type, std::string("MultiHeadAttention_2"));
    }

    void movedCellsAreNoEditButAChangedNumberIs() {
        graph::Document document;
        must(copyInto(document, "FeedForward"));
        document.composites.at("FeedForward").cells[0].position = graph::Position{10, 20};
        QVERIFY(must(copyInto(document, "FeedForward")).added.empty());
        document.composites.at("FeedForward").hyper[0].value = std::int64_t(128);
        QCOMPARE(must(copyInto(document, "FeedForward")).type, std::string("FeedForward_2"));
    }

    void aProblemNamesTheCompositeThatItIsIn() {
        graph::Document document = findTemplate("transformer-lm")->document;
        const auto hintOf = [&](const Sizes& sizes) {
            const graph::Expansion expansion = graph::expand(document, sizes);
            return expansion.problems.empty() ? std::string("no problem") : expansion.problems[0].path + " | " + expansion.problems[0].hint;
        };
        QVERIFY2(hintOf({{"d_model", std::int64_t(65)}}).ends_with("In the composite MultiHeadAttention."), hintOf({{"d_model", std::int64_t(65)}}).c_str());
        QVERIFY(hintOf({{"d_model", std::int64_t(65)}}).starts_with("blocks.0.attention.attention.attention |"));
        document.composites.at("PostNormTransformerBlock").cells[0].params["d_modle"] = std::string("d_model");
        QVERIFY2(hintOf({}).ends_with("In the composite PostNormTransformerBlock."), hintOf({}).c_str());
        document.composites.at("PostNormTransformerBlock").cells[0].params.erase("d_modle");
        document.main.cells[0].params["vocabulary"] = std::int64_t(3);
        QVERIFY2(hintOf({}).find("In the composite") == std::string::npos, hintOf({}).c_str());
    }

    void anUnknownNameIsRefusedWithTheNearestOne() {
        graph::Document document;
        const auto copied = copyInto(document, "MultiheadAttention");
        QVERIFY(!copied);
        QVERIFY2(copied.error().hint.find("MultiHeadAttention") != std::string::npos, copied.error().text().c_str());
        QVERIFY(document.composites.empty());
    }

    void recursiveEntriesAreRefused() {
        Entry entry;
        entry.name = "A";
        entry.document.main.cells = {{"b", "B", {}, {}, {}, {}}};
        entry.document.composites["B"].cells = {{"c", "C", {}, {}, {}, {}}};
        entry.document.composites["C"].cells = {{"b", "B", {}, {}, {}, {}}};
        graph::Document document;
        const auto copied = copyInto(document, entry);
        QVERIFY(!copied);
        QVERIFY2(copied.error().message.find("B -> C -> B") != std::string::npos, copied.error().text().c_str());
        QVERIFY(document.composites.empty());
    }

    /// Each level names the next one: as deep as a document of 16 MiB can be, it must not use up the stack.
    void compositesThatNestTooDeepAreRefused() {
        Entry entry;
        entry.name = "A";
        entry.document.main.cells = {{"c", "C0", {}, {}, {}, {}}};
        for (int i = 0; i < 20000; ++i)
            entry.document.composites["C" + std::to_string(i)].cells = {{"c", "C" + std::to_string(i + 1), {}, {}, {}, {}}};
        for (int i = 19999; i > 0; i -= 30) // the deepest first, so that most of the way is known already
            entry.document.main.cells.insert(entry.document.main.cells.end() - 1, {"c" + std::to_string(i), "C" + std::to_string(i), {}, {}, {}, {}});
        graph::Document document;
        QVERIFY(!copyInto(document, entry));
        QVERIFY(digestsOf(entry.document).size() < 40);
    }
};

QTEST_GUILESS_MAIN(TestLibrary)
#include "tst_library.moc"
