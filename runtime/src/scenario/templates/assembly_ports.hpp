#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "scenario/templates/template_filler.hpp"

namespace portwave::scenario_file {

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

}  // namespace portwave::scenario_file
