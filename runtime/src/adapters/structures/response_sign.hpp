#pragma once

#include <string>

#include "adapters/structures/structure.hpp"

namespace portwave::structures {

/// Whether an output answers a larger input by a larger value (+1) or by a smaller one (−1) over the first steps
/// of an element's FMU, which is started for it; 0: it does not answer. Defects of start values are added to
/// `issues`. Errors: FmuFault, ConfigError.
int response_sign(const Element& element, const std::string& input, const std::string& output,
                  double start_s, double step_s, bool in_a_process, Issues& issues);

}  // namespace portwave::structures
