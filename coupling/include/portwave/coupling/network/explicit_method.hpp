#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "portwave/coupling/network/network_method.hpp"

namespace portwave {

class ExplicitStepper;

/// A method that steps islands without iteration and keeps the balance of energy exactly: kicks and drifts, or
/// Taylor series. At the end of a step the state is moved so that H + T = H₀ + T₀ + supply − dissipation to
/// rounding, T being the rounding that is left (StepLedger::tank_J). A step that is too long for this is taken
/// as two halves, which are halved in turn, ten times at most.
/// Errors   while stepping NetworkFault: too_inaccurate after the last halving, inputs that throw or are not
///          finite.
/// Threads  islands at once; results do not depend on it.
class ExplicitMethod : public NetworkMethod {
 public:
  ~ExplicitMethod() override;

  NetworkStep step(const ForEach& each) override;
  const StepClock& clock() const override;
  std::span<const double> state() const override;
  std::span<const double> previous_state() const override;
  double storage(int block) const override;
  double shared_cost_ns() const override;
  int tasks() const override;
  std::size_t bytes() const override;
  std::string remarks() const override;
  void archive(StateArchive& archive) override;
  bool set_step(double step_s) override;

 protected:
  ExplicitMethod();
  /// Once, by the constructor.
  void set_stepper(std::unique_ptr<ExplicitStepper> stepper);
  const ExplicitStepper& stepper() const { return *stepper_; }

 private:
  std::unique_ptr<ExplicitStepper> stepper_;
};

}  // namespace portwave
