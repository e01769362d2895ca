#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "scenario/templates/template_filler.hpp"

/// Entries that stand for many: "count" and "for".
namespace portwave::scenario_file {

/// How many an entry stands for, −1 where it is no array; nothing, and noted, where that is wrong.
std::optional<std::int64_t> count_of_entry(TemplateFiller& filler, const Node& entry,
                                           const Scope& scope);

/// "for", by the names of its indices; false, and noted, where these are wrong.
bool check_indices(TemplateFiller& filler, const Node& ranges);

/// The first and the last value of an index; nothing where there are none, or, noted, where that is wrong.
std::optional<std::pair<std::int64_t, std::int64_t>> index_range(TemplateFiller& filler,
                                                                 const Node& node,
                                                                 const Scope& scope);

}  // namespace portwave::scenario_file
