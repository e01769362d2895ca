#pragma once

#include <span>
#include <vector>

#include "kernels/linear_kernels.hpp"
#include "linear/dense_step_maps.hpp"
#include "linear/integral_states.hpp"
#include "linear/row_blocks.hpp"

namespace portwave {

/// Entries of a pattern as kernels read them.
class Offsets {
 public:
  const LinearOffsets* of(std::span<const LinearEntry> entries, int width) {
    offsets_.clear();
    for (const LinearEntry& e : entries) offsets_.push_back({e.row * width, e.column * width});
    return offsets_.data();
  }

 private:
  std::vector<LinearOffsets> offsets_;
};

/// Layout of the step maps in the coefficients of a dense linear batch: which states have rows of the
/// map, which are integrals of others, and the order of the sweep (LinearGroup::step and input).
class StepRows {
 public:
  /// The part in a lane: its integrals, and whether they are advanced as such (they are not stiff, say).
  struct Lane {
    const IntegralStates& integrals;
    bool are_used;
  };
  /// `shape` has n, p and q, and receives the rows and integrals, to which it refers. Integrals have no rows
  /// where all lanes have the same ones; else all states have rows.
  void arrange(std::span<const Lane> lanes, int width, LinearShape& shape);

  /// Appends the coefficients of one lane. Rows that integrals make superfluous are cleared.
  void append(const Lane& lane, double step_s, StepMaps& maps, std::vector<double>& step,
              std::vector<double>& input) const;

  int count() const { return static_cast<int>(states_.size()); }
  int state(int row) const { return states_[static_cast<std::size_t>(row)]; }

  /// Coefficients that belong together: where column 0 is in a block, and how far the next.
  struct Run {
    const double* block;
    int first, step;
  };
  Run of_state(const LinearGroup& group, int row) const { return step_run(group, row, 0); }
  Run of_wave(const LinearGroup& group, int row) const { return step_run(group, row, n_); }
  Run of_input(const LinearGroup& group, int row) const {
    const auto [first, each] = rows_.run(row, q_);
    return {group.input, first, each};
  }
  Run of_port_state(const LinearGroup& group, int port) const {
    const auto [first, each] = ports_.run(port, n_);
    return {group.step, end_of_rows() + others_ + first, each};
  }
  Run of_port_input(const LinearGroup& group, int port) const {
    const auto [first, each] = ports_.run(port, q_);
    return {group.input, count() * q_ + first, each};
  }

  /// Entries of integrals, and where their coefficients are in LinearGroup::step.
  std::span<const LinearEntry> integrals() const { return integrals_; }
  int place(std::size_t entry) const { return places_[entry]; }

 private:
  void join(bool may_join, int width, LinearShape& shape);
  int end_of_rows() const { return count() * (n_ + p_ + 1); }
  Run step_run(const LinearGroup& group, int row, int column) const {
    const auto [first, each] = rows_.run(row, n_ + p_ + 1);
    return {group.step, first + column * each, each};
  }

  int n_ = 0, p_ = 0, q_ = 0;
  std::vector<int> states_;
  std::vector<LinearEntry> integrals_;
  std::vector<int> places_;
  int others_ = 0;  ///< entries that go with no row
  RowBlocks rows_, ports_;
  std::vector<LinearRow> linear_rows_;
  Offsets offsets_;
};

}  // namespace portwave
