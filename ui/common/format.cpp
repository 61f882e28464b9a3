#include "ui/common/format.h"

#include "ui/common/messages.h"

#include <QDateTime>

#include <cmath>

namespace celloom::ui {

namespace {

const QString kUnknown = QStringLiteral("–");
constexpr QChar kNoBreakSpace(0x00a0);

} // namespace

QString pathText(const std::filesystem::path& path) {
    return fromUtf8(path.string());
}

std::filesystem::path toPath(const QString& text) {
    return std::filesystem::path(text.toStdString());
}

QString Format::count(std::int64_t number) {
    QString digits = QString::number(number);
    const qsizetype first = number < 0 ? 1 : 0;
    if (digits.size() - first < 4) return digits;
    for (qsizetype at = digits.size() - 3; at > first; at -= 3) digits.insert(at, kNoBreakSpace);
    return digits;
}

QString Format::shortCount(double number) {
    if (!std::isfinite(number)) return kUnknown;
    static constexpr struct {
        double size;
        const char* unit;
    } units[] = {{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
    for (const auto& unit : units) {
        if (std::abs(number) < unit.size) continue;
        const double scaled = number / unit.size;
        return QString::number(scaled, 'f', scaled < 10 ? 2 : scaled < 100 ? 1 : 0) + kNoBreakSpace + QLatin1String(unit.unit);
    }
    return QString::number(number, 'g', 4);
}

QString Format::bytes(double bytes) {
    if (!std::isfinite(bytes) || bytes < 0) return kUnknown;
    static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    while (bytes >= 1024 && unit < 4) {
        bytes /= 1024;
        ++unit;
    }
    return QString::number(bytes, 'f', unit == 0 ? 0 : bytes < 10 ? 2 : bytes < 100 ? 1 : 0) + kNoBreakSpace + QLatin1String(units[unit]);
}

QString Format::duration(double seconds) {
    if (!std::isfinite(seconds) || seconds < 0) return kUnknown;
    const auto whole = static_cast<std::int64_t>(std::llround(seconds));
    if (whole < 60) return tr("%1 s").arg(whole);
    if (whole < 3600) return tr("%1 min %2 s").arg(whole / 60).arg(whole % 60);
    if (whole < 48 * 3600) return tr("%1 h %2 min").arg(whole / 3600).arg(whole / 60 % 60);
    return tr("%1 days %2 h").arg(whole / 86400).arg(whole / 3600 % 24);
}

QString Format::clock(double seconds) {
    if (!std::isfinite(seconds) || seconds < 0) return kUnknown;
    const auto whole = static_cast<std::int64_t>(std::llround(seconds));
    const QString tail =
        QStringLiteral("%1:%2").arg(whole / 60 % 60, whole >= 3600 ? 2 : 1, 10, QLatin1Char('0')).arg(whole % 60, 2, 10, QLatin1Char('0'));
    return whole >= 3600 ? QStringLiteral("%1:%2").arg(whole / 3600).arg(tail) : tail;
}

QString Format::number(double value, int digits) {
    if (std::isnan(value)) return QStringLiteral("NaN");
    if (std::isinf(value)) return value > 0 ? QStringLiteral("∞") : QStringLiteral("−∞");
    const double size = std::abs(value);
    if (size != 0 && (size < 1e-3 || size >= 1e6)) return QString::number(value, 'e', std::max(1, digits - 2));
    const int whole = size < 1 ? 1 : static_cast<int>(std::floor(std::log10(size))) + 1;
    return QString::number(value, 'f', std::max(0, digits - whole));
}

QString Format::rate(double value) {
    if (!std::isfinite(value)) return kUnknown;
    if (value == 0) return QStringLiteral("0");
    QString text = QString::number(value, 'e', 2); // 3.00e-04
    const qsizetype e = text.indexOf(QLatin1Char('e'));
    QString mantissa = text.left(e);
    if (mantissa.endsWith(QLatin1Char('0'))) mantissa.chop(1);
    return mantissa + QLatin1Char('e') + QString::number(text.mid(e + 1).toInt());
}

QString Format::timeOfDay(double secondsSince1970) {
    if (!(secondsSince1970 > 0)) return kUnknown;
    return QDateTime::fromMSecsSinceEpoch(static_cast<qint64>(secondsSince1970 * 1000)).toString(QStringLiteral("HH:mm:ss"));
}

QString Format::dateAndTime(double secondsSince1970) {
    if (!(secondsSince1970 > 0)) return kUnknown;
    return QDateTime::fromMSecsSinceEpoch(static_cast<qint64>(secondsSince1970 * 1000)).toString(QStringLiteral("yyyy-MM-dd HH:mm"));
}

QString Format::runState(store::RunState state) {
    switch (state) {
    case store::RunState::Queued:
        return tr("Queued");
    case store::RunState::Preparing:
        return tr("Preparing");
    case store::RunState::Running:
        return tr("Running");
    case store::RunState::Paused:
        return tr("Paused");
    case store::RunState::Stopping:
        return tr("Stopping");
    case store::RunState::Finished:
        return tr("Finished");
    case store::RunState::Stopped:
        return tr("Stopped");
    case store::RunState::Failed:
        return tr("Failed");
    case store::RunState::Interrupted:
        return tr("Interrupted");
    }
    return kUnknown;
}

const char* Format::stateLook(store::RunState state) {
    switch (state) {
    case store::RunState::Running:
        return "good";
    case store::RunState::Preparing:
    case store::RunState::Queued:
        return "busy";
    case store::RunState::Paused:
    case store::RunState::Stopping:
    case store::RunState::Interrupted:
        return "warning";
    case store::RunState::Failed:
        return "bad";
    case store::RunState::Finished:
    case store::RunState::Stopped:
        return "idle";
    }
    return "idle";
}

QString Format::error(const Error& error) {
    const QString text = said(error);
    return error.place.empty() ? text : fromUtf8(error.place) + QStringLiteral(": ") + text;
}

} // namespace celloom::ui
