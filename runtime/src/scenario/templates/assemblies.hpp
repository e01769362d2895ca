#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scenario/reader/node.hpp"
#include "scenario/templates/template_filler.hpp"

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

/// The names of parts and of assemblies in use, and the ports inside that ports of assemblies stand
/// for: "leg.hip" for "leg/thigh.port_1".
class AssemblyPorts {
 public:
  explicit AssemblyPorts(TemplateFiller& filler) : filler_(filler) {}

  static constexpr std::size_t kUse = static_cast<std::size_t>(-1);

  /// A part with its number, or kUse. Returns whose the name is already, if it is.
  std::optional<std::size_t> add_owner(const std::string& name, std::size_t number);
  /// From now on nothing is said about names that there are not: parts may be missing.
  void forgive_unknown_names() { knows_names_ = false; }

  /// "use.port" stands for `inside`, a port "part.port" within the use.
  void expose(const Node& node, const std::string& use, const std::string& port,
              const std::string& inside);
  /// A port of an assembly as the port that it stands for; any other text as it is. Notes a port
  /// that an assembly does not have.
  std::string resolved(const Node& node, const std::string& path);

  /// "outputs" and "method" with the ports inside; texts of "observe" are filled in.
  Json with_inner_names(const Node& section, const Scope& scope);
  /// The same in the texts of a block that may name quantities; `given`: as it is in the file.
  void rename_quantities(const Node& given, Json& value);

 private:
  std::string inner_quantity(const Node& node, const std::string& text);
  /// The keys of the object under `key`, ports, in `out`, a copy of what `parent` is.
  void rename_keys(const Node& parent, Json& out, std::string_view key);
  void fail_inner_part(const Node& node, const std::string& prefix, const std::string& part);
  void fail_port(const Node& node, const std::string& use, const std::string& port);

  TemplateFiller& filler_;
  std::unordered_map<std::string, std::size_t> owners_;
  std::unordered_map<std::string, std::string> ports_;
  bool knows_names_ = true;
};

/// Counts the values of a scenario with its assemblies, arrays and indexed couplings written out, without
/// writing them out. Values are counted as TemplateFiller charges them, and never above that. Counts and
/// ranges are computed where their numbers are known; others count as their least value.
///
/// Returns the JSON pointer of the first entry of `root` with which it is more than `most`, or nothing.
/// Cost: a pass over the file, and at most so much again that it is not noticed.
std::optional<std::string> entry_of_too_many_values(const Json& root,
                                                    const AssemblyList& assemblies, double most);

}  // namespace portwave::scenario_file
