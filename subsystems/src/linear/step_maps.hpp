#pragma once

#include <span>
#include <vector>

#include <Eigen/Core>

#include "core/port_closure.hpp"
#include "kernels/step_map_kernels.hpp"
#include "linear/linear_sparsity.hpp"
#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/base/lane_group.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave {

/// x⁺ = x + (Φ − I)x + Ψa + Ψ_u ū,  b = σa + Cx + (D − σ)a + C_u ū, σ = ±1. Φ − I and D − σ are
/// formed as such: Φ is close to I, D often to ±1, and their rounding, the same in every step,
/// would act like a small spurious spring and damper.
struct StepMaps {
  Eigen::MatrixXd Phi_minus_I, Psi, Psi_u, C, D_minus_sigma, C_u;
  Eigen::VectorXd sigma;
};

/// Maps whose entries are as exact as doubles can be: what rounds off in a map is the same in every
/// step. It takes more digits than a double has, however ill-conditioned the step is, and time: see
/// LaneStepMaps. Errors: ConfigError where the step is singular.
StepMaps step_maps(const LinearPortHamiltonian& part, const std::vector<PortClosure>& closures,
                   double step_s);

/// The step maps of linear parts of one sparsity, as many at a time as a lane group has lanes. Each
/// part's maps have the same bits whatever parts are solved for beside it; what the lanes cannot
/// solve exactly is left to `step_maps`.
class LaneStepMaps {
 public:
  struct Part {
    const LinearPortHamiltonian* physics;
    std::vector<PortClosure> closures;
  };

  LaneStepMaps(const LinearSparsity& sparsity, int ports, double step_s);
  LaneStepMaps(const LinearSparsity&& sparsity, int ports, double step_s) = delete;

  /// 1 to kLaneGroup parts, which must outlive the calls of `take`.
  void solve(std::span<const Part> parts);
  /// The maps of one of them. Errors: ConfigError where its step is singular.
  void take(int part, StepMaps& maps) const;

 private:
  StepMapTask::Entries read(const EntryList& list);
  bool is_exact(int part) const;

  const LinearSparsity& sparsity_;
  double step_s_;
  std::vector<int> rows_of_Q_;
  std::vector<unsigned char> at_ports_, effort_in_;
  std::span<const Part> parts_;
  StepMapTask task_;
  AlignedVector values_, work_;
};

}  // namespace portwave
