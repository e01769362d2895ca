#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/port_memory.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave {

/// y = L tanh(u/r) + c u with the level L = F + (F_s − F) exp(−(s/v_s)²): dry friction that is larger at rest
/// than while it slides.
struct StribeckLaw {
  double sliding;    ///< F ≥ 0
  double at_rest;    ///< F_s ≥ F
  double falls_at;   ///< v_s > 0
  double reach;      ///< r > 0
  double viscosity;  ///< c ≥ 0

  /// L where s is the speed.
  double level(double speed) const;
};

/// A friction with that law at its one port, which takes a flow. Its state s is the mean flow over the step before,
/// without energy; 0: at rest.
/// Step     L is held within a step. A law that falls with u would have several solutions; this one is monotone,
///          so that the wave relation has one, and dissipates in every step, whatever its size. The level is of
///          order 1: steps should be short beside the time in which the speed passes v_s.
/// Stages   each is one equation, as with one stage.
class StribeckFriction final : public Subsystem, public PortMemory {
 public:
  /// `signature`: one state, one scalar port that takes a flow, no inputs.
  StribeckFriction(Signature signature, const StribeckLaw& law);

  const StribeckLaw& law() const { return law_; }

  std::vector<double> typical_state() const override { return {law_.falls_at}; }
  double storage(const double*) const override { return 0.0; }
  void gradient(const double*, double* g) const override { g[0] = 0.0; }
  void discrete_gradient(const double*, const double*, double* g) const override { g[0] = 0.0; }
  void discrete_gradient_jacobian(const double*, const double*,
                                  std::vector<Eigen::Triplet<double>>&) const override {}
  bool hessian(const double*, std::vector<Eigen::Triplet<double>>&) const override { return true; }
  const Structure& structure() const override { return structure_; }
  bool has_port_laws() const override { return true; }
  /// That of a part at rest.
  PortLawValue port_law(int, double u) const override { return value(law_.at_rest, u); }
  PortLawValue port_law_after(const double* x, int, double u) const override {
    return value(law_.level(x[0]), u);
  }
  void remember(const double* mean_inputs, double* x_next) const override {
    x_next[0] = mean_inputs[0];
  }
  std::string batch_key() const override { return "stribeck"; }
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override;

  /// The law at a level.
  PortLawValue value(double level, double u) const;

 private:
  StribeckLaw law_;
  Structure structure_;
};

/// Of parts that are all of that class, with stages by any rule.
std::unique_ptr<StepBatch> make_stribeck_batch(std::span<const Subsystem* const> parts,
                                               const StageRule& stages);

}  // namespace portwave
