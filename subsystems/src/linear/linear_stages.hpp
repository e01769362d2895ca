#pragma once

#include <memory>
#include <vector>

#include <Eigen/Core>

#include "core/port_closure.hpp"
#include "core/stage_layout.hpp"
#include "linear/step_maps.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave {

/// The step of a linear part in scaled stages, δᵢ = √bᵢ h ẋᵢ and zᵢ = √bᵢ QX(cᵢ):
///   δ = h[(J − R)z + (G − P)u],  z = Q_δ δ + Q_x x,  y = (G + P)ᵀz + (S + N)u,
/// Q_δ = (√bᵢ aᵢⱼ/√bⱼ) ⊗ Q, Q_x = √bᵢ ⊗ Q, x⁺ = x + Σᵢ √bᵢ δᵢ. Structure matrices are those of all
/// stages.
///
/// The costly solve is made once, with ports open and in more digits than double; impedances only
/// close the ports, which takes a solve of the size of the ports.
///
/// With m substeps δ and z are those of all, times √(1/m) like everything with a weight bᵢ/m in the
/// step; the maps of one substep are applied m times over (substep_share).
/// Cost     an LU of size s·n in long double; 16·n(1 + s)(n + s(p + q)) bytes are kept. With m
///          substeps m times as many, and 2·m·s·n²(n + s(p + mq)) products of quadruple precision.
/// Errors: none; where the step is singular, maps are not finite.
class LinearStages {
 public:
  LinearStages(const LinearPortHamiltonian& part, const StageRule& stages, int substeps,
               double step_s);
  ~LinearStages();
  LinearStages(LinearStages&&) noexcept;
  LinearStages& operator=(LinearStages&&) noexcept;

  const StageLayout& layout() const;
  /// Of all stages: N = m·s·n states, s·(p + m·q) inputs.
  const Structure& structure() const;

  struct Maps {
    StepMaps step;
    Eigen::MatrixXd z;  ///< N×(n + s(p + m·q)), of (x, a, ū)
    /// δ of the step's stages, s·n rows of the same; empty unless asked for.
    Eigen::MatrixXd increments;
    /// w of damped stages (LinearShape::damping), n rows of the same for every substep; empty for
    /// others, and with one stage and one substep where all states are damped.
    Eigen::MatrixXd damped;
  };
  /// One closure per port and stage.
  Maps closed(const std::vector<PortClosure>& closures, bool with_increments) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace portwave
