// Exported code against the engine: what PyTorch and MindSpore gave when they ran it (tests/oracle/check_code.py) is what the engine gives.
// With CELLOOM_PYTORCH_VENV or CELLOOM_MINDSPORE_VENV set to a virtual environment, the code is run again here.
#include "engine/checkpoint/safetensors.h"
#include "engine/exec/network.h"
#include "engine/exec/runtime.h"
#include "models/base/files.h"
#include "models/code/code.h"
#include "models/families/families.h"
#include "models/graph/expand.h"
#include "models/graph/json.h"
#include "models/recipe/rules.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <QProcess>
#include <QTest>
#include <nlohmann/json.hpp>

using namespace celloom;
using namespace celloom::engine;
using nlohmann::json;

namespace {

const std::string kFolder = CELLOOM_FIXTURES "/code/";

template <class T> T must(Result<T> result) {
    if (!result) qFatal("%s", result.error().text().c_str());
    return std::move(*result);
}

json readJson(const char* name) {
    return json::parse(must(readFile(kFolder + name)));
}

graph::Document documentOf(const json& entry) {
    const std::string model = entry["model"];
    graph::Document document = must(families::openModel(model.ends_with(".json") ? kFolder + model : model));
    std::map<std::string, graph::ParamValue> values;
    for (const auto& [name, value] : entry["set"].items()) values[name] = value.get<std::int64_t>();
    if (auto status = graph::applyOverrides(document, values); !status) qFatal("%s", status.error().text().c_str());
    return document;
}

} // namespace

class TestCodeOutputs : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { setThreads(1); }
    void theFrameworksGiveTheEnginesOutput_data() { addCases(); }
    void theFrameworksGiveTheEnginesOutput();
    void theRecordedOutputsAreOfTheCodeThatIsWritten_data() { addCases(); }
    void theRecordedOutputsAreOfTheCodeThatIsWritten();
    void theCodeRunsInTheFrameworkItself_data();
    void theCodeRunsInTheFrameworkItself();

private:
    static void addCases();
    json m_cases = readJson("cases.json"), m_outputs = readJson("outputs.json");
};

void TestCodeOutputs::addCases() {
    QTest::addColumn<int>("index");
    int index = 0;
    for (const json& entry : readJson("cases.json")) QTest::newRow(entry["name"].get<std::string>().c_str()) << index++;
}

void TestCodeOutputs::theFrameworksGiveTheEnginesOutput() {
    QFETCH(int, index);
    const json& entry = m_cases[static_cast<std::size_t>(index)];
    const std::string name = entry["name"];
    const graph::Expansion expansion = graph::expand(documentOf(entry));
    QVERIFY2(expansion.ok(), expansion.firstError().text().c_str());
    recipe::TreatmentTable treatment;
    treatment.cells.resize(expansion.model.cells.size());
    const auto network = must(Network::create(expansion.model, treatment, {}));
    const auto file = must(SafetensorsFile::open(kFolder + name + ".safetensors"));
    {
        at::NoGradGuard guard;
        for (Parameter& parameter : network->parameters()) parameter.tensor.copy_(must(file->tensor("weights." + parameter.path)));
    }
    Batch batch;
    for (const auto& [input, spec] : entry["inputs"].items()) {
        const at::Tensor value = must(file->tensor("inputs." + input)).clone();
        if (input == "input_ids")
            batch.inputIds = value;
        else
            batch.columns[input] = value;
    }
    const auto outputs = must(network->forward(batch, {}));
    for (const char* framework : {"pytorch", "mindspore"}) {
        int number = 0;
        for (const graph::NamedValue& output : network->model().outputs) {
            const at::Tensor expected = must(file->tensor(std::string(framework) + "." + std::to_string(number++)));
            const at::Tensor given = outputs.at(output.name);
            QVERIFY2(given.sizes() == expected.sizes(), output.name.c_str());
            const double scale = std::max(1.0, expected.abs().max().item<double>());
            const double difference = (given - expected).abs().max().item<double>() / scale;
            qInfo("%s, %s, %s: largest difference %.2e", name.c_str(), framework, output.name.c_str(), difference);
            QVERIFY(difference <= 1e-5); // NaN is not
        }
    }
}

void TestCodeOutputs::theRecordedOutputsAreOfTheCodeThatIsWritten() {
    QFETCH(int, index);
    const json& entry = m_cases[static_cast<std::size_t>(index)];
    const graph::Document document = documentOf(entry);
    for (const code::Dialect dialect : {code::Dialect::PyTorch, code::Dialect::MindSpore}) {
        const auto written = must(code::write(document, dialect));
        QVERIFY2(sha256(written.text) == m_outputs[entry["name"].get<std::string>()][code::toString(dialect)],
                 "run tests/oracle/check_code.py --record again");
    }
}

void TestCodeOutputs::theCodeRunsInTheFrameworkItself_data() {
    QTest::addColumn<QString>("dialect");
    QTest::addColumn<QString>("variable");
    QTest::newRow("PyTorch") << QString("pytorch") << QString("CELLOOM_PYTORCH_VENV");
    QTest::newRow("MindSpore") << QString("mindspore") << QString("CELLOOM_MINDSPORE_VENV");
}

void TestCodeOutputs::theCodeRunsInTheFrameworkItself() {
    QFETCH(QString, dialect);
    QFETCH(QString, variable);
    const QString environment = qEnvironmentVariable(variable.toUtf8());
    if (environment.isEmpty())
        QSKIP(qPrintable(QString("skipped: no %1; set %2 to a virtual environment that has it").arg(QTest::currentDataTag(), variable)));
    QProcess process;
    process.start(environment + "/bin/python", {CELLOOM_SOURCE "/tests/oracle/check_code.py", "--to", dialect, "--engine",
                                                CELLOOM_BIN "/celloom-engine", "--cases", CELLOOM_FIXTURES "/code"});
    QVERIFY(process.waitForFinished(600000 * CELLOOM_TEST_TIME_FACTOR));
    const QByteArray said = process.readAllStandardOutput();
    qInfo("%s", said.constData());
    QVERIFY2(process.exitStatus() == QProcess::NormalExit && process.exitCode() == 0, said + process.readAllStandardError());
}

QTEST_GUILESS_MAIN(TestCodeOutputs)
#include "tst_code_outputs.moc"
