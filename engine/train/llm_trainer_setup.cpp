// What a run does before its first step: the newest checkpoint, data, tokenizer, network, weights, the bigram yardstick.
#include "engine/train/llm_trainer.h"

#include "engine/checkpoint/adapter_folder.h"
#include "engine/checkpoint/model_folder.h"
#include "engine/data/bigram.h"
#include "engine/exec/device.h"
#include "engine/exec/memory.h"
#include "engine/exec/runtime.h"
#include "engine/train/recipe_loss.h"
#include "models/base/files.h"
#include "models/base/text.h"
#include "models/families/families.h"
#include "models/families/vocabulary.h"
#include "models/graph/json.h"
#include "models/recipe/checks.h"
#include "models/recipe/lora.h"
#include "models/recipe/memory_plan.h"
#include "models/recipe/parameter_table.h"
#include "models/recipe/precision_summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace celloom::engine {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kBaselineRows = 200000; // bounds the yardstick's time and memory on large corpora
constexpr std::array kFixedFields{"seed",          "train.batch_size", "train.accumulation", "train.sequence_length", "train.drop_last",
                                  "data.documents", "data.attention",   "data.shuffle",       "data.validation_fraction",
                                  "data.columns",   "data.template",    "data.mask_prompt",   "data.truncation",
                                  "data.untrainable", "data.packing",   "data.group_by_length", "data.image_channels", "data.image_width",
                                  "data.image_height", "data.image_crop", "data.image_flip", "data.image_mean", "data.image_deviation"};
constexpr const char* kCorpusFile = "corpus.json"; // in the run's folder: files, hashes and encodings, from before the first checkpoint on

/// Files by encoding.
std::map<std::string, std::size_t> countsOf(const std::vector<CorpusFile>& files) {
    std::map<std::string, std::size_t> counts;
    for (const CorpusFile& file : files) ++counts[file.encoding];
    return counts;
}

/// "GB 18030 (1 file), UTF-8 (120 files)"
std::string encodingsOf(const std::vector<CorpusFile>& files) {
    std::string out;
    for (const auto& [encoding, count] : countsOf(files)) out += (out.empty() ? "" : ", ") + encoding + " (" + counted(count, "file") + ")";
    return out;
}

/// Whether `path` is what a killed process left while it wrote one of these files with writeFileAtomically.
bool isTemporaryOf(const fs::path& path, const std::vector<fs::path>& files) {
    constexpr std::size_t kRandomLetters = 6; // of mkostemp, after a dot
    return std::any_of(files.begin(), files.end(), [&](const fs::path& file) {
        return path.string().size() == file.string().size() + 1 + kRandomLetters && path.string().starts_with(file.string() + ".");
    });
}

/// Writes an override into the document itself, so that checkpoints carry it.
Status override(graph::Document& document, const std::string& name, const graph::ParamValue& value) {
    auto& hyper = document.main.hyper;
    const auto found = std::find_if(hyper.begin(), hyper.end(), [&](const graph::HyperParameter& h) { return h.name == name; });
    if (found != hyper.end()) {
        found->value = value;
        return {};
    }
    std::string known;
    for (const graph::HyperParameter& h : hyper) known += (known.empty() ? "" : ", ") + h.name;
    return fail("The model has no hyper-parameter \"" + name + "\".", known.empty() ? "It has none." : "It has: " + known + ".", "model.overrides");
}

/// What computes in which type, where that is not float32 throughout, and a warning where the machine has no instructions for it.
void sayPrecision(RunReporter& reporter, const Network& network) {
    std::map<recipe::FloatType, std::size_t> counts;
    for (const recipe::CellPrecision& cell : network.precision().cells) ++counts[cell.compute];
    if (counts.size() == 1 && counts.contains(recipe::FloatType::Float32)) return;
    nlohmann::json data{{"level", recipe::nameOf(network.options().ampLevel)}};
    std::string text;
    for (const auto& [type, count] : counts) {
        text += (text.empty() ? "" : ", ") + counted(count, "cell") + " in " + recipe::nameOf(type);
        data[recipe::nameOf(type)] = count;
    }
    reporter.info("precision", "amp_level " + std::string(recipe::nameOf(network.options().ampLevel)) + ": " + text + ".", data.dump());
    for (const recipe::FloatType type : recipe::slowTypes(network.precision(), halfSupportOf(network.options().device)))
        reporter.warning("slow_half_type", {std::string("This machine has no instructions for ") + recipe::nameOf(type) +
                                                ": it saves memory here, but no time.",
                                            "Choose amp_level O0, or the other half type where the machine has it.", "precision.half_type"},
                         nlohmann::json{{"type", recipe::nameOf(type)}}.dump());
}

} // namespace

Status LLMTrainer::readScripts() {
    CELLOOM_TRY_STATUS(m_setup.scriptsTried);
    CELLOOM_TRY(scripts, RunScripts::compile(m_recipe, m_reporter));
    m_scripts = std::move(scripts);
    return {};
}

Result<Metrics> LLMTrainer::chosenMetrics() const {
    CELLOOM_TRY(metrics, makeMetrics(m_recipe));
    for (const auto& [name, metric] : m_scripts->metrics())
        if (!metrics.emplace(name, metric).second) return fail("The metric " + name + " is measured already.", "Give yours another name.", "callbacks.scripts");
    return metrics;
}

Status LLMTrainer::findCheckpoint() {
    m_isResume = fs::exists(m_setup.folder.path / kCorpusFile);
    if (!m_isResume) return {};
    CELLOOM_TRY_STATUS(removeLeftovers());
    CELLOOM_TRY(found, newestCheckpoint(m_setup.folder.checkpoints(), [&](const Error& error) {
        m_reporter.warning("damaged_checkpoint", error);
    }));
    m_found = std::move(found);
    // Under their own names they would count among those kept, and be taken for the newest.
    for (const fs::path& damaged : m_found.damaged) CELLOOM_TRY_STATUS(setAside(damaged));
    m_state = m_found.state;
    const bool isFromStart = m_found.path.empty();
    CELLOOM_TRY_STATUS(m_setup.writer.supersedeAfter(isFromStart ? -1 : m_state.model.step));
    m_reporter.info("resumed", isFromStart ? "Resumed from the beginning: no checkpoint had been saved."
                                           : "Resumed from " + m_found.path.filename().string() + ".",
                    isFromStart ? std::string("{}") : nlohmann::json{{"checkpoint", m_found.path.filename().string()}, {"step", m_state.model.step}}.dump());
    return isFromStart ? Status() : checkRecipeUnchanged();
}

/// What a killed process left of files that it was writing.
Status LLMTrainer::removeLeftovers() {
    std::vector<fs::path> doomed;
    std::error_code code;
    for (fs::directory_iterator item(m_setup.folder.path, code), end; !code && item != end; item.increment(code))
        if (isTemporaryOf(item->path(), {m_setup.folder.path / kCorpusFile, m_setup.folder.graph(), m_setup.folder.tokenizer()})) doomed.push_back(item->path());
    for (const fs::path& path : doomed)
        if (fs::remove(path, code); code) return fail("cannot be removed: " + code.message() + ".", {}, path.string());
    return {};
}

/// What this resume changes from its first step on, said in the log; decides what becomes of a rate that was fixed by hand and of the loss scale.
Model::State LLMTrainer::stateToGoOnFrom() {
    Model::State state = m_found.state.model;
    m_change = recipe::resumeEffect(m_found.state.settings, m_recipe, state.step, m_state.stepsPerEpoch, state.fixedRate);
    if (!m_change.keepsFixedRate) state.fixedRate.reset();
    if (const auto fresh = LossScale::of(m_recipe); m_change.restartsLossScale && fresh) state.lossScale = fresh->state();
    const std::vector<std::string> sentences = recipe::sentencesOf(m_change);
    if (sentences.empty()) return state;
    nlohmann::json data{{"step", state.step + 1}, {"changes", nlohmann::json::array()}, {"total_steps", m_change.total}, {"total_steps_before", m_change.totalBefore},
                        {"keeps_fixed_rate", m_change.keepsFixedRate}, {"restarts_loss_scale", m_change.restartsLossScale}};
    for (const recipe::SettingChange& change : m_change.changes) data["changes"].push_back({{"key", change.key}, {"before", change.before}, {"now", change.now}});
    if (m_change.fixedRate) data["fixed_rate"] = *m_change.fixedRate;
    if (std::isfinite(m_change.rate)) data["rate"] = m_change.rate;
    if (std::isfinite(m_change.rateBefore)) data["rate_before"] = m_change.rateBefore;
    std::string message = "Changed from step " + std::to_string(state.step + 1) + " on:";
    for (std::size_t i = 0; i < sentences.size(); ++i) message += (i == 0 ? " " : i < m_change.changes.size() ? ", " : i == m_change.changes.size() ? ". " : " ") + sentences[i];
    if (sentences.size() == m_change.changes.size()) message += ".";
    m_reporter.info("changed", message, data.dump());
    return state;
}

Status LLMTrainer::checkRecipeUnchanged() {
    for (const auto& [key, before] : m_state.recipe)
        if (recipe::findField(key) && m_recipe.toText(key) != before)
            return fail("was " + before + " when the run began and is " + m_recipe.toText(key) + " now; the position in the data would be lost.",
                        "Set it back, or start a new run from the checkpoint's weights.", key);
    return {};
}

void LLMTrainer::setThreads() {
    // A resumed run keeps its number, unless the recipe now asks for another.
    const auto before = m_state.settings.find("threads");
    const bool isChanged = before != m_state.settings.end() && before->second != m_recipe.toText("threads");
    const std::int64_t asked = m_found.path.empty() || isChanged ? m_recipe.integer("threads") : m_state.threads;
    m_state.threads = engine::setThreads(static_cast<int>(asked));
}

Status LLMTrainer::readData() {
    CELLOOM_TRY(files, findDataFiles(m_recipe));
    m_files = std::move(files);
    if (m_files.areInstructions) return readConversations();
    if (m_files.areTensors) return {}; // they are read once the graph is known
    if (!m_files.areTokens) return readText();
    const fs::path tokenizer = m_setup.folder.tokenizer();
    if (m_recipe.text("tokenizer.path").empty() && !fs::exists(tokenizer)) return {};
    CELLOOM_TRY(loaded, obtainTokenizer(m_recipe, {}, tokenizer));
    m_tokenizer = std::move(loaded);
    return {};
}

Status LLMTrainer::readText() {
    m_reporter.stage("reading text");
    CELLOOM_TRY(split, readTextSplit(m_recipe, m_files));
    CELLOOM_TRY_STATUS(checkCorpus(split.files));
    m_reporter.info("data", "Read " + counted(split.files.size(), "file") + ", " + encodingsOf(split.files) + ": " + counted(split.train.size(), "document") +
                                " to learn from, " + std::to_string(split.validation.size()) + " held out.",
                    nlohmann::json{{"files", split.files.size()}, {"encodings", countsOf(split.files)}, {"documents", split.train.size()},
                                   {"held_out", split.validation.size()}}.dump());
    m_reporter.stage("training the tokenizer");
    const fs::path path = m_setup.folder.tokenizer();
    CELLOOM_TRY(tokenizer, obtainTokenizer(m_recipe, split.train, path));
    m_tokenizer = std::move(tokenizer);
    CELLOOM_TRY(hash, sha256OfFile(path));
    m_reporter.stage("tokenising");
    CELLOOM_TRY(data, prepareText(m_recipe, std::move(split), *m_tokenizer, hash, m_setup.cacheFolder, [this] { return !m_control.isStopAsked(); }));
    m_data = std::move(data);
    m_reporter.info("tokenizer", "The tokenizer has " + std::to_string(m_tokenizer->vocabSize()) + " pieces; " + counted(m_data.train->size(), "sequence") +
                                     " of " + std::to_string(m_data.sequenceLength) + " tokens to learn from.",
                    nlohmann::json{{"vocabulary", m_tokenizer->vocabSize()}, {"sequences", m_data.train->size()},
                                   {"sequence_length", m_data.sequenceLength}}.dump());
    return {};
}

/// A resumed run continues in the middle of its data, so these must be the files that it began with.
Status LLMTrainer::checkCorpus(const std::vector<CorpusFile>& files) {
    const fs::path path = m_setup.folder.path / kCorpusFile;
    if (m_isResume) {
        CELLOOM_TRY(text, readFile(path, 64 << 20));
        CELLOOM_TRY(before, corpusFromJson(text, path.string()));
        CELLOOM_TRY_STATUS(checkUnchanged(before, files));
    }
    m_state.corpus = files;
    return writeFileAtomically(path, toJson(files));
}

Status LLMTrainer::buildDocument() {
    CELLOOM_TRY(document, families::openModel(m_recipe.text("model.source")));
    m_document = std::move(document);
    CELLOOM_TRY(overrides, m_recipe.modelOverrides());
    if (m_tokenizer && families::hasVocabulary(m_document) && m_recipe.text("model.weights").empty())
        overrides.emplace(families::kVocabulary, std::int64_t(m_tokenizer->vocabSize())); // an override of the user's goes first
    for (const auto& [name, value] : overrides) CELLOOM_TRY_STATUS(override(m_document, name, value));
    return writeFileAtomically(m_setup.folder.graph(), graph::toJson(m_document));
}

Status LLMTrainer::chooseDevice() {
    auto choice = openDevice(m_recipe.text("device"));
    if (!choice) {
        m_isDeviceMissing = true;
        return tl::unexpected(choice.error());
    }
    m_device = choice->device;
    m_state.device = m_device.is_cpu() ? "cpu" : "cuda";
    if (!m_device.is_cpu()) resetTensorMemoryPeak(m_device);
    if (!choice->note.empty()) m_reporter.info("device", choice->note);
    return {};
}

/// Where and in which types the network computes.
NetworkOptions LLMTrainer::networkOptions() const {
    NetworkOptions options;
    options.device = m_device;
    const recipe::PrecisionSettings precision = recipe::precisionSettingsOf(m_recipe);
    options.ampLevel = precision.level;
    options.halfType = scalarTypeOf(precision.half);
    options.allow = precision.allow;
    options.deny = precision.deny;
    options.cells = m_setup.cells;
    return options;
}

Status LLMTrainer::buildNetwork() {
    m_reporter.stage("building the network");
    CELLOOM_TRY_STATUS(buildDocument());
    graph::Expansion expansion = graph::expand(m_document);
    if (!expansion.ok()) return tl::unexpected(expansion.firstError());
    const std::int64_t vocabulary = families::vocabularyOf(expansion.model);
    if (m_tokenizer && vocabulary > 0 && m_tokenizer->vocabSize() > vocabulary)
        return fail("The tokenizer has " + std::to_string(m_tokenizer->vocabSize()) + " pieces, the model's vocabulary " + std::to_string(vocabulary) + ".",
                    "Choose the tokenizer that belongs to the model, or raise its vocabulary.", "tokenizer.path");
    CELLOOM_TRY(treatment, recipe::treatmentOf(m_recipe, expansion.model));
    m_treatment = std::move(treatment);
    for (const recipe::Problem& problem : recipe::modelWarnings(m_recipe, expansion.model))
        m_reporter.warning("recipe", {problem.message, problem.hint, problem.key});

    CELLOOM_TRY_STATUS(chooseDevice());
    NetworkOptions options = networkOptions();
    options.seed = static_cast<std::uint64_t>(m_recipe.integer("seed"));
    options.initStd = m_recipe.real("model.init_std");
    options.initialise = m_found.path.empty() && m_recipe.text("model.weights").empty();
    const std::string& baseType = m_recipe.text("lora.base_type");
    if (m_treatment.hasAdapters()) options.baseType = baseType == "bfloat16" ? at::kBFloat16 : baseType == "float16" ? at::kHalf : at::kFloat;
    CELLOOM_TRY(network, Network::create(std::move(expansion.model), m_treatment, options));
    m_network = std::move(network);
    sayPrecision(m_reporter, *m_network);
    sayWhatLearns();
    CELLOOM_TRY(optimizer, makeOptimizer(m_recipe, m_network->parameters(), m_treatment));
    m_optimizer = std::move(optimizer);
    for (const char* key : kFixedFields) m_state.recipe[key] = m_recipe.toText(key);
    if (m_files.areInstructions) return prepareConversations();
    if (m_files.areTensors) return prepareTensorRows();
    return m_files.areTokens ? prepareTokenRows() : Status();
}

void LLMTrainer::sayWhatLearns() {
    const auto counts = recipe::countParameters(recipe::parameterTable(m_network->model(), m_treatment));
    if (counts.trainable == counts.base) return;
    // gradients and the optimizer's state, float32
    const auto bytesEach = std::int64_t(4) * (1 + recipe::optimizerMemoryOf(m_recipe).states);
    char percent[32];
    std::snprintf(percent, sizeof percent, "%.2f", 100 * static_cast<double>(counts.trainable) / static_cast<double>(counts.base + counts.adapters));
    const std::string cells = counts.adaptedCells > 0 ? " Adapters stand beside " + counted(static_cast<std::size_t>(counts.adaptedCells), "cell") + "." : "";
    m_reporter.info("trainable", std::string("Trainable ") + percent + " %: " + std::to_string(counts.trainable) + " of " +
                                     std::to_string(counts.base + counts.adapters) + " parameters; their gradients and moments take " +
                                     std::to_string(bytesEach * counts.trainable) + " bytes, of a full training " +
                                     std::to_string(bytesEach * counts.base) + "." + cells,
                    nlohmann::json{{"trainable", counts.trainable}, {"base", counts.base}, {"adapters", counts.adapters}, {"cells", counts.adaptedCells},
                                   {"state_bytes", bytesEach * counts.trainable}, {"full_state_bytes", bytesEach * counts.base}}.dump());
}

Status LLMTrainer::prepareTokenRows() {
    m_reporter.stage("reading text");
    const std::int64_t vocabulary = families::vocabularyOf(m_network->model());
    CELLOOM_TRY(data, prepareTokens(m_recipe, m_files, vocabulary));
    m_data = std::move(data);
    CELLOOM_TRY_STATUS(checkCorpus(m_data.files));
    m_reporter.info("data", "Read " + counted(m_data.files.size(), "token file") + ": " + std::to_string(m_data.train->size()) + " sequences of " +
                                std::to_string(m_data.sequenceLength) + " tokens to learn from.",
                    nlohmann::json{{"token_files", m_data.files.size()}, {"sequences", m_data.train->size()},
                                   {"sequence_length", m_data.sequenceLength}}.dump());
    return {};
}

Status LLMTrainer::prepareTensorRows() {
    m_reporter.stage("reading columns");
    CELLOOM_TRY(data, prepareTensors(m_recipe, m_files));
    m_data = std::move(data);
    CELLOOM_TRY_STATUS(checkCorpus(m_data.files));
    if (!m_data.labels.empty()) CELLOOM_TRY_STATUS(writeFileAtomically(m_setup.folder.path / "labels.json", m_data.labels));
    const std::int64_t held = m_data.validation ? m_data.validation->size() : 0;
    const std::vector<std::string> columns = m_data.train->columns();
    m_reporter.info("data", "Read " + counted(std::ssize(m_data.files), "file") + " of the columns " + joined(columns) + ": " + counted(m_data.train->size(), "row") +
                                " to learn from, " + std::to_string(held) + " held out.",
                    nlohmann::json{{"tensor_files", m_data.files.size()}, {"columns", columns}, {"rows", m_data.train->size()}, {"held_out", held}}.dump());
    return {};
}

/// The checkpoint that is resumed from, else the recipe's model.weights, else what the network was drawn with.
Status LLMTrainer::loadWeightsToStartFrom() {
    ModelOptions options;
    options.batchSize = m_recipe.integer("train.batch_size");
    options.accumulation = m_recipe.integer("train.accumulation");
    options.tail = m_recipe.flag("train.drop_last") ? EpochTail::Drop : EpochTail::Run;
    options.shuffle = m_recipe.flag("data.shuffle");
    options.groupsByLength = m_files.areInstructions && m_recipe.flag("data.group_by_length");
    options.runsEmptySteps = m_files.areInstructions && m_recipe.text("data.untrainable") == "keep";
    options.seed = static_cast<std::uint64_t>(m_recipe.integer("seed"));
    options.clipNorm = m_recipe.real("optimizer.clip_norm");
    CELLOOM_TRY(loss, makeLoss(m_recipe, *m_network, *m_data.train));
    CELLOOM_TRY(lossScale, LossScale::of(m_recipe));
    options.lossScale = lossScale;
    CELLOOM_TRY(metrics, chosenMetrics());
    m_model = std::make_unique<Model>(*m_network, loss, m_optimizer.get(), metrics, options);
    if (m_model->planOf(*m_data.train).stepsPerEpoch() == 0)
        return fail("The data fills no step: it has " + std::to_string(m_data.train->size()) + " sequences, a step needs " +
                        std::to_string(options.batchSize * options.accumulation) + ".",
                    "Lower the batch size or the accumulation, or do not drop the last batch.", "train.batch_size");
    m_state.stepsPerEpoch = m_model->planOf(*m_data.train).stepsPerEpoch();
    CELLOOM_TRY(schedule, recipe::scheduleOf(m_recipe, totalSteps(), m_state.stepsPerEpoch));
    options.schedule = std::move(schedule);
    m_model = std::make_unique<Model>(*m_network, loss, m_optimizer.get(), metrics, options);

    if (const std::string& weights = m_recipe.text("model.weights"); !weights.empty() && (m_found.path.empty() || m_treatment.hasAdapters())) {
        CELLOOM_TRY(folder, openModelFolder(weights));
        if (!folder.adapter.empty())
            return fail("The weights to start from are a base and an adapter.", "Merge them into one model first (celloom-engine merge).", "model.weights");
        CELLOOM_TRY_STATUS(loadWeights(folder, *m_network));
    }
    if (const std::string& adapter = m_recipe.text("lora.adapter"); m_found.path.empty() && m_treatment.hasAdapters() && !adapter.empty()) {
        CELLOOM_TRY(folder, openAdapterFolder(adapter));
        CELLOOM_TRY_STATUS(loadTrainedAdapter(*m_network, folder));
    }
    if (m_found.path.empty()) return {};
    if (m_found.state.model.step > totalSteps())
        return fail(std::to_string(m_found.state.model.step) + " steps are done already, more than the " + std::to_string(totalSteps()) + " asked for.",
                    "Give more than are done, or start a new run whose model.weights is an earlier checkpoint.", "train.max_steps");
    if (m_found.state.model.step == totalSteps())
        m_reporter.info("complete", "All " + std::to_string(totalSteps()) + " steps are done already. To train on, resume with more epochs or steps.",
                        nlohmann::json{{"steps", totalSteps()}}.dump());
    CELLOOM_TRY_STATUS(loadCheckpoint(m_found.path, *m_network, *m_optimizer));
    m_model->restore(stateToGoOnFrom());
    return {};
}

Status LLMTrainer::measureBaseline() {
    if (m_files.areTokens || m_files.areTensors || m_files.areInstructions || !m_data.validation || m_state.baselinePerplexity > 0) return {};
    m_reporter.stage("bigram baseline");
    const BigramModel bigram = BigramModel::fit(*m_data.train, m_tokenizer->vocabSize(), kBaselineRows);
    m_state.baselinePerplexity = bigram.perplexity(*m_data.validation, m_recipe.integer("evaluate.max_batches") * m_recipe.integer("train.batch_size"));
    m_reporter.metric("baseline/bigram_perplexity", m_state.baselinePerplexity);
    char perplexity[32];
    std::snprintf(perplexity, sizeof perplexity, "%.2f", m_state.baselinePerplexity);
    m_reporter.info("baseline", std::string("An interpolated bigram model has perplexity ") + perplexity +
                                    " on the validation data: a language model that learned something goes below it.",
                    nlohmann::json{{"perplexity", m_state.baselinePerplexity}}.dump());
    return {};
}

} // namespace celloom::engine
