#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave {

/// A dense matrix given by rows, as scenario files write it.
using MatrixRows = std::vector<std::vector<double>>;
/// One entry of a sparse matrix given by triplets.
struct MatrixEntry {
  int row = 0;
  int column = 0;
  double value = 0.0;
};
/// A matrix by its triplets; shape from the part.
using MatrixEntries = std::vector<MatrixEntry>;

/// What a parameter holds. Scenario files map JSON to these, one to one.
enum class ParameterKind {
  number,   ///< double
  integer,  ///< int
  boolean,  ///< bool
  choice,   ///< std::string out of `choices`
  matrix,   ///< MatrixRows or MatrixEntries
  ports,    ///< std::vector<Port>
  inputs,   ///< std::vector<InputChannel>
  states,   ///< std::vector<StateVariable>
};

using ParameterValue =
    std::variant<double, int, bool, std::string, MatrixRows, MatrixEntries, std::vector<Port>,
                 std::vector<InputChannel>, std::vector<StateVariable>>;

/// Describes one parameter of a part type: enough to check it, list it and write its JSON Schema.
struct ParameterInfo {
  std::string name;  ///< with its unit, e.g. "mass_kg"
  ParameterKind kind = ParameterKind::number;
  std::string unit;
  std::string summary;
  std::optional<ParameterValue> default_value;  ///< absent: required
  double minimum = -std::numeric_limits<double>::infinity();
  bool minimum_excluded = false;
  double maximum = std::numeric_limits<double>::infinity();
  /// A number that must not be below `minimum` unless the part says allow_active (a damper).
  bool passive_only = false;
  std::vector<std::string> choices;
};

using Parameters = std::map<std::string, ParameterValue, std::less<>>;

/// One type of part in the catalogue.
struct PartType {
  std::string name;
  std::string summary;
  std::string equations;  ///< a few lines, in the notation of the field
  std::vector<ParameterInfo> parameters;
  /// Builds the part from parameters that `check_parameters` passed. Throws ConfigError.
  std::function<std::unique_ptr<Subsystem>(const Parameters&)> build;
  /// Parameters of a small instance, for listings and the conformance suite.
  Parameters example;
};

/// Every part type, in a fixed order. Registered in subsystems/catalogue/registry.cpp.
std::span<const PartType> catalogue();
/// nullptr when there is none of that name.
const PartType* find_part_type(std::string_view name);

/// Checks names, kinds and ranges and fills in the defaults. `allow_active` is understood by every
/// type. Every defect is reported, `where` being "/<parameter>".
Issues check_parameters(const PartType& type, Parameters& parameters, bool allow_active);

/// check_parameters, then build. Throws ConfigError with every defect.
std::unique_ptr<Subsystem> make_part(std::string_view type, Parameters parameters,
                                     bool allow_active = false);

}  // namespace portwave
