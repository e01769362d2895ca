#pragma once

#include <string>
#include <vector>

#include <portwave/runtime/scenario/scenario.hpp>

#include "support/files/source_folder.hpp"

namespace portwave::testing {

inline std::string example_file(const std::string& name) {
  return source_file("examples/" + name + ".json");
}

inline Scenario example(const std::string& name, const std::vector<Override>& overrides = {}) {
  return load_scenario(example_file(name), overrides);
}

}  // namespace portwave::testing
