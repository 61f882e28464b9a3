// Where the boxes of a level go: as the document says, else in rows at once and in Graphviz's order when that is there. Says so while it lasts, and
// can be called off.
#pragma once

#include "ui/common/texts.h"
#include "ui/editor/graph_layout.h"

#include <QObject>

class QFrame;
class QTimer;

namespace celloom::ui {

class GraphView;

class Arranger : public QObject {
    Q_OBJECT
public:
    /// `holder` lies under the view and carries what is said over it.
    Arranger(GraphView* view, QWidget* holder, Texts& texts);

    /// Places the level that the view was given. Levels of up to kFewBoxes wait a moment for Graphviz, so that nothing jumps.
    void place();
    static constexpr std::size_t kFewBoxes = 100;
    /// Graphviz's order instead of the one on show. arranged() follows, unless it is called off.
    void arrange();
    /// The order on show stays.
    void stop();
    [[nodiscard]] bool isBusy() const { return m_layouter->isBusy(); }

Q_SIGNALS:
    void arranged();

private:
    void request();
    void callOff();
    void take(const LayoutResultPtr& result);
    void showRows();

    GraphView* m_view;
    GraphLayouter* m_layouter;
    QFrame* m_card;
    QTimer* m_cardTimer; // before it is said that it takes time
    QTimer* m_rowsTimer; // before rows are shown in place of what takes time
    bool m_isAsked = false; // by arrange()
};

} // namespace celloom::ui
