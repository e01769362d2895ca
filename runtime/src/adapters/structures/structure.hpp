#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/fmi/file/fmu.hpp"
#include "adapters/fmi/file/fmu_variables.hpp"
#include "portwave/runtime/adapters/fmu.hpp"
#include "portwave/subsystems/base/error.hpp"

namespace portwave::structures {

using Json = nlohmann::ordered_json;

inline constexpr std::size_t kMostElements = 100'000;  ///< of a structure

/// What a value comes from.
struct Source {
  enum class Kind {
    output,
    input,
    lookup
  };  ///< of an element; of the structure; a table of whole numbers
  Kind kind = Kind::output;
  std::size_t index = 0;      ///< of the element, the input of the structure or the table
  std::string variable = {};  ///< of an element

  friend bool operator==(const Source&, const Source&) = default;
};

/// A sum of factors times sources, and an offset: what connections and functions make of outputs.
struct Expression {
  struct Term {
    Source source;
    double factor = 1.0;
  };
  std::vector<Term> terms = {};
  double offset = 0.0;
  std::optional<fmi::Unit> unit = {};  ///< none: not known
  std::string unit_name = {};          ///< as it is written; empty: not said
  std::string where = {};              ///< the connection
  std::string bond = {};               ///< connections of one name carry power; empty: not said
  bool is_converted = false;           ///< factors and offset convert units

  bool is_constant() const { return terms.empty(); }
};

/// A variable of an element.
struct Variable {
  std::size_t element = 0;
  std::string name;

  friend auto operator<=>(const Variable&, const Variable&) = default;
};

struct Element {
  std::string name;    ///< "system.part", not yet a name of portwave
  std::string source;  ///< as the structure names its file
  std::string where;
  std::filesystem::path file = {};
  std::shared_ptr<const fmi::Fmu> fmu = {};  ///< null: it has defects, which are told
  std::shared_ptr<fmi::FmuVariables> variables =
      {};                                         ///< of the FMU, arrays of the size that it says
  std::vector<fmi::DeclaredPort> ports = {};      ///< pairs that its descriptions declare
  std::map<std::string, FmuValue> start = {};     ///< in the variables' own units
  std::map<std::string, Expression> inputs = {};  ///< that are connected
  double step_s = 0.0;                            ///< 0: not said
  Json own = Json::object();                      ///< what portwave has noted of the part

  /// A variable of the FMU, or an element of an array; null: there is none, or no FMU.
  const fmi::Variable* find(const std::string& variable) const {
    return variables == nullptr ? nullptr : variables->find(variable);
  }
};

/// What comes into the structure from outside.
struct StructureInput {
  std::string name;
  std::optional<double> value = {};  ///< none: the first start value of what it goes to
};

struct StructureOutput {
  std::string name;
  Expression value;
};

/// A value for each of some whole numbers.
struct LookupTable {
  Expression of;
  std::vector<std::pair<double, double>> points;  ///< increasing
};

/// A system structure of whatever format, without its levels. All errors that a reader found are thrown together.
struct Structure {
  std::string name, description;
  std::vector<Element> elements;
  std::vector<StructureInput> inputs;
  std::vector<StructureOutput> outputs;
  std::vector<LookupTable> lookups;
  std::vector<std::pair<Variable, Variable>> bonds,
      not_bonds;  ///< outputs that answer one another, and such that are no bonds, as the user says
  std::optional<double> start_s, stop_s, step_s;
  Json own = Json::object();  ///< what portwave has noted of the whole
  Issues notes;
};

/// The value in the unit `to`. Nothing where they measure different things.
bool convert(Expression& value, const fmi::Unit& to);
/// "N", or the unit's powers where it has no name.
std::string shown(const std::optional<fmi::Unit>& unit, const std::string& name);
/// The unit of a variable of an FMU, where its description tells it.
std::optional<fmi::Unit> unit_of(const fmi::Fmu& fmu, const fmi::Variable& variable);

/// Opens the FMU of an element; defects are noted at its place.
void open_element(Element& element, Issues& issues);
/// A variable of an element, null, and noted at `where`, where there is none of that name.
const fmi::Variable* find_variable(const Element& element, const std::string& name,
                                   const std::string& where, Issues& issues);

/// Takes {"bonds": [["mass.v", "spring.F"]]} of what is noted of the whole: outputs that answer one another; and
/// "not_bonds", which are exchanged as samples.
void take_noted_bonds(Structure& structure, const std::string& where, Issues& issues);

/// What goes to an input of an element, in its own unit: checked, and kept in it.
class Connector {
 public:
  explicit Connector(Structure& structure, Issues& issues)
      : structure_(structure), issues_(issues) {}

  /// The value of an output of an element, with its unit. Nothing, and noted, where it has none.
  std::optional<Expression> output(std::size_t element, const std::string& variable,
                                   const std::string& where);
  /// Sets an input, or a parameter where the value is constant.
  void connect(std::size_t element, const std::string& variable, Expression value,
               const std::string& where);

 private:
  Structure& structure_;
  Issues& issues_;
};

}  // namespace portwave::structures
