// Random hostile input: documents, recipes, configs, expressions, rules. Nothing may crash, hang or pass unseen: every refusal has a
// sentence, everything accepted reads back the same and expands within its bounds. CELLOOM_ROUNDS=N looks N times as long.
#include "models/catalog/catalog.h"
#include "models/families/families.h"
#include "models/graph/cost.h"
#include "models/graph/expression.h"
#include "models/graph/json.h"
#include "models/recipe/parameter_table.h"
#include "models/recipe/recipe.h"

#include <QtTest>
#include <nlohmann/json.hpp>

#include <random>

using namespace celloom;
using nlohmann::json;

namespace {

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t limit) {
    return limit == 0 ? 0 : random() % limit;
}

/// Values that have broken readers before.
json hostileValue(Random& random) {
    static const std::vector<json> values{nullptr,
                                          true,
                                          false,
                                          0,
                                          1,
                                          -1,
                                          3,
                                          1e300,
                                          -1e-300,
                                          1.5,
                                          INT64_MAX,
                                          INT64_MIN,
                                          UINT64_MAX,
                                          "",
                                          "x",
                                          "B",
                                          "T",
                                          "hidden",
                                          "heads / 3",
                                          "1 / 0",
                                          "layers",
                                          "-> ",
                                          "a.b -> c.d",
                                          "layers.out -> layers.x",
                                          ".",
                                          " -> ",
                                          "**",
                                          "{3..5}",
                                          std::string(5000, '('),
                                          std::string(2000, '9'),
                                          "\xE4\xBD\xA0",
                                          std::string("\0x", 2),
                                          "roundUp(hidden, 0)",
                                          "DecoderLayer",
                                          "MLP",
                                          "Dense",
                                          "Split",
                                          "1000000",
                                          "8, 8, 8",
                                          ",",
                                          json::array(),
                                          json::object(),
                                          json::array({1, "2", nullptr}),
                                          {{"name", "x"}, {"type", "MLP"}}};
    return values[below(random, values.size())];
}

/// All places in a JSON value, for picking one at random.
void collect(json& value, std::vector<json*>& out) {
    out.push_back(&value);
    if (value.is_structured())
        for (json& inner : value) collect(inner, out);
}

void mutate(json& document, Random& random) {
    std::vector<json*> places;
    collect(document, places);
    json& place = *places[below(random, places.size())];
    json& other = *places[below(random, places.size())];
    switch (below(random, 5)) {
    case 0:
        place = hostileValue(random);
        break;
    case 1: { // a copy from elsewhere
        const json copy = other;
        place = copy;
        break;
    }
    case 2: // drop an entry
        if (place.is_array() && !place.empty())
            place.erase(below(random, place.size()));
        else if (place.is_object() && !place.empty())
            place.erase(std::next(place.begin(), static_cast<std::ptrdiff_t>(below(random, place.size()))));
        break;
    case 3: // one entry more
        if (place.is_array())
            place.push_back(place.empty() ? hostileValue(random) : json(place[below(random, place.size())]));
        else if (place.is_object())
            place[std::vector<std::string>{"x", "hidden", "repeat", "params", "note", "p"}[below(random, 6)]] = hostileValue(random);
        break;
    default: // swap two entries of a list
        if (place.is_array() && place.size() > 1) std::swap(place[below(random, place.size())], place[below(random, place.size())]);
    }
}

void mutateBytes(std::string& text, Random& random) {
    static const std::string alphabet = "{}[]\",:.0123456789eE-+ \n\\tfnx\x80\xff";
    for (std::size_t n = 1 + below(random, 4); n > 0; --n) {
        const std::size_t at = below(random, text.size());
        switch (below(random, 4)) {
        case 0:
            text.insert(at, 1, alphabet[below(random, alphabet.size())]);
            break;
        case 1:
            text.erase(at, 1 + below(random, 20));
            break;
        case 2:
            text.insert(at, text.substr(below(random, text.size()), below(random, 60)));
            break;
        default:
            if (!text.empty()) text[at] = alphabet[below(random, alphabet.size())];
        }
        if (text.empty()) text = "{";
    }
}

int rounds(int standard) {
    return standard * std::max(1, qEnvironmentVariableIntValue("CELLOOM_ROUNDS"));
}

bool says(const Error& error) {
    return !error.message.empty();
}

/// Everything that reads a document, on one that was accepted.
QString complaintAbout(const graph::Document& document) {
    const std::string text = graph::toJson(document);
    const auto again = graph::fromJson(text);
    if (!again) return "written, but not read again: " + QString::fromStdString(again.error().text());
    if (graph::toJson(*again) != text) return "another document after reading again";
    const auto expansion = graph::expand(document);
    if (expansion.problems.size() > 300) return "too many problems";
    for (const auto& problem : expansion.problems)
        if (problem.message.empty()) return "a problem without a message";
    if (auto config = families::toConfigJson(document); config && !families::fromConfigJson(*config, "c"))
        return "a config.json that is not read again";
    if (!expansion.ok()) return {};
    if (expansion.model.cells.size() > 200000) return "too many cells";
    std::map<std::string, std::int64_t> symbols;
    for (const auto& value : expansion.model.values)
        for (const auto& dim : value.shape)
            if (!dim.symbol.empty()) symbols[dim.symbol] = 7;
    const auto total = graph::total(graph::costs(expansion.model, symbols));
    if (total.parameters != expansion.model.parameterCount()) return "two counts of parameters";
    const auto treatment = recipe::resolve(expansion.model, {});
    if (!treatment) return "no rules, but refused";
    (void)recipe::parameterTable(expansion.model, *treatment);
    return {};
}

} // namespace

class TestRobustness : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void mutatedDocumentsAreReadOrRefused() {
        Random random(20240601);
        int accepted = 0, runnable = 0;
        for (int round = 0; round < rounds(600); ++round) {
            auto original = families::buildPreset(round % 2 ? "baichuan-tiny" : "baichuan-tiny-gqa");
            QVERIFY(original);
            json value = json::parse(graph::toJson(*original));
            for (std::size_t n = 1 + below(random, 3); n > 0; --n) mutate(value, random);
            const std::string text = value.dump();
            auto document = graph::fromJson(text, "a.cells.json");
            if (!document) {
                QVERIFY(says(document.error()) && document.error().place.starts_with("a.cells.json"));
                continue;
            }
            ++accepted;
            runnable += graph::expand(*document).ok();
            const QString complaint = complaintAbout(*document);
            QVERIFY2(complaint.isEmpty(), qPrintable(complaint + "\n" + QString::fromStdString(text)));
        }
        QVERIFY(accepted > 50 && runnable > 10 && runnable < accepted); // the mutations reach all three outcomes
    }

    void mutatedBytesAreReadOrRefused() {
        Random random(7);
        const std::string original = graph::toJson(*families::buildPreset("baichuan-tiny"));
        for (int round = 0; round < rounds(800); ++round) {
            std::string text = original;
            mutateBytes(text, random);
            auto document = graph::fromJson(text, "a.cells.json");
            if (document)
                QVERIFY(complaintAbout(*document).isEmpty());
            else
                QVERIFY(says(document.error()));
        }
    }

    void randomGraphsAreJudged() {
        Random random(99);
        const std::vector<std::string> types{"Dense",     "SiLU", "Add", "Split",   "Concat", "Attention",
                                             "Embedding", "A",    "B",   "Softmax", "LMHead", "RotaryEmbedding"};
        const std::vector<std::string> names{"a", "b", "c", "d", ""},
            ports{"x", "out", "a", "b", "in0", "in1", "out0", "out1", "q", "k", "v", "ids", "branch", "logits"};
        const std::vector<graph::ParamValue> values{
            std::int64_t(1),    std::int64_t(8), std::int64_t(-1), std::string("n"), std::string("n * 2"), std::string("4, 4"), 0.5, true,
            std::string("none")};
        const auto pick = [&](const auto& list) { return list[below(random, list.size())]; };
        const auto randomGraph = [&] {
            graph::Graph g;
            g.hyper = {{"n", std::int64_t(8), ""}};
            for (std::size_t i = below(random, 3); i > 0; --i)
                g.inputs.push_back({pick(ports), {"B", pick(std::vector<std::string>{"n", "T", "8", "2 * T", "?"})}, "float"});
            for (std::size_t i = below(random, 3); i > 0; --i) g.outputs.push_back({pick(ports), {}, "float"});
            for (std::size_t i = below(random, 5); i > 0; --i) {
                graph::Cell c;
                c.name = pick(names);
                c.type = pick(types);
                c.repeat = below(random, 4) == 0 ? pick(std::vector<std::string>{"2", "n", "3000", "n / 3"}) : "";
                if (const auto* type = catalog::find(c.type))
                    for (const auto& param : type->params)
                        if (below(random, 8)) c.params[param.name] = pick(values);
                g.cells.push_back(std::move(c));
            }
            for (std::size_t i = below(random, 8); i > 0; --i) g.wires.push_back({{pick(names), pick(ports)}, {pick(names), pick(ports)}});
            return g;
        };
        for (int round = 0; round < rounds(5000); ++round) {
            graph::Document document;
            document.main = randomGraph();
            document.composites["A"] = randomGraph();
            document.composites["B"] = randomGraph();
            const auto expansion = graph::expand(document);
            for (const auto& problem : expansion.problems) QVERIFY(!problem.message.empty());
        }
    }

    void randomExpressionsGiveAValueOrASentence() {
        Random random(5);
        const std::vector<std::string> tokens{"1",      "2",        "0",    "9223372036854775807",
                                              "0.5",    "1e300",    "n",    "B",
                                              "+",      "-",        "*",    "/",
                                              "%",      "(",        ")",    ",",
                                              " ",      "roundUp(", "min(", "max(",
                                              "floor(", "ceil(",    ".",    "e",
                                              "_",      "$"};
        const graph::Scope scope{{"n", std::int64_t(12)}};
        const graph::Symbols symbols{{"B", {1, "B"}}};
        int values = 0;
        for (int round = 0; round < rounds(50000); ++round) {
            std::string text;
            for (std::size_t n = 1 + below(random, 12); n > 0; --n) text += tokens[below(random, tokens.size())];
            const auto value = graph::evaluate(text, scope);
            if (value) {
                ++values;
                if (const auto* real = std::get_if<double>(&*value)) QVERIFY2(std::isfinite(*real), text.c_str());
            } else {
                QVERIFY(says(value.error()));
            }
            const auto dim = graph::evaluateDim(text, scope, symbols);
            QVERIFY(dim ? dim->number >= 1 && dim->number <= graph::kMaxDim : says(dim.error()));
        }
        QVERIFY(values > 500);
    }

    void mutatedRecipesAreReadOrRefused() {
        Random random(11);
        recipe::Recipe full;
        QVERIFY(full.set("rules", std::vector<std::string>{"layers.{0..3}.**: freeze", "norm: lr_scale=0.5"}));
        QVERIFY(full.set("data.train", std::vector<std::string>{"a.txt", "b/*.txt"}));
        for (int round = 0; round < rounds(1500); ++round) {
            json value = json::parse(full.toJson(false));
            for (std::size_t n = 1 + below(random, 2); n > 0; --n) mutate(value, random);
            std::string text = value.dump();
            if (round % 3 == 0) mutateBytes(text, random);
            auto read = recipe::Recipe::fromJson(text, "r.json");
            if (!read) {
                QVERIFY(says(read.error()) && read.error().place.starts_with("r.json"));
                continue;
            }
            auto again = recipe::Recipe::fromJson(read->toJson());
            QVERIFY(again && again->toJson(false) == read->toJson(false));
            (void)read->validate();
            recipe::Recipe typed;
            for (const auto& field : recipe::fields()) {
                QVERIFY2(typed.setFromText(field.key, read->toText(field.key)), field.key.c_str());
                QVERIFY2(typed.value(field.key) == read->value(field.key) || field.kind >= recipe::FieldKind::PathList,
                         field.key.c_str()); // lists lose outer blanks
            }
        }
    }

    void mutatedConfigsAreReadOrRefused() {
        Random random(13);
        const std::string original = *families::toConfigJson(*families::buildPreset("baichuan-tiny-gqa"));
        for (int round = 0; round < rounds(800); ++round) {
            json value = json::parse(original);
            for (std::size_t n = 1 + below(random, 2); n > 0; --n) mutate(value, random);
            auto document = families::fromConfigJson(value.dump(), "config.json");
            if (document)
                QVERIFY(complaintAbout(*document).isEmpty());
            else
                QVERIFY(says(document.error()));
        }
    }

    void randomRulesAreReadOrRefused() {
        Random random(17);
        const std::vector<std::string> tokens{
            "layers", "norm", ".",   "*",      "**",    "{",       "}",      "0..3",    "a,b", ",", ":", " ",
            "freeze", "lora", "r=8", "alpha=", "1e400", "stage=1", "dtype=", "float16", "你",  "=", "-"};
        const auto model = graph::expand(*families::buildPreset("baichuan-tiny")).model;
        int parsed = 0;
        for (int round = 0; round < rounds(20000); ++round) {
            std::string text = round % 2 ? "layers" : "";
            for (std::size_t n = 1 + below(random, 10); n > 0; --n) text += tokens[below(random, tokens.size())];
            if (round % 4 == 0) text += ": freeze";
            auto rule = recipe::parseRule(text);
            if (!rule) {
                QVERIFY(says(rule.error()));
                continue;
            }
            ++parsed;
            QVERIFY(*recipe::parseRule(recipe::toText(*rule)) == *rule);
            const auto table = recipe::resolve(model, {*rule});
            QVERIFY(table || says(table.error()));
        }
        QVERIFY(parsed > 100);
    }
};

QTEST_GUILESS_MAIN(TestRobustness)
#include "tst_robustness.moc"
