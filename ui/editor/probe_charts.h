// Two small pictures of what a probe found: how values spread, and where attention looks. They draw what they are given.
#pragma once

#include "ui/editor/probe_report.h"

#include <QWidget>

namespace celloom::ui {

class Theme;

/// Counts in equal steps from the least to the greatest value, zero marked where it lies between them.
class HistogramChart : public QWidget {
    Q_OBJECT
public:
    explicit HistogramChart(Theme& theme, QWidget* parent = nullptr);
    void setValues(const ProbedValues& values);
    [[nodiscard]] QSize sizeHint() const override { return {240, 58}; }

protected:
    void paintEvent(QPaintEvent* event) override;
    bool event(QEvent* event) override; // tooltips: the step under the pointer

private:
    Theme& m_theme;
    ProbedValues m_values;
};

/// Queries from top to bottom, keys from left to right; the stronger the colour, the more a query looks there.
class AttentionChart : public QWidget {
    Q_OBJECT
public:
    explicit AttentionChart(Theme& theme, QWidget* parent = nullptr);
    void setMap(const ProbedAttention& map, int head);
    [[nodiscard]] QSize sizeHint() const override { return {240, 240}; }
    [[nodiscard]] bool hasHeightForWidth() const override { return true; }
    [[nodiscard]] int heightForWidth(int width) const override;

protected:
    void paintEvent(QPaintEvent* event) override;
    bool event(QEvent* event) override; // tooltips: the weight under the pointer

private:
    [[nodiscard]] QRectF field() const;

    Theme& m_theme;
    ProbedAttention m_map;
    int m_head = 0;
};

} // namespace celloom::ui
