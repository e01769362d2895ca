#pragma once

#include <string_view>

/// The examples at the end of each help text.
namespace portwave::cli {

inline constexpr std::string_view kExamples = R"(Examples:
  portwave run examples/two_oscillators.json --out results
  portwave run examples/two_oscillators.json --set /method/iterations=8 --certify full
  portwave report results
  portwave validate examples/two_oscillators.json
  portwave check examples/pendulum_by_energy.json
  portwave list duffing_oscillator
  portwave tune examples/two_oscillators.json
  portwave study budget examples/published_douglas_rachford.json --budgets 0,3,8,20,35,50
  portwave study order examples/msd_singlerate.json --steps 0.0078125,0.001953125
  portwave study iteration examples/two_masses.json --iterations 60
  portwave study scaling examples/chain_64.json --threads 1,2,4
  portwave generate chain --blocks 1000 --out chain.json
  portwave import examples/robot.urdf --out robot.json
  portwave fmu examples/two_oscillators.json --inputs B.force --out pair.fmu

Data goes to stdout, everything else to stderr.
Exit codes: 0 done, 1 certificate violated (with --strict: not all well), 2 bad input, 3 failure while running.)";

inline constexpr std::string_view kRunExamples = R"(Examples:
  portwave run examples/two_oscillators.json --out results --threads 4
  portwave run examples/two_oscillators.json --json --quiet | jq .energy
  portwave run examples/two_oscillators.json --set /subsystems/0/parameters/mass_kg=9
  portwave run examples/two_oscillators.json --pace 1 --deadline-us 200

With --deadline-us or --pace the inner iteration ends when time runs out: the results then depend on
the clock, and differ from run to run. Otherwise they are the same for any threads, grain and executor.

With --out the folder gets summary.json, network.json, trajectory.csv and energy.csv, with --report
also report.html, a page for any browser. Ctrl-C stops after the current step and keeps the recorded
rows. With --checkpoint-every, --resume continues a run that was killed, with the same results.)";

inline constexpr std::string_view kReportExamples = R"(Examples:
  portwave report results
  portwave report results --out pair.html
  portwave report before after

The page is one file that needs no network. It shows the verdict in words, what to try, trajectories,
energy, iterations, the network and how it was run; for two folders, how far the runs differ and where.)";

inline constexpr std::string_view kValidateExamples = R"(Examples:
  portwave validate examples/two_oscillators.json
  portwave validate examples/chain_64.json --set /method/iterations=8

All defects are listed at once. Exit codes: 0 the scenario is valid, 2 it has defects.)";

inline constexpr std::string_view kCheckExamples = R"(Examples:
  portwave check examples/pendulum_by_energy.json
  portwave check examples/robot_arm.json --part arm
  portwave check duffing_oscillator --steps-s 0.001,0.1
  portwave check my_type --plugin ./my_parts.so

Equal parts of a scenario are checked once, with steps of its size and shorter ones. Random states lie about as
far from the default state as states usually do. Exit codes: 0 every law holds, 1 a law is broken.)";

inline constexpr std::string_view kListExamples = R"(Examples:
  portwave list
  portwave list duffing_oscillator
  portwave list --blocks pid)";

inline constexpr std::string_view kSchemaExamples = R"(Examples:
  portwave schema > scenario.schema.json)";

inline constexpr std::string_view kStudiesExamples = R"(Examples:
  portwave study budget examples/published_douglas_rachford.json --budgets 0,3,8,20,35,50
  portwave study order examples/msd_singlerate.json --steps 0.0078125,0.001953125
  portwave study iteration examples/two_masses.json --iterations 60
  portwave study scaling examples/chain_64.json --threads 1,2,4

"portwave study KIND --help" shows the options of one kind.)";

inline constexpr std::string_view kImportExamples = R"(Examples:
  portwave import examples/robot.urdf --motors --hold --out robot.json
  portwave import examples/robot.urdf --hold | portwave run /dev/stdin
  portwave import robot.xml --no-limits
  portwave import truck.ssp --allow-plugins --out truck.json
  portwave import OspSystemStructure.xml --allow-plugins --duration 10 --out truck.json

The robot is one part "articulated". At its joints stand end stops, dry friction and, with --motors, gears and motors:
elbow_stops, elbow_friction, elbow_gear, elbow_motor, elbow_amplifier. What is left out or assumed is told.
FMUs of a system structure are laid beside the scenario: see docs/reference/system-structures.md.)";

inline constexpr std::string_view kStudyExamples = R"(Examples:
  portwave study budget examples/published_douglas_rachford.json --budgets 0,3,8,20,35,50
  portwave study budget examples/published_douglas_rachford.json --budgets 20 --json
  portwave study budget examples/published_douglas_rachford.json --budgets 2,4,6,8 --out results \
    --methods douglas-rachford,peaceman-rachford --impedances uniform,matched --guard on,off

An axis that is not given has the scenario's value. "uniform" and "per_port" are the scenario's own
impedances; the method "auto" chooses its own. With --out the folder gets study.json and budget.csv.)";

inline constexpr std::string_view kRateExamples = R"(Examples:
  portwave study rate examples/published_douglas_rachford.json
  portwave study rate examples/chain_64.json --steps 5 --json

Contraction is the mean factor by which an evaluation reduces the residual. It is predicted for the
iteration linearised at the initial state, and observed in the iteration itself, step by step. Both
start from zero waves; a run starts from the waves of the previous step, and needs fewer evaluations.)";

inline constexpr std::string_view kDelayExamples = R"(Examples:
  portwave study delay examples/published_douglas_rachford.json --delays 0,1,2,4 --budgets 4,8,16
  portwave study delay examples/published_douglas_rachford.json --scattered --json

Several ranks, here threads, iterate on the newest waves that have arrived, which are up to D
evaluations old. The error is that of the observed states against the monolithic reference.)";

inline constexpr std::string_view kOrderExamples = R"(Examples:
  portwave study order examples/msd_singlerate.json --steps 0.0078125,0.001953125,0.00048828125
  portwave study order examples/msd_multirate.json --steps 0.001953125,0.00048828125 \
    --methods strang,impulse --repeat 9 --out results

The midpoint rule of the whole system always takes part, as one dense step map and by one sparse LU.
With --out the folder gets study.json and order.csv.)";

inline constexpr std::string_view kToleranceExamples = R"(Examples:
  portwave study tolerance examples/two_oscillators.json --stages 1,2,3
  portwave study tolerance examples/chain_64.json --tolerances 1e-4,1e-6,1e-8 --stages 3 --out results

Errors are relative errors of all states at the end, against a run with a thousandth of the smallest
tolerance. With --out the folder gets study.json and tolerance.csv.)";

inline constexpr std::string_view kIterationExamples = R"(Examples:
  portwave study iteration examples/two_masses.json --iterations 60
  portwave study iteration examples/jacobi_failure.json --iterations 160 --start-error 1,0.01
  portwave study iteration examples/msd_chains.json --out results \
    --set '/method={"kind": "gauss-seidel", "window_steps": 100}' --windows all

Errors are against the whole system solved by the same integrator, from whose state each window starts.
With --out the folder gets study.json and iteration.csv.)";

inline constexpr std::string_view kTuneExamples = R"(Examples:
  portwave tune examples/two_oscillators.json
  portwave tune examples/chain_64.json --impedance matched --ports 8
  portwave tune examples/two_oscillators.json --set /time/step_s=0.001 --json

The system is linearised at its initial state. Where the margin of a port is not negative, its part
is firmly nonexpansive (douglas-rachford) or nonexpansive (peaceman-rachford) with the impedances
shown. "uniform" and "per_port" are the scenario's own impedances.)";

inline constexpr std::string_view kScalingExamples = R"(Examples:
  portwave study scaling examples/chain_64.json --threads 1,2,4
  portwave study scaling --generate chain --sizes 1000,2000,4000 --threads 1,2,4 \
    --executors serial,async --out results --plot scaling.pdf
  portwave study scaling --generate grid --sizes 4096 --weak --threads 1,2,4

Rows marked "predicted" were not run: a simulation schedules the measured costs of the tasks on that
many cores. Speed-ups are relative to one thread, with --weak to the first size. The program
rank_study, one of the benchmarks, does the same over several processes.)";

inline constexpr std::string_view kGenerateExamples = R"(Examples:
  portwave generate chain --blocks 1000 --vary 0.2 --out chain.json
  portwave generate grid --rows 30 --columns 40 --step 0.01 | portwave validate /dev/stdin

"portwave generate KIND --help" shows the options of one kind.)";

inline constexpr std::string_view kFmuExamples = R"(Examples:
  portwave fmu examples/two_oscillators.json --inputs B.force --parameters A.mass_kg --out pair.fmu
  portwave fmu truck.json --ports wheel.road --outputs 'body.*,energy.stored' --fmi 3 --out truck.fmu

The FMU is for co-simulation on Linux machines of this kind, and needs no portwave there. See
docs/reference/exported-fmus.md.)";

inline constexpr std::string_view kSspExamples = R"(Examples:
  portwave ssp two_fmus.json --allow-plugins --out two_fmus.ssp
  portwave run two_fmus.ssp --allow-plugins --out results

Parts and blocks must be FMUs. See docs/reference/system-structures.md.)";

}  // namespace portwave::cli
