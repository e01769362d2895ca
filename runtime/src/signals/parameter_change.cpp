#include "signals/parameter_change.hpp"

#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "portwave/subsystems/base/name_search.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/catalogue/catalogue_part.hpp"

namespace portwave {
namespace {

/// The number that a parameter is; null where it is none.
double* number_in(Parameters& parameters, const std::string& name) {
  const auto found = parameters.find(name);
  return found == parameters.end() ? nullptr : std::get_if<double>(&found->second);
}

bool allows_active(const Parameters& parameters) {
  const auto found = parameters.find("allow_active");
  const bool* const own = found == parameters.end() ? nullptr : std::get_if<bool>(&found->second);
  return own != nullptr && *own;
}

}  // namespace

SignalGraph::ParameterChange parameter_change(const Component& part, const std::string& parameter,
                                              std::string& defect) {
  const std::optional<CataloguePart> description = description_of(part);
  if (!description) {
    defect =
        "this part cannot tell its parameters: it has lists or matrices among them, or is built by "
        "hand";
    return nullptr;
  }
  const PartType& type = *part.built_from()->type;
  Parameters own = description->parameters();
  if (number_in(own, parameter) == nullptr) {
    std::vector<std::string> names;
    for (const ParameterInfo& info : type.parameters) {
      if (info.kind == ParameterKind::number) names.push_back(info.name);
    }
    defect =
        fmt::format("{} has no number {} among its parameters.{}", type.name, in_quotes(parameter),
                    NameSearch(std::move(names)).did_you_mean(parameter));
    return nullptr;
  }
  // The other parameters are those that the part has by then: a program may have changed them.
  return [parameter](const Component& present, double value) -> std::shared_ptr<const Component> {
    const PartType& of = *present.built_from()->type;
    Parameters now = description_of(present).value().parameters();
    *number_in(now, parameter) = value;
    const bool is_active = allows_active(now);
    throw_if_any(check_parameters(of, now, is_active));
    return build_part(of, now);
  };
}

}  // namespace portwave
