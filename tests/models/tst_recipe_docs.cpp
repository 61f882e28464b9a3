// docs/recipe.md and docs/presets.md, and their Chinese twins, say what fields() and presets() say. CELLOOM_UPDATE_DOCS=1 writes them anew.
#include "models/base/files.h"
#include "models/recipe/reference.h"

#include <QtTest>

using namespace celloom;

class TestRecipeDocs : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void thePagesEqualTheFields_data() {
        QTest::addColumn<QString>("file");
        QTest::addColumn<bool>("isChinese");
        QTest::newRow("fields, English") << "recipe.md" << false;
        QTest::newRow("fields, Chinese") << "recipe.zh_CN.md" << true;
        QTest::newRow("presets, English") << "presets.md" << false;
        QTest::newRow("presets, Chinese") << "presets.zh_CN.md" << true;
    }
    void thePagesEqualTheFields() {
        QFETCH(QString, file);
        QFETCH(bool, isChinese);
        const std::string path = std::string(CELLOOM_SOURCE "/docs/") + file.toStdString();
        const auto language = isChinese ? recipe::Language::Chinese : recipe::Language::English;
        const std::string expected = file.startsWith("presets") ? recipe::presetReference(language) : recipe::fieldReference(language);
        if (qEnvironmentVariableIntValue("CELLOOM_UPDATE_DOCS") == 1) QVERIFY(writeFileAtomically(path, expected));
        const auto written = readFile(path);
        QVERIFY2(written, "run with CELLOOM_UPDATE_DOCS=1 to write the page");
        QVERIFY2(*written == expected, "the fields changed: run with CELLOOM_UPDATE_DOCS=1 to write the page anew");
    }
};

QTEST_GUILESS_MAIN(TestRecipeDocs)
#include "tst_recipe_docs.moc"
