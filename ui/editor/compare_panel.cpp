#include "ui/editor/compare_panel.h"

#include "ui/common/format.h"
#include "ui/common/theme.h"
#include "ui/common/widgets.h"
#include "ui/editor/compare_marks.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QToolButton>
#include <QTreeWidget>
#include <QVBoxLayout>

#include <map>
#include <set>

namespace celloom::ui {

namespace {

constexpr int kIndexRole = Qt::UserRole;

QString keyOf(const graph::Finding& finding) {
    return QString::number(static_cast<int>(finding.what)) + fromUtf8(finding.graph) + QLatin1Char('\n') + fromUtf8(finding.name);
}

} // namespace

ComparePanel::ComparePanel(Theme& theme, QWidget* parent) : QFrame(parent), m_theme(theme) {
    setProperty("role", QStringLiteral("sidebar"));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(10, 8, 8, 8);
    layout->setSpacing(6);
    auto* head = new QHBoxLayout;
    m_title = new ElidedLabel(Qt::ElideMiddle, this);
    setRole(m_title, "title");
    m_close = makeQuietButton(this);
    head->addWidget(m_title, 1);
    head->addWidget(m_close);
    layout->addLayout(head);
    m_legend = makeLabel("small", this);
    m_legend->setTextFormat(Qt::RichText);
    m_count = makeLabel("muted", this);
    m_count->setWordWrap(true);
    layout->addWidget(m_legend);
    layout->addWidget(m_count);
    m_list = new QTreeWidget(this);
    m_list->setHeaderHidden(true);
    m_list->setIndentation(12);
    m_list->setRootIsDecorated(false);
    m_list->setWordWrap(true);
    m_list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    layout->addWidget(m_list, 1);
    connect(m_close, &QToolButton::clicked, this, &ComparePanel::closeRequested);
    connect(m_list, &QTreeWidget::itemClicked, this, &ComparePanel::jump);
    connect(m_list, &QTreeWidget::itemActivated, this, &ComparePanel::jump);
    connect(&theme, &Theme::changed, this, &ComparePanel::fill);
    m_texts.add([this] {
        m_close->setAccessibleName(tr("End the comparison"));
        m_close->setToolTip(tr("End the comparison (Esc)"));
        m_list->setAccessibleName(tr("Differences"));
        fill();
    });
}

void ComparePanel::show(const QString& other, const std::vector<graph::Finding>& findings) {
    m_other = other;
    m_findings = findings;
    fill();
    setVisible(true);
}

void ComparePanel::fill() {
    m_close->setIcon(m_theme.icon(QStringLiteral("close")));
    m_title->setText(tr("Against %1").arg(m_other));
    const auto legend = [this](graph::Fate fate, const QString& word) {
        return QStringLiteral("<span style='color:%1'><b>%2</b> %3</span>").arg(m_theme.color(colorOf(fate)).name(), QString::fromUtf8(signOf(fate)), word.toHtmlEscaped());
    };
    m_legend->setText(QStringList{legend(graph::Fate::Added, tr("added")), legend(graph::Fate::Removed, tr("removed")), legend(graph::Fate::Changed, tr("changed"))}.join(QStringLiteral(" &nbsp; ")));
    m_count->setText(m_findings.empty() ? tr("The two graphs say the same. Where cells stand does not count.") : tr("%n difference(s)", "", static_cast<int>(m_findings.size())));
    const QTreeWidgetItem* before = m_list->currentItem();
    const QString chosen = before && before->data(0, kIndexRole).isValid() ? before->data(0, kIndexRole + 1).toString() : QString();
    m_list->clear();
    std::map<std::string, QTreeWidgetItem*> groups;
    for (std::size_t i = 0; i < m_findings.size(); ++i) {
        const graph::Finding& finding = m_findings[i];
        using What = graph::Finding::What;
        QTreeWidgetItem*& group = groups[finding.graph];
        if (!group) {
            group = new QTreeWidgetItem(m_list, {finding.graph.empty() ? tr("Model") : fromUtf8(finding.graph)});
            group->setFlags(Qt::ItemIsEnabled);
            QFont font = m_list->font();
            font.setBold(true);
            group->setFont(0, font);
            group->setForeground(0, m_theme.color("muted"));
        }
        QString what;
        switch (finding.what) {
            case What::Composite: what = tr("the composite"); break;
            case What::Graph: what = tr("the graph's own note"); break;
            case What::Wire: what = tr("wire %1").arg(fromUtf8(finding.name)); break;
            case What::Hyper: what = tr("hyper-parameter %1").arg(fromUtf8(finding.name)); break;
            case What::Input: what = tr("input %1").arg(fromUtf8(finding.name)); break;
            case What::Output: what = tr("output %1").arg(fromUtf8(finding.name)); break;
            case What::Cell: what = fromUtf8(finding.name); break;
        }
        auto* item = new QTreeWidgetItem(group, {QString::fromUtf8(signOf(finding.fate)) + QLatin1Char(' ') + what});
        item->setForeground(0, m_theme.color(colorOf(finding.fate)));
        item->setData(0, kIndexRole, static_cast<int>(i));
        item->setData(0, kIndexRole + 1, keyOf(finding));
        item->setToolTip(0, what);
        for (const graph::FieldChange& field : finding.fields) {
            const auto shown = [](const std::string& text) { return text.empty() ? QStringLiteral("–") : fromUtf8(text).simplified().left(80); };
            const QString text = QStringLiteral("%1: %2 → %3").arg(fromUtf8(field.field), shown(field.before), shown(field.after));
            auto* child = new QTreeWidgetItem(item, {text});
            child->setData(0, kIndexRole, static_cast<int>(i));
            child->setToolTip(0, QStringLiteral("%1\n%2\n→\n%3").arg(fromUtf8(field.field), fromUtf8(field.before), fromUtf8(field.after)));
        }
        if (!chosen.isEmpty() && keyOf(finding) == chosen) m_list->setCurrentItem(item);
    }
    m_list->expandAll();
}

void ComparePanel::jump(const QTreeWidgetItem* item) {
    if (item && item->data(0, kIndexRole).isValid()) Q_EMIT chosen(m_findings[static_cast<std::size_t>(item->data(0, kIndexRole).toInt())]);
}

void ComparePanel::changeEvent(QEvent* event) {
    QFrame::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) m_texts.refresh();
}

} // namespace celloom::ui
