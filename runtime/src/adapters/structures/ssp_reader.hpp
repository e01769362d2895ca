#pragma once

#include <memory>
#include <vector>

#include "adapters/structures/structure.hpp"
#include "adapters/structures/structure_files.hpp"

namespace portwave::structures {

/// The type of our annotations.
inline constexpr const char* kOwnAnnotation = "org.portwave";

/// Reads a system structure description (SSD 1.0 or 2.0) with its systems within systems, parameter sets,
/// mappings and signal dictionaries. What cannot be read is added to `issues`. Packages within the package are
/// unpacked, and kept as long as `unpacked` is. `outermost`: the file of all.
/// Errors: ConfigError where nothing else can be said.
Structure read_ssp(const StructureFiles& files, const std::filesystem::path& outermost,
                   Issues& issues, std::vector<std::shared_ptr<const void>>& unpacked);

}  // namespace portwave::structures
