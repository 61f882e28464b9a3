// What models and engine say, in Chinese: real problems, provoked by bad graphs, recipes, rules and files, come out translated with their parts intact.
#include "models/base/files.h"
#include "models/catalog/formula.h"
#include "models/families/families.h"
#include "models/graph/declared_ports.h"
#include "models/graph/edits.h"
#include "models/graph/expression.h"
#include "models/graph/json.h"
#include "models/library/standard.h"
#include "models/recipe/checks.h"
#include "models/recipe/lora.h"
#include "models/recipe/measures.h"
#include "models/recipe/recipe.h"
#include "models/recipe/rules.h"
#include "models/recipe/schedule.h"
#include "ui/common/format.h"
#include "ui/common/messages.h"
#include "ui/shell/language.h"

#include <QAbstractButton>
#include <QFile>
#include <QLibraryInfo>
#include <QMessageBox>
#include <QRegularExpression>
#include <QTest>

using namespace celloom;
using namespace celloom::ui;

namespace {

QString q(const std::string& text) {
    return QString::fromStdString(text);
}

/// English words in a row that are no part: outside quotes, brackets and paths.
QString leftover(const QString& chinese) {
    static const QRegularExpression quoted(QStringLiteral("\"[^\"]*\"")), english(QStringLiteral("\\b[A-Za-z]{2,} [a-z]{2,} [a-z]{2,}\\b"));
    QString text = chinese;
    text.remove(quoted);
    return english.match(text).captured(0);
}

bool isChinese(const QString& text) {
    static const QRegularExpression han(QStringLiteral("\\p{Han}"));
    return text.contains(han);
}

/// What the English text names in quotes, in brackets or as numbers: it must be in the translation, as often.
QStringList partsOf(const QString& english) {
    static const QRegularExpression part(QStringLiteral("\"[^\"]*\"|\\[[^\\]]*\\]|\\d+"));
    QStringList out;
    for (auto found = part.globalMatch(english); found.hasNext();) out.append(found.next().captured(0));
    return out;
}

std::string graphOf(const std::string& cells, const std::string& wires, const std::string& more = {}) {
    return R"({"format": "celloom-cells", "schema": 1, "main": {"name": "net", "hyper": [{"name": "hidden", "value": 64}, {"name": "heads", "value": 7}],
        "inputs": [{"name": "x", "shape": ["B", "T", "hidden"]}, {"name": "ids", "shape": ["B", "T"], "dtype": "int64"}],
        "outputs": [{"name": "y"}], "cells": [)" + cells + "], \"wires\": [" + wires + "]}" + more + "}";
}

std::string cell(const std::string& name, const std::string& type, const std::string& params = {}, const std::string& more = {}) {
    return R"({"name": ")" + name + R"(", "type": ")" + type + R"(", "params": {)" + params + "}" + more + "}";
}

using Said = std::vector<Error>;

Said problemsOf(const std::string& json) {
    const auto document = graph::fromJson(json, "net.cells.json");
    if (!document) return {document.error()};
    Said out;
    for (const graph::Problem& problem : graph::expand(*document).problems) out.push_back({problem.message, problem.hint, problem.path});
    return out;
}

Said recipeSays(const std::vector<std::pair<std::string, std::string>>& values) {
    recipe::Recipe recipe;
    Said out;
    for (const auto& [key, value] : values)
        if (const Status status = recipe.setFromText(key, value); !status) out.push_back(status.error());
    for (const recipe::Problem& problem : recipe.validate()) out.push_back({problem.message, problem.hint, problem.key});
    if (const auto schedule = recipe::scheduleOf(recipe, 100); !schedule) out.push_back(schedule.error());
    return out;
}

template <class T> Said errorOf(const Result<T>& result) {
    return result ? Said{} : Said{result.error()};
}

Said lines(std::initializer_list<Said> all) {
    Said out;
    for (const Said& one : all) out.insert(out.end(), one.begin(), one.end());
    return out;
}

const graph::ExpandedModel& smallModel() {
    static const graph::ExpandedModel model = graph::expand(*families::buildPreset("baichuan-tiny")).model;
    return model;
}

Said rulesSay(const std::string& text) {
    const auto rule = recipe::parseRule(text);
    if (!rule) return {rule.error()};
    return errorOf(recipe::resolve(smallModel(), {*rule}));
}

Said loraSays(const std::vector<std::pair<std::string, std::string>>& values) {
    recipe::Recipe recipe;
    Said out;
    for (const auto& [key, value] : values)
        if (const Status status = recipe.setFromText(key, value); !status) out.push_back(status.error());
    const auto treatment = recipe::treatmentOf(recipe, smallModel());
    if (!treatment) out.push_back(treatment.error());
    return out;
}

} // namespace

class TestMessages : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { m_language.choose(QStringLiteral("zh_CN")); }
    void cleanup() { m_language.choose(QStringLiteral("en")); }

    void everyProblemIsSaidInChineseWithItsParts_data() {
        QTest::addColumn<Said>("said");
        const auto row = [](const char* name, Said said) { QTest::newRow(name) << std::move(said); };
        const auto formula = [](const char* text) { return errorOf(catalog::readFormula(text, 2)); };
        const auto expression = [](const char* text) {
            return errorOf(graph::evaluateInteger(text, graph::Scope{{"hidden", std::int64_t{64}}, {"heads", std::int64_t{7}}}));
        };
        const auto ports = [](const char* text) { return errorOf(graph::readDeclaredPorts(text, {})); };

        row("empty graph", problemsOf(graphOf("", "")));
        row("unwired", problemsOf(graphOf(cell("up", "Dense", R"("in_channels": 64, "out_channels": 8)"), "")));
        row("unknown type", problemsOf(graphOf(cell("up", "Dens"), R"("x -> up.x", "up.out -> y")")));
        row("unknown parameter", problemsOf(graphOf(cell("up", "Dense", R"("in_chanels": 64, "out_channels": 8)"), R"("x -> up.x", "up.out -> y")")));
        row("out of range", problemsOf(graphOf(cell("up", "Dense", R"("in_channels": 64, "out_channels": 0)"), R"("x -> up.x", "up.out -> y")")));
        row("wrong kind", problemsOf(graphOf(cell("up", "Dense", R"("in_channels": 64, "out_channels": 1.5, "has_bias": "yes")"), R"("x -> up.x", "up.out -> y")")));
        row("unknown name", problemsOf(graphOf(cell("up", "Dense", R"("in_channels": "hiden", "out_channels": 8)"), R"("x -> up.x", "up.out -> y")")));
        row("no whole number", problemsOf(graphOf(cell("up", "Dense", R"("in_channels": "hidden / heads", "out_channels": 8)"), R"("x -> up.x", "up.out -> y")")));
        row("width", problemsOf(graphOf(cell("up", "Dense", R"("in_channels": 32, "out_channels": 8)"), R"("x -> up.x", "up.out -> y")")));
        row("type of a wire", problemsOf(graphOf(cell("up", "Dense", R"("in_channels": 64, "out_channels": 8)"), R"("ids -> up.x", "up.out -> y")")));
        row("to nowhere", problemsOf(graphOf(cell("act", "SiLU"), R"("x -> act.x", "act.out -> y", "x -> atc.x")")));
        row("from nowhere", problemsOf(graphOf(cell("act", "SiLU"), R"("x -> act.x", "atc.out -> y")")));
        row("no such port", problemsOf(graphOf(cell("act", "SiLU"), R"("x -> act.y", "act.output -> y")")));
        row("no such input", problemsOf(graphOf(cell("act", "SiLU"), R"("xs -> act.x", "act.out -> z")")));
        row("two wires", problemsOf(graphOf(cell("act", "SiLU"), R"("x -> act.x", "x -> act.x", "act.out -> y")")));
        row("same name", problemsOf(graphOf(cell("act", "SiLU") + "," + cell("act", "GELU"), R"("x -> act.x", "act.out -> y")")));
        row("bad name", problemsOf(graphOf(cell("a b", "SiLU"), "")));
        row("circle", problemsOf(graphOf(cell("a", "SiLU") + "," + cell("b", "SiLU"), R"("a.out -> b.x", "b.out -> a.x", "b.out -> y")")));
        row("two shapes", problemsOf(graphOf(cell("up", "Dense", R"("in_channels": 64, "out_channels": 8)") + "," + cell("sum", "Add"),
                                             R"("x -> up.x", "x -> sum.a", "up.out -> sum.b", "sum.out -> y")")));
        row("attention", problemsOf(graphOf(cell("att", "Attention", R"("num_heads": 6, "num_kv_heads": 4, "head_dim": 7, "position": "rope")"), R"("x -> att.q", "x -> att.k", "x -> att.v", "att.out -> y")")));
        row("heads", problemsOf(graphOf(cell("att", "Attention", R"("num_heads": 6, "num_kv_heads": 6, "head_dim": 8)"), R"("x -> att.q", "x -> att.k", "x -> att.v", "att.out -> y")")));
        row("repeat", problemsOf(graphOf(cell("act", "SiLU", "", R"(, "repeat": 0)"), R"("x -> act.x", "act.out -> y")")));
        row("reshape", problemsOf(graphOf(cell("flat", "Reshape", R"("shape": "0, 0, 63")"), R"("x -> flat.x", "flat.out -> y")")));
        row("reshape twice free", problemsOf(graphOf(cell("flat", "Reshape", R"("shape": "-1, -1")"), R"("x -> flat.x", "flat.out -> y")")));
        row("transpose", problemsOf(graphOf(cell("turn", "Transpose", R"("perm": "0, 0, 2")"), R"("x -> turn.x", "turn.out -> y")")));
        row("no image", problemsOf(graphOf(cell("conv", "Conv2d", R"("in_channels": 3, "out_channels": 8, "kernel_size": "3")"), R"("x -> conv.x", "conv.out -> y")")));
        row("split", problemsOf(graphOf(cell("cut", "Split", R"("sizes": "10, 20")"), R"("x -> cut.x", "cut.out0 -> y")")));
        row("mean over nothing", problemsOf(graphOf(cell("mean", "Mean", R"("axis": "5")"), R"("x -> mean.x", "mean.out -> y")")));
        row("experts", problemsOf(graphOf(cell("moe", "MixtureOfExperts", R"("hidden": 64, "intermediate": 64, "num_experts": 2, "top_k": 3)"), R"("x -> moe.x", "moe.out -> y")")));
        row("formula in a cell", problemsOf(graphOf(cell("f", "Expression", R"j("formula": "in0 + foo(in1)", "inputs": 2)j"), R"("x -> f.in0", "x -> f.in1", "f.out -> y")")));
        row("composite of itself", problemsOf(graphOf(cell("a", "A"), R"("x -> a.x", "a.y -> y")", R"(, "composites": {"A": {"inputs": [{"name": "x"}], "outputs": [{"name": "y"}], "cells": [{"name": "a", "type": "A"}], "wires": ["x -> a.x", "a.y -> y"]}})")));
        row("declared shape", problemsOf(graphOf(cell("a", "A", R"("width": 32)"), R"("x -> a.x", "a.y -> y")", R"(, "composites": {"A": {"hyper": [{"name": "width", "value": 32}], "inputs": [{"name": "x", "shape": ["B", "T", "width"]}], "outputs": [{"name": "y"}], "cells": [{"name": "s", "type": "SiLU"}], "wires": ["x -> s.x", "s.out -> y"]}})")));
        row("unused composite", problemsOf(graphOf(cell("act", "SiLU"), R"("x -> act.x", "act.out -> y")", R"(, "composites": {"A": {"inputs": [{"name": "x"}], "outputs": [{"name": "y"}], "cells": [{"name": "s", "type": "SiLU"}], "wires": []}})")));

        row("formulas", lines({formula("in0 +"), formula("in0 > in1"), formula("in0"), formula("in0 + in1 + b"), formula("tan(in0) + in1"), formula("max(in0, in1) $"), formula("where(in0, in1, 1)")}));
        row("expressions", lines({expression("hidden / heads"), expression("hidden / 0"), expression("hiden * 2"), expression("round(hidden)"), expression("hidden *"), expression("min(hidden)"), expression("roundUp(hidden, 0)"), expression("(hidden")}));
        row("ports", lines({ports("x"), ports("a: [2]; : [3]"), ports("x: [2] int16"), ports("x: [0]"), ports("x: [3 / 2]"), ports("x: [2]; x: [3]")}));
        row("no document", lines({errorOf(graph::fromJson("{", "a.json")), errorOf(graph::fromJson("{}", "a.json")), errorOf(graph::fromJson(R"({"format": "celloom-cells", "schema": 99, "main": {}})", "a.json")),
                                  errorOf(graph::fromJson(R"({"format": "celloom-cells", "schema": 1, "main": {"cels": []}})", "a.json")), errorOf(graph::fromJson(R"({"format": "celloom-cells", "schema": 1, "main": {"wires": ["a b"]}})", "a.json")),
                                  errorOf(graph::fromJson(R"({"format": "celloom-cells", "schema": 1, "main": {"cells": [{"name": "a"}]}})", "a.json"))}));
        row("no config", lines({errorOf(families::fromConfigJson("{}", "config.json")), errorOf(families::fromConfigJson(R"({"architectures": ["GptForCausalLM"]})", "config.json")),
                                errorOf(families::fromConfigJson(R"({"architectures": ["InternLMForCausalLM"], "hidden_size": "wide"})", "config.json")), errorOf(families::openModel("baichuan-huge"))}));

        row("new recipe", recipeSays({}));
        row("fine-tuning", recipeSays({{"kind", "finetune"}}));
        row("evaluation", recipeSays({{"kind", "evaluate"}}));
        row("prediction", recipeSays({{"kind", "predict"}}));
        row("ranges", recipeSays({{"train.batch_size", "0"}, {"optimizer.lr", "-1"}, {"train.max_steps", "many"}, {"optimizer.type", "Adamm"}, {"train.epoch", "3"}}));
        row("warm-up", recipeSays({{"schedule.warmup_steps", "50"}, {"schedule.warmup_ratio", "0.1"}, {"train.max_steps", "20"}, {"schedule.min_lr", "1"}}));
        row("float16 alone", recipeSays({{"precision.amp_level", "O2"}, {"precision.half_type", "float16"}, {"loss_scale.type", "none"}}));
        row("samples", recipeSays({{"sample.every_steps", "5"}, {"checkpoint.keep_best", "true"}}));
        row("measures", recipeSays({{"evaluate.metrics", "f1, F1"}, {"loss.type", "MSELoss"}}));
        row("loss terms", lines({errorOf(recipe::parseLossTerm("logits label: MSELoss")), errorOf(recipe::parseLossTerm("logits -> : MSELoss")), errorOf(recipe::parseLossTerm("a -> b: MSEloss")), errorOf(recipe::parseLossTerm("a -> b: MSELoss weight=0"))}));
        row("rules", lines({rulesSay("**"), rulesSay("**: "), rulesSay("layers.{3.5}.x: freeze"), rulesSay("layers.x y: freeze"), rulesSay("**: frozen"), rulesSay("**: lora r=0"), rulesSay("**: dtype=int8"), rulesSay("nothing.here: freeze"),
                            rulesSay("layers.0: freeze"), rulesSay("**.input_layernorm: lora r=8"), rulesSay("**: r=8"), rulesSay("**: stage=1"), rulesSay("a**b: freeze")}));
        row("LoRA", lines({loraSays({{"lora.enabled", "true"}, {"lora.targets", "no_proj"}}), loraSays({{"lora.enabled", "true"}, {"lora.layers", "99"}}), loraSays({{"lora.enabled", "true"}, {"lora.target_regex", "("}}),
                           loraSays({{"lora.enabled", "true"}, {"lora.targets", "input_layernorm"}})}));

        row("files", lines({errorOf(readFile("/no/such/file")), errorOf(readFile("/"))}));
    }
    void everyProblemIsSaidInChineseWithItsParts() {
        QFETCH(Said, said);
        QVERIFY(!said.empty());
        QStringList wrong;
        for (const Error& error : said)
            for (const std::string& english : {error.message, error.hint}) {
                if (english.empty()) continue;
                const QString chinese = ui::said(english);
                bool isGood = isChinese(chinese) && leftover(chinese).isEmpty();
                for (const QString& part : partsOf(q(english))) isGood = isGood && chinese.contains(part);
                if (!isGood) wrong.append(q(english) + QStringLiteral("\n    → ") + chinese);
            }
        if (!wrong.isEmpty()) QFAIL(qPrintable(QStringLiteral("%1 of %2:\n").arg(wrong.size()).arg(said.size()) + wrong.join(QLatin1Char('\n'))));
    }

    void noTemplateStandsInAnothersWay() {
        QFile file(QStringLiteral(":/i18n/messages_zh_CN.txt"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QStringList all = QString::fromUtf8(file.readAll()).split(QLatin1Char('\n'));
        static const QRegularExpression place(QStringLiteral("\\{(\\d+)!?\\}"));
        const auto filled = [](QString text) { // a part that stands for itself: "q7q"
            return text.replace(place, QStringLiteral("q\\1q"));
        };
        QStringList wrong;
        QString english;
        int count = 0;
        for (const QString& line : all) {
            if (line.isEmpty() || (english.isEmpty() && line.startsWith(QLatin1Char('#')))) continue;
            if (english.isEmpty()) {
                english = line;
                continue;
            }
            ++count;
            const QString text = filled(english), got = ui::said(text);
            bool isGood = got == filled(line);
            if (english.contains(QLatin1String("}{"))) { // where one part ends is told by the next, which is no known text here
                isGood = isChinese(got);
                for (auto found = place.globalMatch(line); found.hasNext();) isGood = isGood && got.contains(QLatin1Char('q') + found.next().captured(1) + QLatin1Char('q'));
            }
            if (!isGood) wrong.append(text + QStringLiteral("\n    → ") + got);
            english.clear();
        }
        QVERIFY(count > 1900);
        if (!wrong.isEmpty()) QFAIL(qPrintable(QStringLiteral("%1 of %2:\n").arg(wrong.size()).arg(count) + wrong.join(QLatin1Char('\n'))));
    }

    void inEnglishNothingIsTouched() {
        m_language.choose(QStringLiteral("en"));
        QCOMPARE(said(std::string("The input x has no wire.")), QStringLiteral("The input x has no wire."));
    }
    void whatNoTemplateKnowsStaysAsItIs() {
        for (const char* text : {"", "Purple monkeys.", "from what nobody knows here", "the tokenizer is purple.", "{0}", "a", "\n", "不变。"}) QCOMPARE(said(std::string(text)), QString::fromUtf8(text));
        QCOMPARE(said(std::string(100'000, 'a')).size(), 100'000);
    }
    void aPlaceBeforeTheMessageStays() {
        QCOMPARE(said(std::string("layers.0.norm: The input x has no wire. Wire something to it.")), QStringLiteral("layers.0.norm：输入 x 没有连线。请给它连线。"));
        QCOMPARE(Format::error({"The input x has no wire.", "Wire something to it.", "norm"}), QStringLiteral("norm: 输入 x 没有连线。请给它连线。"));
    }
    void messagesWithinMessagesAreTranslatedToo() {
        QCOMPARE(said(std::string("The formula \"in0 +\" ends too early.")), QStringLiteral("公式 \"in0 +\" 不完整，提前结束。"));
        QCOMPARE(said(std::string("Types are GELU, ReLU … and 19 more.")), QStringLiteral("类型有 GELU, ReLU … 等（另有 19 个）。"));
    }
    void partsSideBySideArePartedByWhatFollows() {
        QCOMPARE(said(std::string("the expression \"hidden / heads\" gives 9.14 (heads = 7, hidden = 64), expected a whole number.")),
                 QStringLiteral("表达式 \"hidden / heads\" 得 9.14 (heads = 7, hidden = 64)，应为整数。"));
        QCOMPARE(said(std::string("x is [B, 5], but the cell declares [B, 2 * n], and 5 is no multiple of 2.")), QStringLiteral("x 为 [B, 5]，但单元声明为 [B, 2 * n]，且 5 不是 2 的倍数。"));
        QCOMPARE(said(std::string("3 steps in a row have overflowed and changed nothing; the loss scale is 1024.")), QStringLiteral("连续 3 步溢出，没有改变任何内容；损失缩放为 1024。"));
    }
    void failuresOfRunsAndTheirAdviceAreChinese_data() {
        QTest::addColumn<QString>("english");
        QTest::addColumn<QString>("chinese");
        const auto row = [](const char* english, const char* chinese) { QTest::newRow(english) << QString::fromUtf8(english) << QString::fromUtf8(chinese); };
        row("Step 12: the loss is NaN or infinite; training stopped before the update.", "第 12 步：损失为 NaN 或无穷大；训练在更新之前停止。");
        row("Lower the learning rate, lengthen the warm-up or clip gradients. The last good checkpoint is step-000010: resume from it with other settings.",
            "请降低学习率、延长预热或裁剪梯度。最后一个完好的检查点是 step-000010：请换用其他设置从它继续。");
        row("/data/a b.txt has changed since the run began (12 bytes then, 14 now).", "/data/a b.txt has changed since the run began (12 bytes then, 14 now).");
        row("has changed since the run began (12 bytes then, 14 now).", "自运行开始后有变化（当时 12 字节，现在 14 字节）。");
        row("the tokenizer has 5 pieces.", "the tokenizer has 5 pieces.");
        row("The tokenizer has 4096 pieces, the model's vocabulary 4000.", "分词器有 4096 个词片，模型的词表为 4000。");
        row("cannot be opened: No such file or directory.", "无法打开：没有那个文件或目录。");
        row("'(' is not part of the language.", "'(' 不属于该语言。");
        row("self.norm is called a second time; a cell stands at one place, weights are not shared.", "self.norm 被第二次调用；一个单元只有一个位置，权重不共享。");
    }
    void failuresOfRunsAndTheirAdviceAreChinese() {
        QFETCH(QString, english);
        QTEST(ui::said(english), "chinese");
    }
    void theHelpOfEveryHyperParameterThatShipsIsChinese() {
        QStringList english;
        const auto look = [&english](const graph::Document& document) {
            for (const graph::HyperParameter& hyper : document.main.hyper)
                if (!hyper.help.empty() && !isChinese(said(hyper.help))) english.append(q(hyper.help));
            for (const auto& [name, composite] : document.composites)
                for (const graph::HyperParameter& hyper : composite.hyper)
                    if (!hyper.help.empty() && !isChinese(said(hyper.help))) english.append(q(name + ": " + hyper.help));
        };
        for (const families::Preset& preset : families::presets()) look(*families::buildPreset(preset.name));
        for (const library::Template& one : library::templates()) look(one.document);
        for (const library::Entry& entry : library::standard()) look(entry.document);
        english.removeDuplicates();
        QVERIFY2(english.isEmpty(), qPrintable(english.join(QLatin1Char('\n'))));
    }
    void aBrokenBookNamesItsLine() {
        QVERIFY(!MessageBook::read(QStringLiteral("only English\n\n")));
        QCOMPARE(MessageBook::read(QStringLiteral("# remark\n\n{0} b\n{1} c\n")).error().place, std::string("line 4"));
        QVERIFY(MessageBook::read(QStringLiteral("{0} b {1}\n{1} c {0!}\n")));
    }
    void partsMayChangeTheirOrder() {
        const auto book = MessageBook::read(QStringLiteral("The {0} of {1} is gone.\n{1} 的 {0} 没了。\n"));
        QVERIFY(book.has_value());
        QCOMPARE(book->translate(QStringLiteral("The port of norm is gone.")), QStringLiteral("norm 的 port 没了。"));
        QVERIFY(book->translate(QStringLiteral("The port of norm is here.")).isNull());
    }
    void qtsOwnDialogsAreChineseToo() {
        if (!QFile::exists(QLibraryInfo::path(QLibraryInfo::TranslationsPath) + QStringLiteral("/qtbase_zh_CN.qm"))) QSKIP("Qt's translations are not installed");
        QMessageBox box(QMessageBox::Question, {}, {}, QMessageBox::Cancel);
        QVERIFY2(isChinese(box.button(QMessageBox::Cancel)->text()), qPrintable(box.button(QMessageBox::Cancel)->text()));
    }

private:
    Language m_language;
};

QTEST_MAIN(TestMessages)
#include "tst_messages.moc"
