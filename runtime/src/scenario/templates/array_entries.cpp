#include "scenario/templates/array_entries.hpp"

#include <cmath>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"
#include "scenario/reader/limits.hpp"
#include "scenario/templates/assembly_list.hpp"

namespace portwave::scenario_file {
namespace {

std::optional<std::int64_t> integer_of(const Json& value, std::int64_t least, std::int64_t most) {
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  if (number != std::floor(number)) return std::nullopt;
  if (number < static_cast<double>(least) || number > static_cast<double>(most)) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(number);
}

}  // namespace

std::optional<std::int64_t> count_of_entry(TemplateFiller& filler, const Node& entry,
                                           const Scope& scope) {
  const Json* const given = member_of(entry.json(), "count");
  if (given == nullptr) return -1;
  const Node node = entry.member("count", *given);
  const Json value = filler.fill(node, scope);
  // None is a slip where it is written, but may well come out of a computation.
  const std::int64_t least = given->is_number() ? 1 : 0;
  if (const auto count = integer_of(value, least, scenario_limits::kInteger)) return count;
  filler.fail(node, fmt::format("must be an integer from {} to {}, got {}", least,
                                scenario_limits::kInteger, describe(value)));
  return std::nullopt;
}

bool check_indices(TemplateFiller& filler, const Node& ranges) {
  if (!ranges.json().is_object() || ranges.size() == 0) {
    filler.fail(ranges, fmt::format("must be an object such as {{\"i\": [0, 9]}}, the first and "
                                    "the last of each index, got {}",
                                    describe(ranges.json())));
    return false;
  }
  bool is_sound = true;
  for (const auto& [name, range] : ranges.json().get_ref<const Json::object_t&>()) {
    const bool is_name = Expression::is_name(name);
    if (is_name && !Expression::is_reserved(name)) continue;
    const Node node = ranges.member(name, range);
    filler.fail(node,
                is_name ? fmt::format("{} has a meaning of its own in expressions", in_quotes(name))
                        : fmt::format("the name of an index {}", kVariableNameRule));
    is_sound = false;
  }
  return is_sound;
}

std::optional<std::pair<std::int64_t, std::int64_t>> index_range(TemplateFiller& filler,
                                                                 const Node& node,
                                                                 const Scope& scope) {
  const Json value = filler.fill(node, scope);
  if (filler.is_exhausted()) return std::nullopt;
  const bool is_pair = value.is_array() && value.size() == 2;
  const auto first = is_pair
                         ? integer_of(value[0], -scenario_limits::kIndex, scenario_limits::kIndex)
                         : std::nullopt;
  const auto last = is_pair
                        ? integer_of(value[1], -scenario_limits::kIndex, scenario_limits::kIndex)
                        : std::nullopt;
  if (!first || !last) {
    filler.fail(node, fmt::format("must be [first, last], two integers within {} of 0, got {}",
                                  scenario_limits::kIndex,
                                  is_pair ? printable(value.dump()) : describe(value)));
    return std::nullopt;
  }
  // None is a slip where it is written, but may well come out of a computation.
  const Json& written = node.json();
  const bool is_written = written.is_array() && written[0].is_number() && written[1].is_number();
  if (*first > *last && is_written) {
    filler.fail(node,
                fmt::format("is empty: the first index {} is after the last, {}", *first, *last));
    return std::nullopt;
  }
  return std::pair(*first, *last);
}

}  // namespace portwave::scenario_file
