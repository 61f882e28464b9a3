// The catalogue's cells against PyTorch: outputs, gradients, buffers and added losses of fixtures/cells (tests/oracle/make_cells.py).
// Computed in float64 on both sides and stored as float32, so they agree to half a unit of float32's last place; asked for is 1e-6.
#include "engine/checkpoint/safetensors.h"
#include "engine/exec/runtime.h"
#include "models/base/files.h"
#include "tests/engine/cell_helpers.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <QTest>
#include <nlohmann/json.hpp>

using namespace celloom;
using namespace celloom::engine;
using namespace celloom::engine::testing;
using nlohmann::json;

namespace {

graph::ResolvedValue valueOf(const json& value) {
    if (value.is_boolean()) return value.get<bool>();
    if (value.is_number_integer()) return value.get<std::int64_t>();
    if (value.is_number()) return value.get<double>();
    return value.get<std::string>();
}

bool areClose(const at::Tensor& actual, const at::Tensor& expected) {
    return actual.sizes() == expected.sizes() && at::allclose(actual.to(at::kDouble), expected.to(at::kDouble), 1e-6, 1e-6);
}

} // namespace

class TestCellsTorch : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase();
    void cellsComputeWhatPyTorchComputes_data();
    void cellsComputeWhatPyTorchComputes();

private:
    at::Tensor tensor(const std::string& name) const {
        auto out = m_file->tensor(name);
        if (!out) qFatal("%s", out.error().text().c_str());
        return *out;
    }
    std::shared_ptr<SafetensorsFile> m_file;
    json m_cases;
};

void TestCellsTorch::initTestCase() {
    setThreads(1);
    const std::filesystem::path folder = std::filesystem::path(CELLOOM_FIXTURES) / "cells";
    auto file = SafetensorsFile::open(folder / "cells.safetensors");
    QVERIFY2(file.has_value(), file ? "" : file.error().text().c_str());
    m_file = *file;
    m_cases = json::parse(*readFile(folder / "cells.json")).at("cases");
}

void TestCellsTorch::cellsComputeWhatPyTorchComputes_data() {
    QTest::addColumn<int>("number");
    for (int i = 0; i < static_cast<int>(m_cases.size()); ++i)
        QTest::newRow(m_cases[static_cast<std::size_t>(i)].at("name").get<std::string>().c_str()) << i;
}

void TestCellsTorch::cellsComputeWhatPyTorchComputes() {
    QFETCH(int, number);
    const json& given = m_cases[static_cast<std::size_t>(number)];
    const std::string prefix = std::to_string(number) + ".";
    Params params;
    for (const auto& [name, value] : given.at("params").items()) params[name] = valueOf(value);
    for (auto& [name, value] : params) // lists are written as the graph's own resolution writes them
        if (auto* text = std::get_if<std::string>(&value); text && name != "formula")
            text->erase(std::remove(text->begin(), text->end(), ' '), text->end());
    LoneCell cell(given.at("type"), params);
    const auto& specs = cell.cell->instance().weights;
    QCOMPARE(specs.size(), given.at("weights").size());
    for (std::size_t i = 0; i < specs.size(); ++i) {
        at::NoGradGuard guard;
        cell.weights[i].copy_(tensor(prefix + "weight." + specs[i].name));
    }
    cell.context.isTraining = given.at("training");
    std::vector<at::Tensor> inputs;
    for (int i = 0; i < given.at("inputs").get<int>(); ++i) {
        const at::Tensor input = tensor(prefix + "in." + std::to_string(i));
        inputs.push_back(at::isFloatingType(input.scalar_type()) ? input.to(at::kDouble).requires_grad_(true) : input);
    }
    const auto outputs = cell(inputs);
    QCOMPARE(outputs.size(), given.at("outputs").get<std::size_t>());
    at::Tensor total;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        QVERIFY(areClose(outputs[i], tensor(prefix + "out." + std::to_string(i))));
        const at::Tensor part = (outputs[i] * tensor(prefix + "cotangent." + std::to_string(i)).to(at::kDouble)).sum();
        total = total.defined() ? total + part : part;
    }
    if (m_file->has(prefix + "auxiliary")) QVERIFY(areClose(cell.context.auxiliaryLoss.reshape({1}), tensor(prefix + "auxiliary")));
    total.backward();
    for (std::size_t i = 0; i < inputs.size(); ++i)
        if (const std::string name = prefix + "grad.in." + std::to_string(i); m_file->has(name))
            QVERIFY2(areClose(inputs[i].grad(), tensor(name)), name.c_str());
    for (std::size_t i = 0; i < specs.size(); ++i) {
        if (specs[i].isBuffer)
            QVERIFY2(areClose(cell.weights[i], tensor(prefix + "after." + specs[i].name)), specs[i].name.c_str());
        else
            QVERIFY2(areClose(cell.weights[i].grad(), tensor(prefix + "grad.weight." + specs[i].name)), specs[i].name.c_str());
    }
}

QTEST_GUILESS_MAIN(TestCellsTorch)
#include "tst_cells_torch.moc"
