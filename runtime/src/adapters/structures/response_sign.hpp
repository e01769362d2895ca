#pragma once

#include <optional>
#include <string>

#include "adapters/structures/structure.hpp"

namespace portwave::structures {

/// Whether an output answers a larger input by a larger value (+1) or by a smaller one (−1); 0: it does not answer;
/// nothing: it cannot be told, since short steps say something else than long ones. The element's FMU is started
/// for it. What answers at once, without a step, has the sign of that answer: of a passive part it is that of the
/// input. What does not is asked over the first steps, of the given size and of finer ones.
/// Defects of start values are added to `issues`. Errors: FmuFault, ConfigError.
std::optional<int> response_sign(const Element& element, const std::string& input,
                                 const std::string& output, double start_s, double step_s,
                                 bool in_a_process, Issues& issues);

}  // namespace portwave::structures
