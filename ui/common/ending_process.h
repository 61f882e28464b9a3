// The end of a child process that nobody listens to any more.
#pragma once

class QObject;
class QProcess;

namespace celloom::ui {

/// Kills it, and tells its parent nothing more. It takes itself away when it is gone, at the latest with `holder`, which waits for it: none is left behind.
void letEnd(QProcess* process, QObject* holder);

} // namespace celloom::ui
