// A line chart over Qt Charts: quiet axes, lines replaced on demand and thinned to the pixels there are, NaN marked, zoom and pan along x.
#pragma once

#include <QWidget>

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace celloom::ui {

class Theme;

struct PlotLine {
    const char* color; // of the theme
    double width = 1.6;
    double opacity = 1;
    bool isDashed = false;
    bool marksNotFinite = false; // NaN and infinities of this line are marked at the bottom
    bool hasPoints = false;      // each point shows: for what is measured seldom
    bool isPointsOnly = false;   // nothing joins them: for what is no single curve
};

/// The plot only looks at the data; whoever owns it calls redraw() after changing it.
struct PlotData {
    const std::vector<double>* x = nullptr;
    const std::vector<double>* y = nullptr;
    bool isShown = true;
};

class Plot : public QWidget {
    Q_OBJECT
public:
    Plot(Theme& theme, std::vector<PlotLine> lines, QWidget* parent = nullptr);
    ~Plot() override;

    void setData(std::size_t line, PlotData data);
    void setLogarithmic(bool isLogarithmic);
    void setXTitle(const QString& title);
    /// printf formats of the axis labels, as Qt Charts takes them.
    void setFormats(const QString& x, const QString& y);
    /// Lower end of the y axis, whatever the data.
    void setFloor(std::optional<double> floor);
    /// The part of x to show; nothing: all.
    void setView(std::optional<std::pair<double, double>> view);
    [[nodiscard]] std::optional<std::pair<double, double>> view() const;
    void redraw();

Q_SIGNALS:
    void viewChanged();
    /// x under the pointer, in data units; NaN when it left.
    void hovered(double x);

protected:
    void resizeEvent(QResizeEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    struct Private;
    std::unique_ptr<Private> m;
};

/// A step of 1, 2 or 5 times a power of ten that divides `span` into at most `most` parts.
double niceStep(double span, int most);

} // namespace celloom::ui
