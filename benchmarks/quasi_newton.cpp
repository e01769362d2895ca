// Waves beside partitioned implicit coupling with quasi-Newton acceleration, the way of preCICE
// (peers/quasi_newton_coupling.hpp, written from its publications): a chain of masses, springs and
// dampers, cut into pieces that are dealt out to two participants in turn. Both sides take implicit
// midpoint steps, and start each from what the last one ended with.
//   at_springs      pieces of five masses; light ones at the cuts make the iteration hard
//   through_masses  the same, the masses at the cuts being divided: the gain of the iteration is a
//                   ratio of masses, however short the step (the "added mass" of fluids on walls)
//   duffing         single masses on hardening springs, cut at springs
//
// Rows of a case and a method, means over the steps of a run:
//   iterations  calls of each participant; of the engine its evaluations and the commit
//   latencies   messages that wait for one another: two per iteration of the serial scheme; one
//               where both participants send at once, and both accelerate alike (preCICE does that
//               on one side and sends back, which makes it two)
//   error       at the end, against implicit midpoint of the chain as a whole; 1 stands for all
//               that is larger
// and of a case
//   best_peer   the fewest latencies of a peer that converges, beside those of the engine's auto
//   time        of auto's steps, beside a peer's, timed in turns in one process: a message costs
//               nothing there. The peers are loops for this chain alone. Only with few cuts: with
//               many, their time is that of the decomposition of their columns, which could be
//               updated instead
//
// Many rows have no goal because the peers are as good there, or better. Where columns of earlier
// steps tell all about few linear cuts they need two iterations, and end the step with the last of
// them; waves need two evaluations and the commit. Weakly coupled nonlinear pieces are similar. The
// filter of 0.01 is the usual one. With 1e-4 they need up to a third less where there are many
// linear cuts, but diverge in the hardest nonlinear case, where 0.1 is better.
//
// An argument restricts the cases: a part of their names.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cut_chain.hpp"
#include "report.hpp"

namespace {

using namespace portwave::bench;
using portwave::Stepper;

constexpr int kSteps = 200;
constexpr int kTimedSteps = 50;
constexpr int kMostIterations = 200;

enum class Kind { at_springs, through_masses, duffing };

struct Case {
  Kind kind = Kind::at_springs;
  std::size_t pieces = 2;
  double mass_ratio = 1.0, step_s = 1e-2, tolerance = 1e-8;

  std::string name() const {
    const char* const kinds[] = {"at_springs", "through_masses", "duffing"};
    return fmt::format("{}/{}_pieces/mass_ratio={:g}/h={:g}/tolerance={:g}",
                       kinds[static_cast<int>(kind)], pieces, mass_ratio, step_s, tolerance);
  }
  CutChain chain() const {
    if (kind == Kind::duffing) return duffing_chain(pieces, mass_ratio);
    return cut_chain(pieces, kind == Kind::at_springs ? CutAt::spring : CutAt::mass, mass_ratio);
  }
  bool linear() const { return kind != Kind::duffing; }
  /// Where the peers need most: many cuts, light masses beside heavy ones, long steps.
  bool hard() const { return pieces > 4 && mass_ratio < 1 && (linear() || step_s > 0.05); }
  portwave::System system() const {
    return kind == Kind::duffing ? duffing_chain_system(chain()) : cut_chain_system(chain());
  }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Kind kind : {Kind::at_springs, Kind::through_masses}) {
    for (const double ratio : {1e-2, 1.0, 1e2}) {
      for (const double tolerance : {1e-4, 1e-8}) all.push_back({kind, 4, ratio, 1e-2, tolerance});
      for (const std::size_t pieces : {2, 32}) all.push_back({kind, pieces, ratio, 1e-2, 1e-8});
    }
    for (const double step_s : {1e-3, 1e-1}) all.push_back({kind, 4, 1e-2, step_s, 1e-8});
  }
  for (const std::size_t pieces : {2, 32}) {
    for (const double ratio : {1e-2, 1.0}) {
      for (const double step_s : {1e-2, 1e-1}) {
        all.push_back({Kind::duffing, pieces, ratio, step_s, 1e-8});
      }
    }
  }
  return all;
}

/// What a run came to, per step.
struct Outcome {
  double iterations = 0.0, latencies = 0.0, error = 0.0;
  double not_converged = 0.0;  ///< share of the steps
  std::string how = {};
};

struct Peer {
  std::string name;
  PartitionedOptions options;
};

const std::vector<Peer> kPeers = {
    {"relaxation", {.quasi_newton = false}},
    {"iqn_serial", {}},
    {"iqn_serial_reuse_8", {.reused_steps = 8}},
    {"iqn_parallel_reuse_8", {.serial = false, .reused_steps = 8}},
    {"iqn_parallel_reuse_8_filter_0.1", {.serial = false, .reused_steps = 8, .filter = 0.1}},
};

struct Method {
  std::string name;
  std::function<portwave::CouplingMethod(double tolerance)> make;
};

const std::vector<Method> kMethods = {
    {"engine_douglas_rachford",
     [](double tolerance) -> portwave::CouplingMethod {
       return portwave::WaveCoupling{.iterations = kMostIterations,
                                     .tolerance = tolerance,
                                     .impedance_kind = portwave::ImpedanceKind::matched};
     }},
    {"engine_auto", portwave::CouplingMethod::automatic},
};

std::unique_ptr<PartitionedChain> make(const CutChain& chain, const Peer& peer, double step_s,
                                       double tolerance) {
  PartitionedOptions options = peer.options;
  options.tolerance = tolerance;
  options.most_iterations = kMostIterations;
  return partitioned_chain(chain, step_s, options);
}

/// Without ledger and guard, as the peers.
portwave::StepperOptions engine_options(const Method& method, double step_s, double tolerance) {
  portwave::StepperOptions options;
  options.step_s = step_s;
  options.certify = portwave::Certify::none;
  options.method = method.make(tolerance);
  options.method.waves().guard = false;
  return options;
}

Outcome run(const CutChain& chain, const Peer& peer, double step_s, double tolerance,
            const Trajectory& expected) {
  const auto solver = make(chain, peer, step_s, tolerance);
  Outcome outcome;
  for (int n = 0; n < kSteps; ++n) {
    outcome.iterations += solver->step();
    if (!solver->converged()) outcome.not_converged += 1.0 / kSteps;
  }
  outcome.iterations /= kSteps;
  outcome.latencies = (peer.options.serial ? 2.0 : 1.0) * outcome.iterations;
  Trajectory end = expected;
  solver->read(end.q, end.v);
  outcome.error = difference(end, expected);
  return outcome;
}

Outcome run(const portwave::System& system, const CutChain& chain, const Method& method,
            double step_s, double tolerance, const Trajectory& expected) {
  Stepper engine(system, engine_options(method, step_s, tolerance));
  engine.step(kSteps);
  const portwave::IterationStatistics& statistics = engine.iterations();
  Outcome outcome;
  outcome.iterations = statistics.per_step() + 1.0;
  outcome.latencies = outcome.iterations;
  outcome.not_converged = static_cast<double>(statistics.not_converged) / kSteps;
  outcome.error = difference(read_engine(engine, chain), expected);
  const portwave::WaveCoupling& chosen = engine.method().method.waves();
  outcome.how = chosen.interface_islands.empty()
                    ? fmt::format("{}, impedances {}", to_string(chosen.kind),
                                  to_string(chosen.impedance_kind))
                    : "interface equation";
  return outcome;
}

void require(const std::string& name, double difference, bool agrees) {
  constexpr double kTolerance = 1e-10;
  if ((difference <= kTolerance) == agrees) return;
  throw std::runtime_error(fmt::format("{}: {}, off by {:.1e}", name,
                                       agrees ? "wrong answer" : "the check saw nothing wrong",
                                       difference));
}

/// All converged as far as numbers allow, and a chain that is slightly wrong to see that the check
/// can fail.
void check_answers(const Case& c, const CutChain& chain, const portwave::System& system,
                   const Trajectory& expected) {
  constexpr double kTight = 1e-13;
  for (const Peer& peer : kPeers) {
    if (!peer.options.quasi_newton) continue;
    require(c.name() + " " + peer.name, run(chain, peer, c.step_s, kTight, expected).error, true);
  }
  for (const Method& method : kMethods) {
    require(c.name() + " " + method.name,
            run(system, chain, method, c.step_s, kTight, expected).error, true);
  }
  WholeChain wrong(chain);
  wrong.add_spring(0, 1e-6 * chain.pieces[0].coupling_stiffness_N_per_m);
  require(c.name() + " one spring 1e-6 stiffer",
          difference(wrong.midpoint(c.step_s, kSteps), expected), false);
}

/// The reference itself: midpoint comes four times as close to the exact solution with half the
/// step.
void check_reference() {
  constexpr int kFine = 4000;
  constexpr double kStep_s = 1.0 / kFine;
  for (const Kind kind : {Kind::at_springs, Kind::through_masses, Kind::duffing}) {
    const Case c{.kind = kind, .pieces = 4};
    const WholeChain whole(c.chain());
    const Trajectory exact = whole.exact(1.0);
    const double gain = difference(whole.midpoint(kStep_s, kFine), exact) /
                        difference(whole.midpoint(0.5 * kStep_s, 2 * kFine), exact);
    if (!(std::abs(gain - 4.0) < 0.1)) {
      throw std::runtime_error(fmt::format("{}: half the step gains {:.2f}", c.name(), gain));
    }
  }
}

/// Both directions through each cut.
double messages(const Outcome& outcome) { return 2.0 * outcome.iterations; }

struct Goals {
  std::optional<double> iterations = {}, error = {};
};

void tell(const Report& report, const std::string& name, const Outcome& outcome, const Goals& goals,
          double midpoint_error) {
  fmt::print(stderr, "  {:32} {:8.2f} {:8.2f} {:8.2f}   {:8.1e}  {:5.1f} %  {}\n",
             name.substr(name.rfind('/') + 1), outcome.iterations, messages(outcome),
             outcome.latencies, outcome.error, 100.0 * outcome.not_converged, outcome.how);
  std::string note = outcome.how.empty() ? "" : outcome.how + "; ";
  if (outcome.not_converged > 0.0) {
    note += fmt::format("{:.3g} % of the steps do not converge in {} iterations; ",
                        100.0 * outcome.not_converged, kMostIterations);
  }
  const auto row = [&](const char* quantity, double value, const std::string& unit,
                       std::optional<double> goal, const std::string& more) {
    report.add(
        {.name = name + "/" + quantity, .sense = Sense::at_most, .goal = goal, .note = note + more},
        {value}, unit);
  };
  row("iterations", outcome.iterations, "per step", goals.iterations,
      fmt::format("mean of {} steps", kSteps));
  row("latencies", outcome.latencies, "per step", {},
      fmt::format("{:.4g} messages through each cut", messages(outcome)));
  row("error", std::min(outcome.error, 1.0), "relative", goals.error,
      fmt::format("midpoint itself is {:.1e} from the exact solution", midpoint_error));
}

void compare_times(const Report& report, const Case& c, const std::string& name,
                   const CutChain& chain, const portwave::System& system,
                   const std::vector<std::size_t>& peers) {
  // From the start again and again: a chain that has come to rest measures something else.
  Stepper engine(system, engine_options(kMethods.back(), c.step_s, c.tolerance));
  const portwave::Snapshot start = engine.snapshot();
  std::vector<Timer> contenders = {processor_timed([&] {
    engine.restore(start);
    engine.step(kTimedSteps);
  })};
  std::vector<std::unique_ptr<PartitionedChain>> solvers;
  for (const std::size_t p : peers) {
    solvers.push_back(make(chain, kPeers[p], c.step_s, c.tolerance));
    contenders.push_back(processor_timed([&solver = *solvers.back()] {
      solver.restart();
      for (int n = 0; n < kTimedSteps; ++n) solver.step();
    }));
  }
  const Contest contest = take_turns(contenders, {.rounds = 15, .turn_s = 1e-3});
  for (std::size_t i = 0; i < peers.size(); ++i) {
    report.add({.name = fmt::format("{}/{}/time", name, kPeers[peers[i]].name),
                .sense = Sense::at_most,
                .note = fmt::format("times of {} steps", kTimedSteps)},
               contest, 0, i + 1);
  }
}

void compare(const Report& report, const Case& c) {
  const CutChain chain = c.chain();
  const portwave::System system = c.system();
  const WholeChain whole(chain);
  const Trajectory expected = whole.midpoint(c.step_s, kSteps);
  check_answers(c, chain, system, expected);
  const double midpoint_error = difference(expected, whole.exact(c.step_s * kSteps));
  const std::string name = "quasi_newton/" + c.name();
  fmt::print(stderr, "{}\n", name);

  std::vector<std::size_t> fit;  // peers that converge
  double fewest = HUGE_VAL;
  std::string best;
  for (std::size_t p = 0; p < kPeers.size(); ++p) {
    const Outcome outcome = run(chain, kPeers[p], c.step_s, c.tolerance, expected);
    tell(report, name + "/" + kPeers[p].name, outcome, {}, midpoint_error);
    if (outcome.not_converged > 0.0) continue;
    fit.push_back(p);
    if (outcome.latencies < fewest) best = kPeers[p].name;
    fewest = std::min(fewest, outcome.latencies);
  }
  for (const Method& method : kMethods) {
    const bool is_auto = &method == &kMethods.back();
    const Outcome outcome = run(system, chain, method, c.step_s, c.tolerance, expected);
    tell(report, name + "/" + method.name, outcome,
         is_auto && c.linear() ? Goals{.iterations = 3.0, .error = 1e-12} : Goals{},
         midpoint_error);
    if (!is_auto) continue;
    report.add({.name = name + "/best_peer",
                .sense = Sense::at_least,
                .goal = c.hard() ? std::optional(1.5) : std::nullopt,
                .note = "latencies of " + best},
               {fewest / outcome.latencies}, "times as many latencies");
  }
  if (c.pieces <= 4) compare_times(report, c, name, chain, system, fit);
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("quasi_newton", 3);
  if (report.only_lists(argc, argv)) return 0;
  const std::string_view asked = argc > 1 ? argv[1] : "";
  const std::string_view wanted = asked.starts_with("--") ? "" : asked;
  check_reference();
  for (const Case& c : cases()) {
    if (c.name().find(wanted) != std::string::npos) compare(report, c);
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "quasi_newton: {}\n", error.what());
  return 1;
}
