#pragma once

#include <string_view>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The instruction sets that the inner kernels are compiled for. Every kernel does the same
/// operations in the same order on each of them, with fused multiply–adds wherever it says so and
/// nowhere else: results are equal bit by bit, only the speed differs.
enum class InstructionSet {
  baseline,   ///< whatever the compiler targets; multiply–adds may be slow calls
  x86_64_v3,  ///< AVX2 and FMA
  x86_64_v4,  ///< AVX-512
};

/// The widest set that this machine has and this build contains, capped by the environment variable
/// PORTWAVE_ISA ("baseline", "v3" or "v4"; anything else is ignored) as it was at the first call.
InstructionSet instruction_set();

/// "baseline", "x86-64-v3", "x86-64-v4".
std::string_view to_string(InstructionSet set);

}  // namespace portwave
