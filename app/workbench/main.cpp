// celloom: reads the command line and shows the window. What it works with is built in workbench.h; everything else is in ui/.
#include "app/workbench/workbench.h"
#include "models/protocol/protocol.h"
#include "ui/common/format.h"
#include "ui/editor/graph_layout.h"

#include <QApplication>
#include <QCommandLineParser>
#include <QDir>
#include <QMessageBox>

#include <cstdio>
#include <cstring>

using namespace celloom;

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

} // namespace

int main(int argc, char** argv) {
    if (argc == 2 && std::strcmp(argv[1], ui::GraphLayouter::kHelperArgument) == 0) return ui::arrangeForParent(); // the window's own helper
    QApplication application(argc, argv);
    QCoreApplication::setOrganizationName(QStringLiteral("celloom"));
    QCoreApplication::setApplicationName(QStringLiteral("celloom"));
    QCoreApplication::setApplicationVersion(QStringLiteral(CELLOOM_VERSION));
    const Arguments arguments = parse(application);

    Workbench workbench(application, arguments.language);
    if (const Status status = workbench.open(arguments.workspace); !status) {
        QMessageBox box(QMessageBox::Critical, QStringLiteral("Celloom"), ui::Format::error(status.error()));
        QObject::connect(&box, &QMessageBox::finished, &application, [] { QCoreApplication::exit(protocol::BadInput); });
        std::fprintf(stderr, "celloom: %s\n", status.error().text().c_str());
        box.show();
        return QApplication::exec();
    }
    workbench.window().show();
    if (!arguments.recipe.isEmpty()) {
        if (const auto recipe = recipe::Recipe::load(ui::toPath(arguments.recipe)); !recipe) {
            std::fprintf(stderr, "celloom: %s\n", recipe.error().text().c_str());
            return protocol::BadInput;
        }
        workbench.window().openRecipe(arguments.recipe);
    }
    workbench.start();
    return QApplication::exec();
}
