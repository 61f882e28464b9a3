// A cell typed by the user: its construct, compiled once and run by as many cells as there are with this code. Operators are run one by one, as they
// stand, so that autograd sees what a cell of the catalogue would show it and every pass gives the same numbers.
#pragma once

#include "engine/script/script.h"

namespace celloom::engine {

class CellScript {
public:
    /// `spec.cell` is there. `report`, where given, is filled as far as the source could be read, also on failure.
    static ScriptResult<std::shared_ptr<const CellScript>> compile(const ScriptSpec& spec, ScriptReport* report = nullptr);
    ~CellScript();

    [[nodiscard]] const ScriptReport& report() const;

    /// One pass; may be called by several threads. `weights` in the order in which they are declared, in the type to compute in; attributes of
    /// __init__ that are tensors follow them to their type and to the inputs' device. Throws what LibTorch throws where memory runs out, unless the pass
    /// is a trial's, with a limit of time.
    ScriptResult<std::vector<at::Tensor>> construct(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& weights, at::ScalarType computeType,
                                                    bool isTraining, std::optional<double> maxSeconds = {}) const;

private:
    struct Data;
    explicit CellScript(std::unique_ptr<Data> data);
    std::unique_ptr<Data> m_data;
};

/// Holds what a cell gave for its inputs to what it declares. `outputs` as many as declared, or the error says so. Of Script and Plugin cells.
Status checkDeclared(const std::vector<graph::DeclaredPort>& inputs, const std::vector<at::Tensor>& given, const std::vector<graph::DeclaredPort>& outputs,
                     const std::vector<at::Tensor>& results);

} // namespace celloom::engine
