#include <cmath>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
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

/// A displacement that jumps moves a spring's end; what is joined to it rigidly would need an infinite speed.
void StartCheck::refuse_displacement_jump(const Source& source, double from_s, double to_s) {
  const Part& part = engine_.system().parts()[at(source.part)];
  const Signal& signal = part.inputs[at(source.input)];
  if (!signal.is_rate()) return;
  const std::optional<Signal::Jump> jump = signal.displacement_jump(from_s, to_s);
  if (!jump) return;
  const int place = static_cast<int>(&source - sources_.data());
  const int constraint = constraints_.sources()[at(place)].constraint;
  const std::string what = fmt::format(
      "the displacement of {}.{} jumps from {:.6g} to {:.6g} at {:.9g} s, and {} joins it rigidly "
      "to "
      "what cannot follow at a finite speed",
      printable(part.name), printable(part.component->signature().inputs[at(source.input)].name),
      jump->before, jump->after, jump->time_s, constraints_.joints(constraint));
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
      part.name, engine_.clock().steps(),
      what +
          ".\nLet it rise within a time that the steps resolve; or put a spring "
          "between, such as that of a tyre; or \"start\": \"as_given\" in \"time\" "
          "moves it within one step");
}

}  // namespace portwave
