// What this machine is slow at, and the table of types folded for people.
#include "models/families/families.h"
#include "models/graph/expand.h"
#include "models/recipe/precision_summary.h"

#include <QtTest>

using namespace celloom;
using namespace celloom::recipe;

namespace {

graph::ExpandedModel tiny() { return graph::expand(*families::buildPreset("baichuan-tiny")).model; }

PrecisionTable tableOf(const graph::ExpandedModel& model, const PrecisionSettings& settings) {
    TreatmentTable plain;
    plain.cells.resize(model.cells.size());
    return *precisionOf(model, plain, settings);
}

} // namespace

class TestPrecisionTable : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void processorsAreToldByTheirFlags_data() {
        QTest::addColumn<QString>("cpuinfo");
        QTest::addColumn<bool>("bfloat16");
        QTest::addColumn<bool>("float16");
        QTest::newRow("an old x86") << "processor\t: 0\nflags\t\t: fpu sse sse2 avx2 f16c fma\n" << false << false;
        QTest::newRow("AMD Zen 4") << "flags\t\t: avx512f avx512_bf16 avx512_vnni\n" << true << false;
        QTest::newRow("Intel Sapphire Rapids") << "flags\t\t: avx512f avx512_bf16 avx512_fp16 amx_bf16 amx_tile\n" << true << true;
        QTest::newRow("ARM Neoverse V1") << "BogoMIPS\t: 50\nFeatures\t: fp asimd fphp asimdhp sve bf16\n" << true << true;
        QTest::newRow("nothing") << "" << false << false;
        QTest::newRow("only a name that looks like it") << "model name\t: avx512_bf16\n" << false << false;
    }
    void processorsAreToldByTheirFlags() {
        QFETCH(QString, cpuinfo);
        QFETCH(bool, bfloat16);
        QFETCH(bool, float16);
        const HalfSupport support = halfSupportIn(cpuinfo.toStdString());
        QCOMPARE(support.bfloat16, bfloat16);
        QCOMPARE(support.float16, float16);
    }

    void slowTypesAreThoseThatAreUsed() {
        const graph::ExpandedModel model = tiny();
        const HalfSupport onlyBrain{true, false};
        QVERIFY(slowTypes(tableOf(model, {}), {}).empty());
        QVERIFY(slowTypes(tableOf(model, {AmpLevel::O2, FloatType::BFloat16, {}, {}}), onlyBrain).empty());
        QCOMPARE(slowTypes(tableOf(model, {AmpLevel::O1, FloatType::Float16, {}, {}}), onlyBrain), std::vector{FloatType::Float16});
    }

    /// MindSpore's lists (mindspore/train/amp.py): Conv2d and MatMul are white, BatchNorm2d is black; its auto list has the sums.
    void imageCellsFollowMindSporesLists() {
        graph::Document document;
        document.main.inputs = {{"x", {"B", "3", "8", "8"}}};
        document.main.outputs = {{"y", {}}};
        document.main.cells = {{"conv", "Conv2d", {{"in_channels", std::int64_t{3}}, {"out_channels", std::int64_t{4}}, {"kernel_size", "3"}}, {}, {}, {}},
                               {"norm", "BatchNorm2d", {{"num_features", std::int64_t{4}}}, {}, {}, {}},
                               {"pool", "MaxPool2d", {{"kernel_size", "2"}}, {}, {}, {}},
                               {"mean", "ReduceMean", {{"axis", "2, 3"}}, {}, {}, {}}};
        const std::vector<std::string> path{"", "conv", "norm", "pool", "mean", ""};
        for (std::size_t i = 0; i + 1 < path.size(); ++i)
            document.main.wires.push_back({{path[i], i == 0 ? "x" : "out"}, {path[i + 1], path[i + 1].empty() ? "y" : "x"}});
        const graph::Expansion expansion = graph::expand(document);
        QVERIFY2(expansion.ok(), expansion.ok() ? "" : expansion.firstError().text().c_str());
        constexpr FloatType half = FloatType::BFloat16, whole = FloatType::Float32;
        const std::map<AmpLevel, std::vector<FloatType>> computes{{AmpLevel::O0, {whole, whole, whole, whole}},
                                                                  {AmpLevel::O1, {half, whole, whole, whole}},
                                                                  {AmpLevel::O2, {half, whole, half, whole}},
                                                                  {AmpLevel::O3, {half, half, half, half}},
                                                                  {AmpLevel::Auto, {half, whole, whole, whole}}};
        for (const auto& [level, expected] : computes) {
            const PrecisionTable table = tableOf(expansion.model, {level, half, {}, {}});
            for (std::size_t i = 0; i < expected.size(); ++i) QVERIFY2(table.cells[i].compute == expected[i], expansion.model.cells[i].path.c_str());
        }
    }

    void rowsFoldRepeatsAndCountEveryCell() {
        const graph::ExpandedModel model = tiny();
        const auto rows = foldedPrecision(model, tableOf(model, {AmpLevel::O2, FloatType::BFloat16, {}, {"layers.1.mlp.**"}}));
        std::int64_t count = 0;
        std::map<std::string, PrecisionRow> byName;
        for (const PrecisionRow& row : rows) {
            count += row.count;
            byName[row.name] = row;
        }
        QCOMPARE(count, static_cast<std::int64_t>(model.cells.size()));
        QCOMPARE(byName.size(), rows.size());
        const PrecisionRow& denied = byName.at("layers.1.mlp.up_proj");
        QCOMPARE(denied.count, std::int64_t(1));
        QVERIFY(denied.precision.reason == CellPrecision::Reason::Denied && denied.precision.compute == FloatType::Float32);
        const PrecisionRow& others = byName.at("layers.{0..3}.mlp.up_proj");
        QCOMPARE(others.count, std::int64_t(3));
        QVERIFY(others.precision.compute == FloatType::BFloat16);
        const PrecisionRow& norm = byName.at("layers.{0..3}.input_layernorm");
        QVERIFY(norm.precision.compute == FloatType::Float32 && norm.precision.wire == FloatType::BFloat16);
    }
};

QTEST_GUILESS_MAIN(TestPrecisionTable)
#include "tst_precision_table.moc"
