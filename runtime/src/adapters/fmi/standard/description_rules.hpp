#pragma once

#include <functional>
#include <pugixml.hpp>
#include <string>

#include "adapters/fmi/standard/model_description.hpp"

namespace portwave::fmi {

/// Holds the elements of a description against the schema of its version, by a table: attributes that must be there,
/// what they may say, elements that must be there, or once. Elements and attributes that the table does not know pass:
/// later versions of the standard and tools add some, and nothing depends on them.
void check_description(pugi::xml_node root, Version version,
                       const std::function<void(pugi::xml_node, const std::string&)>& fail);

}  // namespace portwave::fmi
