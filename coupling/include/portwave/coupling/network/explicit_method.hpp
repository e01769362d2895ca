#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "portwave/coupling/network/network_method.hpp"
#include "portwave/coupling/network/network_peers.hpp"
#include "portwave/coupling/network/network_trials.hpp"

namespace portwave {

class ExplicitStepper;

/// A method that steps islands without iteration and keeps the balance of energy exactly: kicks and drifts, or
/// Taylor series. At the end of a step the state is moved so that H + T = H₀ + T₀ + supply − dissipation to
/// rounding, T being the rounding that is left (StepLedger::tank_J). A step that is too long for this is taken
/// as two halves, which are halved in turn, ten times at most; a step that is tried (NetworkTrials) is not halved.
/// Errors   while stepping NetworkFault: too_inaccurate after the last halving, inputs that throw or are not
///          finite.
/// Threads  islands at once; results do not depend on it.
class ExplicitMethod : public NetworkMethod, public NetworkTrials {
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
  bool set_state(std::span<const double> x) override;
  /// Steps of islands, halves included, are taken as two halves from now on, for a comparison with this run: where it
  /// has halved its steps, steps of h/2 would be no shorter.
  void halve_once_more();
  std::int64_t halved_steps() const;  ///< of islands
  /// A part whose energy in the present state is not what the steps take it for, and their account with them; −1: none
  /// is. Of energies that say nothing but H and ∇H, such as callbacks, it is known from a few places in which states
  /// they are quadratic. Costs an evaluation or two of H of each of these parts, and a copy of the states.
  /// `by_all`: all ranks that share its steps call it.
  int part_astray(bool by_all) const;

  /// Goes on where `before` is: a method of the same kind and options on the same system, before the component of a
  /// part was exchanged for one that stores `more_J` more in the same state.
  void take_over(ExplicitMethod& before, int part, double more_J);

  /// Ranks share its steps from now on: the rows of large islands, and others island by island. Results have the same
  /// bits as in one process. All ranks call it, and then all functions that step, archive or change the state; those that
  /// look at states of the whole either on all ranks, or on one that has told the others to `fetch`. False, and nothing
  /// has changed, where there is nothing to share.
  bool share_among(NetworkPeers& peers);
  /// The states of the whole from all ranks, which all call it.
  void fetch();

  bool attempt(double step_s, const ForEach& each) override;
  std::string obstacle() const override;
  NetworkStep commit(double end_s) override;
  void measure(std::span<const double> start, std::span<Energies> by_block) override;
  std::span<const double> attempted() const override;
  void archive_trials(StateArchive& archive) override;

 protected:
  ExplicitMethod();
  /// Once, by the constructor.
  void set_stepper(std::unique_ptr<ExplicitStepper> stepper);
  const ExplicitStepper& stepper() const { return *stepper_; }
  ExplicitStepper& stepper() { return *stepper_; }
  /// The last step is another one from now on.
  virtual void forget_states_within() {}

 private:
  std::unique_ptr<ExplicitStepper> stepper_;
};

}  // namespace portwave
