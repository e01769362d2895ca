#pragma once

#include <Eigen/Core>

namespace portwave {

/// Scales x > 0 with which all eigenvalues of diag(x) B are 1, B being the response of one port's
/// stages to one another: 2×2 or 3×3, in the variables of staged_part. A port whose stages have the
/// impedances 1/x (x, if it is effort-in) then reflects with (I + xB)⁻¹(I − xB), which is nilpotent:
/// what comes in has gone after as many reflections as there are stages. The match of each stage by
/// itself, 1/bᵢᵢ, leaves two stages of a lossless element .28 of it each time. Empty where
/// there are no such x, or none is found.
Eigen::VectorXd stage_scales(const Eigen::MatrixXd& response);

}  // namespace portwave
