#pragma once

#include <string>
#include <string_view>

#include "portwave/subsystems/catalogue/catalogue.hpp"

namespace portwave {

// The functions that describe portwave's own types, such as mass_type() of "mass": one line each in
// part_types.def.
#define PORTWAVE_PART_TYPE(name) PartType name##_type();
#include "part_types.def"
#undef PORTWAVE_PART_TYPE

/// A parameter that `check_parameters` passed; T is the type that its kind stands for.
template <class T>
const T& value_of(const Parameters& parameters, std::string_view name) {
  return std::get<T>(parameters.find(name)->second);
}

inline double number_of(const Parameters& parameters, std::string_view name) {
  return value_of<double>(parameters, name);
}

/// What check_parameters recorded of its argument of the same name.
inline bool allows_active(const Parameters& parameters) {
  return value_of<bool>(parameters, "allow_active");
}

/// A required number > 0.
ParameterInfo positive_number(std::string name, std::string unit, std::string summary);
/// A required number ≥ 0; give it a default_value to make it optional.
ParameterInfo non_negative_number(std::string name, std::string unit, std::string summary);
/// A number ≥ 0, or of either sign in a part that says allow_active; 0 unless given.
ParameterInfo damper(std::string name, std::string unit, std::string summary);

/// What is wrong with a type, apart from others of its name: see Catalogue::add.
Issues check_part_type(const PartType& type);

/// check_parameters for parts built from a struct of parameters. Throws ConfigError.
void require_valid(const PartType& type, Parameters parameters, bool allow_active);

}  // namespace portwave
