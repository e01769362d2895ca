// Several stages of nonlinear parts: whatever way was taken to a solution, it meets the equations of the step, written
// here once more; the derivative at the start serves all solves from there, and leaves nothing behind.

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numbers>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"

namespace portwave::test_simplified_stages {
namespace {

using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;

/// Nodes and weights on [0, 1] of Gauss's rule with 8 points, by Newton's method on Legendre's polynomial.
struct EightPoints {
  std::array<double, 8> nodes, weights;
  EightPoints() {
    for (std::size_t k = 0; k < 8; ++k) {
      double y = std::cos(std::numbers::pi * (static_cast<double>(k) + 0.75) / 8.5), slope = 0.0;
      for (int step = 0; step < 20; ++step) {
        double before = 1.0, now = y;
        for (int n = 2; n <= 8; ++n) {
          before = std::exchange(now, ((2.0 * n - 1.0) * y * now - (n - 1.0) * before) / n);
        }
        slope = 8.0 * (y * now - before) / (y * y - 1.0);
        y -= now / slope;
      }
      nodes[k] = 0.5 * (1.0 - y);
      weights[k] = 1.0 / ((1.0 - y * y) * slope * slope);
    }
  }
};

struct Step {
  Numbers start, a, b, increments, gamma;
  double step_s = 0.0;
  bool is_solved = false;
};

/// A staged part with a batch of its own.
class Solver {
 public:
  Solver(std::shared_ptr<const Component> part, int stages, double step_s, Numbers gamma)
      : physics_(*part->port_hamiltonian()),
        part_(staged_part(std::move(part), stages)),
        stages_(stages),
        step_s_(step_s),
        gamma_(std::move(gamma)) {
    const Component* const parts[] = {part_.get()};
    batch_ = part_->make_batch(parts);
    batch_->expect({.stage_increments = true});
    batch_->prepare(step_s, gamma_.data());
    record_.resize(batch_->record_size());
    next_.resize(batch_->record_size());
  }

  Step step(const Numbers& x, const Numbers& a) {
    Step out{x, a, Numbers(a.size()), {}, gamma_, step_s_};
    batch_->set_state(0, x.data(), record_.data());
    batch_->freeze({0, 1}, record_.data(), nullptr);
    out.is_solved =
        batch_->advance({0, 1}, record_.data(), a.data(), next_.data(), out.b.data(), {}).ok();
    out.increments.resize(x.size() * static_cast<std::size_t>(stages_));
    stage_increments(*batch_, {0, 1}, record_.data(), a.data(), next_.data(),
                     out.increments.data());
    return out;
  }

  /// The largest |Fᵢ| beside the terms of Fᵢ, those by which another equation moves it included.
  double residual(const Step& of) const {
    static const EightPoints rule;
    const StageRule& stages = gauss_stages(stages_);
    const auto n = of.start.size(), s = static_cast<std::size_t>(stages_);
    const auto p = of.a.size() / s;
    std::vector<Numbers> g(s, Numbers(n, 0.0)), sizes(s, Numbers(n, 0.0));
    const auto state_at = [&](double tau) {
      Numbers x = of.start;
      for (std::size_t j = 0; j < s; ++j) {
        const double reach = stages.integral(static_cast<int>(j), tau) / std::sqrt(stages.b[j]);
        for (std::size_t k = 0; k < n; ++k) x[k] += reach * of.increments[j * n + k];
      }
      return x;
    };
    const Numbers typical = physics_.typical_state();
    Numbers slope(n), moved(n);
    for (std::size_t q = 0; q < 8; ++q) {
      Numbers x = state_at(rule.nodes[q]);
      physics_.gradient(x.data(), slope.data());
      for (std::size_t i = 0; i < s; ++i) {
        const double weight = rule.weights[q] *
                              stages.lagrange(static_cast<int>(i), rule.nodes[q]) /
                              std::sqrt(stages.b[i]);
        for (std::size_t k = 0; k < n; ++k) {
          g[i][k] += weight * slope[k];
          sizes[i][k] += std::abs(weight * slope[k]);
        }
      }
      // What roundings of x move.
      for (std::size_t j = 0; j < n; ++j) {
        const double reach = 1e-6 * (typical[j] + std::abs(x[j]));
        const double before = std::exchange(x[j], x[j] + reach);
        physics_.gradient(x.data(), moved.data());
        x[j] = before;
        for (std::size_t k = 0; k < n; ++k) {
          const double size = std::abs((moved[k] - slope[k]) / reach * before);
          for (std::size_t i = 0; i < s; ++i) sizes[i][k] += size / 8.0;
        }
      }
    }
    close_balance(of, g, sizes);
    double worst = 0.0;
    for (std::size_t i = 0; i < s; ++i) {
      Structure M = physics_.structure();
      if (!physics_.constant_structure()) {
        physics_.structure_at(state_at(stages.c[i]).data(), M);
      }
      Numbers v(n, 0.0), terms(n, 0.0);
      const auto add = [&](const SparseMatrix& A, double sign, Eigen::Index column, double by,
                           double size) {
        for (SparseMatrix::InnerIterator it(A, column); it; ++it) {
          const auto row = static_cast<std::size_t>(it.row());
          v[row] += sign * it.value() * by;
          terms[row] += std::abs(it.value()) * size;
        }
      };
      for (std::size_t j = 0; j < n; ++j) {
        add(M.J, 1.0, static_cast<Eigen::Index>(j), g[i][j], sizes[i][j]);
        add(M.R, -1.0, static_cast<Eigen::Index>(j), g[i][j], sizes[i][j]);
      }
      for (std::size_t j = 0; j < p; ++j) {  // S = N = P = 0, efforts in: u + γ Gᵀg = s a
        double y = 0.0, size = 0.0;
        for (SparseMatrix::InnerIterator it(M.G, static_cast<Eigen::Index>(j)); it; ++it) {
          y += it.value() * g[i][static_cast<std::size_t>(it.row())];
          size += std::abs(it.value()) * sizes[i][static_cast<std::size_t>(it.row())];
        }
        const double gamma = of.gamma[i * p + j], root = std::sqrt(2.0 * gamma / of.step_s);
        const double wave = root * of.a[i * p + j];
        add(M.G, 1.0, static_cast<Eigen::Index>(j), wave - gamma * y,
            std::abs(wave) + gamma * size);
      }
      for (std::size_t k = 0; k < n; ++k) {
        const double increment = of.increments[i * n + k];
        const double F = increment - of.step_s * v[k];
        const double all = std::abs(increment) + of.step_s * terms[k];
        if (F != 0.0) worst = std::max(worst, std::abs(F) / all);
      }
    }
    return worst;
  }

 private:
  /// Adds κδ in units of typical states, with Σᵢ gᵢᵀδᵢ = H(x⁺) − H(x), where more than rounding is missing.
  void close_balance(const Step& of, std::vector<Numbers>& g, std::vector<Numbers>& sizes) const {
    const auto n = of.start.size(), s = static_cast<std::size_t>(stages_);
    const Numbers typical = physics_.typical_state();
    Numbers end = of.start;
    double work = 0.0, terms = 0.0, square = 0.0;
    for (std::size_t i = 0; i < s; ++i) {
      const double share = std::sqrt(gauss_stages(stages_).b[i]);
      for (std::size_t k = 0; k < n; ++k) end[k] += share * of.increments[i * n + k];
    }
    for (std::size_t i = 0; i < s; ++i) {
      const double share = std::sqrt(gauss_stages(stages_).b[i]);
      for (std::size_t k = 0; k < n; ++k) {
        const double moved = of.increments[i * n + k];
        work += g[i][k] * moved;
        terms += std::abs(g[i][k] * moved) +
                 share * std::abs(g[i][k]) * (std::abs(of.start[k]) + std::abs(end[k]));
        square += moved / typical[k] * (moved / typical[k]);
      }
    }
    const double before = physics_.storage(of.start.data()), after = physics_.storage(end.data());
    terms += std::abs(before) + std::abs(after) + physics_.storage_terms();
    const double missing = after - before - work, rounding = 1.8e-15 * terms;
    if (!(std::abs(missing) > rounding)) return;
    const double part = std::min(std::abs(missing), 2.0 * (std::abs(missing) - rounding));
    for (std::size_t i = 0; i < s; ++i) {
      for (std::size_t k = 0; k < n; ++k) {
        const double along = of.increments[i * n + k] / (typical[k] * typical[k]) / square;
        g[i][k] += std::copysign(part, missing) * along;
        sizes[i][k] += terms * std::abs(along);
      }
    }
  }

  const Subsystem& physics_;
  std::shared_ptr<const Component> part_;
  int stages_;
  double step_s_;
  Numbers gamma_;
  std::unique_ptr<StepBatch> batch_;
  AlignedVector record_, next_;
};

/// A pendulum on a port, its angle in units of `unit` radians; counts Hessians.
struct Counted {
  std::shared_ptr<int> hessians = std::make_shared<int>(0);
  std::shared_ptr<const Component> part;

  explicit Counted(double unit = 1.0) {
    Signature signature{"counted", {{"q", ""}, {"p", ""}}, {}, {}};
    signature.ports = {{"shaft", Causality::effort_in, Domain::rotation, 1}};
    Structure s = Structure::zero(2, 1);
    s.J.insert(0, 1) = 1.0;
    s.J.insert(1, 0) = -1.0;
    s.R.insert(1, 1) = 0.02 / (unit * unit);
    s.G.insert(1, 0) = -1.0 / unit;
    constexpr double kStiffness = 5.0;
    const double inertia = 0.25 / (unit * unit);
    Hamiltonian H;
    H.value = [=](const double* x) {
      const double sine = std::sin(0.5 * x[0] / unit);
      return 0.5 * x[1] * x[1] / inertia + 2.0 * kStiffness * sine * sine;
    };
    H.gradient = [=](const double* x, double* g) {
      g[0] = kStiffness / unit * std::sin(x[0] / unit);
      g[1] = x[1] / inertia;
    };
    H.hessian = [=, count = hessians](const double* x, double* K) {
      ++*count;
      K[0] = kStiffness / (unit * unit) * std::cos(x[0] / unit);
      K[1] = K[2] = 0.0;
      K[3] = 1.0 / inertia;
    };
    NonlinearPortHamiltonian::Options options;
    options.typical_state = {unit, 0.25 / unit};
    part = std::make_shared<NonlinearPortHamiltonian>(signature, s, H, options);
    *hessians = 0;
  }
};

struct Case {
  std::string name;
  std::shared_ptr<const Component> part;
  Numbers start;
};

std::vector<Case> cases() {
  std::vector<Case> out;
  out.push_back({"rigid_body",
                 make_part("rigid_body", {{"mass_kg", 2.0},
                                          {"inertia_1_kgm2", 1.0},
                                          {"inertia_2_kgm2", 1.5},
                                          {"inertia_3_kgm2", 2.0},
                                          {"damping_Ns_per_m", 0.3}}),
                 {0.1, 0.2, -0.3, 2, -1, 3, 0.5, 0.5, -0.5, 0.5, 4.0, 0.3, -2.0}});
  out.push_back(
      {"articulated",
       make_part(
           "articulated",
           {{"joints", Texts{"free", "revolute", "spherical", "prismatic"}},
            {"parents", Numbers{0, 1, 1, 2}},
            {"places_m", MatrixRows{{0, 0, 0}, {0.3, 0, 0.1}, {-0.3, 0.1, 0}, {0.2, 0, 0.1}}},
            {"masses_kg", Numbers{4, 1, 1.5, 0.7}},
            {"centres_m", MatrixRows{{0.05, 0, 0.1}, {0.2, 0, 0}, {-0.2, 0, 0.1}, {0, 0.1, 0}}},
            {"inertias_kgm2", MatrixRows{{0.4, 0, 0.02, 0.5, 0, 0.3},
                                         {0.01, 0, 0, 0.04, 0, 0.04},
                                         {0.02, 0, 0, 0.05, 0, 0.05},
                                         {0.01, 0, 0, 0.02, 0, 0.02}}}}),
       {0.1, -0.2, 0.3,  0.5, 0.5, -0.5, 0.5,  0.7, 0.6, 0.0,  0.8,  0.0,
        0.4, 0.4,  -0.6, 0.5, 0.2, 0.3,  -0.2, 0.1, 0.2, -0.1, 0.05, 0.15}});
  out.push_back({"planar_arm",
                 make_part("planar_arm", {{"lengths_m", Numbers{0.4, 0.3, 0.2}},
                                          {"masses_kg", Numbers{2, 1, 0.5}},
                                          {"tip_port", true}}),
                 {0.9, -0.4, 0.3, 0.4, -0.3, 0.2}});
  out.push_back({"pendulum", Counted().part, {2.5, 0.3}});
  return out;
}

Numbers some(std::size_t count, unsigned seed, double low, double high) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> number(low, high);
  Numbers out(count);
  for (double& own : out) own = number(random);
  return out;
}

Solver solver_of(const Case& own, int stages, double step_s) {
  const auto waves =
      static_cast<std::size_t>(stages * own.part->port_hamiltonian()->signature().wave_size());
  return {own.part, stages, step_s, some(waves, 3, 0.2, 5.0)};
}

Numbers waves_of(const Case& own, int stages, unsigned seed, double size) {
  const auto waves =
      static_cast<std::size_t>(stages * own.part->port_hamiltonian()->signature().wave_size());
  return some(waves, seed, -size, size);
}

TEST(SimplifiedStages, MeetTheEquationsOfTheStep) {
  for (const Case& own : cases()) {
    for (const int stages : {2, 3}) {
      for (const double step_s : {1e-6, 1e-3, 1e-2, 0.05}) {
        Solver solver = solver_of(own, stages, step_s);
        const Step step = solver.step(own.start, waves_of(own, stages, 5, 0.05));
        ASSERT_TRUE(step.is_solved) << own.name << " " << stages << " " << step_s;
        EXPECT_LE(solver.residual(step), 1e-13) << own.name << " " << stages << " " << step_s;
      }
    }
  }
}

TEST(SimplifiedStagesControl, TheEquationsNoticeAnIncrementThatIsWrong) {
  for (const Case& own : cases()) {
    Solver solver = solver_of(own, 3, 1e-3);
    Step step = solver.step(own.start, waves_of(own, 3, 5, 0.05));
    ASSERT_TRUE(step.is_solved);
    step.increments.back() *= 1.0 + 1e-9;
    EXPECT_GT(solver.residual(step), 1e-11) << own.name;
  }
}

TEST(SimplifiedStages, MeetThemInUnitsOfAnySize) {
  for (const double unit : {1e-9, 1e9}) {
    for (const double step_s : {1e-3, 0.1}) {
      const Case own{"pendulum", Counted(unit).part, {2.5 * unit, 0.3 / unit}};
      Solver solver = solver_of(own, 3, step_s);
      const Step step = solver.step(own.start, waves_of(own, 3, 5, 0.05));
      ASSERT_TRUE(step.is_solved) << unit;
      EXPECT_LE(solver.residual(step), 1e-13) << unit << " " << step_s;
    }
  }
}

TEST(SimplifiedStages, TakeOneHessianForAllSolvesFromAState) {
  const Counted counted;
  const Case own{"pendulum", counted.part, {2.5, 0.3}};
  Solver solver = solver_of(own, 3, 1e-3);
  *counted.hessians = 0;
  for (const unsigned seed : {1U, 2U, 3U}) {
    ASSERT_TRUE(solver.step(own.start, waves_of(own, 3, seed, 0.05)).is_solved);
  }
  EXPECT_EQ(*counted.hessians, 1);
  ASSERT_TRUE(solver.step({2.4, 0.3}, waves_of(own, 3, 1, 0.05)).is_solved);
  EXPECT_EQ(*counted.hessians, 2);
}

TEST(SimplifiedStages, LeaveStepsThatTheyDoNotContractToAllDerivatives) {
  const Counted counted;
  const Case own{"pendulum", counted.part, {2.5, 0.3}};
  Solver solver = solver_of(own, 3, 0.6);
  *counted.hessians = 0;
  const Step step = solver.step({3.0, 2.0}, waves_of(own, 3, 1, 1.5));
  ASSERT_TRUE(step.is_solved);
  EXPECT_GT(*counted.hessians, 8);
  EXPECT_LE(solver.residual(step), 1e-13);
}

TEST(SimplifiedStages, RememberNothingOfOtherSolves) {
  for (const Case& own : cases()) {
    for (const double step_s : {1e-3, 0.05}) {
      Solver used = solver_of(own, 3, step_s), fresh = solver_of(own, 3, step_s);
      Numbers other = own.start;
      for (double& value : other) value *= 1.01;
      const Numbers a = waves_of(own, 3, 5, 0.05);
      (void)used.step(own.start, waves_of(own, 3, 6, 0.2));
      (void)used.step(other, a);
      (void)used.step(own.start, waves_of(own, 3, 7, 0.01));
      const Step after = used.step(own.start, a), alone = fresh.step(own.start, a);
      EXPECT_EQ(after.increments, alone.increments) << own.name << " " << step_s;
      EXPECT_EQ(after.b, alone.b) << own.name << " " << step_s;
    }
  }
}

/// The recursion for ∇H alone is that of the discrete gradient where both ends meet.
TEST(ArticulatedGradient, IsThatOfTheDiscreteGradient) {
  const Case own = cases()[1];
  const Subsystem& part = *own.part->port_hamiltonian();
  for (const unsigned seed : {1U, 2U, 3U}) {
    const Numbers x = some(own.start.size(), seed, 0.2, 1.0);
    Numbers g(x.size()), both(x.size());
    part.gradient(x.data(), g.data());
    part.discrete_gradient(x.data(), x.data(), both.data());
    const double size =
        std::abs(*std::ranges::max_element(both, {}, [](double value) { return std::abs(value); }));
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(g[i], both[i], 1e-13 * size) << i;
  }
}

}  // namespace
}  // namespace portwave::test_simplified_stages
