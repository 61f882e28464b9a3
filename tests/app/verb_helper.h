// Running a verb of celloom-engine as a user does, for tests.
#pragma once

#include "engine/checkpoint/safetensors.h"

#include <ATen/TensorOperators.h>
#include <QProcess>
#include <QStringList>

#include <filesystem>
#include <string>

namespace celloom::app::testing {

struct Outcome {
    int code = -1; // -1: it crashed or took too long
    std::string out, err;
};

inline Outcome runEngine(const QStringList& arguments) {
    QProcess process;
    process.start(CELLOOM_BIN "/celloom-engine", arguments);
    if (!process.waitForFinished(120000 * CELLOOM_TEST_TIME_FACTOR)) process.kill();
    return {process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1, process.readAllStandardOutput().toStdString(),
            process.readAllStandardError().toStdString()};
}

inline at::Tensor tensorOf(const std::filesystem::path& path, const std::string& name) {
    const auto file = engine::SafetensorsFile::open(path);
    const auto tensor = file ? (*file)->tensor(name) : Result<at::Tensor>(tl::unexpected(file.error()));
    if (!tensor) qFatal("%s", tensor.error().text().c_str());
    return tensor->clone();
}

inline double largest(const at::Tensor& difference) { return difference.abs().max().item<double>(); }

} // namespace celloom::app::testing
