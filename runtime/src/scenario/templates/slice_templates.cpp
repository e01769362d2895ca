#include "scenario/templates/slice_templates.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "scenario/reader/limits.hpp"
#include "scenario/templates/assemblies.hpp"
#include "scenario/templates/expansion.hpp"
#include "scenario/templates/template_filler.hpp"

namespace portwave::scenario_file {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view kSubsystems = "subsystems", kJoints = "couplings";
/// Couplings that are made at once.
constexpr std::int64_t kAtOnce = 1000;

std::optional<std::int64_t> integer_of(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  constexpr double kMost = 1e15;
  if (number != std::floor(number) || std::abs(number) > kMost) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

void set_member(Json& object, std::string_view key, Json value) {
  for (auto& [name, member] : object.get_ref<Json::object_t&>()) {
    if (name != key) continue;
    member = std::move(value);
    return;
  }
  object.get_ref<Json::object_t&>().emplace_back(std::string(key), std::move(value));
}

}  // namespace

SliceTemplates::SliceTemplates(const Json& rest) {
  const Json* const given = member_of(rest, "parameters"sv);
  if (given == nullptr) return;
  has_parameters_ = true;
  Json values = Json::object();
  if (given->is_object()) {
    for (const auto& [name, value] : given->get_ref<const Json::object_t&>()) {
      values.get_ref<Json::object_t&>().emplace_back(name, Json{{"parameter", name}});
    }
  }
  Json document = Json::object();
  document["parameters"] = *given;
  document[std::string(kSubsystems)] = Json::array({Json{{"name", "values"}, {"values", values}}});
  Defects defects;
  const ExpandedDocument found = expand_assemblies(document, defects);
  for (Issue& issue : defects.take()) note(std::move(issue), {}, 0);
  if (issues_.empty()) parameters_ = found.root[std::string(kSubsystems)][0]["values"];
}

void SliceTemplates::note(Issue issue, std::string_view list, std::int64_t number) {
  const std::string first = fmt::format("/{}/0", list);
  if (!list.empty() && issue.where.starts_with(first)) {
    issue.where = fmt::format("/{}/{}{}", list, number, issue.where.substr(first.size()));
  }
  if (issues_.size() < scenario_limits::kDefects) issues_.push_back(std::move(issue));
}

/// Nothing in it stands for anything else, or it is not for here.
bool SliceTemplates::is_plain(const Json& entry) const {
  if (!entry.is_object() || member_of(entry, "assembly"sv) != nullptr) return true;
  return !has_parameters_ && member_of(entry, "count"sv) == nullptr &&
         member_of(entry, "for"sv) == nullptr && !TemplateFiller::has_expression(entry);
}

/// The list that comes of a scenario with this entry; nothing where it has a defect, which is noted. `i`: what
/// the index is.
std::optional<Json> SliceTemplates::expanded(std::string_view list, Json entry, std::int64_t number,
                                             std::optional<std::int64_t> i) {
  Json document = Json::object();
  if (has_parameters_ || i) {
    Json values = parameters_;
    if (i) set_member(values, "i", *i);
    document["parameters"] = std::move(values);
  }
  document[std::string(list)] = Json::array({std::move(entry)});
  Defects defects;
  ExpandedDocument found = expand_assemblies(document, defects);
  if (defects.count() > 0) {
    for (Issue& issue : defects.take()) note(std::move(issue), list, number);
    return std::nullopt;
  }
  return std::move(found.root[std::string(list)]);
}

/// What was noted in one place is in another.
void SliceTemplates::place_anew(const std::string& from, const std::string& to) {
  for (Issue& issue : issues_) {
    if (issue.where.starts_with(from)) issue.where = to + issue.where.substr(from.size());
  }
}

/// Of what may be computed.
std::optional<Json> SliceTemplates::value(const Json& given, std::string_view list,
                                          std::int64_t number) {
  auto found =
      expanded(kSubsystems, Json{{"name", "value"}, {"value", given}}, number, std::nullopt);
  if (found) return std::move((*found)[0]["value"]);
  place_anew(fmt::format("/{}/{}/value", kSubsystems, number), fmt::format("/{}/{}", list, number));
  return std::nullopt;
}

std::optional<std::int64_t> SliceTemplates::count_of(const Json& part, std::int64_t entry) {
  const Json* const given = member_of(part, "count"sv);
  if (given == nullptr || is_plain(part)) return std::nullopt;
  const auto found = value(*given, kSubsystems, entry);
  if (!found) return 0;
  const std::int64_t least = given->is_number() ? 1 : 0;
  const auto count = integer_of(*found);
  if (count && *count >= least && *count <= scenario_limits::kInteger) return count;
  note({fmt::format("/{}/{}/count", kSubsystems, entry),
        fmt::format("must be an integer from {} to {}, got {}", least, scenario_limits::kInteger,
                    describe(*found))},
       {}, 0);
  return 0;
}

Json SliceTemplates::part(const Json& part, std::int64_t entry, std::optional<std::int64_t> i) {
  if (is_plain(part)) return part;
  Json one = part;
  one.erase("count");
  auto found = expanded(kSubsystems, std::move(one), entry, i);
  if (!found) return Json::object();
  Json made = std::move((*found)[0]);
  if (Json* const name = i ? member_of(made, "name"sv) : nullptr) {
    *name = fmt::format("{}_{}", name->get<std::string>(), *i);
  }
  return made;
}

std::string SliceTemplates::name_of(const Json& part, std::int64_t entry,
                                    std::optional<std::int64_t> i) {
  const Json* const given = member_of(part, "name"sv);
  if (given == nullptr || !given->is_string()) return {};
  if (!has_parameters_ && !i) return given->get<std::string>();
  Json only = Json{{"name", *given}};
  if (i) only["count"] = 1;
  const Json named = this->part(only, entry, i);
  const Json* const name = member_of(named, "name"sv);
  return name != nullptr && name->is_string() ? name->get<std::string>() : std::string();
}

std::optional<std::string> SliceTemplates::base_of(const Json& part, std::int64_t entry) {
  const std::string first = name_of(part, entry, 0), second = name_of(part, entry, 1);
  if (first.size() < 2 || second.size() != first.size()) return std::nullopt;
  const std::string base = first.substr(0, first.size() - 2);
  // A text without "{…}" is the same for all.
  const bool is_constant =
      member_of(part, "name"sv)->get_ref<const std::string&>().find('{') == std::string::npos;
  return is_constant ? std::optional(base) : std::nullopt;
}

void SliceTemplates::for_couplings(Json&& coupling, std::int64_t entry,
                                   const std::function<void(Json&&)>& take) {
  if (is_plain(coupling)) return take(std::move(coupling));
  const auto take_all = [&](Json&& given) {
    auto found = expanded(kJoints, std::move(given), entry, std::nullopt);
    if (!found) return;
    for (Json& one : *found) take(std::move(one));
  };
  const Json* const loop = member_of(coupling, "for"sv);
  if (loop == nullptr || !loop->is_object() || loop->empty()) return take_all(std::move(coupling));
  const auto& [index, range] = *loop->get_ref<const Json::object_t&>().begin();
  const auto found = value(range, kJoints, entry);
  const bool is_pair = found && found->is_array() && found->size() == 2;
  const auto first = is_pair ? integer_of((*found)[0]) : std::nullopt;
  const auto last = is_pair ? integer_of((*found)[1]) : std::nullopt;
  const bool is_sound = first && last && *first <= *last && *first >= -scenario_limits::kIndex &&
                        *last <= scenario_limits::kIndex;
  if (!is_sound) return take_all(std::move(coupling));  // which says what is wrong, if anything is
  const std::int64_t step = loop->size() == 1 ? kAtOnce : 1;
  for (std::int64_t from = *first; from <= *last; from += step) {
    Json some = coupling;
    Json& ranges = *member_of(some, "for"sv);
    set_member(ranges, index, Json::array({from, std::min(from + step - 1, *last)}));
    const std::size_t before = issues_.size();
    take_all(std::move(some));
    if (issues_.size() > before) return;  // the others have the same
  }
}

Json SliceTemplates::filled_rest(Json rest) {
  if (!has_parameters_ || !rest.is_object()) return rest;
  rest.erase("parameters");
  Json* const outputs = member_of(rest, "outputs"sv);
  Json* const observe = outputs != nullptr ? member_of(*outputs, "observe"sv) : nullptr;
  if (observe == nullptr) return rest;
  Json entry = Json{{"name", "observed"}, {"observe", *observe}};
  if (auto found = expanded(kSubsystems, std::move(entry), 0, std::nullopt)) {
    *observe = std::move((*found)[0]["observe"]);
  } else {
    place_anew(fmt::format("/{}/0/observe", kSubsystems), "/outputs/observe");
  }
  return rest;
}

std::optional<std::pair<std::string, std::int64_t>> parts_of_name(const std::string& name) {
  const auto line = name.rfind('_');
  if (line == std::string::npos) return std::nullopt;
  std::int64_t number = 0;
  const char* const begin = name.data() + line + 1;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (error != std::errc{} || stop != end || fmt::format("{}", number) != name.substr(line + 1)) {
    return std::nullopt;
  }
  return std::pair(name.substr(0, line), number);
}

}  // namespace portwave::scenario_file
