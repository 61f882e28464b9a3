// One class of the file as a graph: __init__ gives hyper-parameters and layers, construct the cells and wires. Internal to engine/code.
#pragma once

#include "engine/code/values.h"
#include "models/code/code.h"
#include "models/graph/expression.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

namespace celloom::engine::code {

/// What readers of classes share: the file, and the document that grows.
struct Session {
    const CodeSource* source = nullptr;
    celloom::code::Dialect dialect = celloom::code::Dialect::MindSpore;
    std::map<std::string, const Class*> classes;
    std::map<std::string, std::string> helpers; // classes and functions that Celloom writes out itself: the cell type, or empty
    std::set<std::string> functions;            // of the source, at the left margin, beside these
    graph::Document document;
    std::vector<std::string> notes;
    std::map<std::string, graph::ParamValue> values; // given for the constructor's parameters of the class that is asked for
    std::string asked;                               // that class
    std::size_t cells = 0, steps = 0;
    mutable std::map<std::string, bool> withWeights; // composites that are known
    int depth = 0;                                   // of classes in classes
    /// The composite of a class of the file, read where that has not happened yet.
    std::function<std::string(const std::string& className, const Node& place)> compositeOf;

    void note(const std::string& text);
    /// Counts what is evaluated: methods that call each other twice would never end.
    void step(const Node& node);
    /// A composite's name that is free in the document and in the catalogue.
    [[nodiscard]] std::string freeName(const std::string& wanted) const;
};

inline constexpr std::size_t kMaxCells = 5000, kMaxSteps = 300000, kMaxItems = 20000;

[[noreturn]] void refuse(const Node& node, std::string message, std::string hint = {});

/// "TransformerBlock" as transformer_block, "ReLU" as relu.
std::string snakeName(const std::string& type);

/// "[B, T, 512] int64" as a port's shape and type; false where it is none.
bool readPortText(const std::string& text, graph::Port& port);

class ClassReader {
public:
    ClassReader(Session& session, const Class& source);
    /// The whole class. Throws Refusal.
    graph::Graph read();
    /// Whether every input has a declared shape.
    [[nodiscard]] bool hasShapes() const;

private:
    using Env = std::map<std::string, Value>;
    struct Arguments {
        std::vector<Value> positional;
        std::vector<const Node*> nodes; // of the positional ones
        std::map<std::string, Value> named;
        std::map<std::string, const Node*> namedNodes;
        const Node* call = nullptr;
    };

    /// A call of a function, and what is left of its arguments.
    struct Call {
        const std::string& name;
        const Node& place;
        Arguments arguments;

        std::optional<Value> named(std::initializer_list<const char*> keys);
        std::optional<Value> at(std::size_t index, std::initializer_list<const char*> keys);
        [[nodiscard]] const Value& tensor() const;
        void finish(std::size_t most) const;
    };

    // ---- class_reader.cpp: the class as a whole, comments ----
    void readComments();
    void readHyper(const Method& method);
    void readInit();
    void initStatement(const Node& statement);
    void initLoop(const Node& loop);
    void assignInit(const Node& target, Value value, const Node& statement);
    void setDefault(const std::string& name, const Value& value, const Node& place);
    void readConstruct();
    void readPorts(const Method& method);
    void nameOutputs(const Value& value, const Node* node);
    std::string lineComment(std::size_t offset) const;  // behind the statement on that line
    std::string commentAbove(std::size_t offset) const; // the lines of comments before it
    static std::string tagOf(const std::string& comment, const std::string& key);

    // ---- expressions.cpp: values ----
    Value evaluate(const Node& node);
    Value evaluateName(const Node& node);
    Value select(const Node& node);
    Value subscript(const Node& node);
    Value binary(const Node& node);
    Value conditional(const Node& node);
    Value each(const Node& node);
    Value call(const Node& node);
    Value callNamed(const std::string& name, const Node& node, Arguments arguments);
    std::optional<Value> arithmetic(const std::string& sign, const Value& a, const Value& b, const Node& node);
    Arguments argumentsOf(const Node& call);
    bool truth(const Node& node);
    Value sliced(Value tensor, const Node& node);
    [[nodiscard]] static bool isNumeric(const Value& value);
    [[nodiscard]] static std::string numberText(const Value& value);
    [[nodiscard]] static Value expressionOf(std::string text, int level);
    [[nodiscard]] std::optional<double> known(const Value& value) const; // under the hyper-parameters' own values
    graph::ParamValue paramOf(const Value& value, const Node& place) const;
    std::string listText(const Value& value, const Node& place) const;
    std::int64_t wholeOf(const Value& value, const Node& place) const;
    static std::string dottedName(const Node& node);

    // ---- layers.cpp: what __init__ makes ----
    Value layerNamed(const std::string& name, Arguments& arguments);
    Value classNamed(const std::string& name, Arguments& arguments);
    Value helperNamed(const std::string& type, Arguments& arguments);
    Value sequenceOf(const Arguments& arguments, Layer::Kind kind);
    Value attentionNamed(const std::string& name, Arguments& arguments);
    Value learned(const Arguments& arguments);
    void setParam(Layer& layer, const std::string& type, const std::string& param, const Value& value, const Node& place) const;
    std::string sequenceComposite(Layer& layer);

    // ---- cells.cpp: what construct does ----
    void statement(const Node& node);
    void assign(const Node& target, const Value& value, const Node& statement);
    void loop(const Node& node);
    Value callLayer(const std::shared_ptr<Layer>& layer, const Arguments& arguments);
    Value callMethod(const Method& method, const Arguments& arguments);
    Value addCell(const std::string& name, const std::string& type, std::map<std::string, graph::ParamValue> params,
                  const std::vector<Value>& inputs, const Node& place, const std::string& repeat = {});
    Value function(const std::string& type, std::map<std::string, graph::ParamValue> params, const std::vector<Value>& inputs,
                   const Node& place);
    Value elementwise(const std::string& sign, const Value& a, const Value& b, const Node& node);
    Value formula(const std::string& text, const std::vector<Value>& inputs, const Node& place);
    Value wholeFormula(const Node& node);
    std::string formulaText(const Node& node, std::vector<Value>& inputs, int level);
    [[nodiscard]] bool hasWeights(const std::string& type, const std::map<std::string, graph::ParamValue>& params, const Node& place) const;
    std::string cellNameFor(const std::string& fallback);
    [[nodiscard]] std::vector<std::string> outputNames(const std::string& type, const std::map<std::string, graph::ParamValue>& params,
                                                       const Node& place) const;
    [[nodiscard]] std::vector<std::string> inputNames(const std::string& type, const std::map<std::string, graph::ParamValue>& params,
                                                      std::size_t& needed, const Node& place) const;
    graph::CellInstance instanceOf(const std::string& type, const std::map<std::string, graph::ParamValue>& params,
                                   const Node& place) const;

    // ---- functions.cpp ----
    Value callFunction(const std::string& name, Arguments arguments);
    Value newTensor(Call& call);
    Value activation(Call& call);
    Value gelu(Call& call);
    Value softmax(Call& call);
    Value dropout(Call& call);
    Value factor(const Node& node, bool& isTransposed);
    Value matmul(Call& call);
    Value concat(Call& call);
    Value split(Call& call);
    Value reshape(Call& call);
    Value transpose(Call& call);
    Value flatten(Call& call);
    Value reduce(Call& call);
    Value branch(Call& call);
    Value where(Call& call);
    Value formulaStep(Call& call);

    Session& m_session;
    const Class& m_class;
    graph::Graph m_graph;
    graph::Scope m_scope; // hyper-parameters
    std::map<std::string, Value> m_attributes;
    std::vector<std::shared_ptr<Layer>> m_layers;
    Env m_env;
    bool m_isInit = true;
    int m_depth = 0, m_methods = 0;
    const Node* m_statement = nullptr;    // being read, for names
    std::vector<std::string> m_targets;   // variables that it assigns to
    std::string m_tag;                    // comment behind it
    std::set<std::string> m_assignedOnce; // variables with one assignment in construct
    std::set<std::string> m_names;        // of cells
    std::map<std::string, graph::Port> m_declared;
    std::vector<graph::Port> m_declaredOutputs;
    std::optional<Value> m_returned;
    const Node* m_returnNode = nullptr;
    bool m_usesLoopVariable = false;
    std::string m_loopVariable;
};

} // namespace celloom::engine::code
