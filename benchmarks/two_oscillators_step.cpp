// One macro-step of the Duffing–linear pair (arXiv 2603.16424), K inner iterations, serial:
// the general engine beside a hand-written straight-line loop of the same arithmetic, the floor.
// The counter `ratio_to_floor` is measured in the same run, in alternation, so that a noisy machine
// slows both.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <benchmark/benchmark.h>

#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"

namespace {

constexpr double kStep = 0.01;
constexpr double kImpedance = 0.4;

/// The same step maps and the same Newton on the same cubic, written out for this pair alone.
class StraightLinePair {
 public:
  void step(int iterations) {
    const double e2 = k3_ * q1_ * h_ * h_, e1 = linear_ + 1.5 * k3_ * q1_ * q1_ * h_;
    const double c2 = e2 + 3.0 * c3_ * v1_;
    const double c1 = inertia_ + e1 + (2.0 * e2 + 3.0 * c3_ * v1_) * v1_;
    const double c0 =
        ((c3_ * v1_ + e2) * v1_ + e1) * v1_ + (k1_ + k3_ * q1_ * q1_) * q1_ - elongation_ * delta_;
    const double a0 = wave_per_force_ * (kappa_ * v1_ - k12_ * delta_);
    const double b0 = cq_ * q2_ + cv_ * v2_;
    double u1 = wave_2_, u2 = wave_1_, a1 = u1, a2 = u2, d = 0.0;
    for (int k = 0; k < iterations; ++k) {
      d = root(c2, c1, c0 - rho_s_ * u1);
      const double b1 = u1 - (transmission_ * u1 + a0 + wave_per_force_ * kappa_ * d);
      const double b2 = u2 + (b0 + d_ * u2);
      a1 = b2;
      a2 = b1;
      const double g1 = b2 - u1, g2 = b1 - u2;
      u1 += 1.0 / 3.0 * (2.0 * g1 + g2);
      u2 += 1.0 / 3.0 * (2.0 * g2 + g1);
    }
    d = root(c2, c1, c0 - rho_s_ * a1);
    wave_1_ = a1 - (transmission_ * a1 + a0 + wave_per_force_ * kappa_ * d);
    wave_2_ = a2 + (b0 + d_ * a2);
    const double w = v1_ + d;
    const double u = (s_ * a1 - k12_ * delta_ + kappa_ * w) * share_;
    q1_ += h_ * w;
    v1_ += 2.0 * d;
    delta_ += h_ * (u - w);
    const double w2 = xq_ * q2_ + xv_ * v2_ + xa_ * a2;
    q2_ += h_ * w2;
    v2_ = 2.0 * w2 - v2_;
  }
  double q1() const { return q1_; }
  double q2() const { return q2_; }

 private:
  double root(double c2, double c1, double c0) const {
    double w = -c0 / c1;
    for (int i = 0; i < 200; ++i) {
      const double step =
          (((c3_ * w + c2) * w + c1) * w + c0) / ((3.0 * c3_ * w + 2.0 * c2) * w + c1);
      w -= step;
      if (std::abs(step) <= 1e-9 * std::abs(w)) break;
    }
    return w;
  }

  const double h_ = kStep, gamma_ = kImpedance, k1_ = 100, k3_ = 8000, k12_ = 120, k2_ = 50;
  const double s_ = std::sqrt(2 * gamma_ / h_);
  const double kappa_ = 0.5 * h_ * k12_ + 0.05, share_ = 1 / (kappa_ + gamma_);
  const double rho_s_ = kappa_ * share_ * s_, c3_ = 0.25 * k3_ * h_ * h_ * h_;
  const double inertia_ = 2 * 8 / h_;
  const double linear_ = 0.5 * h_ * k1_ + gamma_ * kappa_ * share_;
  const double transmission_ = 2 * gamma_ * share_;
  const double wave_per_force_ = 2 * gamma_ / s_ * share_, elongation_ = gamma_ * k12_ * share_;
  // The linear side: 2m(w − v)/h = −k(q + hw/2) − e, e = s a + γw, b = (e + γw)/s.
  const double side_ = 1 / (2 * 4 / h_ + 0.5 * h_ * k2_ + gamma_);
  const double xq_ = -k2_ * side_, xv_ = 2 * 4 / h_ * side_, xa_ = -s_ * side_;
  const double cq_ = 2 * gamma_ / s_ * xq_, cv_ = 2 * gamma_ / s_ * xv_;
  const double d_ = 2 * gamma_ / s_ * xa_;

  double q1_ = 0.4, v1_ = 0, delta_ = -0.4, q2_ = 0, v2_ = 0, wave_1_ = 0, wave_2_ = 0;
};

portwave::System make_pair() {
  using namespace portwave;
  SystemBuilder builder;
  builder.add("A",
              duffing_oscillator({.mass_kg = 8,
                                  .stiffness_N_per_m = 100,
                                  .cubic_stiffness_N_per_m3 = 8000,
                                  .coupling_stiffness_N_per_m = 120,
                                  .coupling_damping_Ns_per_m = 0.05}),
              {.initial_state = {0.4, 0, -0.4}});
  builder.add("B", linear_oscillator({.mass_kg = 4, .stiffness_N_per_m = 50}));
  builder.connect("A.coupling", "B.coupling");
  return builder.build();
}

portwave::StepperOptions options(int iterations) {
  portwave::StepperOptions options{.method = portwave::WaveCoupling{}};
  options.step_s = kStep;
  options.method.waves().iterations = iterations;
  options.method.waves().impedance = {kImpedance};
  options.method.waves().guard = false;
  return options;
}

/// The largest difference of (q1, q2) over 10 s; both must be the same trajectory to round-off.
double trajectory_difference(const portwave::System& system, int iterations) {
  portwave::Stepper engine(system, options(iterations));
  StraightLinePair floor;
  double worst = 0.0;
  for (int n = 0; n < 1000; ++n) {
    engine.step();
    floor.step(iterations);
    worst = std::max({worst, std::abs(engine.state("A")[0] - floor.q1()),
                      std::abs(engine.state("B")[0] - floor.q2())});
  }
  return worst;
}

void step_of_the_pair(benchmark::State& state) {
  const int iterations = static_cast<int>(state.range(0));
  const portwave::System system = make_pair();
  const double difference = trajectory_difference(system, iterations);
  if (!(difference <= 1e-11)) {
    state.SkipWithError("the engine and the straight-line loop disagree");
    return;
  }
  portwave::Stepper engine(system, options(iterations));
  StraightLinePair floor;
  constexpr int kStepsPerBlock = 500;
  using Clock = std::chrono::steady_clock;
  std::vector<double> ratios;
  double engine_s = 0.0, floor_s = 0.0;
  for (auto _ : state) {
    const auto start = Clock::now();
    for (int n = 0; n < kStepsPerBlock; ++n) floor.step(iterations);
    const auto middle = Clock::now();
    for (int n = 0; n < kStepsPerBlock; ++n) engine.step();
    const auto end = Clock::now();
    const double f = std::chrono::duration<double>(middle - start).count();
    const double e = std::chrono::duration<double>(end - middle).count();
    benchmark::DoNotOptimize(floor.q1());
    floor_s += f;
    engine_s += e;
    ratios.push_back(e / f);
    state.SetIterationTime(e);
  }
  std::nth_element(ratios.begin(), ratios.begin() + static_cast<long>(ratios.size() / 2),
                   ratios.end());
  const double steps = static_cast<double>(ratios.size()) * kStepsPerBlock;
  state.counters["engine_ns_per_step"] = engine_s / steps * 1e9;
  state.counters["floor_ns_per_step"] = floor_s / steps * 1e9;
  state.counters["ratio_to_floor"] = ratios[ratios.size() / 2];
  state.counters["max_difference"] = difference;
}

BENCHMARK(step_of_the_pair)
    ->ArgName("K")
    ->Arg(0)
    ->Arg(1)
    ->Arg(5)
    ->Arg(20)
    ->Arg(50)
    ->UseManualTime();

}  // namespace

BENCHMARK_MAIN();
