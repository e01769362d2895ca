// Damped steps by waves beside Radau IIA of the whole network: the equations of all stages, parts and joints at once,
// dense, in long double, from a tableau that is written down here. Of the code under test it takes the matrices of the
// parts and joints alone: no rule of stages, no step map, no wave.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "support/systems/random_networks.hpp"

namespace portwave::test_damped_tableau {
namespace {

using Real = long double;
using Dense = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic>;
using Column = Eigen::Matrix<Real, Eigen::Dynamic, 1>;

/// A Runge–Kutta rule.
struct Tableau {
  Dense A;
  Column b;
};

// Hairer & Wanner, Solving Ordinary Differential Equations II (1996), tables IV.5.5 and IV.5.6.
Tableau radau_iia(int stages) {
  const Real r = std::sqrt(Real(6));
  Tableau t{Dense(stages, stages), Column(stages)};
  if (stages == 1) {
    t.A << 1;
  } else if (stages == 2) {
    t.A << Real(5) / 12, Real(-1) / 12, Real(3) / 4, Real(1) / 4;
  } else {
    t.A << (88 - 7 * r) / 360, (296 - 169 * r) / 1800, (-2 + 3 * r) / 225,  //
        (296 + 169 * r) / 1800, (88 + 7 * r) / 360, (-2 - 3 * r) / 225,     //
        (16 - r) / 36, (16 + r) / 36, Real(1) / 9;
  }
  t.b = t.A.row(stages - 1).transpose();  // stiffly accurate
  return t;
}

// Ibid., tables IV.5.1 and IV.5.2.
Tableau gauss(int stages) {
  const Real r3 = std::sqrt(Real(3)), r = std::sqrt(Real(15));
  Tableau t{Dense(stages, stages), Column(stages)};
  if (stages == 1) {
    t.A << Real(1) / 2;
    t.b << 1;
  } else if (stages == 2) {
    t.A << Real(1) / 4, Real(1) / 4 - r3 / 6, Real(1) / 4 + r3 / 6, Real(1) / 4;
    t.b << Real(1) / 2, Real(1) / 2;
  } else {
    t.A << Real(5) / 36, Real(2) / 9 - r / 15, Real(5) / 36 - r / 30,  //
        Real(5) / 36 + r / 24, Real(2) / 9, Real(5) / 36 - r / 24,     //
        Real(5) / 36 + r / 30, Real(2) / 9 + r / 15, Real(5) / 36;
    t.b << Real(5) / 18, Real(4) / 9, Real(5) / 18;
  }
  return t;
}

/// M (ẋ, e, f) = L x: the parts' equations ẋ = (J − R)Qx + (G − P)u and y = (G + P)ᵀQx + (S + N)u, u and y being
/// efforts and flows by the causality of the ports, and the joints' E e + F f = 0.
struct Equations {
  explicit Equations(const System& system) {
    states = 0;
    for (const Part& part : system.parts()) states += part.component->signature().state_size();
    const auto ports = static_cast<int>(system.scalar_ports().size());
    M = Dense::Zero(states + 2 * ports, states + 2 * ports);
    L = Dense::Zero(states + 2 * ports, states);
    int x = 0, first = 0;
    for (const Part& part : system.parts()) {
      const Subsystem& physics = *part.port_hamiltonian();
      const Structure& s = physics.structure();
      const int n = part.component->signature().state_size();
      const int p = part.component->signature().wave_size();
      const auto real = [](const SparseMatrix& m) -> Dense {
        return Eigen::MatrixXd(m).cast<Real>();
      };
      const Dense Q = n == 0 ? Dense(0, 0) : real(*physics.linear_form().Q);
      const Dense J = real(s.J), R = real(s.R), G = real(s.G), P = real(s.P);
      const Dense D = real(s.S) + real(s.N);
      M.block(x, x, n, n).setIdentity();
      L.block(x, x, n, n) = (J - R) * Q;
      const int outputs = states + first;
      L.block(outputs, x, p, n) = (G + P).transpose() * Q;
      std::vector<Causality> causality;
      for (const Port& port : part.component->signature().ports) {
        causality.insert(causality.end(), at(port.dimension), port.causality);
      }
      for (int j = 0; j < p; ++j) {
        const bool takes_effort = causality[at(j)] == Causality::effort_in;
        const int effort = states + first + j, flow = effort + ports;
        const int u = takes_effort ? effort : flow, y = takes_effort ? flow : effort;
        M.block(x, u, n, 1) = (P - G).col(j);
        M.block(outputs, u, p, 1) -= D.col(j);
        M(outputs + j, y) += 1;
      }
      x += n;
      first += p;
    }
    int row = states + ports;
    for (const Junction& junction : system.junctions()) {
      for (int i = 0; i < junction.dirac.size(); ++i, ++row) {
        for (int k = 0; k < junction.dirac.size(); ++k) {
          const int effort = states + junction.waves[at(k)];
          M(row, effort) = junction.dirac.E(i, k);
          M(row, effort + ports) = junction.dirac.F(i, k);
        }
      }
    }
  }

  /// One step from x.
  Column step(const Tableau& t, Real h, const Column& x) const {
    const auto s = static_cast<int>(t.b.size()), size = static_cast<int>(M.rows());
    Dense whole = Dense::Zero(s * size, s * size);
    for (int i = 0; i < s; ++i) {
      whole.block(i * size, i * size, size, size) = M;
      for (int j = 0; j < s; ++j) {
        whole.block(i * size, j * size, size, states) -= h * t.A(i, j) * L;
      }
    }
    const Column solution = whole.partialPivLu().solve(Column((L * x).replicate(s, 1)));
    Column out = x;
    for (int i = 0; i < s; ++i) out += h * t.b[i] * solution.segment(i * size, states);
    return out;
  }

  int states;
  Dense M, L;
};

Column states_of(const Stepper& stepper, int states) {
  Column out(states);
  int i = 0;
  for (int part = 0; part < static_cast<int>(stepper.system().parts().size()); ++part) {
    for (const double x : stepper.state(part)) out[i++] = x;
  }
  return out;
}

StepperOptions options_of(int stages, double step_s, const WaveCoupling& method) {
  StepperOptions options;
  options.step_s = step_s;
  options.start = Start::as_given;  // the reference knows no impulses
  options.method = method;
  options.method.waves().stages = stages;
  options.method.waves().integrator = StageKind::damped;
  return options;
}

/// The largest distance of states from those of the reference in some steps, relative to the states at the start.
struct Distances {
  Distances(const System& system, const StepperOptions& options, int steps) : whole(system) {
    Stepper stepper(system, options);
    states.push_back(states_of(stepper, whole.states));
    for (int n = 0; n < steps; ++n) {
      stepper.step();
      states.push_back(states_of(stepper, whole.states));
    }
    h = options.step_s;
    evaluations = stepper.iterations().total;
    holds = stepper.certificate().status == CertificateStatus::holds;
  }
  double from(const Tableau& tableau) const {
    Column y = states.front();
    Real worst = 0;
    for (std::size_t n = 1; n < states.size(); ++n) {
      y = whole.step(tableau, h, y);
      worst = std::max(worst, (states[n] - y).norm());
    }
    return static_cast<double>(worst / states.front().norm());
  }

  Equations whole;
  std::vector<Column> states;
  Real h = 0;
  std::int64_t evaluations = 0;
  bool holds = false;
};

/// Of all cases below the worst is 4e-14: 200 units of round-off of the states, of which each step takes some from the
/// waves, whose amplitude may be tens of times that of the states (impedances of 1 meet ones from .01 to 100).
constexpr double kRoundOff = 1e-13;

/// Plain iterations to a residual of round-off, without a rule or an equation of their own for what remains.
WaveCoupling plain(WaveUpdate kind, double relaxation) {
  WaveCoupling out;
  out.kind = kind;
  out.relaxation = relaxation;
  out.iterations = 20000;
  out.tolerance = 1e-15;
  return out;
}

class DampedTableau : public ::testing::TestWithParam<int> {};

TEST_P(DampedTableau, OfRandomNetworksIsThatOfRadauIIA) {
  const int stages = GetParam();
  for (unsigned seed = 1; seed <= 24; ++seed) {
    const System system = testing::random_network({}, seed);
    for (const double h : {0.01, 0.3, 10.0}) {
      const Distances run(system, options_of(stages, h, WaveCoupling::automatic(1e-15)), 5);
      EXPECT_LT(run.from(radau_iia(stages)), kRoundOff) << "seed " << seed << ", h = " << h;
      EXPECT_TRUE(run.holds) << "seed " << seed << ", h = " << h;
    }
  }
}

TEST_P(DampedTableau, IsThatOfRadauIIAByPlainIterationsOfWaves) {
  const int stages = GetParam();
  for (unsigned seed = 1; seed <= 12; ++seed) {
    const System system = testing::random_network({}, seed);
    for (const WaveCoupling& method :
         {plain(WaveUpdate::peaceman_rachford, 0.7), plain(WaveUpdate::douglas_rachford, 1.0)}) {
      const Distances run(system, options_of(stages, 0.3, method), 3);
      EXPECT_LT(run.from(radau_iia(stages)), kRoundOff)
          << "seed " << seed << ", " << to_string(method.kind);
      EXPECT_GT(run.evaluations, 3 * 30) << "seed " << seed;  // it did iterate
    }
  }
}

/// Each entry of the tableau is seen to 1e-11, and another rule at once.
TEST_P(DampedTableau, Control_OthersAreSeen) {
  const int stages = GetParam();
  constexpr Real kSlip = 1e-11L;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    const System system = testing::random_network({}, seed);
    const Distances run(system, options_of(stages, 0.3, WaveCoupling::automatic(1e-15)), 5);
    EXPECT_GT(run.from(gauss(stages)), 1e-8) << seed;
    for (int i = 0; i < stages; ++i) {
      Tableau weights = radau_iia(stages);
      weights.b[i] += kSlip;
      EXPECT_GT(run.from(weights), 3.0 * kRoundOff) << seed << ", weight " << i;
      for (int j = 0; j < stages; ++j) {
        Tableau other = radau_iia(stages);
        other.A(i, j) += kSlip;
        EXPECT_GT(run.from(other), kRoundOff) << seed << ", entry " << i << ", " << j;
      }
    }
    StepperOptions conserving = options_of(stages, 0.3, WaveCoupling::automatic(1e-15));
    conserving.method.waves().integrator = StageKind::gauss;
    const Distances gauss_run(system, conserving, 5);
    EXPECT_LT(gauss_run.from(gauss(stages)), kRoundOff) << seed;
    EXPECT_GT(gauss_run.from(radau_iia(stages)), 1e-8) << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, DampedTableau, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace portwave::test_damped_tableau
