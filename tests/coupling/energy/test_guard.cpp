// The passivity guard apart from stepping: its search on steps made by hand.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/coupling/energy/energy_ledger.hpp"
#include "portwave/coupling/energy/guard.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"
#include "support/systems/coupled_systems.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_guard {
namespace {

/// One step of a system from its initial states with incident waves of one's own choice.
class HandStep {
 public:
  HandStep(const System& system, double step_s, const std::vector<double>& impedance,
           const TankOptions& tank)
      : waves_(system, step_s, impedance),
        record_(waves_.initial_record()),
        next_(record_.size(), 0.0),
        a_(static_cast<std::size_t>(waves_.wave_size()), 0.0),
        b_(a_.size(), 0.0),
        start_(a_.size(), 0.0),
        ledger_(waves_, record_.data(), start_.data(), {.tank = tank, .guarded = true}),
        guard_(waves_) {}

  double& incident(int port) { return a_[static_cast<std::size_t>(waves_.wave_of_port(port))]; }
  double outgoing(int port) const {
    return b_[static_cast<std::size_t>(waves_.wave_of_port(port))];
  }

  /// False where a port solve fails.
  bool commit() {
    if (!waves_.advance_all(record_.data(), a_.data(), next_.data(), b_.data(), ledger_.columns())
             .ok()) {
      return false;
    }
    for (int i = 0; i < static_cast<int>(waves_.batches().size()); ++i) {
      ledger_.examine(i, waves_.batch(i).all(), a_.data(), b_.data());
    }
    return ledger_.tally(step());
  }

  enum class Verdict { idle, acted, failed };
  /// As a stepper does it.
  Verdict keep_within_tanks(int* commits = nullptr) {
    if (!guard_.begin(ledger_, record_.data(), step())) return Verdict::idle;
    do {
      guard_.propose(a_.data());
      if (!commit()) return Verdict::failed;
      if (commits != nullptr) ++*commits;
    } while (!guard_.review(ledger_, step()));
    return Verdict::acted;
  }

  CommittedStep step() const { return {record_.data(), next_.data(), a_.data(), b_.data()}; }
  /// T after the step is not negative, up to the rounding of its terms.
  bool within_tank(int island) const { return !ledger_.overdraws(island, step()); }
  double tank_after(int island) const { return ledger_.prospect(island); }
  PassivityGuard& guard() { return guard_; }
  EnergyLedger& account() { return ledger_; }
  const AlignedVector& a() const { return a_; }
  const AlignedVector& b() const { return b_; }

 private:
  WaveDiscretisation waves_;
  AlignedVector record_, next_, a_, b_, start_;
  EnergyLedger ledger_;
  PassivityGuard guard_;
};

struct Setting {
  double step_s, impedance, tank_J, size;
};

std::vector<Setting> settings() {
  std::vector<Setting> out;
  for (const double h : {1e-4, 1e-2, 1e-1}) {
    for (const double gamma : {1e-2, 1.0, 100.0}) {
      for (const double tank : {0.0, 1e-6, 0.1}) {
        for (const double size : {0.01, 1.0, 30.0}) out.push_back({h, gamma, tank, size});
      }
    }
  }
  return out;
}

struct Tally {
  int acted = 0, idle = 0, failed = 0, most_commits = 0;
  int closer = 0;  // than by scaling, by a tenth and more
  long commits = 0;
};

/// The largest α for which αâ is feasible, by bisection.
double largest_scaling(HandStep& step, const std::vector<double>& full) {
  double low = 0.0, high = 1.0;
  for (int k = 0; k < 50; ++k) {
    const double middle = 0.5 * (low + high);
    for (std::size_t j = 0; j < full.size(); ++j) {
      step.incident(static_cast<int>(j)) = middle * full[j];
    }
    if (!step.commit()) return 0.0;
    (step.tank_after(0) >= 0.0 ? low : high) = middle;
  }
  return low;
}

/// The law on random incident waves, and that the guard changes them no more than it must: of
/// linear parts no more than the largest feasible scaling would, of others by the largest scaling
/// itself.
Tally expect_law(const System& system, std::uint64_t seed, int draws, double closest,
                 bool linear = false) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const auto ports = system.scalar_ports().size();
  Tally tally;
  for (const Setting& s : settings()) {
    for (int i = 0; i < draws; ++i) {
      const std::string where = fmt::format("h={} gamma={} T={} size={} draw {}", s.step_s,
                                            s.impedance, s.tank_J, s.size, i);
      TankOptions tank;
      tank.initial_J = s.tank_J;
      HandStep step(system, s.step_s, std::vector<double>(ports, s.impedance), tank);
      std::vector<double> full(ports);
      for (std::size_t j = 0; j < ports; ++j) {
        full[j] = step.incident(static_cast<int>(j)) = s.size * normal(random);
      }
      if (!step.commit()) {
        ++tally.failed;
        continue;
      }
      const bool overdraws = !step.within_tank(0);
      int commits = 0;
      const auto verdict = step.keep_within_tanks(&commits);
      if (verdict == HandStep::Verdict::failed) {
        ++tally.failed;
        continue;
      }
      EXPECT_EQ(verdict == HandStep::Verdict::acted, overdraws) << where;
      EXPECT_TRUE(step.within_tank(0)) << where << " T=" << step.tank_after(0);
      if (verdict == HandStep::Verdict::idle) {
        ++tally.idle;
        EXPECT_EQ(step.guard().alpha(), 1.0);
        continue;
      }
      ++tally.acted;
      tally.commits += commits;
      tally.most_commits = std::max(tally.most_commits, commits);
      const double alpha = step.guard().alpha();
      double square = 0.0, moved = 0.0;
      for (std::size_t j = 0; j < ports; ++j) {
        const double change = step.incident(static_cast<int>(j)) - full[j];
        square += full[j] * full[j];
        moved += change * change;
      }
      EXPECT_NEAR(1.0 - alpha, std::min(std::sqrt(moved / square), 1.0), 1e-12) << where;
      EXPECT_GE(step.guard().withheld_J(), 0.0) << where;
      if (linear) {
        const double scaling = largest_scaling(step, full);
        EXPECT_LE(1.0 - alpha, 2.0 * (1.0 - scaling) + 1e-9) << where;
        tally.closer += 1.0 - alpha < 0.9 * (1.0 - scaling) ? 1 : 0;
        continue;
      }
      for (std::size_t j = 0; j < ports; ++j) {
        EXPECT_EQ(step.incident(static_cast<int>(j)), alpha * full[j]) << where;
      }
      // A little more would have been too much.
      const double more = alpha + std::max(closest * (1.0 - alpha), 1e-9);
      for (std::size_t j = 0; j < ports; ++j) {
        step.incident(static_cast<int>(j)) = more * full[j];
      }
      if (closest > 0.0 && more < 1.0 && step.commit()) {
        const double round_off = 1e-14 * (step.account().totals().final_J + square);
        EXPECT_LE(step.tank_after(0), round_off) << where << " alpha=" << alpha;
      }
    }
  }
  return tally;
}

TEST(PassivityGuard, MovesLinearPartsToTheNearestWavesThereAre) {
  for (const auto& [name, make] :
       {std::pair{"lossless_pair", +[] { return testing::lossless_pair(); }},
        std::pair{"stiff_soft_pair", +[] { return testing::stiff_soft_pair(50.0, 3.0, false); }},
        std::pair{"chain", +[] { return testing::chain_of_blocks(3, 3); }}}) {
    SCOPED_TRACE(name);
    const Tally tally = expect_law(make(), 11, 6, 1e-6, true);
    EXPECT_GT(tally.acted, 100);
    EXPECT_GT(tally.closer, tally.acted / 20);
    EXPECT_GT(tally.idle, 30);
    EXPECT_EQ(tally.failed, 0);
    EXPECT_LE(tally.commits, tally.acted + tally.acted / 2) << "mostly one commit";
    EXPECT_LE(tally.most_commits, 6);
  }
}

/// D and the directions by what commits make of single waves: no code is shared with the guard.
class ProbedStep {
 public:
  ProbedStep(HandStep& step, const std::vector<double>& full) : step_(step), full_(full) {
    b_ = outgoing_of(full);
    const std::vector<double> still = outgoing_of(std::vector<double>(full.size(), 0.0));
    for (std::size_t j = 0; j < full.size(); ++j) {
      std::vector<double> one(full.size(), 0.0);
      one[j] = 1.0;
      columns_.push_back(outgoing_of(one));
      for (std::size_t i = 0; i < full.size(); ++i) columns_[j][i] -= still[i];
    }
    outgoing_of(full);
  }
  /// Dᵀb − â.
  std::vector<double> gradient() const {
    std::vector<double> out;
    for (std::size_t j = 0; j < full_.size(); ++j) out.push_back(dot(columns_[j], b_) - full_[j]);
    return out;
  }
  /// ½(|b|² − |â|²).
  double mismatch() const { return 0.5 * (dot(b_, b_) - dot(full_, full_)); }
  /// |Dv|².
  double image(const std::vector<double>& v) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < v.size(); ++i) {
      double row = 0.0;
      for (std::size_t j = 0; j < v.size(); ++j) row += columns_[j][i] * v[j];
      sum += row * row;
    }
    return sum;
  }
  static double dot(const std::vector<double>& a, const std::vector<double>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  }

 private:
  std::vector<double> outgoing_of(const std::vector<double>& a) {
    std::vector<double> out;
    for (std::size_t j = 0; j < a.size(); ++j) step_.incident(static_cast<int>(j)) = a[j];
    EXPECT_TRUE(step_.commit());
    for (std::size_t j = 0; j < a.size(); ++j) out.push_back(step_.outgoing(static_cast<int>(j)));
    return out;
  }

  HandStep& step_;
  std::vector<double> full_, b_;
  std::vector<std::vector<double>> columns_;  ///< of D
};

/// A ring of two parts that one state drives through a port that takes an effort and one that takes a flow:
/// their D is not symmetric, as that of masses and springs is.
System ring_of_transducers() {
  SystemBuilder builder;
  for (const int i : {0, 1}) {
    testing::LinearMatrices m(1, 2);
    m.Q(0, 0) = 0.5 + i;
    m.R(0, 0) = 0.06;
    m.G << 1.0, 2.0;
    builder.add(
        "part" + std::to_string(i),
        testing::linear_part(m, {testing::effort_port("e"), testing::flow_port("f")}, {1.0}));
  }
  builder.connect("part0.e", "part1.f");
  builder.connect("part1.e", "part0.f");
  return builder.build();
}

/// â + s∇m with m(â) + s|∇m|² − ½s²(|∇m|² − |D∇m|²) = −T, where that is a short way.
TEST(PassivityGuard, GoesAlongTheGradientWhereThatIsShort) {
  const System system = ring_of_transducers();
  const auto ports = system.scalar_ports().size();
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  int tested = 0;
  for (const Setting& s : settings()) {
    for (int draw = 0; draw < 20; ++draw) {
      TankOptions tank;
      tank.initial_J = s.tank_J;
      HandStep step(system, s.step_s, std::vector<double>(ports, s.impedance), tank);
      std::vector<double> full(ports);
      for (double& wave : full) wave = s.size * normal(random);
      const ProbedStep probed(step, full);
      if (step.within_tank(0)) continue;
      const std::vector<double> gradient = probed.gradient();
      const double square = ProbedStep::dot(gradient, gradient);
      const double deficit = -(s.tank_J + probed.mismatch());
      const double root = square * square - 2.0 * (square - probed.image(gradient)) * deficit;
      if (!(root > 0.0) || !(deficit > 1e-6 * s.size * s.size)) continue;
      const double reach = 2.0 * deficit / (square + std::sqrt(root));
      const double incident = ProbedStep::dot(full, full);
      if (!(reach * reach * square <= 0.2 * incident)) continue;
      int commits = 0;
      ASSERT_EQ(step.keep_within_tanks(&commits), HandStep::Verdict::acted);
      if (commits > 1) continue;  // a little further, for rounding
      ++tested;
      for (std::size_t j = 0; j < ports; ++j) {
        EXPECT_NEAR(step.incident(static_cast<int>(j)), full[j] + reach * gradient[j],
                    1e-6 * std::sqrt(incident));
      }
    }
  }
  EXPECT_GT(tested, 100);
}

TEST(PassivityGuard, FindsTheScalingOfNonlinearPartsInAFewTrials) {
  const Tally tally = expect_law(testing::duffing_linear_pair(), 13, 6, 0.03);
  EXPECT_GT(tally.acted, 100);
  EXPECT_GT(tally.idle, 30);
  EXPECT_EQ(tally.failed, 0);
  EXPECT_LE(tally.most_commits, PassivityGuard::kMaxTrials + 1);
  EXPECT_LE(tally.commits, 5L * tally.acted);
}

/// Waves that pass a heavy mass almost unchanged: what they are multiplied by hardly matters to the
/// tank.
System heavy_pair() {
  SystemBuilder builder;
  builder.add("heavy", linear_oscillator({.mass_kg = 1e6, .stiffness_N_per_m = 1e-3}),
              {.initial_state = {0.0, 1.0}});
  builder.add("light", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 10}),
              {.initial_state = {0.1, 0.0}});
  builder.connect("heavy.coupling", "light.coupling");
  return builder.build();
}

/// The exact solution of the interface, moved by a little in many directions: what an iteration
/// commits that met its tolerance.
TEST(PassivityGuard, ChangesAConvergedCommitByNoMoreThanItIsOff) {
  const System system = heavy_pair();
  std::mt19937_64 random(29);
  std::normal_distribution<double> normal;
  int acted = 0, scaling_is_worse = 0;
  for (const double gamma : {1e-2, 1.0, 100.0, 1e4}) {
    for (const double off : {1e-12, 1e-9, 1e-6, 1e-3}) {
      for (int draw = 0; draw < 40; ++draw) {
        TankOptions tank;
        tank.initial_J = 0.0;
        HandStep step(system, 0.01, {gamma, gamma}, tank);
        // u† = P S(u†) by many averaged steps of the two-port swap.
        std::vector<double> exact = {0.0, 0.0};
        for (int k = 0; k < 20000; ++k) {
          step.incident(0) = exact[0];
          step.incident(1) = exact[1];
          ASSERT_TRUE(step.commit());
          const double next[] = {step.outgoing(1), step.outgoing(0)};
          if (k > 10 && std::abs(next[0] - exact[0]) + std::abs(next[1] - exact[1]) == 0.0) break;
          for (const int j : {0, 1}) exact[j] = 0.5 * (exact[j] + next[j]);
        }
        const double size = std::hypot(exact[0], exact[1]);
        std::vector<double> full = exact;
        double distance = 0.0;
        for (double& wave : full) {
          const double change = off * size * normal(random);
          wave += change;
          distance = std::hypot(distance, change);
        }
        for (const int j : {0, 1}) step.incident(j) = full[static_cast<std::size_t>(j)];
        ASSERT_TRUE(step.commit());
        if (step.keep_within_tanks() != HandStep::Verdict::acted) continue;
        ++acted;
        const double moved = std::hypot(step.incident(0) - full[0], step.incident(1) - full[1]);
        EXPECT_LE(moved, 2.0 * distance + 1e-13 * size) << "gamma=" << gamma << " off=" << off;
        EXPECT_TRUE(step.within_tank(0));
        const double by_scaling =
            (1.0 - largest_scaling(step, full)) * std::hypot(full[0], full[1]);
        scaling_is_worse += by_scaling > 2.0 * distance + 1e-13 * size ? 1 : 0;
      }
    }
  }
  EXPECT_GT(acted, 100);
  EXPECT_GT(scaling_is_worse, 10) << "the control: scaling alone breaks the bound";
}

/// H = 40(1 − cos 3q) + ½p²: S is far from nonexpansive, so feasible scalings need not be an
/// interval.
System cosine_part() {
  Structure structure = Structure::zero(2, 1);
  structure.J.insert(0, 1) = 1.0;
  structure.J.insert(1, 0) = -1.0;
  structure.G.insert(1, 0) = -1.0;
  Hamiltonian hamiltonian;
  hamiltonian.value = [](const double* x) {
    return 40.0 * (1.0 - std::cos(3.0 * x[0])) + 0.5 * x[1] * x[1];
  };
  hamiltonian.gradient = [](const double* x, double* g) {
    g[0] = 120.0 * std::sin(3.0 * x[0]);
    g[1] = x[1];
  };
  SystemBuilder builder;
  builder.add(
      "cosine",
      std::make_unique<NonlinearPortHamiltonian>(
          Signature{"cosine",
                    {{"q", ""}, {"p", ""}},
                    {{"coupling", Causality::effort_in, Domain::translation, 1}},
                    {}},
          std::move(structure), std::move(hamiltonian), NonlinearPortHamiltonian::Options{}),
      {.initial_state = {0.9, 0.5}});
  builder.add("B", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 2}),
              {.initial_state = {0.5, -1.0}});
  builder.connect("cosine.coupling", "B.coupling");
  return builder.build();
}

TEST(PassivityGuard, EndsWithinTheTankWhereAPartIsNotNonexpansive) {
  const Tally tally = expect_law(cosine_part(), 17, 6, 0.0);
  EXPECT_GT(tally.acted, 100);
  EXPECT_LE(tally.most_commits, PassivityGuard::kMaxTrials + 1);
}

/// Says of every trial that it takes more than is in the tank.
struct NeverContent final : GuardedAccounts {
  double tank_J;

  explicit NeverContent(double tank) : tank_J(tank) {}
  bool overdraws(int, const CommittedStep&) const override { return true; }
  bool is_too_loud(int, const CommittedStep&) const override { return false; }
  double energies(int) const override { return 1.0; }
  double stored(int) const override { return 1.0; }
  double supplied(int) const override { return 0.0; }
  bool takes(int, double, const CommittedStep&) const override { return true; }
  double tank(int) const override { return tank_J; }
  double mismatch(int) const override { return -1.0 - tank_J; }
};

// Whatever parts give back, at least 0, the tank can pay for waves of no more than its energy.
TEST(PassivityGuard, EndsWithWavesThatNeedNoTrial) {
  const System system = testing::duffing_linear_pair();
  const WaveDiscretisation waves(system, 0.01, std::vector<double>(2, 0.4));
  const AlignedVector record = waves.initial_record();
  const auto size = static_cast<std::size_t>(waves.wave_size());
  for (const double tank : {0.0, 1e-6, 0.3, 2.0}) {
    const NeverContent accounts(tank);
    AlignedVector a(size, 3.0), b(size, 0.5);
    PassivityGuard guard(waves);
    const CommittedStep step{record.data(), record.data(), a.data(), b.data()};
    ASSERT_TRUE(guard.begin(accounts, record.data(), step));
    int commits = 0;
    do {
      guard.propose(a.data());
      ++commits;
    } while (!guard.review(accounts, step) && commits < 100);
    EXPECT_LE(commits, PassivityGuard::kMaxTrials + 3);
    double energy = 0.0;
    for (int port = 0; port < 2; ++port) {
      const double wave = a[static_cast<std::size_t>(waves.wave_of_port(port))];
      energy += 0.5 * wave * wave;
    }
    EXPECT_NEAR(energy, tank, 1e-12 * tank) << "tank " << tank;
  }
}

/// A pair whose step takes `deficit_J` more than is in its empty tank, whatever is committed.
struct Deficit final : GuardedAccounts {
  double deficit_J, tolerable_J = 0.01;
  bool is_loud = false;

  explicit Deficit(double deficit) : deficit_J(deficit) {}
  bool overdraws(int, const CommittedStep&) const override { return true; }
  bool is_too_loud(int, const CommittedStep&) const override { return is_loud; }
  double energies(int) const override { return 2.0; }
  double stored(int) const override { return 1.0; }
  double supplied(int) const override { return 0.0; }
  bool takes(int, double more_J, const CommittedStep&) const override {
    return more_J <= tolerable_J;
  }
  double tank(int) const override { return 0.0; }
  double mismatch(int) const override { return -deficit_J; }
};

/// What the guard does first with waves of 3 √J at two ports of a nonlinear pair.
struct FirstAnswer {
  const System system = testing::duffing_linear_pair();
  const WaveDiscretisation waves{system, 0.01, std::vector<double>(2, 0.4)};
  const AlignedVector record = waves.initial_record();
  AlignedVector a = AlignedVector(static_cast<std::size_t>(waves.wave_size()), 3.0);
  AlignedVector b = AlignedVector(a.size(), 0.5);
  PassivityGuard guard{waves};

  bool begins(const GuardedAccounts& accounts, std::vector<double> gap_J) {
    const CommittedStep step{record.data(), record.data(), a.data(), b.data()};
    if (!guard.begin(accounts, record.data(), step, gap_J)) return false;
    guard.propose(a.data());
    return true;
  }
};

// |m| ≤ |â| gap + ½ gap², and ten times that for how far S may stretch it.
TEST(PassivityGuard, LeavesAMetToleranceAloneAndSaysWhatItLeft) {
  constexpr double kGap_J = 0.5e-20;  // a gap of 1e-10 √J
  const double explained = 10.0 * 1e-10 * std::sqrt(18.0);
  for (const double share : {0.01, 0.9}) {
    FirstAnswer answer;
    // Onward from â to P b would be a long way.
    EXPECT_FALSE(answer.begins(Deficit(share * explained), {kGap_J}));
    ASSERT_EQ(answer.guard.tolerated().size(), 1u);
    EXPECT_EQ(answer.guard.tolerated()[0].energy_J, share * explained);
    EXPECT_EQ(answer.guard.alpha(), 1.0);
    EXPECT_TRUE(answer.guard.uses().empty());
  }
  FirstAnswer more;  // controls: it is not what such a gap leaves; nobody met a tolerance
  EXPECT_TRUE(more.begins(Deficit(1.2 * explained), {kGap_J}));
  FirstAnswer missed;
  EXPECT_TRUE(missed.begins(Deficit(0.5 * explained), {PassivityGuard::kMissed}));
  FirstAnswer unknown;
  EXPECT_TRUE(unknown.begins(Deficit(0.5 * explained), {}));
}

TEST(PassivityGuard, ToleratesNoMoreThanTheAccountTakes) {
  FirstAnswer answer;
  Deficit deficit(1e-10);
  deficit.tolerable_J = 0.9e-10;
  EXPECT_TRUE(answer.begins(deficit, {0.5e-20}));
  EXPECT_TRUE(answer.guard.tolerated().empty());
}

// ½|αâ|² is no more than there is.
TEST(PassivityGuard, ScalesWavesThatNoEnergyCanPayFor) {
  FirstAnswer answer;
  Deficit loud(-1.0);  // the tank is not short
  loud.is_loud = true;
  ASSERT_TRUE(answer.begins(loud, {}));
  double energy = 0.0;
  for (int port = 0; port < 2; ++port) {
    const double wave = answer.a[static_cast<std::size_t>(answer.waves.wave_of_port(port))];
    energy += 0.5 * wave * wave;
  }
  EXPECT_LE(energy, 2.0 * (1.0 + 1e-15));
  FirstAnswer balanced;  // large waves that agree are what the interface asks for
  EXPECT_FALSE(balanced.begins(loud, {0.5e-20}));
  EXPECT_TRUE(balanced.guard.tolerated().empty());
}

TEST(PassivityGuard, TouchesNoIslandButTheOneThatOverdraws) {
  SystemBuilder builder;
  for (const char* island : {"a", "b"}) {
    for (const char* end : {"1", "2"}) {
      builder.add(std::string(island) + end,
                  linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 10}),
                  {.initial_state = {0.3, 0.0}});
    }
    builder.connect(std::string(island) + "1.coupling", std::string(island) + "2.coupling");
  }
  const System system = builder.build();
  HandStep step(system, 0.01, std::vector<double>(4, 1.0), {});
  step.incident(0) = 3.0;
  step.incident(1) = -2.0;
  ASSERT_TRUE(step.commit());
  ASSERT_FALSE(step.within_tank(0));
  ASSERT_TRUE(step.within_tank(1));
  const AlignedVector a = step.a(), b = step.b();
  ASSERT_EQ(step.keep_within_tanks(), HandStep::Verdict::acted);
  EXPECT_TRUE(step.within_tank(0));
  EXPECT_NE(step.incident(0), 3.0);
  EXPECT_EQ(step.incident(2), 0.0);
  EXPECT_EQ(step.outgoing(2), b[2]);
  EXPECT_EQ(step.guard().searching().size(), 2u);
  step.account().close(step.step(), step.guard().alpha(), step.guard().withheld_J());
  step.guard().count(0);
  EXPECT_EQ(step.guard().statistics().uses, 1);
  EXPECT_EQ(step.guard().statistics().steps, 1);
  EXPECT_EQ(step.guard().statistics().trials, 1);
  EXPECT_EQ(step.guard().statistics().min_alpha, step.guard().alpha());
  EXPECT_FALSE(step.account().finding().is_violated());
}

// A closed form that is off by a little would be repaired, not believed; a ledger that is not
// guarded does not mind.
TEST(PassivityGuardControl, TheBookSeesAStepThatWasNotGuarded) {
  const System system = testing::lossless_pair();
  HandStep step(system, 0.01, {1.0, 1.0}, {});
  step.incident(0) = 3.0;
  ASSERT_TRUE(step.commit());
  EXPECT_FALSE(step.within_tank(0));
  step.account().close(step.step());
  EXPECT_TRUE(step.account().finding().broken_law);
}

}  // namespace
}  // namespace portwave::test_guard
