#include "scenario/parts/part_damping.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "portwave/subsystems/stages/staged_part.hpp"

namespace portwave::scenario_file {
namespace {

/// The bits of all states but the named ones.
std::uint64_t conserved_by(const Node& list, const Component& part) {
  std::vector<std::string> names;
  for (const StateVariable& state : part.signature().states) names.push_back(state.name);
  std::uint64_t out = 0;
  for (std::size_t k = 0; k < names.size(); ++k) out |= std::uint64_t{1} << k;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Node element = list.at(i);
    const auto name = element.choice(names);
    for (std::size_t k = 0; name && k < names.size(); ++k) {
      if (names[k] == *name) out &= ~(std::uint64_t{1} << k);
    }
  }
  return out;
}

}  // namespace

StageDamping read_damping(const Node& part, const DampedPart& given) {
  const ObjectReader keys(part);
  if (given.integrator != StageKind::damped) {
    for (const char* const key : {"damped_states", "theta"}) {
      if (const auto own = keys.find(key)) own->fail("needs \"integrator\": \"damped\" beside it");
    }
    return {};
  }
  StageDamping out{.theta = given.theta.value_or(1.0)};
  const auto list = keys.find("damped_states");
  if (!list || !list->is_array("an array of states") || given.component == nullptr) return out;
  if (given.is_cut) {
    list->fail("the pieces of a part that is cut have other states");
  } else if (!can_damp_single_states(*given.component)) {
    list->fail(fmt::format(
        "single states can be damped in parts of up to {} states whose step maps are not sparse",
        kMostMasked));
  } else if (list->size() == 0) {
    list->fail("names no state: \"integrator\": \"gauss\" damps none");
  } else {
    out.conserved = conserved_by(*list, *given.component);
  }
  return out;
}

}  // namespace portwave::scenario_file
