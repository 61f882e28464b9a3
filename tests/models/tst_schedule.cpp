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

/// With other fields set from text; `at` tells a schedule's rates step by step.
Recipe withFields(Recipe recipe, const std::vector<std::pair<const char*, const char*>>& fields) {
    for (const auto& [key, text] : fields)
        if (auto status = recipe.setFromText(key, text); !status) qFatal("%s", status.error().text().c_str());
    return recipe;
}

using Fields = std::vector<std::pair<const char*, const char*>>;

bool isClose(double a, double b, double relative) {
    return std::abs(a - b) <= relative * std::max(std::abs(a), std::abs(b)) + 1e-18;
}

} // namespace
Q_DECLARE_METATYPE(Fields)

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
        QTest::newRow("polynomial") << "polynomial"
                                    << "hf_polynomial_p2_end1e-5" << 1e-5;
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

    void mindsporesFunctionsAndClassesAreFollowed_data() {
        QTest::addColumn<QString>("table");
        QTest::addColumn<Fields>("fields");
        QTest::addColumn<int>("steps");
        QTest::addColumn<int>("perEpoch");
        const std::pair<const char*, const char*> byEpoch{"schedule.unit", "epoch"};
        QTest::newRow("cosine_decay_lr") << "cosine_decay_lr(min=0,max=1,total=12,per_epoch=3,decay_epoch=4)"
                                         << Fields{byEpoch, {"schedule.type", "cosine"}, {"schedule.decay_steps", "4"}} << 12 << 3;
        QTest::newRow("warmup_lr") << "warmup_lr(1.0,total=8,per_epoch=2,warmup_epoch=3)"
                                   << Fields{byEpoch, {"schedule.type", "constant"}, {"schedule.warmup_steps", "3"}} << 8 << 2;
        QTest::newRow("polynomial_decay_lr") << "polynomial_decay_lr(1.0,0.1,8,2,3,power=2)"
                                             << Fields{byEpoch,
                                                       {"schedule.type", "polynomial"},
                                                       {"schedule.power", "2"},
                                                       {"schedule.min_lr", "0.1"},
                                                       {"schedule.decay_steps", "3"}}
                                             << 8 << 2;
        QTest::newRow("exponential_decay_lr") << "exponential_decay_lr(1.0,0.9,8,2,1)"
                                              << Fields{byEpoch, {"schedule.type", "exponential"}, {"schedule.decay_steps", "1"}} << 8 << 2;
        QTest::newRow("WarmUpLR") << "WarmUpLR(1.0,4)" << Fields{{"schedule.type", "constant"}, {"schedule.warmup_steps", "4"}} << 14 << 0;
        QTest::newRow("CosineDecayLR") << "CosineDecayLR(0.1,1.0,10)"
                                       << Fields{{"schedule.type", "cosine"}, {"schedule.min_lr", "0.1"}, {"schedule.decay_steps", "10"}} << 14 << 0;
        QTest::newRow("PolynomialDecayLR") << "PolynomialDecayLR(1.0,0.1,10,2.0)"
                                           << Fields{{"schedule.type", "polynomial"},
                                                     {"schedule.power", "2"},
                                                     {"schedule.min_lr", "0.1"},
                                                     {"schedule.decay_steps", "10"}}
                                           << 14 << 0;
        QTest::newRow("ExponentialDecayLR") << "ExponentialDecayLR(1.0,0.9,4)"
                                            << Fields{{"schedule.type", "exponential"}, {"schedule.decay_steps", "4"}} << 14 << 0;
    }
    void mindsporesFunctionsAndClassesAreFollowed() {
        QFETCH(QString, table);
        QFETCH(Fields, fields);
        QFETCH(int, steps);
        QFETCH(int, perEpoch);
        const QJsonArray expected = fixture("mindspore_semantics.json")["schedules"].toObject()[table].toArray();
        QCOMPARE(expected.size(), steps);
        const auto schedule = scheduleOf(withFields(recipeWith("constant", "mindspore", 1.0, 0, 0), fields), steps, perEpoch);
        QVERIFY2(schedule, schedule ? "" : schedule.error().text().c_str());
        for (int s = 0; s < steps; ++s) // the classes compute in float32
            QVERIFY2(isClose(schedule->rateAt(s), expected[s].toDouble(), 1e-6), qPrintable(QString::number(s)));
    }

    void mindsporesDocumentedExamplesAreFollowed_data() { // docstrings of mindspore/nn/dynamic_lr.py
        QTest::addColumn<Fields>("fields");
        QTest::addColumn<int>("perEpoch");
        QTest::addColumn<QList<double>>("expected");
        const std::pair<const char*, const char*> byEpoch{"schedule.unit", "epoch"};
        QTest::newRow("natural_exp_decay_lr, staircase") << Fields{byEpoch,
                                                                   {"schedule.type", "natural_exp"},
                                                                   {"schedule.decay_steps", "2"},
                                                                   {"schedule.staircase", "true"}}
                                                         << 2
                                                         << QList<double>{0.1, 0.1, 0.1, 0.1, 0.016529888822158657, 0.016529888822158657};
        QTest::newRow("inverse_decay_lr, staircase")
            << Fields{byEpoch, {"schedule.type", "inverse"}, {"schedule.decay_rate", "0.5"}, {"schedule.decay_steps", "1"}, {"schedule.staircase", "true"}}
            << 1 << QList<double>{0.1, 0.06666666666666667, 0.05, 0.04, 0.03333333333333333, 0.028571428571428574};
        QTest::newRow("exponential_decay_lr") << Fields{byEpoch, {"schedule.type", "exponential"}, {"schedule.decay_steps", "1"}} << 2
                                              << QList<double>{0.1, 0.1, 0.09, 0.09, 0.081, 0.081};
        QTest::newRow("cosine_decay_lr") << Fields{byEpoch, {"schedule.type", "cosine"}, {"schedule.min_lr", "0.01"}, {"schedule.decay_steps", "2"}} << 2
                                         << QList<double>{0.1, 0.1, 0.055, 0.055, 0.01, 0.01};
        QTest::newRow("polynomial_decay_lr") << Fields{byEpoch,
                                                       {"schedule.type", "polynomial"},
                                                       {"schedule.min_lr", "0.01"},
                                                       {"schedule.decay_steps", "2"},
                                                       {"schedule.power", "0.5"}}
                                             << 2 << QList<double>{0.1, 0.1, 0.07363961030678928, 0.07363961030678928, 0.01, 0.01};
        QTest::newRow("warmup_lr") << Fields{byEpoch, {"schedule.type", "constant"}, {"schedule.warmup_steps", "2"}} << 2
                                   << QList<double>{0, 0, 0.05, 0.05, 0.1, 0.1};
        QTest::newRow("piecewise_constant_lr") << Fields{{"schedule.type", "piecewise"}, {"schedule.pieces", "2=0.1, 5=0.05, 10=0.01"}} << 0
                                               << QList<double>{0.1, 0.1, 0.05, 0.05, 0.05, 0.01, 0.01, 0.01, 0.01, 0.01};
    }
    void mindsporesDocumentedExamplesAreFollowed() {
        QFETCH(Fields, fields);
        QFETCH(int, perEpoch);
        QFETCH(QList<double>, expected);
        const auto schedule = scheduleOf(withFields(recipeWith("constant", "mindspore", 0.1, 0, 0), fields), expected.size(), perEpoch);
        QVERIFY2(schedule, schedule ? "" : schedule.error().text().c_str());
        for (int s = 0; s < expected.size(); ++s)
            QVERIFY2(isClose(schedule->rateAt(s), expected[s], 1e-12), qPrintable(QString("%1: %2").arg(s).arg(schedule->rateAt(s))));
    }

    void aPolynomialThatExtendsFallsAgain() { // update_decay_steps: the length is 4, then 8 from step 5 on
        const auto schedule = scheduleOf(withFields(recipeWith("polynomial", "mindspore", 1.0, 0, 0),
                                                    {{"schedule.power", "1"}, {"schedule.decay_steps", "4"}, {"schedule.extends", "true"}}),
                                         12);
        const double expected[] = {1, 0.75, 0.5, 0.25, 0, 3.0 / 8, 2.0 / 8, 1.0 / 8, 0, 3.0 / 12};
        for (int s = 0; s < 10; ++s) QVERIFY2(isClose(schedule->rateAt(s), expected[s], 1e-12), qPrintable(QString::number(s)));
    }

    void aStepFallsAfterItsLengthAndWarmsUpBefore() {
        const auto schedule = scheduleOf(withFields(recipeWith("step", "celloom", 1.0, 0.2, 2), {{"schedule.decay_rate", "0.5"}, {"schedule.decay_steps", "3"}}), 20);
        const double expected[] = {0.5, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.2}; // not below the lowest rate
        for (int s = 0; s < 12; ++s) QVERIFY2(isClose(schedule->rateAt(s), expected[s], 1e-12), qPrintable(QString::number(s)));
    }

    void piecesAreReadStrictly_data() {
        QTest::addColumn<QString>("pieces");
        QTest::addColumn<QString>("key");
        QTest::newRow("none") << "" << "schedule.pieces";
        QTest::newRow("not rising") << "10=1e-3, 10=1e-4" << "schedule.pieces";
        QTest::newRow("no rate") << "10" << "schedule.pieces";
        QTest::newRow("no number") << "10=fast" << "schedule.pieces";
        QTest::newRow("at 0") << "0=1e-3" << "schedule.pieces";
        QTest::newRow("negative") << "10=-1" << "schedule.pieces";
        QTest::newRow("infinite") << "10=inf" << "schedule.pieces";
    }
    void piecesAreReadStrictly() {
        QFETCH(QString, pieces);
        QFETCH(QString, key);
        const Recipe recipe = withFields(recipeWith("piecewise", "celloom", 1e-3, 0, 0), {{"schedule.pieces", qPrintable(pieces)}});
        const auto schedule = scheduleOf(recipe, 20);
        QVERIFY(!schedule);
        QCOMPARE(QString::fromStdString(schedule.error().place), key);
        const auto problems = recipe.validate();
        QVERIFY(std::any_of(problems.begin(), problems.end(), [&](const Problem& problem) { return problem.key == key.toStdString(); }));
    }

    void impossibleSchedulesAreRefused() {
        QVERIFY(!scheduleOf(recipeWith("step", "celloom", 1e-3, 0, 0), 10)); // without a length
        QVERIFY(!scheduleOf(withFields(recipeWith("cosine", "celloom", 1e-3, 0, 3), {{"schedule.unit", "epoch"}}), 12, 4)); // three epochs of three
        QVERIFY(!scheduleOf(recipeWith("cosine", "celloom", 1e-3, 0, 10), 10));
        QVERIFY(!scheduleOf(recipeWith("cosine", "celloom", 1e-3, 0, 0), 0));
        QVERIFY(!scheduleOf(recipeWith("cosine", "celloom", 1e-3, 1, 0), 10));
        QVERIFY(scheduleOf(recipeWith("cosine", "celloom", 1e-3, 0, 0), 1));
    }

    void everyRuleStaysBetweenTheMinimumAndThePeakAfterWarmUp() {
        for (const char* rule : {"celloom", "transformers", "mindformers", "mindspore"})
            for (const char* type : {"constant", "linear", "cosine", "polynomial", "exponential", "natural_exp", "inverse"})
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
