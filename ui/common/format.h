// Numbers as people read them: grouped counts, short counts, bytes, durations, rates. A value that is not known reads "–".
#pragma once

#include "models/base/result.h"
#include "models/store/run_folder.h"

#include <QCoreApplication>
#include <QString>

#include <cstdint>

namespace celloom::ui {

inline QString fromUtf8(const std::string& text) {
    return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}
inline std::string toUtf8(const QString& text) {
    return text.toStdString();
}
QString pathText(const std::filesystem::path& path);
std::filesystem::path toPath(const QString& text);

class Format {
    Q_DECLARE_TR_FUNCTIONS(celloom::ui::Format)
public:
    static QString count(std::int64_t number);           // 103 168
    static QString shortCount(double number);            // 5.13 M
    static QString bytes(double bytes);                  // 6.1 GiB
    static QString duration(double seconds);             // 18 min 40 s
    static QString clock(double seconds);                // 18:40, 1:02:07
    static QString number(double value, int digits = 4); // 2.914; NaN and infinities by name
    static QString rate(double value);                   // 3.0e-4
    static QString timeOfDay(double secondsSince1970);
    static QString dateAndTime(double secondsSince1970);
    static QString runState(store::RunState state);
    /// "good", "busy", "warning", "bad" or "idle": the look of a state.
    static const char* stateLook(store::RunState state);
    static QString error(const Error& error); // message and hint, with the place before them
};

} // namespace celloom::ui
