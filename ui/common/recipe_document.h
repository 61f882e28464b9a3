// The recipe that is open in the window: its values, the texts that are no value yet, its file, and whether it has changed.
#pragma once

#include "models/recipe/recipe.h"

#include <QJsonObject>
#include <QObject>
#include <QString>
#include <QUndoStack>

#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace celloom::ui {

/// Widgets read it and make one call a user action, which is one step of undo; it tells everybody what changed. No widget keeps a value of its own.
class RecipeDocument : public QObject {
    Q_OBJECT
public:
    explicit RecipeDocument(QObject* parent = nullptr);

    [[nodiscard]] const recipe::Recipe& recipe() const { return m_recipe; }
    [[nodiscard]] QString filePath() const { return m_filePath; }
    /// The name of the file without its ending, or of what it was cloned from.
    [[nodiscard]] QString name() const { return m_name; }
    /// Other values than those of the file (or of what it was cloned from), or texts that are no value yet.
    [[nodiscard]] bool isModified() const { return m_isModified; }

    /// Typing in one field is one step until it ends: with another field, or with endTyping().
    enum class Gesture { Whole, Typing };
    /// A text the user typed. Refused texts stay pending (and make the recipe unfit to run) until corrected or reset.
    void setText(const QString& key, const QString& text, Gesture gesture = Gesture::Typing);
    void setValue(const QString& key, recipe::FieldValue value, Gesture gesture = Gesture::Whole);
    void reset(const QString& key, Gesture gesture = Gesture::Whole);
    void endTyping() { ++m_typing; }
    /// All that `edits` changes is one step.
    void asOneStep(const std::function<void()>& edits);
    /// The model that the recipe is for, as it was chosen or as the rules were written for it; others that come to the front are only looked at.
    [[nodiscard]] QString ruledModel() const { return m_ruledModel; }
    /// Steps of the rules, which the Model page edits as well, and those of all other fields. The text of a step is the field's key.
    [[nodiscard]] QUndoStack& rulesStack() { return m_rulesStack; }
    [[nodiscard]] QUndoStack& fieldsStack() { return m_fieldsStack; }
    /// What the window sets because another model came to the front: no step, and a recipe without a file has no edits by it.
    void follow(const QString& key, recipe::FieldValue value);
    /// What is wrong with the text of one field, empty when nothing is.
    [[nodiscard]] Error pendingError(const QString& key) const;
    [[nodiscard]] QString pendingText(const QString& key) const;
    [[nodiscard]] bool hasPending() const { return !m_pending.empty(); }

    Status open(const QString& path);
    Status save(const QString& path);
    /// Takes over a recipe that is no file of the user's: an example or a run.
    void take(recipe::Recipe recipe, const QString& name);
    /// Gives unsaved edits up; the values stay as they are.
    void discard();

    /// All that the window has to keep of it in case it is killed, and one that a window before this one left.
    [[nodiscard]] QJsonObject about() const;
    Status takeRecovered(const QJsonObject& about);

    /// Pending texts first, then what the recipe finds itself.
    [[nodiscard]] std::vector<recipe::Problem> problems() const;

Q_SIGNALS:
    void valueChanged(const QString& key);
    void replaced();     // every value may be another
    void titleChanged(); // name, file or modified mark

private:
    struct Pending {
        QString text;
        Error error;
        bool operator==(const Pending& other) const { return text == other.text && error.message == other.error.message; }
    };
    struct State {
        recipe::FieldValue value;
        std::optional<Pending> pending;
        bool operator==(const State&) const = default;
    };
    using States = std::map<QString, State>;
    class Step;
    [[nodiscard]] State stateOf(const QString& key) const;
    void restore(const States& states);
    void begin(const QString& key);
    void commit(Gesture gesture);
    void touch(const QString& key);
    void replace(recipe::Recipe recipe, const QString& filePath, const QString& name, std::optional<recipe::Recipe> saved);
    [[nodiscard]] bool isChanged() const;
    void noteRuledModel();

    recipe::Recipe m_recipe;
    std::optional<recipe::Recipe> m_saved; // none: what is kept of it is not known any more
    std::map<QString, Pending> m_pending;
    QString m_filePath, m_name, m_ruledModel;
    bool m_isFollowing = false;
    bool m_isModified = false;
    QUndoStack m_rulesStack, m_fieldsStack;
    States m_before;       // of the fields that the step being made has changed
    QString m_first;       // of them
    int m_depth = 0;       // edits may lead to others while they are told of
    int m_typing = 0;      // number of what is being typed
    bool m_isRecording = true;
};

} // namespace celloom::ui
