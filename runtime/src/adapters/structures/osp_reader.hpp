#pragma once

#include "adapters/structures/structure.hpp"
#include "adapters/structures/structure_files.hpp"

namespace portwave::structures {

/// Reads OspSystemStructure.xml (OSP-IS): simulators, functions, connections of variables and of groups, which
/// OspModelDescription.xml describes. What cannot be read is added to `issues`.
/// Errors: ConfigError where nothing else can be said.
Structure read_osp(const StructureFiles& files, Issues& issues);

}  // namespace portwave::structures
