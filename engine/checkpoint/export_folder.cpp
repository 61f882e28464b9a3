#include "engine/checkpoint/export_folder.h"

#include "engine/checkpoint/atomic_folder.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/output_file.h"
#include "engine/text/tokenizer.h"
#include "models/base/files.h"
#include "models/base/text.h"
#include "models/families/families.h"
#include "models/families/mindformers.h"
#include "models/graph/json.h"
#include "models/graph/json_text.h"

#include <ATen/ops/empty.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>

namespace celloom::engine {
namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;
namespace {

using Item = WeightPlan::Item;

constexpr std::uint64_t kMaxCarriedBytes = 256 << 20;
/// Beside config.json and the weights. tokenizer.model comes from where the source says.
constexpr std::array kCarried = {"generation_config.json",
                                 "tokenizer.json",
                                 "tokenizer_config.json",
                                 "special_tokens_map.json",
                                 "added_tokens.json",
                                 "vocab.json",
                                 "merges.txt",
                                 "chat_template.jinja",
                                 "chat_template.json"};

std::string_view bytesOf(const at::Tensor& tensor) {
    return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

Result<at::Tensor> readTensor(const Item& item, ElementType type) {
    at::Tensor tensor = at::empty(item.shape, scalarTypeOf(type));
    CELLOOM_TRY_STATUS(copyWeight(item, tensor));
    return tensor;
}

/// The type that holds most of the bytes.
ElementType commonType(const WeightPlan& plan) {
    std::map<ElementType, std::uint64_t> bytes;
    for (const Item& item : plan.items)
        if (!item.isBuffer) bytes[item.type] += *byteCount(item.type, item.shape);
    const auto most = std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == bytes.end() ? ElementType::Float32 : most->first;
}

class Exporter {
public:
    Exporter(const ExportSource& source, const ExportOptions& options, fs::path folder)
        : m_source(source), m_options(options), m_folder(std::move(folder)) {
        m_report.type = options.type.value_or(commonType(source.plan));
    }

    Result<ExportReport> run() {
        const bool isMindSpore = m_options.format == ExportOptions::Format::MindSpore;
        CELLOOM_TRY_STATUS(isMindSpore ? writeMindSpore() : writeShards());
        CELLOOM_TRY_STATUS(writeConfig());
        CELLOOM_TRY_STATUS(add("model.cells.json", graph::toJson(m_source.document)));
        if (!m_source.tokenizer.empty()) CELLOOM_TRY_STATUS(addTokenizer());
        if (!m_source.folder.empty()) CELLOOM_TRY_STATUS(carry());
        return std::move(m_report);
    }

private:
    Status add(const std::string& name, const std::string& content) {
        m_report.files.push_back(name);
        return writeFileAtomically(m_folder / name, content);
    }

    Status addTokenizer() {
        for (const fs::path& file : tokenizerFiles(m_source.tokenizer)) {
            CELLOOM_TRY(bytes, readFile(file, kMaxCarriedBytes));
            CELLOOM_TRY_STATUS(add(file == m_source.tokenizer ? "tokenizer.model" : file.filename().string(), bytes));
        }
        return {};
    }

    // ---- safetensors ----

    Status writeShards() {
        std::vector<std::vector<const Item*>> shards(1);
        std::uint64_t held = 0;
        for (const Item& item : m_source.plan.items) {
            CELLOOM_TRY(bytes, byteCount(typeOf(item), item.shape));
            if (!shards.back().empty() && (bytes > m_options.maxShardBytes || held > m_options.maxShardBytes - bytes)) {
                shards.emplace_back();
                held = 0;
            }
            shards.back().push_back(&item);
            held += bytes;
            m_report.bytes += bytes;
            ++m_report.tensors;
        }
        if (shards.size() == 1) return writeShard("model.safetensors", shards[0]);
        ordered_json index{{"metadata", {{"total_size", m_report.bytes}}}, {"weight_map", json::object()}};
        for (std::size_t i = 0; i < shards.size(); ++i) {
            char name[64];
            std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, shards.size());
            CELLOOM_TRY_STATUS(writeShard(name, shards[i]));
            for (const Item* item : shards[i]) index["weight_map"][item->name] = name;
        }
        return add("model.safetensors.index.json", index.dump(2) + "\n");
    }

    [[nodiscard]] ElementType typeOf(const Item& item) const { return item.isBuffer ? ElementType::Float32 : m_report.type; }

    Status writeShard(const std::string& name, std::vector<const Item*> items) {
        std::stable_partition(items.begin(), items.end(), [](const Item* item) { return item->isBuffer; }); // the widest first: all is aligned
        m_report.files.push_back(name);
        ordered_json header{{"__metadata__", {{"format", "pt"}}}};
        std::uint64_t position = 0;
        for (const Item* item : items) {
            CELLOOM_TRY(bytes, byteCount(typeOf(*item), item->shape));
            header[item->name] = {
                {"dtype", safetensorsCode(typeOf(*item))}, {"shape", item->shape}, {"data_offsets", {position, position + bytes}}};
            position += bytes;
        }
        std::string text = header.dump(-1, ' ', false, json::error_handler_t::replace);
        text.resize((text.size() + 7) / 8 * 8, ' '); // so that the data can be mapped
        const std::uint64_t headerBytes = text.size();
        CELLOOM_TRY(file, OutputFile::create(m_folder / name));
        CELLOOM_TRY_STATUS(file.write({reinterpret_cast<const char*>(&headerBytes), sizeof headerBytes}));
        CELLOOM_TRY_STATUS(file.write(text));
        for (const Item* item : items) {
            CELLOOM_TRY(tensor, readTensor(*item, typeOf(*item)));
            CELLOOM_TRY_STATUS(file.write(bytesOf(tensor)));
        }
        return file.close();
    }

    // ---- MindSpore ----

    Status writeMindSpore() {
        m_report.files.emplace_back("model.ckpt");
        CELLOOM_TRY(file, OutputFile::create(m_folder / "model.ckpt"));
        for (const Item& item : m_source.plan.items) {
            CELLOOM_TRY(tensor, readTensor(item, typeOf(item)));
            const auto way = families::mindFormersTensors(m_source.model, item.path).front();
            std::int64_t first = 0;
            for (const families::TensorRows& rows : way) {
                const at::Tensor part = rows.count < 0 ? tensor : tensor.narrow(0, first, rows.count);
                first += std::max<std::int64_t>(rows.count, 0);
                CELLOOM_TRY_STATUS(writeRecords(file, rows.name, part));
                m_report.bytes += part.nbytes();
                ++m_report.tensors;
            }
        }
        return file.close();
    }

    static Status writeRecords(OutputFile& file, const std::string& name, const at::Tensor& tensor) {
        const auto records = mindSporeRecords(name, *elementTypeOf(tensor.scalar_type()), tensor.sizes().vec(), tensor.nbytes());
        for (const auto& [head, extent] : records) {
            CELLOOM_TRY_STATUS(file.write(head));
            CELLOOM_TRY_STATUS(file.write(bytesOf(tensor).substr(extent.offset, extent.bytes)));
        }
        return {};
    }

    // ---- what lies beside the weights ----

    Status writeConfig() {
        std::string text;
        if (!m_source.config.empty()) {
            CELLOOM_TRY(found, readFile(m_source.config, graph::JsonLimits{}.maxBytes));
            CELLOOM_TRY(checked, graph::parseJson(found, m_source.config.string()));
            if (!checked.is_object()) return fail("is no JSON object.", {}, m_source.config.string());
            text = std::move(found);
        } else {
            const auto made = families::toConfigJson(m_source.document);
            if (!made) return {}; // a graph of no family: model.cells.json alone describes it
            text = *made;
        }
        ordered_json config = ordered_json::parse(text);
        if (config.contains("dtype")) config["dtype"] = nameOf(m_report.type); // of transformers 5; both where both are there
        if (!config.contains("dtype") || config.contains("torch_dtype")) config["torch_dtype"] = nameOf(m_report.type);
        return add("config.json", config.dump(2) + "\n");
    }

    bool isCarried(const fs::path& path) const {
        const std::string name = path.filename().string();
        return path.extension() == ".py" || std::find(kCarried.begin(), kCarried.end(), name) != kCarried.end();
    }
    bool isReplaced(const fs::path& path) const {
        const std::string name = path.filename().string();
        return name == "config.json" || name == "model.cells.json" || name == "tokenizer.model" || name == "manifest.json" ||
               name.ends_with(".index.json") || std::any_of(m_source.plan.items.begin(), m_source.plan.items.end(), [&](const Item& item) {
                   return std::any_of(item.rows.begin(), item.rows.end(),
                                      [&](const auto& rows) { return rows.file->path().filename() == path.filename(); });
               });
    }

    Status carry() {
        std::vector<fs::path> paths;
        std::error_code code;
        for (fs::directory_iterator item(m_source.folder, code), end; !code && item != end; item.increment(code))
            paths.push_back(item->path());
        if (code) return fail("cannot be listed: " + code.message() + ".", {}, m_source.folder.string());
        std::sort(paths.begin(), paths.end());
        for (const fs::path& path : paths) {
            const bool isWritten =
                std::find(m_report.files.begin(), m_report.files.end(), path.filename().string()) != m_report.files.end();
            if (isWritten || isReplaced(path)) continue;
            if (!isCarried(path) || !fs::is_regular_file(path, code)) {
                m_report.left.push_back(path.filename().string());
                continue;
            }
            CELLOOM_TRY(bytes, readFile(path, kMaxCarriedBytes));
            CELLOOM_TRY_STATUS(add(path.filename().string(), bytes));
        }
        return {};
    }

    const ExportSource& m_source;
    const ExportOptions& m_options;
    fs::path m_folder;
    ExportReport m_report;
};

} // namespace

Result<ExportReport> exportFolder(const ExportSource& source, const ExportOptions& options, const fs::path& target) {
    std::error_code code;
    if (fs::exists(fs::symlink_status(target, code)) && !(fs::is_directory(target, code) && fs::is_empty(target, code)))
        return fail("exists already.", "Choose another name, or delete it first.", target.string()); // told before hours of work, not after
    CELLOOM_TRY(folder, AtomicFolder::create(target));
    CELLOOM_TRY(report, Exporter(source, options, folder.path()).run());
    CELLOOM_TRY_STATUS(writeManifest(folder.path())); // safetensors carry no checksum of their own
    CELLOOM_TRY_STATUS(folder.commit());
    return report;
}

Result<std::uint64_t> parseBytes(const std::string& text) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    std::string unit = text.substr(std::min(text.find_first_not_of(' ', digits), text.size()));
    std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
    static const std::map<std::string, std::uint64_t> kUnits{
        {"", 1}, {"B", 1}, {"KB", 1000}, {"MB", 1000'000}, {"GB", 1000'000'000}, {"KIB", 1 << 10}, {"MIB", 1 << 20}, {"GIB", 1 << 30}};
    std::uint64_t number = 0;
    const auto found = kUnits.find(unit);
    if (found == kUnits.end() || !readNumber(std::string_view(text).substr(0, digits), number) || number == 0 ||
        __builtin_mul_overflow(number, found->second, &number))
        return fail(inQuotes(text) + " is no size.", "Write a whole number with a unit, such as 5GB, 500MB or 1GiB.");
    return number;
}

} // namespace celloom::engine
