// The model as Python, in MindSpore's or PyTorch's words, beside the canvas; and Python read back into the model.
#pragma once

#include "models/code/code.h"
#include "ui/common/background.h"
#include "ui/common/texts.h"
#include "ui/editor/code_import.h"

#include <QPointer>
#include <QString>
#include <QWidget>

#include <functional>
#include <memory>
#include <optional>
#include <string>

class QLabel;
class QPushButton;
class QTimer;
class QToolButton;

namespace celloom::ui {

class ModelDocument;
class ScriptEditor;
struct Services;

class CodeTab : public QWidget {
    Q_OBJECT
public:
    explicit CodeTab(Services& services, QWidget* parent = nullptr);

    /// Its buttons, to stand in the row of tabs.
    [[nodiscard]] QWidget* tools() const { return m_tools; }

    using DocumentPtr = std::shared_ptr<const graph::Document>;
    /// Another model came to the front: its code is not what stands here. Text that one was editing stays with its model.
    void changeModel();
    /// The document on show; null: none. Its code is written when the tab is in front, away from the window's thread.
    void setDocument(const DocumentPtr& document);
    void setEditable(bool isEditable);
    void setInFront(bool isInFront);
    /// What is chosen on the canvas: its lines stand out. `cell` empty: the graph itself.
    void setChosen(const std::string& graphName, const std::string& cell);

    /// What an import becomes. Where it is not said, code that was the model's replaces it, and other code comes in as a cell, unless the
    /// model is empty.
    enum class Target { Model, Cell };
    /// Reads the text into the model; what is refused is shown in the text, to be put right.
    void bringIn(const QString& source, Target target);

Q_SIGNALS:
    void cellChosen(const std::string& graphName, const std::string& cell); // a line of it was gone to
    /// The import, to be carried out by the page as one step.
    void importReady(const celloom::ui::ImportedCode& code, celloom::ui::CodeTab::Target target);
    void attentionWanted(); // something in it is to be read

protected:
    void changeEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void buildTools();
    void write();
    void show(const Result<code::Code>& written);
    void followCursor();
    void light();
    void beginEditing(const QString& text, bool takesKeyboard = true);
    void endEditing();
    void read(Target target);
    void say(const QString& text, bool isError);
    void refresh();
    void saveAs();
    void onRefused(const CodeProblem& problem);

    Services& m_services;
    QPointer<ModelDocument> m_model; // whose code this is
    ScriptEditor* m_editor;
    QWidget* m_tools;
    QToolButton *m_mindSpore, *m_pyTorch, *m_copy, *m_save, *m_edit;
    QPushButton *m_replace, *m_insert, *m_cancel;
    QLabel* m_note;
    QTimer* m_timer; // edits closer together are written as one
    CodeImporter m_importer;
    DocumentPtr m_document, m_written;
    code::Dialect m_dialect = code::Dialect::MindSpore, m_writtenIn = code::Dialect::MindSpore;
    code::Code m_code;
    std::string m_graph, m_cell; // chosen on the canvas
    bool m_isInFront = false, m_isEditable = false, m_isEditing = false, m_isFilling = false, m_isWritable = true;
    Target m_target = Target::Model;
    int m_number = 0; // of the newest request
    Texts m_texts;
    Background m_background;
};

} // namespace celloom::ui
