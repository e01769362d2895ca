// Simulations in C: names become numbers.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "handles.hpp"
#include "portwave/runtime/output/summary.hpp"
#include "portwave/runtime/step/named_states.hpp"

namespace portwave::c_interface {

std::vector<Override> overrides_of(const char* const* overrides, std::size_t count) {
  std::vector<Override> out;
  if (count > 0 && overrides == nullptr) throw std::invalid_argument("the overrides are null");
  for (std::size_t i = 0; i < count; ++i) {
    const std::string text = overrides[i] == nullptr ? "" : overrides[i];
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
      throw std::invalid_argument("an override is \"/json/pointer=value\", got \"" + text + "\"");
    }
    out.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  return out;
}

portwave_energy energy_of(const EnergyTotals& totals, const Certificate& certificate) {
  portwave_energy out{};
  out.initial_J = totals.initial_J;
  out.final_J = totals.final_J;
  out.supplied_J = totals.supplied_J;
  out.dissipated_J = totals.dissipated_J;
  out.mismatch_J = totals.mismatch_J;
  out.tank_J = totals.tank_J;
  out.impact_J = totals.impact_J;
  out.certificate = static_cast<int>(certificate.status);
  out.numerical_dissipation_J = totals.numerical_dissipation_J;
  return out;
}

portwave_options options_of(const portwave_options* options) {
  portwave_options own{};
  own.threads = 1;
  if (options == nullptr) return own;
  if (options->size < sizeof(std::size_t)) {
    throw std::invalid_argument("the size of the options is not set");
  }
  std::memcpy(&own, options, std::min(options->size, sizeof own));
  if (own.threads == 0) own.threads = 1;
  if (own.threads < 1 || own.threads > kMaxThreads) {
    throw std::invalid_argument("threads must be from 1 to " + std::to_string(kMaxThreads) +
                                ", got " + std::to_string(own.threads));
  }
  return own;
}

portwave::Plugins plugins_of(const portwave_options& options) {
  return options.allow_plugins != 0 ? portwave::Plugins::allowed : portwave::Plugins::refused;
}

portwave_simulation* simulation_of(Scenario scenario, const portwave_options& options) {
  scenario.options.threads = options.threads;
  scenario.options.time = {.deadline_s = options.deadline_s, .pace = options.pace};
  if (options.arena != nullptr) scenario.options.arena = options.arena->arena;
  return new portwave_simulation(std::move(scenario));
}

}  // namespace portwave::c_interface

using namespace portwave::c_interface;

namespace {

constexpr std::int64_t kMostSteps = std::int64_t{1} << 53;

bool has_quantity(const portwave_simulation* simulation, int quantity) {
  return simulation != nullptr && quantity >= 0 &&
         static_cast<std::size_t>(quantity) < simulation->quantities.size();
}

portwave_status no_quantity(int quantity) {
  return guarded([&] {
    return fail(PORTWAVE_INVALID_ARGUMENT,
                ("there is no quantity of number " + std::to_string(quantity)).c_str());
  });
}

portwave_status stopped() { return fail(PORTWAVE_NOT_POSSIBLE, "stopped by the observer"); }

}  // namespace

extern "C" {

int portwave_abi_version(void) { return PORTWAVE_ABI_VERSION; }
const char* portwave_version(void) { return PORTWAVE_VERSION; }

portwave_status portwave_load(const char* path, const char* const* overrides, size_t count,
                              portwave_simulation** simulation) {
  return portwave_load_with(path, overrides, count, nullptr, simulation);
}
portwave_status portwave_load_with(const char* path, const char* const* overrides, size_t count,
                                   const portwave_options* options,
                                   portwave_simulation** simulation) {
  if (path == nullptr || simulation == nullptr) return null_pointer();
  *simulation = nullptr;
  return guarded([&] {
    const portwave_options own = options_of(options);
    *simulation = simulation_of(
        portwave::load_scenario(path, overrides_of(overrides, count), {}, plugins_of(own)), own);
    return PORTWAVE_OK;
  });
}

portwave_status portwave_parse(const char* text, const char* folder, const char* const* overrides,
                               size_t count, portwave_simulation** simulation) {
  return portwave_parse_with(text, folder, overrides, count, nullptr, simulation);
}
portwave_status portwave_parse_with(const char* text, const char* folder,
                                    const char* const* overrides, size_t count,
                                    const portwave_options* options,
                                    portwave_simulation** simulation) {
  if (text == nullptr || simulation == nullptr) return null_pointer();
  *simulation = nullptr;
  return guarded([&] {
    const portwave_options own = options_of(options);
    *simulation =
        simulation_of(portwave::parse_scenario(text, "scenario", folder == nullptr ? "." : folder,
                                               overrides_of(overrides, count), {}, plugins_of(own)),
                      own);
    return PORTWAVE_OK;
  });
}

portwave_status portwave_arena_new(int threads, portwave_arena** arena) {
  if (arena == nullptr) return null_pointer();
  *arena = nullptr;
  return guarded([&] {
    *arena = new portwave_arena{std::make_shared<portwave::Arena>(threads)};
    return PORTWAVE_OK;
  });
}
void portwave_arena_free(portwave_arena* arena) { delete arena; }

portwave_status portwave_load_plugin(const char* path) {
  if (path == nullptr) return null_pointer();
  return guarded([&] {
    (void)portwave::load_plugin(path);
    return PORTWAVE_OK;
  });
}

portwave_status portwave_clone(const portwave_simulation* simulation, portwave_simulation** clone) {
  if (simulation == nullptr || clone == nullptr) return null_pointer();
  *clone = nullptr;
  return guarded([&] {
    *clone = new portwave_simulation(*simulation, /*threads=*/0);
    return PORTWAVE_OK;
  });
}

void portwave_free(portwave_simulation* simulation) {
  if (simulation == nullptr) return;
  (void)guarded([&] {
    simulation->expect_idle("free");
    delete simulation;
    return PORTWAVE_OK;
  });
}

portwave_status portwave_set_threads(portwave_simulation* simulation, int threads) {
  if (simulation == nullptr) return null_pointer();
  return guarded([&] {
    if (threads < 1 || threads > portwave::kMaxThreads) {
      throw std::invalid_argument("threads must be from 1 to " +
                                  std::to_string(portwave::kMaxThreads) + ", got " +
                                  std::to_string(threads));
    }
    simulation->expect_idle("give threads to");
    simulation->stepper = std::make_unique<portwave::Stepper>(simulation->stepper->clone(threads));
    return PORTWAVE_OK;
  });
}

portwave_status portwave_step(portwave_simulation* simulation) {
  if (simulation == nullptr) return null_pointer();
  return guarded([&] {
    const portwave_simulation::Stepping stepping(*simulation);
    (void)simulation->goes_on(simulation->stepper->step());
    return PORTWAVE_OK;
  });
}

portwave_status portwave_step_by(portwave_simulation* simulation, double step_s) {
  if (simulation == nullptr) return null_pointer();
  return guarded([&] {
    const portwave_simulation::Stepping stepping(*simulation);
    (void)simulation->goes_on(simulation->stepper->step_by(step_s));
    return PORTWAVE_OK;
  });
}

portwave_status portwave_step_n(portwave_simulation* simulation, int64_t steps) {
  if (simulation == nullptr) return null_pointer();
  if (steps < 0 || steps > kMostSteps) {
    return fail(PORTWAVE_INVALID_ARGUMENT, "the number of steps must be from 0 to 2^53");
  }
  return guarded([&] {
    const portwave_simulation::Stepping stepping(*simulation);
    for (int64_t i = 0; i < steps; ++i) {
      if (!simulation->goes_on(simulation->stepper->step())) return stopped();
      if (simulation->stepper->ending_watch() != nullptr) break;
    }
    return PORTWAVE_OK;
  });
}

portwave_status portwave_run_until(portwave_simulation* simulation, double time_s) {
  if (simulation == nullptr) return null_pointer();
  return guarded([&] {
    const portwave_simulation::Stepping stepping(*simulation);
    while (const auto report = simulation->stepper->step_if_before(time_s)) {
      if (!simulation->goes_on(*report)) return stopped();
      if (simulation->stepper->ending_watch() != nullptr) break;
    }
    return PORTWAVE_OK;
  });
}

double portwave_time(const portwave_simulation* simulation) {
  return simulation == nullptr ? kNone : simulation->stepper->time_s();
}
int64_t portwave_step_index(const portwave_simulation* simulation) {
  return simulation == nullptr ? -1 : simulation->stepper->step_index();
}

int portwave_find_input(const portwave_simulation* simulation, const char* name) {
  int found = -1;
  if (simulation == nullptr || name == nullptr) {
    (void)null_pointer();
    return found;
  }
  (void)guarded([&] {
    found = simulation->stepper->find_input(name).slot;
    return PORTWAVE_OK;
  });
  return found;
}

int portwave_input_count(const portwave_simulation* simulation) {
  if (simulation == nullptr) return -1;
  return static_cast<int>(simulation->stepper->system().settable_inputs().size());
}

portwave_status portwave_set_input(portwave_simulation* simulation, int input, double value) {
  if (simulation == nullptr) return null_pointer();
  return guarded([&] {
    simulation->stepper->set_input(portwave::InputSlot{input}, value);
    return PORTWAVE_OK;
  });
}

portwave_status portwave_set_inputs(portwave_simulation* simulation, const double* values,
                                    size_t count) {
  if (simulation == nullptr || (values == nullptr && count > 0)) return null_pointer();
  return guarded([&] {
    simulation->stepper->set_inputs({values, count});
    return PORTWAVE_OK;
  });
}

portwave_status portwave_set_parameter(portwave_simulation* simulation, const char* path,
                                       double value) {
  if (simulation == nullptr || path == nullptr) return null_pointer();
  return guarded([&] {
    simulation->expect_idle("change");
    portwave::set_parameter(*simulation->stepper, *simulation->scenario, path, value);
    return PORTWAVE_OK;
  });
}
portwave_status portwave_get_parameter(const portwave_simulation* simulation, const char* path,
                                       double* value) {
  if (simulation == nullptr || path == nullptr || value == nullptr) return null_pointer();
  return guarded([&] {
    *value = portwave::parameter(*simulation->stepper, *simulation->scenario, path);
    return PORTWAVE_OK;
  });
}

double portwave_get_input(const portwave_simulation* simulation, int input) {
  double value = kNone;
  if (simulation == nullptr) return value;
  (void)guarded([&] {
    value = simulation->stepper->input(portwave::InputSlot{input});
    return PORTWAVE_OK;
  });
  return value;
}

int portwave_find_quantity(portwave_simulation* simulation, const char* name) {
  int found = -1;
  if (simulation == nullptr || name == nullptr) {
    (void)null_pointer();
    return found;
  }
  (void)guarded([&] {
    std::vector<portwave::Quantity>& known = simulation->quantities;
    const auto same = std::ranges::find(known, name, &portwave::Quantity::label);
    if (same == known.end()) {
      known.push_back(portwave::find_quantity(*simulation->stepper, name));
      found = static_cast<int>(known.size()) - 1;
    } else {
      found = static_cast<int>(same - known.begin());
    }
    return PORTWAVE_OK;
  });
  return found;
}

const char* portwave_unit(const portwave_simulation* simulation, int quantity) {
  if (!has_quantity(simulation, quantity)) return "";
  return simulation->quantities[static_cast<std::size_t>(quantity)].unit.c_str();
}

double portwave_read(const portwave_simulation* simulation, int quantity) {
  if (!has_quantity(simulation, quantity)) {
    (void)(simulation == nullptr ? null_pointer() : no_quantity(quantity));
    return kNone;
  }
  double value = kNone;
  (void)guarded([&] {
    value =
        observe(*simulation->stepper, simulation->quantities[static_cast<std::size_t>(quantity)]);
    return PORTWAVE_OK;
  });
  return value;
}

portwave_status portwave_read_all(const portwave_simulation* simulation, const int* quantities,
                                  size_t count, double* values) {
  if (simulation == nullptr || (count > 0 && (quantities == nullptr || values == nullptr))) {
    return null_pointer();
  }
  for (size_t i = 0; i < count; ++i) {
    if (has_quantity(simulation, quantities[i])) continue;
    return no_quantity(quantities[i]);
  }
  for (size_t i = 0; i < count; ++i) values[i] = portwave_read(simulation, quantities[i]);
  return PORTWAVE_OK;
}

size_t portwave_note_count(const portwave_simulation* simulation) {
  return simulation == nullptr ? 0 : simulation->scenario->notes.size();
}
const char* portwave_note_where(const portwave_simulation* simulation, size_t note) {
  if (note >= portwave_note_count(simulation)) return "";
  return simulation->scenario->notes[note].where.c_str();
}
const char* portwave_note_text(const portwave_simulation* simulation, size_t note) {
  if (note >= portwave_note_count(simulation)) return "";
  return simulation->scenario->notes[note].what.c_str();
}

size_t portwave_state_count(const portwave_simulation* simulation) {
  return simulation == nullptr ? 0 : portwave::named_state_count(simulation->stepper->system());
}

portwave_status portwave_states(const portwave_simulation* simulation, double* values,
                                size_t count) {
  if (simulation == nullptr || (values == nullptr && count > 0)) return null_pointer();
  return guarded([&] {
    portwave::get_named_states(*simulation->stepper, {values, count});
    return PORTWAVE_OK;
  });
}

portwave_status portwave_state_at(const portwave_simulation* simulation, double time_s,
                                  double* values, size_t count) {
  if (simulation == nullptr || (values == nullptr && count > 0)) return null_pointer();
  return guarded([&] {
    portwave::get_named_states_at(*simulation->stepper, time_s, {values, count});
    return PORTWAVE_OK;
  });
}

portwave_status portwave_set_states(portwave_simulation* simulation, const double* values,
                                    size_t count) {
  if (simulation == nullptr || (values == nullptr && count > 0)) return null_pointer();
  return guarded([&] {
    simulation->expect_idle("change");
    portwave::set_named_states(*simulation->stepper, {values, count});
    return PORTWAVE_OK;
  });
}

portwave_status portwave_get_energy(const portwave_simulation* simulation,
                                    portwave_energy* energy) {
  if (simulation == nullptr || energy == nullptr) return null_pointer();
  return hand_over(energy_of(simulation->stepper->energy(), simulation->stepper->certificate()),
                   energy);
}

portwave_status portwave_get_deadline(const portwave_simulation* simulation,
                                      portwave_deadline* deadline) {
  if (simulation == nullptr || deadline == nullptr) return null_pointer();
  return guarded([&] {
    const auto own = simulation->stepper->deadline();
    if (!own) return fail(PORTWAVE_NOT_POSSIBLE, "the simulation has no deadline");
    portwave_deadline out{};
    out.steps = own->steps;
    out.misses = own->misses;
    out.preempted_misses = own->preempted_misses;
    out.worst_slack_s = own->worst_slack_s;
    out.slack_p01_s = own->slack_p01_s;
    out.slack_p50_s = own->slack_p50_s;
    out.slack_p99_s = own->slack_p99_s;
    out.guard_misses = own->guard_misses;
    out.late_misses = own->late_misses;
    out.trial_misses = own->trial_misses;
    out.unused_share = own->unused_share;
    out.jitter_s = own->jitter_s();
    return hand_over(out, deadline);
  });
}

portwave_status portwave_get_report(const portwave_simulation* simulation,
                                    portwave_report* report) {
  if (simulation == nullptr || report == nullptr) return null_pointer();
  const portwave::StepReport& own = simulation->report;
  portwave_report out{};
  out.step_s = own.step_s;
  out.residual = own.residual;
  out.iterations = own.iterations;
  out.converged = own.converged ? 1 : 0;
  out.rejected_steps = own.rejected_steps;
  return hand_over(out, report);
}

size_t portwave_event_count(const portwave_simulation* simulation) {
  return simulation == nullptr ? 0 : simulation->events.size();
}

portwave_status portwave_get_event(const portwave_simulation* simulation, size_t event,
                                   portwave_event* out) {
  if (simulation == nullptr || out == nullptr) return null_pointer();
  return guarded([&] {
    if (event >= simulation->events.size()) {
      throw std::out_of_range("there is no event " + std::to_string(event) + " of " +
                              std::to_string(simulation->events.size()));
    }
    const portwave::Event& own = simulation->events[event];
    const portwave::Watch& watch =
        simulation->stepper->watches()[static_cast<std::size_t>(own.watch)];
    portwave_event told{};
    told.time_s = own.time_s;
    told.name = watch.name.c_str();
    told.direction = (own.rising ? watch.rising : watch.falling).c_str();
    told.rising = own.rising ? 1 : 0;
    told.ends_run = watch.ends_run ? 1 : 0;
    return hand_over(told, out);
  });
}

const char* portwave_ended_by(const portwave_simulation* simulation) {
  const portwave::Watch* const watch =
      simulation == nullptr ? nullptr : simulation->stepper->ending_watch();
  return watch == nullptr ? "" : watch->name.c_str();
}

const char* portwave_shortcomings(const portwave_simulation* simulation) {
  static thread_local std::string text;
  text.clear();
  if (simulation == nullptr) {
    (void)null_pointer();
    return text.c_str();
  }
  const portwave_status status = guarded([&] {
    for (const std::string& phrase :
         portwave::summarize("", simulation->scenario->options, *simulation->stepper, 1.0)
             .shortcomings()) {
      text += (text.empty() ? "" : "; ") + phrase;
    }
    return PORTWAVE_OK;
  });
  return status == PORTWAVE_OK ? text.c_str() : portwave_last_error();
}

portwave_status portwave_snapshot_new(portwave_snapshot** snapshot) {
  if (snapshot == nullptr) return null_pointer();
  *snapshot = nullptr;
  return guarded([&] {
    *snapshot = new portwave_snapshot;
    return PORTWAVE_OK;
  });
}

void portwave_snapshot_free(portwave_snapshot* snapshot) { delete snapshot; }

portwave_status portwave_snapshot_save(const portwave_simulation* simulation,
                                       portwave_snapshot* snapshot) {
  if (simulation == nullptr || snapshot == nullptr) return null_pointer();
  return guarded([&] {
    simulation->stepper->snapshot(snapshot->snapshot);
    return PORTWAVE_OK;
  });
}

portwave_status portwave_restore(portwave_simulation* simulation,
                                 const portwave_snapshot* snapshot) {
  if (simulation == nullptr || snapshot == nullptr) return null_pointer();
  return guarded([&] {
    simulation->expect_idle("go back with");
    simulation->stepper->restore(snapshot->snapshot);
    const auto seen = simulation->stepper->events();
    simulation->events.assign(seen.begin(), seen.end());
    return PORTWAVE_OK;
  });
}

portwave_status portwave_set_observer(portwave_simulation* simulation, portwave_observer observer,
                                      void* context) {
  if (simulation == nullptr) return null_pointer();
  simulation->observer = observer;
  simulation->context = context;
  return PORTWAVE_OK;
}

}  // extern "C"
