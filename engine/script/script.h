// Callbacks, metrics and schedules typed by the user, compiled by LibTorch's TorchScript front end: what a source is, and how it is called.
// Typed cells go the same way: cell_script.h.
// The source is read by source.h, held to an allow-list of operators, and bounded in loops, texts and lists. A hostile source may cost
// memory while it compiles: try it first as trial.h does.
#pragma once

#include "engine/script/source.h"
#include "engine/train/callback.h"
#include "models/graph/expand.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace celloom::engine {

/// What a cell declares beside its code: ports in order, weights by name.
struct ScriptPorts {
    std::vector<graph::DeclaredPort> inputs, outputs, weights;
};

/// What the user typed. `values` give the free names ("initial_lr") and the constructor's parameters; they win over the source's constants.
struct ScriptSpec {
    std::string name, code;
    std::map<std::string, ScriptValue> values = {};
    std::optional<ScriptPorts> cell = {}; // the source is a cell's
};

enum class ScriptKind {
    Callback, // class X(Callback): methods on_train_begin … end
    Metric,   // class X(Metric): clear, update(predictions, labels), eval
    Schedule, // def f(lr, cur_step_num): MindSpore's LearningRateScheduler
    Cell      // def construct(self, x), or class X(nn.Cell) with it
};
const char* toString(ScriptKind kind);

/// A free name or a parameter of the constructor: the form shows a field for it.
struct ScriptName {
    std::string name;
    std::optional<ScriptValue> value; // given, or the source's own
    int line = 0, column = 0;         // where it is first used
};

/// What is known of a source, also of one that cannot run.
struct ScriptReport {
    ScriptKind kind = ScriptKind::Callback;
    std::string definition; // the class' or the function's name
    std::vector<std::string> methods;
    std::vector<ScriptName> names;
    std::vector<ScriptProblem> warnings;
};

/// What an event's method sees of the run, and what it asks for.
struct ScriptRun {
    const CallbackParams& params;
    double rate = 0;       // optimizer.learning_rate
    bool isRateSet = false, isStopAsked = false; // asked for
};

class Script {
public:
    using Print = std::function<void(const std::string& line)>;

    /// Compiles and constructs; no cells, which cell_script.h has. `report`, where given, is filled as far as the source could be read, also on failure.
    static ScriptResult<std::unique_ptr<Script>> compile(const ScriptSpec& spec, ScriptReport* report = nullptr);
    ~Script();

    [[nodiscard]] const std::string& name() const;
    [[nodiscard]] const ScriptReport& report() const;
    [[nodiscard]] bool has(const std::string& method) const;
    /// Where print(...) goes; nowhere unless set.
    void setPrint(Print print);

    /// Runs __init__ anew.
    ScriptResult<void> construct();
    /// A callback's method; does nothing where the class has none of that name.
    ScriptResult<void> call(const std::string& method, ScriptRun& run);
    /// A schedule's rate.
    ScriptResult<double> rate(double rate, std::int64_t step);
    // A metric's methods. Tensors are not changed. eval gives a number; NaN is one.
    ScriptResult<void> clear();
    ScriptResult<void> update(const at::Tensor& predictions, const at::Tensor& labels);
    ScriptResult<double> eval();

    /// The attributes as a JSON object; numbers read back as the same bits.
    [[nodiscard]] std::string state() const;
    /// What could not be given back, because the class has changed: the names of attributes.
    ScriptResult<std::vector<std::string>> restore(const std::string& state);

private:
    struct Data;
    explicit Script(std::unique_ptr<Data> data);
    std::unique_ptr<Data> m_data;
};

/// MindSpore's names of a callback's methods, new and old.
const std::vector<std::string>& callbackEvents();

} // namespace celloom::engine
