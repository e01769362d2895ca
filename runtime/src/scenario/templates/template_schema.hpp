#pragma once

#include <string>

#include "scenario/reader/key_table.hpp"

/// Schema of what scenarios say once for many entries.
namespace portwave::scenario_file {

/// Lets {"parameter": …}, {"expression": …} and texts with "{…}" stand wherever values may stand
/// inside of what the schema describes.
void allow_computed_values(Json& schema);

/// How many elements an array has.
Json count_schema();
/// Indices of a coupling, each with its first and last value.
Json indices_schema();
/// An entry of "subsystems" that uses an assembly. The expansion reads it.
struct UseKeys {};
const KeyTable<UseKeys>& use_keys();
/// Parameters of a scenario or of an assembly.
Json variables_schema(const std::string& description);
/// The definitions that these refer to.
void add_template_definitions(Json& definitions);

}  // namespace portwave::scenario_file
