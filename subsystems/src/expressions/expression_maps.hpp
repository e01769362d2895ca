#pragma once

#include <cstddef>
#include <vector>

#include <Eigen/Core>

#include "expressions/split_energy.hpp"
#include "kernels/bent_kernels.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave {

/// The linear maps of a step of a part with constant structure and an energy of this kind: places of what a lane
/// group has in its coefficients and in its record, and the coefficients of a lane. See make_expression_batch.
struct ExpressionMaps {
  /// Laid out for the matrix entries of this part. The energy must outlive it.
  ExpressionMaps(const Subsystem& part, const SplitEnergy& energy);
  ExpressionMaps(const ExpressionMaps&) = delete;
  ExpressionMaps& operator=(const ExpressionMaps&) = delete;

  /// A matrix within the coefficients: entry (i, j) of `rows` rows at (begin + j·rows + i).
  struct Block {
    int begin = 0, rows = 0, columns = 0;
    int entry(int i, int j) const { return begin + j * rows + i; }
  };

  /// Doubles that programs take: `mean_of` for one group, and those of `frozen` for so many.
  std::size_t mean_registers() const { return at(mean_of_.registers); }
  std::size_t frozen_registers(int groups) const {
    return at((programs_[0].registers + programs_[1].registers) * groups);
  }

  /// Of a lane with this part and these impedances. Errors: ConfigError where the step is singular.
  std::vector<double> coefficients(const Subsystem& part, const SplitEnergy& energy, double step_s,
                                   const std::vector<double>& impedance) const;

  /// Whether the entries of matrices are those of another part with this energy.
  bool has_entries_of(const ExpressionMaps& other) const;

  int coefficient_count = 0, record_count = 0;
  // With g the gradient Qx + c and d⁰ the offset of Δ: see bent_kernels.hpp.
  Block of_gradient, of_input, of_wave, of_mean;
  Block b_of_gradient, b_of_offset, b_of_input, b_of_wave, b_of_mean, u_of_a, u_of_b;
  Block Q, constants, weight;
  int state = 0, input = 0, offset = 0, b_offset = 0;
  int bent_slope = 0;  ///< ∇V and ∇²V at x; where the step is one equation, bent::Layout::taylor
  int V = 0;           ///< where V̄ is not exact
  int warm = 0;        ///< the last δ, or NaN
  bool is_one = false;  ///< the step is one equation
  bent::Layout layout;

 private:
  /// Entries of a matrix, whose numbers are coefficients.
  using Entries = std::vector<bent::Entry>;

  Block block(int rows, int columns);
  int room(int count);
  void lay_out();
  void lay_out_entries(const Structure& of);
  void set_layout();

  const SplitEnergy& energy_;
  int n_, p_, q_, r_;
  TapeProgram mean_of_, programs_[2];
  Entries R_entries_, P_entries_, S_entries_, external_out_, external_through_;
};

}  // namespace portwave
