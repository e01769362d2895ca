// The step size of a structure, where that says one and where not.

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "adapters/structures/structure_scenario.hpp"

namespace portwave::structures {

double step_of(Structure& structure) {
  const double start_s = structure.start_s.value_or(0.0);
  std::optional<double> step_s = structure.step_s, stop_s = structure.stop_s;
  if (const auto noted = structure.own.find("scenario");
      noted != structure.own.end() && noted->is_object() && noted->contains("time")) {
    const Json& time = (*noted)["time"];
    if (time.is_object() && time.contains("step_s") && time["step_s"].is_number()) {
      step_s = time["step_s"].get<double>();
    }
  }
  const auto smaller = [&](double own) {
    if (own > 0.0 && (!step_s || own < *step_s)) step_s = own;
  };
  const bool is_said = step_s.has_value();
  if (!is_said) {
    for (const Element& own : structure.elements) smaller(own.step_s);
  }
  if (!step_s) {
    for (const Element& own : structure.elements) {
      if (own.fmu != nullptr) smaller(own.fmu->description().usual_step_s.value_or(0.0));
    }
  }
  if (!stop_s) {
    for (const Element& own : structure.elements) {
      const auto usual = own.fmu == nullptr ? std::nullopt : own.fmu->description().usual_stop_s;
      if (usual && *usual > start_s) stop_s = std::max(stop_s.value_or(*usual), *usual);
    }
    if (stop_s) structure.stop_s = stop_s;
  }
  if (!step_s) step_s = (stop_s && *stop_s > start_s ? *stop_s - start_s : 1.0) / kUsualSteps;
  if (!is_said) {
    structure.notes.push_back(
        {"",
         fmt::format("no step size is said: steps are of {} s (--set /time/step_s=…)", *step_s)});
  }
  if (!structure.stop_s) {
    structure.notes.push_back({"", fmt::format("no end is said: the run takes {} steps "
                                               "(--set /time/end_s=…)",
                                               kUsualSteps)});
  }
  return *step_s;
}

}  // namespace portwave::structures
