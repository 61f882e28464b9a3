// The Model page with baichuan-tiny arranged on its canvas.
#pragma once

#include "services_bench.h"
#include "ui/editor/arranger.h"
#include "ui/editor/graph_view.h"
#include "ui/editor/model_page.h"

#include <QTest>

#include <optional>

namespace celloom::test {

struct EditorBench {
    ServicesBench bench;
    ui::ModelPage page{bench.services};
    ui::GraphView* view = page.findChild<ui::GraphView*>();

    explicit EditorBench(std::optional<ui::ThemeMode> mode = {}) {
        if (mode) bench.theme.setMode(*mode);
        page.resize(1280, 800);
        page.show();
        QVERIFY(QTest::qWaitForWindowActive(&page)); // shortcuts need it
        bench.recipe.setValue(QStringLiteral("model.source"), std::string("baichuan-tiny"));
        page.requestAnalysis();
        QTRY_VERIFY(bench.analyser.isSettled() && !view->findChild<ui::Arranger*>()->isBusy() && isArranged());
    }
    /// Graphviz has answered: nothing lies on anything.
    [[nodiscard]] bool isArranged() const {
        const auto places = view->positions();
        return places.contains("norm") && places.at("norm").y > places.at("embed_tokens").y + 27;
    }
};

} // namespace celloom::test
