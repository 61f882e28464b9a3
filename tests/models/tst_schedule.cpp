// Learning-rate schedules against tables that other frameworks produced.
#include "models/recipe/schedule.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QtTest>

#include <cmath>

using namespace celloom::recipe;

namespace {

QJsonObject fixture(const char* name) {
    QFile file(QString(CELLOOM_FIXTURES "/") + name);
    if (!file.open(QIODevice::ReadOnly)) return {};
    return QJsonDocument::fromJson(file.readAll()).object();
}

Recipe recipeWith(const char* type, const char* rule, double peak, double minimum, std::int64_t warmup) {
    Recipe recipe;
    (void)recipe.setFromText("schedule.type", type);
    (void)recipe.setFromText("schedule.rule", rule);
    (void)recipe.set("optimizer.lr", peak);
    (void)recipe.set("schedule.min_lr", minimum);
    (void)recipe.set("schedule.warmup_steps", warmup);
    return recipe;
}

bool isClose(double a, double b, double relative) {
    return std::abs(a - b) <= relative * std::max(std::abs(a), std::abs(b)) + 1e-18;
}

} // namespace

class TestSchedule : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void transformersRuleEqualsTransformers_data() {
        QTest::addColumn<QString>("type");
        QTest::addColumn<QString>("table");
        QTest::addColumn<double>("minimum");
        QTest::newRow("constant") << "constant"
                                  << "hf_constant_with_warmup" << 0.0;
        QTest::newRow("linear") << "linear"
                                << "hf_linear_with_warmup" << 0.0;
        QTest::newRow("cosine") << "cosine"
                                << "hf_cosine_with_warmup" << 0.0;
        QTest::newRow("cosine with a lowest rate") << "cosine"
                                                   << "hf_cosine_with_min_lr_rate_0.1" << 1e-4;
    }
    void transformersRuleEqualsTransformers() {
        QFETCH(QString, type);
        QFETCH(QString, table);
        QFETCH(double, minimum);
        const QJsonObject all = fixture("schedules/hf_schedules.json");
        const QJsonArray expected = all["lr_used_by_step_0_to_49"].toObject()[table].toArray();
        QCOMPARE(expected.size(), 50);
        auto schedule = scheduleOf(recipeWith(qPrintable(type), "transformers", all["base_lr"].toDouble(), minimum, 10), 50);
        QVERIFY(schedule);
        for (int s = 0; s < 50; ++s) QVERIFY2(isClose(schedule->rateAt(s), expected[s].toDouble(), 1e-12), qPrintable(QString::number(s)));
    }

    void celloomRuleEqualsTheTraceOfThePretrainFixture() {
        // fixtures/pretrain_baichuan_7b/expected.json, trace_f64.lr; its rule: step<w: peak*(step+1)/w; else cosine over (steps-1-w)
        const double expected[20] = {0.0006000000000000001,
                                     0.0012000000000000001,
                                     0.0018000000000000002,
                                     0.0024000000000000002,
                                     0.003,
                                     0.003,
                                     0.002966152681445462,
                                     0.0028663079716682656,
                                     0.0027054725013318406,
                                     0.0024917112325092902,
                                     0.0022357430478087037,
                                     0.0019504032608410244,
                                     0.00165,
                                     0.0013495967391589756,
                                     0.0010642569521912967,
                                     0.0008082887674907098,
                                     0.0005945274986681598,
                                     0.00043369202833173426,
                                     0.00033384731855453807,
                                     0.0003};
        auto schedule = scheduleOf(recipeWith("cosine", "celloom", 3e-3, 3e-4, 5), 20);
        QVERIFY(schedule);
        for (int s = 0; s < 20; ++s) QVERIFY2(isClose(schedule->rateAt(s), expected[s], 1e-13), qPrintable(QString::number(s)));
    }

    void mindformersRuleEqualsItsCheckValues() {
        // CosineWithWarmUpLR, mindformers r1.0
        auto lora = scheduleOf(recipeWith("cosine", "mindformers", 5e-5, 0, 3), 100);
        QVERIFY(lora);
        QCOMPARE(lora->rateAt(0), 0.0);
        QVERIFY(isClose(lora->rateAt(1), 1.6667e-5, 1e-4));
        QVERIFY(isClose(lora->rateAt(3), 5e-5, 1e-12));
        QVERIFY(isClose(lora->rateAt(51), 2.5405e-5, 1e-4));
        QVERIFY(isClose(lora->rateAt(99), 1.311e-8, 1e-3));
        Recipe baichuan = recipeWith("cosine", "mindformers", 3e-4, 3e-5, 0);
        QVERIFY(baichuan.set("schedule.warmup_ratio", 0.03)); // int(1000 * 0.03) = 30
        auto pretrain = scheduleOf(baichuan, 1000);
        QVERIFY(pretrain);
        QCOMPARE(pretrain->warmupSteps, 30);
        QVERIFY(isClose(pretrain->rateAt(15), 1.5e-4, 1e-12));
        QVERIFY(isClose(pretrain->rateAt(30), 3e-4, 1e-12));
        QVERIFY(isClose(pretrain->rateAt(515), 1.65e-4, 1e-12));
        auto bare = scheduleOf(recipeWith("cosine", "mindformers", 3e-4, 3e-5, 0), 1000);
        QCOMPARE(bare->rateAt(0), 0.0); // at least one warm-up step
    }

    void mindsporeRuleEqualsItsSchedules() {
        const QJsonObject all = fixture("mindspore_schedules.json");
        const QJsonArray cosine = all["CosineDecayLR(0.1,1.0,10)"].toArray(), warmup = all["WarmUpLR(1.0,4)"].toArray();
        QCOMPARE(cosine.size(), 14);
        QCOMPARE(warmup.size(), 14);
        auto decayed = scheduleOf(recipeWith("cosine", "mindspore", 1.0, 0.1, 0), 10);
        auto warmed = scheduleOf(recipeWith("constant", "mindspore", 1.0, 0, 4), 14);
        QVERIFY(decayed && warmed);
        for (int s = 0; s < 14; ++s) { // MindSpore computes in float32
            QVERIFY(isClose(decayed->rateAt(s), cosine[s].toDouble(), 1e-6));
            QVERIFY(isClose(warmed->rateAt(s), warmup[s].toDouble(), 1e-6));
        }
    }

    void impossibleSchedulesAreRefused() {
        QVERIFY(!scheduleOf(recipeWith("cosine", "celloom", 1e-3, 0, 10), 10));
        QVERIFY(!scheduleOf(recipeWith("cosine", "celloom", 1e-3, 0, 0), 0));
        QVERIFY(!scheduleOf(recipeWith("cosine", "celloom", 1e-3, 1, 0), 10));
        QVERIFY(scheduleOf(recipeWith("cosine", "celloom", 1e-3, 0, 0), 1));
    }

    void everyRuleStaysBetweenTheMinimumAndThePeakAfterWarmUp() {
        for (const char* rule : {"celloom", "transformers", "mindformers", "mindspore"})
            for (const char* type : {"constant", "linear", "cosine"})
                for (std::int64_t total : {1, 2, 3, 17})
                    for (std::int64_t warmup = 0; warmup < total; ++warmup) {
                        auto schedule = scheduleOf(recipeWith(type, rule, 1e-3, 1e-4, warmup), total);
                        QVERIFY(schedule);
                        for (std::int64_t s = 0; s < total + 3; ++s) {
                            const double rate = schedule->rateAt(s);
                            QVERIFY(std::isfinite(rate) && rate >= 0 && rate <= 1e-3 * (1 + 1e-12));
                            if (s > warmup) QVERIFY(rate >= 1e-4 * (1 - 1e-12));
                        }
                    }
    }
};

QTEST_GUILESS_MAIN(TestSchedule)
#include "tst_schedule.moc"
