// Pretrain or fine-tune: the first choice of a recipe, above everything else in the form. Writes the field "kind".
#pragma once

#include "ui/common/texts.h"

#include <QWidget>

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

    RecipeDocument& m_document;
    Texts m_texts;
    QPushButton* m_pretrain;
    QPushButton* m_finetune;
};

} // namespace celloom::ui
