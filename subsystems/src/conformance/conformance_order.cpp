#include <array>
#include <complex>

#include <Eigen/Eigenvalues>

#include "conformance/conformance_tools.hpp"
#include "core/port_closure.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"

// The order of convergence of a part's step, terminated by wave sources.

namespace portwave {
namespace {

using conformance::own_batch;
using conformance::Sampler;
using conformance::Tally;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr Eigen::Index kLargestEigenproblem = 200;

MatrixXd hessian_at(const Subsystem& part, const VectorXd& x) {
  std::vector<Eigen::Triplet<double>> entries;
  part.discrete_gradient_jacobian(x.data(), x.data(), entries);
  MatrixXd hessian = MatrixXd::Zero(x.size(), x.size());
  for (const auto& d : entries) hessian(d.row(), d.col()) += 2.0 * d.value();
  return hessian;
}

/// The largest finite |λ| with det(λE − A) = 0, by the eigenvalues 1/(s − λ) of (sE − A)⁻¹E: from
/// an s far above it down to its size, where those of finite λ stand out from the others, which are
/// 0.
double fastest_descriptor_rate(const MatrixXd& E, const MatrixXd& A) {
  if (E.cwiseAbs().maxCoeff() == 0.0) return 0.0;
  double smallest = E.cwiseAbs().maxCoeff();
  for (const double entry : E.reshaped()) {
    if (entry != 0.0) smallest = std::min(smallest, std::abs(entry));
  }
  double s = 1e3 * A.cwiseAbs().rowwise().sum().maxCoeff() / smallest;
  double fastest = 0.0;
  for (int k = 0; k < 20; ++k) {
    const MatrixXd shifted = lu_solve(s * E - A, E);
    const Eigen::VectorXcd all = shifted.eigenvalues();
    const double largest = all.cwiseAbs().maxCoeff();
    fastest = 0.0;
    for (const std::complex<double>& each : all) {
      if (std::abs(each) > 1e-3 * largest) fastest = std::max(fastest, std::abs(s - 1.0 / each));
    }
    if (!(fastest < 0.25 * s)) break;
    s = std::max(2.0 * fastest, 1e-4 * s);
  }
  return fastest;
}

/// The fastest rate [1/s] of the part linearised at x with its ports terminated by γ.
double fastest_rate(const Subsystem& part, const VectorXd& x, const VectorXd& impedance) {
  const Eigen::Index n = x.size();
  const Eigen::Index p = impedance.size();
  if (n == 0) return 0.0;
  Structure s = part.structure();
  part.structure_at(x.data(), s);
  const auto closures = port_closures(part.signature(), 1.0, impedance.data());
  const MatrixXd B = MatrixXd(s.G - s.P).leftCols(p);
  const MatrixXd C = MatrixXd(SparseMatrix(s.G + s.P)).leftCols(p).transpose();
  MatrixXd M = MatrixXd(SparseMatrix(s.S + s.N)).topLeftCorner(p, p);
  MatrixXd closed = MatrixXd(SparseMatrix(s.J - s.R));
  for (Eigen::Index j = 0; j < p; ++j) {
    const PortClosure& port = closures[static_cast<std::size_t>(j)];
    M(j, j) += port.alpha / port.beta;
  }
  if (p > 0) closed -= B * lu_solve(M, C);
  if (const LinearForm form = part.linear_form(); form.E != nullptr) {
    if (n > kLargestEigenproblem) return 0.0;
    return fastest_descriptor_rate(MatrixXd(*form.E), closed * MatrixXd(*form.Q));
  }
  const MatrixXd rates = closed * hessian_at(part, x);
  if (n > kLargestEigenproblem) return rates.cwiseAbs().rowwise().sum().maxCoeff();
  return rates.eigenvalues().cwiseAbs().maxCoeff();
}

struct Run {
  LaneStatus status;
  VectorXd x;
};

/// `steps` steps of h from x, driven by e ± γf = w_j(t) and u_x(t), sines of the given rate.
Run run(const Subsystem& part, const ConformanceOptions& options, const VectorXd& impedance,
        const VectorXd& x_0, double rate, double h, int steps) {
  const auto batch = own_batch(part);
  batch->prepare(h, impedance.data());
  const auto closures = port_closures(part.signature(), h, impedance.data());
  const VectorXd drive = options.wave_scale * (2.0 * rate * impedance.array()).sqrt();
  AlignedVector record(batch->record_size()), next(batch->record_size());
  batch->set_state(0, x_0.data(), record.data());
  VectorXd a = VectorXd::Zero(impedance.size()), b = a;
  VectorXd input = VectorXd::Zero(part.signature().input_size());
  for (int k = 0; k < steps; ++k) {
    const double phase = rate * (k + 0.5) * h;
    for (Eigen::Index j = 0; j < a.size(); ++j) {
      const double wave = drive[j] * std::sin(phase + static_cast<double>(j));
      a[j] = wave / closures[static_cast<std::size_t>(j)].s;
    }
    for (Eigen::Index j = 0; j < input.size(); ++j) {
      input[j] = options.input_scale * std::sin(0.7 * phase - static_cast<double>(j));
    }
    batch->freeze({0, 1}, record.data(), input.data());
    const LaneStatus status =
        batch->advance({0, 1}, record.data(), a.data(), next.data(), b.data(), {});
    if (!status.ok()) return {status, x_0};
    record.swap(next);
  }
  VectorXd x = x_0;
  batch->get_state(0, record.data(), x.data());
  return {{}, x};
}

}  // namespace

LawReport check_order_of_convergence(const Subsystem& part, const ConformanceOptions& options) {
  constexpr double kMargin = 0.25;
  Tally tally("order_of_convergence");
  Sampler sampler(part, options);
  for (int trial = 0; trial < options.trials; ++trial) {
    const std::string where = fmt::format("trial={}, seed={}", trial, options.seed);
    const VectorXd impedance = sampler.impedance();
    VectorXd x_0 = sampler.state();
    if (!part.check_initial_state(x_0.data()).empty()) {
      const std::vector<double> by_default = part.default_state();
      x_0 = Eigen::Map<const VectorXd>(by_default.data(), x_0.size());
    }
    const double rate = fastest_rate(part, x_0, impedance);
    if (!(rate > 0.0) || !std::isfinite(rate)) continue;

    constexpr int kSteps = 10;
    const double h = 0.1 / rate;
    std::array<VectorXd, 4> x;
    for (int level = 0; level < 4; ++level) {
      const int finer = 1 << level;
      const Run done = run(part, options, impedance, x_0, rate, h / finer, kSteps * finer);
      if (!done.status.ok()) {
        tally.fail(fmt::format("port solve: {}, h={:g}, {}", to_string(done.status.fault),
                               h / finer, where));
        return std::move(tally).report();
      }
      x[static_cast<std::size_t>(level)] = done.x;
    }
    // States of mixed units are compared by the energy that they stand for.
    VectorXd weight = hessian_at(part, x_0).diagonal().cwiseAbs();
    weight = weight.unaryExpr([](double v) { return v > 0.0 ? std::sqrt(v) : 1.0; });
    // Of descriptor parts that is the energy itself: their algebraic components are midpoint
    // values.
    const bool has_algebraic = part.linear_form().E != nullptr;
    const auto length = [&](const VectorXd& v) {
      return has_algebraic ? std::sqrt(std::max(0.0, 2.0 * part.storage(v.data())))
                           : weight.cwiseProduct(v).norm();
    };
    const auto distance = [&](std::size_t i, std::size_t j) { return length(x[i] - x[j]); };
    const double size = length(x[3]) + length(x_0);
    if (distance(2, 3) <= 1e-12 * size) continue;  // exact, or nothing moves
    const double order = std::log2(distance(1, 2) / distance(2, 3));
    tally.see(options.order - order, kMargin, [&] {
      return fmt::format("observed order {:.3f}, expected {:g}, h={:g} and halves, {}", order,
                         options.order, h, where);
    });
  }
  return std::move(tally).report();
}

}  // namespace portwave
