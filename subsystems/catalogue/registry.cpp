#include <algorithm>
#include <deque>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "part_types.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave {
namespace {

std::vector<std::string> type_names() {
  std::vector<std::string> names;
  for (const PartType& type : catalogue()) names.push_back(type.name);
  return names;
}

Issues check_new_type(const PartType& type) {
  Issues issues = check_part_type(type);
  if (find_part_type(type.name) != nullptr) {
    issues.insert(issues.begin(),
                  {"/name", fmt::format("there is a type {} already", in_quotes(type.name))});
  }
  return issues;
}

}  // namespace

Catalogue::Catalogue()
    : types_{
#define PORTWAVE_PART_TYPE(name) name##_type(),
#include "part_types.def"
#undef PORTWAVE_PART_TYPE
      } {
}

Catalogue& Catalogue::instance() {
  static Catalogue all;
  return all;
}

void Catalogue::add(PartType type) {
  throw_if_any(check_new_type(type));
  instance().types_.push_back(std::move(type));
}

void Catalogue::add(std::vector<PartType> types) {
  Issues issues;
  std::set<std::string_view> names;
  for (const PartType& type : types) {
    append(issues, "/" + type.name, check_new_type(type));
    if (names.insert(type.name).second) continue;
    issues.push_back({"/" + type.name, "is there twice"});
  }
  throw_if_any(std::move(issues));
  std::deque<PartType>& all = instance().types_;
  std::move(types.begin(), types.end(), std::back_inserter(all));
}

const PartType* Catalogue::find(std::string_view name) const {
  const auto found = std::find_if(types_.begin(), types_.end(),
                                  [name](const PartType& type) { return type.name == name; });
  return found == types_.end() ? nullptr : &*found;
}

const Catalogue& catalogue() { return Catalogue::instance(); }

const PartType* find_part_type(std::string_view name) { return catalogue().find(name); }

std::unique_ptr<Component> make_part(std::string_view type, Parameters parameters,
                                     bool allow_active) {
  const PartType* found = find_part_type(type);
  if (found == nullptr) {
    const std::vector<std::string> names = type_names();
    throw ConfigError("", fmt::format("there is no part type \"{}\". types: \"{}\".{}", type,
                                      fmt::join(names, "\", \""), did_you_mean(type, names)));
  }
  throw_if_any(check_parameters(*found, parameters, allow_active));
  std::unique_ptr<Component> part = found->build(parameters);
  if (part == nullptr) throw ConfigError("", fmt::format("the type \"{}\" built nothing", type));
  return part;
}

ParameterInfo positive_number(std::string name, std::string unit, std::string summary) {
  ParameterInfo info = non_negative_number(std::move(name), std::move(unit), std::move(summary));
  info.minimum_excluded = true;
  return info;
}

ParameterInfo non_negative_number(std::string name, std::string unit, std::string summary) {
  ParameterInfo info;
  info.name = std::move(name);
  info.unit = std::move(unit);
  info.summary = std::move(summary);
  info.minimum = 0.0;
  return info;
}

ParameterInfo damper(std::string name, std::string unit, std::string summary) {
  ParameterInfo info = non_negative_number(std::move(name), std::move(unit), std::move(summary));
  info.default_value = 0.0;
  info.passive_only = true;
  return info;
}

void require_valid(const PartType& type, Parameters parameters, bool allow_active) {
  throw_if_any(check_parameters(type, parameters, allow_active));
}

}  // namespace portwave
