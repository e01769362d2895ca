// Energies by callbacks whose form explicit methods find at a few places, and that are of another one elsewhere.

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <portwave/coupling/system/system.hpp>
#include <portwave/runtime/output/summary.hpp>
#include <portwave/runtime/step/stepper.hpp>
#include <portwave/subsystems/nonlinear/nonlinear_part.hpp>

namespace portwave::test_energies_as_stepped {
namespace {

struct Law {
  std::function<double(double)> energy, force;
  bool has_hessian = false;  ///< that of a spring of 1
};

/// A mass on a spring of a law that is known by callbacks: H = unit (V(q) + p²/2), with q in units of `length`.
System oscillator(const Law& law, double start, double speed, double unit = 1.0,
                  double length = 1.0) {
  Structure s = Structure::zero(2, 1);
  s.J.insert(0, 1) = 1.0;
  s.J.insert(1, 0) = -1.0;
  s.G.insert(1, 0) = 1.0;
  const double k = unit / (length * length), per_mass = length * length / unit;
  Hamiltonian H{.value =
                    [=](const double* x) {
                      return k * length * length * law.energy(x[0] / length) +
                             0.5 * per_mass * x[1] * x[1];
                    },
                .gradient =
                    [=](const double* x, double* g) {
                      g[0] = k * length * law.force(x[0] / length);
                      g[1] = per_mass * x[1];
                    },
                .hessian = {}};
  if (law.has_hessian) {
    H.hessian = [=](const double*, double* out) {
      std::fill_n(out, 4, 0.0);
      out[0] = k;
      out[3] = per_mass;
    };
  }
  NonlinearPortHamiltonian::Options options;
  options.default_state = {start * length, 0.0};
  options.typical_state = {length, unit / length};
  SystemBuilder builder;
  builder.add("o",
              std::make_shared<NonlinearPortHamiltonian>(
                  Signature{"by_callbacks",
                            {{"q", "m"}, {"p", "N s"}},
                            {{"end", Causality::effort_in, Domain::translation}},
                            {}},
                  std::move(s), std::move(H), std::move(options)),
              {.initial_state = {start * length, speed * unit / length}});
  builder.join(joint::Free{}, {"o.end"});
  return builder.build();
}

StepperOptions options_of(SplittingKind kind) {
  StepperOptions options;
  options.step_s = 0.05;
  options.method = Splitting{.kind = kind, .order = kind == SplittingKind::taylor ? 16 : 6};
  return options;
}

constexpr SplittingKind kKinds[] = {SplittingKind::kick_drift, SplittingKind::taylor};

const Law kSpring{.energy = [](double q) { return 0.5 * q * q; },
                  .force = [](double q) { return q; }};

/// Beside a spring, a stop at 60 of it: beyond all places at which ∇²H is looked at.
const Law kStop{.energy =
                    [](double q) {
                      const double into = std::max(0.0, q - 60.0);
                      return 0.5 * q * q + 25.0 * into * into;
                    },
                .force = [](double q) { return q + 50.0 * std::max(0.0, q - 60.0); }};

/// A step up between two of these places.
const Law kStep{.energy =
                    [](double q) {
                      const double t = std::clamp(q - 3.0, 0.0, 4.0);
                      return 0.5 * q * q + t * t * t * (4.0 - t) / 8.0;
                    },
                .force =
                    [](double q) {
                      const double t = std::clamp(q - 3.0, 0.0, 4.0);
                      return q + (3.0 * t * t * (4.0 - t) - t * t * t) / 8.0;
                    }};

TEST(EnergiesAsStepped, ThoseThatAreOfAnotherFormAreViolations) {
  for (const SplittingKind kind : kKinds) {
    for (const double speed : {70.0, 1e3}) {
      Stepper stepper(oscillator(kStop, 0.0, speed), options_of(kind));
      stepper.step(50);
      const Certificate& certificate = stepper.certificate();
      EXPECT_EQ(certificate.status, CertificateStatus::violated);
      ASSERT_TRUE(certificate.broken_law.has_value()) << speed;
      EXPECT_EQ(certificate.broken_law->law, BrokenLaw::Law::form);
      EXPECT_EQ(certificate.worst_passivity_part, 0);
      EXPECT_LE(certificate.broken_law->step, 49);
    }
    Stepper step(oscillator(kStep, 0.0, 8.0), options_of(kind));
    EXPECT_EQ(step.certificate().status, CertificateStatus::holds);  // not there yet
    step.step(20);
    EXPECT_EQ(step.certificate().status, CertificateStatus::violated);
  }
}

/// The stop as above, which is reached for a part of the run only, and left again: looks between steps see it.
TEST(EnergiesAsStepped, AreLookedAtNowAndThen) {
  for (const SplittingKind kind : kKinds) {
    Stepper stepper(oscillator(kStop, 0.0, 70.0), options_of(kind));
    stepper.step(100);  // 5 s: q < 0
    ASSERT_LT(stepper.state(0)[0], 0.0);
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::violated);
  }
}

/// A bump that one step ends in is seen, whichever step that is and whether anybody asks.
TEST(EnergiesAsStepped, AreLookedAtAfterEveryStep) {
  const auto bump = [](double q) { return std::clamp(q - 60.0, 0.0, 2.0); };
  const Law law{.energy =
                    [=](double q) {
                      const double t = bump(q);
                      return 0.5 * q * q + t * t * (2.0 - t) * (2.0 - t);
                    },
                .force =
                    [=](double q) {
                      const double t = bump(q);
                      return q + 2.0 * t * (2.0 - t) * (2.0 - 2.0 * t);
                    }};
  for (const SplittingKind kind : kKinds) {
    for (const double start : {-5.0, -7.5, -10.0, -12.5}) {  // at some 50 m/s, 2.5 m in a step
      Stepper stepper(oscillator(law, start, 80.0), options_of(kind));
      bool has_been = false;
      for (int n = 0; n < 60; ++n) {
        stepper.step();
        has_been |= bump(stepper.state(0)[0]) > 0.1 && bump(stepper.state(0)[0]) < 1.9;
      }
      EXPECT_EQ(stepper.certificate().status,
                has_been ? CertificateStatus::violated : CertificateStatus::holds)
          << start;
    }
  }
}

TEST(EnergiesAsStepped, AreNamedWithTheRemedy) {
  Stepper stepper(oscillator(kStop, 0.0, 70.0), options_of(SplittingKind::kick_drift));
  stepper.step(50);
  RunSummary summary;
  summary.certificate = stepper.certificate();
  summary.worst_passivity_part = "o";
  const std::string text = summary_text(summary);
  EXPECT_NE(text.find("the energy of \"o\" by step"), std::string::npos) << text;
  EXPECT_NE(text.find("Take wave coupling"), std::string::npos) << text;
}

/// What is quadratic is so to rounding: in other units, far from the origin, and with a constant force.
TEST(EnergiesAsStepped, RoundingIsNoViolation) {
  for (const SplittingKind kind : kKinds) {
    for (const double unit : {1.0, 1e9, 1e-9}) {
      for (const double length : {1.0, 1e-6, 1e6}) {
        for (const double place : {0.0, 3.0, 1e5}) {
          const Law far{
              .energy = [=](double q) { return 0.5 * (q - place) * (q - place) + 2.0 * q; },
              .force = [=](double q) { return q - place + 2.0; }};
          for (const bool has_hessian : {true, false}) {
            Law own = far;
            own.has_hessian = has_hessian;
            Stepper stepper(oscillator(own, place, 0.3, unit, length), options_of(kind));
            stepper.step(200);
            EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds)
                << unit << " " << length << " " << place << " " << has_hessian;
          }
        }
      }
    }
    Stepper spring(oscillator(kSpring, 0.0, 70.0), options_of(kind));
    spring.step(200);
    EXPECT_EQ(spring.certificate().status, CertificateStatus::holds);
  }
}

/// Two springs of 1 N/m that hardly know of each other; ∇²H is known or found.
System hardly_coupled(double coupling_N_per_m, double unit, bool has_hessian) {
  Structure s = Structure::zero(4, 1);
  for (int i : {0, 1}) {
    s.J.insert(i, i + 2) = 1.0;
    s.J.insert(i + 2, i) = -1.0;
  }
  s.G.insert(2, 0) = 1.0;
  const double c = unit * coupling_N_per_m;
  Hamiltonian H{.value =
                    [=](const double* x) {
                      return 0.5 * unit * (x[0] * x[0] + x[1] * x[1]) + c * x[0] * x[1] +
                             0.5 / unit * (x[2] * x[2] + x[3] * x[3]);
                    },
                .gradient =
                    [=](const double* x, double* g) {
                      g[0] = unit * x[0] + c * x[1];
                      g[1] = unit * x[1] + c * x[0];
                      g[2] = x[2] / unit;
                      g[3] = x[3] / unit;
                    },
                .hessian = {}};
  if (has_hessian) {
    H.hessian = [=](const double*, double* out) {
      std::fill_n(out, 16, 0.0);
      out[0] = out[5] = unit;
      out[1] = out[4] = c;
      out[10] = out[15] = 1.0 / unit;
    };
  }
  NonlinearPortHamiltonian::Options options;
  options.default_state = {1.0, 0.0, 0.0, 0.0};
  options.typical_state = {1.0, 1.0, unit, unit};
  SystemBuilder builder;
  builder.add("o",
              std::make_shared<NonlinearPortHamiltonian>(
                  Signature{"by_callbacks",
                            {{"q", "m"}, {"r", "m"}, {"p", "N s"}, {"s", "N s"}},
                            {{"end", Causality::effort_in, Domain::translation}},
                            {}},
                  std::move(s), std::move(H), std::move(options)),
              {.initial_state = {1.0, 0.0, 0.0, 0.0}});
  builder.join(joint::Free{}, {"o.end"});
  return builder.build();
}

/// A weak spring between two is part of the motion, also where differences of ∂H/∂x must find it.
TEST(EnergiesAsStepped, KeepWeakCouplings) {
  for (const SplittingKind kind : kKinds) {
    for (const double unit : {1.0, 1e9, 1e-9}) {
      for (const double coupling : {1e-5, 5e-7, 3e-8}) {
        for (const bool has_hessian : {true, false}) {
          Stepper stepper(hardly_coupled(coupling, unit, has_hessian), options_of(kind));
          stepper.step(400);
          EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
          // Modes of stiffness 1 ± c: r = (cos(√(1 + c) t) − cos(√(1 − c) t))/2.
          const double t = 400 * 0.05;
          const double r = -std::sin((std::sqrt(1 + coupling) + std::sqrt(1 - coupling)) / 2 * t) *
                           std::sin((std::sqrt(1 + coupling) - std::sqrt(1 - coupling)) / 2 * t);
          EXPECT_NEAR(stepper.state(0)[1] / r, 1.0, 1e-6) << coupling << " " << unit << has_hessian;
        }
      }
    }
  }
}

}  // namespace
}  // namespace portwave::test_energies_as_stepped
