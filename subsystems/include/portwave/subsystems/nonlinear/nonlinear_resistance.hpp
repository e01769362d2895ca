#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/staged_lanes.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace PORTWAVE_EXPORT portwave {

/// y = F tanh(u/r) + c u: dry friction that creeps below r, a conductor that saturates.
struct SaturatingLaw {
  double saturation;   ///< F ≥ 0, in units of y
  double reach;        ///< r > 0, in units of u
  double slope = 0.0;  ///< c ≥ 0, beyond
};

/// A nonlinear resistance without a state: y = φ(u) at each scalar port, u and y being effort and
/// flow, or the other way round, as the port's causality says. A friction, a diode, a valve.
/// Step     the wave relation of each port is one equation with a monotone function: solved to
///          round-off, for every step size, impedance and wave. Those of saturating laws are solved side by
///          side, 3 ns each on eight lanes.
/// Errors   ConfigError at construction: states or inputs in the signature; a law that is not
///          finite, is not 0 at 0, or decreases, at the sizes from 1e-12 to 1e12 that are tried.
class NonlinearResistance final : public Subsystem, public StagedLanes {
 public:
  /// φ and φ′; pure and thread-safe.
  using Law = std::function<PortLawValue(double u)>;

  NonlinearResistance(Signature signature, Law law);
  /// The same law at each port.
  NonlinearResistance(Signature signature, const SaturatingLaw& law);

  double storage(const double*) const override { return 0.0; }
  void gradient(const double*, double*) const override {}
  void discrete_gradient(const double*, const double*, double*) const override {}
  void discrete_gradient_jacobian(const double*, const double*,
                                  std::vector<Eigen::Triplet<double>>&) const override {}
  bool hessian(const double*, std::vector<Eigen::Triplet<double>>&) const override { return true; }
  const Structure& structure() const override { return structure_; }
  bool has_port_laws() const override { return true; }
  PortLawValue port_law(int, double u) const override { return law_(u); }
  /// Null where the law is another one.
  const SaturatingLaw* saturating_law() const { return saturating_ ? &*saturating_ : nullptr; }
  std::string batch_key() const override;
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override;
  std::unique_ptr<StepBatch> make_staged_batch(std::span<const Component* const> parts,
                                               int stages) const override;
  std::unique_ptr<StepBatch> make_lanes(std::span<const Component* const> parts,
                                        const StageRule& stages) const override;

 private:
  Structure structure_;
  Law law_;
  std::optional<SaturatingLaw> saturating_;
};

}  // namespace portwave
