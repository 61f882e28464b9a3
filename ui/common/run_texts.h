// What a run says, in the language of the window: its events from their kind and data, its end from its record.
// The engine writes English; what is not known here is shown as it was written.
#pragma once

#include "models/store/index.h"
#include "models/store/run_store.h"

#include <QCoreApplication>
#include <QString>

namespace celloom::ui {

class RunTexts {
    Q_DECLARE_TR_FUNCTIONS(celloom::ui::RunTexts)
public:
    /// One or two sentences. Kinds and their data: docs/file-formats.md.
    static QString event(const store::EventRow& event);
    /// "pretrain" … as shown; empty for an empty one.
    static QString kind(const std::string& kind);
    /// State and reason: "Stopped at step 44", "Interrupted: the process was killed (signal 9)".
    static QString outcome(const store::RunRecord& run);
    /// Only why a run ended before its end; empty where the state says it all.
    static QString reason(const store::RunRecord& run);
};

} // namespace celloom::ui
