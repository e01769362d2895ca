#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "adapters/structures/ssp_parameters.hpp"

namespace portwave::structures {

/// A connector of a system, of a component or of a signal dictionary.
struct Node {
  enum class Of { system, component, dictionary };
  Of of = Of::component;
  std::size_t index = 0;  ///< of the system, the component or the dictionary
  std::string name;

  friend auto operator<=>(const Node&, const Node&) = default;
};

struct SystemConnector {
  std::string kind;  ///< "input", "output", "parameter", …
  std::optional<fmi::Unit> unit = {};
  std::string unit_name = {}, where = {};
};

/// A <Connection>, from what gives the value to what takes it.
struct Wire {
  Node from, to;
  Transformation transformation;
  bool converts_units = true;
  std::string where;
};

/// A <System>, with what it holds by name.
struct Level {
  std::size_t outer = 0;  ///< its own index where there is none
  std::string path;       ///< "arm.drive"; empty: the outermost
  std::string where = {};
  std::map<std::string, SystemConnector> connectors = {};
  std::map<std::string, Node> members = {};  ///< components, systems and references to dictionaries
  std::map<std::string, std::size_t> dictionaries = {};
  std::map<std::string, ParameterValue> values = {};  ///< of its connectors
};

struct Dictionary {
  std::string where;
  std::map<std::string, SystemConnector> entries = {};
};

/// All levels of a structure, and what is joined.
struct Levels {
  std::vector<Level> systems;
  std::vector<Dictionary> dictionaries;
  std::vector<std::map<std::string, SystemConnector>> components;  ///< by element
  std::vector<Wire> wires;
};

/// Sets what connections bring to the inputs of elements, through the connectors of systems and the entries of
/// dictionaries, and what the outermost system takes and gives. Defects are added to `issues`.
void connect_levels(const Levels& levels, Structure& structure, Issues& issues);

/// A value in the unit of a variable. Nothing, and noted, where it is of another kind or another dimension. Units
/// that nobody defines are told in `notes`.
std::optional<FmuValue> value_for(const ParameterValue& value, const Element& element,
                                  const fmi::Variable& variable, Issues& issues, Issues& notes);

}  // namespace portwave::structures
