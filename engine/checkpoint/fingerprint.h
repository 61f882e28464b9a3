// A short mark of a base's weights, by which an adapter knows its base again.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace celloom::engine {

/// SHA-256 over every tensor's checkpoint name, shape and up to 64 evenly spaced values rounded to bfloat16, in the order of names. It is
/// the same for float32 and bfloat16 files of the same weights, in one file or in shards, and costs no pass over the weights.
class Fingerprint {
public:
    /// As the tensor lies in the file. Any order.
    void add(const std::string& name, const at::Tensor& tensor);
    [[nodiscard]] std::string value() const;

private:
    std::map<std::string, std::string> m_parts; // by name
};

} // namespace celloom::engine
