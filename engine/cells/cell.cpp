#include "engine/cells/cell.h"

#include "models/base/result.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

namespace celloom::engine {

void StepContext::addLoss(const at::Tensor& loss) {
    CELLOOM_CHECK(isTraining && loss.dim() == 0);
    const at::Tensor added = loss.to(at::kFloat);
    auxiliaryLoss = auxiliaryLoss.defined() ? auxiliaryLoss + added : added;
}

void Cell::bind(std::vector<at::Tensor> weights, at::ScalarType computeType, std::size_t index) {
    CELLOOM_CHECK(weights.size() == m_instance.weights.size());
    m_weights = std::move(weights);
    m_computeType = computeType;
    m_index = index;
}

void Cell::setWeight(std::size_t number, at::Tensor tensor) {
    CELLOOM_CHECK(number < m_weights.size() && tensor.sizes() == m_weights[number].sizes());
    m_weights[number] = std::move(tensor);
}

at::Tensor Cell::weight(const std::string& name) const {
    for (std::size_t i = 0; i < m_weights.size(); ++i)
        if (m_instance.weights[i].name == name) return m_weights[i].to(m_computeType);
    return {};
}

at::Tensor Cell::buffer(const std::string& name) const {
    for (std::size_t i = 0; i < m_weights.size(); ++i)
        if (m_instance.weights[i].name == name && m_instance.weights[i].isBuffer) return m_weights[i];
    return {};
}

bool Cell::learns() const {
    return !m_weights.empty() && m_weights.front().requires_grad();
}

at::Tensor Cell::dropoutMask(const at::Tensor& x, double p, const StepContext& context) const {
    at::Tensor mask = at::empty(x.sizes(), at::kFloat);
    mask.bernoulli_(1 - p, at::detail::createCPUGenerator(mixSeed(context.dropoutSeed, m_index))).div_(1 - p);
    return mask.to(x.device(), x.scalar_type());
}

const CellRegistry& CellRegistry::standard() {
    static const CellRegistry registry = [] {
        CellRegistry out;
        addDenseCells(out);
        addNormCells(out);
        addActivationCells(out);
        addStructureCells(out);
        addAttentionCells(out);
        addShapeCells(out);
        addArithmeticCells(out);
        addImageCells(out);
        addRoutingCells(out);
        addScriptCells(out);
        addPluginCells(out);
        return out;
    }();
    return registry;
}

void CellRegistry::add(const std::string& type, Factory factory) {
    CELLOOM_CHECK(!m_factories.contains(type));
    m_factories.emplace(type, std::move(factory));
}

void CellRegistry::replace(const std::string& type, Factory factory) {
    CELLOOM_CHECK(m_factories.contains(type));
    m_factories[type] = std::move(factory);
}

void CellRegistry::addOwn(const std::string& name, Factory factory) {
    CELLOOM_CHECK(m_own.emplace(name, std::move(factory)).second);
}

std::unique_ptr<Cell> CellRegistry::make(const graph::CellInstance& instance) const {
    if (instance.type == "Plugin" && instance.text("library").empty())
        if (const auto own = m_own.find(instance.text("cell")); own != m_own.end()) return own->second(instance);
    const auto found = m_factories.find(instance.type);
    return found == m_factories.end() ? nullptr : found->second(instance);
}

std::vector<std::string> CellRegistry::types() const {
    std::vector<std::string> out;
    for (const auto& item : m_factories) out.push_back(item.first);
    return out;
}

std::uint64_t mixSeed(std::uint64_t a, std::uint64_t b) {
    std::uint64_t z = a + 0x9e3779b97f4a7c15ull * (b + 1);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

} // namespace celloom::engine
