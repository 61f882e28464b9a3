// What tests leave out where programs are slow (sanitizers, not optimised): CELLOOM_TEST_EVERY=3 runs each third row of a long table whose rows
// go the same way, and leaves out what is long in itself. Whatever is left out is skipped, and says so.
#pragma once

#include <QTest>

/// In a test function: most rows end here. Its first row is always run.
#define CELLOOM_EVERY_NTH_ROW()                                                                                                            \
    do {                                                                                                                                   \
        static int row = 0;                                                                                                                \
        const int every = qEnvironmentVariableIntValue("CELLOOM_TEST_EVERY");                                                              \
        if (every > 1 && row++ % every != 0) QSKIP(qPrintable(QString("left out: CELLOOM_TEST_EVERY is %1").arg(every)));                   \
    } while (false)

/// In a test function: it ends here.
#define CELLOOM_LEAVE_OUT_WHERE_SLOW(why)                                                                                                  \
    do {                                                                                                                                   \
        if (qEnvironmentVariableIntValue("CELLOOM_TEST_EVERY") > 1) QSKIP("left out, since CELLOOM_TEST_EVERY is set: " why);              \
    } while (false)
