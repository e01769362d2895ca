#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/port.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A lossless interconnection of k scalar ports in kernel form, {(e, f): E e + F f = 0}, with
/// rank[E F] = k and E Fᵀ + F Eᵀ = 0 (so that eᵀf = 0 on it and it is maximal: a Dirac structure).
/// Flows are counted into the parts.
struct DiracStructure {
  Eigen::MatrixXd E;                 ///< k×k
  Eigen::MatrixXd F;                 ///< k×k
  std::string_view kind = "kernel";  ///< of coupling, as in scenario files

  int size() const { return static_cast<int>(E.rows()); }

  /// e₁ = e₂, f₁ + f₂ = 0.
  static DiracStructure connection();
  /// 0-junction of arity k ≥ 2: all e equal, Σ f = 0.
  static DiracStructure common_effort(int arity);
  /// 1-junction of arity k ≥ 2: all f equal, Σ e = 0.
  static DiracStructure common_flow(int arity);
  /// e₁ = n e₂, f₂ = −n f₁, n ≠ 0.
  static DiracStructure transformer(double ratio);
  /// e₁ = r f₂, e₂ = −r f₁, r ≠ 0.
  static DiracStructure gyrator(double ratio);
  /// u = −Ĉ y, Ĉ skew, u and y being the inputs and outputs of the ports by their causality.
  static DiracStructure skew_gain(const Eigen::MatrixXd& C,
                                  const std::vector<Causality>& causalities);
  /// e = 0: nothing pushes on the port.
  static DiracStructure free();
  /// f = 0: the port does not move.
  static DiracStructure fixed();
};

/// Names every defect: not square, not finite, rank < k, not isotropic (with the offending entry).
/// Rank and isotropy are judged to 1e-12 after scaling of rows, and of efforts and flows port by
/// port, so that units do not matter. `where` is "/E" or "/F" for shapes and "" otherwise.
Issues validate(const DiracStructure& dirac);

/// The same structure by other rows where the units of the given ones make them all but parallel;
/// the given ones else. For structures that `validate` passes.
DiracStructure with_separate_rows(const DiracStructure& dirac);

/// The wave map a = P b of a Dirac structure with impedances γ (k values > 0):
///   P = −(EΓ^½ + FΓ^−½)⁻¹(EΓ^½ − FΓ^−½), orthogonal.
Eigen::MatrixXd wave_map(const DiracStructure& dirac, const Eigen::VectorXd& impedance);

/// A Dirac structure over offsets of the wave vector. Copies share the structure, and so may all
/// junctions of one kind.
struct Junction {
  Junction(DiracStructure structure, std::vector<int> offsets)
      : Junction(std::make_shared<const DiracStructure>(std::move(structure)), std::move(offsets)) {
  }
  Junction(std::shared_ptr<const DiracStructure> structure, std::vector<int> offsets)
      : shared(std::move(structure)), dirac(*shared), waves(std::move(offsets)) {}

  std::shared_ptr<const DiracStructure> shared;  ///< not null
  const DiracStructure& dirac;                   ///< *shared
  std::vector<int> waves;  ///< dirac.size() distinct offsets in the wave vector
};

}  // namespace portwave
