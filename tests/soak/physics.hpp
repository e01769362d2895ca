#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/stepper.hpp>

namespace portwave::soak {

/// What a run must be judged by, from committed states alone: formulas that stand here, in extended
/// precision, and share nothing with the engine's own.
class Physics {
 public:
  virtual ~Physics() = default;
  /// Called once, before the first step.
  virtual void begin(const Stepper&) {}
  /// H of all parts [J].
  virtual long double stored_J(const Stepper& stepper) const = 0;
  /// Called after every step: the work of the inputs in it.
  virtual long double supplied_J(const Stepper&) { return 0.0L; }
  /// The distance of the state from a solution in closed form, relative to the amplitude.
  virtual std::optional<long double> error(const Stepper&) const { return std::nullopt; }
  /// What `error` may be after so many steps.
  virtual double allowed_error(std::int64_t) const { return 0.0; }
  /// What is wrong with the samples that controllers have taken; empty: nothing.
  virtual std::string samples(const Stepper&) { return {}; }
};

struct Setup {
  Scenario scenario;
  std::unique_ptr<Physics> physics;
  bool conserves = false;  ///< H stays what it was, up to the rounding of the account
};

struct Case {
  const char* name;
  const char* summary;
  std::int64_t steps;  ///< of a full run
  /// `active_Ns_per_m` > 0: with a damper that gives energy (lossless_pair; others do not look at it).
  std::function<Setup(double active_Ns_per_m)> make;
};

const std::vector<Case>& cases();

}  // namespace portwave::soak
