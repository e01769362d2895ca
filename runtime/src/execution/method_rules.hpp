#pragma once

#include <string>
#include <string_view>

#include "portwave/coupling/method/number_range.hpp"
#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/name_search.hpp"

/// What a CouplingMethod may say, by whichever way it came: the same for scenario files and for
/// options made in code.
namespace portwave::method_rules {

/// Of the method's update rule; the widest one where it has none.
NumberRange relaxation(const CouplingMethod& method);
inline NumberRange tolerance() { return NumberRange::non_negative(); }
inline NumberRange tank() { return NumberRange::non_negative(); }

inline constexpr std::string_view kRetuneFactor = "0 or a number > 1";

/// Of Lions–Mercier: λ, μ and α. ω is at least μ.
inline NumberRange lambda() { return NumberRange::positive(); }
inline NumberRange mu() { return NumberRange::non_negative(); }
inline NumberRange omega() { return NumberRange::non_negative(); }
inline NumberRange alpha() { return {.minimum = 0.0, .maximum = 1.0}; }
/// Of Jacobi and Gauss–Seidel.
inline NumberRange divergence_limit() { return {.minimum = 1.0, .minimum_excluded = true}; }
/// Fast steps of `impulse`, macro-steps of a window.
inline constexpr int kMostSteps = 1'000'000;

/// Every rule that needs no system: values by themselves, and what does not go together. Pointers
/// are those of scenario files ("/method/relaxation"); one issue per place at most. What the method's
/// kind makes no use of is not looked at.
Issues check(const CouplingMethod& method);

/// The names of fast parts, of `impulse`.
Issues check_fast(const CouplingMethod& method, const System& system);
/// What is wrong with the name of a fast part that is none of `parts`.
std::string fast_defect(std::string_view name, NameSearch& parts);

}  // namespace portwave::method_rules
