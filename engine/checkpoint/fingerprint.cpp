#include "engine/checkpoint/fingerprint.h"

#include "models/base/files.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <algorithm>

namespace celloom::engine {
namespace {

constexpr std::int64_t kValues = 64;

} // namespace

void Fingerprint::add(const std::string& name, const at::Tensor& tensor) {
    std::string part = "[";
    for (const std::int64_t dim : tensor.sizes()) part += std::to_string(dim) + ",";
    part += "]";
    const std::int64_t count = std::min(kValues, tensor.numel());
    if (count > 0) {
        const at::Tensor places = at::arange(count, at::kLong) * (tensor.numel() / count);
        const at::Tensor values = tensor.detach().flatten().index_select(0, places.to(tensor.device())).to(at::kCPU, at::kBFloat16).contiguous();
        part.append(static_cast<const char*>(values.const_data_ptr()), values.nbytes());
    }
    m_parts[name] = std::move(part);
}

std::string Fingerprint::value() const {
    std::string all;
    for (const auto& [name, part] : m_parts) all += name + part + "\n";
    return sha256(all);
}

} // namespace celloom::engine
