#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "ranks/rank_together.hpp"
#include "step/states/start_check.hpp"
#include "step/step_engine.hpp"

namespace portwave {

/// Sources that contradict what ideal switches make of them do so where they are not 0, which may be long after
/// the switch has moved: a sine on a closed one.
void StartCheck::refuse_contradictions(double step_s) {
  constexpr double kAlike = 1e-9;
  for (int i = 0; i < constraints_.size(); ++i) {
    if (options_.start == Start::as_given || !constraints_.is_prescribed(i)) continue;
    const StateInstant middle = now(engine_.clock().time_s() + 0.5 * step_s);
    const StateConstraints::Residual there = constraints_.residual(i, middle);
    if (!(std::abs(there.value) > kAlike * there.size)) continue;
    const int violated[] = {i};
    refuse(constraints_.odds_of(violated, middle), middle,
           has_changed_ ? changed_ + ", and " : "an ideal switch and sources disagree: ");
  }
}

namespace {

bool is_jumping_rate(const Part& part, std::size_t input) {
  const Signal& signal = part.inputs[input];
  if (!part.input_is_driven[input] || !signal.is_rate()) return false;
  constexpr double kEver = std::numeric_limits<double>::max();
  return signal.can_change_over() || signal.displacement_jump(-kEver, kEver).has_value();
}

}  // namespace

bool StartCheck::has_jumping_rate(const System& system) {
  return std::ranges::any_of(system.parts(), [](const Part& part) {
    for (std::size_t i = 0; i < part.inputs.size(); ++i) {
      if (is_jumping_rate(part, i)) return true;
    }
    return false;
  });
}

std::vector<StartCheck::Displacement> StartCheck::displacements_of(const System& system) const {
  std::vector<Displacement> out;
  for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
    const Part& own = system.parts()[at(part)];
    for (int input = 0; input < static_cast<int>(own.inputs.size()); ++input) {
      const bool is_source = std::ranges::any_of(constraints_.sources(), [&](const auto& source) {
        return source.part == part && source.input == input;
      });
      if (!is_source && is_jumping_rate(own, at(input))) out.push_back({part, input});
    }
  }
  return out;
}

/// A displacement that jumps moves a spring's end; what is joined to it rigidly would need an infinite speed.
void StartCheck::refuse_displacement_jump(const Source& source, double from_s, double to_s) {
  const Part& part = engine_.system().parts()[at(source.part)];
  const Signal& signal = part.inputs[at(source.input)];
  if (!signal.is_rate()) return;
  const std::optional<Signal::Jump> jump = signal.displacement_jump(from_s, to_s);
  if (!jump) return;
  const int place = static_cast<int>(&source - sources_.data());
  const int constraint = constraints_.sources()[at(place)].constraint;
  refuse_displacement(source.part, source.input, *jump,
                      fmt::format("{} joins it rigidly to what cannot follow at a finite speed",
                                  constraints_.joints(constraint)),
                      "put a spring between, such as that of a tyre");
}

void StartCheck::refuse_displacement(int part, int input, const Signal::Jump& jump,
                                     const std::string& why, const std::string& remedies) {
  const Part& own = engine_.system().parts()[at(part)];
  const std::string what =
      fmt::format("the displacement of {}.{} jumps from {:.6g} to {:.6g} at {:.9g} s, and {}",
                  printable(own.name), printable(own.component->signature().inputs[at(input)].name),
                  jump.before, jump.after, jump.time_s, why);
  if (options_.start == Start::as_given) {
    const std::int64_t step = engine_.clock().steps();
    if (noted_in_ == step) return;
    noted_in_ = step;
    if (notes_.count++ == 0) {
      notes_.first_s = engine_.clock().time_s();
      notes_.first = what;
    }
    return;
  }
  throw StepError::of_odds(
      own.name, engine_.clock().steps(),
      fmt::format("{}.\nLet it rise within a time that the steps resolve; or {}; or \"start\": "
                  "\"as_given\" in \"time\" moves it within one step",
                  what, remedies));
}

/// Jumps of displacements that a spring takes up, or a damper, which cannot. Returns a latest end for the step.
double StartCheck::look_at_displacements(double step_s) {
  const double time_s = engine_.clock().time_s();
  double end_s = std::numeric_limits<double>::infinity();
  for (const Displacement& own : displacements_) {
    const Signal& signal = engine_.system().parts()[at(own.part)].inputs[at(own.input)];
    const auto jump = signal.displacement_jump(time_s - kSameInstant * step_s,
                                               time_s + (1.0 - kSameInstant) * step_s);
    if (!jump) continue;
    if (options_.sizes && jump->time_s > time_s + kSameInstant * step_s) {
      end_s = std::min(end_s, jump->time_s);
    } else if (is_damped_jump(*jump, step_s)) {
      refuse_displacement(own.part, own.input, *jump,
                          "a damper takes it up: at an infinite speed it needs an infinite energy, "
                          "and what steps make of it grows as they get shorter",
                          "put a spring between it and the damper");
    }
  }
  return end_s;
}

/// Whether steps over the jump dissipate the more the shorter they are. Two steps of other engines tell, from the states
/// of now.
bool StartCheck::is_damped_jump(const Signal::Jump& jump, double step_s) const {
  if (!engine_.together().is_alone() || !engine_.method().method.couples_by_waves()) return false;
  const System& system = engine_.system();
  const bool can_go_back = std::ranges::all_of(
      system.parts(), [](const Part& part) { return part.component->capabilities().restorable; });
  if (!can_go_back) return false;
  std::vector<double> states;
  for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
    const std::span<const double> x = now(jump.time_s).state(part);
    states.insert(states.end(), x.begin(), x.end());
  }
  double stored_J = largest_energy_J();
  const auto dissipated_J = [&](double own_s) {
    StepperOptions options{.step_s = own_s, .start_s = jump.time_s - 0.5 * own_s};
    options.method.waves().stages = 1;
    const auto engine = make_wave_engine(system, options, together_of(system, options.ranks));
    std::ranges::copy(engine_.settings(), engine->settings().begin());
    engine->states_changed(states);
    const StepLedger energy = engine->step_by(own_s).energy;
    stored_J = std::max(stored_J, std::abs(energy.changed_J));
    return energy.dissipated_J + energy.numerical_dissipation_J;
  };
  try {
    constexpr double kShort = 1e-3, kShorter = 0.25 * kShort;
    const double longer_J = dissipated_J(kShort * step_s);
    const double shorter_J = dissipated_J(kShorter * step_s);
    // Of a damper c it is c by²/h. As large as it is in this step, it must count beside what springs take up.
    return shorter_J > 2.0 * longer_J && kShorter * shorter_J > 1e-6 * stored_J;
  } catch (const std::exception&) {
    return false;  // the step of the run fails likewise, and says why
  }
}

}  // namespace portwave
