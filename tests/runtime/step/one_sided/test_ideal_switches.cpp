// Ideal diodes and switches in circuits: against solutions by intervals that share no code with the engine.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Dense>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/coupling/network/linearisation.hpp"
#include "portwave/runtime/output/summary.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"

namespace portwave::test_ideal_switches {
namespace {

constexpr double kPi = std::numbers::pi;

/// A circuit of branches between nodes: e = v(from) − v(to), and f flows from one to the other. Kirchhoff's
/// laws are one joint.
class Circuit {
 public:
  Circuit& branch(const std::string& name, const std::string& type, Parameters parameters, int from,
                  int to, SystemBuilder::PartOptions options = {}) {
    const std::shared_ptr<const Component> component = make_part(type, std::move(parameters));
    ports_.push_back(name + "." + component->signature().ports[0].name);
    builder_.add(name, component, std::move(options));
    ends_.emplace_back(from, to);
    nodes_ = std::max({nodes_, from, to});
    return *this;
  }
  Circuit& source(const std::string& name, Signal voltage, int from, int to) {
    SystemBuilder::PartOptions options;
    options.inputs["effort"] = std::move(voltage);
    return branch(name, "effort_source", {{"domain", std::string("electrical")}}, from, to,
                  options);
  }
  Circuit& ideal_switch(const std::string& name, Signal closed, int from, int to) {
    SystemBuilder::PartOptions options;
    options.inputs["closed"] = std::move(closed);
    return branch(name, "ideal_switch", {}, from, to, options);
  }
  System build() {
    const auto count = static_cast<Eigen::Index>(ends_.size());
    Eigen::MatrixXd A = Eigen::MatrixXd::Zero(nodes_, count);  // node 0 is left out
    for (Eigen::Index b = 0; b < count; ++b) {
      const auto [from, to] = ends_[static_cast<std::size_t>(b)];
      if (from > 0) A(from - 1, b) += 1.0;
      if (to > 0) A(to - 1, b) -= 1.0;
    }
    const Eigen::MatrixXd loops = A.fullPivLu().kernel().transpose();
    Eigen::MatrixXd E = Eigen::MatrixXd::Zero(count, count), F = E;
    F.topRows(nodes_) = A;
    E.bottomRows(count - nodes_) = loops;
    builder_.join(joint::Kernel{E, F}, ports_);
    return builder_.build();
  }

 private:
  SystemBuilder builder_;
  std::vector<std::string> ports_;
  std::vector<std::pair<int, int>> ends_;
  int nodes_ = 0;
};

SystemBuilder::PartOptions from(std::vector<double> state) {
  SystemBuilder::PartOptions options;
  options.initial_state = std::move(state);
  return options;
}

StepperOptions steps_of(double step_s, int stages = 1) {
  StepperOptions options;
  options.step_s = step_s;
  options.method = CouplingMethod::automatic(1e-10);
  options.method.waves().stages = stages;
  return options;
}

double open_share(const Stepper& stepper) {
  const EnergyTotals e = stepper.energy();
  const double open = e.final_J - e.initial_J - e.supplied_J + e.dissipated_J +
                      e.numerical_dissipation_J + e.mismatch_J + e.impact_J;
  return std::abs(open) / (std::abs(e.initial_J) + e.max_J + std::abs(e.supplied_J));
}

double voltage(const Stepper& stepper) { return stepper.state("c")[0]; }

// Half-wave rectifier: 10 V at 50 Hz, 1 mF beside 100 Ω. While the diode conducts the capacitor has the
// voltage of the source; it stops where the current of both, C u' + u/R, is 0.
constexpr double kPeak_V = 10.0, kOmega = 2.0 * kPi * 50.0, kC_F = 1e-3, kR_ohm = 100.0;

double half_wave(double t) {
  const double period = 2.0 * kPi / kOmega, RC = kR_ohm * kC_F;
  const double off = (kPi - std::atan(kOmega * RC)) / kOmega;  // tan ωt = −ωRC
  const double at_off = kPeak_V * std::sin(kOmega * off);
  const int n = static_cast<int>(std::floor(t / period));
  if (n == 0 && t <= off) return kPeak_V * std::sin(kOmega * t);
  const double local = t - n * period;
  if (local > off) return at_off * std::exp(-(local - off) / RC);
  const double falling = at_off * std::exp(-(local + period - off) / RC);
  return local < 0.25 * period ? std::max(falling, kPeak_V * std::sin(kOmega * local))
                               : kPeak_V * std::sin(kOmega * local);
}

System half_wave_rectifier() {
  Circuit circuit;
  circuit.source("v", Signal::expression("10*sin(2*pi*50*t)"), 1, 0)
      .branch("d", "ideal_diode", {}, 1, 2)
      .branch("c", "capacitor", {{"capacitance_F", kC_F}}, 2, 0)
      .branch("r", "resistor", {{"resistance_ohm", kR_ohm}}, 2, 0);
  return circuit.build();
}

struct Errors {
  double largest = 0.0, last = 0.0;
};

template <class Truth>
Errors run(Stepper& stepper, double end_s, double step_s, const Truth& truth) {
  Errors out;
  const auto steps = std::llround(end_s / step_s);
  for (int n = 1; n <= steps; ++n) {
    stepper.step();
    out.last = std::abs(voltage(stepper) - truth(n * step_s));
    out.largest = std::max(out.largest, out.last);
  }
  return out;
}

TEST(IdealSwitches, AHalfWaveRectifierFollowsTheSourceAndThenTheCapacitor) {
  double before = 0.0;
  for (const double h : {2e-4, 1e-4, 5e-5}) {
    Stepper stepper(half_wave_rectifier(), steps_of(h));
    const Errors errors = run(stepper, 0.06, h, [](double t) { return half_wave(t); });
    EXPECT_LE(errors.largest, kPeak_V * kOmega * h) << "h=" << h;
    if (before > 0.0) {
      EXPECT_LE(errors.largest, 0.7 * before) << "h=" << h;
    }
    before = errors.largest;
    EXPECT_EQ(stepper.iterations().not_converged, 0) << "h=" << h;
    EXPECT_LE(open_share(stepper), 1e-12) << "h=" << h;
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  }
}

TEST(IdealSwitchesControl, ADiodeTheOtherWayRoundIsNoticed) {
  Circuit circuit;
  circuit.source("v", Signal::expression("10*sin(2*pi*50*t)"), 1, 0)
      .branch("d", "ideal_diode", {}, 2, 1)
      .branch("c", "capacitor", {{"capacitance_F", kC_F}}, 2, 0)
      .branch("r", "resistor", {{"resistance_ohm", kR_ohm}}, 2, 0);
  Stepper stepper(circuit.build(), steps_of(1e-4));
  const Errors errors = run(stepper, 0.06, 1e-4, [](double t) { return half_wave(t); });
  EXPECT_GT(errors.largest, kPeak_V);
}

TEST(IdealSwitches, ADiodePassesForwardCurrentsAndHoldsReverseVoltages) {
  Stepper stepper(half_wave_rectifier(), steps_of(1e-4));
  double most_A = 0.0, lowest_V = 0.0;
  for (int n = 0; n < 600; ++n) {
    stepper.step();
    const int port = stepper.system().first_scalar_port(stepper.system().find_part("d"));
    const double u = stepper.effort(port), i = stepper.flow(port);
    most_A = std::max(most_A, i);
    lowest_V = std::min(lowest_V, u);
    EXPECT_GE(i, -1e-9) << n;
    EXPECT_LE(u, 1e-8) << n;
    EXPECT_LE(std::abs(u * i), 1e-8) << n;
  }
  EXPECT_GT(most_A, 1.0);
  EXPECT_LT(lowest_V, -15.0);
}

/// u of a state by Runge and Kutta's method, in so many substeps of a step.
template <class Rate>
void integrate(std::vector<double>& x, double from_s, double to_s, int substeps, const Rate& rate) {
  const double h = (to_s - from_s) / substeps;
  const auto moved = [&](const std::vector<double>& k, double by) {
    std::vector<double> out = x;
    for (std::size_t i = 0; i < x.size(); ++i) out[i] += by * k[i];
    return out;
  };
  for (int n = 0; n < substeps; ++n) {
    const double t = from_s + n * h;
    const auto k1 = rate(t, x), k2 = rate(t + 0.5 * h, moved(k1, 0.5 * h)),
               k3 = rate(t + 0.5 * h, moved(k2, 0.5 * h)), k4 = rate(t + h, moved(k3, h));
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] += h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
    }
  }
}

// Four diodes, a source of 10 V with 1 Ω, 1 mF beside 50 Ω: the load sees |v|.
TEST(IdealSwitches, ABridgeOfFourDiodesRectifies) {
  double before = 0.0;
  for (const double h : {1e-4, 5e-5}) {
    Circuit circuit;
    circuit.source("v", Signal::expression("10*sin(2*pi*50*t)"), 1, 2)
        .branch("s", "resistor", {{"resistance_ohm", 1.0}}, 1, 3)
        .branch("d1", "ideal_diode", {}, 3, 4)
        .branch("d2", "ideal_diode", {}, 2, 4)
        .branch("d3", "ideal_diode", {}, 0, 3)
        .branch("d4", "ideal_diode", {}, 0, 2)
        .branch("c", "capacitor", {{"capacitance_F", 1e-3}}, 4, 0)
        .branch("r", "resistor", {{"resistance_ohm", 50.0}}, 4, 0);
    Stepper stepper(circuit.build(), steps_of(h));
    std::vector<double> u = {0.0};
    double t = 0.0;
    const Errors errors = run(stepper, 0.05, h, [&](double to) {
      integrate(u, t, to, 20, [](double at, const std::vector<double>& x) {
        const double over = std::abs(10.0 * std::sin(kOmega * at)) - x[0];
        return std::vector<double>{(std::max(over, 0.0) / 1.0 - x[0] / 50.0) / 1e-3};
      });
      t = to;
      return u[0];
    });
    EXPECT_LE(errors.largest, 0.25 * h / 1e-4) << "h=" << h;
    if (before > 0.0) {
      EXPECT_LE(errors.largest, 0.7 * before);
    }
    before = errors.largest;
    EXPECT_EQ(stepper.iterations().not_converged, 0);
    EXPECT_LE(open_share(stepper), 1e-12);
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  }
}

// A boost converter of 12 V, 100 µH, 100 µF at 20 kHz and a duty of one half; with 10 Ω its current never
// stops, with 500 Ω it does.
TEST(IdealSwitches, ABoostConverterAtAFixedDuty) {
  constexpr double V = 12.0, L = 100e-6, C = 100e-6, kPeriod_s = 50e-6;
  for (const double R : {10.0, 500.0}) {
    for (const double h : {5e-7, 2.5e-7}) {
      Circuit circuit;
      circuit.source("v", Signal::constant(V), 1, 0)
          .branch("l", "inductor", {{"inductance_H", L}}, 1, 2)
          .ideal_switch("s", Signal::expression("mod(t, 50e-6) < 25e-6"), 2, 0)
          .branch("d", "ideal_diode", {}, 2, 3)
          .branch("c", "capacitor", {{"capacitance_F", C}}, 3, 0, from({V}))
          .branch("r", "resistor", {{"resistance_ohm", R}}, 3, 0);
      Stepper stepper(circuit.build(), steps_of(h));
      std::vector<double> x = {0.0, V};
      const auto truth = [&](double to) {
        const double t = to - h;
        const bool on = std::fmod(t + 0.5 * h, kPeriod_s) < 0.5 * kPeriod_s;
        integrate(x, t, to, 10, [&](double, const std::vector<double>& y) {
          if (on) return std::vector<double>{V / L, -y[1] / (R * C)};
          const bool flows = y[0] > 0.0 || V > y[1];
          return std::vector<double>{flows ? (V - y[1]) / L : 0.0,
                                     ((flows ? y[0] : 0.0) - y[1] / R) / C};
        });
        if (!on) x[0] = std::max(x[0], 0.0);
        return x[1];
      };
      const Errors errors = run(stepper, 4e-3, h, truth);
      EXPECT_LE(errors.largest, 24.0 * 0.04 * h / 5e-7) << "R=" << R << " h=" << h;
      EXPECT_GT(x[1], 20.0) << "it does boost";
      EXPECT_NEAR(stepper.state("l")[0], x[0], 0.4 * h / 5e-7) << "R=" << R;
      EXPECT_EQ(stepper.iterations().not_converged, 0);
      EXPECT_EQ(stepper.impulses().count, 0);
      EXPECT_LE(open_share(stepper), 1e-11);
      EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
    }
  }
}

// A buck converter of 10 V, 1 mH and 100 µF. When the switch closes the diode still conducts: the branches of the
// last step put the source on a loop without a resistance, which has no solution. SciPy: matrix exponentials from
// one change to the next, the diode's within a step by bisection.
struct Buck {
  double step_s;
  int on, period;  // in steps
  double R_ohm;
  int stages;
  double end_A, end_V;  // after 300 steps
  double tolerance;     // of both, relative
};

System buck_converter(const Buck& own) {
  const double duty = static_cast<double>(own.on) / own.period;
  Circuit circuit;
  circuit.source("v", Signal::constant(10.0), 1, 0)
      .ideal_switch("s",
                    Signal::expression(fmt::format("mod(t, {:.17g}) < {:.17g}",
                                                   own.period * own.step_s, own.on * own.step_s)),
                    1, 2)
      .branch("d", "ideal_diode", {}, 0, 2)
      .branch("l", "inductor", {{"inductance_H", 1e-3}}, 2, 3, from({10.0 * duty / own.R_ohm}))
      .branch("c", "capacitor", {{"capacitance_F", 1e-4}}, 3, 0, from({10.0 * duty}))
      .branch("r", "resistor", {{"resistance_ohm", own.R_ohm}}, 3, 0);
  return circuit.build();
}

TEST(IdealSwitches, ABuckConverterAtAnyStepSize) {
  const Buck all[] = {
      {1e-6, 3, 10, 5.0, 1, 0.596352634698632, 3.02025937876364, 1e-4},
      {3e-7, 3, 10, 5.0, 1, 0.59988003384074, 3.00255836815005, 1e-5},
      {3e-8, 3, 10, 5.0, 1, 0.599999872633623, 3.00002809143244, 1e-6},
      {1e-8, 3, 10, 5.0, 1, 0.599999995263526, 3.00000314047954, 1e-7},
      {1e-6, 3, 10, 5.0, 2, 0.596352634698632, 3.02025937876364, 1e-10},
      {1e-8, 3, 10, 5.0, 2, 0.599999995263526, 3.00000314047954, 1e-10},
      {1e-5, 2, 5, 5.0, 2, 0.73765034183635, 4.00298982823871, 1e-6},
      {1e-5, 2, 5, 5.0, 3, 0.73765034183635, 4.00298982823871, 1e-11},
      // Its current stops within steps.
      {1e-5, 2, 5, 50.0, 1, 0.0110348764499982, 4.04359471093198, 0.1},
      {1e-5, 2, 5, 50.0, 2, 0.0110348764499982, 4.04359471093198, 0.01},
  };
  for (const Buck& own : all) {
    const auto where = fmt::format("h={} R={} stages={}", own.step_s, own.R_ohm, own.stages);
    Stepper stepper(buck_converter(own), steps_of(own.step_s, own.stages));
    std::int64_t evaluations = 0;
    for (int n = 0; n < 300; ++n) evaluations += stepper.step().iterations;
    EXPECT_NEAR(stepper.state("l")[0], own.end_A, own.tolerance * own.end_A) << where;
    EXPECT_NEAR(voltage(stepper), own.end_V, own.tolerance * own.end_V) << where;
    EXPECT_EQ(stepper.iterations().not_converged, 0) << where;
    EXPECT_EQ(stepper.waves()->guard()->missed_steps, 0) << where;
    // Of several stages some steps are attempted again, in pieces.
    EXPECT_LE(evaluations, 300 * (own.stages > 1 ? 6 : 4)) << where;
    EXPECT_LE(open_share(stepper), 1e-12) << where;
  }
}

// Changes within steps: what the switch is closed for is right in the mean. Steps are cut at a few of them; with many the
// switch moves them, and that is told.
TEST(IdealSwitches, TheDutyIsRightInTheMeanWhereverChangesLie) {
  struct Case {
    double period_s, closed_s, shift_s;
    int stages;
  };
  constexpr double h = 1e-5;
  for (const auto& [period_s, closed_s, shift_s, stages] :
       {Case{h, 0.4 * h, 0.0, 1}, Case{3.0 * h, h, 0.5 * h, 1}, Case{3.0 * h, h, 0.5 * h, 3},
        Case{4.0 * h, 1.2 * h, 0.0, 1}, Case{10.0 * h, 3.0 * h, 0.0, 1},
        Case{0.05 * h, 0.02 * h, 0.0, 1}}) {
    const double duty = closed_s / period_s;
    Circuit circuit;
    circuit.source("v", Signal::constant(10.0), 1, 0)
        .ideal_switch("s",
                      Signal::expression(fmt::format("mod(t + {:.17g}, {:.17g}) < {:.17g}", shift_s,
                                                     period_s, closed_s)),
                      1, 2)
        .branch("d", "ideal_diode", {}, 0, 2)
        .branch("l", "inductor", {{"inductance_H", 1e-3}}, 2, 3, from({2.0 * duty}))
        .branch("c", "capacitor", {{"capacitance_F", 1e-4}}, 3, 0, from({10.0 * duty}))
        .branch("r", "resistor", {{"resistance_ohm", 5.0}}, 3, 0);
    const StepperOptions options = steps_of(h, stages);
    Stepper stepper(circuit.build(), options);
    double sum = 0.0;
    for (int n = 0; n < 900; ++n) {
      stepper.step();
      if (n >= 600) sum += voltage(stepper);
    }
    const auto where = fmt::format("duty {} of {} s, {} stages", duty, period_s, stages);
    EXPECT_NEAR(sum / 300, 10.0 * duty, 0.01) << where;
    EXPECT_EQ(stepper.impulses().count, 0) << where;
    const RunSummary summary = summarize("duty", options, stepper, 1.0);
    const bool is_moved = period_s < 0.1 * h;
    EXPECT_EQ(summary.is_switch_moved(), is_moved) << where;
    // Where steps are cut, what one damped stage takes from the circuit is told.
    if (period_s == 10.0 * h) {
      EXPECT_TRUE(summary.is_all_well()) << where;
    }
    if (is_moved) {
      EXPECT_FALSE(summary.is_all_well()) << where;
    }
    const bool is_told =
        summary_text(summary).find("steps open and close \"s\"") != std::string::npos;
    EXPECT_EQ(is_told, is_moved) << where;
  }
}

// Currents that switches free jump in their rates: no polynomial runs through them, and none should.
TEST(IdealSwitches, SeveralStagesResolveWhatSwitchesDo) {
  for (const int stages : {2, 3}) {
    const Buck own{1e-6, 3, 10, 5.0, stages, 0.0, 0.0, 0.0};
    const StepperOptions options = steps_of(own.step_s, stages);
    Stepper stepper(buck_converter(own), options);
    for (int n = 0; n < 1500; ++n) stepper.step();
    ASSERT_TRUE(stepper.resolution().has_value());
    EXPECT_EQ(stepper.resolution()->kind, Resolution::Kind::resolved) << stages;
    EXPECT_TRUE(summarize("buck", options, stepper, 1.0).is_all_well()) << stages;
  }
}

TEST(IdealSwitches, ContradictionsAreNotToldToIterateLonger) {
  Circuit circuit;
  circuit.source("v", Signal::expression("10*sin(2*pi*50*t)"), 1, 0)
      .branch("d", "ideal_diode", {}, 1, 0);
  const StepperOptions options = steps_of(1e-3);
  Stepper stepper(circuit.build(), options);
  for (int n = 0; n < 50; ++n) stepper.step();
  const RunSummary summary = summarize("contradiction", options, stepper, 1.0);
  EXPECT_FALSE(summary.is_all_well());
  const std::string text = summary_text(summary);
  EXPECT_NE(text.find("\"d\" is ideal"), std::string::npos) << text;
  EXPECT_NE(text.find("1 mOhm"), std::string::npos) << text;
  EXPECT_EQ(text.find("more iterations"), std::string::npos) << text;
}

TEST(IdealSwitches, ADampedMotionIsNotToldToBeDamped) {
  RunSummary summary;
  summary.resolution = Resolution{.kind = Resolution::Kind::jumps, .share = 0.3, .part = 0};
  summary.unresolved_part = "c";
  EXPECT_NE(summary_text(summary).find("damp it"), std::string::npos) << "control";
  summary.is_unresolved_damped = true;
  const std::string text = summary_text(summary);
  EXPECT_EQ(text.find("damp it"), std::string::npos) << text;
  EXPECT_EQ(text.find("conserve energy"), std::string::npos) << text;
  EXPECT_NE(text.find("/method/stages=1"), std::string::npos) << text;
}

// More stages are of a higher order between changes of branches, and steps that choose their size end at them.
TEST(IdealSwitches, WithMoreStagesAndWithChosenSizesTheyAreMoreExact) {
  const auto truth = [](double t) { return half_wave(t); };
  Stepper two(half_wave_rectifier(), steps_of(1e-4, 2));
  const Errors of_two = run(two, 0.06, 1e-4, truth);
  EXPECT_LE(of_two.last, 2e-4);
  EXPECT_LE(open_share(two), 1e-12);
  StepperOptions options = steps_of(1e-3, 3);
  options.sizes = StepSizes{.tolerance = 1e-6};
  Stepper chosen(half_wave_rectifier(), options);
  double largest = 0.0;
  while (chosen.step_if_before(0.06)) {
    largest = std::max(largest, std::abs(voltage(chosen) - half_wave(chosen.time_s())));
  }
  EXPECT_LE(largest, 1e-3);
  EXPECT_LE(open_share(chosen), 1e-12);
}

// A coil of 10 µH whose current dies in every period: both ideal parts then block, and what waves round is all that flows.
// Chosen steps leave that at once. Where the tolerance is below what such steps resolve the run ends.
TEST(IdealSwitches, ChosenStepsLeaveTheEndOfACurrent) {
  const auto run = [](double tolerance) {
    Circuit circuit;
    circuit.source("v", Signal::constant(12.0), 1, 0)
        .ideal_switch("s", Signal::expression("mod(t, 1e-5) < 2e-6"), 1, 2)
        .branch("d", "ideal_diode", {}, 0, 2)
        .branch("l", "inductor", {{"inductance_H", 1e-5}, {"resistance_ohm", 0.05}}, 2, 3)
        .branch("c", "capacitor", {{"capacitance_F", 1e-4}, {"leakage_S", 0.01}}, 3, 0);
    StepperOptions options = steps_of(3e-6, 3);
    options.sizes = StepSizes{.tolerance = tolerance};
    Stepper stepper(circuit.build(), options);
    while (stepper.step_if_before(3e-4) && stepper.step_index() < 100'000) {
    }
    EXPECT_EQ(stepper.time_s(), 3e-4);
    return std::pair(stepper.state("l")[0], voltage(stepper));
  };
  const auto coarse = run(1e-5), fine = run(1e-7);
  EXPECT_NEAR(coarse.first, fine.first, 1e-4);
  EXPECT_NEAR(coarse.second, fine.second, 1e-4);
  try {
    run(1e-10);
    ADD_FAILURE() << "no rounding";
  } catch (const StepError& error) {
    EXPECT_NE(std::string(error.what()).find("the error is rounding"), std::string::npos)
        << error.what();
  }
}

// Nothing is dissipated but in the resistor, and by the steps.
TEST(IdealSwitches, DissipateNothing) {
  StepperOptions options = steps_of(1e-4);
  Stepper stepper(half_wave_rectifier(), options);
  double joule_J = 0.0;
  for (int n = 0; n < 600; ++n) {
    stepper.step();
    const int port = stepper.system().first_scalar_port(stepper.system().find_part("r"));
    joule_J += 1e-4 * stepper.effort(port) * stepper.flow(port);
  }
  const EnergyTotals e = stepper.energy();
  EXPECT_NEAR(e.dissipated_J, joule_J, 1e-9 * joule_J);
  EXPECT_LT(e.numerical_dissipation_J, 0.1 * joule_J);
}

TEST(IdealSwitches, ASwitchThatOpensUnderCurrentTellsTheImpulse) {
  for (const int stages : {1, 2}) {
    Circuit circuit;
    circuit.source("v", Signal::constant(1.0), 1, 0)
        .branch("l", "inductor", {{"inductance_H", 1.0}}, 1, 2)
        .ideal_switch("s", Signal::expression("t < 0.505"), 2, 0);
    Stepper stepper(circuit.build(), steps_of(0.01, stages));
    for (int n = 0; n < 100; ++n) stepper.step();
    ASSERT_EQ(stepper.impulses().count, 1) << stages;
    EXPECT_EQ(stepper.impulses().first[0].cause, "s opens");
    EXPECT_NEAR(stepper.impulses().in_all.impact_J, 0.5 * 0.5 * 0.5, 0.01) << stages;
    EXPECT_NEAR(stepper.state("l")[0], 0.0, 1e-9) << stages;
    EXPECT_LE(open_share(stepper), 1e-11) << stages;
  }
}

TEST(IdealSwitches, WithStartsRefusedItIsAnErrorWithTheRemedies) {
  Circuit circuit;
  circuit.source("v", Signal::constant(1.0), 1, 0)
      .branch("l", "inductor", {{"inductance_H", 1.0}}, 1, 2)
      .ideal_switch("s", Signal::expression("t < 0.5"), 2, 0);
  StepperOptions options = steps_of(0.01);
  options.start = Start::refuse;
  Stepper stepper(circuit.build(), options);
  try {
    for (int n = 0; n < 100; ++n) stepper.step();
    FAIL() << "nothing was refused";
  } catch (const StepError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("s opens, and states are at odds"), std::string::npos) << what;
    EXPECT_NE(what.find("compliance or resistance"), std::string::npos) << what;
    EXPECT_EQ(stepper.step_index(), 50);
  }
}

TEST(IdealSwitches, AClosedOneAcrossASourceIsRefused) {
  Circuit circuit;
  circuit.source("v", Signal::constant(1.0), 1, 0)
      .ideal_switch("s", Signal::expression("t >= 0.5"), 1, 0)
      .branch("r", "resistor", {{"resistance_ohm", 1.0}}, 1, 0);
  Stepper stepper(circuit.build(), steps_of(0.01));
  try {
    for (int n = 0; n < 100; ++n) stepper.step();
    FAIL() << "nothing was refused";
  } catch (const StepError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("s closes"), std::string::npos) << what;
    EXPECT_NE(what.find("contradict"), std::string::npos) << what;
  }
}

// Linearised, each is the branch it is on: L i' = −R i through a closed switch, C u' = −u/R beside an open one.
TEST(IdealSwitches, AreLinearisedOnTheirBranches) {
  for (const double closed : {0.0, 1.0}) {
    Circuit circuit;
    circuit.branch("c", "capacitor", {{"capacitance_F", 2.0}}, 1, 0, from({6.0}))
        .branch("r", "resistor", {{"resistance_ohm", 4.0}}, 1, 0)
        .ideal_switch("s", Signal::constant(closed), 1, 2)
        .branch("q", "resistor", {{"resistance_ohm", 1.0}}, 2, 0);
    const Linearisation own = linearised(circuit.build());
    ASSERT_EQ(own.A.rows(), 1);
    EXPECT_NEAR(own.A.coeff(0, 0), closed > 0.0 ? -1.25 / 2.0 : -0.25 / 2.0, 1e-12) << closed;
  }
  for (const double charge : {6.0, -6.0}) {
    Circuit circuit;
    circuit.branch("c", "capacitor", {{"capacitance_F", 2.0}}, 1, 0, from({charge}))
        .branch("d", "ideal_diode", {}, 1, 2)
        .branch("q", "resistor", {{"resistance_ohm", 1.0}}, 2, 0);
    const Linearisation own = linearised(circuit.build());
    ASSERT_EQ(own.A.rows(), 1);
    EXPECT_NEAR(own.A.coeff(0, 0), charge > 0.0 ? -0.5 : 0.0, 1e-12) << charge;
  }
}

// A capacitor that a switch shorts is empty at once.
TEST(IdealSwitches, ASwitchThatIsSetShortsACapacitor) {
  Circuit circuit;
  circuit.branch("c", "capacitor", {{"capacitance_F", 2.0}}, 1, 0, from({6.0}))
      .branch("r", "resistor", {{"resistance_ohm", 1e6}}, 1, 0)
      .ideal_switch("s", Signal::settable(0.0), 1, 0);
  Stepper stepper(circuit.build(), steps_of(0.01));
  for (int n = 0; n < 10; ++n) stepper.step();
  EXPECT_NEAR(voltage(stepper), 6.0, 1e-6);
  stepper.set_input(stepper.find_input("s.closed"), 1.0);
  for (int n = 0; n < 10; ++n) stepper.step();
  EXPECT_NEAR(voltage(stepper), 0.0, 1e-12);
  ASSERT_EQ(stepper.impulses().count, 1);
  EXPECT_EQ(stepper.impulses().first[0].cause, "s closes");
  EXPECT_NEAR(stepper.impulses().in_all.impact_J, 36.0, 1e-4);
}

}  // namespace
}  // namespace portwave::test_ideal_switches
