// Runs of a tiny model on token files, which need no tokenizer and take a second; and runs in this process, under a script of commands.
#pragma once

#include "engine/checkpoint/safetensors.h"
#include "engine/train/checkpoint.h"
#include "engine/train/llm_trainer.h"
#include "models/families/families.h"
#include "models/graph/json.h"
#include "tests/app/run_helper.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/remainder.h>

namespace celloom::test {

/// Ten rows of tokens, three steps an epoch: ten steps cross three borders. Dropout in the attention, shuffling, accumulation.
class TokenFiles {
public:
    static constexpr std::int64_t kSteps = 10;

    TokenFiles() {
        auto document = families::openModel("baichuan-tiny");
        if (!document) qFatal("%s", document.error().text().c_str());
        int count = 0;
        for (auto& [name, composite] : document->composites)
            for (graph::Cell& cell : composite.cells)
                if (cell.type == "Attention") {
                    cell.params["dropout"] = 0.1;
                    ++count;
                }
        if (count == 0) qFatal("the model has no attention");
        must(writeFileAtomically(at("dropout.cells.json"), graph::toJson(*document)));
        writeRows();
        must(engine::writeSafetensors(at("held.safetensors"), {{"input_ids", rows().slice(0, 0, 3).add(2)}}));
    }

    fs::path at(const std::string& name) const { return fs::path(m_folder.path().toStdString()) / name; }
    static at::Tensor rows() { return at::remainder(at::arange(10 * 12, at::kLong).mul(7), 61).reshape({10, 12}); }
    /// rows.safetensors, as it was or with other rows.
    void writeRows(const at::Tensor& ids = rows()) const { must(engine::writeSafetensors(at("rows.safetensors"), {{"input_ids", ids}})); }

    nlohmann::json recipe(const nlohmann::json& patch = nlohmann::json::object()) const {
        nlohmann::json out{{"model", {{"source", at("dropout.cells.json").string()}, {"overrides", {"vocab=64", "hidden=16", "layers=2", "heads=2", "intermediate=24"}}}},
                           {"data", {{"train", {at("rows.safetensors").string()}}, {"validation", {at("held.safetensors").string()}}}},
                           {"train", {{"batch_size", 2}, {"accumulation", 2}, {"max_steps", kSteps}}},
                           {"optimizer", {{"lr", 0.01}, {"clip_norm", 1}}},
                           {"schedule", {{"warmup_steps", 2}}},
                           {"evaluate", {{"every_steps", 3}}},
                           {"checkpoint", {{"every_steps", 2}, {"keep_max", 2}}},
                           {"device", "cpu"},
                           {"threads", 1},
                           {"seed", 3}};
        out.merge_patch(patch);
        return out;
    }

private:
    static void must(const Status& status) {
        if (!status) qFatal("%s", status.error().text().c_str());
    }
    QTemporaryDir m_folder;
};

/// Commands, and anything else, once a step is done; remembers what the run said of its progress.
class Script : public protocol::ChildLink {
public:
    std::map<std::int64_t, std::vector<protocol::Command>> after; // the step
    std::map<std::int64_t, std::function<void()>> act;            // after the step
    std::vector<store::Progress> seen;

    std::vector<protocol::Command> take() override {
        const auto found = after.find(m_step);
        if (found == after.end()) return {};
        const auto commands = found->second;
        after.erase(found);
        return commands;
    }
    bool waitForCommand(std::chrono::milliseconds) override { return !after.empty(); }
    void progress(const store::Progress& now, std::int64_t) override {
        m_step = now.step;
        seen.push_back(now);
        if (const auto found = act.find(m_step); found != act.end()) {
            const auto action = found->second;
            act.erase(found);
            action();
        }
    }
    void message(std::int64_t, const std::string&, const std::string&, const std::string&, const std::string&) override {}

private:
    std::int64_t m_step = 0;
};

inline engine::RunResult runInProcess(const RunWorkspace& workspace, const store::RunFolder& folder, protocol::ChildLink& link) {
    const auto writer = store::RunWriter::open(folder.database());
    if (!writer) qFatal("%s", writer.error().text().c_str());
    engine::LLMTrainer trainer({folder, workspace.path() / "cache", **writer, &link, nullptr, [](const std::string&) {}}, *recipe::Recipe::load(folder.recipe()));
    return trainer.run();
}

} // namespace celloom::test
