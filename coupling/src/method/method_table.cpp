#include "portwave/coupling/method/method_table.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"

namespace portwave {
namespace {

bool contains(const std::vector<MethodKind>& kinds, MethodKind kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

/// Collects what is wrong with the values of one method.
class OptionCheck {
 public:
  OptionCheck(const CouplingMethod& method, Issues& issues) : method_(method), issues_(issues) {}

  void check_all(std::span<const OptionInfo> options, const std::string& place) {
    for (const OptionInfo& option : options) {
      place_ = fmt::format("{}/{}", place, option.key);
      option_ = &option;
      if (option.is_for(method_.kind())) std::visit(*this, option.value);
      if (option.check != nullptr) option.check(method_, issues_);
    }
  }

  void operator()(const OptionField<int>& place) {
    const int value = place.of(method_);
    NumberRange range = option_->range;
    if (option_->range_of != nullptr) {
      const std::optional<DependentRange> dependent = option_->range_of(method_);
      if (!dependent) return;
      range = dependent->range;
    }
    if (value == 0 && !option_->word.empty()) return;
    const bool has_most = std::isfinite(range.maximum);
    expect(value >= range.minimum && value <= range.maximum,
           has_most ? fmt::format("an integer from {} to {}", range.minimum, range.maximum)
                    : fmt::format("an integer >= {}", range.minimum),
           value);
  }
  void operator()(const OptionField<double>& place) {
    const double value = place.of(method_);
    NumberRange range = option_->range;
    std::string remark;
    if (option_->range_of != nullptr) {
      const std::optional<DependentRange> dependent = option_->range_of(method_);
      if (!dependent) return;
      range = dependent->range;
      remark = dependent->remark;
    }
    const bool is_infinite = option_->may_be_infinite && std::isinf(value) && value > 0.0;
    expect(is_infinite || range.contains(value), range.describe() + remark, value);
  }
  void operator()(const OptionField<std::optional<double>>& place) {
    const std::optional<double>& value = place.of(method_);
    if (value) expect(option_->range.contains(*value), option_->range.describe(), *value);
  }
  void operator()(const OptionGroup& group) { check_all(group.options(), std::string(place_)); }
  // Any value will do, or the option's own check judges it.
  void operator()(const OptionField<bool>&) {}
  void operator()(const OptionChoice&) {}
  void operator()(const SpecialOption&) {}

 private:
  void expect(bool good, const std::string& expected, double value) {
    if (!good)
      issues_.push_back({place_, fmt::format("must be {}, got {}", expected, shown_number(value))});
  }

  const CouplingMethod& method_;
  Issues& issues_;
  const OptionInfo* option_ = nullptr;
  std::string place_;
};

}  // namespace

bool OptionInfo::is_for(MethodKind kind) const { return only.empty() || contains(only, kind); }

bool OptionInfo::is_required_by(MethodKind kind) const {
  return required && is_for(kind) && !contains(optional_for, kind);
}

std::string_view OptionInfo::refusal_by(MethodKind kind) const {
  for (const OptionRefusal& refusal : refused) {
    if (refusal.kind == kind) return refusal.why;
  }
  return {};
}

const MethodInfo* MethodFamily::find(MethodKind kind) const {
  const auto found = std::find_if(kinds.begin(), kinds.end(),
                                  [&](const MethodInfo& info) { return info.kind == kind; });
  return found == kinds.end() ? nullptr : &*found;
}

std::span<const MethodFamily* const> method_families() {
  static const std::array families = {&wave_coupling_family(), &splitting_family(),
                                      &dynamic_iteration_family()};
  return families;
}

std::span<const MethodInfo> all_methods() {
  static const std::vector<MethodInfo> all = [] {
    std::vector<MethodInfo> infos;
    for (const MethodFamily* const family : method_families()) {
      infos.insert(infos.end(), family->kinds.begin(), family->kinds.end());
    }
    return infos;
  }();
  return all;
}

const MethodFamily& family_of(MethodKind kind) {
  const auto families = method_families();
  const auto found = std::find_if(families.begin(), families.end(), [&](const MethodFamily* each) {
    return each->find(kind) != nullptr;
  });
  return **found;
}

std::string_view to_string(MethodKind kind) { return family_of(kind).find(kind)->name; }

std::optional<MethodKind> find_method_kind(std::string_view name) {
  for (const MethodInfo& info : all_methods()) {
    if (info.name == name) return info.kind;
  }
  return std::nullopt;
}

const std::vector<std::string>& method_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const MethodInfo& info : all_methods()) all.emplace_back(info.name);
    return all;
  }();
  return names;
}

Issues check_method(const CouplingMethod& method) {
  Issues issues;
  OptionCheck(method, issues).check_all(family_of(method.kind()).options, "/method");
  return issues;
}

}  // namespace portwave
