#include "ui/editor/open_models.h"

#include <algorithm>

namespace celloom::ui {

OpenModels::OpenModels(const QString& recoveryFolder, QObject* parent) : QObject(parent), m_recovery(recoveryFolder) {
    m_current = &add();
    m_current->isImplicit = true;
    m_undo.setActiveStack(&m_current->undoStack());
}

OpenModels::~OpenModels() = default;

int OpenModels::indexOf(const ModelDocument& model) const {
    const auto found = std::find_if(m_models.begin(), m_models.end(), [&](const auto& one) { return one.get() == &model; });
    return found == m_models.end() ? -1 : static_cast<int>(found - m_models.begin());
}

ModelDocument* OpenModels::find(const QString& source) const {
    if (m_current->isNamedBy(source)) return m_current;
    const auto found = std::find_if(m_models.begin(), m_models.end(), [&](const auto& one) { return one->isNamedBy(source); });
    return found == m_models.end() ? nullptr : found->get();
}

std::vector<ModelDocument*> OpenModels::onlyHere() const {
    std::vector<ModelDocument*> out;
    for (const auto& model : m_models)
        if (model->isOnlyHere()) out.push_back(model.get());
    return out;
}

int OpenModels::freeNumber() const {
    for (int number = 1;; ++number) {
        const QString source = QStringLiteral("untitled-%1.cells.json").arg(number);
        if (std::none_of(m_models.begin(), m_models.end(), [&](const auto& one) { return one->source().endsWith(source); })) return number;
    }
}

ModelDocument& OpenModels::add() {
    m_models.push_back(std::make_unique<ModelDocument>(m_recovery.isKept() ? &m_recovery : nullptr));
    ModelDocument* model = m_models.back().get();
    model->order = count() - 1;
    m_undo.addStack(&model->undoStack());
    connect(model, &ModelDocument::titleChanged, this, &OpenModels::titleChanged);
    connect(model, &ModelDocument::changed, this, [this, model] {
        if (model == m_current) Q_EMIT changed();
    });
    Q_EMIT listChanged();
    return *model;
}

void OpenModels::remove(ModelDocument& model) {
    const int index = indexOf(model);
    CELLOOM_CHECK(index >= 0);
    model.discard();
    if (count() == 1) add();
    if (&model == m_current) setCurrent(at(index + 1 < count() ? index + 1 : index - 1));
    const auto gone = std::move(m_models[static_cast<std::size_t>(index)]);
    m_models.erase(m_models.begin() + index);
    disconnect(gone.get(), nullptr, this, nullptr);
    Q_EMIT listChanged();
}

void OpenModels::setCurrent(ModelDocument& model) {
    CELLOOM_CHECK(indexOf(model) >= 0);
    if (&model == m_current) return;
    m_current = &model;
    m_undo.setActiveStack(&model.undoStack());
    Q_EMIT currentChanged();
}

void OpenModels::move(int from, int to) {
    CELLOOM_CHECK(from >= 0 && from < count() && to >= 0 && to < count());
    auto model = std::move(m_models[static_cast<std::size_t>(from)]);
    m_models.erase(m_models.begin() + from);
    m_models.insert(m_models.begin() + to, std::move(model));
    for (int i = 0; i < count(); ++i) at(i).order = i;
    Q_EMIT listChanged();
}

std::vector<ModelDocument*> OpenModels::bringBack(const std::vector<Recovery::Left>& left) {
    std::vector<ModelDocument*> out;
    for (const Recovery::Left& one : left) {
        ModelDocument* same = find(one.about.value(QStringLiteral("source")).toString());
        const bool isOnTop = same && same->snapshot() && same->isUntouched();
        const bool isWaiting = same && !same->snapshot(); // the recipe names it, and nothing else has it
        ModelDocument& model = isOnTop || isWaiting ? *same : add();
        m_recovery.adopt(one, model.recoveryName());
        if (isOnTop) model.restore(one.document, one.about); // a step that can be undone
        else model.takeRecovered(one.document, one.about);
        out.push_back(&model);
    }
    return out;
}

} // namespace celloom::ui
