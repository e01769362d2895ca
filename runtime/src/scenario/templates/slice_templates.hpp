#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "portwave/subsystems/base/error.hpp"
#include "scenario/reader/document.hpp"

namespace portwave::scenario_file {

/// What entries of a scenario stand for, as expand_assemblies has it, but entry by entry: arrays ("count"),
/// couplings of indices ("for") and computed values. Of an entry with many no more are made than are asked
/// for. Uses of assemblies are left as they are.
///
/// Each is expanded as a scenario of its own, so that what an entry may hold is said in one place.
class SliceTemplates {
 public:
  /// `rest`: the scenario without its long lists.
  explicit SliceTemplates(const Json& rest);

  /// How many subsystems the `entry`-th of the file stands for; nothing where it is no array.
  std::optional<std::int64_t> count_of(const Json& part, std::int64_t entry);
  /// The i-th of an array, or what stands for itself.
  Json part(const Json& part, std::int64_t entry, std::optional<std::int64_t> i);
  /// "base" where the parts of an array are called base_0, base_1, …; else nothing.
  std::optional<std::string> base_of(const Json& part, std::int64_t entry);
  std::string name_of(const Json& part, std::int64_t entry, std::optional<std::int64_t> i);

  /// Gives all couplings that an entry stands for, one after another.
  void for_couplings(Json&& coupling, std::int64_t entry, const std::function<void(Json&&)>& take);

  /// Without parameters, and with those of what is observed filled in.
  Json filled_rest(Json rest);

  /// What was wrong, in its place in the file.
  const Issues& issues() const { return issues_; }

 private:
  bool is_plain(const Json& entry) const;
  std::optional<Json> expanded(std::string_view list, Json entry, std::int64_t number,
                               std::optional<std::int64_t> i);
  std::optional<Json> value(const Json& given, std::string_view list, std::int64_t number);
  void place_anew(const std::string& from, const std::string& to);
  void note(Issue issue, std::string_view list, std::int64_t number);

  Json parameters_ = Json::object();  // their values
  bool has_parameters_ = false;
  Issues issues_;
};

/// The number at the end of "base_number", written as arrays write it.
std::optional<std::pair<std::string, std::int64_t>> parts_of_name(const std::string& name);

}  // namespace portwave::scenario_file
