#pragma once

#include <optional>
#include <string>

#include "scenario/templates/assembly_list.hpp"

namespace portwave::scenario_file {

/// Counts what a scenario comes to when its assemblies, arrays and indexed couplings are written out,
/// without writing anything out: in values as TemplateFiller charges them, and never more than that.
/// Counts and ranges are computed where the numbers in them are known; of others it takes the least.
///
/// Returns the JSON pointer of the first entry of `root` with which it is more than `most`, or nothing.
/// Cost: a pass over the file, and at most so much again that it is not noticed.
std::optional<std::string> entry_of_too_many_values(const Json& root,
                                                    const AssemblyList& assemblies, double most);

}  // namespace portwave::scenario_file
