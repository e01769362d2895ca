#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <Eigen/LU>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/subsystems/conformance/conformance.hpp"
#include "support/lane_major.hpp"
#include "support/systems/nonlinear_parts.hpp"

namespace portwave::test_nonlinear {
namespace {

using Options = NonlinearPortHamiltonian::Options;

constexpr DiscreteGradient kGradients[] = {DiscreteGradient::gonzalez, DiscreteGradient::mean_value,
                                           DiscreteGradient::itoh_abe};

Options with(DiscreteGradient kind, int quadrature_points = 8) {
  return {.discrete_gradient = kind, .quadrature_points = quadrature_points};
}

/// A part without ports: only its storage matters.
std::unique_ptr<NonlinearPortHamiltonian> storage_only(int n, Hamiltonian H, Options options = {}) {
  Signature signature{"storage", {}, {}, {}};
  for (int i = 0; i < n; ++i) signature.states.push_back({"x" + std::to_string(i), ""});
  return std::make_unique<NonlinearPortHamiltonian>(std::move(signature), Structure::zero(n, 0),
                                                    std::move(H), std::move(options));
}

Eigen::VectorXd discrete_gradient(const Subsystem& part, const Eigen::VectorXd& x,
                                  const Eigen::VectorXd& x_next) {
  Eigen::VectorXd g(x.size());
  part.discrete_gradient(x.data(), x_next.data(), g.data());
  return g;
}

// Discrete gradients against closed forms.

Hamiltonian quadratic(const Eigen::Matrix3d& Q) {
  Hamiltonian H;
  H.value = [Q](const double* x) {
    const Eigen::Map<const Eigen::Vector3d> v(x);
    return 0.5 * v.dot(Q * v);
  };
  H.gradient = [Q](const double* x, double* g) {
    Eigen::Map<Eigen::Vector3d>{g} = Q * Eigen::Map<const Eigen::Vector3d>(x);
  };
  return H;
}

TEST(DiscreteGradientForms, AreTheMidpointForAQuadraticStorage) {
  Eigen::Matrix3d Q;
  Q << 4.0, 1.0, -0.5, 1.0, 3.0, 0.2, -0.5, 0.2, 2.0;
  const Eigen::Vector3d x(1.0, -2.0, 0.5), x_next(0.3, 0.4, -1.5);
  const Eigen::Vector3d midpoint = 0.5 * Q * (x + x_next);
  for (const DiscreteGradient kind : kGradients) {
    const double error =
        (discrete_gradient(*storage_only(3, quadratic(Q), with(kind)), x, x_next) - midpoint)
            .norm();
    if (kind == DiscreteGradient::itoh_abe) {
      EXPECT_GT(error, 0.1) << "Itoh-Abe is the midpoint for diagonal Q only";
    } else {
      EXPECT_LT(error, 1e-14) << to_string(kind);
    }
    const Eigen::Matrix3d diagonal = Q.diagonal().asDiagonal();
    const Eigen::Vector3d expected = 0.5 * diagonal * (x + x_next);
    const auto separable = storage_only(3, quadratic(diagonal), with(kind));
    EXPECT_LT((discrete_gradient(*separable, x, x_next) - expected).norm(), 1e-14)
        << to_string(kind);
  }
}

Hamiltonian power(int exponent) {
  Hamiltonian H;
  H.value = [exponent](const double* x) { return std::pow(x[0], exponent); };
  H.gradient = [exponent](const double* x, double* g) {
    g[0] = exponent * std::pow(x[0], exponent - 1);
  };
  return H;
}

TEST(DiscreteGradientForms, AllEqualTheQuotientInOneDimension) {
  // H = q⁴: (q⁴ − q₀⁴)/(q − q₀) = q₀³ + q₀²q + q₀q² + q³.
  for (const DiscreteGradient kind : kGradients) {
    const auto part = storage_only(1, power(4), with(kind));
    for (const double q_0 : {-1.0, 0.0, 0.7}) {
      for (const double q : {-0.3, 0.7, 0.7 + 1e-3, 0.7 + 1e-9, 2.0}) {
        const double expected = q_0 * q_0 * q_0 + q_0 * q_0 * q + q_0 * q * q + q * q * q;
        const Eigen::VectorXd g = discrete_gradient(*part, Eigen::VectorXd::Constant(1, q_0),
                                                    Eigen::VectorXd::Constant(1, q));
        EXPECT_NEAR(g[0], expected, 1e-14 * (1.0 + std::abs(expected)))
            << to_string(kind) << " from " << q_0 << " to " << q;
      }
    }
  }
}

TEST(DiscreteGradientForms, GaussLegendreIsExactForTwiceItsPointsAndNoFurther) {
  const Eigen::VectorXd x = Eigen::VectorXd::Constant(1, 0.3);
  const Eigen::VectorXd x_next = Eigen::VectorXd::Constant(1, 1.4);
  for (int points = 1; points <= 16; ++points) {
    for (int exponent = 2; exponent <= 2 * points + 2; ++exponent) {
      const auto part =
          storage_only(1, power(exponent), with(DiscreteGradient::mean_value, points));
      const double gained = part->storage(x_next.data()) - part->storage(x.data());
      const double defect = std::abs(discrete_gradient(*part, x, x_next)[0] * 1.1 / gained - 1.0);
      if (exponent <= 2 * points) {
        EXPECT_LT(defect, 2e-14) << points << " points, H = x^" << exponent;
      } else if (exponent == 2 * points + 2 && points <= 6) {
        EXPECT_GT(defect, 1e-13) << points << " points, H = x^" << exponent;
      }
    }
  }
}

TEST(DiscreteGradientForms, GonzalezMatchesItsDefinitionWhereThatIsWellConditioned) {
  // Independent: ∇H_mid + (ΔH − ∇H_midᵀΔx)Δx/|Δx|², for the quartic of nonlinear_parts.hpp.
  const auto part = testing::coupled_quartic();
  const Eigen::Vector4d x(0.4, -0.8, 0.5, 1.1), x_next(1.3, 0.2, -0.7, 0.9);
  const Eigen::Vector4d mid = 0.5 * (x + x_next), dx = x_next - x;
  Eigen::Vector4d expected;
  part->gradient(mid.data(), expected.data());
  const double c = part->storage(x_next.data()) - part->storage(x.data()) - expected.dot(dx);
  expected += c / dx.squaredNorm() * dx;
  EXPECT_LT((discrete_gradient(*part, x, x_next) - expected).norm(), 1e-14);
  EXPECT_GT(std::abs(c), 1e-2) << "the correction must matter for this to test it";
}

// Energy over many steps.

TEST(NonlinearStep, BooksEnergyToRoundOffOverThousandsOfSteps) {
  for (const DiscreteGradient kind : kGradients) {
    for (const double h : {1e-3, 0.05}) {
      const auto part = testing::pendulum(with(kind));
      testing::LaneMajor batch = testing::batch_of_one(*part);
      const double impedance = 1.5;
      batch.prepare(h, &impedance);
      double x[2] = {2.5, 0.0}, x_next[2], b = 0.0, supplied = 0.0, dissipated = 0.0;
      const double initial = part->storage(x);
      double turnover = 0.0;
      for (int n = 0; n < 4000; ++n) {
        const double a = 0.3 * std::sin(0.01 * n);
        StepEnergy energy;
        batch.freeze({0, 1}, x, nullptr);
        ASSERT_TRUE(batch.advance({0, 1}, &a, x_next, &b, &energy).ok()) << "step " << n;
        supplied += 0.5 * (a * a - b * b);
        turnover += 0.5 * (a * a + b * b) + part->storage(x_next);
        dissipated += energy.dissipated_J;
        std::copy(x_next, x_next + 2, x);
      }
      const double defect = part->storage(x) - initial - supplied + dissipated;
      EXPECT_LT(std::abs(defect), 4.0 * 2.2e-16 * turnover)
          << to_string(kind) << ", h=" << h << ", 4000 steps";
      EXPECT_GT(dissipated, 1e-3) << "nothing happened";
    }
  }
}

// Validation.

struct Ingredients {
  Signature signature{"cell",
                      {{"q", "C"}, {"phi", "Wb"}},
                      {{"terminals", Causality::flow_in, Domain::electrical, 1}},
                      {}};
  Structure structure = Structure::zero(2, 1);
  Hamiltonian H;
  Options options;

  Ingredients() {
    structure.J.insert(0, 1) = 1.0;
    structure.J.insert(1, 0) = -1.0;
    structure.R.insert(1, 1) = 0.5;
    structure.G.insert(0, 0) = 1.0;
    H.value = [](const double* x) { return std::cosh(x[0]) + 0.5 * x[1] * x[1] * x[0] * x[0]; };
    H.gradient = [](const double* x, double* g) {
      g[0] = std::sinh(x[0]) + x[1] * x[1] * x[0];
      g[1] = x[1] * x[0] * x[0];
    };
    H.hessian = [](const double* x, double* h) {
      h[0] = std::cosh(x[0]) + x[1] * x[1];
      h[1] = h[2] = 2.0 * x[1] * x[0];
      h[3] = x[0] * x[0];
    };
  }

  /// The places of all issues, in order.
  std::vector<std::string> places() const {
    std::vector<std::string> found;
    try {
      NonlinearPortHamiltonian(signature, structure, H, options);
    } catch (const ConfigError& error) {
      for (const Issue& issue : error.issues()) found.push_back(issue.where);
    }
    return found;
  }
};

using Places = std::vector<std::string>;

TEST(NonlinearValidation, PassesWhatIsSound) { EXPECT_EQ(Ingredients().places(), Places{}); }

TEST(NonlinearValidation, NamesEveryDefectAtOnce) {
  Ingredients part;
  part.structure.J.coeffRef(0, 1) = 2.0;
  part.structure.R.coeffRef(0, 0) = -1.0;
  part.options.quadrature_points = 17;
  part.options.max_newton_steps = 0;
  part.H.gradient = [](const double* x, double* g) {
    g[0] = std::sinh(x[0]) + x[1] * x[1] * x[0];
    g[1] = 1.001 * x[1] * x[0] * x[0];
  };
  EXPECT_EQ(part.places(), (Places{"/J", "/R", "/quadrature_points", "/max_newton_steps",
                                   "/hamiltonian/gradient"}));
  part.options.check_derivatives = false;
  EXPECT_EQ(part.places(), (Places{"/J", "/R", "/quadrature_points", "/max_newton_steps"}));
}

TEST(NonlinearValidation, FindsAWrongHessian) {
  Ingredients part;
  part.H.hessian = [](const double* x, double* h) {
    h[0] = std::cosh(x[0]) + x[1] * x[1];
    h[1] = h[2] = 1.99 * x[1] * x[0];
    h[3] = x[0] * x[0];
  };
  EXPECT_EQ(part.places(), Places{"/hamiltonian/hessian"});
}

TEST(NonlinearValidation, FindsMissingCallbacks) {
  Ingredients part;
  part.H = {};
  EXPECT_EQ(part.places(), (Places{"/hamiltonian/value", "/hamiltonian/gradient"}));
}

TEST(NonlinearValidation, ChecksTheDefaultState) {
  Ingredients part;
  part.options.default_state = {1.0};
  EXPECT_EQ(part.places(), Places{"/default_state"});
  part.options.default_state = {1.0, std::nan("")};
  EXPECT_EQ(part.places().front(), "/default_state");
}

TEST(NonlinearValidation, AsksForAFiniteStorageAtTheDefaultStateOnly) {
  Ingredients part;  // H = −log(1 − q²)/2 + φ²/2 lives on |q| < 1
  part.H = {};
  part.H.value = [](const double* x) {
    return -0.5 * std::log(1.0 - x[0] * x[0]) + 0.5 * x[1] * x[1];
  };
  part.H.gradient = [](const double* x, double* g) {
    g[0] = x[0] / (1.0 - x[0] * x[0]);
    g[1] = x[1];
  };
  part.options.default_state = {0.9, 0.0};
  EXPECT_EQ(part.places(), Places{});
  part.options.default_state = {1.1, 0.0};
  EXPECT_EQ(part.places(), Places{"/hamiltonian/value"});
}

TEST(NonlinearValidation, ChecksAStateDependentStructureAwayFromTheDefaultState) {
  Ingredients part;
  part.options.structure_at = [](const double* x, Structure& out) {
    out.R.coeffRef(1, 1) = 0.5 + x[0];  // negative for q < −0.5 only
  };
  EXPECT_EQ(part.places(), Places{});
  part.options.default_state = {-2.0, 0.0};
  EXPECT_EQ(part.places(), Places{"/structure_at/R"});
  part.options.allow_active = true;
  EXPECT_EQ(part.places(), Places{});
}

// Sizes. One capacitor (or spring, or volume) of any size of state and of energy, in a loop with a
// linear inductance.

struct Sized {
  std::string name;
  double (*energy)(double);  ///< of x/x₀, in units of H₀
  double (*slope)(double);
  double (*curvature)(double);
};

const Sized kSized[] = {
    {"exponential", [](double r) { return std::expm1(r) - r; },
     [](double r) { return std::expm1(r); }, [](double r) { return std::exp(r); }},
    {"hardening", [](double r) { return 0.5 * r * r + 0.25 * r * r * r * r; },
     [](double r) { return r + r * r * r; }, [](double r) { return 1.0 + 3.0 * r * r; }},
    {"periodic", [](double r) { return 1.0 - std::cos(r); }, [](double r) { return std::sin(r); },
     [](double r) { return std::cos(r); }},
    {"bounded", [](double r) { return -0.5 * std::log1p(-r * r); },
     [](double r) { return r / (1.0 - r * r); },
     [](double r) { return (1.0 + r * r) / ((1.0 - r * r) * (1.0 - r * r)); }},
};

/// States (x, φ), the second with ½φ²/(x₀²/H₀), so that the loop oscillates at 1 rad/s.
NonlinearPortHamiltonian sized(const Sized& law, double x_0, double H_0,
                               double gradient_error = 0.0, double hessian_error = 0.0,
                               bool with_hessian = true, Options options = {}) {
  Hamiltonian H;
  const double L = x_0 * x_0 / H_0;
  H.value = [=](const double* x) { return H_0 * law.energy(x[0] / x_0) + 0.5 * L * x[1] * x[1]; };
  H.gradient = [=](const double* x, double* g) {
    g[0] = (1.0 + gradient_error) * H_0 / x_0 * law.slope(x[0] / x_0);
    g[1] = L * x[1];
  };
  if (with_hessian) {
    H.hessian = [=](const double* x, double* h) {
      h[0] = (1.0 + hessian_error) * H_0 / (x_0 * x_0) * law.curvature(x[0] / x_0);
      h[1] = h[2] = 0.0;
      h[3] = L;
    };
  }
  Structure s = Structure::zero(2, 1);
  s.J.insert(0, 1) = 1.0;
  s.J.insert(1, 0) = -1.0;
  s.G.insert(0, 0) = 1.0;
  return {{law.name,
           {{"x", "-"}, {"phi", "-"}},
           {{"terminals", Causality::flow_in, Domain::electrical, 1}},
           {}},
          std::move(s),
          std::move(H),
          std::move(options)};
}

std::string refusal(const std::function<void()>& make) {
  try {
    make();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

constexpr double kStateSizes[] = {1e-15, 1e-12, 1e-6, 1.0, 1e6, 1e9, 1e12};
constexpr double kEnergySizes[] = {1e-18, 1e-9, 1.0, 1e9};

TEST(NonlinearSizes, RightDerivativesPassAndWrongOnesDoNotAtAnySize) {
  for (const Sized& law : kSized) {
    for (const double x_0 : kStateSizes) {
      for (const double H_0 : kEnergySizes) {
        const std::string where = law.name + fmt::format(", x0={:g}, H0={:g}", x_0, H_0);
        EXPECT_EQ(refusal([&] { sized(law, x_0, H_0); }), "") << where;
        const std::string gradient = refusal([&] { sized(law, x_0, H_0, 1e-3, 0.0, false); });
        EXPECT_NE(gradient.find("∂H/∂x"), std::string::npos) << where << ": " << gradient;
        EXPECT_NE(gradient.find("\"" + law.name + "\""), std::string::npos) << gradient;
        const std::string hessian = refusal([&] { sized(law, x_0, H_0, 0.0, 1e-3); });
        EXPECT_NE(hessian.find("∂²H/∂x∂x"), std::string::npos) << where << ": " << hessian;
      }
    }
  }
}

// A size that was found is right to a factor of ten or so; one that is given is taken.
TEST(NonlinearSizes, AreFoundOrGiven) {
  for (const Sized& law : kSized) {
    for (const double x_0 : kStateSizes) {
      for (const double H_0 : kEnergySizes) {
        const double found = sized(law, x_0, H_0).typical_state()[0];
        EXPECT_GT(found, 0.05 * x_0) << law.name << " x0=" << x_0 << " H0=" << H_0;
        EXPECT_LT(found, 20.0 * x_0) << law.name << " x0=" << x_0 << " H0=" << H_0;
      }
    }
  }
  const Options given{.typical_state = {3e-12, 5.0}};
  EXPECT_EQ(sized(kSized[0], 1e-12, 1.0, 0.0, 0.0, true, given).typical_state(),
            (std::vector<double>{3e-12, 5.0}));
  for (const std::vector<double>& bad :
       {std::vector<double>{1.0}, std::vector<double>{1.0, 0.0}, std::vector<double>{-1.0, 1.0},
        std::vector<double>{1.0, std::nan("")}}) {
    const std::string what =
        refusal([&] { sized(kSized[0], 1.0, 1.0, 0.0, 0.0, true, {.typical_state = bad}); });
    EXPECT_NE(what.find("/typical_state"), std::string::npos) << what;
  }
}

// The suite that users run on their own parts scales its states and differences by the same sizes.
TEST(NonlinearSizes, ConformanceSeesDerivativesAtAnySize) {
  for (const Sized& law : kSized) {
    for (const double x_0 : {1e-12, 1.0, 1e9}) {
      for (const double H_0 : {1e-12, 1e6}) {
        const NonlinearPortHamiltonian part = sized(law, x_0, H_0);
        ConformanceOptions options;
        options.state_scale = 0.1;
        for (const LawReport& report :
             {check_gradient(part, options), check_discrete_gradient(part, options),
              check_discrete_gradient_jacobian(part, options)}) {
          EXPECT_TRUE(report.holds) << law.name << ", x0=" << x_0 << ", H0=" << H_0 << ", "
                                    << report.law << ": " << report.detail;
        }
        const NonlinearPortHamiltonian wrong =
            sized(law, x_0, H_0, 1e-3, 0.0, true, {.check_derivatives = false});
        EXPECT_FALSE(check_gradient(wrong, options).holds)
            << law.name << ", x0=" << x_0 << ", H0=" << H_0;
      }
    }
  }
}

// Without a Hessian Newton meets its tolerance in no more steps, whatever the size.
TEST(NonlinearSizes, NewtonConvergesWithoutAHessian) {
  for (const DiscreteGradient kind : kGradients) {
    for (const Sized& law : kSized) {
      for (const double x_0 : kStateSizes) {
        for (const double H_0 : kEnergySizes) {
          Options options = with(kind);
          options.max_newton_steps = 12;
          const NonlinearPortHamiltonian part =
              sized(law, x_0, H_0, 0.0, 0.0, false, std::move(options));
          testing::LaneMajor batch = testing::batch_of_one(part);
          const double x[] = {0.3 * x_0, 0.2 * H_0 / x_0};
          const double impedance = H_0 / (x_0 * x_0), a = 0.1 * std::sqrt(H_0);
          double b = 0.0;
          batch.prepare(0.3, &impedance);
          batch.freeze({0, 1}, x, nullptr);
          EXPECT_TRUE(batch.scatter({0, 1}, &a, &b).ok())
              << law.name << ", " << to_string(kind) << ", x0=" << x_0 << ", H0=" << H_0;
        }
      }
    }
  }
}

// A size that shows only where another state is not at rest: ½φ²e^{x/d}.
TEST(NonlinearSizes, AreFoundWhereOtherStatesHideThem) {
  for (const double d : {1e-9, 1e-3, 1.0}) {
    Hamiltonian H;
    H.value = [d](const double* x) { return 0.5 * x[1] * x[1] * std::exp(x[0] / d); };
    H.gradient = [d](const double* x, double* g) {
      g[0] = 0.5 * x[1] * x[1] * std::exp(x[0] / d) / d;
      g[1] = x[1] * std::exp(x[0] / d);
    };
    const auto part = storage_only(2, H);
    EXPECT_GT(part->typical_state()[0], 0.05 * d) << d;
    EXPECT_LT(part->typical_state()[0], 20.0 * d) << d;
    H.gradient = [d](const double* x, double* g) {
      g[0] = 0.501 * x[1] * x[1] * std::exp(x[0] / d) / d;
      g[1] = x[1] * std::exp(x[0] / d);
    };
    EXPECT_NE(refusal([&] { storage_only(2, H); }), "") << d;
  }
}

// An exponential that a probe half a unit away would overflow, with a start away from zero.
TEST(NonlinearSizes, ProbesStayWhereHIsFinite) {
  for (const double x_0 : {0.0, 0.5}) {
    const auto storage = [x_0](double error) {
      Hamiltonian H;
      H.value = [x_0](const double* x) { return std::exp((x[0] - x_0) / 1e-6); };
      H.gradient = [x_0, error](const double* x, double* g) {
        g[0] = (1.0 + error) * std::exp((x[0] - x_0) / 1e-6) / 1e-6;
      };
      return H;
    };
    const Options options{.default_state = {x_0}};
    EXPECT_EQ(refusal([&] { storage_only(1, storage(0.0), options); }), "") << x_0;
    const std::string wrong = refusal([&] { storage_only(1, storage(1e-3), options); });
    EXPECT_NE(wrong.find("\"storage\": ∂H/∂x0"), std::string::npos) << wrong;
    // Sizes that are far too large: probes come nearer until H is finite.
    const Options large{.default_state = {x_0}, .typical_state = {1.0}};
    EXPECT_EQ(refusal([&] { storage_only(1, storage(0.0), large); }), "") << x_0;
  }
  Hamiltonian H;
  H.value = [](const double*) { return 1.0; };
  H.gradient = [](const double*, double* g) { g[0] = std::nan(""); };
  const std::string what = refusal([&] { storage_only(1, H); });
  EXPECT_NE(what.find("\"storage\": ∂H/∂x0 = nan is not finite at the default state x0 = 0"),
            std::string::npos)
      << what;
}

TEST(NonlinearPart, ItsNewtonBudgetReachesItsBatch) {
  for (const bool generous : {true, false}) {
    const auto part = testing::coupled_quartic({.max_newton_steps = generous ? 20 : 2});
    testing::LaneMajor batch = testing::batch_of_one(*part);
    const double x[] = {1.0, -0.5, 0.3, 2.0}, impedance = 1.0, a = 0.7;
    double b = 0.0;
    batch.prepare(0.3, &impedance);
    batch.freeze({0, 1}, x, nullptr);
    const LaneStatus status = batch.scatter({0, 1}, &a, &b);
    EXPECT_EQ(status.fault, generous ? StepFault::none : StepFault::not_converged);
  }
}

/// H = H₀ V(x/x₀) + φ²/2, which is computed from terms of H₀ where V has a size, and from those of its state else.
TEST(NonlinearSizes, TermsAreThoseOfTheLawInItsOwnUnits) {
  for (const double H_0 : kEnergySizes) {
    const auto terms = [&](const std::function<double(double)>& V,
                           const std::function<double(double)>& slope, double start) {
      Structure s = Structure::zero(2, 1);
      s.J.insert(0, 1) = 1.0;
      s.J.insert(1, 0) = -1.0;
      s.G.insert(1, 0) = 1.0;
      return NonlinearPortHamiltonian(
                 {"own", {{"x", "-"}, {"phi", "-"}}, {{"end", Causality::effort_in}}, {}},
                 std::move(s),
                 {.value = [=](const double* x) { return H_0 * (V(x[0]) + 0.5 * x[1] * x[1]); },
                  .gradient =
                      [=](const double* x, double* g) {
                        g[0] = H_0 * slope(x[0]);
                        g[1] = H_0 * x[1];
                      },
                  .hessian = {}},
                 {.default_state = {start, 0.0}})
          .storage_terms();
    };
    const auto square = [](double q) { return 0.5 * q * q; };
    const auto line = [](double q) { return q; };
    EXPECT_EQ(terms(square, line, 0.0), 0.0) << H_0;
    EXPECT_NEAR(terms(square, line, 3.0) / H_0, 13.5, 1e-9) << H_0;
    const double bent = terms([](double q) { return 1.0 - std::cos(q); },
                              [](double q) { return std::sin(q); }, 1e-9);
    EXPECT_GT(bent, 0.1 * H_0);
    EXPECT_LT(bent, 1e4 * H_0);
  }
}

}  // namespace
}  // namespace portwave::test_nonlinear
