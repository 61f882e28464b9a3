#include "ui/common/recipe_document.h"

#include "models/base/files.h"
#include "ui/common/format.h"

#include <QFileInfo>

#include <utility>

namespace celloom::ui {

RecipeDocument::RecipeDocument(QObject* parent) : QObject(parent), m_name(QStringLiteral("untitled")) {}

void RecipeDocument::touch(const QString& key) {
    const bool wasModified = m_isModified;
    m_isModified = true;
    Q_EMIT valueChanged(key);
    if (!wasModified) Q_EMIT titleChanged();
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

Status RecipeDocument::open(const QString& path) {
    CELLOOM_TRY(loaded, recipe::Recipe::load(toPath(path)));
    const QFileInfo info(path);
    m_recipe = std::move(loaded);
    m_pending.clear();
    m_filePath = info.absoluteFilePath();
    m_name = info.completeBaseName();
    m_isModified = false;
    Q_EMIT replaced();
    Q_EMIT titleChanged();
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
    m_isModified = false;
    Q_EMIT titleChanged();
    return {};
}

void RecipeDocument::take(recipe::Recipe recipe, const QString& name) {
    m_recipe = std::move(recipe);
    m_pending.clear();
    m_filePath.clear();
    m_name = name;
    m_isModified = false;
    Q_EMIT replaced();
    Q_EMIT titleChanged();
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
