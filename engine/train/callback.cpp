#include "engine/train/callback.h"

#include <algorithm>

namespace celloom::engine {

std::vector<std::string> CallbackParams::names() const {
    std::vector<std::string> out{"batch_num",      "cur_step_num", "dataset_sink_mode", "device_number", "epoch_num",     "initial_step",
                                 "last_save_ckpt_step", "latest_ckpt_file", "list_callback", "loss_fn", "loss_scale_manager", "mode",
                                 "network",        "optimizer",    "parallel_mode",     "train_dataset", "train_dataset_element", "train_network"};
    const auto add = [&](bool isThere, const char* name) {
        if (isThere) out.emplace_back(name);
    };
    add(curEpochNum > 0, "cur_epoch_num");
    add(hasNetOutputs, "net_outputs");
    add(evalNetwork, "eval_network");
    add(validDataset, "valid_dataset");
    add(evalDatasetElement, "eval_dataset_element");
    add(metrics, "metrics");
    add(!evalResults.empty(), "eval_results");
    std::sort(out.begin(), out.end());
    return out;
}

} // namespace celloom::engine
