#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scenario/reader/node.hpp"

namespace portwave::scenario_file {

/// What "assemblies" of a scenario says, checked as far as it can be before it is used.
class AssemblyList {
 public:
  static constexpr std::size_t kMostLevels = 32;   ///< of assemblies within assemblies
  static constexpr std::size_t kWeightOfUse = 16;  ///< of what is kept about a use, in values

  struct Parameter {
    std::string_view name;
    const Json* otherwise;     ///< its default; null: required
    bool is_computed = false;  ///< the default has to be filled in
  };
  struct Assembly {
    std::string_view name;
    const Json* json = nullptr;  ///< null: it is no object
    std::vector<Parameter> parameters = {};
  };

  /// "parameters" of an assembly, or of a scenario.
  static std::vector<Parameter> read_parameters(const Node& node);

  /// Of a scenario, which must outlive it.
  explicit AssemblyList(const Node& root);

  /// Null when there is none of that name.
  const Assembly* find(std::string_view name) const;
  std::vector<std::string> names() const;

 private:
  std::unordered_map<std::string_view, Assembly> assemblies_;
};

/// What the names of parameters and indices must be like.
inline constexpr const char* kVariableNameRule =
    "must have letters, digits and _ and not begin with a digit, so that expressions can name it";

/// Schema of "assemblies".
Json assemblies_schema();

}  // namespace portwave::scenario_file
