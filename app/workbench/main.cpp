// celloom: reads the command line, builds what the window works with, shows it. Everything else is in ui/.
#include "models/protocol/protocol.h"
#include "ui/common/engine_client.h"
#include "ui/common/format.h"
#include "ui/common/model_analysis.h"
#include "ui/common/recipe_document.h"
#include "ui/common/run_store.h"
#include "ui/common/theme.h"
#include "ui/editor/model_document.h"
#include "ui/shell/language.h"
#include "ui/shell/main_window.h"
#include "ui/shell/services.h"

#include <QApplication>
#include <QCommandLineParser>
#include <QDir>
#include <QFileInfo>
#include <QMessageBox>
#include <QSettings>
#include <QStandardPaths>

#include <cstdio>

using namespace celloom;
using namespace celloom::ui;

namespace {

struct Arguments {
    QString workspace, recipe, language;
};

Arguments parse(const QApplication& application) {
    QCommandLineParser parser;
    parser.setApplicationDescription(QStringLiteral("Celloom: build, train and try large language models."));
    parser.addHelpOption();
    parser.addVersionOption();
    const QCommandLineOption workspace(QStringLiteral("workspace"), QStringLiteral("Folder of the runs (default: ~/Celloom)."),
                                       QStringLiteral("folder"));
    const QCommandLineOption language(QStringLiteral("language"), QStringLiteral("en or zh_CN, for this start."), QStringLiteral("code"));
    parser.addOptions({workspace, language});
    parser.addPositionalArgument(QStringLiteral("recipe"), QStringLiteral("A recipe to open."), QStringLiteral("[recipe.json]"));
    parser.process(application);
    Arguments arguments;
    arguments.workspace = parser.isSet(workspace) ? parser.value(workspace) : QDir::homePath() + QStringLiteral("/Celloom");
    arguments.language = parser.value(language);
    if (!parser.positionalArguments().isEmpty()) arguments.recipe = parser.positionalArguments().first();
    return arguments;
}

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
    options.program = QCoreApplication::applicationDirPath() + QStringLiteral("/celloom-engine");
    options.arguments = {QStringLiteral("serve"), QStringLiteral("--workspace"), pathText(workspace.path)};
    options.logFile = pathText(workspace.path / "engine.log");
    return options;
}

/// What was open last: a draft that was never saved, else the file.
void restoreRecipe(const QSettings& settings, RecipeDocument& document) {
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

} // namespace

int main(int argc, char** argv) {
    QApplication application(argc, argv);
    QCoreApplication::setOrganizationName(QStringLiteral("celloom"));
    QCoreApplication::setApplicationName(QStringLiteral("celloom"));
    QCoreApplication::setApplicationVersion(QStringLiteral(CELLOOM_VERSION));
    const Arguments arguments = parse(application);

    Theme theme(application);
    QSettings settings(QStandardPaths::writableLocation(QStandardPaths::ConfigLocation) + QStringLiteral("/celloom/celloom.ini"),
                       QSettings::IniFormat);
    theme.setMode(static_cast<ThemeMode>(std::clamp(settings.value(QStringLiteral("theme"), 0).toInt(), 0, 2)));
    Language language;
    language.choose(arguments.language.isEmpty() ? settings.value(QStringLiteral("language")).toString() : arguments.language);

    const auto workspace = store::Workspace::open(toPath(QFileInfo(arguments.workspace).absoluteFilePath()));
    if (!workspace) {
        QMessageBox box(QMessageBox::Critical, QStringLiteral("Celloom"), Format::error(workspace.error()));
        QObject::connect(&box, &QMessageBox::finished, &application, [] { QCoreApplication::exit(protocol::BadInput); });
        std::fprintf(stderr, "celloom: %s\n", workspace.error().text().c_str());
        box.show();
        return QApplication::exec();
    }
    RecipeDocument recipe;
    restoreRecipe(settings, recipe);
    ModelDocument model(pathText(workspace->path / "recovery"));
    ModelAnalyser analyser;
    RunStore store(*workspace);
    const EngineOptions options = engineOptions(*workspace);
    EngineClient engine(options);
    Services services{theme, language, settings, recipe, model, analyser, store, engine, findRecipes(), options.program};
    MainWindow window(services);
    window.show();
    if (!arguments.recipe.isEmpty()) {
        if (Status status = recipe.open(arguments.recipe); !status) {
            std::fprintf(stderr, "celloom: %s\n", status.error().text().c_str());
            return protocol::BadInput;
        }
        window.showPage(PageId::Train);
    }
    engine.start();
    return QApplication::exec();
}
