// Steps a scenario on as many processes as it is started with:
//   mpirun -n 4 on_ranks examples/chain_64.json
// Every process makes the system. The first one then goes on as if it were alone; the others follow.

#include <cstdio>
#include <exception>

#include <portwave/mpi/mpi_ranks.hpp>
#include <portwave/portwave.hpp>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: on_ranks SCENARIO\n");
    return 2;
  }
  try {
    const portwave::Scenario scenario = portwave::load_scenario(argv[1]);
    portwave::StepperOptions options = scenario.options;
    // [ranks]
    options.ranks = portwave::mpi_ranks();
    portwave::Stepper stepper(scenario.system, options);
    if (options.ranks->rank() != 0) {
      portwave::RankedStepper(stepper).follow();
      return 0;
    }
    stepper.step(100);
    std::printf("after %g s: %.17g J\n", stepper.time_s(), stepper.energy().final_J);
    // [ranks]
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
