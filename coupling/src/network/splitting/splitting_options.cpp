#include "network/splitting/splitting_options.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "portwave/coupling/network/network_method.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/name_search.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave {

Issues splitting_defects(const CondensedSystem& system, double step_s, const Splitting& s) {
  Issues issues;
  if (!(step_s > 0.0) || !std::isfinite(step_s)) {
    issues.push_back(
        {"/time/step_s", fmt::format("must be > 0 and finite, got {}", shown_number(step_s))});
  }
  for (const CondensedBlock& block : system.blocks()) {
    // By rank: a factorisation takes an E that is singular but for rounding.
    if (!block.is_descriptor ||
        analyse_descriptor(block.E, block.J, block.R, block.Q).algebraic == 0) {
      continue;
    }
    issues.push_back(
        {fmt::format("/subsystems/{}", block.part),
         fmt::format(
             "\"{}\" has algebraic equations (E is singular), which cannot be split; dynamic "
             "iteration and wave coupling take them",
             system.system().parts()[at(block.part)].name)});
  }
  if (order_of(s) == 4 && s.split_dissipation) {
    issues.push_back({"/method/split_dissipation", "is not for \"order\": 4"});
  }
  if (order_of(s) == 4 && s.coupling_flow != CouplingFlow::automatic) {
    issues.push_back({"/method/coupling_flow",
                      "is not for \"order\": 4, which solves the states that couplings touch"});
  }
  if (s.kind != SplittingKind::impulse) return issues;
  if (s.coupling_flow == CouplingFlow::scalar) {
    issues.push_back({"/method/coupling_flow",
                      "only \"strang\" has a scalar coupling flow; the slow flow of \"impulse\" is "
                      "solved in the channels of the couplings"});
  }
  if (s.factor < 1)
    issues.push_back({"/method/factor", fmt::format("must be >= 1, got {}", s.factor)});
  if (s.split_dissipation && order_of(s) != 4) {
    issues.push_back(
        {"/method/split_dissipation", "only \"strang\" splits its local flows further"});
  }
  if (s.fast.empty()) issues.push_back({"/method/fast", "must name at least one part"});
  std::vector<std::string> block_names;
  for (const CondensedBlock& block : system.blocks()) {
    block_names.push_back(system.system().parts()[at(block.part)].name);
  }
  NameSearch names(std::move(block_names));
  for (std::size_t i = 0; i < s.fast.size(); ++i) {
    const int part = system.system().find_part(s.fast[i]);
    const bool stateless = part >= 0 && system.block_of_part(part) < 0;
    if (part >= 0 && !stateless) continue;
    issues.push_back({fmt::format("/method/fast/{}", i),
                      stateless ? fmt::format("\"{}\" has no state of its own", s.fast[i])
                                : fmt::format("there is no part \"{}\".{}", s.fast[i],
                                              names.did_you_mean(s.fast[i]))});
  }
  return issues;
}

std::vector<bool> slow_blocks(const CondensedSystem& system, const Splitting& options) {
  const System& parts = system.system();
  std::vector<bool> slow(system.blocks().size(), true);
  for (const std::string& name : options.fast) {
    slow[static_cast<std::size_t>(system.block_of_part(parts.find_part(name)))] = false;
  }
  if (std::find(slow.begin(), slow.end(), true) == slow.end()) {
    throw ConfigError("/method/fast", "every part is fast; at least one must be slow");
  }
  return slow;
}

void sample_inputs(const CondensedSystem& system, const Signal::StepPlace& place, double* values) {
  for (std::size_t k = 0; k < system.inputs().size(); ++k) {
    const CondensedInput& input = system.inputs()[k];
    try {
      values[k] = input.signal->in_step(place);
    } catch (const std::exception& error) {
      throw NetworkFault(input.part, -1, StepFault::threw, error.what());
    } catch (...) {
      throw NetworkFault(input.part, -1, StepFault::threw, "an unknown exception");
    }
    if (std::isfinite(values[k])) continue;
    throw NetworkFault(input.part, -1, StepFault::not_finite,
                       fmt::format("input \"{}\" is not finite", system.system()
                                                                     .parts()[at(input.part)]
                                                                     .component->signature()
                                                                     .inputs[at(input.input)]
                                                                     .name));
  }
}

}  // namespace portwave
