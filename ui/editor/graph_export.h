// A picture of a level of a model, as PNG or SVG: always light, with a margin, whatever theme is on and however far one has zoomed.
#pragma once

#include "models/base/result.h"
#include "ui/common/background.h"
#include "ui/common/texts.h"

#include <QDialog>
#include <QImage>
#include <QString>

#include <functional>
#include <memory>

class QComboBox;
class QLabel;
class QPushButton;

namespace celloom::ui {

class GraphView;
class Theme;

/// The level on show, drawn once more for paper.
class LevelPicture {
public:
    /// The view must show a level that is placed.
    LevelPicture(const GraphView& view, Theme& theme);
    ~LevelPicture();
    static constexpr int kMargin = 24;                          // pixels at 1×
    static constexpr int kMostSide = 16384, kMostPixels = 64'000'000;

    [[nodiscard]] QSize size(int scale) const;
    /// Why there can be none of that size.
    [[nodiscard]] Status check(int scale) const;
    [[nodiscard]] Result<QImage> image(int scale) const;
    /// The whole file or none.
    [[nodiscard]] Status writeSvg(const QString& path, const QString& title) const;

private:
    void draw(QPainter& painter, const QRectF& target) const;
    std::unique_ptr<GraphView> m_paper;
    QRectF m_bounds;
};

/// Asks for format and scale, tells the size, and then where to. Esc calls it off.
class ExportDialog : public QDialog {
    Q_OBJECT
public:
    ExportDialog(std::shared_ptr<const LevelPicture> picture, const QString& folder, const QString& name, QWidget* parent = nullptr);

Q_SIGNALS:
    void saved(const QString& path);
    void failed(const celloom::Error& error);

private:
    [[nodiscard]] int scale() const; // 0: SVG
    void refresh();
    void chooseFile();
    void write(const QString& path);

    std::shared_ptr<const LevelPicture> m_picture;
    QString m_folder, m_name;
    QComboBox* m_format;
    QLabel* m_about;
    QPushButton* m_save;
    Background m_background;
};

} // namespace celloom::ui
