#pragma once

// What the files of the C interface share: what the handles stand for, and how exceptions become statuses.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "portwave.h"
#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/parallel/arena.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"

struct portwave_arena {
  std::shared_ptr<portwave::Arena> arena;
};

struct portwave_snapshot {
  portwave::Snapshot snapshot;
};

struct portwave_simulation {
  /// The stepper takes over the system of the scenario.
  explicit portwave_simulation(portwave::Scenario loaded)
      : scenario(std::make_shared<portwave::Scenario>(std::move(loaded))),
        stepper(
            std::make_unique<portwave::Stepper>(std::move(scenario->system), scenario->options)) {}
  portwave_simulation(const portwave_simulation& other, int threads)
      : scenario(other.scenario),
        stepper(std::make_unique<portwave::Stepper>(other.stepper->clone(threads))),
        quantities(other.quantities),
        report(other.report),
        events(other.events) {}

  /// Called after every step. False: the observer ends the run.
  bool goes_on(const portwave::StepReport& made) {
    report = made;
    const auto seen = stepper->events();
    events.insert(events.end(), seen.begin(), seen.end());
    return observer == nullptr || observer(this, context) == 0;
  }

  /// While it exists, nobody else may step or change the simulation: functions that a step calls would
  /// find it half done.
  class Stepping {
   public:
    explicit Stepping(portwave_simulation& of) : of_(of) {
      of.expect_idle("step");
      of.is_stepping = true;
      of.events.clear();
    }
    ~Stepping() { of_.is_stepping = false; }
    Stepping(const Stepping&) = delete;
    Stepping& operator=(const Stepping&) = delete;

   private:
    portwave_simulation& of_;
  };
  /// Errors: std::logic_error.
  void expect_idle(const char* to_do) const {
    if (!is_stepping) return;
    throw std::logic_error(
        std::string("the simulation is in a step: a function that it calls, such as "
                    "its observer, cannot ") +
        to_do + " it. Return first (other than 0 ends the run)");
  }

  std::shared_ptr<portwave::Scenario> scenario;  // without its system; clones share it
  std::unique_ptr<portwave::Stepper> stepper;
  std::vector<portwave::Quantity> quantities;
  portwave::StepReport report;
  std::vector<portwave::Event> events;  // of the last call that stepped
  portwave_observer observer = nullptr;
  void* context = nullptr;
  bool is_stepping = false;
};

namespace portwave::c_interface {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct LastError {
  std::string text;
  Issues issues;
  std::string part;
  FailedSolve solve;
};
/// Of this thread.
LastError& last_error();

/// The text is left empty where memory is exhausted.
portwave_status fail(portwave_status status, const char* text) noexcept;
portwave_status null_pointer();
/// The status of the exception that is being handled.
portwave_status translate() noexcept;

template <class Body>
portwave_status guarded(const Body& body) noexcept {
  try {
    return body();
  } catch (...) {
    try {
      return translate();
    } catch (...) {
      return PORTWAVE_NO_MEMORY;
    }
  }
}

/// Copies as much of `out` as the caller, which may be older, has members for.
template <class Structure>
portwave_status hand_over(Structure out, Structure* to) {
  if (to->size < sizeof(std::size_t)) {
    return fail(PORTWAVE_INVALID_ARGUMENT, "the structure's size is not set");
  }
  out.size = std::min(to->size, sizeof(Structure));
  std::memcpy(to, &out, out.size);
  return PORTWAVE_OK;
}

portwave_energy energy_of(const EnergyTotals& totals, const Certificate& certificate);

std::vector<Override> overrides_of(const char* const* overrides, std::size_t count);
/// The options of a caller, which may be older; null: none. Errors: std::invalid_argument.
portwave_options options_of(const portwave_options* options);
portwave::Plugins plugins_of(const portwave_options& options);
/// A simulation of a scenario with these options.
portwave_simulation* simulation_of(Scenario scenario, const portwave_options& options);

}  // namespace portwave::c_interface
