#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "portwave/runtime/output/recorder.hpp"
#include "portwave/subsystems/base/name_search.hpp"

namespace portwave {

/// The quantity of a label, or the reason why there is none; see resolve_quantity. `part_names`,
/// asked when a label names no part, are those of the system: one search does for any number of
/// labels.
std::optional<Quantity> find_quantity(const System& system, const std::string& label,
                                      MethodKind method,
                                      const std::function<NameSearch&()>& part_names,
                                      std::string& defect);

/// Everything that a part can be asked for, with its name in front.
std::vector<std::string> labels_of(const System& system, int part, MethodKind method);

/// The wave of a port; only wave coupling has such.
bool is_wave(Quantity::Kind kind);

/// The unit of ∂H/∂x, H in joules, by that of x.
std::string coenergy_unit(const std::string& unit);

/// A part that was cut has one name.
std::vector<std::string> names_of_parts(const System& system);

}  // namespace portwave
