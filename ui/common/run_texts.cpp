#include "ui/common/messages.h"
#include "ui/common/run_texts.h"

#include "ui/common/format.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QRegularExpression>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace celloom::ui {

namespace {

/// An event's data; remembers whether something that was asked for is missing.
class Data {
public:
    explicit Data(const std::string& json) {
        const QJsonDocument document = QJsonDocument::fromJson(QByteArray::fromStdString(json));
        m_object = document.object();
        m_isComplete = document.isObject();
    }

    [[nodiscard]] bool has(const char* key) const { return m_object.contains(QLatin1String(key)); }
    [[nodiscard]] bool isComplete() const { return m_isComplete; }
    [[nodiscard]] bool flag(const char* key) const { return m_object.value(QLatin1String(key)).toBool(); }
    double real(const char* key) {
        const QJsonValue value = m_object.value(QLatin1String(key));
        m_isComplete = m_isComplete && value.isDouble();
        return value.toDouble();
    }
    QString count(const char* key) { return Format::count(std::llround(real(key))); }
    /// For tr()'s %n.
    int few(const char* key) { return static_cast<int>(std::clamp<double>(real(key), 0, std::numeric_limits<int>::max())); }
    QString text(const char* key) {
        const QJsonValue value = m_object.value(QLatin1String(key));
        m_isComplete = m_isComplete && value.isString();
        return value.toString();
    }
    /// "optimizer.lr: 0.001 → 0.0001, train.max_steps: 12 → 24"
    QString changes() {
        const QJsonArray all = m_object.value(QLatin1String("changes")).toArray();
        m_isComplete = m_isComplete && !all.isEmpty();
        QStringList parts;
        for (const QJsonValue& one : all)
            parts.append(QStringLiteral("%1: %2 → %3").arg(one[QLatin1String("key")].toString(), one[QLatin1String("before")].toString(), one[QLatin1String("now")].toString()));
        return parts.join(QStringLiteral(", "));
    }
    /// "UTF-8", or "GB 18030 (1), UTF-8 (119)" where there are several.
    QString encodings() {
        const QJsonObject counts = m_object.value(QLatin1String("encodings")).toObject();
        m_isComplete = m_isComplete && !counts.isEmpty();
        if (counts.size() == 1) return counts.begin().key();
        QStringList parts;
        for (auto one = counts.begin(); one != counts.end(); ++one)
            parts.append(QStringLiteral("%1 (%2)").arg(one.key(), Format::count(one.value().toInteger())));
        return parts.join(QStringLiteral(", "));
    }
    /// " accuracy: 0.93, F1: 0.9"; empty where nothing else was measured. The names are the same in every language.
    [[nodiscard]] QString metrics() const {
        const QJsonObject measured = m_object.value(QLatin1String("metrics")).toObject();
        QStringList parts;
        for (auto one = measured.begin(); one != measured.end(); ++one)
            parts.append(QStringLiteral("%1: %2").arg(one.key(), Format::number(one.value().toDouble())));
        return parts.isEmpty() ? QString() : QLatin1Char(' ') + parts.join(QStringLiteral(", "));
    }

private:
    QJsonObject m_object;
    bool m_isComplete = true;
};

using Say = QString (*)(Data&);

class Sentences {
    Q_DECLARE_TR_FUNCTIONS(celloom::ui::RunTexts)
public:
    static QString data(Data& data) {
        if (data.has("token_files"))
            return tr("Read %n token file(s)", "", data.few("token_files")) +
                   tr(": %1 sequences of %2 tokens to learn from.").arg(data.count("sequences"), data.count("sequence_length"));
        if (data.has("tensor_files"))
            return tr("Read %n file(s)", "", data.few("tensor_files")) +
                   tr(" of named columns: %1 rows to learn from, %2 held out.").arg(data.count("rows"), data.count("held_out"));
        return tr("Read %n file(s)", "", data.few("files")) +
               tr(" (%1): %2 to learn from, %3 held out.")
                   .arg(data.encodings(), tr("%n document(s)", "", data.few("documents")), data.count("held_out"));
    }
    static QString tokenizer(Data& data) {
        return tr("The tokenizer has %1 pieces; %2 sequences of %3 tokens to learn from.")
            .arg(data.count("vocabulary"), data.count("sequences"), data.count("sequence_length"));
    }
    static QString baseline(Data& data) {
        return tr("A bigram model has perplexity %1 on the validation data: a language model that learned something goes below it.")
            .arg(Format::number(data.real("perplexity")));
    }
    static QString evaluation(Data& data) {
        if (data.flag("no_data"))
            return tr("There is no validation data to evaluate on. Name validation files, or hold out a part of the documents.");
        if (data.has("items"))
            return tr("Validation loss %1 over %2 numbers.").arg(Format::number(data.real("loss")), data.count("items")) + data.metrics();
        return tr("Validation loss %1, perplexity %2 over %3 tokens.")
                   .arg(Format::number(data.real("loss")), Format::number(data.real("perplexity")), data.count("tokens")) +
               data.metrics();
    }
    static QString checkpoint(Data& data) { return tr("Saved the checkpoint %1.").arg(data.text("checkpoint")); }
    static QString resumed(Data& data) {
        if (!data.has("checkpoint")) return tr("Resumed from the beginning: no checkpoint had been saved.");
        return tr("Resumed from the checkpoint %1.").arg(data.text("checkpoint"));
    }
    static QString changed(Data& data) {
        QString text = tr("Changed from step %1 on: %2.").arg(data.count("step"), data.changes());
        if (data.flag("keeps_fixed_rate"))
            text = followedBy(text, tr("The learning rate stays at %1, which was set while the run went on.").arg(Format::rate(data.real("fixed_rate"))));
        else if (data.has("fixed_rate"))
            text = followedBy(text, tr("The learning rate of %1 that was set while the run went on ends.").arg(Format::rate(data.real("fixed_rate"))));
        if (!data.flag("keeps_fixed_rate") && data.has("rate"))
            text = followedBy(text, tr("Step %1 has the learning rate %2.").arg(data.count("step"), Format::rate(data.real("rate"))));
        if (data.flag("restarts_loss_scale")) text = followedBy(text, tr("The loss scale begins anew."));
        return text;
    }
    static QString overflowStorm(Data& data) {
        return tr("%1 steps in a row have overflowed and changed nothing; the loss scale is %2. Unless it ends, the run stops after %3. Stop it, and resume "
                  "with a lower learning rate or in bfloat16.")
            .arg(data.count("overflows"), Format::number(data.real("loss_scale")), data.count("most"));
    }
    static QString dataGone(Data& data) {
        return tr("%1 was deleted or replaced. The run goes on with what it has open; a resume will need the file as it was.").arg(data.text("path"));
    }
    static QString complete(Data& data) {
        return tr("All %n step(s) are done already. To train on, resume with more epochs or steps.", "", data.few("steps"));
    }
    static QString overflow(Data& data) {
        return tr("Step %1 overflowed under the loss scale %2 and changed nothing.")
            .arg(data.count("step"), Format::number(data.real("loss_scale")));
    }
    static QString paused(Data& data) { return data.has("step") ? tr("Paused after step %1.").arg(data.count("step")) : tr("Paused."); }
    static QString continued(Data& data) { return data.has("step") ? tr("Continued after step %1.").arg(data.count("step")) : tr("Continued."); }
    static QString savedAlready(Data& data) { return tr("Step %1 is saved already.").arg(data.count("step")); }
    static QString sampled(Data& data) {
        if (data.flag("no_tokenizer")) return tr("There is no tokenizer to write with: the run learns from token files, and its recipe names none.");
        return tr("Wrote samples after step %1.").arg(data.count("step"));
    }
    static QString notPossible(Data& data) {
        return tr("A run that does not train makes no steps, saves nothing and has no learning rate: it cannot obey “%1”.").arg(data.text("action"));
    }
    static QString model(Data& data) {
        return tr("Opened %1: %2 parameters.").arg(data.text("model"), Format::shortCount(data.real("parameters")));
    }
    static QString measuredData(Data& data) {
        const QString files = tr("Read %n file(s)", "", data.few("files"));
        if (data.has("documents")) return files + tr(": %n document(s) to measure on.", "", data.few("documents"));
        if (data.has("conversations")) return files + tr(": %n conversation(s) to measure on.", "", data.few("conversations"));
        return files + tr(": %n sequence(s) to measure on.", "", data.few("sequences"));
    }
    static QString prompts(Data& data) { return tr("Read %n prompt(s) from %1.", "", data.few("prompts")).arg(data.text("file")); }
    static QString predictions(Data& data) {
        QString text = tr("%1 of %2 texts are in %3.").arg(data.count("rows"), data.count("prompts"), data.text("file"));
        if (data.has("matches"))
            text = followedBy(text, tr("%1 of %2 questions are answered exactly as expected.").arg(data.count("matches"), data.count("questions")));
        return text;
    }
    static QString learningRate(Data& data) {
        return tr("From step %1 on the learning rate is %2.").arg(data.count("step"), Format::rate(data.real("lr")));
    }
    static QString scriptPrint(Data& data) { return tr("%1: %2").arg(data.text("callback"), data.text("line")); }
    static QString scriptQuiet(Data& data) {
        return tr("%1 has printed %2 lines; what follows is in the log alone.").arg(data.text("callback"), data.count("lines"));
    }
    static QString scriptState(Data& data) {
        return tr("%1 has changed: saved values that fit it no longer begin anew.").arg(data.text("callback"));
    }
    static QString callbackError(Data& data) {
        const int line = data.few("line");
        const QString place = line > 0 ? tr("%1, line %2").arg(data.text("callback")).arg(line) : data.text("callback");
        const QString text = QStringLiteral("%1: %2").arg(place, said(data.text("message")));
        return data.text("action") == QLatin1String("disable") ? tr("%1 The run goes on without it.").arg(text) : tr("%1 The run saves and ends.").arg(text);
    }
    static QString comparison(Data& data) {
        return tr("Validation perplexity %1; a bigram model over the same tokens has %2.")
            .arg(Format::number(data.real("perplexity")), Format::number(data.real("bigram")));
    }
    static QString memory(Data& data) {
        return tr("Tensors took at most %1; the estimate says %2.")
            .arg(Format::bytes(data.real("peak_bytes")), Format::bytes(data.real("estimate_bytes")));
    }
    static QString conversations(Data& data) {
        return tr("%1 conversations to learn from, %2 held out.").arg(data.count("conversations"), data.count("held_out"));
    }
    static QString chatTemplate(Data& data) { return tr("Chat template %1 (%2).").arg(data.text("template"), data.text("source")); }
    static QString samples(Data& data) {
        QString text = tr("%1 conversations became %2 sequences; %3 of %4 tokens are learned, the longest has %5 tokens.")
                           .arg(data.count("conversations"), data.count("sequences"), data.count("trainable"), data.count("tokens"), data.count("longest"));
        if (data.real("truncated") > 0) text = followedBy(text, tr("Shortened: %1.").arg(data.count("truncated")));
        if (data.real("dropped") > 0) text = followedBy(text, tr("Left out: %1.").arg(data.count("dropped")));
        if (data.real("untrainable") > 0) text = followedBy(text, tr("Without a token to learn: %1.").arg(data.count("untrainable")));
        return text;
    }
    static QString answers(Data& data) {
        return tr("%1 of %2 held-out questions answered exactly as expected.").arg(data.count("matches"), data.count("questions")) + data.metrics();
    }
    static QString baseAnswers(Data& data) {
        return tr("Before training the base answers %1 of %2 held-out questions exactly as expected.").arg(data.count("matches"), data.count("questions"));
    }
    static QString answersComparison(Data& data) {
        return tr("Held-out questions answered exactly as expected: %1 % before training, %2 % now.")
            .arg(Format::count(std::llround(100 * data.real("before"))), Format::count(std::llround(100 * data.real("after"))));
    }
    static QString plateau(Data& data) {
        return tr("%1 improved no more: from step %2 on the learning rate is %3.")
            .arg(data.text("monitor"), data.count("step"), Format::rate(data.real("lr")));
    }
    static QString earlyStopping(Data& data) {
        const QString text = tr("%1 improved no more: the run ends early, after step %2.").arg(data.text("monitor"), data.count("step"));
        return data.has("restored_step") && data.real("restored_step") > 0 ? followedBy(text, tr("Its weights are those of step %1 again.").arg(data.count("restored_step"))) : text;
    }
    static QString emptyStep(Data& data) { return tr("Step %1 had no token to learn from and changed nothing.").arg(data.count("step")); }
    static QString plugin(Data& data) { return tr("Uses cells of %1, SHA-256 %2.").arg(data.text("library"), data.text("sha256")); }
    static QString trainable(Data& data) {
        const double all = data.real("base") + data.real("adapters"), learning = data.real("trainable");
        QString text = tr("Trainable %1 %: %2 of %3 parameters; their gradients and moments take %4, of a full training %5.")
                           .arg(QString::number(all > 0 ? 100 * learning / all : 0, 'f', 2), data.count("trainable"), Format::count(std::llround(all)),
                                Format::bytes(data.real("state_bytes")), Format::bytes(data.real("full_state_bytes")));
        if (data.real("cells") > 0) text = followedBy(text, tr("Adapters stand beside %n cell(s).", "", data.few("cells")));
        return text;
    }
    static QString precision(Data& data) {
        QStringList parts;
        for (const char* type : {"float32", "bfloat16", "float16"})
            if (data.has(type)) parts.append(tr("%n cell(s) in %1", "", data.few(type)).arg(QLatin1String(type)));
        return tr("amp_level %1: %2.").arg(data.text("level"), parts.join(tr(", ")));
    }
    static QString slowHalfType(Data& data) {
        return tr("This machine has no instructions for %1: it saves memory here, but no time.").arg(data.text("type"));
    }
    static QString adapter(Data& data) { return tr("Saved the adapter in %1.").arg(data.text("adapter")); }
    static QString finished(Data& data) {
        if (data.has("batches")) return tr("Finished: %n batch(es) measured.", "", data.few("batches"));
        if (data.has("prompts")) return tr("Finished: %n prompt(s) answered.", "", data.few("prompts"));
        return tr("Finished after %n step(s).", "", data.few("step"));
    }
    static QString stopped(Data& data) {
        if (data.has("batches")) return tr("Stopped after %n batch(es).", "", data.few("batches"));
        if (data.has("prompts")) return tr("Stopped after %n prompt(s).", "", data.few("prompts"));
        return (data.flag("time_limit") ? tr("The time limit is reached: stopped after step %1.") : tr("Stopped after step %1."))
            .arg(data.count("step"));
    }
    static QString divergedAt(Data& data) {
        QString text = (data.flag("gradient") ? tr("Step %1: the gradient is NaN or infinite; training stopped before the update.")
                                              : tr("Step %1: the loss is NaN or infinite; training stopped before the update."))
                           .arg(data.count("step"));
        text = followedBy(text, tr("Lower the learning rate, lengthen the warm-up or clip gradients."));
        const QString checkpoint = data.text("checkpoint");
        return followedBy(text, checkpoint.isEmpty() ? tr("No checkpoint was saved before.")
                                                    : tr("The last good checkpoint is %1: resume from it with other settings.").arg(checkpoint));
    }
    /// What went wrong stays in the engine's words; `%1`.
    static QString diverged() { return tr("Diverged: %1"); }
    static QString failed() { return tr("Failed: %1"); }
    static QString damagedCheckpoint() { return tr("A checkpoint is damaged, the one before it is used: %1"); }

    static QString signal(int number) {
        switch (number) {
        case 9:
            return tr("the process was killed (signal 9)");
        case 15:
            return tr("the process was ended (signal 15)");
        case 6:
        case 7:
        case 8:
        case 11:
            return tr("the process crashed (signal %1)").arg(number);
        default:
            return tr("the process was ended by signal %1").arg(number);
        }
    }
    /// Of models/base/exit_codes.h.
    static QString exitCode(int code) {
        switch (code) {
        case 2:
        case 3:
            return tr("recipe, model or data were refused");
        case 5:
            return tr("the device asked for is not there");
        case 6:
            return tr("out of memory");
        case 7:
            return tr("the disk is full");
        case 8:
            return tr("the loss diverged");
        default:
            return tr("exit code %1").arg(code);
        }
    }
    static QString nobodySaw() { return tr("the process is gone, and nobody saw how it ended"); }
    static QString neverStarted() { return tr("it never started"); }
    static QString atStep(std::int64_t step) { return tr("at step %1").arg(Format::count(step)); }
    static QString afterPart(std::int64_t done, std::int64_t total) { return tr("after %1 of %2").arg(Format::count(done), Format::count(total)); }
};

constexpr struct {
    const char* kind;
    Say say;
} kSentences[] = {
    {"data", &Sentences::data},
    {"tokenizer", &Sentences::tokenizer},
    {"baseline", &Sentences::baseline},
    {"evaluation", &Sentences::evaluation},
    {"checkpoint", &Sentences::checkpoint},
    {"resumed", &Sentences::resumed},
    {"changed", &Sentences::changed},
    {"complete", &Sentences::complete},
    {"overflow", &Sentences::overflow},
    {"overflow_storm", &Sentences::overflowStorm},
    {"data_gone", &Sentences::dataGone},
    {"diverged", &Sentences::divergedAt},
    {"paused", &Sentences::paused},
    {"continued", &Sentences::continued},
    {"learning_rate", &Sentences::learningRate},
    {"script_print", &Sentences::scriptPrint},
    {"script_quiet", &Sentences::scriptQuiet},
    {"script_state", &Sentences::scriptState},
    {"callback_error", &Sentences::callbackError},
    {"comparison", &Sentences::comparison},
    {"memory", &Sentences::memory},
    {"conversations", &Sentences::conversations},
    {"template", &Sentences::chatTemplate},
    {"samples", &Sentences::samples},
    {"answers", &Sentences::answers},
    {"base_answers", &Sentences::baseAnswers},
    {"answers_comparison", &Sentences::answersComparison},
    {"plateau", &Sentences::plateau},
    {"early_stopping", &Sentences::earlyStopping},
    {"empty_step", &Sentences::emptyStep},
    {"plugin", &Sentences::plugin},
    {"trainable", &Sentences::trainable},
    {"precision", &Sentences::precision},
    {"slow_half_type", &Sentences::slowHalfType},
    {"adapter", &Sentences::adapter},
    {"saved_already", &Sentences::savedAlready},
    {"sampled", &Sentences::sampled},
    {"not_possible", &Sentences::notPossible},
    {"model", &Sentences::model},
    {"measured_data", &Sentences::measuredData},
    {"prompts", &Sentences::prompts},
    {"predictions", &Sentences::predictions},
    {"finished", &Sentences::finished},
    {"stopped", &Sentences::stopped},
};

constexpr struct {
    const char* kind;
    QString (*frame)();
} kFrames[] = {{"diverged", &Sentences::diverged}, {"failed", &Sentences::failed}, {"damaged_checkpoint", &Sentences::damagedCheckpoint}};

} // namespace

QString RunTexts::event(const store::EventRow& event) {
    const auto sentence =
        std::find_if(std::begin(kSentences), std::end(kSentences), [&](const auto& one) { return event.kind == one.kind; });
    if (sentence != std::end(kSentences) && !event.data.empty()) {
        Data data(event.data);
        QString text = sentence->say(data);
        if (data.isComplete()) return text;
    }
    const QString text = said(Error{event.message, event.hint, {}});
    const auto frame = std::find_if(std::begin(kFrames), std::end(kFrames), [&](const auto& one) { return event.kind == one.kind; });
    return frame == std::end(kFrames) ? text : frame->frame().arg(text);
}

QString RunTexts::reason(const store::RunRecord& run) {
    const QString outcome = fromUtf8(run.outcome);
    switch (run.state) {
    case store::RunState::Stopped:
        return run.trains() ? Sentences::atStep(run.step) : Sentences::afterPart(run.step, run.totalSteps);
    case store::RunState::Interrupted: {
        static const QRegularExpression signal(QStringLiteral("^interrupted \\(signal (\\d+)\\)$"));
        if (const auto match = signal.match(outcome); match.hasMatch()) return Sentences::signal(match.captured(1).toInt());
        return outcome.isEmpty() || outcome == QLatin1String("interrupted (nobody saw how)") ? Sentences::nobodySaw() : outcome;
    }
    case store::RunState::Failed: {
        if (outcome == QLatin1String("never started")) return Sentences::neverStarted();
        static const QRegularExpression failed(QStringLiteral("^failed \\(exit code (\\d+)\\)(?:: (.*))?$"),
                                               QRegularExpression::DotMatchesEverythingOption);
        const auto match = failed.match(outcome);
        if (!match.hasMatch()) return outcome;
        const int code = match.captured(1).toInt();
        const QString what = said(match.captured(2));
        if (what.isEmpty()) return Sentences::exitCode(code);
        return code == 1 ? what : tr("%1. %2", "what happened, details").arg(Sentences::exitCode(code), what);
    }
    default:
        return {};
    }
}

QString RunTexts::kind(const std::string& kind) {
    if (kind == "pretrain") return tr("Pretrain");
    if (kind == "finetune") return tr("Fine-tune");
    if (kind == "evaluate") return tr("Evaluate");
    if (kind == "predict") return tr("Predict");
    return fromUtf8(kind); // empty: an index of an earlier version
}

QString RunTexts::outcome(const store::RunRecord& run) {
    const QString state = Format::runState(run.state), why = reason(run);
    if (why.isEmpty()) return state;
    return run.state == store::RunState::Stopped ? tr("%1 %2", "state, at which step").arg(state, why) : tr("%1: %2").arg(state, why);
}

} // namespace celloom::ui
