// Inside engine/script alone: the steps from a source to functions that LibTorch runs. Its headers are heavy; include this in few files.
#pragma once

#include "engine/script/script.h"

#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/frontend/tree_views.h>
#include <torch/csrc/jit/ir/ir.h>

#include <set>

namespace celloom::engine::script {

namespace jit = torch::jit;

// ---- syntax.cpp: the syntax tree, brought into the form that the compiler takes ----

struct ParsedClass {
    std::vector<jit::Def> methods; // __init__ first, made up where the class has none
    jit::SourceRange range;
};
struct SyntaxOptions {
    ScriptKind kind = ScriptKind::Callback;
    std::map<std::string, ScriptValue> values; // type the constructor's parameters
    bool isWidening = false; // whole numbers that later hold others are numbers from the start
};
/// Throws jit::ErrorReport. `text` is the whole cleaned source.
/// A cell's construct may stand at the left margin: a class around it is made up.
ParsedClass parseClass(const ScriptSource& source, const ScriptDefinition& definition, const std::string& file, const SyntaxOptions& options);
jit::Def parseFunction(const ScriptSource& source, const ScriptDefinition& definition, const std::string& file, const SyntaxOptions& options, bool isSchedule);
/// Parameters of a method beside self, in order.
std::vector<jit::Param> parametersOf(const jit::Def& def, bool isMethod);

// ---- operators.cpp: what compiled code may do, and how much of it ----

/// Registers the guards; any number of calls.
void registerGuards();
/// Refuses operators that are not on the list. Throws jit::ErrorReport at the first. In cells also what would make two passes differ, and `while`.
void checkOperators(const jit::Graph& graph, ScriptKind kind);
/// Puts guards into the graph: rounds of loops, lengths of texts and lists, sizes of tensors are counted while it runs.
void insertGuards(jit::Graph& graph);
/// Whether typed code may name this function of torch, math or numpy, and LibTorch's name for it.
std::optional<std::string> operatorFor(const std::string& module, const std::string& name);
std::vector<std::string> operatorNames(const std::string& module);

/// While it lives, this thread runs typed code: its budget is full, and what it prints goes to `print`.
class Budget {
public:
    explicit Budget(const Script::Print& print);
    /// A cell's: it may make tensors as large as those it is given, and take as long as they need, or `maxSeconds`.
    explicit Budget(double maxSeconds);
    ~Budget();
    Budget(const Budget&) = delete;
    Budget& operator=(const Budget&) = delete;
};

// ---- objects.cpp: RunContext, CallbackParam and Optimizer as classes of TorchScript ----

void registerObjects();
c10::TypePtr runContextType();
/// A RunContext whose object sees `run` until it is given another, or null.
class RunObject {
public:
    RunObject();
    ~RunObject();
    void show(ScriptRun* run);
    [[nodiscard]] c10::IValue value() const;

private:
    struct Data;
    std::unique_ptr<Data> m_data;
};
/// Names that objects of a class have ("CallbackParam"), for suggestions; empty for others.
std::vector<std::string> membersOf(const std::string& className);

// ---- compile.cpp ----

struct Compiled {
    std::shared_ptr<jit::CompilationUnit> unit;
    c10::ClassTypePtr type;                     // null: a function
    std::map<std::string, jit::Function*> functions; // methods, or the schedule under its name
    std::vector<c10::IValue> arguments;         // of __init__, beside self
    std::string construct;                      // of a cell: "construct" or "forward"
    ScriptReport report;
};
ScriptResult<Compiled> compileSource(const ScriptSource& source, const ScriptSpec& spec, ScriptReport* report);
/// What LibTorch threw, as a problem with a place in the source.
ScriptProblem problemOf(const std::exception& exception, const ScriptSource& source, bool isRunning);
c10::IValue toIValue(const ScriptValue& value);

} // namespace celloom::engine::script
