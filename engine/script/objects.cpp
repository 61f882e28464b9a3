// RunContext, CallbackParam and Optimizer as typed code sees them: MindSpore's names over Celloom's numbers.
#include "engine/script/compiler.h"

#include <torch/custom_class.h>

#include <limits>

namespace celloom::engine::script {
namespace {

using Dictionary = c10::Dict<std::string, double>;

/// The run that the objects show now.
struct View : c10::intrusive_ptr_target {
    ScriptRun* run = nullptr;
    ScriptRun& get() const {
        if (!run) throw std::runtime_error("run_context is only there while its method runs; keep numbers, not the object");
        return *run;
    }
};
using ViewPtr = c10::intrusive_ptr<View>;

struct OptimizerObject : torch::CustomClassHolder {
    explicit OptimizerObject(ViewPtr view) : view(std::move(view)) {}
    ViewPtr view;
};
struct ParamsObject : torch::CustomClassHolder {
    explicit ParamsObject(ViewPtr view) : view(std::move(view)), optimizer(c10::make_intrusive<OptimizerObject>(this->view)) {}
    ViewPtr view;
    c10::intrusive_ptr<OptimizerObject> optimizer;
};
struct ContextObject : torch::CustomClassHolder {
    explicit ContextObject(ViewPtr view) : view(std::move(view)), params(c10::make_intrusive<ParamsObject>(this->view)) {}
    ViewPtr view;
    c10::intrusive_ptr<ParamsObject> params;
};

using Params = c10::intrusive_ptr<ParamsObject>;
using Optimizer_ = c10::intrusive_ptr<OptimizerObject>;
using Context = c10::intrusive_ptr<ContextObject>;

double lossOf(const Params& self) {
    const ScriptRun& run = self->view->get();
    if (!run.params.hasNetOutputs) throw std::runtime_error("cb_params.net_outputs is not there before a step has ended");
    return run.params.isEmpty ? std::numeric_limits<double>::quiet_NaN() : run.params.netOutputs;
}

Dictionary resultsOf(const Params& self) {
    Dictionary out;
    for (const auto& [name, value] : self->view->get().params.evalResults) out.insert(name, value);
    return out;
}

void registerOptimizer() {
    torch::class_<OptimizerObject>("celloom", "Optimizer")
        .def_property(
            "learning_rate", [](const Optimizer_& self) { return self->view->get().rate; },
            [](const Optimizer_& self, double rate) {
                ScriptRun& run = self->view->get();
                run.rate = rate;
                run.isRateSet = true;
            });
}

template <class Member> auto whole(Member member) {
    return [member](const Params& self) { return static_cast<std::int64_t>(self->view->get().params.*member); };
}
template <class Member> auto real(Member member) {
    return [member](const Params& self) { return static_cast<double>(self->view->get().params.*member); };
}

void registerParams() {
    torch::class_<ParamsObject>("celloom", "CallbackParam")
        .def_property("cur_step_num", whole(&CallbackParams::curStepNum))
        .def_property("cur_epoch_num", whole(&CallbackParams::curEpochNum))
        .def_property("batch_num", whole(&CallbackParams::batchNum))
        .def_property("epoch_num", whole(&CallbackParams::epochNum))
        .def_property("net_outputs", &lossOf)
        .def_property("optimizer", [](const Params& self) { return self->optimizer; })
        .def_property("eval_results", &resultsOf)
        .def_property("metrics", &resultsOf)
        .def_property("mode", [](const Params& self) { return self->view->get().params.mode; })
        .def_property("loss_scale", real(&CallbackParams::lossScale))
        .def_property("parallel_mode", [](const Params& self) { return self->view->get().params.parallelMode; })
        .def_property("device_number", whole(&CallbackParams::deviceNumber))
        .def_property("dataset_sink_mode", [](const Params& self) { return self->view->get().params.datasetSinkMode; })
        // Celloom's own
        .def_property("total_steps", whole(&CallbackParams::totalSteps))
        .def_property("grad_norm", real(&CallbackParams::gradNorm))
        .def_property("tokens", whole(&CallbackParams::tokens))
        .def_property("step_seconds", real(&CallbackParams::stepSeconds))
        .def_property("is_overflow", [](const Params& self) { return self->view->get().params.isOverflow; })
        .def_property("eval_step", whole(&CallbackParams::evalStep));
}

void registerContext() {
    torch::class_<ContextObject>("celloom", "RunContext")
        .def("original_args", [](const Context& self) { return self->params; })
        .def("request_stop", [](const Context& self) { self->view->get().isStopAsked = true; })
        .def("get_stop_requested", [](const Context& self) { return self->view->get().isStopAsked; });
}

} // namespace

void registerObjects() {
    static const bool isDone = [] {
        registerOptimizer();
        registerParams();
        registerContext();
        return true;
    }();
    static_cast<void>(isDone);
}

c10::TypePtr runContextType() { return c10::getCustomClassType<Context>(); }

std::vector<std::string> membersOf(const std::string& className) {
    if (className == "RunContext") return {"original_args", "request_stop", "get_stop_requested"};
    if (className == "Optimizer") return {"learning_rate"};
    if (className == "CallbackParam")
        return {"cur_step_num", "cur_epoch_num", "batch_num", "epoch_num", "net_outputs", "optimizer", "eval_results", "metrics", "mode", "loss_scale",
                "parallel_mode", "device_number", "dataset_sink_mode", "total_steps", "grad_norm", "tokens", "step_seconds", "is_overflow", "eval_step"};
    return {};
}

struct RunObject::Data {
    ViewPtr view = c10::make_intrusive<View>();
    Context context = c10::make_intrusive<ContextObject>(view);
};

RunObject::RunObject() : m_data(std::make_unique<Data>()) {}
RunObject::~RunObject() = default;
void RunObject::show(ScriptRun* run) { m_data->view->run = run; }
c10::IValue RunObject::value() const { return c10::IValue(m_data->context); }

} // namespace celloom::engine::script
