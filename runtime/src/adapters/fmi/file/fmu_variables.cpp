#include "adapters/fmi/file/fmu_variables.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "portwave/subsystems/base/printable.hpp"

namespace portwave::fmi {
namespace {

constexpr std::uint64_t kMostElements = 1'000'000;  // of one array

std::optional<std::uint64_t> size_in(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string shown_shape(const std::vector<std::size_t>& shape) {
  return fmt::format("{}", fmt::join(shape, " x "));
}

FmuVariables::FmuVariables(std::shared_ptr<const Fmu> fmu,
                           const std::map<std::string, FmuValue>& start, Issues& issues)
    : fmu_(std::move(fmu)) {
  for (const Variable& own : fmu_->description().variables) {
    if (own.role != Role::structural_parameter && !own.is_constant) continue;
    if (const auto size = size_in(own.start)) sizes_[own.reference] = *size;
    const auto given = start.find(own.name);
    if (given == start.end() || own.role != Role::structural_parameter) continue;
    const double* const number = std::get_if<double>(&given->second);
    const bool is_size = number != nullptr && *number >= 0.0 && *number <= kMostElements &&
                         *number == std::floor(*number);
    if (is_size) {
      sizes_[own.reference] = static_cast<std::uint64_t>(*number);
    } else if (own.type != VariableType::boolean && own.type != VariableType::text) {
      issues.push_back({"/start/" + escape_key(own.name),
                        fmt::format("{} is a structural parameter: it takes a whole number from 0 "
                                    "to {}",
                                    in_quotes(own.name), kMostElements)});
    }
  }
}

std::optional<std::vector<std::size_t>> FmuVariables::shape_of(const Variable& array,
                                                               std::string& why) const {
  std::vector<std::size_t> shape;
  std::uint64_t all = 1;
  for (const Dimension& own : array.dimensions) {
    std::uint64_t size = own.size;
    if (own.parameter) {
      const auto found = sizes_.find(*own.parameter);
      if (found == sizes_.end()) {
        why = fmt::format(
            "its size is the value of reference {}, which is no structural parameter "
            "with a start value",
            *own.parameter);
        return std::nullopt;
      }
      size = found->second;
    }
    if (size > kMostElements || all * size > kMostElements) {
      why = fmt::format("it has more than {} elements", kMostElements);
      return std::nullopt;
    }
    all *= size;
    shape.push_back(size);
  }
  return shape;
}

FmuVariables::Place FmuVariables::place_of(std::string_view name) const {
  Place out;
  const std::size_t open = name.rfind('[');
  if (open == std::string_view::npos || !name.ends_with(']')) return out;
  std::string_view words = name.substr(open + 1, name.size() - open - 2);
  while (true) {
    const std::size_t comma = std::min(words.find(','), words.size());
    std::string_view word = words.substr(0, comma);
    while (word.starts_with(' ')) word.remove_prefix(1);
    const auto index = size_in(word);
    if (!index) return out;
    out.indices.push_back(*index);
    if (comma == words.size()) break;
    words.remove_prefix(comma + 1);
  }
  const Variable* const found = fmu_->description().find(name.substr(0, open));
  if (found != nullptr && found->is_array) out.array = found;
  return out;
}

const Variable* FmuVariables::find(std::string_view name) {
  if (const Variable* const found = fmu_->description().find(name)) {
    if (found->name == name) return found;
    Variable alias = *found;
    alias.name = name;
    return &elements_.emplace_back(std::move(alias));
  }
  const Place place = place_of(name);
  if (place.array == nullptr || !element_defect(name).empty()) return nullptr;
  std::string why;
  const std::vector<std::size_t> shape = shape_of(*place.array, why).value();
  std::size_t at = 0;
  for (std::size_t k = 0; k < shape.size(); ++k) at = at * shape[k] + (place.indices[k] - 1);
  return element(*place.array, shape, at);
}

std::string FmuVariables::element_defect(std::string_view name) const {
  const Place place = place_of(name);
  if (place.array == nullptr) return {};
  std::string why;
  const auto shape = shape_of(*place.array, why);
  if (!shape) return fmt::format("{} cannot be used: {}", in_quotes(place.array->name), why);
  bool is_inside = shape->size() == place.indices.size();
  for (std::size_t k = 0; is_inside && k < shape->size(); ++k)
    is_inside = place.indices[k] >= 1 && place.indices[k] <= (*shape)[k];
  if (is_inside) return {};
  return fmt::format("{} is no element of {}, which has {}: indices count from 1", in_quotes(name),
                     in_quotes(place.array->name), shown_shape(*shape));
}

std::vector<const Variable*> FmuVariables::elements_of(const Variable& array, std::size_t most) {
  std::string why;
  std::vector<const Variable*> out;
  const auto shape = shape_of(array, why);
  if (!shape) return out;
  std::size_t count = 1;
  for (const std::size_t own : *shape) count *= own;
  count = std::min(count, most);
  for (std::size_t place = 0; place < count; ++place) out.push_back(element(array, *shape, place));
  return out;
}

const Variable* FmuVariables::element(const Variable& array, const std::vector<std::size_t>& shape,
                                      std::size_t place) {
  const Variable*& known = known_[{&array, place}];
  if (known != nullptr) return known;
  // Not its start values: each of many elements would have those of all.
  Variable own{.name = {},
               .reference = array.reference,
               .type = array.type,
               .role = array.role,
               .is_constant = array.is_constant,
               .is_tunable = array.is_tunable,
               .has_start = array.has_start,
               .unit = array.unit,
               .is_discrete = array.is_discrete,
               .is_within = array.is_within,
               .clocks = array.clocks,
               .element = place,
               .elements = 1,
               .array = array.name};
  std::vector<std::size_t> indices(shape.size());
  for (std::size_t k = shape.size(); k-- > 0;) {
    indices[k] = place % shape[k] + 1;
    place /= shape[k];
    own.elements *= shape[k];
  }
  own.name = fmt::format("{}[{}]", array.name, fmt::join(indices, ","));
  known = &elements_.emplace_back(std::move(own));
  return known;
}

}  // namespace portwave::fmi
