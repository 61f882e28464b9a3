// A model's weights, wherever they lie, as a folder that other programs read: Hugging Face's layout, or MindFormers' names in MindSpore's
// format. Written tensor by tensor: it needs the memory of one.
#pragma once

#include "engine/checkpoint/weights.h"
#include "models/graph/document.h"

#include <optional>

namespace celloom::engine {

struct ExportOptions {
    enum class Format { Safetensors, MindSpore } format = Format::Safetensors;
    std::optional<ElementType> type;             // float32, bfloat16 or float16; none: that of most of the weights
    std::uint64_t maxShardBytes = 5'000'000'000; // of one safetensors file; a tensor that is larger has one of its own
};

/// Where a model comes from.
struct ExportSource {
    graph::Document document;
    graph::ExpandedModel model;
    WeightPlan plan;
    std::filesystem::path config;    // config.json, wherever it lies; empty: made from the graph
    std::filesystem::path folder;    // with the other files to carry over; empty: none
    std::filesystem::path tokenizer; // tokenizer.model, wherever it lies; empty: none
};

struct ExportReport {
    std::vector<std::string> files; // written, in order
    std::vector<std::string> left;  // in the source's folder, not carried over
    std::uint64_t tensors = 0, bytes = 0;
    ElementType type = ElementType::Float32;
};

/// The weights (one file, or shards with model.safetensors.index.json), config.json (every key of the source's, with torch_dtype set; of
/// the graph where there is none), model.cells.json, generation_config.json, tokenizer files and the code that config.json may name. The
/// folder appears whole or not at all; one that exists is refused.
Result<ExportReport> exportFolder(const ExportSource& source, const ExportOptions& options, const std::filesystem::path& target);

/// "5GB", "500 MB", "1GiB", "4096": bytes, at least 1.
Result<std::uint64_t> parseBytes(const std::string& text);

} // namespace celloom::engine
