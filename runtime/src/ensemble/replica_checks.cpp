#include "ensemble/replica_checks.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "portwave/coupling/system/state_constraints.hpp"
#include "portwave/runtime/parallel/arena.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "step/stepper_options.hpp"

namespace portwave {

Issues check_ensemble(const System& one, int replicas, const StepperOptions& options,
                      const EnsembleOptions& ensemble) {
  Issues issues;
  const auto expect = [&](bool good, const char* where, std::string what) {
    if (!good) issues.push_back({where, std::move(what)});
  };
  expect(replicas >= 1, "/ensemble/replicas", fmt::format("must be >= 1, got {}", replicas));
  expect(ensemble.threads >= 1 && ensemble.threads <= kMaxThreads, "/ensemble/threads",
         "must be in 1..1024");
  expect(ensemble.chunk >= 0, "/ensemble/chunk", "must be >= 0");
  expect(
      !options.time.active(), "/deadline_s",
      "an ensemble keeps no pace and no deadline: what a step has time for would depend on which "
      "replicas are stepped beside it");
  if (!options.watches.empty()) {
    std::string names;
    for (const Watch& watch : options.watches) {
      names += (names.empty() ? "" : ", ") + in_quotes(watch.name);
    }
    issues.push_back(
        {"/events", fmt::format("an ensemble knows no events, and here are {}: leave them out "
                                "(\"events\": []), or step each replica by a stepper of its own",
                                names)});
  }
  expect(
      can_choose_sizes(options.method) || one.settable_inputs().empty(), "/method/kind",
      "without waves inputs are functions of time only, but for \"kick-drift\" and \"taylor\", and "
      "this system has settable ones");
  return issues;
}

namespace {

/// Whether rigid joints constrain inputs that may jump, or parts that may change.
bool has_moving_joints(const System& one) {
  const StateConstraints constraints(one, [&one](int part) -> std::span<const double> {
    return one.parts()[at(part)].initial_state;
  });
  return constraints.may_change() ||
         std::ranges::any_of(constraints.sources(), [&one](const StateConstraints::Source& own) {
           const Signal& input = one.parts()[at(own.part)].inputs[at(own.input)];
           return input.is_settable() || input.is_callback() ||
                  input.digest() != Signal::constant(input(0.0)).digest();
         });
}

}  // namespace

std::string find_obstacle(const System& one, const StepperOptions& options) {
  if (!options.method.couples_by_waves()) return "the method couples without waves";
  if (options.sizes) return "steps choose their own size";
  if (options.signals != nullptr) return "signals are sampled for each by itself";
  if (options.certify == Certify::full) return "every step of each is certified in full";
  if (one.island_count() != 1) return fmt::format("it falls into {} islands", one.island_count());
  if (has_moving_joints(one)) return "what enters a rigid joint may jump";
  for (const Part& part : one.parts()) {
    const Capabilities able = part.component->capabilities();
    if (able.knows_energy && able.repeatable && able.thread_safe &&
        part.port_hamiltonian() != nullptr) {
      continue;
    }
    return fmt::format("subsystem {} does not know its energy, repeat its steps or allow threads",
                       in_quotes(part.name));
  }
  return {};
}

bool allows_threads(const System& system) {
  return std::ranges::all_of(system.parts(), [](const Part& part) {
    return part.component->capabilities().thread_safe &&
           std::ranges::none_of(part.inputs, &Signal::is_callback);
  });
}

bool have_same_parts(const System& a, const System& b) {
  return std::ranges::equal(a.parts(), b.parts(), {}, &Part::component, &Part::component) &&
         std::ranges::equal(a.junctions(), b.junctions(), {}, &Junction::shared, &Junction::shared);
}

void refuse_other_shape(const System& one, const System& other, int replica) {
  const auto same_part = [](const Part& a, const Part& b) {
    const Signature& x = a.component->signature();
    const Signature& y = b.component->signature();
    return a.name == b.name && a.substeps == b.substeps && x.state_size() == y.state_size() &&
           x.wave_size() == y.wave_size() && x.input_size() == y.input_size();
  };
  const auto same_input = [](const System::SettableInput& a, const System::SettableInput& b) {
    return a.part == b.part && a.input == b.input;
  };
  const bool same = std::ranges::equal(one.parts(), other.parts(), same_part) &&
                    std::ranges::equal(one.junctions(), other.junctions(), {}, &Junction::waves,
                                       &Junction::waves) &&
                    std::ranges::equal(one.settable_inputs(), other.settable_inputs(), same_input);
  if (same) return;
  throw ConfigError(fmt::format("/ensemble/replicas/{}", replica),
                    "has another shape than the first one: parts by name, with as many states, "
                    "ports and inputs, couplings and settable inputs must be the same");
}

}  // namespace portwave
