// How a table of runs looks, wherever it stands.
#pragma once

class QTableView;
class QWidget;

namespace celloom::ui {

class Theme;

/// A quiet table: no grid, whole rows, states in their colours.
QTableView* makeRunsView(Theme& theme, QWidget* parent);
void setRunsViewWidths(QTableView& view);

} // namespace celloom::ui
