// Verbs that compute with a model: forward.
#include "app/engine/model_inputs.h"
#include "app/engine/model_options.h"
#include "engine/checkpoint/safetensors.h"
#include "models/base/text.h"
#include "models/families/vocabulary.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace celloom::app {
namespace {

struct ForwardArguments : ModelOptions {
    std::string inputs;
    bool writesHidden = false, showsTypes = false;
};

// ---- forward ----

/// Keeps the residual stream: hidden.0 after the embedding, hidden.N after the last cell of layers.(N-1).
void keepHidden(const graph::CellInstance& cell, const std::vector<at::Tensor>& outputs, std::map<std::string, at::Tensor>& kept) {
    if (cell.type == "Embedding") kept["hidden.0"] = outputs[0].to(at::kFloat);
    const std::string prefix = "layers.";
    if (!cell.path.starts_with(prefix)) return;
    const std::size_t end = cell.path.find('.', prefix.size());
    if (end == std::string::npos) return;
    kept["hidden." + std::to_string(std::atoll(cell.path.c_str() + prefix.size()) + 1)] = outputs[0].to(at::kFloat);
}

std::string namesOf(const std::vector<at::ScalarType>& types) {
    std::vector<std::string> names;
    for (const at::ScalarType type : types) {
        const std::string name = type == at::kFloat ? "float32" : type == at::kBFloat16 ? "bfloat16" : type == at::kHalf ? "float16" : c10::toString(type);
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    return names.empty() ? "-" : joined(names);
}

/// The types that were there while the cells computed, a row a cell.
struct TypeTable {
    nlohmann::json rows = nlohmann::json::array();

    void add(const graph::CellInstance& cell, const engine::ObservedTypes& types) {
        rows.push_back({{"cell", cell.path}, {"type", cell.type}, {"inputs", namesOf(types.inputs)}, {"computes", namesOf(types.results)}, {"gives", namesOf(types.wires)}});
    }
    void print() const {
        std::size_t widest = 4;
        for (const auto& row : rows) widest = std::max(widest, row["cell"].get_ref<const std::string&>().size());
        const auto line = [&](const std::string& cell, const std::string& type, const std::string& computes, const std::string& gives) {
            std::printf("%-*s  %-16s %-9s  %s\n", static_cast<int>(widest), cell.c_str(), type.c_str(), computes.c_str(), gives.c_str());
        };
        line("cell", "type", "computes", "gives");
        for (const auto& row : rows) line(row["cell"], row["type"], row["computes"], row["gives"]);
    }
};

void runForward(const ForwardArguments& arguments, Invocation& invocation) {
    const auto batch = readBatch(arguments.inputs);
    if (!batch) return invocation.fail(batch.error(), protocol::BadInput);
    auto loaded = load(arguments, invocation);
    if (!loaded) return;
    if (auto status = checkValues(*batch, families::vocabularyOf(loaded->network->model())); !status)
        return invocation.fail({status.error().message, status.error().hint, arguments.inputs}, protocol::BadInput);
    std::map<std::string, at::Tensor> results;
    engine::ForwardOptions options;
    if (arguments.writesHidden)
        options.observer = [&](const graph::CellInstance& cell, const std::vector<at::Tensor>& outputs) {
            keepHidden(cell, outputs, results);
        };
    TypeTable types;
    if (arguments.showsTypes)
        options.typeObserver = [&](const graph::CellInstance& cell, const engine::ObservedTypes& seen) { types.add(cell, seen); };
    const auto outputs = loaded->network->forward(*batch, options);
    if (!outputs) return invocation.fail(outputs.error(), codeOf(outputs.error()));
    for (const auto& [name, tensor] : *outputs) results[name] = tensor;
    if (auto status = addLoss(*batch, *loaded->network, results); !status)
        return invocation.fail({status.error().message, status.error().hint, arguments.inputs}, protocol::BadInput);
    if (auto status = engine::writeSafetensors(arguments.out, results); !status) return invocation.fail(status.error());
    if (invocation.isJson) {
        nlohmann::json shapes = nlohmann::json::object();
        for (const auto& [name, tensor] : results) shapes[name] = tensor.sizes().vec();
        nlohmann::json report{{"out", arguments.out}, {"tensors", shapes}};
        if (arguments.showsTypes) report["types"] = types.rows;
        std::printf("%s\n", report.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
        return;
    }
    if (arguments.showsTypes) types.print();
    for (const auto& [name, tensor] : results) {
        if (tensor.dim() == 0)
            std::printf("%s = %.9g\n", name.c_str(), tensor.item<double>());
        else
            std::fprintf(stderr, "%s [%s] written to %s\n", name.c_str(), c10::Join(", ", tensor.sizes()).c_str(), arguments.out.c_str());
    }
}

void addForward(CLI::App& app, Invocation& invocation) {
    auto arguments = std::make_shared<ForwardArguments>();
    CLI::App* verb = app.add_subcommand("forward", "Computes a model's logits (and loss) for tokens in a safetensors file");
    verb->add_option("--model", arguments->model, kModelHelp)->required();
    verb->add_option("--inputs", arguments->inputs,
                     "safetensors with input_ids [B,T]; optional labels (-100 ignored), attention_mask, segments, positions")
        ->required();
    verb->add_option("--out", arguments->out, "safetensors to write: logits [B,T,V] and, with labels, loss; float32")->required();
    verb->add_flag("--hidden", arguments->writesHidden, "Also write hidden.0 (embeddings) to hidden.N (before the final norm)");
    verb->add_flag("--types", arguments->showsTypes, "Also say in which type each cell really computed, and which it gave to others");
    addModelOptions(*verb, *arguments);
    addPrecisionOptions(*verb, *arguments);
    addAdapterOptions(*verb, *arguments);
    verb->callback([arguments, &invocation] { runForward(*arguments, invocation); });
}

} // namespace

void addModelVerbs(CLI::App& app, Invocation& invocation) {
    addForward(app, invocation);
}

} // namespace celloom::app
