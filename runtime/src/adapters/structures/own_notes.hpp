#pragma once

#include <functional>
#include <string>

#include "adapters/files/xml_file.hpp"
#include "adapters/structures/structure.hpp"

namespace portwave::structures {

/// The annotations of an element of SSP that are of a type.
std::vector<pugi::xml_node> annotations(pugi::xml_node at, std::string_view type);

/// JSON of a note; null where it is no object of JSON, or nested more deeply than a note is.
Json parse_note(const std::string& text);

/// Told of each member of a note that is of another kind than it should be.
using Complain = std::function<void(std::string what)>;

/// What portwave notes of a structure: {"bonds", "not_bonds", "inputs", "couplings", "scenario"}.
void check_whole_note(const Json& note, const Complain& complain);
/// What it notes of an element: {"ports", "outputs", "step_s", "process", "time_limit_s", "settings"}.
void check_element_note(const Json& note, const Complain& complain);

}  // namespace portwave::structures
