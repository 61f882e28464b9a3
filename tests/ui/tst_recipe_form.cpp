// The Train page's form is the recipe's fields: every one has a control, shows the value, takes a new one, and says what is wrong.
#include "ui/common/recipe_document.h"
#include "ui/common/theme.h"
#include "ui/common/undo_order.h"
#include "ui/shell/language.h"
#include "ui/train/field_row.h"
#include "ui/train/recipe_form.h"

#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include <random>

using namespace celloom;
using namespace celloom::ui;
using recipe::FieldKind;

namespace {

/// A value of the field that is not its default.
recipe::FieldValue anotherValue(const recipe::Field& field) {
    switch (field.kind) {
    case FieldKind::Integer: {
        const auto standard = std::get<std::int64_t>(field.standard);
        return static_cast<double>(standard + 1) <= field.maximum ? standard + 1 : standard - 1;
    }
    case FieldKind::Real: {
        const double standard = std::get<double>(field.standard);
        return standard / 2 >= field.minimum && standard != 0 ? standard / 2 : (field.minimum + std::min(field.maximum, 1.0)) / 2;
    }
    case FieldKind::Flag:
        return !std::get<bool>(field.standard);
    case FieldKind::Choice:
        for (const std::string& choice : field.choices) {
            if (choice != std::get<std::string>(field.standard)) return choice;
        }
        return field.standard; // one choice only
    case FieldKind::Text:
    case FieldKind::Path:
        return std::string("文字/a b");
    case FieldKind::PathList:
        return std::vector<std::string>{"a.txt", "三国/*.txt"};
    case FieldKind::RuleList:
        return std::vector<std::string>{"layers.0.**: freeze"};
    case FieldKind::ScriptList:
        return std::vector<std::string>{R"({"name":"a","code":"def f(lr, cur_step_num):\n    return lr\n","values":{"x":0.5}})"};
    case FieldKind::TextList:
        return std::vector<std::string>{"layers=3"};
    }
    return field.standard;
}

/// What a person does to give this value: types, chooses, presses.
void enter(QWidget* editor, const recipe::Recipe& source, const std::string& key) {
    const QString text = QString::fromStdString(source.toText(key));
    if (auto* line = qobject_cast<QLineEdit*>(editor)) {
        line->clear();
        line->setText(text);
        Q_EMIT line->textEdited(text);
    } else if (auto* box = qobject_cast<QComboBox*>(editor)) {
        if (box->isEditable())
            box->setEditText(text);
        else
            box->setCurrentText(text);
    } else if (auto* flag = qobject_cast<QCheckBox*>(editor)) {
        flag->setChecked(source.flag(key));
    } else if (auto* list = qobject_cast<QPlainTextEdit*>(editor)) {
        QStringList lines;
        for (const std::string& item : source.list(key)) lines.append(QString::fromStdString(item));
        list->setPlainText(lines.join(QLatin1Char('\n')));
    } else {
        QFAIL("no such control");
    }
}

} // namespace

class TestRecipeForm : public QObject {
    Q_OBJECT
    Theme m_theme{*qApp};
    Language m_language;

private Q_SLOTS:
    void everyFieldHasOneRowWithItsWords() {
        RecipeDocument document;
        RecipeForm form(document, m_theme, m_language);
        QCOMPARE(form.findChildren<FieldRow*>().size(), static_cast<qsizetype>(recipe::fields().size()));
        for (const recipe::Field& field : recipe::fields()) {
            FieldRow* row = form.row(QString::fromStdString(field.key));
            QVERIFY2(row, field.key.c_str());
            QCOMPARE(row->editor()->accessibleName(), QString::fromStdString(field.label));
            QVERIFY2(row->editor()->toolTip().contains(QString::fromStdString(field.help)), field.key.c_str());
        }
    }

    void everyFieldTakesAValueAndARecipeComesBackWhole() {
        recipe::Recipe wanted;
        for (const recipe::Field& field : recipe::fields()) QVERIFY2(wanted.set(field.key, anotherValue(field)), field.key.c_str());
        RecipeDocument document;
        RecipeForm form(document, m_theme, m_language);
        for (const recipe::Field& field : recipe::fields()) {
            enter(form.row(QString::fromStdString(field.key))->editor(), wanted, field.key);
            QVERIFY2(document.recipe().value(field.key) == wanted.value(field.key), field.key.c_str());
        }
        QVERIFY(!document.hasPending());
        QCOMPARE(document.recipe().toJson(), wanted.toJson());
    }

    void everyFieldShowsTheValueOfAnOpenedRecipe() {
        recipe::Recipe given;
        for (const recipe::Field& field : recipe::fields()) QVERIFY(given.set(field.key, anotherValue(field)));
        RecipeDocument document;
        RecipeForm form(document, m_theme, m_language);
        document.take(given, QStringLiteral("given"));
        QVERIFY(!document.isModified()); // showing a value is no edit
        for (const recipe::Field& field : recipe::fields()) {
            QWidget* editor = form.row(QString::fromStdString(field.key))->editor();
            const QString text = QString::fromStdString(given.toText(field.key));
            if (auto* line = qobject_cast<QLineEdit*>(editor)) QCOMPARE(line->text(), text);
            if (auto* box = qobject_cast<QComboBox*>(editor)) QCOMPARE(box->currentText(), text);
            if (auto* flag = qobject_cast<QCheckBox*>(editor)) QCOMPARE(flag->isChecked(), given.flag(field.key));
        }
        QCOMPARE(document.recipe().toJson(), given.toJson());
    }

    void typingInAFieldIsOneStep() {
        RecipeDocument document;
        RecipeForm form(document, m_theme, m_language);
        auto* rate = qobject_cast<QLineEdit*>(form.row(QStringLiteral("optimizer.lr"))->editor());
        auto* steps = qobject_cast<QLineEdit*>(form.row(QStringLiteral("train.max_steps"))->editor());
        const std::string before = document.recipe().toJson();
        rate->selectAll();
        QTest::keyClicks(rate, QStringLiteral("0.25"));
        steps->selectAll();
        QTest::keyClicks(steps, QStringLiteral("123"));
        const std::string after = document.recipe().toJson();
        QUndoStack& stack = document.fieldsStack();
        QCOMPARE(stack.count(), 2);
        QCOMPARE(stack.undoText(), QStringLiteral("train.max_steps"));
        stack.undo();
        QCOMPARE(document.recipe().real("optimizer.lr"), 0.25);
        QVERIFY(document.recipe().isDefault("train.max_steps"));
        stack.undo();
        QCOMPARE(document.recipe().toJson(), before);
        QCOMPARE(rate->text(), QString::fromStdString(document.recipe().toText("optimizer.lr")));
        QVERIFY(!document.isModified());
        stack.redo();
        stack.redo();
        QCOMPARE(document.recipe().toJson(), after);
        QCOMPARE(steps->text(), QStringLiteral("123"));
        document.endTyping(); // as when the focus leaves
        QTest::keyClicks(steps, QStringLiteral("4"));
        QCOMPARE(stack.count(), 3);
        QTest::keyClick(steps, Qt::Key_Backspace); // back where it was: no step
        QCOMPARE(stack.count(), 2);
        QTest::keyClicks(steps, QStringLiteral("5"));
        form.row(QStringLiteral("data.shuffle"))->findChild<QCheckBox*>()->click();
        form.row(QStringLiteral("data.shuffle"))->findChild<QCheckBox*>()->click();
        QCOMPARE(stack.count(), 5); // a click is a gesture
    }

    void aTextThatIsNoValueIsAStepToo() {
        RecipeDocument document;
        RecipeForm form(document, m_theme, m_language);
        auto* line = qobject_cast<QLineEdit*>(form.row(QStringLiteral("train.batch_size"))->editor());
        line->selectAll();
        QTest::keyClicks(line, QStringLiteral("many"));
        QVERIFY(document.hasPending());
        document.fieldsStack().undo();
        QVERIFY(!document.hasPending());
        QCOMPARE(line->text(), QStringLiteral("8"));
        document.fieldsStack().redo();
        QVERIFY(document.hasPending());
        QCOMPARE(line->text(), QStringLiteral("many"));
        auto* rules = qobject_cast<QPlainTextEdit*>(form.row(QStringLiteral("rules"))->editor());
        rules->setPlainText(QStringLiteral("norm: freeze\nnorm: what"));
        document.rulesStack().undo();
        QVERIFY(rules->toPlainText().isEmpty());
        document.rulesStack().redo();
        QCOMPARE(rules->toPlainText(), QStringLiteral("norm: freeze\nnorm: what"));
    }

    void whatBelongsTogetherIsOneStep() {
        RecipeDocument document;
        document.asOneStep([&] {
            document.setValue(QStringLiteral("train.batch_size"), std::int64_t(2));
            document.setValue(QStringLiteral("train.accumulation"), std::int64_t(4));
        });
        QCOMPARE(document.fieldsStack().count(), 1);
        document.fieldsStack().undo();
        QCOMPARE(document.recipe().toJson(), recipe::Recipe().toJson());
        document.follow(QStringLiteral("model.source"), std::string("internlm-tiny"));
        QCOMPARE(document.fieldsStack().index(), 0); // no step: the window did it
    }

    void allEditsGoBackAndForth() {
        RecipeDocument document;
        RecipeForm form(document, m_theme, m_language);
        std::mt19937 random(7);
        const auto& fields = recipe::fields();
        std::vector<std::string> states{document.recipe().toJson()};
        const std::vector<QUndoStack*> stacks{&document.rulesStack(), &document.fieldsStack()};
        for (int i = 0; i < 300; ++i) {
            const recipe::Field& field = fields[random() % fields.size()];
            document.setValue(QString::fromStdString(field.key), random() % 2 ? field.standard : anotherValue(field));
            if (document.recipe().toJson() != states.back()) states.push_back(document.recipe().toJson());
        }
        for (std::size_t i = states.size() - 1; i > 0; --i) {
            QCOMPARE(document.recipe().toJson(), states[i]);
            nextToUndo(stacks)->undo();
        }
        QVERIFY(!nextToUndo(stacks));
        for (const std::string& state : states) {
            QCOMPARE(document.recipe().toJson(), state);
            if (QUndoStack* next = nextToRedo(stacks)) next->redo();
        }
    }

    void aWrongTextIsMarkedAtItsFieldAndKept() {
        RecipeDocument document;
        RecipeForm form(document, m_theme, m_language);
        FieldRow* row = form.row(QStringLiteral("train.batch_size"));
        auto* line = qobject_cast<QLineEdit*>(row->editor());
        QTest::keyClick(line, Qt::Key_A, Qt::ControlModifier);
        QTest::keyClicks(line, QStringLiteral("0"));
        QVERIFY(row->problem().contains(QStringLiteral("1 to")));
        QVERIFY(line->property("invalid").toBool());
        QVERIFY(document.hasPending());
        QCOMPARE(document.recipe().integer("train.batch_size"), std::int64_t(8)); // the last valid value
        QCOMPARE(line->text(), QStringLiteral("0"));
        QTest::keyClick(line, Qt::Key_A, Qt::ControlModifier);
        QTest::keyClicks(line, QStringLiteral("x"));
        QCOMPARE(row->problem(), QStringLiteral("“x” is not a whole number."));
        QTest::keyClick(line, Qt::Key_A, Qt::ControlModifier);
        QTest::keyClicks(line, QStringLiteral("4"));
        QVERIFY(row->problem().isEmpty());
        QVERIFY(!document.hasPending());
        QCOMPARE(document.recipe().integer("train.batch_size"), std::int64_t(4));
    }

    void fieldsAreShownWhenTheRecipeSaysSo() {
        RecipeDocument document;
        RecipeForm form(document, m_theme, m_language);
        FieldRow* row = form.row(QStringLiteral("precision.half_type"));
        QVERIFY(!row->isVisibleTo(&form));
        document.setValue(QStringLiteral("precision.amp_level"), std::string("O2"));
        QVERIFY(row->isVisibleTo(&form));
    }

    void eachKindHasAButtonAndShowsItsFields_data() {
        QTest::addColumn<QString>("shown");
        QTest::addColumn<QString>("hidden");
        QTest::newRow("pretrain") << "tokenizer.vocab_size" << "model.adapters";
        QTest::newRow("finetune") << "data.template" << "data.documents";
        QTest::newRow("evaluate") << "evaluate.generate" << "optimizer.lr";
        QTest::newRow("predict") << "predict.input" << "data.train";
    }
    void eachKindHasAButtonAndShowsItsFields() {
        QFETCH(QString, shown);
        QFETCH(QString, hidden);
        const QString kind = QString::fromLatin1(QTest::currentDataTag());
        RecipeDocument document;
        RecipeForm form(document, m_theme, m_language);
        auto* button = form.findChild<QPushButton*>(QStringLiteral("kind-") + kind);
        QVERIFY(button);
        button->click();
        QCOMPARE(QString::fromStdString(document.recipe().text("kind")), kind);
        QVERIFY(button->isChecked());
        QVERIFY(form.row(shown)->isVisibleTo(&form));
        QVERIFY(!form.row(hidden)->isVisibleTo(&form));
        QCOMPARE(form.sectionCard(QStringLiteral("schedule"))->isHidden(), kind == QLatin1String("evaluate") || kind == QLatin1String("predict"));
    }

    void advancedFieldsAreFoldedUntilOneIsNeeded() {
        RecipeDocument document;
        RecipeForm form(document, m_theme, m_language);
        FieldRow* row = form.row(QStringLiteral("optimizer.beta1"));
        QVERIFY(!row->isVisibleTo(&form));
        form.focusField(QStringLiteral("optimizer.beta1"));
        QVERIFY(row->isVisibleTo(&form));
    }

    void problemsAcrossFieldsStandAtTheirField() {
        RecipeDocument document;
        RecipeForm form(document, m_theme, m_language);
        QVERIFY(!form.row(QStringLiteral("data.train"))->problem().isEmpty()); // no files are named yet
        QCOMPARE(form.errorsIn(QStringLiteral("data")), 1);
        document.setValue(QStringLiteral("data.train"), std::vector<std::string>{"a.txt"});
        QVERIFY(form.row(QStringLiteral("data.train"))->problem().isEmpty());
    }

    void labelsFollowTheLanguage() {
        RecipeDocument document;
        RecipeForm form(document, m_theme, m_language);
        m_language.choose(QStringLiteral("zh_CN"));
        QApplication::sendPostedEvents();
        const recipe::Field* field = recipe::findField("optimizer.lr");
        QCOMPARE(form.row(QStringLiteral("optimizer.lr"))->editor()->accessibleName(), QString::fromStdString(field->labelZh));
        m_language.choose(QStringLiteral("en"));
        QApplication::sendPostedEvents();
        QCOMPARE(form.row(QStringLiteral("optimizer.lr"))->editor()->accessibleName(), QString::fromStdString(field->label));
    }

    void aSavedRecipeOpensEqualAndItsPathsStayRightElsewhere() {
        QTemporaryDir folder;
        RecipeDocument document;
        document.setValue(QStringLiteral("data.train"), std::vector<std::string>{"text.txt"});
        document.setText(QStringLiteral("optimizer.lr"), QStringLiteral("1e-3"));
        QVERIFY(document.isModified());
        QVERIFY(document.save(folder.filePath(QStringLiteral("配方.json"))));
        QVERIFY(!document.isModified());
        RecipeDocument again;
        QVERIFY(again.open(folder.filePath(QStringLiteral("配方.json"))));
        QCOMPARE(again.name(), QStringLiteral("配方"));
        QCOMPARE(again.recipe().real("optimizer.lr"), 1e-3);
        const std::string path = again.recipe().withAbsolutePaths().list("data.train").front();
        QVERIFY(QDir().mkpath(folder.filePath(QStringLiteral("sub"))));
        QVERIFY(again.save(folder.filePath(QStringLiteral("sub/b.json"))));
        QCOMPARE(again.recipe().withAbsolutePaths().list("data.train").front(), path);
    }

    void aRecipeThatCannotBeReadLeavesTheOpenOne() {
        QTemporaryDir folder;
        QFile file(folder.filePath(QStringLiteral("bad.json")));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("{\"optimiser\": {}}");
        file.close();
        RecipeDocument document;
        document.setText(QStringLiteral("optimizer.lr"), QStringLiteral("1e-3"));
        QVERIFY(!document.open(file.fileName()));
        QCOMPARE(document.recipe().real("optimizer.lr"), 1e-3);
    }
};

QTEST_MAIN(TestRecipeForm)
#include "tst_recipe_form.moc"
