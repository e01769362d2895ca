#pragma once

#include <string>
#include <string_view>

#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/name_search.hpp"

namespace portwave {

/// The defects in the names of the fast parts of SplittingKind::impulse ("/method/fast/0" and so on); none
/// for any other kind.
Issues check_fast_parts(const CouplingMethod& method, const System& system);
/// Describes the defect in the name of a fast part that is not among `parts`.
std::string fast_part_defect(std::string_view name, NameSearch& parts);

}  // namespace portwave
