#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/method/number_range.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/export.hpp"

/// All methods and their options as tables. From these come the names of kinds, the keys of
/// "method" in scenario files, the checks of values, the JSON Schema, the lists of the program and
/// the texts of errors. Each family keeps its own table beside its checks:
/// coupling/src/method/{wave_coupling,splitting,dynamic_iteration}.cpp.
namespace PORTWAVE_EXPORT portwave {

struct OptionInfo;

/// A value within a method. Precondition of both functions: the method is of the option's family.
template <typename T>
struct OptionField {
  T& (*in)(CouplingMethod&) = nullptr;
  const T& (*of)(const CouplingMethod&) = nullptr;
};

/// A choice out of words: an enumeration 0, 1, 2, … by its names.
struct OptionChoice {
  std::span<const std::string_view> names;
  void (*set)(CouplingMethod&, int) = nullptr;
  int (*get)(const CouplingMethod&) = nullptr;
};

/// An object with options of its own.
struct OptionGroup {
  std::span<const OptionInfo> (*options)() = nullptr;
};

/// Names ports or parts, or has a shape of its own. The table of such options, which reads and
/// describes them, is runtime/src/scenario/settings/method_keys.cpp.
struct SpecialOption {};

using OptionValue =
    std::variant<SpecialOption, OptionField<int>, OptionField<double>, OptionField<bool>,
                 OptionField<std::optional<double>>, OptionChoice, OptionGroup>;

/// A range that follows from other options, and a text to add to its description.
struct DependentRange {
  NumberRange range;
  std::string remark;
};

/// A kind of the option's family that has no use for it, and why.
struct OptionRefusal {
  MethodKind kind;
  std::string_view why;
};

/// Describes one option of a family: enough to read it, check it, list it and write its JSON
/// Schema.
struct OptionInfo {
  std::string_view key;  ///< with its unit, e.g. "energy_tolerance_J"
  OptionValue value = {};
  /// Range of numbers, which are finite, and of integers, with both ends included.
  NumberRange range = {};
  /// A number that may be infinite too. In files the word stands for it.
  bool may_be_infinite = false;
  /// The word that a file may give in place of a number: for std::optional it means none, for a number that
  /// may be infinite it means infinity, for an integer 0.
  std::string_view word = "";
  std::string_view unit = "";
  std::string_view summary = "";  ///< one line
  std::string_view note = "";     ///< goes on after the summary and its unit, with its own comma
  std::vector<MethodKind> only = {};  ///< the kinds that have the option; empty: all of the family
  bool required = false;              ///< in files, unless the kind is one of these:
  std::vector<MethodKind> optional_for = {};
  std::vector<OptionRefusal> refused = {};
  /// A range that follows from other options, in place of `range`, which is the widest. Empty if any number
  /// is valid.
  std::optional<DependentRange> (*range_of)(const CouplingMethod&) = nullptr;
  /// Checks beyond the range, whatever the kind.
  void (*check)(const CouplingMethod&, Issues&) = nullptr;

  bool is_for(MethodKind kind) const;
  bool is_required_by(MethodKind kind) const;
  /// Why the kind refuses it; "" when it does not.
  std::string_view refusal_by(MethodKind kind) const;
};

/// One kind of method.
struct MethodInfo {
  MethodKind kind;
  std::string_view name;     ///< the word of scenario files
  std::string_view summary;  ///< one line
};

/// Kinds that share options.
struct MethodFamily {
  std::string_view title;  ///< "dynamic iteration"
  bool couples_by_waves = false;
  std::span<const MethodInfo> kinds;
  std::span<const OptionInfo> options;

  const MethodInfo* find(MethodKind kind) const;
};

const MethodFamily& wave_coupling_family();
const MethodFamily& splitting_family();
const MethodFamily& dynamic_iteration_family();

/// All families, in the order of the documentation.
std::span<const MethodFamily* const> method_families();
/// All kinds, in the order of the documentation.
std::span<const MethodInfo> all_methods();
const MethodFamily& family_of(MethodKind kind);
/// Nothing when no kind has that name.
std::optional<MethodKind> find_method_kind(std::string_view name);
/// The names of all kinds, in the order of the documentation.
const std::vector<std::string>& method_names();

/// Every rule that needs no system: single values, and combinations that are invalid. Pointers are those of
/// scenario files ("/method/relaxation"), in the order of the family's table. Options that the kind does not
/// use are not judged.
Issues check_method(const CouplingMethod& method);

/// The place of a member of a family, or of a member of a member:
/// option_at<&WaveCoupling::tank, &TankOptions::cap_J>().
template <auto First, auto... Rest>
constexpr OptionValue option_at();
/// The place of an enumeration, likewise, by the names of its values.
template <auto First, auto... Rest>
constexpr OptionValue option_choice(std::span<const std::string_view> names);

namespace detail {

template <typename Family, typename Value>
Family family_of_member(Value Family::*);

template <typename Family>
Family& options_of(CouplingMethod& method) {
  return *method.as<Family>();
}
template <typename Family>
const Family& options_of(const CouplingMethod& method) {
  return *method.as<Family>();
}

}  // namespace detail

template <auto First, auto... Rest>
constexpr OptionValue option_at() {
  using Family = decltype(detail::family_of_member(First));
  using Value = std::remove_cvref_t<decltype(((std::declval<Family&>().*First).*....*Rest))>;
  return OptionField<Value>{[](CouplingMethod& m) -> Value& {
                              return ((detail::options_of<Family>(m).*First).*....*Rest);
                            },
                            [](const CouplingMethod& m) -> const Value& {
                              return ((detail::options_of<Family>(m).*First).*....*Rest);
                            }};
}

template <auto First, auto... Rest>
constexpr OptionValue option_choice(std::span<const std::string_view> names) {
  using Family = decltype(detail::family_of_member(First));
  using Value = std::remove_cvref_t<decltype(((std::declval<Family&>().*First).*....*Rest))>;
  return OptionChoice{
      names,
      [](CouplingMethod& m, int value) {
        ((detail::options_of<Family>(m).*First).*....*Rest) = static_cast<Value>(value);
      },
      [](const CouplingMethod& m) {
        return static_cast<int>(((detail::options_of<Family>(m).*First).*....*Rest));
      }};
}

}  // namespace portwave
