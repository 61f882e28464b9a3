// The program behind the window: what its pages work with, over one workspace, built in the right order.
#pragma once

#include "models/base/result.h"
#include "models/store/run_folder.h"
#include "ui/common/engine_client.h"
#include "ui/common/model_analysis.h"
#include "ui/common/recipe_document.h"
#include "ui/common/run_store.h"
#include "ui/common/theme.h"
#include "ui/editor/open_models.h"
#include "ui/shell/language.h"
#include "ui/shell/main_window.h"
#include "ui/shell/services.h"

#include <QApplication>
#include <QSettings>
#include <QString>

#include <optional>

namespace celloom {

class Workbench {
public:
    /// Look and language, from the settings; `language` (en, zh_CN) goes before them unless it is empty.
    Workbench(QApplication& application, const QString& language);

    /// Everything that works on the runs in `folder`, the window (not shown yet), and what was open in it last.
    Status open(const QString& folder);
    /// Starts to look for the engine.
    void start() { m_opened->engine.start(); }
    [[nodiscard]] ui::MainWindow& window() { return m_opened->window; }
    [[nodiscard]] ui::Services& services() { return m_opened->services; }

private:
    struct Opened {
        Opened(Workbench& bench, const store::Workspace& workspace);

        ui::RecipeDocument recipe;
        ui::OpenModels model;
        ui::ModelAnalyser analyser;
        ui::RunStore store;
        ui::EngineClient engine;
        ui::Services services;
        ui::MainWindow window;
    };

    ui::Theme m_theme;
    QSettings m_settings;
    ui::Language m_language;
    std::optional<Opened> m_opened;
};

} // namespace celloom
