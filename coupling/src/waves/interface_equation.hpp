#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "portwave/coupling/system/interconnection.hpp"
#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/matrices/sparse_factors.hpp"
#include "portwave/subsystems/matrices/unpivoted_lu.hpp"

namespace portwave {

/// The members of an island, by number.
struct IslandNetwork {
  std::vector<int> parts;  ///< that have ports
  std::vector<int> ports;  ///< scalar ports, in the order of their numbers
  std::vector<int> junctions;
};

/// All islands of a system. `local`: place of each scalar port in the ports of its island.
struct IslandNetworks {
  explicit IslandNetworks(const System& system);

  std::vector<IslandNetwork> of;
  std::vector<int> local;
};

/// The interface equation of one island with affine parts, (I − PD) u = P b⁰, as a sparse LU of
/// I − PD + δI, δ = 1e-14.
///
/// PD does not expand if the parts are passive, so that I − PD is monotone, no correction
/// (I − PD + δI)⁻¹(P S(u) − u) leads further away, and the correction closes every gap that a wave can close,
/// except δ/(δ + λ) of it in a mode of eigenvalue λ. If interface waves are not unique (two ideal ends on one
/// rigid body) I − PD is singular: δ then leaves undetermined components as they are.
///
/// Reflections of many ports, P = ±(2nnᵀ − I), are taken with an unknown of their own, nᵀDu: the
/// matrix has about as many entries as the parts have, whatever the junctions. So are, in large islands, affine parts
/// whose ports have one velocity or one force, D = σI + c sᵀ, with sᵀu, where no neighbour has one. The matrix need
/// not stay monotone by this; where that calls for row exchanges, the parts are taken as they are.
///
/// A monotone matrix is factorised without row exchanges, in places found once (UnpivotedLu); one that rounding
/// makes need exchanges, with them (SparseFactors).
class InterfaceEquation {
 public:
  /// D of a part, row-major.
  using PartMatrix = std::function<const double*(int part)>;

  /// Largest number of entries of the factors: 1 GiB.
  static constexpr std::size_t kMostEntries = std::size_t{1} << 26;
  /// δ
  static constexpr double kShift = 1e-14;

  /// `places`: where gap and change of each port of the island are in the arrays that `solve` takes; empty: in the
  /// order of the ports.
  InterfaceEquation(const System& system, const IslandNetworks& networks, int island,
                    std::vector<int> places = {});

  /// Entries that the factors will have, from the pattern alone (symmetric elimination in the order
  /// of minimal degree). Stops counting beyond kMostEntries.
  std::size_t expected_entries(const Interconnection& coupling) const;
  /// Takes the pattern and factorises. `changes`: the parts whose D `renew` may change; of the others, entries
  /// that are 0 are no entries, unless `keeps_zeros`. Errors: false where a number is not finite. Allocates.
  bool factorise(const Interconnection& coupling, const PartMatrix& D,
                 const std::function<bool(int part)>& changes = {}, const ForEach& each = {},
                 bool keeps_zeros = false);
  /// Whether another D of a part has its entries in the pattern that was taken, and is written in the same form.
  bool fits(int part, const double* before, const double* after);
  /// Factorises for other D of those parts, or another δ, everything else unchanged. The factors depend on the
  /// numbers alone, not on those before, nor on `each`; what those before have made and is the same stays. Allocates
  /// only where exchanges are needed, and the first time that D or δ is another.
  bool renew(const PartMatrix& D, double shift = kShift, const ForEach& each = {});
  /// As if the D of all parts that `renew` may change had changed: it then takes as long as in a step.
  void expect_changes();
  std::size_t entries() const {
    return is_pivoted_ ? factors_.nonzeros() : forms_[form_].lu.nonzeros();
  }
  /// |pivot|, the least of all; 0 where it was factorised with exchanges, which tell nothing of it.
  double smallest_pivot() const { return is_pivoted_ ? 0.0 : forms_[form_].lu.smallest_pivot(); }
  /// du from the gap P S(u) − u; returns |du|². Allocates nothing. The bits do not depend on `each`.
  double solve(const double* gap, double* change, const ForEach& each = {});
  /// Whether D of an affine part in a large island is taken with an unknown of its own, if no neighbour's is.
  static bool has_one_motion(const double* D, int size);
  std::size_t bytes() const;

 private:
  /// A contribution to an entry of the matrix: `factor`, times a number of a part where it belongs to one.
  struct Term {
    int slot;   ///< of the entry
    int entry;  ///< of the part's D, or of σ, c and s
    double factor;
  };
  /// A way to write the equation.
  struct Form {
    std::vector<int> unknown;  ///< sᵀu, by place in network_.parts; −1: the part is taken by its D
    std::vector<Term> terms;         ///< constants, then part by part
    std::vector<std::size_t> begin;  ///< of the terms of each part in network_.parts; then the end
    std::vector<double> constants;   ///< by slot
    std::vector<double>
        filled;  ///< D of the parts that the matrix is filled with; empty: with none
    UnpivotedLu lu;
  };
  static constexpr int kByD = 0, kByMotions = 1;

  template <class Emit>
  void assemble(const Interconnection& coupling, const Form& form, const Emit& emit) const;
  template <class Emit>
  void emit_row(const Form& form, int port, double factor, int row, const Emit& emit) const;
  int ports() const { return static_cast<int>(places_.size()); }
  int size_of(int part) const;
  std::size_t place_of(int part) const;
  void find_motions(const Interconnection& coupling, const PartMatrix& D);
  const double* numbers_of(const Form& form, std::size_t own, const double* D);
  void analyse(Form& form, const PartMatrix& D);
  bool fill(Form& form, const PartMatrix& D, double shift);
  bool fill_again(Form& form, const PartMatrix& D);

  const System& system_;
  const IslandNetwork& network_;
  const std::vector<int>& local_;
  const Interconnection* coupling_ = nullptr;  // that it was factorised for
  std::vector<int> places_;                    // by port
  std::vector<char> changes_;                  // D of parts, by place in network_.parts
  std::vector<std::size_t> begin_of_D_;        // likewise, in an array of all; then its end
  Form forms_[2];
  int form_ = kByD;        // that has the factors
  SparseFactors factors_;  // where is_pivoted_
  bool is_pivoted_ = false;
  bool keeps_zeros_ = false;  // the zeros of all parts are entries
  std::vector<double> right_, scratch_, split_;
};

}  // namespace portwave
