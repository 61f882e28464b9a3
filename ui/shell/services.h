// What every page works with. main() builds these and passes them down; they outlive all pages.
#pragma once

#include <QString>

class QSettings;

namespace celloom::ui {

class EngineClient;
class Language;
class ModelAnalyser;
class OpenModels;
class RecipeDocument;
class RunStore;
class Theme;

struct Services {
    Theme& theme;
    Language& language;
    QSettings& settings;
    RecipeDocument& recipe;
    OpenModels& model; // the open models; the one in front is the recipe's, as it is edited
    ModelAnalyser& analyser;
    RunStore& store;
    EngineClient& engine;
    QString recipesFolder;      // example recipes; empty where none were found
    QString engineProgram = {}; // celloom-engine, for work that is no run
};

} // namespace celloom::ui
