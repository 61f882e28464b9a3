#include "ui/editor/graph_export.h"

#include "models/base/files.h"
#include "ui/common/format.h"
#include "ui/common/widgets.h"
#include "ui/editor/graph_view.h"

#include <QBuffer>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFormLayout>
#include <QGraphicsScene>
#include <QPainter>
#include <QPushButton>
#include <QSvgGenerator>
#include <QVBoxLayout>

#include <cmath>

namespace celloom::ui {

namespace {

Status writeBytes(const QString& path, const QByteArray& bytes) {
    return writeFileAtomically(toPath(path), std::string_view(bytes.constData(), static_cast<std::size_t>(bytes.size())));
}

} // namespace

LevelPicture::LevelPicture(const GraphView& view, Theme& theme) : m_paper(std::make_unique<GraphView>(theme)) {
    CELLOOM_CHECK(view.isShown());
    m_paper->setFont(view.font());
    m_paper->setForPaper();
    m_paper->setLevel(view.level(), std::vector<BoxBadges>(view.level().boxes.size()));
    LayoutResult layout;
    for (const BoxItem* item : view.items()) layout.centers.push_back(item->pos());
    layout.curves.resize(view.level().wires.size()); // routed anew where no layout drew them
    if (view.layout() && view.layout()->centers == layout.centers) layout.curves = view.layout()->curves;
    m_paper->place(layout);
    m_bounds = m_paper->contents().adjusted(-kMargin, -kMargin, kMargin, kMargin);
    m_paper->scene()->setSceneRect(m_bounds);
}

LevelPicture::~LevelPicture() = default;

QSize LevelPicture::size(int scale) const {
    return {static_cast<int>(std::ceil(m_bounds.width())) * scale, static_cast<int>(std::ceil(m_bounds.height())) * scale};
}

Status LevelPicture::check(int scale) const {
    const QSize wanted = size(scale);
    const bool isTooLarge = wanted.width() > kMostSide || wanted.height() > kMostSide || static_cast<qint64>(wanted.width()) * wanted.height() > kMostPixels;
    if (!isTooLarge) return {};
    return fail("The picture would have " + std::to_string(wanted.width()) + " × " + std::to_string(wanted.height()) + " pixels, more than can be made.",
                "Choose a smaller scale, or SVG.");
}

void LevelPicture::draw(QPainter& painter, const QRectF& target) const {
    painter.setRenderHints(QPainter::Antialiasing | QPainter::TextAntialiasing);
    m_paper->scene()->render(&painter, target, m_bounds, Qt::IgnoreAspectRatio);
}

Result<QImage> LevelPicture::image(int scale) const {
    CELLOOM_TRY_STATUS(check(scale));
    QImage out(size(scale), QImage::Format_RGB32);
    if (out.isNull()) return fail("There is not enough memory for the picture.", "Choose a smaller scale, or SVG.");
    out.fill(Qt::white);
    QPainter painter(&out);
    draw(painter, out.rect());
    return out;
}

Status LevelPicture::writeSvg(const QString& path, const QString& title) const {
    QBuffer bytes;
    QSvgGenerator generator;
    generator.setOutputDevice(&bytes);
    generator.setResolution(96); // a pixel is what browsers take for one
    generator.setSize(size(1));
    generator.setViewBox(QRect(QPoint(), size(1)));
    generator.setTitle(title);
    QPainter painter(&generator);
    painter.fillRect(QRect(QPoint(), size(1)), Qt::white);
    draw(painter, QRectF(QPointF(), QSizeF(size(1))));
    painter.end();
    return writeBytes(path, bytes.data());
}

ExportDialog::ExportDialog(std::shared_ptr<const LevelPicture> picture, const QString& folder, const QString& name, QWidget* parent)
    : QDialog(parent), m_picture(std::move(picture)), m_folder(folder), m_name(name) {
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(tr("Save a picture"));
    setMinimumWidth(380);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(18, 16, 18, 14);
    layout->setSpacing(10);
    auto* form = new QFormLayout;
    m_format = new QComboBox(this);
    for (int factor = 1; factor <= 4; ++factor) m_format->addItem(tr("PNG, %1×").arg(factor), factor);
    m_format->addItem(tr("SVG"), 0);
    m_format->setCurrentIndex(1);
    m_format->setAccessibleName(tr("Format"));
    form->addRow(tr("Format"), m_format);
    layout->addLayout(form);
    m_about = makeLabel("muted", this);
    m_about->setWordWrap(true);
    layout->addWidget(m_about);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Save | QDialogButtonBox::Cancel, this);
    m_save = buttons->button(QDialogButtonBox::Save);
    m_save->setText(tr("Save…"));
    setRole(m_save, "primary");
    buttons->button(QDialogButtonBox::Cancel)->setText(tr("Cancel"));
    layout->addWidget(buttons);
    connect(m_format, &QComboBox::currentIndexChanged, this, &ExportDialog::refresh);
    connect(buttons, &QDialogButtonBox::accepted, this, &ExportDialog::chooseFile);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    refresh();
}

int ExportDialog::scale() const {
    return m_format->currentData().toInt();
}

void ExportDialog::refresh() {
    const Status status = scale() > 0 ? m_picture->check(scale()) : Status();
    const QSize size = m_picture->size(std::max(1, scale()));
    setRole(m_about, status ? "muted" : "problem");
    m_about->setText(status ? tr("The level on show, %1 × %2 pixels, on white.").arg(size.width()).arg(size.height()) : Format::error(status.error()));
    m_save->setEnabled(status.has_value());
}

void ExportDialog::chooseFile() {
    const QString ending = scale() > 0 ? QStringLiteral(".png") : QStringLiteral(".svg");
    auto* dialog = new QFileDialog(this, tr("Save a picture"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->setNameFilters({tr("Pictures (*%1)").arg(ending)});
    dialog->setDirectory(m_folder);
    dialog->selectFile(m_name + ending);
    connect(dialog, &QFileDialog::fileSelected, this, [this, ending](const QString& path) { write(path.endsWith(ending) ? path : path + ending); });
    dialog->open();
}

void ExportDialog::write(const QString& path) {
    if (scale() == 0) {
        const Status status = m_picture->writeSvg(path, m_name);
        if (status) Q_EMIT saved(path);
        else Q_EMIT failed(status.error());
        accept();
        return;
    }
    const auto image = m_picture->image(scale());
    if (!image) {
        Q_EMIT failed(image.error());
        accept();
        return;
    }
    m_save->setEnabled(false);
    m_background.run(
        [path, image = *image] { // packing takes its time
            QBuffer bytes;
            const bool isPacked = bytes.open(QIODevice::WriteOnly) && image.save(&bytes, "PNG");
            return isPacked ? writeBytes(path, bytes.data()) : fail("The picture could not be packed as PNG.", "Try a smaller scale.");
        },
        [this, path](const Status& status) {
            if (status) Q_EMIT saved(path);
            else Q_EMIT failed(status.error());
            accept();
        });
}

} // namespace celloom::ui
