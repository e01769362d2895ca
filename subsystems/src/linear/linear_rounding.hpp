#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>

#include "base/workspace.hpp"
#include "core/lane_values.hpp"
#include "kernels/linear_kernels.hpp"
#include "linear/energy_pattern.hpp"
#include "linear/step_rows.hpp"

namespace portwave {

/// What a step of a dense linear batch can have rounded off in the balance of its energy. Every increment is
/// known to ε of its terms and every state to ε of itself, weighed by what x⁺ changes the balance by; every b
/// to ε of its own terms; the work of an input to ε of the terms of what it acts on; and H⁺ − H, as a sum over
/// ½Q(x + x⁺), to ε of the terms of that times x⁺ − x. Far from the origin the last is the largest.
struct LinearRounding {
  const LinearShape& shape;
  const EnergyPattern& energies;
  const StepRows& rows;
  int lane_width;  ///< lanes of a group
  int stride;      ///< of waves
  bool is_staged;
  std::size_t states;      ///< where they begin in a record
  std::size_t group_size;  ///< of the states and inputs of a group there

  /// Of so many lanes from `lane` on. `kBound`: what it cannot exceed where no state, wave or input is
  /// larger than 1, none of which are then read.
  template <int width, bool kBound>
  void find(const LinearGroup& group, int lane, const double* record, const double* a,
            const double* next, double* out) const {
    constexpr double kPerTerm = 8.0 * std::numeric_limits<double>::epsilon();
    const int step = group.shared ? 1 : lane_width;
    const int own = group.shared ? 0 : lane % lane_width;
    const int n = shape.n, p = shape.p, q = shape.q;
    using V = LaneValues<width>;
    const auto size = [&](const double* block, int i) {
      return group.shared ? V::all(std::abs(block[i])) : abs(V::from(block + i * step + own));
    };
    const auto value = [&](const double* block, int i) {
      if (kBound) return size(block, i);
      return group.shared ? V::all(block[i]) : V::from(block + i * step + own);
    };
    const double* x = kBound ? nullptr : record + offset_in_record(lane);
    const double* after = kBound ? nullptr : next + offset_in_record(lane);
    const auto state = [&](const double* of, int i) {
      return kBound ? V::all(1.0) : V::from(of + i * lane_width);
    };
    const auto incident = [&](int j) {
      return kBound ? V::all(1.0) : V::from(a + j * stride + lane);
    };
    const double* output =
        group.energy +
        (n + shape.storage_count + shape.gradient_count + shape.dissipation_count) * step;
    const double* per_wave = output + shape.output_count * step;
    const auto sizes = static_cast<std::size_t>(5 * n + q + shape.z + 2 * p);
    detail::Workspace work(sizes * width);
    V* const slope =
        reinterpret_cast<V*>(work.data());  // what an error of x⁺ changes the balance by
    std::uninitialized_fill_n(slope, sizes, V::all(0.0));
    V* const terms = slope + n;              // of [z; u]
    V* const shifted = terms + shape.z + p;  // x⁺ less what the inputs work on
    V* const of_gradient = shifted + n;      // terms of Qx
    V* const size_of_x = of_gradient + n;    // and of the inputs
    V* const size_of_a = size_of_x + n + q;
    V* const terms_of_x = size_of_a + p;  // of x⁺
    for (int i = 0; i < n + q; ++i) size_of_x[i] = abs(state(x, i));
    for (int i = 0; i < p; ++i) size_of_a[i] = abs(incident(i));
    for (int i = 0; i < n; ++i) shifted[i] = state(after, i);
    // What a stage sees is x + x⁺, halved; with damping θ(x⁺ − x) more.
    V of_end = V::all(1.0);
    if (shape.lane_damping != nullptr && !is_staged) {
      const V root = V::from(shape.lane_damping + lane);
      of_end += root * root;
    }
    // With stages inputs work on x⁺ by way of the maps of z, whose terms are counted below.
    for (int e = 0; !is_staged && e < shape.output_count; ++e) {
      const LinearEntry& entry = energies.output()[static_cast<std::size_t>(e)];
      if (entry.column >= n) continue;
      const V taken = (kBound ? -0.5 : 0.5) * of_end * value(output, e) * state(x, n + entry.row);
      shifted[entry.column] -= taken;
    }
    const auto add_slope = [&](int i, int j, const V& half_q) {
      slope[i] += 2.0 * half_q * shifted[j];
      of_gradient[i] += abs(half_q) * (size_of_x[j] + abs(state(after, j)));
    };
    for (int i = 0; i < n; ++i) add_slope(i, i, value(group.energy, i));
    for (int e = 0; e < shape.storage_count; ++e) {
      const LinearEntry& entry = energies.storage()[static_cast<std::size_t>(e)];
      const V half_q = 0.5 * value(group.energy, n + e);
      add_slope(entry.row, entry.column, half_q);
      add_slope(entry.column, entry.row, half_q);
    }
    const auto moved = [&](const StepRows::Run& by_state, const StepRows::Run& by_wave,
                           const StepRows::Run& by_input) {
      V sum = V::all(0.0);
      const auto add = [&](const StepRows::Run& row, int count, const V* of) {
        for (int j = 0; j < count; ++j) sum += size(row.block, row.first + j * row.step) * of[j];
      };
      add(by_state, n, size_of_x);
      add(by_wave, p, size_of_a);
      add(by_input, q, size_of_x + n);
      return sum;
    };
    for (int i = 0; i < n && !is_staged; ++i) terms[i] = of_end * of_gradient[i];
    for (int m = 0; m < shape.mapped_count; ++m) {
      V& own_terms = terms[energies.mapped()[static_cast<std::size_t>(m)]];
      const double* row = group.mapped + m * (n + p + q) * step;
      for (int j = 0; j < n; ++j) own_terms += size(row, j) * size_of_x[j];
      for (int j = 0; j < p; ++j) own_terms += size(row, n + j) * size_of_a[j];
      for (int j = 0; j < q; ++j) own_terms += size(row, n + p + j) * size_of_x[n + j];
    }
    for (int i = 0; i < n; ++i) terms_of_x[i] = abs(state(after, i));
    for (int k = 0; k < rows.count(); ++k) {
      terms_of_x[rows.state(k)] +=
          moved(rows.of_state(group, k), rows.of_wave(group, k), rows.of_input(group, k));
    }
    for (std::size_t e = 0; e < rows.integrals().size(); ++e) {
      const auto& [row, column] = rows.integrals()[e];
      terms_of_x[row] +=
          of_end * size(group.step, rows.place(e)) * (size_of_x[column] + terms_of_x[column]);
    }
    V sum = V::all(0.0);
    for (int i = 0; i < n; ++i) sum += abs(slope[i]) * terms_of_x[i];
    for (int i = 0; i < n; ++i) {
      sum += of_gradient[i] * (kBound ? V::all(2.0) : abs(state(after, i) - state(x, i)));
    }
    for (int i = 0; i < p; ++i) {
      const StepRows::Run gain{group.scatter, p + i * p, 1};
      const StepRows::Run C = rows.of_port_state(group, i), C_u = rows.of_port_input(group, i);
      V b = value(group.scatter, i) * incident(i);
      for (int j = 0; j < n; ++j) b += value(C.block, C.first + j * C.step) * state(x, j);
      for (int j = 0; j < p; ++j) b += value(gain.block, gain.first + j) * incident(j);
      for (int j = 0; j < q; ++j) b += value(C_u.block, C_u.first + j * C_u.step) * state(x, n + j);
      const V terms_of_b = moved(C, gain, C_u);
      sum += (abs(b) + kPerTerm * terms_of_b) * terms_of_b;
      terms[shape.z + i] = size_of_a[i] + abs(b) + terms_of_b;
    }
    // The work of the inputs on z, where u is a sum of waves.
    for (int e = 0; e < shape.output_count; ++e) {
      const LinearEntry& entry = energies.output()[static_cast<std::size_t>(e)];
      if (entry.column >= shape.z + p) continue;
      V of_z = terms[entry.column];
      if (entry.column >= shape.z) of_z *= size(per_wave, entry.column - shape.z);
      sum += size(output, e) * size_of_x[n + entry.row] * of_z;
    }
    const V rounding = kPerTerm * sum;
    rounding.to(out);
  }

 private:
  std::size_t offset_in_record(int lane) const {
    return states + static_cast<std::size_t>(lane / lane_width) * group_size +
           static_cast<std::size_t>(lane % lane_width);
  }
};

}  // namespace portwave
