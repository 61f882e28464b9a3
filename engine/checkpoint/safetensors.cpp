#include "engine/checkpoint/safetensors.h"

#include "models/base/files.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace celloom::engine {
namespace fs = std::filesystem;
using nlohmann::json;

Result<std::shared_ptr<SafetensorsFile>> SafetensorsFile::open(const fs::path& path) {
    CELLOOM_TRY(file, MappedFile::open(path));
    auto table = readSafetensorsTable(file->bytes());
    if (!table) return fail(table.error().message, table.error().hint, path.string());
    return std::shared_ptr<SafetensorsFile>(new SafetensorsFile(path, std::move(file), std::move(*table), Format::Safetensors));
}

Status writeSafetensors(const fs::path& path, const std::map<std::string, at::Tensor>& tensors,
                        const std::map<std::string, std::string>& metadata) {
    std::vector<std::pair<std::string, at::Tensor>> order;
    for (const auto& [name, tensor] : tensors) {
        CELLOOM_CHECK(tensor.defined() && name != "__metadata__");
        order.emplace_back(name, tensor.detach().to(at::kCPU).contiguous());
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.second.element_size() > b.second.element_size(); });

    json header = json::object();
    if (!metadata.empty()) header["__metadata__"] = metadata;
    std::uint64_t position = 0;
    std::vector<std::string_view> pieces(2);
    for (const auto& [name, tensor] : order) {
        const auto type = elementTypeOf(tensor.scalar_type());
        CELLOOM_CHECK(type);
        const auto bytes = static_cast<std::uint64_t>(tensor.nbytes());
        header[name] = {{"dtype", safetensorsCode(*type)}, {"shape", tensor.sizes().vec()}, {"data_offsets", {position, position + bytes}}};
        pieces.emplace_back(static_cast<const char*>(tensor.const_data_ptr()), bytes);
        position += bytes;
    }
    std::string text = header.dump(-1, ' ', false, json::error_handler_t::replace);
    text.resize((text.size() + 7) / 8 * 8, ' '); // the data start on 8 bytes, so that they can be mapped
    const std::uint64_t headerBytes = text.size();
    pieces[0] = {reinterpret_cast<const char*>(&headerBytes), sizeof headerBytes};
    pieces[1] = text;
    return writeFileAtomically(path, pieces);
}

} // namespace celloom::engine
