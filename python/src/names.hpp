#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <string>
#include <vector>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/base/error.hpp"

/// Names "part.input" of the settable inputs, in their order.
inline std::vector<std::string> input_names_of(const portwave::System& system) {
  std::vector<std::string> out;
  for (const auto& input : system.settable_inputs()) out.push_back(system.input_label(input));
  return out;
}

/// Names "part.state"; a part that was cut has each of its states once.
inline std::vector<std::string> state_names_of(const portwave::System& system) {
  std::vector<std::string> out;
  for (const auto& state : portwave::state_names(system).named) out.push_back(state.name);
  return out;
}

/// Issues as pairs of a place and a text.
inline nanobind::list pairs_of(const portwave::Issues& issues) {
  nanobind::list out;
  for (const portwave::Issue& issue : issues) {
    out.append(nanobind::make_tuple(issue.where, issue.what));
  }
  return out;
}
