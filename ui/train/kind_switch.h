// What a run does (pretrain, fine-tune, evaluate, predict): the first choice of a recipe, above everything else in the form. Writes the field "kind".
#pragma once

#include "ui/common/texts.h"

#include <QWidget>

#include <vector>

class QPushButton;

namespace celloom::ui {

class RecipeDocument;

class KindSwitch : public QWidget {
    Q_OBJECT
public:
    explicit KindSwitch(RecipeDocument& document, QWidget* parent = nullptr);

protected:
    void changeEvent(QEvent* event) override;

private:
    void refresh();
    void retranslate();

    RecipeDocument& m_document;
    Texts m_texts;
    std::vector<QPushButton*> m_buttons; // in the order of the field's choices
};

} // namespace celloom::ui
