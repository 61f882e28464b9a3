#include "ui/common/recipe_document.h"

#include "models/base/files.h"
#include "ui/common/format.h"
#include "ui/common/undo_order.h"

#include <QFileInfo>
#include <QScopedValueRollback>

#include <utility>

namespace celloom::ui {

namespace {
const QString kFile = QStringLiteral("file"), kName = QStringLiteral("name"), kFolder = QStringLiteral("folder"), kRecipe = QStringLiteral("recipe"), kPending = QStringLiteral("pending");
const QString kRules = QStringLiteral("rules"), kSource = QStringLiteral("model.source"), kOverrides = QStringLiteral("model.overrides"), kWeights = QStringLiteral("model.weights");
constexpr int kMostSteps = 1000;

/// A list as it is typed; other values have no text of their own here.
QString linesOf(const recipe::FieldValue& value) {
    const auto* items = std::get_if<std::vector<std::string>>(&value);
    QStringList lines;
    for (const std::string& item : items ? *items : std::vector<std::string>{}) lines.append(fromUtf8(item));
    return lines.join(QLatin1Char('\n'));
}
}

RecipeDocument::RecipeDocument(QObject* parent) : QObject(parent), m_saved(m_recipe), m_name(QStringLiteral("untitled")) {
    for (QUndoStack* stack : {&m_rulesStack, &m_fieldsStack}) stack->setUndoLimit(kMostSteps);
    noteRuledModel();
}

bool RecipeDocument::isChanged() const {
    return !m_pending.empty() || !m_saved || !m_recipe.hasSameValues(*m_saved);
}

/// One step of undo: the fields that it changes, before and after, with texts that are no value.
class RecipeDocument::Step : public DatedStep {
public:
    Step(RecipeDocument& owner, const QString& key, States before, States after, int typing) : m_owner(owner), m_before(std::move(before)), m_after(std::move(after)), m_typing(typing) { setText(key); }
    void redo() override {
        if (std::exchange(m_isNew, false)) return; // it is done already
        m_owner.restore(m_after);
    }
    void undo() override { m_owner.restore(m_before); }
    int id() const override { return m_typing; }
    bool mergeWith(const QUndoCommand* other) override {
        const auto* next = static_cast<const Step*>(other); // the same id: a Step
        if (next->text() != text()) return false;
        for (const auto& [key, state] : next->m_before) m_before.emplace(key, state);
        for (const auto& [key, state] : next->m_after) m_after[key] = state;
        if (m_before == m_after) setObsolete(true);
        return true;
    }

private:
    RecipeDocument& m_owner;
    States m_before, m_after;
    int m_typing;
    bool m_isNew = true;
};

RecipeDocument::State RecipeDocument::stateOf(const QString& key) const {
    const auto pending = m_pending.find(key);
    return {m_recipe.value(toUtf8(key)), pending == m_pending.end() ? std::nullopt : std::optional(pending->second)};
}

void RecipeDocument::restore(const States& states) {
    const QScopedValueRollback recording(m_isRecording, false);
    endTyping();
    for (const auto& [key, state] : states) {
        CELLOOM_CHECK(m_recipe.set(toUtf8(key), state.value).has_value());
        m_pending.erase(key);
        if (state.pending) m_pending.emplace(key, *state.pending);
    }
    for (const auto& [key, state] : states) touch(key);
}

/// A field is about to change.
void RecipeDocument::begin(const QString& key) {
    ++m_depth;
    if (m_before.empty()) m_first = key;
    m_before.emplace(key, stateOf(key));
    if (key == kOverrides || key == kWeights) m_before.emplace(kSource, stateOf(kSource)); // they are that model's
}

void RecipeDocument::commit(Gesture gesture) {
    if (--m_depth > 0) return;
    const States before = std::exchange(m_before, {});
    if (!m_isRecording) return;
    States after;
    for (const auto& [key, state] : before) after.emplace(key, stateOf(key));
    if (before == after) return;
    (m_first == kRules ? m_rulesStack : m_fieldsStack).push(new Step(*this, m_first, before, after, gesture == Gesture::Typing ? m_typing : -1));
}

void RecipeDocument::asOneStep(const std::function<void()>& edits) {
    ++m_depth;
    edits();
    commit(Gesture::Whole);
}

void RecipeDocument::noteRuledModel() {
    m_ruledModel = fromUtf8(m_recipe.withAbsolutePaths().text("model.source"));
}

void RecipeDocument::touch(const QString& key) {
    const bool wasModified = std::exchange(m_isModified, isChanged());
    if (!m_isFollowing && (key == kRules || key == kSource)) noteRuledModel();
    Q_EMIT valueChanged(key);
    if (wasModified != m_isModified) Q_EMIT titleChanged();
}

void RecipeDocument::setText(const QString& key, const QString& text, Gesture gesture) {
    begin(key);
    if (Status status = m_recipe.setFromText(toUtf8(key), toUtf8(text)); !status) {
        m_pending[key] = {text, status.error()};
    } else {
        m_pending.erase(key);
    }
    touch(key);
    commit(gesture);
}

void RecipeDocument::follow(const QString& key, recipe::FieldValue value) {
    const QScopedValueRollback recording(m_isRecording, false), following(m_isFollowing, true);
    if (m_filePath.isEmpty() && m_saved) CELLOOM_CHECK(m_saved->set(toUtf8(key), value).has_value());
    setValue(key, std::move(value));
}

void RecipeDocument::setValue(const QString& key, recipe::FieldValue value, Gesture gesture) {
    if (!m_pending.count(key) && m_recipe.value(toUtf8(key)) == value) return;
    begin(key);
    if (Status status = m_recipe.set(toUtf8(key), value); !status) {
        m_pending[key] = {linesOf(value), status.error()};
    } else {
        m_pending.erase(key);
    }
    touch(key);
    commit(gesture);
}

void RecipeDocument::reset(const QString& key, Gesture gesture) {
    const recipe::Field* field = recipe::findField(toUtf8(key));
    CELLOOM_CHECK(field);
    begin(key);
    m_pending.erase(key);
    CELLOOM_CHECK(m_recipe.set(field->key, field->standard).has_value());
    touch(key);
    commit(gesture);
}

Error RecipeDocument::pendingError(const QString& key) const {
    const auto found = m_pending.find(key);
    return found == m_pending.end() ? Error{} : found->second.error;
}

QString RecipeDocument::pendingText(const QString& key) const {
    const auto found = m_pending.find(key);
    return found == m_pending.end() ? QString() : found->second.text;
}

void RecipeDocument::replace(recipe::Recipe recipe, const QString& filePath, const QString& name, std::optional<recipe::Recipe> saved) {
    m_recipe = std::move(recipe);
    m_saved = std::move(saved);
    m_pending.clear();
    m_rulesStack.clear();
    m_fieldsStack.clear();
    m_filePath = filePath;
    m_name = name;
    m_isModified = isChanged();
    noteRuledModel();
    Q_EMIT replaced();
    Q_EMIT titleChanged();
}

Status RecipeDocument::open(const QString& path) {
    CELLOOM_TRY(loaded, recipe::Recipe::load(toPath(path)));
    const QFileInfo info(path);
    replace(loaded, info.absoluteFilePath(), info.completeBaseName(), loaded);
    return {};
}

Status RecipeDocument::save(const QString& path) {
    const QFileInfo info(path);
    recipe::Recipe written = m_recipe;
    // Relative names are meant from the recipe's folder: elsewhere they would be others.
    if (toPath(info.absolutePath()) != m_recipe.folder()) written = m_recipe.withAbsolutePaths();
    CELLOOM_TRY_STATUS(writeFileAtomically(toPath(path), written.toJson()));
    if (!written.hasSameValues(m_recipe)) // steps hold names as they were meant from the folder before
        for (QUndoStack* stack : {&m_rulesStack, &m_fieldsStack}) stack->clear();
    m_recipe = std::move(written);
    m_recipe.setFolder(toPath(info.absolutePath()));
    m_filePath = info.absoluteFilePath();
    m_name = info.completeBaseName();
    m_saved = m_recipe;
    m_isModified = isChanged();
    Q_EMIT titleChanged();
    return {};
}

void RecipeDocument::take(recipe::Recipe recipe, const QString& name) {
    replace(recipe, {}, name, recipe);
}

void RecipeDocument::discard() {
    m_saved = m_recipe;
    m_pending.clear();
    m_isModified = false;
    Q_EMIT titleChanged();
}

// ---- recovery ----

QJsonObject RecipeDocument::about() const {
    QJsonObject pending;
    for (const auto& [key, one] : m_pending) pending.insert(key, one.text);
    return {{kFile, m_filePath}, {kName, m_name}, {kFolder, pathText(m_recipe.folder())}, {kRecipe, fromUtf8(m_recipe.toJson())}, {kPending, pending}};
}

Status RecipeDocument::takeRecovered(const QJsonObject& about) {
    CELLOOM_TRY(recipe, recipe::Recipe::fromJson(toUtf8(about.value(kRecipe).toString()), "the recipe that was not saved"));
    recipe.setFolder(toPath(about.value(kFolder).toString()));
    const QString file = about.value(kFile).toString();
    std::optional<recipe::Recipe> saved;
    if (!file.isEmpty())
        if (auto loaded = recipe::Recipe::load(toPath(file))) saved = std::move(*loaded);
    replace(std::move(recipe), file, about.value(kName).toString(), std::move(saved));
    const QJsonObject pending = about.value(kPending).toObject();
    const QScopedValueRollback recording(m_isRecording, false);
    for (auto one = pending.begin(); one != pending.end(); ++one) setText(one.key(), one.value().toString());
    return {};
}

std::vector<recipe::Problem> RecipeDocument::problems() const {
    std::vector<recipe::Problem> all;
    for (const auto& [key, pending] : m_pending) {
        all.push_back({recipe::Problem::Severity::Error, toUtf8(key), pending.error.message, pending.error.hint});
    }
    for (recipe::Problem& problem : m_recipe.validate()) all.push_back(std::move(problem));
    return all;
}

} // namespace celloom::ui
