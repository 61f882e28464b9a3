#include "engine/exec/recompute.h"

#include <ATen/core/grad_mode.h>
#include <algorithm>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

namespace celloom::engine {
namespace {

using torch::autograd::variable_list;

bool takesGradient(const at::Tensor& tensor) { return tensor.defined() && tensor.requires_grad(); }

/// Its edges: the inputs, then the parameters. They go in as tensors with edges of their own, so that a piece whose inputs take no gradient
/// (the first layer above a frozen embedding) still gives one to its parameters.
struct Recompute : torch::autograd::Node {
    Piece piece;
    variable_list inputs; // detached
    std::vector<bool> wantsInput;
    variable_list parameters;

    variable_list apply(variable_list&& gradients) override {
        TORCH_CHECK(piece, "a recomputed piece was differentiated twice");
        const at::AutoGradMode record(true);
        variable_list given = inputs, wanted;
        for (std::size_t i = 0; i < given.size(); ++i) {
            if (!given[i].defined()) continue;
            given[i] = given[i].detach().requires_grad_(wantsInput[i]);
            if (wantsInput[i]) wanted.push_back(given[i]);
        }
        wanted.insert(wanted.end(), parameters.begin(), parameters.end());
        variable_list outputs, incoming;
        const std::vector<at::Tensor> results = piece(given, true);
        std::size_t gradient = 0;
        for (const at::Tensor& result : results) {
            if (!at::isFloatingType(result.scalar_type())) continue;
            const at::Tensor& one = gradients[gradient++];
            if (!one.defined() || !result.requires_grad()) continue;
            outputs.push_back(result);
            incoming.push_back(one);
        }
        variable_list found = torch::autograd::grad(outputs, wanted, incoming, std::nullopt, false, /*allow_unused=*/true);
        variable_list out;
        std::size_t next = 0;
        for (const bool wants : wantsInput) out.push_back(wants ? found[next++] : at::Tensor());
        out.insert(out.end(), found.begin() + static_cast<std::ptrdiff_t>(next), found.end());
        return out;
    }

    void release_variables() override {
        piece = nullptr;
        inputs.clear();
        parameters.clear();
    }
    std::string name() const override { return "Recompute"; }
};

} // namespace

std::vector<at::Tensor> recomputed(Piece piece, const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& parameters) {
    const bool isNeeded = at::GradMode::is_enabled() && (std::any_of(inputs.begin(), inputs.end(), takesGradient) || !parameters.empty());
    if (!isNeeded) return piece(inputs, false);
    std::vector<at::Tensor> outputs;
    {
        const at::AutoGradMode record(false);
        outputs = piece(inputs, false);
    }
    const std::shared_ptr<Recompute> node(new Recompute, torch::autograd::deleteNode);
    torch::autograd::edge_list edges;
    for (const auto* list : {&inputs, &parameters})
        for (const at::Tensor& tensor : *list)
            edges.push_back(takesGradient(tensor) ? torch::autograd::impl::gradient_edge(tensor) : torch::autograd::Edge());
    node->set_next_edges(std::move(edges));
    for (const at::Tensor& input : inputs) {
        node->wantsInput.push_back(takesGradient(input));
        node->inputs.push_back(input.defined() ? input.detach() : input);
    }
    node->parameters = parameters;
    node->piece = std::move(piece);
    for (at::Tensor& output : outputs) {
        if (!at::isFloatingType(output.scalar_type())) continue;
        output = output.detach(); // a piece may hand an input through
        torch::autograd::set_history(output, node);
    }
    return outputs;
}

} // namespace celloom::engine
