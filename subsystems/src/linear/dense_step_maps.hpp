#pragma once

#include <vector>

#include <Eigen/Core>

#include "core/port_closure.hpp"
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

}  // namespace portwave
