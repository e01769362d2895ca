#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/method/method_table.hpp"
#include "scenario/reader/key_table.hpp"
#include "scenario/reader/node.hpp"
#include "scenario/settings/names.hpp"

namespace portwave::scenario_file {

/// How scenario files have an option that names ports or parts, or has a shape of its own: a
/// SpecialOption of the tables of the methods.
struct SpecialOptionFormat {
  std::string_view key;
  /// All but what names ports or subsystems.
  void (*read)(const Node&, CouplingMethod&) = nullptr;
  /// What names ports or subsystems.
  void (*read_names)(const Node&, Names&, CouplingMethod&) = nullptr;
  Json (*schema)() = nullptr;
  /// What a kind demands of the value beyond its schema; null: nothing.
  Json (*narrowed_by)(MethodKind) = nullptr;
  std::string_view example = "";  ///< a short value, where the key may be required
};

std::span<const SpecialOptionFormat> special_options();
/// Precondition: there is one of that key.
const SpecialOptionFormat& special_option(std::string_view key);

/// The definition "impedance".
Json impedance_schema();
/// The kinds of impedances, in the order of the documentation.
const std::vector<std::string>& impedance_kinds();

/// The keys of the options of a family, in their order, from its table.
const std::vector<Key<CouplingMethod>>& option_keys(const MethodFamily& family);

}  // namespace portwave::scenario_file
