<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en">
<context>
    <name>celloom::ui::BatchPreview</name>
    <message numerus="yes">
        <source>and %n more file(s)</source>
        <translation>
            <numerusform>and %n more file</numerusform>
            <numerusform>and %n more files</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>celloom::ui::ColumnView</name>
    <message numerus="yes">
        <source>%n token(s)</source>
        <translation>
            <numerusform>%n token</numerusform>
            <numerusform>%n tokens</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>celloom::ui::ComparePanel</name>
    <message numerus="yes">
        <source>%n difference(s)</source>
        <translation>
            <numerusform>%n difference</numerusform>
            <numerusform>%n differences</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>celloom::ui::Inspector</name>
    <message numerus="yes">
        <source>and %n more</source>
        <translation>
            <numerusform>and %n more</numerusform>
            <numerusform>and %n more</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>celloom::ui::LoraPanel</name>
    <message numerus="yes">
        <source>%n cell(s), %1 trainable parameters, %2 %; %3</source>
        <translation>
            <numerusform>%n cell, %1 trainable parameters, %2 %; %3</numerusform>
            <numerusform>%n cells, %1 trainable parameters, %2 %; %3</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>celloom::ui::ModelPage</name>
    <message numerus="yes">
        <source>Delete %n cell(s)</source>
        <translation>
            <numerusform>Delete %n cell</numerusform>
            <numerusform>Delete %n cells</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>celloom::ui::PrecisionPanel</name>
    <message numerus="yes">
        <source>%n cell(s) in %1</source>
        <translation>
            <numerusform>%n cell in %1</numerusform>
            <numerusform>%n cells in %1</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1: %n cell(s)</source>
        <translation>
            <numerusform>%1: %n cell</numerusform>
            <numerusform>%1: %n cells</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>celloom::ui::Probe</name>
    <message numerus="yes">
        <source>%n row(s)</source>
        <translation>
            <numerusform>%n row</numerusform>
            <numerusform>%n rows</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n wire(s) with NaN or infinite values</source>
        <translation>
            <numerusform>%n wire with NaN or infinite values</numerusform>
            <numerusform>%n wires with NaN or infinite values</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>celloom::ui::RecipeForm</name>
    <message numerus="yes">
        <source>%n more field(s)</source>
        <translation>
            <numerusform>%n more field</numerusform>
            <numerusform>%n more fields</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>celloom::ui::ResumeDialog</name>
    <message numerus="yes">
        <source>The run is complete: all %n step(s) are done. Give it more to train on.</source>
        <translation>
            <numerusform>The run is complete: its %n step is done. Give it more to train on.</numerusform>
            <numerusform>The run is complete: all %n steps are done. Give it more to train on.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>celloom::ui::RunTexts</name>
    <message numerus="yes">
        <source>%n cell(s) in %1</source>
        <translation>
            <numerusform>%n cell in %1</numerusform>
            <numerusform>%n cells in %1</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Read %n token file(s)</source>
        <translation>
            <numerusform>Read %n token file</numerusform>
            <numerusform>Read %n token files</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Read %n file(s)</source>
        <translation>
            <numerusform>Read %n file</numerusform>
            <numerusform>Read %n files</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n document(s)</source>
        <translation>
            <numerusform>%n document</numerusform>
            <numerusform>%n documents</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>All %n step(s) are done already. To train on, resume with more epochs or steps.</source>
        <translation>
            <numerusform>The one step is done already. To train on, resume with more epochs or steps.</numerusform>
            <numerusform>All %n steps are done already. To train on, resume with more epochs or steps.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Finished after %n step(s).</source>
        <translation>
            <numerusform>Finished after %n step.</numerusform>
            <numerusform>Finished after %n steps.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Adapters stand beside %n cell(s).</source>
        <translation>
            <numerusform>Adapters stand beside %n cell.</numerusform>
            <numerusform>Adapters stand beside %n cells.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>: %n document(s) to measure on.</source>
        <translation>
            <numerusform>: %n document to measure on.</numerusform>
            <numerusform>: %n documents to measure on.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>: %n conversation(s) to measure on.</source>
        <translation>
            <numerusform>: %n conversation to measure on.</numerusform>
            <numerusform>: %n conversations to measure on.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>: %n sequence(s) to measure on.</source>
        <translation>
            <numerusform>: %n sequence to measure on.</numerusform>
            <numerusform>: %n sequences to measure on.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Read %n prompt(s) from %1.</source>
        <translation>
            <numerusform>Read %n prompt from %1.</numerusform>
            <numerusform>Read %n prompts from %1.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Finished: %n batch(es) measured.</source>
        <translation>
            <numerusform>Finished: %n batch measured.</numerusform>
            <numerusform>Finished: %n batches measured.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Finished: %n prompt(s) answered.</source>
        <translation>
            <numerusform>Finished: %n prompt answered.</numerusform>
            <numerusform>Finished: %n prompts answered.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Stopped after %n batch(es).</source>
        <translation>
            <numerusform>Stopped after %n batch.</numerusform>
            <numerusform>Stopped after %n batches.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Stopped after %n prompt(s).</source>
        <translation>
            <numerusform>Stopped after %n prompt.</numerusform>
            <numerusform>Stopped after %n prompts.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>celloom::ui::TokenView</name>
    <message numerus="yes">
        <source>%n token(s)</source>
        <translation>
            <numerusform>%n token</numerusform>
            <numerusform>%n tokens</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n document(s)</source>
        <translation>
            <numerusform>%n document</numerusform>
            <numerusform>%n documents</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>celloom::ui::TrainPage</name>
    <message numerus="yes">
        <source>On disk %1 a checkpoint, %n of them kept.</source>
        <translation>
            <numerusform>On disk %1 for a checkpoint; %n is kept.</numerusform>
            <numerusform>On disk %1 a checkpoint; %n of them are kept.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>celloom::ui::TreatmentRows</name>
    <message numerus="yes">
        <source>Rule %1 reaches %n cell(s)</source>
        <translation>
            <numerusform>Rule %1 reaches %n cell</numerusform>
            <numerusform>Rule %1 reaches %n cells</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>matches %n cell(s)</source>
        <translation>
            <numerusform>matches %n cell</numerusform>
            <numerusform>matches %n cells</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>celloom::ui::UnsavedDialog</name>
    <message numerus="yes">
        <source>%n models have unsaved changes:</source>
        <translation>
            <numerusform>%n model has unsaved changes:</numerusform>
            <numerusform>%n models have unsaved changes:</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>The recipe and %n model(s) have unsaved changes:</source>
        <translation>
            <numerusform>The recipe and %n model have unsaved changes:</numerusform>
            <numerusform>The recipe and %n models have unsaved changes:</numerusform>
        </translation>
    </message>
</context>
</TS>
