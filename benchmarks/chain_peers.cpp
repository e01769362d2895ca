// One macro-step of 1024 blocks of five masses, h = 1 ms: the engine at K inner iterations beside
// monolithic implicit midpoint solvers whose matrix is factorised once. One thread each. Rows
// without a goal are there because a monolithic solver can be as good, or better.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "chain_system.hpp"
#include "peers/midpoint.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"
#include "report.hpp"

namespace {

using namespace portwave::bench;
using portwave::Stepper;
using portwave::System;

constexpr std::size_t kBlocks = 1024;
constexpr double kStep = 1e-3;
constexpr int kBudgets[] = {2, 20};
constexpr int kChecked = 200;  // steps of a comparison

struct Peer {
  std::string name;
  PeerFactory* make;
  std::optional<double> goal_equal[std::size(kBudgets)] = {};
  std::optional<double> goal_varied[std::size(kBudgets)] = {};
};

std::vector<Peer> peers() {
  std::vector<Peer> peers = {{"eigen_sparse_lu", eigen_sparse_lu, {25, 10}, {8, 3}},
                             {"eigen_ldlt", eigen_ldlt, {3, 1}, {3, 1}}};
#ifdef PORTWAVE_BENCHMARK_LAPACK
  peers.push_back({"lapack_dgbtrs", lapack_banded_lu});
  peers.push_back({"lapack_dpbtrs", lapack_banded_cholesky});
  peers.push_back({"lapack_dpttrs", lapack_tridiagonal});
#endif
  peers.push_back({"block_tridiagonal", block_tridiagonal});
  return peers;
}

struct Trajectory {
  std::vector<double> q, v;
};

Trajectory run(PeerFactory* make, const Chain& chain, int steps) {
  Trajectory end{chain.q, chain.v};
  const auto peer = make(chain, kStep);
  for (int n = 0; n < steps; ++n) peer->step();
  peer->read(end.q, end.v);
  return end;
}

Trajectory run(const System& system, const Chain& chain, int iterations, int steps) {
  Trajectory end{chain.q, chain.v};
  Stepper engine(system, chain_options(chain, kStep, iterations));
  engine.step(steps);
  read_engine(engine, end.q, end.v);
  return end;
}

/// Largest difference of positions and of velocities, each against the largest of its kind;
/// infinite when something is not a number.
double difference(const Trajectory& a, const Trajectory& b) {
  const auto of = [](const std::vector<double>& x, const std::vector<double>& y) {
    double worst = 0.0, scale = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!std::isfinite(x[i]) || !std::isfinite(y[i])) return HUGE_VAL;
      worst = std::max(worst, std::abs(x[i] - y[i]));
      scale = std::max(scale, std::abs(y[i]));
    }
    return worst / scale;
  };
  return std::max(of(a.q, b.q), of(a.v, b.v));
}

/// Every solver against the first, the engine at K = 200 too, and a chain that is slightly wrong to
/// see that the check can fail.
void check_answers(const Chain& chain, const System& system, const Trajectory& expected) {
  constexpr double kTolerance = 1e-10;
  const auto require = [](const std::string& name, double difference, bool agrees) {
    fmt::print(stderr, "  {:24} {:.1e}\n", name, difference);
    if ((difference <= kTolerance) == agrees) return;
    throw std::runtime_error(name + (agrees ? ": wrong answer" : ": the check saw nothing wrong"));
  };
  for (const Peer& peer : peers()) {
    require(peer.name, difference(run(peer.make, chain, kChecked), expected), true);
  }
  require("engine K=200", difference(run(system, chain, 200, kChecked), expected), true);
  Chain wrong = chain;
  wrong.blocks[kBlocks / 2].coupling_stiffness_N_per_m *= 1.0 + 1e-6;
  require("one spring 1e-6 stiffer", difference(run(block_tridiagonal, wrong, kChecked), expected),
          false);
}

void compare(const Report& report, const std::string& kind, const Chain& chain) {
  const System system = chain_system(chain);
  const Trajectory expected = run(eigen_sparse_lu, chain, kChecked);
  fmt::print(stderr, "chain_peers {}: largest relative differences after {} steps\n", kind,
             kChecked);
  check_answers(chain, system, expected);

  std::vector<std::unique_ptr<Stepper>> engines;
  std::vector<std::unique_ptr<MidpointPeer>> solvers;
  std::vector<Timer> contenders;
  std::vector<std::string> notes;
  for (const int budget : kBudgets) {
    engines.push_back(std::make_unique<Stepper>(system, chain_options(chain, kStep, budget)));
    contenders.push_back(timed([&engine = *engines.back()] { engine.step(); }));
    notes.push_back(
        fmt::format("{}; the engine differs from the monolithic state by {:.1e} after {} steps",
                    to_string(portwave::instruction_set()),
                    difference(run(system, chain, budget, kChecked), expected), kChecked));
  }
  for (const Peer& peer : peers()) {
    solvers.push_back(peer.make(chain, kStep));
    contenders.push_back(timed([&solver = *solvers.back()] { solver.step(); }));
  }
  // The last one of the engine's: what its energy ledger costs, beside the peers that have none.
  engines.push_back(std::make_unique<Stepper>(
      system, chain_options(chain, kStep, kBudgets[0], portwave::Certify::energy)));
  contenders.insert(contenders.begin() + std::size(kBudgets),
                    timed([&engine = *engines.back()] { engine.step(); }));
  const Contest contest = take_turns(contenders);
  for (std::size_t k = 0; k < std::size(kBudgets); ++k) {
    std::size_t reference = std::size(kBudgets) + 1;
    for (const Peer& peer : peers()) {
      report.add({.name = fmt::format("chain/{}/K={}/{}", kind, kBudgets[k], peer.name),
                  .sense = Sense::at_least,
                  .goal = (kind == "equal" ? peer.goal_equal : peer.goal_varied)[k],
                  .note = notes[k]},
                 contest, k, reference++);
    }
  }
  std::size_t reference = std::size(kBudgets) + 1;
  for (const Peer& peer : peers()) {
    report.add({.name = fmt::format("chain/{}/K={}/ledger/{}", kind, kBudgets[0], peer.name),
                .sense = Sense::at_least,
                .goal = std::nullopt,
                .note = notes[0]},
               contest, std::size(kBudgets), reference++);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("chain_peers", 5);
  if (report.only_lists(argc, argv)) return 0;
  compare(report, "equal", equal_chain(kBlocks));
  compare(report, "varied", varied_chain(kBlocks));
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "chain_peers: {}\n", error.what());
  return 1;
}
