#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"

namespace PORTWAVE_EXPORT portwave {

/// "number", "integer", "choice", ...
std::string_view to_string(ParameterKind kind);
/// The group under which a type is listed.
std::string_view group_of(const PartType& type);

/// A type of part as `portwave list TYPE --json` describes it: parameters with units, defaults and ranges;
/// ports, states and inputs, which may depend on the parameters, of its example.
/// Errors: what building the example throws.
nlohmann::ordered_json part_type_json(const PartType& type);
/// The same with an example that was built; null: ports, states and inputs are not known.
nlohmann::ordered_json part_type_json(const PartType& type, const Component* example);
/// Parameters and their values as in a scenario file.
nlohmann::ordered_json parameters_json(const Parameters& parameters);
nlohmann::ordered_json parameter_json(const ParameterValue& value);

}  // namespace portwave
