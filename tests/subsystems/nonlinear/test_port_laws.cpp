// Nonlinear resistances at ports, and contact: against bisection, quadrature and the balance of
// energy written out here.

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_resistance.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"

namespace portwave::test_port_laws {
namespace {

Signature one_port(Causality causality) {
  return {"law", {}, {{"port", causality, Domain::generic, 1}}, {}};
}

struct Law {
  const char* name;
  std::function<double(double)> phi;
  std::function<double(double)> slope;
};

const std::vector<Law>& laws() {
  static const std::vector<Law> all = {
      {"cubic", [](double u) { return u * u * u; }, [](double u) { return 3 * u * u; }},
      {"friction", [](double u) { return 5.0 * std::tanh(u / 1e-6); },
       [](double u) { return 5e6 * (1 - std::pow(std::tanh(u / 1e-6), 2)); }},
      {"diode",
       [](double u) {
         return u < 1 ? 1e-12 * std::expm1(u / 0.026)
                      : 1e-12 * (std::expm1(1 / 0.026) + std::exp(1 / 0.026) / 0.026 * (u - 1));
       },
       [](double u) { return 1e-12 / 0.026 * std::exp(std::min(u, 1.0) / 0.026); }},
      {"dead zone", [](double u) { return u > 1    ? u - 1
                                          : u < -2 ? u + 2
                                                   : 0.0; },
       [](double u) { return u > 1 || u < -2 ? 1.0 : 0.0; }},
      {"wrong slope", [](double u) { return std::atan(u) + 0.01 * u; },
       [](double) { return 1e-3; }},
  };
  return all;
}

struct Solved {
  double outgoing;
  StepEnergy energy;
};

Solved step_of(const Subsystem& part, double h, double gamma, double a) {
  const Subsystem* const parts[] = {&part};
  const auto batch = make_newton_batch(parts);
  batch->prepare(h, &gamma);
  AlignedVector record(batch->record_size()), next(batch->record_size());
  const std::vector<double> x(8, 0.0);
  batch->set_state(0, x.data(), record.data());
  batch->freeze({0, 1}, record.data(), nullptr);
  Solved out{};
  EnergyColumns columns;
  columns.change_J = &out.energy.change_J;
  columns.external_supply_J = &out.energy.external_supply_J;
  columns.dissipated_J = &out.energy.dissipated_J;
  EXPECT_TRUE(batch->advance({0, 1}, record.data(), &a, next.data(), &out.outgoing, columns).ok());
  return out;
}

TEST(PortLaws, SolveTheWaveRelationAsBisectionDoes) {
  for (const Law& law : laws()) {
    for (const Causality causality : {Causality::effort_in, Causality::flow_in}) {
      const NonlinearResistance part(one_port(causality), [&law](double u) {
        return PortLawValue{law.phi(u), law.slope(u)};
      });
      for (const double h : {1e-9, 1e-3, 1.0, 1e6}) {
        for (const double gamma : {1e-6, 1.0, 1e6}) {
          for (const double a : {-1e4, -1.0, -1e-9, 0.0, 1e-5, 3.0, 1e6}) {
            const double s = std::sqrt(2.0 * gamma / h);
            const bool effort = causality == Causality::effort_in;
            // u + γφ(u) = s a, or γu + φ(u) = s a.
            const double k = effort ? 1.0 : gamma, beta = effort ? gamma : 1.0;
            double low = std::min(0.0, s * a / k), high = std::max(0.0, s * a / k);
            for (int i = 0; i < 4000 && low < high; ++i) {
              const double mid = low + 0.5 * (high - low);
              if (mid == low || mid == high) break;
              (k * mid + beta * law.phi(mid) > s * a ? high : low) = mid;
            }
            const double u = 0.5 * (low + high), y = law.phi(u);
            // By u alone: where φ cancels, as beside a dead zone, y is known less well than u.
            const double b = effort ? 2.0 / s * u - a : a - 2.0 * gamma / s * u;
            const Solved own = step_of(part, h, gamma, a);
            const double size = std::abs(b) + 2.0 * std::abs(a);
            EXPECT_NEAR(own.outgoing, b, 1e-14 * size)
                << law.name << " h=" << h << " gamma=" << gamma << " a=" << a;
            const double blur = 1e-15 * h * u * u * law.slope(u);
            EXPECT_NEAR(own.energy.dissipated_J, h * u * y, 1e-14 * size * size + blur) << law.name;
            EXPECT_GE(own.energy.dissipated_J, 0.0);
          }
        }
      }
    }
  }
}

/// The most often that a law is evaluated in a step, over impedances and waves; `slope_error` is a factor of its slope.
int most_evaluations(double slope_error) {
  int calls = 0, most = 0;
  const NonlinearResistance part(one_port(Causality::effort_in), [&](double u) {
    ++calls;
    const double x = u / 0.045, bent = std::min(x, 40.0), rise = std::exp(bent);
    return PortLawValue{1e-9 * (std::expm1(bent) + rise * (x - bent)),
                        slope_error * 1e-9 / 0.045 * rise};
  });
  for (double gamma = 1e-6; gamma < 2e6; gamma *= 10.0) {
    for (double a = 1e-8; a < 2e8; a *= 3.0) {
      for (const double sign : {1.0, -1.0}) {
        calls = 0;
        step_of(part, 1e-7, gamma, sign * a);
        most = std::max(most, calls);
      }
    }
  }
  return most;
}

TEST(PortLaws, SolveExponentialsInFewEvaluations) {
  EXPECT_LE(most_evaluations(1.0), 24);
  EXPECT_GT(most_evaluations(0.2), 40);  // control: slopes that are wrong
}

TEST(PortLaws, RefuseWhatIsNoResistance) {
  const auto refused = [](const std::function<double(double)>& phi) {
    try {
      const NonlinearResistance part(one_port(Causality::flow_in), [phi](double u) {
        return PortLawValue{phi(u), 1.0};
      });
    } catch (const ConfigError& error) {
      return error.issues().size();
    }
    return std::size_t{0};
  };
  EXPECT_EQ(refused([](double u) { return u; }), 0U);
  EXPECT_GT(refused([](double u) { return u + 1.0; }), 0U);
  EXPECT_GT(refused([](double u) { return -u; }), 0U);
  EXPECT_GT(refused([](double u) { return u > 1e3 ? 5.0 : u; }), 0U);
  EXPECT_GT(refused([](double u) { return std::exp(u) - 1.0; }), 0U);
}

// A nonlinear resistance beside a storage: Q' = u, y = Q/C + φ(u), at one, two and three stages.
class ChargedLaw final : public Subsystem {
 public:
  ChargedLaw()
      : Subsystem(
            {"charged", {{"Q", "C"}}, {{"port", Causality::flow_in, Domain::electrical, 1}}, {}}),
        structure_(Structure::zero(1, 1)) {
    structure_.G.insert(0, 0) = 1.0;
  }
  double storage(const double* x) const override { return 0.5 * x[0] * x[0] / kC; }
  void gradient(const double* x, double* g) const override { g[0] = x[0] / kC; }
  void discrete_gradient(const double* x, const double* y, double* g) const override {
    g[0] = 0.5 * (x[0] + y[0]) / kC;
  }
  void discrete_gradient_jacobian(const double*, const double*,
                                  std::vector<Eigen::Triplet<double>>& j) const override {
    j.emplace_back(0, 0, 0.5 / kC);
  }
  bool hessian(const double*, std::vector<Eigen::Triplet<double>>& j) const override {
    j.emplace_back(0, 0, 1.0 / kC);
    return true;
  }
  const Structure& structure() const override { return structure_; }
  bool has_port_laws() const override { return true; }
  PortLawValue port_law(int, double u) const override {
    return {kR * u + u * u * u, kR + 3.0 * u * u};
  }
  static constexpr double kC = 0.4, kR = 0.7;

 private:
  Structure structure_;
};

// With e + γf = w(t) at the port: γf + Q/C + φ(f) = w. By classical Runge-Kutta with bisection.
double charge_by_runge_kutta(double gamma, double end_s, int steps) {
  const auto flow = [gamma](double t, double Q) {
    const double w = 3.0 * std::sin(2.0 * t) + 1.0;
    double low = -100.0, high = 100.0;
    for (int i = 0; i < 200; ++i) {
      const double f = 0.5 * (low + high);
      (gamma * f + Q / ChargedLaw::kC + ChargedLaw::kR * f + f * f * f > w ? high : low) = f;
    }
    return 0.5 * (low + high);
  };
  double Q = 0.3;
  const double h = end_s / steps;
  for (int n = 0; n < steps; ++n) {
    const double t = n * h;
    const double k1 = flow(t, Q), k2 = flow(t + h / 2, Q + h / 2 * k1);
    const double k3 = flow(t + h / 2, Q + h / 2 * k2), k4 = flow(t + h, Q + h * k3);
    Q += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
  }
  return Q;
}

double charge_by_stages(int stages, double gamma, double end_s, int steps) {
  const std::shared_ptr<const Component> part = staged_part(std::make_shared<ChargedLaw>(), stages);
  const Component* const parts[] = {part.get()};
  const auto batch = part->make_batch(parts);
  const double h = end_s / steps;
  const std::vector<double> impedance(static_cast<std::size_t>(stages), gamma);
  batch->prepare(h, impedance.data());
  AlignedVector record(batch->record_size()), next(batch->record_size());
  double Q = 0.3;
  batch->set_state(0, &Q, record.data());
  const StageRule& rule = gauss_stages(stages);
  std::vector<double> a(static_cast<std::size_t>(stages)), b(a.size());
  for (int n = 0; n < steps; ++n) {
    for (int i = 0; i < stages; ++i) {
      const auto k = static_cast<std::size_t>(i);
      const double t = (n + rule.c[k]) * h;
      a[k] = std::sqrt(rule.b[k]) * (3.0 * std::sin(2.0 * t) + 1.0) / std::sqrt(2.0 * gamma / h);
    }
    batch->freeze({0, 1}, record.data(), nullptr);
    StepEnergy energy;
    EnergyColumns columns;
    columns.change_J = &energy.change_J;
    columns.external_supply_J = &energy.external_supply_J;
    columns.dissipated_J = &energy.dissipated_J;
    EXPECT_TRUE(
        batch->advance({0, 1}, record.data(), a.data(), next.data(), b.data(), columns).ok());
    double in_J = 0.0, size = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      in_J += 0.5 * (a[i] * a[i] - b[i] * b[i]);
      size += a[i] * a[i] + b[i] * b[i];
    }
    EXPECT_NEAR(energy.change_J, in_J - energy.dissipated_J, 1e-13 * (size + energy.dissipated_J));
    EXPECT_GT(energy.dissipated_J, 0.0);
    record.swap(next);
  }
  batch->get_state(0, record.data(), &Q);
  return Q;
}

TEST(PortLaws, KeepTheOrderOfStages) {
  const double exact = charge_by_runge_kutta(0.9, 2.0, 4000);
  for (const int stages : {1, 2, 3}) {
    const double coarse = std::abs(charge_by_stages(stages, 0.9, 2.0, 12) - exact);
    const double fine = std::abs(charge_by_stages(stages, 0.9, 2.0, 24) - exact);
    EXPECT_GT(std::log2(coarse / fine), 2.0 * stages - 0.35)
        << stages << ' ' << coarse << ' ' << fine;
    EXPECT_LT(coarse, stages == 1 ? 1e-2 : 1e-5);
  }
}

TEST(PortLaws, TakeNoSubsteps) {
  EXPECT_THROW((void)staged_part(std::make_shared<ChargedLaw>(), 1, 2), ConfigError);
}

}  // namespace
}  // namespace portwave::test_port_laws
