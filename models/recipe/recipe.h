// The full description of a run. Each field exists once, in fields(), with default, range, unit and help; the Train page, the
// command line's help, docs/recipe.md and validation derive from that list, so that a new field appears everywhere by itself.
#pragma once

#include "models/base/result.h"
#include "models/recipe/rules.h"

#include <filesystem>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace celloom::recipe {

enum class FieldKind { Integer, Real, Flag, Choice, Text, Path, PathList, TextList, RuleList, ScriptList };

/// Values are held as the kind says: Integer int64, Real double, Flag bool, Choice/Text/Path string, lists vector<string>
/// (rules in their text form, typed scripts as typed_script.h says).
using FieldValue = std::variant<std::int64_t, double, bool, std::string, std::vector<std::string>>;

struct Field {
    std::string key;     // "optimizer.lr"; the JSON nests by the dots
    std::string section; // "model", "data", …: see sections()
    FieldKind kind;
    FieldValue standard;
    double minimum = -1e300, maximum = 1e300; // of numbers; inclusive
    std::vector<std::string> choices;         // of a Choice: all there are; of a Path or Text: suggestions (model.source: the presets)
    std::string unit, unitZh;
    std::string label, labelZh;
    std::string help, helpZh;
    bool isAdvanced = false; // folded away in the form
    std::string shownWhen;   // "schedule.type=cosine|linear" or "!=", several joined by "&" (all hold) and "||" (or these): see isShown
};

struct Section {
    std::string key, label, labelZh;
};

const std::vector<Section>& sections();
const std::vector<Field>& fields();
const Field* findField(const std::string& key);

struct Problem {
    enum class Severity { Error, Warning } severity = Severity::Error;
    std::string key;
    std::string message, hint;
};

class Recipe {
public:
    Recipe(); // every field at its default

    /// Strict: an unknown field is an error that names the nearest known one; a wrong type or range names field, value and range.
    static Result<Recipe> fromJson(const std::string& text, const std::string& place = {});
    /// As fromJson, and relative paths inside are then meant relative to the file's folder.
    static Result<Recipe> load(const std::filesystem::path& path);
    [[nodiscard]] std::string toJson(bool onlyChanged = true) const;

    [[nodiscard]] std::int64_t integer(const std::string& key) const;
    [[nodiscard]] double real(const std::string& key) const;
    [[nodiscard]] bool flag(const std::string& key) const;
    [[nodiscard]] const std::string& text(const std::string& key) const;
    [[nodiscard]] const std::vector<std::string>& list(const std::string& key) const;
    [[nodiscard]] const FieldValue& value(const std::string& key) const;
    [[nodiscard]] bool isDefault(const std::string& key) const;
    /// Wherever they lie.
    [[nodiscard]] bool hasSameValues(const Recipe& other) const { return m_values == other.m_values; }
    /// The rules, parsed.
    [[nodiscard]] Result<std::vector<Rule>> rules() const;
    /// model.overrides as hyper-parameter values: whole numbers, reals, true/false, text.
    [[nodiscard]] Result<std::map<std::string, graph::ParamValue>> modelOverrides() const;

    Status set(const std::string& key, FieldValue value);
    /// From text as the command line and the form give it: "3e-4", "true", "a.txt,b.txt". Lists are separated by commas outside
    /// of braces or by line breaks; "\," is a comma inside an item. A JSON list, as the file has it, is understood too.
    Status setFromText(const std::string& key, const std::string& text);
    [[nodiscard]] std::string toText(const std::string& key) const;

    /// Whether the form shows the field now: its shownWhen holds, and the fields that it looks at are shown as well.
    [[nodiscard]] bool isShown(const Field& field) const;

    /// The folder that relative paths are meant in: the recipe file's; empty (the current one) when not loaded from a file.
    [[nodiscard]] const std::filesystem::path& folder() const { return m_folder; }
    void setFolder(std::filesystem::path folder) { m_folder = std::move(folder); }
    /// A path of this recipe as an absolute one. Globs are kept as they are written.
    [[nodiscard]] std::filesystem::path resolvePath(const std::string& path) const;
    /// The same recipe with every path absolute: what goes into a run's folder.
    [[nodiscard]] Recipe withAbsolutePaths() const;

    /// The same recipe with the files of typed scripts read in, so that a run needs none of them later.
    [[nodiscard]] Result<Recipe> withScriptsRead() const;

    /// Checks across fields (ranges are checked by set): warm-up within the run, accumulation, files named, …
    [[nodiscard]] std::vector<Problem> validate() const;

private:
    [[nodiscard]] std::string withAbsolutePath(const std::string& item) const;

    std::map<std::string, FieldValue> m_values;
    std::filesystem::path m_folder;
};

/// Runs of kind pretrain and finetune make steps; evaluate and predict use a model that has learned.
bool trains(const Recipe& recipe);

/// A field's range as a sentence fragment: "1 to 4096", "at least 0"; "1 至 4096", "不小于 0".
std::string rangeText(const Field& field, bool isChinese = false);

} // namespace celloom::recipe
