// One fast nonlinear part on a chain of 5120 slow masses: the chain in steps of 2.5 ms and the fast part
// in 16 substeps, beside the whole in steps as short as these.

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "report.hpp"

namespace {

using portwave::Stepper;
using portwave::System;
using portwave::SystemBuilder;
using portwave::bench::Contest;
using portwave::bench::processor_timed;
using portwave::bench::Report;
using portwave::bench::Sense;
using portwave::bench::take_turns;

constexpr int kBlocks = 1024, kMasses = 5, kSubsteps = 16;
constexpr double kStep = 0.0025, kEnd = 1.0;

/// Blocks of 1 kg masses on springs of 100 N/m, their ends springs; a mass of 10 g on a hardening
/// spring, ω from 316 rad/s on, at the end.
System machine(int substeps) {
  SystemBuilder builder;
  std::string last;
  for (int i = 0; i < kBlocks; ++i) {
    const std::string name = "block" + std::to_string(i);
    portwave::ChainParameters block{.masses = kMasses,
                                    .mass_kg = 1.0 + 0.001 * i,
                                    .stiffness_N_per_m = 100.0,
                                    .damping_Ns_per_m = 0.02,
                                    .coupling_stiffness_N_per_m = 100.0};
    block.right_end = portwave::ChainEnd::spring;
    builder.add(name, mass_spring_damper_chain(block));
    if (i == 0) {
      builder.join(portwave::joint::Free{}, {name + ".left"});
    } else {
      builder.connect(last, name + ".left");
    }
    last = name + ".right";
  }
  builder.add("tool", portwave::linear_oscillator({.mass_kg = 0.5, .stiffness_N_per_m = 20.0}));
  builder.add("fast",
              portwave::duffing_oscillator({.mass_kg = 0.01,
                                            .stiffness_N_per_m = 1e3,
                                            .cubic_stiffness_N_per_m3 = 1e6,
                                            .damping_Ns_per_m = 1e-3,
                                            .coupling_stiffness_N_per_m = 10.0}),
              {.initial_state = {0.02, 0.0, -0.02}, .substeps = substeps});
  builder.join(portwave::joint::CommonEffort{}, {last, "tool.coupling", "fast.coupling"});
  return builder.build();
}

portwave::StepperOptions options_of(int stages, double step_s) {
  portwave::StepperOptions options;
  options.step_s = step_s;
  options.method = portwave::WaveCoupling::automatic(1e-10);
  options.method.waves().stages = stages;
  return options;
}

std::vector<double> end_of(const System& system, int stages, double step_s) {
  Stepper stepper(system, options_of(stages, step_s));
  stepper.step(std::lround(kEnd / step_s));
  if (stepper.certificate().status == portwave::CertificateStatus::violated) {
    throw std::runtime_error("a certificate is violated");
  }
  std::vector<double> out;
  for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
    out.insert(out.end(), stepper.state(part).begin(), stepper.state(part).end());
  }
  return out;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

}  // namespace

int main(int argc, char** argv) {
  const Report report("multirate", 3);
  if (report.only_lists(argc, argv)) return 0;
  try {
    const System plain = machine(1), multirate = machine(kSubsteps);
    const std::vector<double> truth = end_of(plain, 3, kStep / kSubsteps / 2);
    for (const int stages : {2, 3}) {
      const double coarse = distance(end_of(plain, stages, kStep), truth);
      const double substepped = distance(end_of(multirate, stages, kStep), truth);
      const double fine = distance(end_of(plain, stages, kStep / kSubsteps), truth);
      fmt::print(stderr,
                 "  stages {}: error {:.1e}, without substeps {:.1e}, all in short steps {:.1e}\n",
                 stages, substepped, coarse, fine);
      if (!(substepped < 0.5 * coarse)) throw std::runtime_error("substeps gain nothing");
      Stepper with_substeps(multirate, options_of(stages, kStep));
      Stepper short_steps(plain, options_of(stages, kStep / kSubsteps));
      const Contest contest = take_turns({processor_timed([&] { with_substeps.step(); }),
                                          processor_timed([&] { short_steps.step(kSubsteps); })});
      report.add(
          {fmt::format("multirate, one part in {} substeps, stages {}", kSubsteps, stages),
           Sense::at_least, std::nullopt,
           fmt::format("error after 1 s {:.1e}; all in short steps {:.1e}; no substeps {:.1e}",
                       substepped, fine, coarse)},
          contest, 0, 1);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "multirate: {}\n", error.what());
    return 1;
  }
}
