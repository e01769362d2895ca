#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "portwave/runtime/step/stepper.hpp"

namespace portwave {

/// The system and options of wave coupling: as given or, with more than one stage or with substeps, the
/// staged system with impedances and initial waves for each stage.
class StagedRun {
 public:
  /// `system` must outlive it. Errors: ConfigError of staged_system.
  StagedRun(const System& system, const StepperOptions& options);

  const System& given() const { return *given_; }
  const System& stepped() const { return staged_ != nullptr ? *staged_ : *given_; }
  const StepperOptions& options() const { return options_; }

  /// Gives the staged system away. Precondition: more than one stage, or substeps.
  System take_stepped() { return std::move(*staged_); }

  /// Called when a part of the given system was exchanged, and when that is taken back.
  void component_changed(int part);
  void component_restored(int part);

  int stages() const { return stages_; }
  /// The stepped system's number of a given scalar port at a stage.
  int port(int scalar_port, int stage) const;
  /// √bᵢ: the factor from a part's variables to those of a stage.
  double weight(int stage) const;
  /// Repeats values by scalar port of the given system for every stage. Values that are by port of the
  /// stepped system are returned unchanged.
  std::vector<double> at_all_stages(std::span<const double> by_port) const;

 private:
  const System* given_;
  StepperOptions options_;
  int stages_ = 1;
  std::unique_ptr<System> staged_;
  std::shared_ptr<const Component> left_;  // of staged_, before the last exchange: to go back to
};

}  // namespace portwave
