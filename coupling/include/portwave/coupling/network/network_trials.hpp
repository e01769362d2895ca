#pragma once

#include <span>
#include <string>

#include "portwave/coupling/network/network_method.hpp"
#include "portwave/subsystems/base/for_each.hpp"

namespace portwave {

class StateArchive;

/// Steps of any size that a method without waves can try: nothing of an attempt stays unless it is committed. Each
/// attempt estimates the error of its step.
class NetworkTrials {
 public:
  virtual ~NetworkTrials() = default;

  /// The power of h in the errors of a run.
  virtual int order() const = 0;
  /// The power of h in the estimated error of a step.
  virtual int power() const { return order() + 1; }
  /// About the step size for such a tolerance, by rates at the initial state [s]; infinite where nothing moves by
  /// itself.
  virtual double suited_step_s(double tolerance) const = 0;

  /// Tries a step from the present state. False where it cannot be taken: its balance of energy is not met, or a
  /// part has no energy where it leads; `obstacle` then says why. Errors: NetworkFault of inputs.
  virtual bool attempt(double step_s, const ForEach& each) = 0;
  virtual std::string obstacle() const = 0;
  /// Commits the step that was attempted last, with success; the time is then `end_s`.
  virtual NetworkStep commit(double end_s) = 0;

  /// Energies of the attempted step, of a part [J].
  struct Energies {
    double error_J = 0.0;  ///< ½eᵀ∇²H e of the estimated error e, or of a difference (`error_of`)
    double motion_J = 0.0;    ///< likewise of the way from `start` to its end
    double rounding_J = 0.0;  ///< likewise of the rounding of a state
  };
  /// One for each block of the model. Infinite where a part has none. `start`: a state of the whole.
  virtual void measure(std::span<const double> start, std::span<Energies> by_block) = 0;
  /// The error of the attempted step out of the amplitude √(error_J/…), both relative to the motion; `tolerance`: the
  /// largest error of a step.
  virtual double error_of(double amplitude, double /*tolerance*/) const { return amplitude; }

  enum class Step { attempted, committed };
  /// The state of the whole at the end of the attempted step.
  virtual std::span<const double> attempted() const = 0;
  /// Some states, from the state `first` of the whole on, in a step at a share of it from 0 to 1.
  virtual void state_within(Step step, int first, double share, std::span<double> state) = 0;
  /// Efforts and flows of all scalar ports, likewise.
  virtual void ports_within(Step step, double share, std::span<double> effort,
                            std::span<double> flow) = 0;
  /// Their means over the committed step. False where NetworkModel::mean_ports has these.
  virtual bool mean_ports(std::span<double> /*effort*/, std::span<double> /*flow*/) {
    return false;
  }

  /// What steps that are tried need to know of the last one, beside NetworkMethod::archive.
  virtual void archive_trials(StateArchive& archive) = 0;
};

}  // namespace portwave
