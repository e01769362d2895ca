#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <Eigen/Core>

#include "kernels/linear_kernels.hpp"
#include "linear/step_maps.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave {

/// States of a linear part that are integrals of others: ẋᵢ = Σⱼ kⱼ xⱼ without dissipation, ports and inputs,
/// as a position is the integral of a velocity, and a charge that of a current. Once the midpoint step of the
/// others is known, xᵢ⁺ = xᵢ + Σⱼ ½h kⱼ(xⱼ + xⱼ⁺). The choice of these states depends on the part's equations
/// alone, so that results do not depend on the parts that are stepped beside it. Of two states that are the
/// integral of each other, the one with the lower number is chosen.
class IntegralStates {
 public:
  struct Entry {
    int row;     ///< the integral xᵢ
    int column;  ///< the integrand xⱼ, which is no integral
    double k;
  };

  explicit IntegralStates(const LinearPortHamiltonian& part);

  /// The same states of a part whose matrices have entries at the same places: takes its values.
  void take_values_of(const LinearPortHamiltonian& part);

  /// By rows, columns ascending.
  const std::vector<Entry>& entries() const { return entries_; }
  bool is_integral(int state) const {
    return role_[static_cast<std::size_t>(state)] == Role::integral;
  }

  /// Whether the rounding of some xⱼ⁺ weighs more in xᵢ⁺ than the rounding of xᵢ⁺ itself. Such a part is
  /// advanced by rows of the step map alone.
  bool are_stiff(const LinearPortHamiltonian& part, double step_s) const;

 private:
  enum class Role : char { none, integral, integrand };

  std::vector<Entry> entries_;
  std::vector<Role> role_;
};

/// How kernels keep a matrix whose rows they sum some at a time: block of rows by block, each column
/// by column, so that a sweep over the coefficients is a sweep over memory.
class RowBlocks {
 public:
  /// As few blocks as can be with at most so many rows in each, and these as equal as can be.
  static RowBlocks balanced(int rows, int at_most);
  /// Blocks of so many rows, and what remains one by one.
  static RowBlocks of(int rows, int each);

  std::span<const unsigned char> sizes() const { return sizes_; }

  /// Where a row's coefficient of column 0 is in a matrix of so many columns, and how far the next
  /// one is.
  struct Run {
    int first;
    int step;
  };
  Run run(int row, int columns) const {
    const Place& place = places_[static_cast<std::size_t>(row)];
    return {place.begin * columns + row - place.begin, place.rows};
  }

  /// The rows of [m₁ m₂ …], as kernels keep them. `rows` are numbers of rows of the matrices.
  void append(std::span<const int> rows, std::span<const Eigen::MatrixXd* const> matrices,
              std::vector<double>& out) const;

 private:
  struct Place {
    int begin;  ///< of its block
    int rows;   ///< in its block
  };
  void add(int rows);

  std::vector<unsigned char> sizes_;
  std::vector<Place> places_;  ///< by row
};

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
