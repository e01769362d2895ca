#pragma once

#include <map>
#include <string>
#include <vector>

#include "adapters/structures/structure.hpp"

namespace portwave::structures {

/// Groups of variables that an OspModelDescription.xml names, with those within them: their variables in order.
using VariableGroups = std::map<std::string, std::vector<std::string>>;

/// The groups of an element's FMU: of the file in it, or of one beside it or beside the structure that begins
/// with the name of the model. Ports of them are added to the element, one for each component.
/// Errors: ConfigError.
VariableGroups read_groups(Element& element, const std::filesystem::path& structure_folder);

}  // namespace portwave::structures
