// Pictures of a level: the whole of it, light in every theme, and refused where it would be too large.
#include "editor_bench.h"
#include "ui/editor/graph_export.h"
#include "ui/editor/graph_view.h"
#include "ui/editor/model_page.h"

#include <QComboBox>
#include <QPainter>
#include <QPushButton>
#include <QSignalSpy>
#include <QSvgRenderer>
#include <QTest>

using namespace celloom;
using namespace celloom::ui;

namespace {

using Editor = test::EditorBench;

/// Boxes in rows so far apart that the picture is as large as one wants.
void spread(GraphView& view, double by) {
    LayoutResult layout;
    for (std::size_t i = 0; i < view.items().size(); ++i) layout.centers.emplace_back(0, by * static_cast<double>(i));
    layout.curves.resize(view.level().wires.size());
    view.place(layout);
}

} // namespace

class TestGraphExport : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aPictureHasAllOfTheLevelAtItsScale() {
        Editor editor(ThemeMode::Light);
        editor.view->zoomBy(0.3); // how one looks does not matter
        const LevelPicture picture(*editor.view, editor.bench.theme);
        const QSizeF contents = editor.view->contents().size() + QSizeF(2 * LevelPicture::kMargin, 2 * LevelPicture::kMargin);
        QVERIFY(std::abs(picture.size(1).width() - contents.width()) <= 2 && std::abs(picture.size(1).height() - contents.height()) <= 2);
        const auto image = picture.image(3);
        QVERIFY(image.has_value());
        QCOMPARE(image->size(), picture.size(1) * 3);
        int inked = 0; // pixels that are not paper, and none in the margin
        for (int y = 0; y < image->height(); y += 2)
            for (int x = 0; x < image->width(); x += 2) {
                const bool isInk = image->pixelColor(x, y) != QColor(Qt::white);
                inked += isInk;
                const int margin = 3 * LevelPicture::kMargin / 2;
                const bool isMargin = x < margin || y < margin || x >= image->width() - margin || y >= image->height() - margin;
                QVERIFY2(!isInk || !isMargin, qPrintable(QStringLiteral("%1, %2").arg(x).arg(y)));
            }
        QVERIFY(inked > 1000);
    }

    void itIsTheSameInTheDark() {
        QImage light, dark;
        {
            Editor editor(ThemeMode::Light);
            light = *LevelPicture(*editor.view, editor.bench.theme).image(1);
        }
        {
            Editor editor(ThemeMode::Dark);
            dark = *LevelPicture(*editor.view, editor.bench.theme).image(1);
        }
        QVERIFY(light == dark);
    }

    void anSvgShowsTheSame() {
        Editor editor(ThemeMode::Dark);
        const LevelPicture picture(*editor.view, editor.bench.theme);
        const QString path = editor.bench.folder.filePath(QStringLiteral("level.svg"));
        QVERIFY(picture.writeSvg(path, QStringLiteral("baichuan-tiny")).has_value());
        QSvgRenderer renderer(path);
        QVERIFY(renderer.isValid());
        QCOMPARE(renderer.viewBox().size(), picture.size(1));
        QFile file(path);
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QByteArray text = file.readAll();
        QVERIFY(text.contains("baichuan-tiny") && text.contains("embed_tokens"));
        QVERIFY(!picture.writeSvg(editor.bench.folder.filePath(QStringLiteral("nowhere/level.svg")), {}).has_value());
    }

    void oneThatIsTooLargeIsRefusedWithItsSize() {
        Editor editor(ThemeMode::Light);
        spread(*editor.view, 3000);
        const LevelPicture picture(*editor.view, editor.bench.theme);
        QVERIFY(picture.check(1).has_value());
        const auto image = picture.image(4);
        QVERIFY(!image.has_value());
        QVERIFY(QString::fromStdString(image.error().message).contains(QString::number(picture.size(4).height())));
    }

    void theDialogTellsTheSizeAndRefuses() {
        Editor editor(ThemeMode::Light);
        spread(*editor.view, 3000);
        QTest::keyClick(editor.view, Qt::Key_E, Qt::ControlModifier | Qt::ShiftModifier);
        auto* dialog = editor.page.findChild<ExportDialog*>();
        QVERIFY(dialog);
        auto* format = dialog->findChild<QComboBox*>();
        QPushButton* save = nullptr;
        for (auto* button : dialog->findChildren<QPushButton*>())
            if (button->text() == QStringLiteral("Save…")) save = button;
        QVERIFY(save);
        QTest::keyClick(format, Qt::Key_Home);
        QVERIFY(save->isEnabled());
        for (int i = 0; i < 3; ++i) QTest::keyClick(format, Qt::Key_Down);
        QCOMPARE(format->currentText(), QStringLiteral("PNG, 4×"));
        QVERIFY(!save->isEnabled());
        QTest::keyClick(format, Qt::Key_End); // SVG
        QVERIFY(save->isEnabled());
    }
};

QTEST_MAIN(TestGraphExport)
#include "tst_graph_export.moc"
