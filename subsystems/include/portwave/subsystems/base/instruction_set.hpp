#pragma once

#include <string_view>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The instruction sets that the inner kernels are compiled for. Every kernel does the same
/// operations in the same order on each of them, with fused multiply–adds wherever it says so and
/// nowhere else: results are equal bit by bit, only the speed differs.
enum class InstructionSet {
  /// Whatever the compiler targets: SSE2 with slow calls for multiply–adds on x86-64, NEON on AArch64.
  baseline,
  x86_64_v3,  ///< AVX2 and FMA
  x86_64_v4,  ///< AVX-512
  sve_256,    ///< SVE on a machine whose vectors have 256 bits, and no other
  sve_512,    ///< the same for 512 bits
};

/// The widest set that this machine has and this build contains, limited by the value of the environment
/// variable PORTWAVE_ISA at the first call: "baseline"; "v3", "v4" on x86-64;
/// "sve256", "sve512" on AArch64. Other values are ignored.
InstructionSet instruction_set();

/// "baseline", "x86-64-v3", "x86-64-v4", "sve-256", "sve-512".
std::string_view to_string(InstructionSet set);

}  // namespace portwave

// Each set has a namespace, `portwave_kernels` in cmake/portwave_targets.cmake compiles its contents,
// and these two macros know them all. Macros, since no function takes a namespace.

/// Declares constants, in each of the namespaces.
#define PORTWAVE_DECLARE_KERNELS(...) \
  namespace baseline {                \
  extern __VA_ARGS__;                 \
  }                                   \
  namespace v3 {                      \
  extern __VA_ARGS__;                 \
  }                                   \
  namespace v4 {                      \
  extern __VA_ARGS__;                 \
  }                                   \
  namespace sve256 {                  \
  extern __VA_ARGS__;                 \
  }                                   \
  namespace sve512 {                  \
  extern __VA_ARGS__;                 \
  }

/// The one of the set in use.
#if defined(PORTWAVE_X86_64_KERNELS)
#define PORTWAVE_KERNELS(name)                                                         \
  (::portwave::instruction_set() == ::portwave::InstructionSet::x86_64_v4   ? v4::name \
   : ::portwave::instruction_set() == ::portwave::InstructionSet::x86_64_v3 ? v3::name \
                                                                            : baseline::name)
#elif defined(PORTWAVE_SVE_KERNELS)
#define PORTWAVE_KERNELS(name)                                                           \
  (::portwave::instruction_set() == ::portwave::InstructionSet::sve_512   ? sve512::name \
   : ::portwave::instruction_set() == ::portwave::InstructionSet::sve_256 ? sve256::name \
                                                                          : baseline::name)
#else
#define PORTWAVE_KERNELS(name) (baseline::name)
#endif
