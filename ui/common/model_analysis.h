// What a recipe's model is: document, expansion, costs and treatment, worked out on a thread of its own and handed over whole.
#pragma once

#include "models/base/result.h"
#include "models/families/folder_contents.h"
#include "models/graph/cost.h"
#include "models/graph/document.h"
#include "models/graph/expand.h"
#include "models/recipe/estimate.h"
#include "models/recipe/precision_summary.h"
#include "models/recipe/recipe.h"
#include "models/recipe/rules.h"
#include "ui/common/background.h"

#include <QObject>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace celloom::ui {

/// Never changed after it is made, so threads may share it.
struct ModelAnalysis {
    std::string source; // as the recipe names the model
    std::shared_ptr<const graph::Document> edited; // what stood for it; null: the model was opened
    graph::Document document;
    std::map<std::string, graph::ParamValue> overrides; // of its hyper-parameters, with which it was expanded
    graph::Expansion expansion;
    std::vector<graph::Cost> costs;           // of one micro-batch, in the order of expansion.model.cells; empty when there are errors
    recipe::TreatmentTable treatment;         // empty when the rules could not be resolved
    recipe::PrecisionTable precision;         // empty with the treatment, or when its lists could not be resolved
    std::vector<recipe::PrecisionRow> precisionRows; // the same, folded
    std::vector<std::int64_t> trainable;      // parameters that learn, adapters among them, by cell; empty with the treatment
    std::optional<recipe::Estimate> estimate; // of a whole run; not there when there are errors
    std::optional<families::FolderContents> folder; // where the model is a folder or a file in one; filled also when it cannot be opened
    std::int64_t ownParameters = 0; // of a folder's model as it is, where the recipe changes it; else 0
    std::optional<Error> openError;           // the model could not be opened: nothing else is filled
    std::optional<Error> ruleError;
    std::optional<Error> precisionError; // its place is "precision.deny[1]" or a cell
    std::int64_t batch = 1, sequence = 1;    // what the costs were counted with
    bool vocabularyFollowsTokenizer = false; // "vocab" is the trained tokenizer's, not the document's own

    /// The model reads rows of tokens: an input of whole numbers whose rows have a length of their own.
    [[nodiscard]] bool hasTokens() const;
    /// Tokens in the micro-batch, or rows of a model without tokens: what FLOPs are told for one of.
    [[nodiscard]] double costUnits() const;
};
using ModelAnalysisPtr = std::shared_ptr<const ModelAnalysis>;

using DocumentPtr = std::shared_ptr<const graph::Document>;

/// How far an analysis goes: the outline is the expansion alone, quick enough to follow each edit.
enum class AnalysisDepth { Outline, Whole };

/// Opens, expands, counts. Slow parts are file reading and large graphs; call it away from the window's thread. `edited`, where given, stands
/// for what the recipe names.
ModelAnalysis analyse(const recipe::Recipe& recipe, const DocumentPtr& edited = {}, AnalysisDepth depth = AnalysisDepth::Whole);

class ModelAnalyser : public QObject {
    Q_OBJECT
public:
    explicit ModelAnalyser(QObject* parent = nullptr) : QObject(parent) {}

    /// Asks for the analysis of this recipe, with a model that was edited in place of its own. Only the newest request is answered.
    void request(const recipe::Recipe& recipe, const DocumentPtr& edited = {});
    [[nodiscard]] ModelAnalysisPtr latest() const { return m_latest; }
    /// No request is under way: latest() belongs to the newest one.
    [[nodiscard]] bool isSettled() const { return m_answered == m_asked; }

Q_SIGNALS:
    void ready(const celloom::ui::ModelAnalysisPtr& analysis);

private:
    ModelAnalysisPtr m_latest;
    std::uint64_t m_asked = 0, m_answered = 0;
    bool m_isBusy = false;
    struct Request {
        recipe::Recipe recipe;
        DocumentPtr edited;
    };
    std::optional<Request> m_waiting;
    void begin(const Request& request);
    void finish(const ModelAnalysisPtr& analysis);

    Background m_background;
};

} // namespace celloom::ui
