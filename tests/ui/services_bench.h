// What pages and windows work with, over a workspace of a test's own.
#pragma once

#include "ui/common/engine_client.h"
#include "ui/common/model_analysis.h"
#include "ui/common/recipe_document.h"
#include "ui/common/run_store.h"
#include "ui/common/theme.h"
#include "ui/editor/open_models.h"
#include "ui/shell/language.h"
#include "ui/shell/services.h"

#include <QApplication>
#include <QSettings>
#include <QTemporaryDir>

namespace celloom::test {

struct ServicesBench {
    QTemporaryDir folder; // workspace "w", settings, and the socket that the engine client looks for
    ui::Theme theme{*qApp};
    ui::Language language;
    QSettings settings{folder.filePath(QStringLiteral("settings.ini")), QSettings::IniFormat};
    ui::RecipeDocument recipe;
    ui::OpenModels model;
    ui::ModelAnalyser analyser;
    ui::RunStore store{*store::Workspace::open(folder.filePath(QStringLiteral("w")).toStdString())};
    ui::EngineClient engine{ui::EngineOptions{folder.filePath(QStringLiteral("socket")), {}, {}, {}, 10}};
    ui::Services services{theme, language, settings, recipe, model, analyser, store, engine, folder.filePath(QStringLiteral("examples")), folder.filePath(QStringLiteral("engine"))};
};

} // namespace celloom::test
