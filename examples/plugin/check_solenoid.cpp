// The laws of a part, checked without the program: energy, gradients, order of convergence.

#include <cstdio>

#include <portwave/extend/conformance.hpp>

#include "solenoid.hpp"

int main() {
  portwave::ConformanceOptions options;
  options.steps_s = {1e-7, 1e-6, 1e-5, 1e-4};
  options.impedance = 100.0;
  options.wave_scale = 0.01;
  const portwave::PartType type = solenoid_type();
  const auto part = type.build(type.example);
  bool all_hold = true;
  for (const portwave::LawReport& law : check_all(*part->port_hamiltonian(), options)) {
    std::printf("%-28s %s\n", law.law.c_str(), law.holds ? "holds" : law.detail.c_str());
    all_hold = all_hold && law.holds;
  }
  return all_hold ? 0 : 1;
}
