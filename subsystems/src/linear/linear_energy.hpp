#pragma once

#include <cstddef>
#include <vector>

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
  struct Entry {
    int row;
    int column;
    double value;
  };

  LinearEnergy(const LinearPortHamiltonian& part, std::vector<PortClosure> closures, double step_s);
  /// Of a step with stages, whose structure is that of all of them and whose rows and columns are
  /// their co-energy variables, then ports and inputs. Of the gradient there is nothing here, and
  /// `account` is not for it.
  LinearEnergy(const LinearPortHamiltonian& part, const Structure& stages,
               std::vector<PortClosure> closures, double step_s);

  /// Doubles of scratch that `account` needs.
  static int scratch_size(const Signature& signature) {
    return signature.state_size() + signature.wave_size() + signature.input_size();
  }
  /// `input` is null when no external input is driven.
  StepEnergy account(const double* x, const double* x_next, const double* a, const double* b,
                     const double* input, double* scratch) const;

  const std::vector<Entry>& storage() const { return storage_; }
  const std::vector<Entry>& gradient() const { return gradient_; }
  const std::vector<Entry>& dissipation() const { return dissipation_; }
  const std::vector<Entry>& output() const { return output_; }
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
  void take_storage(const SparseMatrix& Q);
  void take_structure(const Structure& structure);

  int n_;
  int p_;
  int q_;
  double step_s_;
  std::vector<PortClosure> closures_;
  std::vector<Entry> storage_;      // upper triangle of ½Q, off-diagonal entries doubled
  std::vector<Entry> gradient_;     // Q
  std::vector<Entry> dissipation_;  // h [R P; Pᵀ S]
  std::vector<Entry> output_;       // h [(G+P)ᵀ, S+N] of the external inputs
};

}  // namespace portwave
