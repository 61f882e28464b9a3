// The answer of `celloom-engine data preview --json` (docs/file-formats.md) as plain data.
#pragma once

#include "models/base/result.h"

#include <QByteArray>
#include <QString>
#include <QStringList>

#include <cstdint>
#include <optional>
#include <vector>

namespace celloom::ui {

struct PreviewToken {
    std::int64_t id = 0, position = 0, segment = 0;
    QString piece; // as the tokenizer names it: "▁好", "<0x0A>"
    bool isSpecial = false;
    bool isLearned = false; // its label counts
};

struct PreviewRow {
    std::vector<PreviewToken> tokens;
    std::int64_t padding = 0;
    [[nodiscard]] std::int64_t learned() const;
    [[nodiscard]] std::int64_t segments() const; // conversations or documents in it
};

struct PreviewBin {
    std::int64_t upTo = 0, count = 0;
};

/// Of conversations.
struct PreviewSamples {
    std::int64_t conversations = 0, sequences = 0, tokens = 0, trainable = 0, truncated = 0, dropped = 0, untrainable = 0, longest = 0;
    std::vector<PreviewBin> lengths;
};

/// Of rows of named columns: what its numbers in the batch are like.
struct PreviewColumn {
    QString name, shape, type; // "[32, 1, 8, 8]"
    double minimum = 0, maximum = 0, mean = 0, deviation = 0;
};

struct PreviewFile {
    QString path, format, encoding;
    std::int64_t bytes = 0;
};

struct PreviewData {
    std::vector<PreviewFile> files;
    QString templateName, templateSource;
    QStringList fallbacks;
    std::int64_t vocabulary = 0;
    bool isTokenizerTrained = false;
    std::optional<PreviewSamples> samples;
    std::int64_t sequences = 0, heldOut = 0, sequenceLength = 0, batchLength = 0, learned = 0;
    std::vector<PreviewRow> rows;
    std::vector<PreviewColumn> columns; // in place of rows; `sequences` and `heldOut` count rows then
};

/// Fails where it is no such answer.
Result<PreviewData> readPreview(const QByteArray& json);

/// A piece as people read it: "▁" is a space, "<0x0A>" a line break, "<0x41>" the letter A, "<0xE4>" the byte E4.
QString shownPiece(const PreviewToken& token);

} // namespace celloom::ui
