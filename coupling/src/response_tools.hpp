#pragma once

#include <cmath>
#include <span>
#include <vector>

#include <Eigen/Core>

#include "portwave/subsystems/subsystem.hpp"

namespace portwave {

/// One entry per scalar port.
std::vector<Causality> scalar_causalities(const Signature& signature);

/// The impedance of a scalar port whose output is `response` times its input.
double match_of(double response, Causality causality);

/// M̂ with ŷ = M̂û, û and ŷ being the inputs and outputs in units of the waves: e/√γ and √γ f.
Eigen::MatrixXd scaled_response(const Eigen::MatrixXd& response,
                                std::span<const Causality> causality,
                                std::span<const double> impedance);

inline bool is_impedance(double value) { return value > 0.0 && std::isfinite(value); }

}  // namespace portwave
