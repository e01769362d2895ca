#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "network/iteration/waveform_impl.hpp"
#include "network/linear_solver.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave {
namespace {

/// The settings of an iteration with everything chosen that was left open; defects are collected.
class Resolver {
 public:
  Resolver(const CondensedSystem& system, double step_s, const DynamicIteration& given)
      : system_(system), h_(step_s), given_(given) {}

  DynamicParameters resolve() {
    out_.kind = given_.kind;
    check_numbers();
    choose_integrator();
    if (given_.kind == IterationKind::lions_mercier) {
      choose_metric();
      check_parts();
      throw_if_any(std::move(issues_));
      choose_weights();
      throw_if_any(std::move(issues_));
      bound();
    }
    throw_if_any(std::move(issues_));
    return out_;
  }

 private:
  void fail(std::string where, std::string what) {
    issues_.push_back({std::move(where), std::move(what)});
  }
  void expect(bool good, const char* where, const char* range, double value) {
    if (!good) fail(where, fmt::format("must be {}, got {}", range, shown_number(value)));
  }

  void check_numbers() {
    expect(h_ > 0.0 && std::isfinite(h_), "/time/step_s", "> 0 and finite", h_);
    expect(given_.iterations >= 0, "/method/iterations", ">= 0", given_.iterations);
    expect(given_.tolerance >= 0.0 && std::isfinite(given_.tolerance), "/method/tolerance",
           ">= 0 and finite", given_.tolerance);
    expect(given_.window_steps >= 1, "/method/window_steps", ">= 1", given_.window_steps);
    if (given_.kind != IterationKind::lions_mercier) {
      expect(given_.divergence_limit > 1.0, "/method/divergence_limit", "> 1",
             given_.divergence_limit);
      return;
    }
    const auto positive = [](double v) { return v > 0.0 && std::isfinite(v); };
    if (given_.lambda)
      expect(positive(*given_.lambda), "/method/lambda", "> 0 and finite", *given_.lambda);
    if (given_.mu)
      expect(*given_.mu >= 0.0 && std::isfinite(*given_.mu), "/method/mu", ">= 0 and finite",
             *given_.mu);
    if (given_.omega)
      expect(*given_.omega >= 0.0 && std::isfinite(*given_.omega), "/method/omega",
             ">= 0 and finite", *given_.omega);
    if (given_.omega && given_.mu && *given_.omega < *given_.mu) {
      fail("/method/omega",
           fmt::format("must not be below mu ({} < {}): the iteration then need not converge",
                       *given_.omega, *given_.mu));
    }
    expect(given_.alpha >= 0.0 && given_.alpha <= 1.0, "/method/alpha", "between 0 and 1",
           given_.alpha);
  }

  void choose_integrator() {
    const bool singular = system_.analysis().algebraic > 0;
    out_.integrator = given_.integrator;
    if (given_.integrator == Integrator::automatic) {
      out_.integrator = singular ? Integrator::radau_iia : Integrator::midpoint;
    } else if (singular && given_.integrator == Integrator::midpoint) {
      fail("/method/integrator",
           "the system has algebraic equations (E is singular): take \"radau-iia\"");
    }
  }

  void choose_metric() {
    out_.metric = given_.metric;
    if (given_.metric == IterationMetric::automatic) {
      out_.metric = system_.has_descriptor() ? IterationMetric::identity : IterationMetric::energy;
    } else if (given_.metric == IterationMetric::energy && system_.has_descriptor()) {
      fail("/method/metric",
           "\"energy\" needs E = I, and there are descriptor parts: take \"identity\"");
    }
  }

  void check_parts() {
    for (const CondensedBlock& block : system_.blocks()) {
      const std::string& name = system_.system().parts()[static_cast<std::size_t>(block.part)].name;
      const std::string where = fmt::format("/subsystems/{}", block.part);
      if (!is_positive_semidefinite(block.R)) {
        fail(where, fmt::format("\"{}\" creates energy (R is not positive semidefinite): "
                                "Lions-Mercier iteration needs monotone parts",
                                name));
      }
      LinearSolver Q;
      if (out_.metric == IterationMetric::identity && !Q.factorise(block.Q)) {
        fail(where,
             fmt::format("\"{}\" has a singular Q, with which z = Qx is no substitute for x{}",
                         name, block.is_descriptor ? "" : ": take the metric \"energy\""));
      }
    }
  }

  void choose_weights() {
    const double length = h_ * given_.window_steps;
    const bool midpoint = out_.integrator == Integrator::midpoint;
    out_.alpha = given_.alpha;
    out_.mu = given_.mu.value_or(0.9 / length);
    if (given_.omega) {
      // A μ that is chosen keeps the norm from rising.
      const double decay = h_ * *given_.omega;
      const double most = (midpoint ? std::tanh(decay) : -std::expm1(-decay)) / h_;
      if (!given_.mu) out_.mu = std::min(out_.mu, most);
      out_.omega = *given_.omega;
      return;
    }
    const double decay = h_ * out_.mu;
    if (decay >= 1.0) {
      fail("/method/mu",
           fmt::format("no omega makes the norm fall when step_s * mu >= 1: must be below {:.6g}, "
                       "got {}",
                       1.0 / h_, out_.mu));
      return;
    }
    out_.omega = (midpoint ? std::atanh(decay) : -std::log1p(-decay)) / h_;
  }

  void bound() {
    out_.bounds = lions_mercier_bounds(system_, h_, given_.lambda.value_or(0.0), out_.mu,
                                       out_.omega, out_.alpha, out_.integrator, out_.metric);
    out_.lambda = given_.lambda.value_or(out_.bounds.optimal_lambda);
    if (out_.bounds.x_converges()) return;
    const int part = system_.blocks()[static_cast<std::size_t>(out_.bounds.failing_block)].part;
    fail(fmt::format("/subsystems/{}", part),
         fmt::format(
             "the iteration need not converge: in \"{}\" neither rank[mu E, (1-alpha) R] nor "
             "rank[E, alpha R] is full (mu = {}, alpha = {}): it has states that neither store nor "
             "dissipate energy",
             system_.system().parts()[static_cast<std::size_t>(part)].name, out_.mu, out_.alpha));
  }

  const CondensedSystem& system_;
  double h_;
  const DynamicIteration& given_;
  DynamicParameters out_;
  Issues issues_;
};

}  // namespace

DynamicParameters resolve_parameters(const CondensedSystem& system, double step_s,
                                     const DynamicIteration& given) {
  return Resolver(system, step_s, given).resolve();
}

}  // namespace portwave
