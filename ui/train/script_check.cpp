#include "ui/train/script_check.h"

#include "models/base/files.h"
#include "ui/common/format.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace celloom::ui {

using nlohmann::json;

namespace {

constexpr std::size_t kMostAnswers = 200, kMostWaiting = 64;

ScriptNote noteFrom(const json& in) {
    return {fromUtf8(in.at("message").get<std::string>()), fromUtf8(in.at("hint").get<std::string>()), in.at("line").get<int>(), in.at("column").get<int>(),
            std::max(1, in.at("length").get<int>())};
}

std::optional<graph::ParamValue> valueFrom(const json& in) {
    if (in.is_boolean()) return in.get<bool>();
    if (in.is_number_integer()) return in.get<std::int64_t>();
    if (in.is_number()) return in.get<double>();
    if (in.is_string()) return in.get<std::string>();
    return {};
}

} // namespace

Result<ScriptCheck> readScriptCheck(const QByteArray& text) {
    try {
        const json in = json::parse(text.begin(), text.end());
        ScriptCheck out;
        out.kind = fromUtf8(in.at("kind").get<std::string>());
        out.definition = fromUtf8(in.at("definition").get<std::string>());
        for (const json& method : in.at("methods")) out.methods.append(fromUtf8(method.get<std::string>()));
        for (const json& name : in.at("names")) out.fields.push_back({fromUtf8(name.at("name").get<std::string>()), valueFrom(name.at("value")), name.at("line").get<int>()});
        for (const json& warning : in.at("warnings")) out.warnings.push_back(noteFrom(warning));
        if (!in.at("error").is_null()) out.error = noteFrom(in.at("error"));
        return out;
    } catch (const json::exception& exception) {
        return fail(std::string("The engine's answer cannot be read: ") + exception.what() + ".");
    }
}

ScriptChecker::ScriptChecker(QString program, QObject* parent) : QObject(parent), m_job(std::move(program), this) {
    m_job.setAnswersWhenRefusing(true);
    connect(&m_job, &EngineJob::finished, this, &ScriptChecker::take);
    connect(&m_job, &EngineJob::failed, this, [this](const Error& error) {
        m_failure = Format::error(error);
        m_waiting.clear(); // it would fail again
        m_asked.clear();
        Q_EMIT checked();
    });
}

const ScriptCheck* ScriptChecker::known(const recipe::TypedScript& script) const {
    const auto found = m_answers.find(recipe::toText(script));
    return found == m_answers.end() ? nullptr : &found->second;
}

const ScriptCheck* ScriptChecker::check(const recipe::TypedScript& script) {
    if (const ScriptCheck* answer = known(script)) return answer;
    const std::string text = recipe::toText(script);
    std::erase(m_waiting, text);
    if (text != m_asked) m_waiting.push_back(text);
    if (m_waiting.size() > kMostWaiting) m_waiting.erase(m_waiting.begin()); // of texts typed long ago
    next();
    return nullptr;
}

void ScriptChecker::next() {
    if (m_job.isRunning() || m_waiting.empty()) return;
    if (!m_folder) m_folder = std::make_unique<QTemporaryDir>();
    const QString path = m_folder->filePath(QStringLiteral("script.json"));
    m_asked = m_waiting.back(); // the newest
    m_waiting.pop_back();
    if (const Status status = writeFileAtomically(toPath(path), m_asked); !status) {
        m_failure = Format::error(status.error());
        return;
    }
    m_failure.clear();
    m_job.start({QStringLiteral("check-script"), path});
}

void ScriptChecker::take(const QByteArray& answer) {
    auto check = readScriptCheck(answer);
    const std::string text = std::exchange(m_asked, {});
    if (!check) {
        m_failure = Format::error(check.error());
    } else {
        if (m_answers.size() >= kMostAnswers) m_answers.clear();
        m_answers[text] = std::move(*check);
    }
    Q_EMIT checked();
    next();
}

} // namespace celloom::ui
