#include "impedance/choice_reason.hpp"

#include <fmt/format.h>

namespace portwave {
namespace {

std::string name_of(WaveUpdate kind, double relaxation, const UpdateRule* own_rule) {
  if (kind == WaveUpdate::interface) return "The interface equation";
  return (own_rule != nullptr ? own_rule : update_rule_of(kind))->title(relaxation);
}

std::string count_of(const PredictedRate& rate) {
  return rate.converges ? std::to_string(rate.evaluations)
                        : fmt::format("{} and more", rate.evaluations);
}

std::string others_of(const MethodChoice& choice) {
  const WaveCoupling& chosen = choice.method.waves();
  std::string others;
  const auto add = [&](const std::string& name, const PredictedRate& rate) {
    others += fmt::format("{}{}: {}", others.empty() ? "" : ", ", name, count_of(rate));
  };
  if (chosen.kind == WaveUpdate::interface) {  // of the plain iterations the best
    const MethodCandidate* best = nullptr;
    for (const MethodCandidate& candidate : choice.candidates) {
      if (candidate.kind == WaveUpdate::interface) continue;
      if (best == nullptr || candidate.rate.evaluations < best->rate.evaluations) best = &candidate;
    }
    if (best != nullptr) {
      add(fmt::format("{} with {} impedances",
                      name_of(best->kind, best->relaxation, chosen.own_rule),
                      to_string(best->impedance)),
          best->rate);
      return others;
    }
  }
  for (const MethodCandidate& candidate : choice.candidates) {
    const bool same_method =
        candidate.kind == chosen.kind && candidate.relaxation == chosen.relaxation;
    const bool same_rule = candidate.impedance == chosen.impedance_kind;
    if (candidate.acceleration != chosen.acceleration) {
      if (same_method && same_rule) add("without acceleration", candidate.rate);
      continue;
    }
    const bool is_part =
        candidate.kind == WaveUpdate::interface && !chosen.interface_islands.empty();
    // Not the choice itself, nor what is two steps away from it.
    if (is_part || same_method == same_rule) continue;
    add(same_method ? std::string(to_string(candidate.impedance))
                    : name_of(candidate.kind, candidate.relaxation, chosen.own_rule),
        candidate.rate);
  }
  return others;
}

}  // namespace

std::string reason_of(const MethodChoice& choice, const System& system) {
  const WaveCoupling& chosen = choice.method.waves();
  std::string reason =
      fmt::format("{} with {} impedances", name_of(chosen.kind, chosen.relaxation, chosen.own_rule),
                  to_string(chosen.impedance_kind));
  if (chosen.acceleration > 0) {
    reason +=
        fmt::format(" and Anderson acceleration from {} earlier evaluations", chosen.acceleration);
  }
  if (!chosen.interface_islands.empty()) {
    reason += fmt::format("; the interface equation on {} of {} islands",
                          chosen.interface_islands.size(), system.island_count());
  }
  reason += fmt::format(": {} evaluations predicted", count_of(choice.rate));
  if (choice.rate.factor_entries > 0) {
    reason += fmt::format(" and solves with {} entries", choice.rate.factor_entries);
  }
  const std::string others = others_of(choice);
  if (!others.empty()) reason += " (" + others + ")";
  return reason;
}

}  // namespace portwave
