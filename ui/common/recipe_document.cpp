#include "ui/common/recipe_document.h"

#include "models/base/files.h"
#include "ui/common/format.h"

#include <QFileInfo>

#include <utility>

namespace celloom::ui {

namespace {
const QString kFile = QStringLiteral("file"), kName = QStringLiteral("name"), kFolder = QStringLiteral("folder"), kRecipe = QStringLiteral("recipe"), kPending = QStringLiteral("pending");
}

RecipeDocument::RecipeDocument(QObject* parent) : QObject(parent), m_saved(m_recipe), m_name(QStringLiteral("untitled")) {}

bool RecipeDocument::isChanged() const {
    return !m_pending.empty() || !m_saved || !m_recipe.hasSameValues(*m_saved);
}

void RecipeDocument::touch(const QString& key) {
    const bool wasModified = std::exchange(m_isModified, isChanged());
    Q_EMIT valueChanged(key);
    if (wasModified != m_isModified) Q_EMIT titleChanged();
}

void RecipeDocument::setText(const QString& key, const QString& text) {
    const std::string name = toUtf8(key);
    if (Status status = m_recipe.setFromText(name, toUtf8(text)); !status) {
        m_pending[key] = {text, status.error()};
    } else {
        m_pending.erase(key);
    }
    touch(key);
}

void RecipeDocument::follow(const QString& key, recipe::FieldValue value) {
    if (m_filePath.isEmpty() && m_saved) CELLOOM_CHECK(m_saved->set(toUtf8(key), value).has_value());
    setValue(key, std::move(value));
}

void RecipeDocument::setValue(const QString& key, recipe::FieldValue value) {
    if (!m_pending.count(key) && m_recipe.value(toUtf8(key)) == value) return;
    if (Status status = m_recipe.set(toUtf8(key), std::move(value)); !status) {
        m_pending[key] = {QString(), status.error()};
    } else {
        m_pending.erase(key);
    }
    touch(key);
}

void RecipeDocument::reset(const QString& key) {
    const recipe::Field* field = recipe::findField(toUtf8(key));
    CELLOOM_CHECK(field);
    m_pending.erase(key);
    CELLOOM_CHECK(m_recipe.set(field->key, field->standard).has_value());
    touch(key);
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
    m_filePath = filePath;
    m_name = name;
    m_isModified = isChanged();
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
