#include "ui/train/preview_data.h"

#include "ui/common/format.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace celloom::ui {

using nlohmann::json;

namespace {

tl::unexpected<Error> noPreview(const std::string& what) {
    return fail("The engine's answer has no readable " + what + ".", "Window and engine may be of different versions.");
}

/// Missing or of another type reads as nothing: what an older engine leaves out is not shown.
std::int64_t numberOf(const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}
QString textOf(const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_string() ? fromUtf8(found->get<std::string>()) : QString();
}
const json& listOf(const json& object, const char* name) {
    static const json none = json::array();
    const auto found = object.find(name);
    return found != object.end() && found->is_array() ? *found : none;
}

Result<PreviewRow> readRow(const json& object) {
    if (!object.is_object()) return noPreview("row");
    const json &ids = listOf(object, "ids"), &pieces = listOf(object, "pieces"), &special = listOf(object, "special"),
               &labels = listOf(object, "labels"), &segments = listOf(object, "segments"), &positions = listOf(object, "positions");
    for (const json* list : {&pieces, &special, &labels, &segments, &positions})
        if (list->size() != ids.size()) return noPreview("row");
    PreviewRow row;
    row.padding = numberOf(object, "padding");
    row.tokens.reserve(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const bool isRead = ids[i].is_number_integer() && pieces[i].is_string() && special[i].is_boolean() && labels[i].is_number_integer() &&
                            segments[i].is_number_integer() && positions[i].is_number_integer();
        if (!isRead) return noPreview("token");
        // The first token of a row is predicted from nothing: its label never counts.
        row.tokens.push_back({ids[i].get<std::int64_t>(), positions[i].get<std::int64_t>(), segments[i].get<std::int64_t>(),
                              fromUtf8(pieces[i].get<std::string>()), special[i].get<bool>(), i > 0 && labels[i].get<std::int64_t>() >= 0});
    }
    return row;
}

PreviewSamples readSamples(const json& object) {
    PreviewSamples samples{numberOf(object, "conversations"), numberOf(object, "sequences"), numberOf(object, "tokens"),
                           numberOf(object, "trainable"),     numberOf(object, "truncated"), numberOf(object, "dropped"),
                           numberOf(object, "untrainable"),   numberOf(object, "longest"),   {}};
    for (const json& bin : listOf(object, "lengths"))
        if (bin.is_object()) samples.lengths.push_back({numberOf(bin, "up_to"), numberOf(bin, "count")});
    return samples;
}

PreviewColumn readColumn(const json& object) {
    PreviewColumn column{textOf(object, "name"), {}, textOf(object, "type")};
    QStringList sizes;
    for (const json& size : listOf(object, "shape"))
        if (size.is_number_integer()) sizes.append(QString::number(size.get<std::int64_t>()));
    column.shape = QLatin1Char('[') + sizes.join(QStringLiteral(", ")) + QLatin1Char(']');
    for (const auto& [name, number] : {std::pair("minimum", &column.minimum), std::pair("maximum", &column.maximum), std::pair("mean", &column.mean),
                                       std::pair("deviation", &column.deviation)})
        if (const auto found = object.find(name); found != object.end() && found->is_number()) *number = found->get<double>();
    return column;
}

} // namespace

std::int64_t PreviewRow::learned() const {
    return std::count_if(tokens.begin(), tokens.end(), [](const PreviewToken& token) { return token.isLearned; });
}

std::int64_t PreviewRow::segments() const {
    std::int64_t count = tokens.empty() ? 0 : 1;
    for (std::size_t i = 1; i < tokens.size(); ++i) count += tokens[i].segment != tokens[i - 1].segment ? 1 : 0;
    return count;
}

Result<PreviewData> readPreview(const QByteArray& text) {
    const json whole = json::parse(text.begin(), text.end(), nullptr, false);
    const auto batch = whole.is_object() ? whole.find("batch") : whole.end();
    if (!whole.is_object() || batch == whole.end() || !batch->is_object()) return noPreview("batch");
    PreviewData data;
    for (const json& file : listOf(whole, "files"))
        if (file.is_object()) data.files.push_back({textOf(file, "path"), textOf(file, "format"), textOf(file, "encoding"), numberOf(file, "bytes")});
    if (const auto found = whole.find("template"); found != whole.end() && found->is_object()) {
        data.templateName = textOf(*found, "label");
        data.templateSource = textOf(*found, "source");
        for (const json& sentence : listOf(*found, "fallbacks"))
            if (sentence.is_string()) data.fallbacks.append(fromUtf8(sentence.get<std::string>()));
    }
    if (const auto found = whole.find("tokenizer"); found != whole.end() && found->is_object()) {
        data.vocabulary = numberOf(*found, "vocabulary");
        data.isTokenizerTrained = found->contains("trained") && (*found)["trained"] == true;
    }
    if (const auto found = whole.find("samples"); found != whole.end() && found->is_object()) data.samples = readSamples(*found);
    data.sequences = numberOf(whole, "sequences");
    data.heldOut = numberOf(whole, "held_out_sequences");
    data.sequenceLength = numberOf(whole, "sequence_length");
    data.batchLength = numberOf(*batch, "length");
    data.learned = numberOf(*batch, "learned");
    for (const json& object : listOf(*batch, "columns"))
        if (object.is_object()) data.columns.push_back(readColumn(object));
    if (!data.columns.empty()) {
        data.sequences = numberOf(whole, "rows");
        data.heldOut = numberOf(whole, "held_out_rows");
        return data;
    }
    for (const json& object : listOf(*batch, "rows")) {
        CELLOOM_TRY(row, readRow(object));
        data.rows.push_back(std::move(row));
    }
    return data;
}

QString shownPiece(const PreviewToken& token) {
    if (token.piece == QLatin1String("<0x0A>") || token.piece == QLatin1String("\n")) return QStringLiteral("⏎");
    QString text = token.piece;
    if (text.size() == 6 && text.startsWith(QLatin1String("<0x")) && text.endsWith(QLatin1Char('>'))) { // a byte
        bool isByte = false;
        const int byte = text.mid(3, 2).toInt(&isByte, 16);
        if (isByte) return byte > 0x20 && byte < 0x7f ? QString(QLatin1Char(static_cast<char>(byte))) : text.mid(3, 2);
    }
    if (!token.isSpecial) text.replace(QChar(0x2581), QChar(0x00b7)); // SentencePiece's mark for a space
    return text.isEmpty() ? QString::number(token.id) : text;
}

} // namespace celloom::ui
