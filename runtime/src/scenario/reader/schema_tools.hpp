#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "portwave/coupling/method/number_range.hpp"
#include "scenario/reader/document.hpp"

/// Pieces of JSON Schema (draft 07).
namespace portwave::scenario_file {

/// 0 rather than 0.0 where a number is whole.
Json plain(double value);
/// A reference to one of the schema's definitions.
Json reference(const std::string& definition);

Json described(Json schema, const std::string& description);
Json with_default(Json schema, Json value);

Json text();
Json boolean();
Json number();
Json positive();
Json not_zero();
Json non_negative();
Json integer(std::int64_t minimum, std::int64_t maximum);
Json range_schema(const NumberRange& range);
Json choice(const std::vector<std::string>& choices);
Json list(Json items, std::size_t fewest = 0);

/// An object with these keys and no others.
Json object(Json properties, const std::vector<std::string>& required);
/// An object whose keys are names of the user's.
Json map_of(Json values);

Json when_key_is(const std::string& key, const std::string& value, Json then);
/// An object that "kind" tells apart; each variant is the schema of one kind, "kind" among its keys.
Json by_kind(const std::vector<std::pair<std::string, Json>>& variants);
}  // namespace portwave::scenario_file
