// The chat behind the Try page: columns with models, the questions asked of all of them, and each column's answers as they stream in.
// Asks the engine, and knows no widget.
#pragma once

#include "models/base/result.h"

#include <QObject>
#include <QString>
#include <QStringList>

#include <cstdint>
#include <map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace celloom::ui {

class EngineClient;

/// How tokens are chosen. The same for all columns, so that their answers can be compared.
struct Sampling {
    double temperature = 0.8, topP = 0.95, repetitionPenalty = 1.0;
    int topK = 0, maxNewTokens = 256;
    std::int64_t seed = 1;
    QStringList stops;
    bool operator==(const Sampling&) const = default;
};

/// A token as the model scored it. The probability is negative where it is not known.
struct ScoredPiece {
    QString piece;
    double probability = -1;
};

/// Some characters of an answer, and the tokens that they came from.
struct AnswerPart {
    struct Token {
        ScoredPiece chosen;
        std::vector<ScoredPiece> alternatives; // likeliest first
    };
    QString text;
    std::vector<Token> tokens;
};

struct Answer {
    enum class State { Waiting, Writing, Done, Stopped, Failed };
    State state = State::Waiting;
    std::vector<AnswerPart> parts;
    QString reason; // of Done: "stop_token", "length", "stop_text", "context"
    QString error;  // of Failed
    std::int64_t request = 0, count = 0, promptCount = 0, seed = 0;
    double tokensPerSecond = 0;
    [[nodiscard]] QString text() const;
    [[nodiscard]] bool isOver() const { return state != State::Waiting && state != State::Writing; }
};

/// A question and what each column answered, by the column's name. A column that came later has none.
struct Turn {
    QString question;
    std::map<QString, Answer> answers;
};

/// How messages become one text; the engine tells which it knows.
struct ChatTemplateName {
    QString name, label;
    bool operator==(const ChatTemplateName&) const = default;
};

struct TryColumn {
    enum class State { Empty, Unloaded, Loading, Ready, Failed };
    QString name;   // "c1": for the engine, never shown
    QString source; // a run's folder name, or a path
    QStringList adapters;
    State state = State::Empty;
    QString error;
    // of a model that is loaded:
    QString model, device, chatTemplate;
    bool isTuned = false;       // it was tuned to chat in that template
    bool hasOwnAdapter = false; // a run or checkpoint that trained one
    std::int64_t parameters = 0, context = 0; // context 0: no limit
};

class Playground : public QObject {
    Q_OBJECT
public:
    static constexpr int kMostColumns = 4;

    explicit Playground(EngineClient& engine, QObject* parent = nullptr);

    [[nodiscard]] const std::vector<TryColumn>& columns() const { return m_columns; }
    [[nodiscard]] const std::vector<Turn>& turns() const { return m_turns; }
    [[nodiscard]] const std::vector<ChatTemplateName>& templates() const { return m_templates; } // none until a model was loaded
    [[nodiscard]] const TryColumn* column(const QString& name) const;
    /// Short, for people: the last part of the source and of each adapter.
    [[nodiscard]] static QString titleOf(const TryColumn& column);
    [[nodiscard]] bool isWriting() const;
    [[nodiscard]] bool canSend() const; // a column has a model, and none is writing

    /// A new column at the right; gives its name. At most kMostColumns.
    QString addColumn(const QString& source, const QStringList& adapters = {});
    /// Another model in a column; what it answered before stays.
    void setModel(const QString& name, const QString& source, const QStringList& adapters);
    void removeColumn(const QString& name);

    // What the next question is sent with.
    Sampling sampling;
    bool isChat = false;  // messages in the template; else free text that is continued
    QString chatTemplate; // empty: the one that fits each model
    QString system;

    void send(const QString& question);
    void stop();
    /// The last question once more, with the next seed.
    void regenerate();
    void clear();

    [[nodiscard]] QString toMarkdown() const;
    [[nodiscard]] QByteArray toJson() const;

Q_SIGNALS:
    void columnsChanged();                    // one more, one less
    void columnChanged(const QString& name);  // its model or state
    void templatesChanged();                  // more are known, or what is chosen has changed by itself
    void turnsChanged();                      // one more, one less, another
    void answerGrew(const QString& column);   // the last turn's, at its end
    void answerEnded(const QString& column);  // the last turn's
    void writingChanged();
    void failed(const QString& error); // of the chat as a whole

private:
    TryColumn* find(const QString& name);
    void ask(const nlohmann::json& request);
    void load(TryColumn& column);
    void ask(TryColumn& column, Turn& turn);
    void onEvent(const nlohmann::json& event);
    void onOpened(TryColumn& column, const nlohmann::json& event);
    void onError(const nlohmann::json& event);
    void onEnded(const nlohmann::json& event);
    void loseAll(const QString& error); // empty: nobody needs to be told
    Answer* answerOf(const nlohmann::json& event);
    void end(const QString& column, Answer& answer, Answer::State state);

    EngineClient& m_engine;
    std::vector<TryColumn> m_columns;
    std::vector<Turn> m_turns;
    std::vector<ChatTemplateName> m_templates;
    bool m_isOpen = false;
    int m_nextColumn = 1;
    std::int64_t m_nextRequest = 1;
};

} // namespace celloom::ui
