// Rows by index, of tokens or of named columns: a two-method interface and decorators over it. Any position can be read directly, so that a resume needs only a
// number. Letters in shapes: B rows of a batch, T tokens of a row.
#pragma once

#include "engine/exec/network.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace celloom::engine {

/// One training sequence; all int64 [T]. Labels are not shifted; -100 is ignored. Rows without tokens have columns alone.
struct Row {
    at::Tensor inputIds, labels;
    at::Tensor segments, positions; // undefined where the row is one document
    std::map<std::string, at::Tensor> columns = {}; // of the same shape in all rows
};

class Dataset {
public:
    virtual ~Dataset() = default;
    virtual std::int64_t size() const = 0;
    virtual Row get(std::int64_t index) const = 0;
    /// The row as a training sees it in an epoch whose number is mixed into `draw`: images are shifted and mirrored anew. The same number gives
    /// the same row, so that a resume needs no random state.
    virtual Row drawn(std::int64_t index, std::uint64_t /*draw*/) const { return get(index); }
    /// Names of what each row has.
    virtual std::vector<std::string> columns() const { return {"input_ids", "labels"}; }
    /// Tokens of a row.
    virtual std::int64_t lengthOf(std::int64_t index) const { return get(index).inputIds.size(0); }
    /// What fills rows up to the longest of their batch. Nothing attends to it (it comes last), and its labels are -100.
    virtual std::int64_t padId() const { return 0; }
};

/// The rows in another order, which depends on seed, epoch and number of rows alone; with `groupRows` on their lengths too: batches of so
/// many rows hold rows of about the same length, and come in any order.
class ShuffledDataset : public Dataset {
public:
    ShuffledDataset(const Dataset& source, std::uint64_t seed, std::int64_t epoch, std::int64_t groupRows = 0);
    std::int64_t size() const override { return m_source.size(); }
    std::int64_t lengthOf(std::int64_t index) const override { return m_source.lengthOf(m_order[static_cast<std::size_t>(index)]); }
    std::int64_t padId() const override { return m_source.padId(); }
    std::vector<std::string> columns() const override { return m_source.columns(); }
    Row get(std::int64_t index) const override { return m_source.drawn(m_order[static_cast<std::size_t>(index)], m_draw); }

private:
    const Dataset& m_source;
    std::vector<std::int64_t> m_order;
    std::uint64_t m_draw;
};

/// The rows in their own order, drawn for an epoch.
class EpochDataset : public Dataset {
public:
    EpochDataset(const Dataset& source, std::uint64_t seed, std::int64_t epoch);
    std::int64_t size() const override { return m_source.size(); }
    std::int64_t lengthOf(std::int64_t index) const override { return m_source.lengthOf(index); }
    std::int64_t padId() const override { return m_source.padId(); }
    std::vector<std::string> columns() const override { return m_source.columns(); }
    Row get(std::int64_t index) const override { return m_source.drawn(index, m_draw); }

private:
    const Dataset& m_source;
    std::uint64_t m_draw;
};

/// Chosen rows of a dataset that it shares.
class SubsetDataset : public Dataset {
public:
    SubsetDataset(std::shared_ptr<const Dataset> source, std::vector<std::int64_t> rows) : m_source(std::move(source)), m_rows(std::move(rows)) {}
    std::int64_t size() const override { return static_cast<std::int64_t>(m_rows.size()); }
    std::int64_t lengthOf(std::int64_t index) const override { return m_source->lengthOf(m_rows[static_cast<std::size_t>(index)]); }
    std::int64_t padId() const override { return m_source->padId(); }
    std::vector<std::string> columns() const override { return m_source->columns(); }
    Row get(std::int64_t index) const override { return m_source->get(m_rows[static_cast<std::size_t>(index)]); }
    Row drawn(std::int64_t index, std::uint64_t draw) const override { return m_source->drawn(m_rows[static_cast<std::size_t>(index)], draw); }

private:
    std::shared_ptr<const Dataset> m_source;
    std::vector<std::int64_t> m_rows;
};

/// Tensors [N,…] by name, of the same N: row i has their [i]. "input_ids" [N,T] and "labels" beside them are tokens, as every text's.
class TensorDataset : public Dataset {
public:
    /// No column, or columns with other numbers of rows, are an error.
    static Result<std::shared_ptr<TensorDataset>> create(std::map<std::string, at::Tensor> columns);
    std::int64_t size() const override { return m_columns.begin()->second.size(0); }
    std::int64_t lengthOf(std::int64_t index) const override;
    Row get(std::int64_t index) const override;
    std::vector<std::string> columns() const override;
    const at::Tensor& column(const std::string& name) const { return m_columns.at(name); }

private:
    explicit TensorDataset(std::map<std::string, at::Tensor> columns) : m_columns(std::move(columns)) {}
    std::map<std::string, at::Tensor> m_columns;
};

/// Rows [first, first + count) as a batch [B,T], filled up at their ends to the longest. Segments and positions appear where a row has
/// them; padding continues its row's last document.
Batch collate(const Dataset& dataset, std::int64_t first, std::int64_t count);

/// Labels that count in the loss: those of positions 1..T-1 that are not -100.
std::int64_t validLabels(const Batch& batch);

/// Numbers 0..count-1 in an order that depends on the seed alone (the same with every compiler and library).
std::vector<std::int64_t> shuffledOrder(std::int64_t count, std::uint64_t seed);

} // namespace celloom::engine
