#pragma once

#include <memory>
#include <span>
#include <string>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace PORTWAVE_EXPORT portwave {

/// An ideal switch: a port that is either shorted, e = 0, or open, f = 0. A diode, a breaker, a check valve.
///   one_way     0 ≤ f ⟂ −e ≥ 0: shorted where f > 0, open where e < 0, whatever the waves bring about
///   controlled  shorted where its external input is 0.5 or more, else open
/// It neither stores nor dissipates: e f = 0 always.
/// Step     b = −a of a shorted port, b = a of an open one: b = −|a| of a one-way port, for every step size and
///          impedance; nonexpansive, lossless, 1 ns on each of eight lanes. A controlled port is
///          closed or open for a whole step (closes_in_step); the input of its batch is the share of the step
///          for which it is asked to be closed (closed_share).
/// Errors   ConfigError at construction: states, a port that is not a single one taking an effort, or another
///          number of external inputs than its rule has.
/// Limits   Where a network contradicts it, as an ideal source on a closed switch does, no waves satisfy
///          the step.
class IdealSwitch final : public Subsystem {
 public:
  enum class Rule { one_way, controlled };

  IdealSwitch(Signature signature, Rule rule);

  Rule rule() const { return rule_; }
  /// Whether a controlled one is shorted at this value of its input.
  static bool is_closed(double input) { return input >= 0.5; }

  double storage(const double*) const override { return 0.0; }
  void gradient(const double*, double*) const override {}
  void discrete_gradient(const double*, const double*, double*) const override {}
  void discrete_gradient_jacobian(const double*, const double*,
                                  std::vector<Eigen::Triplet<double>>&) const override {}
  bool hessian(const double*, std::vector<Eigen::Triplet<double>>&) const override { return true; }
  const Structure& structure() const override { return structure_; }
  bool has_port_laws() const override { return true; }
  bool has_vertical_laws() const override { return true; }
  PortLawPoint port_law_point(int scalar_port, double k, double beta, double r,
                              const double* external) const override;
  PortBranch port_branch(int scalar_port, const double* external) const override;
  std::string batch_key() const override;
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override;

 private:
  Structure structure_;
  Rule rule_;
};

/// The batch of ideal switches that take such steps. `parts` are ideal switches of one rule.
std::unique_ptr<StepBatch> make_ideal_switch_batch(std::span<const Subsystem* const> parts,
                                                   const StageRule& stages);

}  // namespace portwave
