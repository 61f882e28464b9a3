// A page that is not built yet: what it will hold, and what to use meanwhile. No buttons that do nothing.
#pragma once

#include "ui/shell/page.h"

namespace celloom::ui {

class EmptyState;
class Theme;

/// The Data page.
class ComingPage : public Page {
    Q_OBJECT
public:
    explicit ComingPage(Theme& theme, QWidget* parent = nullptr);

Q_SIGNALS:
    void trainRequested();

private:
    EmptyState* m_state;
};

} // namespace celloom::ui
