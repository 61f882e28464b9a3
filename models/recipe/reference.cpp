#include "models/recipe/reference.h"

#include "models/base/text.h"
#include "models/families/families.h"
#include "models/library/standard.h"
#include "models/recipe/recipe.h"

namespace celloom::recipe {
namespace {

std::string kindText(const Field& field, bool isChinese) {
    switch (field.kind) {
    case FieldKind::Integer:
        return isChinese ? "整数" : "whole number";
    case FieldKind::Real:
        return isChinese ? "实数" : "number";
    case FieldKind::Flag:
        return "true, false";
    case FieldKind::Choice:
        return joined(field.choices);
    case FieldKind::Text:
        return isChinese ? "文字" : "text";
    case FieldKind::Path:
        return isChinese ? "路径" : "path";
    case FieldKind::PathList:
        return isChinese ? "路径列表" : "list of paths";
    case FieldKind::TextList:
        return isChinese ? "文字列表" : "list of texts";
    case FieldKind::RuleList:
        return isChinese ? "规则列表" : "list of rules";
    case FieldKind::ScriptList:
        return isChinese ? "脚本列表" : "list of scripts";
    }
    return {};
}

/// A table's cell: "|" would end it, "*" would turn what follows italic.
std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) out += (c == '|' || c == '*' || c == '<') ? std::string("\\") + c : std::string(1, c);
    return out;
}

std::string row(const Field& field, bool isChinese) {
    const std::string standard = Recipe().toText(field.key);
    std::string kind = kindText(field, isChinese);
    const bool isNumber = field.kind == FieldKind::Integer || field.kind == FieldKind::Real;
    if (isNumber) kind += ", " + rangeText(field, isChinese);
    if (!field.unit.empty()) kind += " (" + (isChinese ? field.unitZh : field.unit) + ")";
    return "| `" + field.key + "` | " + escaped(kind) + " | " + (standard.empty() ? "" : "`" + standard + "`") + " | " +
           escaped(isChinese ? field.labelZh : field.label) + ": " + escaped(isChinese ? field.helpZh : field.help) + " |\n";
}

const char* const kIntroduction =
    "# The recipe\n\n"
    "One JSON file describes a run. Keys nest by their dots: `optimizer.lr` is `{\"optimizer\": {\"lr\": 0.0003}}`. A field that is left "
    "out has\n"
    "its default. An unknown field, a wrong type and a value outside its range are errors that name the field. Relative paths are meant\n"
    "from the recipe's folder. `celloom-engine run RECIPE --set optimizer.lr=0.001` changes fields for one run.\n\n"
    "This page is made from the list in `models/recipe/fields.cpp`; after a change there, `CELLOOM_UPDATE_DOCS=1 ctest -R recipe_docs`\n"
    "writes it anew.\n";
const char* const kIntroductionZh =
    "# 配方\n\n"
    "一个 JSON 文件描述一次运行。键按点号嵌套：`optimizer.lr` 写作 `{\"optimizer\": {\"lr\": "
    "0.0003}}`。省略的字段取默认值。未知字段、类型\n"
    "错误和超出范围的值都会报错并指明字段。相对路径以配方文件所在文件夹为准。`celloom-engine run RECIPE --set optimizer.lr=0.001` "
    "只为一次运行改动字段。\n\n"
    "本页由 `models/recipe/fields.cpp` 中的列表生成；修改后运行 `CELLOOM_UPDATE_DOCS=1 ctest -R recipe_docs` 重新写出。\n";

const char* const kRules =
    "\nA rule is a pattern of cell paths, a colon, and settings. In patterns `*` is one name or a part of one, `**` any number of names,\n"
    "`{3..5}` a range, `{a,b}` alternatives. Later rules win, setting by setting. A pattern that matches nothing is an error.\n\n"
    "| setting | meaning |\n|---|---|\n"
    "| `freeze`, `train` | the cell's weights stay as they are, or learn |\n"
    "| `lora r=8 alpha=16 dropout=0` | a low-rank adapter beside a Dense cell; only the adapter learns |\n"
    "| `dtype=bfloat16` | type the cell computes in: float32, bfloat16, float16 |\n"
    "| `recompute`, `recompute=false` | compute the cell again in the backward pass instead of keeping its values |\n"
    "| `stage=1` | pipeline stage |\n"
    "| `lr_scale=0.5` | factor on the learning rate |\n"
    "| `weight_decay=0` | weight decay of its weights |\n";
const char* const kRulesZh = "\n一条规则由单元路径模式、冒号和设置组成。模式中 `*` 匹配一个名字或其中一部分，`**` "
                             "匹配任意多个名字，`{3..5}` 是范围，`{a,b}` 是备选。\n"
                             "后面的规则逐项优先。什么都匹配不到的模式会报错。\n\n"
                             "| 设置 | 含义 |\n|---|---|\n"
                             "| `freeze`、`train` | 权重保持不变，或参与学习 |\n"
                             "| `lora r=8 alpha=16 dropout=0` | 在 Dense 单元旁加低秩适配器；只有适配器学习 |\n"
                             "| `dtype=bfloat16` | 单元的计算类型：float32、bfloat16、float16 |\n"
                             "| `recompute`、`recompute=false` | 反向时重新计算该单元，而不保存中间值 |\n"
                             "| `stage=1` | 流水线阶段 |\n"
                             "| `lr_scale=0.5` | 学习率系数 |\n"
                             "| `weight_decay=0` | 该单元权重的衰减 |\n";

} // namespace

std::string fieldReference(Language language) {
    const bool isChinese = language == Language::Chinese;
    std::string out = isChinese ? kIntroductionZh : kIntroduction;
    for (const Section& section : sections()) {
        out += "\n## " + (isChinese ? section.labelZh : section.label) + "\n\n";
        out += isChinese ? "| 字段 | 取值 | 默认 | 说明 |\n|---|---|---|---|\n"
                         : "| field | values | default | meaning |\n|---|---|---|---|\n";
        for (const Field& field : fields())
            if (field.section == section.key) out += row(field, isChinese);
    }
    return out + (isChinese ? kRulesZh : kRules);
}

std::string presetReference(Language language) {
    const bool isChinese = language == Language::Chinese;
    std::string out = isChinese ? "# 预设\n\n由 `models/families/presets.cpp` 生成。\n\n| 预设 | 参数 | 说明 | 总数的来源 |\n|---|---|---|---|\n"
                                : "# Presets\n\nMade from `models/families/presets.cpp`.\n\n| preset | parameters | what it is | source of the "
                                  "total |\n|---|---|---|---|\n";
    for (const families::Preset& preset : families::presets())
        out += "| `" + preset.name + "` | " + std::to_string(preset.parameters) + " | " + escaped(isChinese ? preset.summaryZh : preset.summary) +
               " | " + escaped(preset.source) + " |\n";
    out += isChinese ? "\n每个总数也由其他程序独立数过：`tests/oracle/count_presets.py`。\n"
                     : "\nEach total is counted by other programs too: `tests/oracle/count_presets.py`.\n";
    out += isChinese ? "\n## 模板\n\n由 `resources/templates` 生成：可直接用作模型名的完整网络，尺寸用 `model.overrides` 改。\n\n| 模板 | 说明 | 超参数 |\n|---|---|---|\n"
                     : "\n## Templates\n\nMade from `resources/templates`: whole networks whose names stand for a model, with `model.overrides` for their sizes.\n\n"
                       "| template | what it is | hyper-parameters |\n|---|---|---|\n";
    for (const library::Template& made : library::templates()) {
        std::vector<std::string> hyper;
        for (const graph::HyperParameter& parameter : made.document.main.hyper) hyper.push_back(parameter.name);
        out += "| `" + made.name + "` | " + escaped(isChinese ? made.summaryZh : made.summary()) + " | " + joined(hyper) + " |\n";
    }
    return out;
}

} // namespace celloom::recipe
