#include "portwave/subsystems/base/instruction_set.hpp"

#include <cstdlib>
#include <string_view>

#ifdef PORTWAVE_SVE_KERNELS
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

namespace portwave {
namespace {

#if defined(PORTWAVE_X86_64_KERNELS)

bool has_v4() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd");
}

bool has_v3() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2");
}

InstructionSet choose(std::string_view wanted) {
  __builtin_cpu_init();
  if (wanted == "baseline") return InstructionSet::baseline;
  if (wanted != "v3" && has_v4()) return InstructionSet::x86_64_v4;
  return has_v3() ? InstructionSet::x86_64_v3 : InstructionSet::baseline;
}

#elif defined(PORTWAVE_SVE_KERNELS)

/// Bits of a vector in this thread and in those that it starts; 0 without SVE.
int sve_bits() {
  constexpr unsigned long kSve = 1ul << 22;  // of AT_HWCAP
  if ((::getauxval(AT_HWCAP) & kSve) == 0) return 0;
  const int answer = ::prctl(PR_SVE_GET_VL, 0, 0, 0, 0);
  return answer < 0 ? 0 : 8 * (answer & PR_SVE_VL_LEN_MASK);
}

InstructionSet choose(std::string_view wanted) {
  if (wanted == "baseline") return InstructionSet::baseline;
  switch (sve_bits()) {
    case 256:
      return InstructionSet::sve_256;
    case 512:
      // Vectors of 512 bits cannot run what is compiled for 256.
      return wanted == "sve256" ? InstructionSet::baseline : InstructionSet::sve_512;
    default:
      return InstructionSet::baseline;
  }
}

#else

InstructionSet choose(std::string_view /*wanted*/) { return InstructionSet::baseline; }

#endif

}  // namespace

InstructionSet instruction_set() {
  static const InstructionSet chosen = [] {
    const char* wanted = std::getenv("PORTWAVE_ISA");
    return choose(wanted == nullptr ? "" : wanted);
  }();
  return chosen;
}

std::string_view to_string(InstructionSet set) {
  switch (set) {
    case InstructionSet::baseline:
      return "baseline";
    case InstructionSet::x86_64_v3:
      return "x86-64-v3";
    case InstructionSet::x86_64_v4:
      return "x86-64-v4";
    case InstructionSet::sve_256:
      return "sve-256";
    case InstructionSet::sve_512:
      return "sve-512";
  }
  return "unknown";
}

}  // namespace portwave
