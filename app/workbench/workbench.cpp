#include "app/workbench/workbench.h"

#include "models/protocol/protocol.h"
#include "ui/common/format.h"

#include <QDir>
#include <QFileInfo>
#include <QStandardPaths>

#include <algorithm>
#include <cstdio>

namespace celloom {
using namespace ui;
namespace {

QString engineProgram() { return QCoreApplication::applicationDirPath() + QStringLiteral("/celloom-engine"); }

/// Example recipes: beside an installed program, or in the source tree of a build.
QString findRecipes() {
    const QDir program(QCoreApplication::applicationDirPath());
    for (const char* place : {"../share/celloom/recipes", "resources/recipes", "../../../resources/recipes", "../../resources/recipes"}) {
        const QFileInfo folder(program.absoluteFilePath(QString::fromLatin1(place)));
        if (folder.isDir()) return folder.canonicalFilePath();
    }
    return {};
}

EngineOptions engineOptions(const store::Workspace& workspace) {
    EngineOptions options;
    options.socket = pathText(protocol::brokerSocket(workspace));
    options.program = engineProgram();
    options.arguments = {QStringLiteral("serve"), QStringLiteral("--workspace"), pathText(workspace.path)};
    options.logFile = pathText(workspace.path / "engine.log");
    return options;
}

/// What a window that was killed left unsaved; else what was open last: a recipe that has no file, or the file.
void restoreRecipe(const QSettings& settings, Recovery& recovery, RecipeDocument& document) {
    if (const auto left = recovery.takeLeftRecipe(); left && document.takeRecovered(*left)) return;
    if (const QString draft = settings.value(QStringLiteral("draft")).toString(); !draft.isEmpty()) {
        if (auto recipe = recipe::Recipe::fromJson(toUtf8(draft), "the last session's draft")) {
            document.take(std::move(*recipe), settings.value(QStringLiteral("draftName")).toString());
            return;
        }
    }
    const QString last = settings.value(QStringLiteral("recipe")).toString();
    if (last.isEmpty() || !QFileInfo::exists(last)) return;
    if (Status status = document.open(last); !status) std::fprintf(stderr, "celloom: %s\n", status.error().text().c_str());
}

/// The window looks at the recipe when it is made.
RecipeDocument& restored(const QSettings& settings, Recovery& recovery, RecipeDocument& document) {
    restoreRecipe(settings, recovery, document);
    return document;
}

} // namespace

Workbench::Workbench(QApplication& application, const QString& language)
    : m_theme(application), m_settings(QStandardPaths::writableLocation(QStandardPaths::ConfigLocation) + QStringLiteral("/celloom/celloom.ini"), QSettings::IniFormat) {
    m_theme.setMode(static_cast<ThemeMode>(std::clamp(m_settings.value(QStringLiteral("theme"), 0).toInt(), 0, 2)));
    m_language.choose(language.isEmpty() ? m_settings.value(QStringLiteral("language")).toString() : language);
}

Workbench::Opened::Opened(Workbench& bench, const store::Workspace& workspace)
    : model(pathText(workspace.path / "recovery")), store(workspace), engine(engineOptions(workspace)),
      services{bench.m_theme, bench.m_language, bench.m_settings, restored(bench.m_settings, model.recovery(), recipe), model, analyser, store, engine, findRecipes(), engineProgram()},
      window(services) {}

Status Workbench::open(const QString& folder) {
    CELLOOM_TRY(workspace, store::Workspace::open(toPath(QFileInfo(folder).absoluteFilePath())));
    m_opened.emplace(*this, workspace);
    return {};
}

} // namespace celloom
