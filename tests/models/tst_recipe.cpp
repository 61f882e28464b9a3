// The recipe: its fields, strict reading, text forms, cross-field checks.
#include "models/base/files.h"
#include "models/base/text.h"
#include "models/recipe/checks.h"
#include "models/recipe/estimate.h"
#include "models/recipe/recipe.h"
#include "models/recipe/typed_script.h"

#include <QTemporaryDir>
#include <QtTest>

#include <set>

using namespace celloom;
using namespace celloom::recipe;

namespace {

QString errorOf(const Result<Recipe>& result) {
    return result ? QString() : QString::fromStdString(result.error().text());
}
QString errorOf(const Status& result) {
    return result ? QString() : QString::fromStdString(result.error().text());
}

bool hasProblem(const Recipe& recipe, const std::string& key) {
    for (const Problem& problem : recipe.validate())
        if (problem.key == key) return true;
    return false;
}

} // namespace

class TestRecipe : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void graphsWithLengthsOfAnyNameAreEstimated() { // Q of the questions beside B
        Recipe recipe;
        QVERIFY(recipe.set("model.source", std::string("cross-attention")) && recipe.set("train.batch_size", std::int64_t{3}) && recipe.set("train.sequence_length", std::int64_t{5}));
        const auto found = estimate(recipe);
        QVERIFY2(found && found->peakBytes > 0, found ? "" : found.error().text().c_str());
        const auto model = modelOf(recipe);
        QVERIFY((symbolSizes(*model, 3, 5) == std::map<std::string, std::int64_t>{{"B", 3}, {"T", 5}, {"Q", 5}}));
        QVERIFY(estimatePrediction(*model, 2, 7));
    }
    void everyFieldIsComplete() {
        std::set<std::string> sectionKeys, keys;
        for (const Section& section : sections()) {
            QVERIFY(sectionKeys.insert(section.key).second);
            QVERIFY(!section.label.empty() && !section.labelZh.empty());
        }
        for (const Field& field : fields()) {
            const auto name = field.key.c_str();
            QVERIFY2(keys.insert(field.key).second, name);
            QVERIFY2(sectionKeys.count(field.section), name);
            QVERIFY2(!field.label.empty() && !field.labelZh.empty() && !field.help.empty() && !field.helpZh.empty(), name);
            QVERIFY2(field.unit.empty() == field.unitZh.empty(), name);
            QVERIFY2(isUtf8(field.helpZh) && isUtf8(field.labelZh), name);
            QVERIFY2((field.kind == FieldKind::Choice) <= !field.choices.empty(), name);
            Recipe recipe;
            QVERIFY2(recipe.set(field.key, field.standard), name); // the default obeys the field's own range
            QVERIFY2(recipe.isDefault(field.key), name);
            (void)recipe.isShown(field); // names a known field
        }
    }

    void noFieldsKeyIsAnothersSection() {
        for (const Field& a : fields())
            for (const Field& b : fields()) QVERIFY2(!b.key.starts_with(a.key + "."), b.key.c_str());
    }

    void jsonGivesBackWhatWasSet() {
        Recipe recipe;
        QVERIFY(recipe.set("optimizer.lr", 3e-3));
        QVERIFY(recipe.set("train.max_steps", std::int64_t(20)));
        QVERIFY(recipe.set("data.train", std::vector<std::string>{"三国/*.txt", "b,c.txt"}));
        QVERIFY(recipe.set("data.shuffle", false));
        QVERIFY(recipe.set("rules", std::vector<std::string>{"layers.{0..3}.**: freeze"}));
        for (const bool onlyChanged : {true, false}) {
            const std::string text = recipe.toJson(onlyChanged);
            auto read = Recipe::fromJson(text);
            QVERIFY2(read, qPrintable(errorOf(read)));
            QCOMPARE(read->toJson(false), recipe.toJson(false));
            QCOMPARE(read->toJson(onlyChanged), text);
        }
        QVERIFY(!QString::fromStdString(recipe.toJson()).contains("beta1"));
    }

    void refusesWithFieldAndHint_data() {
        QTest::addColumn<QString>("json");
        QTest::addColumn<QStringList>("said");
        QTest::newRow("unknown field") << R"({"optimizer": {"learning_rat": 1}})" << QStringList{"r.json", "optimizer.learning_rat"};
        QTest::newRow("near miss") << R"({"train": {"batchsize": 4}})" << QStringList{"train.batchsize", "Did you mean train.batch_size?"};
        QTest::newRow("wrong section") << R"({"optimizer": {"warmup_steps": 4}})"
                                       << QStringList{"optimizer.warmup_steps", "schedule.warmup_steps"};
        QTest::newRow("unknown section") << R"({"optimiser": {"lr": 1}})" << QStringList{"optimiser"};
        QTest::newRow("section is no object") << R"({"optimizer": 3})" << QStringList{"optimizer", "object"};
        QTest::newRow("wrong type") << R"({"train": {"batch_size": "8"}})" << QStringList{"train.batch_size", "whole number", "\"8\""};
        QTest::newRow("fraction for a whole number") << R"({"train": {"batch_size": 8.5}})" << QStringList{"train.batch_size", "8.5"};
        QTest::newRow("beyond 64 bits") << R"({"seed": 18446744073709551615})" << QStringList{"seed"};
        QTest::newRow("out of range") << R"({"train": {"batch_size": 0}})" << QStringList{"train.batch_size", "is 0", "1 to 1048576"};
        QTest::newRow("real out of range") << R"({"optimizer": {"beta1": 1.5}})" << QStringList{"optimizer.beta1", "1.5"};
        QTest::newRow("choice") << R"({"optimizer": {"type": "adamw"}})"
                                << QStringList{"optimizer.type", "AdamW, AdamWeightDecay", "Did you mean AdamW?"};
        QTest::newRow("list of numbers") << R"({"data": {"train": [1]}})" << QStringList{"data.train"};
        QTest::newRow("bad rule") << R"({"rules": ["layers.*"]})" << QStringList{"rules[0]", "colon"};
        QTest::newRow("key twice") << R"({"seed": 1, "seed": 2})" << QStringList{"seed", "twice"};
        QTest::newRow("newer schema") << R"({"schema": 2})" << QStringList{"schema 2"};
        QTest::newRow("no object") << "[]" << QStringList{"r.json", "object"};
        QTest::newRow("empty") << " \n" << QStringList{"empty"};
        QTest::newRow("syntax") << "{\n  \"seed\": ,\n}" << QStringList{"line 2, column 11"};
        QTest::newRow("bad UTF-8") << QString() << QStringList{"r.json"};
        QTest::newRow("deep") << QString(100000, '[') << QStringList{"deeper than 64"};
    }
    void refusesWithFieldAndHint() {
        QFETCH(QString, json);
        QFETCH(QStringList, said);
        for (const char* internal : {"parse_error", "while parsing", "last read"}) // a parser's own words help nobody
            QVERIFY(!errorOf(Recipe::fromJson(json.toStdString(), "r.json")).contains(internal));
        const std::string text = json.isNull() ? "{\"name\": \"\xff\"}" : json.toStdString();
        const QString error = errorOf(Recipe::fromJson(text, "r.json"));
        QVERIFY(!error.isEmpty());
        for (const QString& part : said) QVERIFY2(error.contains(part), qPrintable(error + " lacks " + part));
    }

    void textFormsRoundTrip_data() {
        QTest::addColumn<QString>("key");
        QTest::addColumn<QString>("given");
        QTest::addColumn<QString>("text");
        QTest::newRow("whole") << "train.batch_size"
                               << "16"
                               << "16";
        QTest::newRow("real") << "optimizer.lr"
                              << "3e-4"
                              << "0.0003";
        QTest::newRow("flag") << "data.shuffle"
                              << "off"
                              << "false";
        QTest::newRow("choice") << "device"
                                << "cuda"
                                << "cuda";
        QTest::newRow("paths") << "data.train"
                               << "a.txt, b.txt"
                               << "a.txt,b.txt";
        QTest::newRow("lines") << "data.train"
                               << "a.txt\nb.txt\n"
                               << "a.txt,b.txt";
        QTest::newRow("comma inside") << "sample.prompts"
                                      << "one\\, two,three"
                                      << "one\\, two,three";
        QTest::newRow("braces") << "rules"
                                << "layers.{0,1}.**: freeze,norm: train"
                                << "layers.{0,1}.**: freeze,norm: train";
    }
    void aListMayBeWrittenAsInTheFile() {
        Recipe recipe;
        QVERIFY(recipe.setFromText("lora.targets", R"(["q_proj", "layers.{3,4}.**.v_proj"])"));
        QCOMPARE(recipe.list("lora.targets"), (std::vector<std::string>{"q_proj", "layers.{3,4}.**.v_proj"}));
        QVERIFY(recipe.setFromText("lora.layers_to_transform", "[0, 2]"));
        QCOMPARE(recipe.list("lora.layers_to_transform"), (std::vector<std::string>{"0", "2"}));
        QVERIFY(recipe.setFromText("lora.modules_to_save", "[]"));
        QVERIFY(recipe.list("lora.modules_to_save").empty());
        QVERIFY(recipe.setFromText("sample.prompts", "[a,b"));
        QCOMPARE(recipe.list("sample.prompts"), (std::vector<std::string>{"[a", "b"}));
        const std::vector<std::string> items{"[\"a\"]"}; // a text that reads like a list stays one text
        QVERIFY(recipe.set("sample.prompts", items));
        Recipe again;
        QVERIFY(again.setFromText("sample.prompts", recipe.toText("sample.prompts")));
        QCOMPARE(again.list("sample.prompts"), items);
    }

    void textFormsRoundTrip() {
        QFETCH(QString, key);
        QFETCH(QString, given);
        QFETCH(QString, text);
        Recipe recipe;
        const auto status = recipe.setFromText(key.toStdString(), given.toStdString());
        QVERIFY2(status, qPrintable(errorOf(status)));
        QCOMPARE(QString::fromStdString(recipe.toText(key.toStdString())), text);
    }

    void listsOfAnyTextSurviveTheTextForm() {
        const std::vector<std::string> items{"a,b", "{", "}x{", "back\\slash", "line\nbreak", "{a,b}", "却说曹操，", "\\n", "\\,"};
        Recipe recipe;
        QVERIFY(recipe.set("sample.prompts", items));
        Recipe again;
        QVERIFY(again.setFromText("sample.prompts", recipe.toText("sample.prompts")));
        QCOMPARE(again.list("sample.prompts"), items);
    }

    void badTextIsRefused() {
        Recipe recipe;
        QVERIFY(errorOf(recipe.setFromText("train.batch_size", "8x")).contains("whole number"));
        QVERIFY(errorOf(recipe.setFromText("optimizer.lr", "nan")).contains("finite"));
        QVERIFY(errorOf(recipe.setFromText("optimizer.lr", "inf")).contains("finite"));
        QVERIFY(errorOf(recipe.setFromText("data.shuffle", "maybe")).contains("true or false"));
        QVERIFY(errorOf(recipe.setFromText("name", "\xff")).contains("UTF-8"));
        QVERIFY(errorOf(recipe.setFromText("nmae", "x")).contains("Did you mean name"));
        QCOMPARE(recipe.toJson(false), Recipe().toJson(false)); // nothing changed
    }

    void pathsAreRelativeToTheRecipesFolder() {
        QTemporaryDir folder;
        const std::filesystem::path root(folder.path().toStdString());
        std::filesystem::create_directories(root / "recipes");
        const std::string json = "{\"data\": {\"train\": [\"../corpus/*.txt\", \"/abs/x.txt\"]}, \"tokenizer\": {\"path\": \"t.model\"}}";
        QVERIFY(writeFileAtomically(root / "recipes" / "r.json", json));
        auto recipe = Recipe::load(root / "recipes" / "r.json");
        QVERIFY2(recipe, qPrintable(errorOf(recipe)));
        const Recipe absolute = recipe->withAbsolutePaths();
        QCOMPARE(absolute.list("data.train"), (std::vector<std::string>{(root / "corpus/*.txt").string(), "/abs/x.txt"}));
        QCOMPARE(absolute.text("tokenizer.path"), (root / "recipes/t.model").string());
        QCOMPARE(absolute.text("model.source"), std::string("baichuan-tiny")); // a preset's name is no path
        QCOMPARE(absolute.text("model.weights"), std::string());
        QVERIFY(errorOf(Recipe::load(root / "none.json")).contains("none.json"));
    }

    void overridesAreReadByKind() {
        Recipe recipe;
        QVERIFY(recipe.setFromText("model.overrides", "layers=4,eps=1e-5,tied=true,position=alibi"));
        auto values = recipe.modelOverrides();
        QVERIFY(values);
        QCOMPARE(std::get<std::int64_t>(values->at("layers")), 4);
        QCOMPARE(std::get<double>(values->at("eps")), 1e-5);
        QCOMPARE(std::get<bool>(values->at("tied")), true);
        QCOMPARE(std::get<std::string>(values->at("position")), std::string("alibi"));
        QVERIFY(recipe.setFromText("model.overrides", "layers"));
        QVERIFY(!recipe.modelOverrides());
        QVERIFY(hasProblem(recipe, "model.overrides"));
    }

    void checksAcrossFields() {
        Recipe recipe;
        QVERIFY(hasProblem(recipe, "data.train"));
        Recipe tuning;
        QVERIFY(tuning.set("kind", std::string("finetune")));
        const auto problems = tuning.validate();
        QVERIFY(std::any_of(problems.begin(), problems.end(), [](const Problem& one) { return one.hint.find("file of instructions") != std::string::npos; }));
        QVERIFY(tuning.setFromText("data.train", "a.jsonl") && !hasProblem(tuning, "data.train"));
        QVERIFY(tuning.setFromText("data.train", "a.jsonl,table.csv") && hasProblem(tuning, "data.train")); // its header would be learned
        QVERIFY(tuning.setFromText("data.format", "text") && !hasProblem(tuning, "data.train"));
        QVERIFY(recipe.setFromText("data.train", "a.txt"));
        QVERIFY(recipe.validate().empty());
        QVERIFY(recipe.setFromText("train.max_steps", "10") && recipe.setFromText("schedule.warmup_steps", "10"));
        QVERIFY(hasProblem(recipe, "schedule.warmup_steps"));
        QVERIFY(recipe.setFromText("schedule.warmup_steps", "9"));
        QVERIFY(recipe.validate().empty());
        QVERIFY(recipe.setFromText("schedule.warmup_ratio", "0.1"));
        QVERIFY(hasProblem(recipe, "schedule.warmup_ratio"));
        QVERIFY(recipe.setFromText("schedule.warmup_ratio", "0") && recipe.setFromText("schedule.min_lr", "1"));
        QVERIFY(hasProblem(recipe, "schedule.min_lr"));
        QVERIFY(recipe.setFromText("schedule.type", "constant"));
        QVERIFY(recipe.validate().empty());
        QVERIFY(recipe.setFromText("sample.every_steps", "5"));
        QVERIFY(hasProblem(recipe, "sample.prompts"));
        QVERIFY(recipe.setFromText("name", "第一次 a/b") && !hasProblem(recipe, "name"));
        QVERIFY(recipe.setFromText("name", "two\nlines") && hasProblem(recipe, "name"));
    }

    void modelAndRulesAreCheckedBeforeARun_data() {
        QTest::addColumn<QString>("key");
        QTest::addColumn<QString>("value");
        QTest::addColumn<QString>("said");
        QTest::newRow("no such model") << "model.source"
                                       << "nothing"
                                       << "there is no model";
        QTest::newRow("no such hyper-parameter") << "model.overrides"
                                                 << "depth=3"
                                                 << "depth";
        QTest::newRow("heads that do not divide") << "model.overrides"
                                                  << "hidden=64,heads=7"
                                                  << "hidden / heads";
        QTest::newRow("no such cell") << "rules"
                                      << "layers.9.**: freeze"
                                      << "layers.9";
        QTest::newRow("adapters beside no base") << "rules"
                                                 << "**.W_pack: lora r=4"
                                                 << "No weights are named";
        QTest::newRow("pipeline stage") << "rules"
                                        << "layers.1.**: stage=1"
                                        << "stage 1";
    }
    void modelAndRulesAreCheckedBeforeARun() {
        QFETCH(QString, key);
        QFETCH(QString, value);
        QFETCH(QString, said);
        Recipe recipe;
        QVERIFY(checkModel(recipe));
        QVERIFY(recipe.setFromText("rules", "layers.0.**: freeze") && checkModel(recipe));
        QVERIFY(recipe.setFromText(key.toStdString(), value.toStdString()));
        const auto status = checkModel(recipe);
        QVERIFY(!status);
        QVERIFY2(QString::fromStdString(status.error().text()).contains(said), status.error().text().c_str());
        QVERIFY(!status.error().place.empty() && !status.error().hint.empty());
    }

    void whatARunIsMadeOfStaysOnResume() {
        Recipe before, now;
        QVERIFY(now.setFromText("optimizer.lr", "0.1") && now.setFromText("train.max_steps", "99") && now.setFromText("threads", "1"));
        QVERIFY(checkResumable(before, now, RunHas::Checkpoint));
        for (const auto& [key, value] : std::map<std::string, std::string>{{"seed", "5"},
                                                                           {"tokenizer.vocab_size", "300"},
                                                                           {"model.overrides", "layers=9"},
                                                                           {"data.train", "/other.txt"},
                                                                           {"optimizer.type", "AdamWeightDecay"}}) {
            now = before;
            QVERIFY(now.setFromText(key, value));
            const auto status = checkResumable(before, now, RunHas::Checkpoint);
            QVERIFY2(!status && status.error().place == key && !status.error().hint.empty(), key.c_str());
            QCOMPARE(bool(checkResumable(before, now, RunHas::Data)),
                     key != "data.train"); // nothing is trained yet: only the data are read
        }
    }

    void fieldsHideUntilTheyMatter() {
        Recipe recipe;
        const auto isShown = [&](const char* key) { return recipe.isShown(*findField(key)); };
        QVERIFY(!isShown("precision.half_type") && !isShown("sample.prompts") && isShown("tokenizer.vocab_size") &&
                isShown("schedule.min_lr"));
        QVERIFY(recipe.setFromText("precision.amp_level", "O2") && recipe.setFromText("sample.every_steps", "50"));
        QVERIFY(recipe.setFromText("tokenizer.path", "t.model") && recipe.setFromText("schedule.type", "constant"));
        QVERIFY(isShown("precision.half_type") && isShown("sample.prompts") && !isShown("tokenizer.vocab_size") &&
                !isShown("schedule.min_lr"));
    }

    void eachKindShowsWhatMattersToItAlone_data() {
        QTest::addColumn<QString>("kind");
        QTest::addColumn<QStringList>("shown");
        QTest::addColumn<QStringList>("hidden");
        QTest::newRow("pretrain") << "pretrain" << QStringList{"model.source", "tokenizer.vocab_size", "data.documents", "optimizer.lr", "evaluate.every_steps"}
                                  << QStringList{"model.adapters", "lora.enabled", "data.template", "predict.input", "evaluate.generate", "data.columns"};
        QTest::newRow("finetune") << "finetune" << QStringList{"model.source", "lora.rank", "data.template", "evaluate.generate", "schedule.type"}
                                  << QStringList{"tokenizer.vocab_size", "data.documents", "data.attention", "predict.input", "model.adapters"};
        QTest::newRow("evaluate")
            << "evaluate" << QStringList{"model.weights", "model.adapters", "data.validation", "data.documents", "evaluate.generate", "train.batch_size",
                                         "precision.amp_level", "data.template"}
            << QStringList{"model.source", "optimizer.lr", "schedule.min_lr", "train.epochs", "lora.rank", "checkpoint.every_steps", "evaluate.every_steps",
                           "rules", "precision.loss_scale", "predict.input", "tokenizer.vocab_size", "data.shuffle"};
        QTest::newRow("predict") << "predict" << QStringList{"model.weights", "model.adapters", "predict.input", "predict.temperature", "data.format"}
                                 << QStringList{"data.train", "data.validation", "data.validation_fraction", "train.batch_size", "evaluate.generate",
                                                "evaluate.max_batches", "optimizer.lr", "predict.system"};
    }
    void eachKindShowsWhatMattersToItAlone() {
        QFETCH(QString, kind);
        QFETCH(QStringList, shown);
        QFETCH(QStringList, hidden);
        Recipe recipe;
        QVERIFY(recipe.setFromText("kind", kind.toStdString()));
        for (const QString& key : shown) QVERIFY2(recipe.isShown(*findField(key.toStdString())), qPrintable(key));
        for (const QString& key : hidden) QVERIFY2(!recipe.isShown(*findField(key.toStdString())), qPrintable(key));
        if (kind != "finetune") return;
        QVERIFY(recipe.setFromText("data.format", "text") && recipe.isShown(*findField("data.documents")) && !recipe.isShown(*findField("data.packing")));
    }

    void whatAnEvaluationAndAPredictionLackIsSaid() {
        Recipe recipe;
        QVERIFY(recipe.setFromText("kind", "evaluate"));
        QVERIFY(hasProblem(recipe, "model.weights") && hasProblem(recipe, "data.validation"));
        QVERIFY(!hasProblem(recipe, "data.train")); // validation files are enough
        QVERIFY(recipe.setFromText("model.weights", "baichuan-tiny"));
        const auto preset = checkModel(recipe);
        QVERIFY(!preset && preset.error().place == "model.weights" && preset.error().message.find("a preset, which has no weights") != std::string::npos);
        QVERIFY(recipe.setFromText("data.train", "a.txt") && !hasProblem(recipe, "data.validation")); // its held-out part
        QVERIFY(recipe.setFromText("data.validation_fraction", "0") && hasProblem(recipe, "data.validation"));
        QVERIFY(recipe.setFromText("data.validation", "b.txt") && recipe.validate().empty());
        QVERIFY(recipe.setFromText("kind", "predict") && hasProblem(recipe, "predict.input"));
        QVERIFY(recipe.setFromText("predict.input", "prompts.txt") && recipe.validate().empty());
        QVERIFY(recipe.setFromText("data.format", "tokens") && hasProblem(recipe, "data.format"));
        QVERIFY(recipe.setFromText("schedule.warmup_steps", "10") && recipe.setFromText("train.max_steps", "5")); // of training, and not looked at
        QVERIFY(!hasProblem(recipe, "schedule.warmup_steps"));
    }

    void whatPredictionsDependOnStaysOnResume() {
        Recipe before, now;
        QVERIFY(now.setFromText("predict.batch_size", "2") && now.setFromText("threads", "1"));
        QVERIFY(checkResumable(before, now, RunHas::Predictions));
        for (const char* key : {"predict.temperature", "predict.seed", "predict.max_new_tokens"}) {
            now = before;
            QVERIFY(now.setFromText(key, "7"));
            const auto status = checkResumable(before, now, RunHas::Predictions);
            QVERIFY2(!status && status.error().place == key, key);
        }
    }

    void typedScriptsAreObjectsOrPathsAndComeBackWhole() {
        const std::string one = R"({"name": "mine", "code": "x = 1  # 中", "values": {"a": 1, "b": 0.5, "c": true, "d": "x,y"}})";
        const auto read = Recipe::fromJson("{\"callbacks\": {\"scripts\": [" + one + ", \"more/two.py\"]}}");
        QVERIFY2(read, qPrintable(errorOf(read)));
        const auto scripts = typedScripts(read->list("callbacks.scripts"));
        QVERIFY(scripts && scripts->size() == 2);
        QCOMPARE(std::get<std::int64_t>(scripts->at(0).values.at("a")), std::int64_t(1));
        QCOMPARE(std::get<double>(scripts->at(0).values.at("b")), 0.5);
        QCOMPARE(std::get<bool>(scripts->at(0).values.at("c")), true);
        QCOMPARE(QString::fromStdString(scripts->at(1).shownName()), QString("two"));
        const auto again = Recipe::fromJson(read->toJson());
        QVERIFY(again && *typedScripts(again->list("callbacks.scripts")) == *scripts);
        Recipe typed;
        QVERIFY(typed.setFromText("callbacks.scripts", read->toText("callbacks.scripts")));
        QVERIFY(*typedScripts(typed.list("callbacks.scripts")) == *scripts);
        QVERIFY(typed.setFromText("callbacks.scripts", "a.py,b.py"));
        QCOMPARE(typed.list("callbacks.scripts"), (std::vector<std::string>{"a.py", "b.py"}));
        QVERIFY(typed.setFromText("callbacks.scripts", R"({"code": "x"})"));
        QCOMPARE(typed.list("callbacks.scripts").size(), std::size_t(1));
    }

    void wrongScriptsAreRefusedAtTheirPlace() {
        const std::pair<const char*, const char*> cases[] = {{R"([{"name": "a"}])", "[0]"},
                                                             {R"([{"code": "x", "path": "y"}])", "[0]"},
                                                             {R"([{"code": "x", "vals": {}}])", "Did you mean values?"},
                                                             {R"([{"code": 1}])", "[0].code"},
                                                             {R"([{"code": "x", "values": {"a": [1]}}])", "[0].values"},
                                                             {R"([{"code": "x", "name": "a"}, {"code": "y", "name": "a"}])", "[1]"},
                                                             {R"([{"code": "x", "name": "a/b"}])", "[0].name"},
                                                             {"[1]", "callbacks.scripts"},
                                                             {R"({"code": "x"})", "callbacks.scripts"}};
        for (const auto& [list, expected] : cases) {
            const auto read = Recipe::fromJson(std::string(R"({"callbacks": {"scripts": )") + list + "}}");
            QVERIFY2(!read && errorOf(read).contains(QString::fromUtf8(expected)), qPrintable(QString(list) + ": " + errorOf(read)));
        }
    }

    void filesOfScriptsAreReadIn() {
        QTemporaryDir folder;
        const std::filesystem::path path = folder.path().toStdString();
        QVERIFY(writeFileAtomically(path / "mine.py", "def f(lr, cur_step_num):\n    return lr\n"));
        Recipe recipe;
        recipe.setFolder(path);
        QVERIFY(recipe.setFromText("callbacks.scripts", "mine.py"));
        const auto whole = recipe.withAbsolutePaths().withScriptsRead();
        QVERIFY2(whole, qPrintable(errorOf(whole)));
        const auto scripts = typedScripts(whole->list("callbacks.scripts"));
        QVERIFY(scripts && scripts->at(0).name == "mine" && scripts->at(0).path.empty() && scripts->at(0).code.starts_with("def f"));
        QVERIFY(recipe.setFromText("callbacks.scripts", "other.py"));
        const auto missing = recipe.withScriptsRead();
        QVERIFY2(!missing && errorOf(missing).contains("other.py"), qPrintable(errorOf(missing)));
    }
};

QTEST_GUILESS_MAIN(TestRecipe)
#include "tst_recipe.moc"
