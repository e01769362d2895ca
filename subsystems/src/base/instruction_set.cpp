#include "portwave/subsystems/base/instruction_set.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace portwave {
namespace {

InstructionSet supported() {
#ifdef PORTWAVE_X86_64_KERNELS
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd")) {
    return InstructionSet::x86_64_v4;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2")) {
    return InstructionSet::x86_64_v3;
  }
#endif
  return InstructionSet::baseline;
}

InstructionSet cap() {
  const char* wanted = std::getenv("PORTWAVE_ISA");
  const std::string_view name = wanted == nullptr ? "" : wanted;
  if (name == "baseline") return InstructionSet::baseline;
  if (name == "v3") return InstructionSet::x86_64_v3;
  return InstructionSet::x86_64_v4;
}

}  // namespace

InstructionSet instruction_set() {
  static const InstructionSet chosen = std::min(supported(), cap());
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
  }
  return "unknown";
}

}  // namespace portwave
