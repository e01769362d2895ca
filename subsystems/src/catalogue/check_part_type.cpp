#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "catalogue/part_types.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Fit for scenario files, the command line and references within a JSON Schema.
bool is_type_name(std::string_view name) {
  return !name.empty() && is_letter(name.front()) && std::ranges::all_of(name, [](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

class TypeCheck {
 public:
  explicit TypeCheck(const PartType& type) : type_(type) {}

  Issues check() && {
    if (!is_type_name(type_.name)) {
      fail("/name", fmt::format("must begin with a letter and be made of letters, digits, '_' and "
                                "'-', got {}",
                                in_quotes(type_.name)));
    }
    for (std::size_t i = 0; i < type_.parameters.size(); ++i) check_parameter(i);
    if (!type_.build) fail("/build", "there is no function to build the part with");
    if (issues_.empty()) check_example();
    return std::move(issues_);
  }

 private:
  void check_parameter(std::size_t i) {
    const ParameterInfo& info = type_.parameters[i];
    const std::string where =
        "/parameters/" + (is_plain_name(info.name) ? info.name : std::to_string(i));
    if (!is_plain_name(info.name) || info.name.find_first_of("/~") != std::string::npos) {
      fail(where,
           fmt::format("the name of a parameter must not be empty nor contain dots, slashes, "
                       "brackets, blanks, commas or quotes, got {}",
                       in_quotes(info.name)));
    } else if (info.name == "allow_active") {
      fail(where, "\"allow_active\" is understood by every type: it is not a parameter");
    } else if (!names_.insert(info.name).second) {
      fail(where, "there are two parameters of this name");
    }
    if (info.kind == ParameterKind::choice && info.choices.empty()) {
      fail(where, "must list its choices");
      return;
    }
    if (!info.default_value) return;
    PartType alone;
    alone.name = type_.name;
    alone.parameters = {info};
    Parameters value = {{info.name, *info.default_value}};
    for (const Issue& issue : check_parameters(alone, value, /*allow_active=*/true)) {
      fail(where, "its default: " + issue.what);
    }
  }

  void check_example() {
    Parameters example = type_.example;
    for (Issue& issue : check_parameters(type_, example, /*allow_active=*/true)) {
      fail("/example" + issue.where, std::move(issue.what));
    }
  }

  void fail(std::string where, std::string what) {
    issues_.push_back({std::move(where), std::move(what)});
  }

  const PartType& type_;
  std::set<std::string_view> names_;
  Issues issues_;
};

}  // namespace

Issues check_part_type(const PartType& type) { return TypeCheck(type).check(); }

}  // namespace portwave
