#pragma once

#include <cstddef>
#include <vector>

#include "core/affine_batch.hpp"
#include "core/port_closure.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave {

/// d with x̂ᵢ = dᵢxᵢ = √Q_ii xᵢ: entries of a state vary over many orders of magnitude (metres
/// beside newton seconds); scaled, they are roots of energies before anything is factorised.
Eigen::VectorXd energy_scaling(const SparseMatrix& Q);

/// The energy ledger of one linear part: H(x⁺), external supply and dissipation of a committed
/// step, from flat entry lists. A part without losses and driven inputs costs only H.
class LinearEnergy {
 public:
  LinearEnergy(const LinearPortHamiltonian& part, std::vector<PortClosure> closures, double step_s);
  /// `input` is null when no external input is driven; `scratch` has n + p + q doubles.
  StepEnergy account(const double* x, const double* x_next, const double* a, const double* b,
                     const double* input, double* scratch) const;

  const std::vector<FormEntry>& output() const { return output_; }
  /// β/s of a port: what its output counts for beside its incident wave.
  double output_per_source(int port) const {
    const PortClosure& c = closures_[static_cast<std::size_t>(port)];
    return c.beta / c.s;
  }
  /// The input of a port per a ± b.
  double per_wave(int port) const {
    const PortClosure& c = closures_[static_cast<std::size_t>(port)];
    return c.effort_in ? 0.5 * c.s : 0.5 * c.s / c.impedance;
  }

 private:
  int n_;
  int p_;
  int q_;
  std::vector<PortClosure> closures_;
  StorageForm storage_;                 // ½xᵀQx
  std::vector<FormEntry> gradient_;     // Q
  std::vector<FormEntry> dissipation_;  // h [R P; Pᵀ S]
  std::vector<FormEntry> output_;       // h [(G+P)ᵀ, S+N] of the external inputs
};

}  // namespace portwave
