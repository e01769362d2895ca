#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "portwave/coupling/method/method.hpp"
#include "scenario/scenario_method.hpp"
#include "scenario/scenario_reader.hpp"

namespace portwave::scenario_file {

/// The keys of "method" that a kind has, "kind" first.
const std::vector<std::string_view>& method_keys(MethodKind kind);

/// Notes every key of "method" that its kind has not, and those that no kind has. `kind` null: it
/// cannot be told, so that only the latter are wrong.
void check_method_keys(const Node& node, const MethodKind* kind);

/// The keys of a method without waves, all but what names subsystems.
void read_network_method(const ObjectReader& object, CouplingMethod& method);
/// The fast subsystems of `impulse`.
void read_fast(const ObjectReader& object, Names& names);

/// What "coupling_flow", "integrator" and "metric" may be.
const std::vector<std::string>& coupling_flows();
const std::vector<std::string>& integrators();
const std::vector<std::string>& iteration_metrics();

}  // namespace portwave::scenario_file
