#pragma once

#include <complex>
#include <span>
#include <vector>

#include <Eigen/Core>

#include "portwave/subsystems/core/subsystem.hpp"

// Decays of storages that share a joint with resistances, far beyond a frequency.

namespace portwave {

/// What a scalar port shows of its part: y = (D + s/jω)u of a fast input.
struct FastPort {
  double direct = 0.0;   ///< D, nonlinear resistances left out
  double storage = 0.0;  ///< s = (G + P)ᵀ∇²H(G − P)
  double output = 0.0;   ///< |y| at x without inputs
  double usual = 0.0;    ///< |y| at the typical state
};

struct FastPart {
  std::vector<FastPort> ports;
  double rate = 0.0;  ///< max Rᵢᵢ ∂²H/∂xᵢ²
};

FastPart fast_part(const Subsystem& part, const double* x);

/// A port at a joint that adds up immittances.
struct FastTerm {
  double direct = 0.0;
  double storage = 0.0;
  double weight_squared = 1.0;
  bool is_admittance = true;  ///< what `direct` and `storage` are: of a port that takes an effort
};

/// The rate λ [1/s] at which what each port stores decays into the resistances of its joint, for motion of the
/// angular frequency ω: 0 where nothing is stored. `work` and `lambda` have the length of `terms`.
void joint_decays(std::span<const FastTerm> terms, bool adds_admittances, double omega,
                  std::span<std::complex<double>> work, std::span<double> lambda);

/// The same of any junction, E e + F f = 0, such as that of a bridge of diodes.
/// Cost     a factorisation and as many solves as there are ports: up to kMostJunctionPorts. Allocates.
void junction_decays(std::span<const FastTerm> terms, const Eigen::MatrixXd& E,
                     const Eigen::MatrixXd& F, double omega, std::span<double> lambda);
inline constexpr std::size_t kMostJunctionPorts = 200;

/// By port of such a junction: Re(−u/y) that its output meets, what its own part resists included, and what that stores
/// left out: a resistance beside an output that is a flow.
std::vector<double> closed_resistances(std::span<const FastTerm> terms, const Eigen::MatrixXd& E,
                                       const Eigen::MatrixXd& F, double omega);

}  // namespace portwave
