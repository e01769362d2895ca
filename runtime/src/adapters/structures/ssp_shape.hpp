#pragma once

#include "adapters/structures/ssp_parameters.hpp"

namespace portwave::structures {

/// Looks for elements of SSP's namespaces that stand where SSP has none of that name, and for attributes that are
/// misspelt: a reader that takes names it looks for would pass them over. Elements that SSP does not know at all,
/// as of a later version, are told in the notes. What is in annotations, and other namespaces, is left alone.
void check_shape(const ReadingOf& reading);

}  // namespace portwave::structures
