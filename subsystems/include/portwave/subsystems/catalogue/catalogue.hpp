#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/component.hpp"

namespace PORTWAVE_EXPORT portwave {

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
/// A matrix that knows its shape, as files hold it. Equal places add up.
struct ShapedMatrix {
  int rows = 0;
  int columns = 0;
  MatrixEntries entries;  ///< all inside the shape
  std::string source;     ///< the name of the file, for messages
};

/// A matrix of expressions by rows, as `Expression` reads them.
using ExpressionRows = std::vector<std::vector<std::string>>;
/// A number that expressions call by its name.
struct NamedNumber {
  std::string name;
  double value = 0.0;
};

/// The type of a parameter's value. Scenario files map JSON to these, one to one.
enum class ParameterKind {
  number,             ///< double
  numbers,            ///< std::vector<double>, the bounds being those of each
  integer,            ///< int
  boolean,            ///< bool
  choice,             ///< std::string out of `choices`
  matrix,             ///< MatrixRows, MatrixEntries or ShapedMatrix
  ports,              ///< std::vector<Port>
  inputs,             ///< std::vector<ExternalInput>
  states,             ///< std::vector<StateVariable>
  expression,         ///< std::string, to be read as an `Expression`
  expressions,        ///< std::vector<std::string>
  expression_matrix,  ///< ExpressionRows, or of numbers alone as a matrix
  constants,          ///< std::vector<NamedNumber>
  texts,              ///< std::vector<std::string>, each out of `choices` if there are any
};

using ParameterValue =
    std::variant<double, int, bool, std::string, std::vector<double>, MatrixRows, MatrixEntries,
                 std::vector<Port>, std::vector<ExternalInput>, std::vector<StateVariable>,
                 ShapedMatrix, std::vector<std::string>, ExpressionRows, std::vector<NamedNumber>>;

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
  /// The heading of its listing, such as "translation" or "electrical"; empty: "other".
  std::string group = {};
  std::string summary;
  std::string equations;  ///< a few lines, in the notation of the field
  std::vector<ParameterInfo> parameters;
  /// Builds the part from parameters that `check_parameters` passed. Throws ConfigError.
  std::function<std::unique_ptr<Component>(const Parameters&)> build;
  /// Parameters of a small instance, for listings and the conformance suite.
  Parameters example;
};

/// The types of parts that scenario files can name, as a list: those of portwave in a fixed order,
/// then those that the program has added, in the order of addition.
///
/// A program adds its own types before it reads scenarios that name them:
///   Catalogue::add(my_type());
/// From then on they are listed, checked, described by the JSON Schema and read from scenario files
/// like all others. Addresses and references stay good for the life of the program.
/// Thread-safety  `add` must not run while another thread adds or looks anything up; otherwise
/// const.
class Catalogue {
 public:
  using const_iterator = std::deque<PartType>::const_iterator;

  /// Errors: ConfigError with every defect, `where` being "/name", "/parameters/<name>", "/build"
  /// or "/example/<name>": a name that is taken or is not made of letters, digits, '_' and '-'
  /// after a letter; parameters without a name or with the same one, or named "allow_active";
  /// choices that are missing; defaults of another kind; no function to build with; an example that
  /// does not fit the parameters. Nothing is added then.
  static void add(PartType type);
  /// All of them or none. Errors: as above, each `where` after "/<type>"; also types of equal name.
  static void add(std::vector<PartType> types);

  const_iterator begin() const { return types_.begin(); }
  const_iterator end() const { return types_.end(); }
  std::size_t size() const { return types_.size(); }
  const PartType& operator[](std::size_t i) const { return types_[i]; }
  /// nullptr when there is none of that name.
  const PartType* find(std::string_view name) const;

 private:
  friend const Catalogue& catalogue();
  Catalogue();
  static Catalogue& instance();

  std::deque<PartType> types_;  // whose addresses stay
};

const Catalogue& catalogue();
/// nullptr when there is none of that name.
const PartType* find_part_type(std::string_view name);

/// Checks names, kinds and ranges and fills in the defaults. `allow_active` is understood by every
/// type. Every defect is reported, `where` being "/<parameter>".
Issues check_parameters(const PartType& type, Parameters& parameters, bool allow_active);

/// Builds a part from parameters that `check_parameters` passed, and records them in the part. Null if the
/// type builds nothing. Rethrows the type's exceptions. `type`: of the catalogue.
std::unique_ptr<Component> build_part(const PartType& type, const Parameters& parameters);

/// The parameters that a part was built from, as far as what was recorded tells: numbers, integers, truth
/// values and choices. Empty where the type has others.
std::optional<Parameters> recorded_parameters(const PartType& type,
                                              std::span<const std::uint64_t> values);

/// check_parameters, then build. Throws ConfigError with every defect.
std::unique_ptr<Component> make_part(std::string_view type, Parameters parameters,
                                     bool allow_active = false);

}  // namespace portwave
