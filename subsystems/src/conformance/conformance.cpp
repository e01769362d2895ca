#include "portwave/subsystems/conformance/conformance.hpp"

#include "conformance/conformance_tools.hpp"
#include "portwave/subsystems/base/typical_state.hpp"

// The laws of a part's physics. Those of its step are in conformance_steps.cpp.

namespace portwave {
namespace {

using conformance::gradient_at;
using conformance::moved;
using conformance::moved_size;
using conformance::Sampler;
using conformance::Tally;
using Eigen::MatrixXd;
using Eigen::VectorXd;

VectorXd discrete_gradient_at(const Subsystem& part, const VectorXd& x, const VectorXd& x_next) {
  VectorXd g(x.size());
  part.discrete_gradient(x.data(), x_next.data(), g.data());
  return g;
}

MatrixXd jacobian_at(const Subsystem& part, const VectorXd& x, const VectorXd& x_next) {
  std::vector<Eigen::Triplet<double>> entries;
  part.discrete_gradient_jacobian(x.data(), x_next.data(), entries);
  MatrixXd jacobian = MatrixXd::Zero(x.size(), x.size());
  for (const auto& d : entries) jacobian(d.row(), d.col()) += d.value();
  return jacobian;
}

std::string state_name(const Subsystem& part, Eigen::Index i) {
  return part.signature().states[static_cast<std::size_t>(i)].name;
}

void see_issues(Tally& tally, const Issues& issues, const std::string& where) {
  for (const Issue& issue : issues) tally.fail(issue.where + ": " + issue.what + where);
}

void see_identity(Tally& tally, const Subsystem& part, const VectorXd& x, const VectorXd& x_next,
                  const std::string& where) {
  const VectorXd g = discrete_gradient_at(part, x, x_next);
  const VectorXd dx = x_next - x;
  const double before = part.storage(x.data());
  const double after = part.storage(x_next.data());
  if (!std::isfinite(after)) return;
  const double power = g.dot(moved(part, dx));
  const double size = std::abs(before) + std::abs(after) + g.cwiseAbs().dot(moved_size(part, dx));
  tally.see(std::abs(power - (after - before)), 1e-13 * size, [&] {
    return fmt::format("energy identity off by {:.3e} J at |H| = {:.3e} J, {}",
                       power - (after - before), std::abs(after), where);
  });
}

/// |∇̄H(x, x + Δx) − ∇H(x)| ≤ 4|∂∇̄H||Δx| and round-off; with Δx = 0 this is consistency. A component may
/// also have its share, along Δx, of what the others have: of a coordinate that H lacks it is all.
void see_limit(Tally& tally, const Subsystem& part, const VectorXd& x, const VectorXd& dx,
               const std::string& where) {
  const VectorXd x_next = x + dx;
  const VectorXd g = gradient_at(part, x);
  const VectorXd defect = (discrete_gradient_at(part, x, x_next) - g).cwiseAbs();
  const MatrixXd slope = jacobian_at(part, x, x).cwiseAbs();
  const VectorXd size = dx.cwiseAbs();
  VectorXd allowed = 4.0 * slope * size + 1e-11 * (g.cwiseAbs() + slope * x.cwiseAbs());
  if (size.maxCoeff() > 0.0) {
    const VectorXd along = size / size.stableNorm();
    allowed += along.dot(allowed) * along;
  }
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    if (defect[i] == 0.0) continue;
    tally.see(defect[i], allowed[i], [&] {
      return fmt::format("discrete gradient off the gradient by {:.3e} in {}, {}", defect[i],
                         state_name(part, i), where);
    });
  }
}

}  // namespace

LawReport check_structure(const Subsystem& part, const ConformanceOptions& options) {
  Tally tally("structure");
  const Signature& signature = part.signature();
  const int n = signature.state_size();
  const int m = signature.wave_size() + signature.input_size();
  StructureRules rules;
  rules.allow_active = part.is_active();
  rules.names = variable_names(signature);
  const Issues issues = validate(part.structure(), n, m, rules);
  tally.see(0.0, 1.0, [&] { return fmt::format("{} states, {} ports and inputs", n, m); });
  see_issues(tally, issues, "");
  if (part.default_state().size() != static_cast<std::size_t>(n)) {
    tally.fail("the default state has not one entry per state");
  }
  if (!issues.empty() || part.constant_structure()) return std::move(tally).report();

  Sampler sampler(part, options);
  for (int trial = 0; trial < 4 * options.trials; ++trial) {
    Structure structure = part.structure();
    part.structure_at(sampler.state().data(), structure);
    see_issues(tally, validate(structure, n, m, rules),
               fmt::format(" at midpoint {}, seed={}", trial, options.seed));
    const VectorXd x = sampler.state(), dx = sampler.state() - x;
    for (const double step_s : options.steps_s) {
      part.structure_over(x.data(), dx.data(), step_s, structure);
      see_issues(tally, validate(structure, n, m, rules),
                 fmt::format(" over a step {} of {} s, seed={}", trial, step_s, options.seed));
    }
  }
  return std::move(tally).report();
}

LawReport check_gradient(const Subsystem& part, const ConformanceOptions& options) {
  Tally tally("gradient");
  Sampler sampler(part, options);
  for (int trial = 0; trial < options.trials; ++trial) {
    VectorXd x = sampler.state();
    VectorXd g = gradient_at(part, x);
    if (const SparseMatrix* E = part.linear_form().E) g = E->transpose() * g;
    for (Eigen::Index i = 0; i < x.size(); ++i) {
      const double middle = x[i];
      DifferenceCheck check{0.0, 0.0, 0.0, difference_step(sampler.usual()[i], middle)};
      const auto quotient = [&](double reach) {
        x[i] = middle + reach;
        const double ahead = part.storage(x.data());
        x[i] = middle - reach;
        const double back = part.storage(x.data());
        x[i] = middle;
        check.magnitude = std::max({check.magnitude, std::abs(ahead), std::abs(back)});
        return (ahead - back) / (2.0 * reach);
      };
      check.fine = quotient(check.step);
      check.coarse = quotient(2.0 * check.step);
      if (!check.is_finite()) continue;
      tally.see(std::abs(check.fine - g[i]), check.allowed(g[i]), [&] {
        return fmt::format("dH/d{} = {:.9g}, by differences {:.9g}, trial={}, seed={}",
                           state_name(part, i), g[i], check.fine, trial, options.seed);
      });
    }
  }
  return std::move(tally).report();
}

LawReport check_discrete_gradient(const Subsystem& part, const ConformanceOptions& options) {
  Tally tally("discrete_gradient");
  Sampler sampler(part, options);
  for (int trial = 0; trial < options.trials; ++trial) {
    const VectorXd x = sampler.state();
    if (x.size() == 0) break;
    const auto where = [&](double scale) {
      return fmt::format("|dx| ~ {:g}, trial={}, seed={}", scale, trial, options.seed);
    };
    see_limit(tally, part, x, VectorXd::Zero(x.size()), where(0.0));
    for (double scale = 1.0; scale > 5e-16; scale *= 0.1) {
      const VectorXd dx = sampler.direction(scale * options.state_scale);
      see_identity(tally, part, x, x + dx, where(scale));
      const Eigen::Index axis = trial % x.size();
      const VectorXd along = dx[axis] * VectorXd::Unit(x.size(), axis);
      see_identity(tally, part, x, x + along, where(scale) + ", axis " + state_name(part, axis));
      if (scale < 1e-4) see_limit(tally, part, x, dx, where(scale));
    }
  }
  return std::move(tally).report();
}

LawReport check_discrete_gradient_jacobian(const Subsystem& part,
                                           const ConformanceOptions& options) {
  Tally tally("discrete_gradient_jacobian");
  Sampler sampler(part, options);
  for (int trial = 0; trial < options.trials; ++trial) {
    const VectorXd x = sampler.state();
    const VectorXd x_next = x + sampler.direction(0.5 * options.state_scale);
    if (!std::isfinite(part.storage(x_next.data()))) continue;
    const MatrixXd jacobian = jacobian_at(part, x, x_next);
    for (Eigen::Index j = 0; j < x.size(); ++j) {
      const double step = difference_step(sampler.usual()[j], x_next[j]);
      const VectorXd reach = step * VectorXd::Unit(x.size(), j);
      const VectorXd ahead = discrete_gradient_at(part, x, x_next + reach);
      const VectorXd back = discrete_gradient_at(part, x, x_next - reach);
      const VectorXd far = (discrete_gradient_at(part, x, x_next + 2.0 * reach) -
                            discrete_gradient_at(part, x, x_next - 2.0 * reach)) /
                           (4.0 * step);
      // Every component may carry the round-off of the largest, and that of H over |Δx|.
      const double magnitude = ahead.cwiseAbs().maxCoeff() + back.cwiseAbs().maxCoeff() +
                               std::abs(part.storage(x.data())) / (x_next - x).norm();
      for (Eigen::Index i = 0; i < x.size(); ++i) {
        const DifferenceCheck check{(ahead[i] - back[i]) / (2.0 * step), far[i], magnitude, step};
        if (!check.is_finite()) continue;
        tally.see(std::abs(check.fine - jacobian(i, j)), check.allowed(jacobian(i, j)), [&] {
          return fmt::format("entry ({}, {}) = {:.9g}, by differences {:.9g}, trial={}, seed={}",
                             state_name(part, i), state_name(part, j), jacobian(i, j), check.fine,
                             trial, options.seed);
        });
      }
    }
  }
  return std::move(tally).report();
}

std::vector<LawReport> check_all(const Subsystem& part, const ConformanceOptions& options) {
  std::vector<LawReport> reports;
  reports.push_back(check_structure(part, options));
  reports.push_back(check_gradient(part, options));
  reports.push_back(check_discrete_gradient(part, options));
  reports.push_back(check_discrete_gradient_jacobian(part, options));
  reports.push_back(check_energy_law(part, options));
  if (options.nonexpansive.value_or(part.is_linear() && !part.is_active())) {
    reports.push_back(check_nonexpansive(part, options));
  }
  reports.push_back(check_order_of_convergence(part, options));
  reports.push_back(check_orders_of_stages(part, options));
  reports.push_back(check_damped_stages(part, options));
  reports.push_back(check_one_sided(part, options));
  reports.push_back(check_rest_under_load(part, options));
  reports.push_back(check_frozen_map_purity(part, options));
  reports.push_back(check_inexact_scatter(part, options));
  reports.push_back(check_affine_form(part, options));
  reports.push_back(check_batch_equals_newton(part, options));
  reports.push_back(check_lane_independence(part, options));
  return reports;
}

}  // namespace portwave
