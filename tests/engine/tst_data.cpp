// From files to rows: sources, packing and labels, token files, the cache, held-out data, step counting, the bigram yardstick.
#include "engine/checkpoint/safetensors.h"
#include "engine/data/bigram.h"
#include "engine/data/packed.h"
#include "engine/data/prepare.h"
#include "engine/data/step_plan.h"
#include "engine/data/tensor_files.h"
#include "engine/data/token_file.h"
#include "models/base/files.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <QDir>
#include <QTemporaryDir>
#include <QTest>
#include <cmath>
#include <fstream>

using namespace celloom;
using namespace celloom::engine;
namespace fs = std::filesystem;

namespace {

using Numbers = std::vector<std::int64_t>;

Numbers numbers(const at::Tensor& tensor) {
    const at::Tensor flat = tensor.to(at::kLong).contiguous().view({-1});
    return {flat.data_ptr<std::int64_t>(), flat.data_ptr<std::int64_t>() + flat.numel()};
}

TokenStream stream(const std::vector<std::int32_t>& ids, const Numbers& starts) {
    return {at::tensor(ids, at::kInt), at::tensor(starts, at::kLong)};
}

void write(const fs::path& path, const std::string& content) { std::ofstream(path, std::ios::binary) << content; }

/// Rows given outright.
class ListDataset : public Dataset {
public:
    explicit ListDataset(std::vector<Numbers> rows) : m_rows(std::move(rows)) {}
    std::int64_t size() const override { return static_cast<std::int64_t>(m_rows.size()); }
    Row get(std::int64_t index) const override {
        const at::Tensor ids = at::tensor(m_rows[static_cast<std::size_t>(index)], at::kLong);
        return {ids, ids.clone(), {}, {}};
    }

private:
    std::vector<Numbers> m_rows;
};

} // namespace

class TestData : public QObject {
    Q_OBJECT
    QTemporaryDir m_folder;
    fs::path at(const char* name) const { return fs::path(m_folder.path().toStdString()) / name; }

private Q_SLOTS:
    void fullAttentionPacksOneStream() {
        const PackedDataset rows(stream({5, 6, 2, 7, 8, 9, 2}, {0, 3, 7}), 4, DocumentAttention::Full, 0);
        QCOMPARE(rows.size(), std::int64_t(2));
        QCOMPARE(numbers(rows.get(0).inputIds), (Numbers{5, 6, 2, 7}));
        QCOMPARE(numbers(rows.get(0).labels), (Numbers{5, 6, 2, 7}));
        QVERIFY(!rows.get(0).segments.defined());
        QCOMPARE(numbers(rows.get(1).inputIds), (Numbers{8, 9, 2, 0}));
        QCOMPARE(numbers(rows.get(1).labels), (Numbers{8, 9, 2, -100}));
    }

    void documentAttentionRestartsPositionsAndIgnoresTheFirstLabel() {
        const PackedDataset rows(stream({5, 6, 2, 7, 8, 9, 2}, {0, 3, 7}), 5, DocumentAttention::Document, 0);
        const Row first = rows.get(0);
        QCOMPARE(numbers(first.inputIds), (Numbers{5, 6, 2, 7, 8}));
        QCOMPARE(numbers(first.labels), (Numbers{5, 6, 2, -100, 8}));
        QCOMPARE(numbers(first.segments), (Numbers{0, 0, 0, 1, 1}));
        QCOMPARE(numbers(first.positions), (Numbers{0, 1, 2, 0, 1}));
        const Row second = rows.get(1); // begins inside the second document and holds nothing else
        QCOMPARE(numbers(second.labels), (Numbers{9, 2, -100, -100, -100}));
        QVERIFY(!second.segments.defined());
    }

    void aRowExactlyAsLongAsADocumentKeepsItsLabels() { // cases.md 4
        const PackedDataset rows(stream({5, 6, 7, 2}, {0, 4}), 4, DocumentAttention::Document, 0);
        QCOMPARE(rows.size(), std::int64_t(1));
        QCOMPARE(numbers(rows.get(0).labels), (Numbers{5, 6, 7, 2}));
    }

    void aSingleLeftoverTokenMakesNoRow() {
        QCOMPARE(PackedDataset(stream({5, 6, 7, 8, 2}, {0, 5}), 4, DocumentAttention::Full, 0).size(), std::int64_t(1));
    }

    void batchesStackRowsAndCountValidLabels() {
        const PackedDataset rows(stream({5, 6, 2, 7, 8, 9, 2}, {0, 3, 7}), 5, DocumentAttention::Document, 0);
        const Batch batch = collate(rows, 0, 2);
        QCOMPARE(numbers(batch.segments), (Numbers{0, 0, 0, 1, 1, 0, 0, 0, 0, 0})); // a row of one document: segment 0
        QCOMPARE(numbers(batch.positions), (Numbers{0, 1, 2, 0, 1, 0, 1, 2, 3, 4}));
        QCOMPARE(validLabels(batch), std::int64_t(3 + 1)); // 6 2 8, and 2: the first of a row has nothing before it
    }

    void shuffleIsAPermutationFixedBySeedAndEpoch() {
        std::vector<Numbers> list;
        for (std::int64_t i = 0; i < 50; ++i) list.push_back({i, i});
        const ListDataset source(list);
        const auto orderOf = [&](std::uint64_t seed, std::int64_t epoch) {
            const ShuffledDataset shuffled(source, seed, epoch);
            Numbers out;
            for (std::int64_t i = 0; i < 50; ++i) out.push_back(numbers(shuffled.get(i).inputIds)[0]);
            return out;
        };
        Numbers sorted = orderOf(1, 0);
        QCOMPARE(sorted, orderOf(1, 0));
        QVERIFY(sorted != orderOf(1, 1));
        QVERIFY(sorted != orderOf(2, 0));
        std::sort(sorted.begin(), sorted.end());
        for (std::int64_t i = 0; i < 50; ++i) QCOMPARE(sorted[static_cast<std::size_t>(i)], i);
    }

    void shorterRowsAreFilledUpToTheLongestOfTheirBatch() {
        class Padded : public ListDataset {
        public:
            using ListDataset::ListDataset;
            std::int64_t padId() const override { return 9; }
        };
        const Padded rows({{1, 2, 3}, {4}, {5, 6}});
        const Batch batch = collate(rows, 0, 2), shorter = collate(rows, 1, 2);
        QCOMPARE(numbers(batch.inputIds), (Numbers{1, 2, 3, 4, 9, 9}));
        QCOMPARE(numbers(batch.labels), (Numbers{1, 2, 3, 4, -100, -100}));
        QCOMPARE(numbers(shorter.inputIds), (Numbers{4, 9, 5, 6}));
        QCOMPARE(validLabels(batch), std::int64_t(2));
    }

    void rowsOfOneLengthMeetInABatchAndNoneIsLost() {
        std::vector<Numbers> list;
        for (std::int64_t i = 0; i < 103; ++i) list.push_back(Numbers(static_cast<std::size_t>(1 + (i * 7) % 20), i));
        const ListDataset source(list);
        const ShuffledDataset grouped(source, 5, 0, 4), again(source, 5, 0, 4), next(source, 5, 1, 4), plain(source, 5, 0);
        const auto padsOf = [](const Dataset& rows) {
            std::int64_t pads = 0;
            for (std::int64_t first = 0; first + 4 <= rows.size(); first += 4) {
                std::int64_t longest = 0, used = 0;
                for (std::int64_t i = first; i < first + 4; ++i) longest = std::max(longest, rows.lengthOf(i)), used += rows.lengthOf(i);
                pads += 4 * longest - used;
            }
            return pads;
        };
        QVERIFY(padsOf(grouped) * 4 < padsOf(plain));
        Numbers order, sorted, other;
        for (std::int64_t i = 0; i < 103; ++i) {
            order.push_back(numbers(grouped.get(i).inputIds)[0]);
            QCOMPARE(numbers(again.get(i).inputIds)[0], order.back());
            other.push_back(numbers(next.get(i).inputIds)[0]);
        }
        QVERIFY(order != other);
        sorted = order;
        std::sort(sorted.begin(), sorted.end());
        for (std::int64_t i = 0; i < 103; ++i) QCOMPARE(sorted[static_cast<std::size_t>(i)], i);
    }

    void stepsAreKnownBeforehand() { // cases.md 8: 10 samples, batch 2, accumulation 4, 2 epochs: 4 steps flushed, 2 dropped
        const StepPlan run{10, 2, 4, EpochTail::Run}, drop{10, 2, 4, EpochTail::Drop};
        QCOMPARE(2 * run.stepsPerEpoch(), std::int64_t(4));
        QCOMPARE(2 * drop.stepsPerEpoch(), std::int64_t(2));
        QCOMPARE(run.microBatches(0).size(), std::size_t(4));
        QCOMPARE(run.microBatches(1).size(), std::size_t(1));
        QCOMPARE(run.microBatches(1)[0].firstRow, std::int64_t(8));
        QCOMPARE((StepPlan{9, 2, 4, EpochTail::Run}.microBatches(1)[0].rows), std::int64_t(1));
    }

    void tokenFilesOfBothShapesGiveTheSameRows() {
        const at::Tensor ids = at::tensor(Numbers{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, at::kLong);
        QVERIFY(writeSafetensors(at("flat.safetensors"), {{"input_ids", ids.view({4, 3})}}));
        QVERIFY(writeSafetensors(at("steps.safetensors"), {{"input_ids", ids.view({2, 2, 3})}}));
        const auto flat = TokenFileDataset::open({at("flat.safetensors")}, 13), steps = TokenFileDataset::open({at("steps.safetensors")}, 13);
        QVERIFY(flat && steps);
        QCOMPARE((*steps)->size(), std::int64_t(4));
        for (int r = 0; r < 4; ++r) QCOMPARE(numbers((*steps)->get(r).inputIds), numbers((*flat)->get(r).inputIds));
        QCOMPARE(numbers((*flat)->get(3).labels), (Numbers{10, 11, 12}));
    }

    void labelsOfATokenFileAreKept() {
        const at::Tensor ids = at::tensor(Numbers{1, 2, 3}, at::kLong).view({1, 3}), labels = at::tensor(Numbers{-100, -100, 3}, at::kLong).view({1, 3});
        QVERIFY(writeSafetensors(at("labels.safetensors"), {{"input_ids", ids}, {"labels", labels}}));
        const auto rows = TokenFileDataset::open({at("labels.safetensors")}, 4);
        QVERIFY(rows);
        QCOMPARE(numbers((*rows)->get(0).labels), (Numbers{-100, -100, 3}));
    }

    void aTokenOutsideTheVocabularyIsNamed() {
        const at::Tensor ids = at::tensor(Numbers{1, 2, 3, 4, 99, 6}, at::kLong).view({2, 3});
        QVERIFY(writeSafetensors(at("big.safetensors"), {{"input_ids", ids}}));
        const auto rows = TokenFileDataset::open({at("big.safetensors")}, 64);
        QVERIFY(!rows);
        QVERIFY2(QString::fromStdString(rows.error().message).contains("id 99 in input_ids, row 1, position 1"), rows.error().message.c_str());
    }

    void documentsAreFilesParagraphsOrBlocks_data() {
        QTest::addColumn<int>("unit");
        QTest::addColumn<QStringList>("documents");
        QTest::newRow("file") << int(DocumentUnit::File) << QStringList{"一\n二\n\n三\n"};
        QTest::newRow("paragraph") << int(DocumentUnit::Paragraph) << QStringList{"一", "二", "三"};
        QTest::newRow("blank line") << int(DocumentUnit::BlankLine) << QStringList{"一\n二\n", "三\n"};
    }
    void documentsAreFilesParagraphsOrBlocks() {
        QFETCH(int, unit);
        QFETCH(QStringList, documents);
        write(at("documents.txt"), "一\r\n二\n\n三\n");
        const auto corpus = readText({at("documents.txt")}, DocumentUnit(unit), "auto");
        QVERIFY(corpus);
        QStringList found;
        for (const auto& document : corpus->documents) found << QString::fromStdString(document);
        QCOMPARE(found, documents);
        QCOMPARE(corpus->files[0].encoding, std::string("UTF-8"));
        QCOMPARE(corpus->files[0].sha256, *sha256OfFile(at("documents.txt")));
    }

    void oneUnreadableFileImportsNothing() { // cases.md 2
        write(at("good.txt"), "好");
        write(at("bad.txt"), "a\xFF\xFFz");
        const auto corpus = readText({at("good.txt"), at("bad.txt")}, DocumentUnit::File, "auto");
        QVERIFY(!corpus);
        QCOMPARE(corpus.error().place, at("bad.txt").string());
        QVERIFY(QString::fromStdString(corpus.error().message).contains("byte 1"));
    }

    void patternsAreSortedAndNeverEmpty() {
        QDir(m_folder.path()).mkdir("chapters");
        for (const char* name : {"chapters/b.txt", "chapters/a.txt", "chapters/notes.md"}) write(at(name), "文");
        const auto byPattern = expandFiles({(at("chapters") / "*.txt").string(), at("chapters/a.txt").string()}, "data.train");
        QVERIFY(byPattern);
        QCOMPARE(byPattern->size(), std::size_t(2));
        QCOMPARE((*byPattern)[0], at("chapters/a.txt"));
        QCOMPARE(*expandFiles({at("chapters").string()}, "data.train"), *byPattern);
        const auto missing = expandFiles({at("nothing*.txt").string()}, "data.train");
        QVERIFY(!missing);
        QCOMPARE(missing.error().place, std::string("data.train"));
    }

    void aChangedFileIsNamed() {
        write(at("changing.txt"), "before");
        const auto before = readText({at("changing.txt")}, DocumentUnit::File, "auto");
        write(at("changing.txt"), "after it");
        const auto after = readText({at("changing.txt")}, DocumentUnit::File, "auto");
        QVERIFY(checkUnchanged(before->files, before->files));
        const auto status = checkUnchanged(before->files, after->files);
        QVERIFY(!status);
        QCOMPARE(status.error().place, at("changing.txt").string());
        QVERIFY(!checkUnchanged(before->files, {}));
        QVERIFY(!checkUnchanged({}, after->files));
    }

    void heldOutDocumentsAreWholeAndFixedBySeed() {
        std::string text;
        for (int i = 0; i < 40; ++i) text += "文" + std::to_string(i) + "\n";
        write(at("paragraphs.txt"), text);
        recipe::Recipe recipe;
        QVERIFY(recipe.set("data.train", std::vector<std::string>{at("paragraphs.txt").string()}));
        QVERIFY(recipe.set("data.documents", std::string("paragraph")));
        QVERIFY(recipe.set("data.validation_fraction", 0.1));
        const auto files = findDataFiles(recipe);
        QVERIFY(files);
        const auto split = readTextSplit(recipe, *files), again = readTextSplit(recipe, *files);
        QVERIFY(split && again);
        QCOMPARE(split->validation.size(), std::size_t(4));
        QCOMPARE(split->train.size(), std::size_t(36));
        QCOMPARE(split->validation, again->validation);
        for (const auto& document : split->validation) QVERIFY(std::count(split->train.begin(), split->train.end(), document) == 0);
        QVERIFY(recipe.set("seed", std::int64_t(1)));
        QVERIFY(readTextSplit(recipe, *files)->validation != split->validation);
    }

    void validationFilesMustNotBeLearnedFrom() {
        write(at("both.txt"), "文");
        recipe::Recipe recipe;
        QVERIFY(recipe.set("data.train", std::vector<std::string>{at("both.txt").string()}));
        QVERIFY(recipe.set("data.validation", std::vector<std::string>{(at("chapters") / ".." / "both.txt").string()}));
        QDir(m_folder.path()).mkpath("chapters");
        QVERIFY(!findDataFiles(recipe));
    }

    void tokensAreCachedByContentAndTokenizer() {
        const auto tokenizer = Tokenizer::load(fs::path(CELLOOM_FIXTURES) / "tokenizer/sp_bpe_prefix.model");
        QVERIFY(tokenizer);
        const std::vector<std::string> documents{"话说天下大势", "分久必合"};
        QDir(m_folder.path()).mkdir("cache");
        int asked = 0;
        const auto goOn = [&] { return ++asked > 0; };
        const auto first = tokeniseCached(documents, **tokenizer, "hash", at("cache"), goOn);
        QVERIFY(first);
        QCOMPARE(asked, 2);
        const auto second = tokeniseCached(documents, **tokenizer, "hash", at("cache"), goOn);
        QCOMPARE(asked, 2); // nothing was tokenised again
        QCOMPARE(numbers(second->ids), numbers(first->ids));
        QCOMPARE(numbers(second->starts), numbers(first->starts));
        QCOMPARE(numbers(first->ids).back(), (*tokenizer)->eos());
        QVERIFY(tokeniseCached(documents, **tokenizer, "another", at("cache"), goOn));
        QCOMPARE(asked, 4);
        QVERIFY(!tokeniseCached(documents, **tokenizer, "third", at("cache"), [] { return false; }));
    }

    void bigramProbabilitiesAddUpToOne() {
        std::vector<Numbers> rows;
        for (std::int64_t i = 0; i < 40; ++i) rows.push_back({i % 5, (i * i) % 5, (i + 1) % 5, 3, i % 3});
        const auto model = BigramModel::fit(ListDataset(rows), 7);
        for (std::int64_t previous = 0; previous < 7; ++previous) {
            double sum = 0;
            for (std::int64_t next = 0; next < 7; ++next) sum += model.probability(previous, next);
            QVERIFY(std::abs(sum - 1) < 1e-9);
        }
    }

    void columnsOfSeveralFilesFollowOneAnother() {
        QVERIFY(writeSafetensors(at("first.safetensors"), {{"x", at::zeros({2, 3})}, {"label", at::arange(2)}}));
        QVERIFY(writeSafetensors(at("second.safetensors"), {{"x", at::zeros({1, 3})}, {"label", at::arange(1)}}));
        const auto rows = openTensorFiles({at("first.safetensors"), at("second.safetensors")});
        QVERIFY(rows);
        QCOMPARE((*rows)->size(), std::int64_t(3));
        QVERIFY(((*rows)->columns() == std::vector<std::string>{"label", "x"}));
        const Batch batch = collate(**rows, 1, 2);
        QVERIFY((numbers(batch.column("label")) == Numbers{1, 0}));
        QVERIFY((batch.column("x").sizes() == at::IntArrayRef{2, 3}) && batch.rows() == 2 && !batch.inputIds.defined());
        QVERIFY(!batch.column("input_ids").defined());
    }

    void columnsThatDoNotFitAreRefused_data() {
        QTest::addColumn<QString>("said");
        QTest::newRow("NaN") << "in the column \"x\", row 1";
        QTest::newRow("another number of rows") << "\"label\" has 3";
        QTest::newRow("other columns") << "All files need the same columns";
        QTest::newRow("another shape") << "another shape or type";
        QTest::newRow("a single number") << "without a row";
    }
    void columnsThatDoNotFitAreRefused() {
        QFETCH(QString, said);
        const std::string what = QTest::currentDataTag();
        std::map<std::string, at::Tensor> columns{{"x", at::zeros({2, 3})}, {"label", at::arange(2)}};
        const bool isSecond = what == "other columns" || what == "another shape";
        QVERIFY(writeSafetensors(at("good.safetensors"), columns));
        if (what == "NaN") columns["x"][1][2].fill_(NAN);
        if (what == "another number of rows") columns["label"] = at::arange(3);
        if (what == "other columns") columns["more"] = at::arange(2);
        if (what == "another shape") columns["x"] = at::zeros({2, 4});
        if (what == "a single number") columns["x"] = at::zeros({});
        QVERIFY(writeSafetensors(at("bad.safetensors"), columns));
        const auto rows = openTensorFiles(isSecond ? std::vector{at("good.safetensors"), at("bad.safetensors")} : std::vector{at("bad.safetensors")});
        QVERIFY(!rows);
        QVERIFY2(QString::fromStdString(rows.error().text()).contains(said), rows.error().text().c_str());
    }

    void bigramOfACertainTextIsNearlyCertain() {
        // 0 1 2 3 0 1 …: each token follows surely from the one before, so perplexity tends to 1; a uniform guess would be 4.
        const ListDataset rows(std::vector<Numbers>(200, Numbers{0, 1, 2, 3, 0, 1, 2, 3}));
        const auto model = BigramModel::fit(rows, 4);
        QVERIFY(model.perplexity(rows) < 1.01);
        QVERIFY(model.perplexity(rows) >= 1.0);
    }

    void bigramOfIndependentTokensIsTheirUnigram() {
        // A de Bruijn-like text: every pair equally often, so nothing is better than 1/3 a token.
        std::vector<Numbers> list;
        for (int copy = 0; copy < 100; ++copy)
            for (std::int64_t a = 0; a < 3; ++a)
                for (std::int64_t b = 0; b < 3; ++b) list.push_back({a, b});
        const ListDataset rows(list);
        QVERIFY(std::abs(BigramModel::fit(rows, 3).perplexity(rows) - 3.0) < 0.01);
    }
};

QTEST_GUILESS_MAIN(TestData)
#include "tst_data.moc"
