#include "engine/checkpoint/weights.h"

#include "engine/checkpoint/mismatches.h"
#include "engine/exec/network.h"
#include "models/base/text.h"
#include "models/families/families.h"
#include "models/families/mindformers.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <algorithm>
#include <map>
#include <set>

namespace celloom::engine {
namespace fs = std::filesystem;
namespace {

using Item = WeightPlan::Item;

/// The tensors of all files by name, and how many of their rows have found a parameter.
class Shelf {
public:
    struct Tensor {
        std::shared_ptr<TensorFile> file;
        std::string name; // in the file
        std::int64_t usedRows = 0;
        [[nodiscard]] const TensorEntry& entry() const { return file->entries().at(name); }
        [[nodiscard]] std::int64_t rows() const { return entry().shape.empty() ? 1 : entry().shape[0]; }
    };

    Status open(const std::vector<fs::path>& files, const std::string& prefix, std::vector<std::string>& notRead) {
        for (const fs::path& path : files) {
            CELLOOM_TRY(file, TensorFile::open(path));
            for (const std::string& name : file->names()) {
                const std::string known = !prefix.empty() && name.starts_with(prefix) ? name.substr(prefix.size()) : name;
                if (!m_tensors.emplace(known, Tensor{file, name}).second)
                    return fail("repeats the tensor " + inQuotes(known) + " of another file.", {}, path.string());
            }
            notRead.insert(notRead.end(), file->notRead().begin(), file->notRead().end());
        }
        std::vector<std::string> names;
        for (const auto& item : m_tensors) names.push_back(item.first);
        m_isMindFormers = families::areMindFormersNames(names);
        return {};
    }

    bool isMindFormers() const { return m_isMindFormers; }
    Tensor* find(const std::string& name) {
        const auto found = m_tensors.find(name);
        return found == m_tensors.end() ? nullptr : &found->second;
    }
    std::map<std::string, Tensor>& all() { return m_tensors; }

private:
    std::map<std::string, Tensor> m_tensors;
    bool m_isMindFormers = false;
};

class Planner {
public:
    Planner(Shelf& shelf, const graph::ExpandedModel& model, WeightPlan& plan)
        : m_shelf(shelf), m_model(model), m_plan(plan), m_mismatches(model) {}

    void plan(const WantedTensor& wanted) {
        Item item{wanted.path, families::checkpointName(m_model.family, wanted.path), wanted.shape, ElementType::Float32, {}, wanted.isBuffer};
        std::vector<families::TensorRows> way{{item.name}};
        if (m_shelf.isMindFormers()) way = wayThatIsThere(wanted.path);
        std::vector<std::int64_t> shape; // of the rows together
        for (const families::TensorRows& rows : way) {
            Shelf::Tensor* tensor = m_shelf.find(rows.name);
            if (!tensor) return m_mismatches.missing(rows.name);
            if (!take(*tensor, rows, item, shape)) return;
        }
        if (shape != wanted.shape) return m_mismatches.misshaped(item.name, nameOf(item.type), shape, wanted.shape);
        m_plan.items.push_back(std::move(item));
    }

    Status finish(const fs::path& place) {
        for (const auto& [name, tensor] : m_shelf.all()) {
            if (tensor.usedRows > 0 && tensor.usedRows < tensor.rows())
                m_mismatches.wrong(name + " has " + std::to_string(tensor.rows()) + " rows, of which the model has " +
                                   std::to_string(tensor.usedRows));
            if (tensor.usedRows > 0 || m_used.contains(name)) continue;
            if (m_shelf.isMindFormers() && families::isMindSporeTrainingState(name))
                m_plan.notRead.push_back(inQuotes(name) + " (state of a training)");
            else if (!families::isIgnorable(m_model, name))
                m_mismatches.unexpected(name);
            else
                CELLOOM_TRY_STATUS(compareTied(name, tensor));
        }
        return m_mismatches.toStatus(place.string());
    }

private:
    /// The first way of which every tensor is there; the first one where none is.
    std::vector<families::TensorRows> wayThatIsThere(const std::string& path) {
        const auto ways = families::mindFormersTensors(m_model, path);
        const auto found = std::find_if(ways.begin(), ways.end(), [&](const auto& way) {
            return std::all_of(way.begin(), way.end(), [&](const auto& rows) { return m_shelf.find(rows.name) != nullptr; });
        });
        return found == ways.end() ? ways.front() : *found;
    }

    bool take(Shelf::Tensor& tensor, const families::TensorRows& rows, Item& item, std::vector<std::int64_t>& shape) {
        const TensorEntry& entry = tensor.entry();
        m_used.insert(rows.name);
        const std::int64_t count = rows.count < 0 ? tensor.rows() : rows.count;
        std::vector<std::int64_t> part = entry.shape;
        const bool isInside = rows.first <= tensor.rows() && count <= tensor.rows() - rows.first;
        if (!isFloat(entry.type) || !isInside) {
            m_mismatches.misshaped(rows.name, nameOf(entry.type), entry.shape, item.shape);
            return false;
        }
        if (!part.empty()) part[0] = count;
        const bool isFirst = item.rows.empty();
        if (!isFirst && (part.size() != shape.size() || part.empty() || !std::equal(part.begin() + 1, part.end(), shape.begin() + 1))) {
            m_mismatches.misshaped(rows.name, nameOf(entry.type), entry.shape, item.shape);
            return false;
        }
        if (isFirst)
            shape = part;
        else
            shape[0] += count;
        if (isFirst) item.type = entry.type;
        item.rows.push_back({tensor.file, tensor.name, rows.first, count, rows.first == 0 && count == tensor.rows()});
        tensor.usedRows += count;
        return true;
    }

    /// A tied head's own weight holds nothing to load only where it is the embedding.
    Status compareTied(const std::string& name, const Shelf::Tensor& tensor) {
        const std::string& family = m_model.family;
        if (families::isIgnorable(family, name)) return {};
        for (const graph::CellInstance& cell : m_model.cells) {
            if (cell.type != "Embedding") continue;
            const Shelf::Tensor* embedding = m_shelf.find(families::checkpointName(family, cell.path + ".weight"));
            if (!embedding && m_shelf.isMindFormers())
                embedding = m_shelf.find(families::mindFormersTensors(m_model, cell.path + ".weight").front().front().name);
            if (!embedding) return {}; // told as missing
            CELLOOM_TRY(head, tensor.file->tensor(tensor.name));
            CELLOOM_TRY(words, embedding->file->tensor(embedding->name));
            if (head.sizes() != words.sizes() || head.scalar_type() != words.scalar_type() || !at::equal(head, words))
                m_mismatches.wrong(name + " differs from the embedding that it is tied to");
            return {};
        }
        return {};
    }

    Shelf& m_shelf;
    const graph::ExpandedModel& m_model;
    WeightPlan& m_plan;
    Mismatches m_mismatches;
    std::set<std::string> m_used;
};

Status copyRows(const WeightPlan::Rows& rows, at::Tensor target) {
    CELLOOM_TRY(source, rows.file->tensor(rows.name));
    try {
        at::NoGradGuard guard;
        target.copy_(rows.isWhole ? source : source.narrow(0, rows.first, rows.count)); // converts between float types
    } catch (const std::exception& exception) {
        return tl::unexpected(errorOf(exception, rows.file->path().string() + ": " + rows.name));
    }
    return {};
}

} // namespace

std::vector<WantedTensor> tensorsOf(const graph::ExpandedModel& model) {
    std::vector<WantedTensor> out;
    for (const graph::CellInstance& cell : model.cells)
        for (const graph::WeightSpec& weight : cell.weights) out.push_back({cell.path + "." + weight.name, weight.dims, weight.isBuffer});
    return out;
}

Result<WeightPlan> planWeights(const std::vector<fs::path>& files, const graph::ExpandedModel& model,
                               const std::vector<WantedTensor>& wanted, const fs::path& place, const std::string& prefix) {
    WeightPlan plan;
    Shelf shelf;
    CELLOOM_TRY_STATUS(shelf.open(files, prefix, plan.notRead));
    Planner planner(shelf, model, plan);
    for (const WantedTensor& tensor : wanted) planner.plan(tensor);
    CELLOOM_TRY_STATUS(planner.finish(place));
    return plan;
}

Status copyWeight(const Item& item, at::Tensor& target) {
    CELLOOM_CHECK(target.sizes().vec() == item.shape);
    if (item.rows.size() == 1) {
        CELLOOM_TRY_STATUS(copyRows(item.rows[0], target));
    } else {
        std::int64_t at = 0;
        for (const WeightPlan::Rows& rows : item.rows) {
            CELLOOM_TRY_STATUS(copyRows(rows, target.detach().narrow(0, at, rows.count)));
            at += rows.count;
        }
    }
    for (const WeightPlan::Rows& rows : item.rows) rows.file->release(rows.name);
    return {};
}

} // namespace celloom::engine
