#pragma once

#include <string_view>

#include "number_range.hpp"
#include "portwave/coupling/method.hpp"
#include "portwave/subsystems/error.hpp"

/// What a CouplingMethod may say, by whichever way it came: the same for scenario files and for
/// options made in code.
namespace portwave::method_rules {

/// λ of Douglas–Rachford, θ of Peaceman–Rachford.
NumberRange relaxation(MethodKind kind);
inline NumberRange tolerance() { return NumberRange::non_negative(); }
inline NumberRange tank() { return NumberRange::non_negative(); }

inline constexpr std::string_view kRetuneFactor = "0 or a number > 1";

/// Every rule that needs no system: values by themselves, and what does not go together. Pointers
/// are those of scenario files ("/method/relaxation"); one issue per place at most.
Issues check(const CouplingMethod& method);

}  // namespace portwave::method_rules
