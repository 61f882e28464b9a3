// Included first by every test of a slow build: QtTest's own five seconds of patience, times CELLOOM_TEST_TIME_FACTOR.
#pragma once

#include <QTest>

#undef QTRY_VERIFY
#undef QTRY_VERIFY2
#undef QTRY_COMPARE
#define QTRY_VERIFY(expression) QTRY_VERIFY_WITH_TIMEOUT((expression), 5000 * CELLOOM_TEST_TIME_FACTOR)
#define QTRY_VERIFY2(expression, message) QTRY_VERIFY2_WITH_TIMEOUT((expression), (message), 5000 * CELLOOM_TEST_TIME_FACTOR)
#define QTRY_COMPARE(actual, expected) QTRY_COMPARE_WITH_TIMEOUT((actual), (expected), 5000 * CELLOOM_TEST_TIME_FACTOR)
