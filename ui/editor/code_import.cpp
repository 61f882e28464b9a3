#include "ui/editor/code_import.h"

#include "models/base/files.h"
#include "models/graph/json.h"
#include "ui/common/format.h"

#include <QRegularExpression>

#include <nlohmann/json.hpp>

#include <algorithm>

namespace celloom::ui {

using nlohmann::json;

namespace {

constexpr qsizetype kMostLooked = 1 << 20; // of the clipboard

} // namespace

bool looksLikeCode(const QString& text) {
    static const QRegularExpression definition(QStringLiteral("^class\\s+\\w+\\s*\\(\\s*([\\w.]*\\.)?(Cell|Module|GraphCell)\\b[^)]*\\)\\s*:"),
                                               QRegularExpression::MultilineOption | QRegularExpression::UseUnicodePropertiesOption);
    return definition.match(text.left(kMostLooked)).hasMatch();
}

Result<CodeAnswer> readCodeAnswer(const QByteArray& text) {
    try {
        const json in = json::parse(text.begin(), text.end());
        CodeAnswer out;
        if (!in.at("ok").get<bool>()) {
            const json& error = in.at("error");
            out.problem = CodeProblem{fromUtf8(error.at("message").get<std::string>()), fromUtf8(error.at("hint").get<std::string>()), error.at("line").get<int>(),
                                      error.at("column").get<int>(), std::max(1, error.at("length").get<int>())};
            return out;
        }
        CELLOOM_TRY(document, graph::fromJson(in.at("document").dump(), "import-code"));
        out.imported = ImportedCode{std::move(document), fromUtf8(in.at("class").get<std::string>()), {}};
        for (const json& note : in.at("notes")) out.imported->notes.append(fromUtf8(note.get<std::string>()));
        return out;
    } catch (const json::exception& exception) {
        return fail(std::string("The engine's answer cannot be read: ") + exception.what() + ".");
    }
}

CodeImporter::CodeImporter(QString program, QObject* parent) : QObject(parent), m_job(std::move(program), this) {
    m_job.setAnswersWhenRefusing(true);
    connect(&m_job, &EngineJob::finished, this, [this](const QByteArray& output) {
        const auto answer = readCodeAnswer(output);
        if (!answer) Q_EMIT failed(answer.error());
        else if (answer->problem) Q_EMIT refused(*answer->problem);
        else Q_EMIT imported(*answer->imported);
        Q_EMIT ended();
    });
    connect(&m_job, &EngineJob::failed, this, [this](const Error& error) {
        Q_EMIT failed(error);
        Q_EMIT ended();
    });
    connect(&m_job, &EngineJob::cancelled, this, &CodeImporter::ended);
}

void CodeImporter::read(const QString& source) {
    if (!m_folder) m_folder = std::make_unique<QTemporaryDir>();
    const QString path = m_folder->filePath(QStringLiteral("source.py"));
    if (const Status status = writeFileAtomically(toPath(path), toUtf8(source)); !status) {
        Q_EMIT failed(status.error());
        Q_EMIT ended();
        return;
    }
    m_job.start({QStringLiteral("import-code"), path});
}

} // namespace celloom::ui
