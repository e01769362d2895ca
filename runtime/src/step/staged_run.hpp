#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "portwave/coupling/impedance/integrator_choice.hpp"
#include "portwave/coupling/impedance/one_sided_decays.hpp"
#include "portwave/coupling/impedance/shared_decays.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave {

/// The system and options of wave coupling: as given; without its idle ports (live_system); and, with more than one
/// stage, damped parts or substeps, the staged system of that, with impedances and initial waves for each stage.
class StagedRun {
 public:
  /// `system` must outlive it. Errors: ConfigError of staged_system.
  StagedRun(const System& system, const StepperOptions& options);

  /// The nodes and weights of all parts, without damping.
  const StageRule& rule() const { return choice_.plan.rule(); }
  /// Which parts are damped, and why.
  const IntegratorChoice& integrators() const { return choice_; }

  const System& given() const { return *given_; }
  const System& stepped() const { return stepped_ != nullptr ? *stepped_ : *given_; }
  bool is_as_given() const { return stepped_ == nullptr; }
  const StepperOptions& options() const { return options_; }

  /// Gives the stepped system away. Precondition: it is not as given.
  System take_stepped() { return std::move(*stepped_); }

  /// Whether some storages may have damped steps among others (ChangeOver), and whether a part may.
  bool may_change_over() const { return may_change_over_; }
  /// Whether a part with substeps may be thrown across a one-sided part.
  bool may_throw_substeps() const { return may_throw_substeps_; }
  /// Whether steps may be taken in pieces: where one-sided parts change over several damped stages overshoot, and
  /// conserving ones where a decay begins that is faster than a step.
  bool may_overshoot() const { return may_overshoot_; }
  /// Whether all parts can be stepped again from an earlier state, in steps of any size.
  static bool can_return(const System& system);
  bool may_damp(int part) const;
  /// Of the storages that may be damped; and of all, if some take substeps: these may not be.
  OneSidedDecays one_sided_decays(double step_s) const;
  OneSidedDecays decays_of_substeps(double step_s) const;
  SharedDecays shared_decays(double step_s) const;
  /// Whether parameters of a part follow signals.
  bool is_exchanged(int part) const {
    return !exchanged_.empty() && exchanged_[static_cast<std::size_t>(part)] != 0;
  }
  /// The part is stepped with damped stages from now on, or without: another component of the stepped system.
  /// Precondition: `may_change_over`, and it may be damped.
  void set_damped(int part, bool damped);

  /// Called when a part of the given system was exchanged, and when that is taken back.
  void component_changed(int part);
  void component_restored(int part);

  int stages() const { return choice_.plan.stages; }
  /// Whether a given scalar port is idle, and not in the stepped system.
  bool is_idle(int scalar_port) const {
    return !live_.empty() && live_[static_cast<std::size_t>(scalar_port)] < 0;
  }
  /// The stepped system's number of a given scalar port at a stage. Precondition: it is not idle.
  int port(int scalar_port, int stage) const;
  /// √bᵢ: the factor from a part's variables to those of a stage.
  double weight(int stage) const;
  /// Values by scalar port of the given system, for the ports of the stepped one: repeated for every stage, and
  /// without those of idle ports. Values of another number are returned unchanged, as those by port of the stepped
  /// system are where that has another number.
  std::vector<double> at_all_stages(std::span<const double> by_port) const;

 private:
  std::unique_ptr<System> without_idle_ports(const System& system);
  void find_change_over();
  bool may_throw(const System& system) const;
  std::shared_ptr<const Component> apart(const std::shared_ptr<const Component>& component);

  const System* given_;
  StepperOptions options_;
  std::vector<char> exchanged_;  // by part: its parameters follow signals; empty: none do
  IntegratorChoice choice_;
  std::unique_ptr<System> stepped_;  // null: the given one
  std::unique_ptr<System>
      unstaged_;           // with several stages, without idle ports; null: the given one
  std::vector<int> live_;  // LiveSystem::number_of_port; empty: all as given
  std::shared_ptr<const Component> left_;  // of stepped_, before the last exchange: to go back to
  std::shared_ptr<const Component> left_undamped_;  // likewise, if that one was damped
  bool may_change_over_ = false, may_throw_substeps_ = false, may_overshoot_ = false;
  std::vector<char> may_change_;      // by part: it may be damped in single steps; empty: none may
  std::vector<std::uint64_t> shown_;  // by part, nonlinear: the states that are damped then; 0: all
  std::map<const Component*, std::shared_ptr<const Component>> apart_;
  std::map<int, std::shared_ptr<const Component>> undamped_;  // of parts that set_damped has damped
  /// A component and the damped one that takes its place.
  struct Twins {
    std::shared_ptr<const Component> undamped, damped;
  };
  std::map<const Component*, Twins> damped_;  // by the undamped one, which it keeps
  Twins left_twins_;                          // of the part that was exchanged last
};

}  // namespace portwave
