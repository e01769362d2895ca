#pragma once

#include <vector>

#include "portwave/coupling/method/method_table.hpp"
#include "scenario/reader/key_table.hpp"

namespace portwave::scenario_file {

/// The keys of the options of a family, in their order, from its table.
const std::vector<Key<CouplingMethod>>& option_keys(const MethodFamily& family);

}  // namespace portwave::scenario_file
