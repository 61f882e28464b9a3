#include "engine/checkpoint/mismatches.h"

#include "engine/checkpoint/tensor_table.h"
#include "models/base/text.h"
#include "models/families/families.h"
#include "models/families/vocabulary.h"

#include <algorithm>
#include <array>
#include <set>

namespace celloom::engine {
namespace {

constexpr std::size_t kShown = 8;

/// Sizes of published vocabularies (the families' presets, Llama and Llama 3).
struct Vocabulary {
    std::int64_t words;
    const char* owner;
};
constexpr std::array kVocabularies = {
    Vocabulary{64000, "Baichuan"},   Vocabulary{125696, "Baichuan2"},        Vocabulary{103168, "InternLM"}, Vocabulary{92544, "InternLM2"},
    Vocabulary{128512, "InternLM3"}, Vocabulary{32000, "Llama and Llama 2"}, Vocabulary{128256, "Llama 3"}};

bool anyHas(const std::vector<std::string>& names, const char* part) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return name.find(part) != std::string::npos; });
}

std::string list(const char* what, const std::vector<std::string>& items) {
    return items.empty() ? "" : std::string("; ") + what + joined(items, kShown);
}

} // namespace

void Mismatches::misshaped(const std::string& name, const char* type, const std::vector<std::int64_t>& found,
                           const std::vector<std::int64_t>& expected) {
    m_misshaped.push_back(name + " is " + type + " " + shapeText(found) + ", expected " + shapeText(expected));
    m_shapes.push_back({name, found, expected});
}

Status Mismatches::toStatus(const std::string& place) const {
    if (m_missing.empty() && m_unexpected.empty() && m_misshaped.empty() && m_wrong.empty()) return {};
    return fail("the weights do not fit the model" + list("missing: ", m_missing) + list("unexpected: ", m_unexpected) +
                    list("of another shape: ", m_misshaped) + list("", m_wrong) + ".",
                guess(), place);
}

std::string Mismatches::guess() const {
    if (const std::string prefix = commonPrefix(); !prefix.empty())
        return "The names begin with " + inQuotes(prefix) + ": was the model saved inside another one? Import it with --strip-prefix " +
               prefix;
    if (const std::string names = guessFromNames(); !names.empty()) return names;
    if (const std::string shapes = guessFromShapes(); !shapes.empty()) return shapes;
    if (m_missing.empty() && m_unexpected.empty() && m_misshaped.empty())
        return "Is the model described as one with a tied head (tie_word_embeddings) although it has none?";
    if (m_missing.empty() && m_unexpected.empty()) return "Is this the checkpoint of a model with another size or vocabulary?";
    if (!m_missing.empty() && !m_unexpected.empty()) return "Is this the checkpoint of another family of models?";
    return m_missing.empty() ? "Is the model described with fewer layers than the checkpoint has?"
                             : "Is a part of the checkpoint missing, or the model described with more layers?";
}

/// "module." where most of what is missing is there under this prefix.
std::string Mismatches::commonPrefix() const {
    const std::set<std::string> there(m_unexpected.begin(), m_unexpected.end());
    for (const std::string& name : m_missing) {
        const auto longer =
            std::find_if(m_unexpected.begin(), m_unexpected.end(), [&](const auto& other) { return other.ends_with("." + name); });
        if (longer == m_unexpected.end()) continue;
        const std::string prefix = longer->substr(0, longer->size() - name.size());
        const auto found =
            std::count_if(m_missing.begin(), m_missing.end(), [&](const auto& other) { return there.contains(prefix + other); });
        if (2 * static_cast<std::size_t>(found) > m_missing.size()) return prefix;
    }
    return {};
}

std::string Mismatches::guessFromNames() const {
    if (anyHas(m_unexpected, "lora_A") || anyHas(m_unexpected, "lora_embedding_A"))
        return "This is an adapter (LoRA): open its base model instead.";
    if (anyHas(m_unexpected, ".qweight") || anyHas(m_unexpected, ".SCB") || anyHas(m_unexpected, ".absmax"))
        return "These weights are quantised, which is not read: use the model in bfloat16 or float16.";
    if (m_missing.empty() || m_unexpected.empty()) return {};
    const std::set<std::string> there(m_unexpected.begin(), m_unexpected.end());
    const auto inner = std::count_if(m_missing.begin(), m_missing.end(),
                                     [&](const std::string& name) { return name.starts_with("model.") && there.contains(name.substr(6)); });
    if (2 * static_cast<std::size_t>(inner) > m_missing.size())
        return "The names lack \"model.\": was only the inner model saved, without its head?";
    struct Sign {
        const char* part;
        const char* family;
        const char* title;
    };
    constexpr std::array kSigns = {Sign{".W_pack.", "baichuan", "Baichuan"}, Sign{".attention.wqkv.", "internlm2", "InternLM2"},
                                   Sign{".self_attn.q_proj.bias", "internlm", "InternLM or Qwen2"},
                                   Sign{".self_attn.q_proj.", "transformer", "Llama (and others of its form)"}};
    for (const Sign& sign : kSigns)
        if (anyHas(m_unexpected, sign.part) && m_model.family != sign.family)
            return std::string("The names are those of ") + sign.title + ": is config.json that of another model?";
    return {};
}

std::string Mismatches::guessFromShapes() const {
    const auto isTransposed = [](const Shapes& s) {
        return s.found.size() == 2 && s.expected.size() == 2 && s.found[0] == s.expected[1] && s.found[1] == s.expected[0];
    };
    std::size_t transposed = 0, matrices = 0;
    for (const Shapes& s : m_shapes) {
        matrices += s.expected.size() == 2 ? 1 : 0;
        transposed += isTransposed(s) ? 1 : 0;
    }
    if (matrices > 0 && transposed == matrices) return "The matrices are transposed: were they saved as [in, out]?";
    for (const Shapes& s : m_shapes) {
        if (s.found.size() != 2 || s.expected.size() != 2 || s.found[1] != s.expected[1] ||
            s.expected[0] != families::vocabularyOf(m_model))
            continue;
        const auto known =
            std::find_if(kVocabularies.begin(), kVocabularies.end(), [&](const Vocabulary& v) { return v.words == s.found[0]; });
        const std::string owner = known == kVocabularies.end() ? "" : std::string(" (as ") + known->owner + " has)";
        return "The checkpoint has a vocabulary of " + std::to_string(s.found[0]) + " words" + owner + ", the model one of " +
               std::to_string(s.expected[0]) + ": set vocab_size, or take the other checkpoint.";
    }
    for (const Shapes& s : m_shapes)
        if (s.found.size() == 2 && s.expected.size() == 2 && s.expected[1] == m_model.hyperInteger("hidden", 0) &&
            s.found[1] != s.expected[1])
            return "The checkpoint is " + std::to_string(s.found[1]) + " wide, the model " + std::to_string(s.expected[1]) +
                   ": it is that of a model of another size.";
    return {};
}

} // namespace celloom::engine
