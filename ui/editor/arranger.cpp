#include "ui/editor/arranger.h"

#include "ui/common/widgets.h"
#include "ui/editor/graph_view.h"

#include <QCoreApplication>
#include <QHBoxLayout>
#include <QPushButton>
#include <QTimer>

#include <utility>

namespace celloom::ui {

namespace {

constexpr int kPatienceMs = 400; // layouts faster than this never show that they take time
constexpr int kRowsMs = 150;     // and ones faster than this, no other order before
constexpr int kGestureMs = 200;  // between looks whether a gesture has ended

} // namespace

Arranger::Arranger(GraphView* view, QWidget* holder, Texts& texts)
    : QObject(view), m_view(view), m_layouter(new GraphLayouter(QCoreApplication::applicationDirPath() + QStringLiteral("/celloom"), this)), m_card(new QFrame(holder)),
      m_cardTimer(new QTimer(this)), m_rowsTimer(new QTimer(this)) {
    m_card->setProperty("role", QStringLiteral("card"));
    auto* layout = new QHBoxLayout(m_card);
    auto* text = makeLabel("muted", m_card);
    auto* cancel = new QPushButton(m_card);
    cancel->setObjectName(QStringLiteral("cancelArranging"));
    layout->addWidget(text);
    layout->addWidget(cancel);
    m_card->move(14, 14);
    m_card->hide();
    texts.add([this, text, cancel] {
        text->setText(tr("Arranging the graph…"));
        cancel->setText(tr("Cancel"));
        cancel->setToolTip(tr("The order on show stays"));
        m_card->adjustSize();
    });
    for (auto [timer, patience] : {std::pair(m_cardTimer, kPatienceMs), std::pair(m_rowsTimer, kRowsMs)}) {
        timer->setSingleShot(true);
        timer->setInterval(patience);
    }
    connect(cancel, &QPushButton::clicked, this, [this] {
        stop();
        m_view->setFocus();
    });
    connect(m_cardTimer, &QTimer::timeout, this, [this] {
        m_card->setVisible(isBusy());
        m_card->raise();
    });
    connect(m_rowsTimer, &QTimer::timeout, this, &Arranger::showRows);
    connect(m_layouter, &GraphLayouter::ready, this, &Arranger::take);
}

void Arranger::place() {
    if (m_view->isPlacedByDocument()) {
        callOff();
        m_view->placeByDocument();
        return;
    }
    if (!m_isAsked && m_view->placeAsBefore()) return; // what is under way is for it too
    callOff();
    request();
    if (m_view->level().boxes.size() > kFewBoxes) showRows();
    else m_rowsTimer->start();
}

void Arranger::arrange() {
    stop();
    m_isAsked = true;
    request();
}

void Arranger::request() {
    m_layouter->request(m_view->layoutInput());
    m_cardTimer->start();
}

void Arranger::callOff() {
    m_layouter->forget();
    m_isAsked = false;
    m_cardTimer->stop();
    m_rowsTimer->stop();
    m_card->hide();
}

void Arranger::stop() {
    callOff();
    if (!m_view->isShown()) showRows();
}

void Arranger::showRows() {
    m_rowsTimer->stop();
    m_view->place(arrangeInRows(m_view->layoutInput()));
}

void Arranger::take(const LayoutResultPtr& result) {
    if (m_view->isInGesture()) { // nothing is taken from under the hand
        QTimer::singleShot(kGestureMs, m_layouter, [this, result, input = m_view->level().boxes.size()] {
            if (!isBusy() && input == m_view->level().boxes.size() && !m_view->isPlacedByDocument()) take(result);
        });
        return;
    }
    m_rowsTimer->stop();
    m_cardTimer->stop();
    m_card->hide();
    m_view->place(*result);
    if (std::exchange(m_isAsked, false)) Q_EMIT arranged();
}

} // namespace celloom::ui
