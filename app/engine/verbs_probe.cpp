// The verb probe: one batch through a model, what lies on each wire as it gets there.
#include "app/engine/model_inputs.h"
#include "app/engine/model_options.h"
#include "app/engine/temporary_folder.h"
#include "engine/data/preview.h"
#include "engine/data/random_batch.h"
#include "engine/data/tensor_files.h"
#include "engine/exec/probe_report.h"
#include "engine/train/recipe_loss.h"
#include "models/base/text.h"
#include "models/families/vocabulary.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

namespace celloom::app {
namespace {

struct ProbeArguments : ModelOptions {
    std::vector<std::string> texts, cells, sizes;
    std::string recipe, inputs;
    std::int64_t rows = 2, length = 16, mapSize = 64, bins = 32, mapRow = 0;
    bool gradients = false;
    DrawnWeights drawn;
};

/// What goes through the graph, and the loss where there are labels.
struct Given {
    engine::Batch batch;
    std::shared_ptr<const engine::Loss> loss;
};

std::shared_ptr<const engine::Loss> languageModelLossOf(const engine::Batch& batch, const engine::Network& network) {
    const auto& outputs = network.model().outputs;
    const bool hasLogits = std::any_of(outputs.begin(), outputs.end(), [](const graph::NamedValue& output) { return output.name == "logits"; });
    return batch.labels.defined() && hasLogits ? std::make_shared<engine::LanguageModelLoss>() : nullptr;
}

/// The texts as rows, padded at their ends; labels are their own tokens.
Result<Given> fromTexts(const std::vector<std::string>& texts, const Loaded& loaded) {
    if (loaded.folder.tokenizer.empty()) return fail("The model has no tokenizer.model, so it reads no text.", "Give --data, --inputs or nothing.", "--text");
    CELLOOM_TRY(tokenizer, engine::Tokenizer::load(loaded.folder.tokenizer));
    std::vector<std::vector<std::int64_t>> rows;
    std::size_t longest = 0;
    for (const std::string& text : texts) {
        if (!isUtf8(text)) return fail("is no UTF-8.", {}, "--text");
        rows.push_back(tokenizer->encode(text));
        if (tokenizer->bos() >= 0) rows.back().insert(rows.back().begin(), tokenizer->bos());
        if (rows.back().empty()) return fail("is empty.", "Give at least one character.", "--text");
        longest = std::max(longest, rows.back().size());
    }
    const auto count = std::ssize(rows), length = static_cast<std::int64_t>(longest);
    engine::Batch batch;
    batch.inputIds = at::full({count, length}, std::max<std::int64_t>(tokenizer->pad(), 0), at::kLong);
    batch.labels = at::full({count, length}, -100, at::kLong);
    batch.attentionMask = at::zeros_like(batch.inputIds);
    for (std::int64_t r = 0; r < count; ++r) {
        const auto& row = rows[static_cast<std::size_t>(r)];
        for (const at::Tensor* tensor : {&batch.inputIds, &batch.labels}) std::copy(row.begin(), row.end(), tensor->data_ptr<std::int64_t>() + r * length);
        std::fill_n(batch.attentionMask.data_ptr<std::int64_t>() + r * length, row.size(), 1);
    }
    return Given{batch, languageModelLossOf(batch, *loaded.network)};
}

/// The first batch that a training by this recipe would see, and its loss.
Result<Given> fromRecipe(const ProbeArguments& arguments, const Loaded& loaded) {
    CELLOOM_TRY(fromFile, recipe::Recipe::load(arguments.recipe));
    recipe::Recipe recipe = fromFile.withAbsolutePaths();
    if (recipe.text("tokenizer.path").empty() && !loaded.folder.tokenizer.empty())
        CELLOOM_TRY_STATUS(recipe.set("tokenizer.path", std::filesystem::absolute(loaded.folder.tokenizer).string()));
    CELLOOM_TRY(folder, TemporaryFolder::create());
    CELLOOM_TRY(preview, engine::previewData(recipe, folder.path(), arguments.rows));
    CELLOOM_TRY(loss, engine::makeLoss(recipe, *loaded.network, *preview.dataset));
    return Given{preview.batch, std::move(loss)};
}

/// A file with input_ids as `forward` reads it, or one of columns that are named as the graph's inputs.
Result<Given> fromFile(const std::string& path, const Loaded& loaded) {
    const auto& inputs = loaded.network->model().inputs;
    if (std::any_of(inputs.begin(), inputs.end(), [](const graph::NamedValue& input) { return input.name == "input_ids"; })) {
        CELLOOM_TRY(batch, readBatch(path));
        return Given{batch, languageModelLossOf(batch, *loaded.network)};
    }
    CELLOOM_TRY(rows, engine::openTensorFiles({path}));
    return Given{engine::collate(*rows, 0, rows->size()), nullptr};
}

Result<Given> drawBatch(const ProbeArguments& arguments, const Loaded& loaded) {
    engine::RandomBatchOptions options{arguments.rows, arguments.length, {}, arguments.drawn.seed};
    for (const std::string& size : arguments.sizes) {
        const std::size_t equals = size.find('=');
        std::int64_t number = 0;
        if (equals == std::string::npos || !readNumber(std::string_view(size).substr(equals + 1), number)) return fail("is " + inQuotes(size) + ", expected name=number.", {}, "--size");
        options.symbols[size.substr(0, equals)] = number;
    }
    CELLOOM_TRY(batch, engine::randomBatch(loaded.network->model(), options));
    if (batch.inputIds.defined()) batch.labels = batch.inputIds;
    return Given{batch, languageModelLossOf(batch, *loaded.network)};
}

Result<Given> obtain(const ProbeArguments& arguments, const Loaded& loaded) {
    if ((!arguments.texts.empty()) + !arguments.recipe.empty() + !arguments.inputs.empty() > 1)
        return fail("Two batches are given.", "Give one of --text, --data and --inputs.");
    CELLOOM_TRY(given, !arguments.texts.empty()     ? fromTexts(arguments.texts, loaded)
                       : !arguments.recipe.empty() ? fromRecipe(arguments, loaded)
                       : !arguments.inputs.empty() ? fromFile(arguments.inputs, loaded)
                                                   : drawBatch(arguments, loaded));
    CELLOOM_TRY_STATUS(checkValues(given.batch, families::vocabularyOf(loaded.network->model())));
    return given;
}

Result<engine::ProbeOptions> optionsOf(const ProbeArguments& arguments, const engine::Network& network) {
    engine::ProbeOptions out{arguments.bins, arguments.mapSize, arguments.mapRow, {}, arguments.gradients, arguments.drawn.seed};
    for (const std::string& text : arguments.cells) {
        CELLOOM_TRY(pattern, recipe::PathPattern::parse(text));
        const auto& cells = network.model().cells;
        if (std::none_of(cells.begin(), cells.end(), [&](const graph::CellInstance& cell) { return engine::liesUnder(cell.path, pattern); }))
            return fail(inQuotes(text) + " matches no cell.", "Cells are named as " + inQuotes(cells.front().path) + ".", "--cells");
        out.cells.push_back(std::move(pattern));
    }
    return out;
}

/// Lines to the terminal or a program, and to a file.
class Report {
public:
    Report(const engine::Network& network, bool isJson) : m_table(network.model()), m_isJson(isJson) {}
    ~Report() {
        if (m_file) std::fclose(m_file);
    }
    Report(const Report&) = delete;
    Report& operator=(const Report&) = delete;

    Status open(const std::string& path) {
        if (path.empty()) return {};
        m_file = std::fopen(path.c_str(), "wxe");
        if (m_file) return {};
        return errno == EEXIST ? fail("exists already.", "Give a new name; nothing is overwritten.", path) : fail(std::string("cannot be written: ") + std::strerror(errno) + ".", {}, path);
    }
    engine::ProbeListener listener() {
        engine::ProbeListener out;
        out.input = [this](const engine::ProbedWire& wire) {
            json([&] { return engine::inputLine(wire); });
            text([&] { return m_table.row(wire); });
        };
        out.cell = [this](const engine::ProbedCell& cell) {
            json([&] { return engine::cellLine(cell); });
            for (const engine::ProbedWire& wire : cell.wires) {
                text([&] { return m_table.row(wire); });
                m_bad += wire.values.finite() < wire.values.count;
            }
        };
        out.gradient = [this](const engine::ProbedWire& wire) {
            if (!m_hasGradients) text([] { return std::string("\ngradients of the loss"); });
            m_hasGradients = true;
            json([&] { return engine::gradientLine(wire); });
            text([&] { return m_table.row(wire); });
        };
        return out;
    }
    void begin(const std::string& line) {
        json([&] { return line; });
        text([&] { return m_table.header(); });
    }
    void end(const engine::ProbeSummary& summary, bool hasLoss, double seconds) {
        json([&] { return engine::endLine(summary, hasLoss, seconds); });
        for (const std::string& path : summary.notComputed) text([&] { return path + ": not computed for this batch"; });
        if (hasLoss) text([&] { return "loss " + roundedText(summary.loss); });
        if (!m_isJson && m_bad > 0) std::fprintf(stderr, "%zu wires have values that are no finite numbers, marked with !!.\n", m_bad);
    }
    Status close() {
        if (!m_file) return {};
        std::FILE* file = std::exchange(m_file, nullptr);
        const bool isWhole = std::ferror(file) == 0;
        if (std::fclose(file) != 0 || !isWhole) return fail(std::string("cannot be written: ") + std::strerror(errno) + ".", "Is the disk full?");
        return {};
    }

private:
    /// Flushed line by line: whoever reads along sees how far it is.
    template <class Line> void json(const Line& make) {
        if (!m_isJson && !m_file) return;
        const std::string line = make() + "\n";
        if (m_file) std::fwrite(line.data(), 1, line.size(), m_file);
        if (!m_isJson) return;
        std::fwrite(line.data(), 1, line.size(), stdout);
        std::fflush(stdout);
    }
    template <class Line> void text(const Line& make) {
        if (m_isJson) return;
        std::printf("%s\n", make().c_str());
        std::fflush(stdout);
    }

    engine::ProbeTable m_table;
    bool m_isJson, m_hasGradients = false;
    std::FILE* m_file = nullptr;
    std::size_t m_bad = 0;
};

void runProbe(const ProbeArguments& arguments, Invocation& invocation) {
    auto loaded = load(arguments, invocation, &arguments.drawn);
    if (!loaded) return;
    const auto given = obtain(arguments, *loaded);
    if (!given) return invocation.fail(given.error(), codeOf(given.error()));
    const auto options = optionsOf(arguments, *loaded->network);
    if (!options) return invocation.fail(options.error(), protocol::BadInput);
    Report report(*loaded->network, invocation.isJson);
    if (auto status = report.open(arguments.out); !status) return invocation.fail(status.error());
    const auto begun = std::chrono::steady_clock::now();
    report.begin(engine::beginLine(loaded->network->model(), given->batch, *options));
    const auto summary = engine::probe(*loaded->network, given->batch, given->loss.get(), *options, report.listener());
    if (!summary) return invocation.fail(summary.error(), codeOf(summary.error()));
    report.end(*summary, given->loss != nullptr, std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
    if (auto status = report.close(); !status) return invocation.fail({status.error().message, status.error().hint, arguments.out});
}

} // namespace

void addProbeVerb(CLI::App& app, Invocation& invocation) {
    auto arguments = std::make_shared<ProbeArguments>();
    CLI::App* verb = app.add_subcommand("probe", "Sends one batch through a model and tells what is on each wire: shape, type, mean, spread, NaN; with --json histograms and attention maps");
    verb->add_option("model", arguments->model, std::string(kModelHelp) + ", a .cells.json document or a preset's name")->required();
    verb->add_option("--text", arguments->texts, "A text; may be repeated: each is a row. Without --text, --data and --inputs a batch is drawn from the seed")->allow_extra_args(false);
    verb->add_option("--data", arguments->recipe, "A recipe: the first batch that its training would see, and its loss");
    verb->add_option("--inputs", arguments->inputs, "safetensors with input_ids [B,T] as for forward, or with the graph's inputs by name");
    verb->add_option("--batch", arguments->rows, "Rows of the batch that is drawn, or of the recipe's")->check(CLI::Range(1, 65536))->capture_default_str();
    verb->add_option("--length", arguments->length, "What the symbols of the inputs' shapes are, but for B, in a batch that is drawn")->check(CLI::Range(1, 1 << 20))->capture_default_str();
    verb->add_option("--size", arguments->sizes, "Another size of one symbol: S=100; may be repeated")->allow_extra_args(false);
    verb->add_option("--seed", arguments->drawn.seed, "Of the batch that is drawn, and of weights where the model has none")->capture_default_str();
    verb->add_option("--init-std", arguments->drawn.initStd, "Spread of weights that are drawn")->check(CLI::Range(0.0, 10.0))->capture_default_str();
    verb->add_option("--cells", arguments->cells, "Tell only of cells that match this path pattern, or lie in a composite that does; may be repeated")->allow_extra_args(false);
    verb->add_flag("--gradients", arguments->gradients, "Run as a training step does, and tell of the loss's gradients too");
    verb->add_option("--bins", arguments->bins, "Steps of the histograms")->check(CLI::Range(1, 1024))->capture_default_str();
    verb->add_option("--map-size", arguments->mapSize, "Rows and columns of attention maps at most; 0: no maps")->check(CLI::Range(0, 64))->capture_default_str();
    verb->add_option("--row", arguments->mapRow, "Row of the batch whose attention is shown")->check(CLI::Range(0, 65535))->capture_default_str();
    verb->add_option("--out", arguments->out, "A new file for what --json prints, beside the table");
    addModelOptions(*verb, *arguments);
    addPrecisionOptions(*verb, *arguments);
    addAdapterOptions(*verb, *arguments);
    verb->callback([arguments, &invocation] { runProbe(*arguments, invocation); });
}

} // namespace celloom::app
