#include "adapters/fmi/fmu_forecast.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <Eigen/QR>

namespace portwave::fmi {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

Index index(std::size_t i) { return static_cast<Index>(i); }

}  // namespace

Forecast::Forecast(std::size_t ports, std::size_t others)
    : ports_(ports),
      others_(others),
      first_(ports, others),
      next_(ports, others),
      past_(kMostLags, PortStep(ports, others)),
      row_(index(columns(kMostLags))),
      miss_(index(ports)),
      scaled_(index(ports)),
      largest_(index(ports)),
      secant_(index(ports), index(ports)),
      eigen_(index(ports)) {}

std::size_t Forecast::columns(std::size_t lags) const {
  const std::size_t inputs = ports_ + others_;
  return ports_ + inputs + lags * (inputs + 2 * ports_) + 1;
}

std::size_t Forecast::steps_to_fit(std::size_t ports, std::size_t others) {
  constexpr std::size_t kRuns = 3, kSpare = 2;
  const std::size_t columns = Forecast(ports, others).columns(kMostLags);
  return kMostLags + (3 * columns / 2 + kRuns - 1) / kRuns + kSpare;
}

template <class Past>
void Forecast::fill(std::size_t lags, const Past& past, Eigen::Ref<VectorXd> row) const {
  const Index p = index(ports_), inputs = index(ports_ + others_);
  Index at = p + inputs;
  for (std::size_t lag = 1; lag <= lags; ++lag) {
    const PortStep& own = past(lag);
    row.segment(at, inputs) = own.inputs;
    row.segment(at + inputs, p) = own.mean - own.end;
    row.segment(at + inputs + p, p) = own.end - own.begin;
    at += inputs + 2 * p;
  }
  row[at] = 1.0;
}

void Forecast::fit(std::span<const std::vector<PortStep>> runs, const AffineAnswer& first,
                   const MatrixXd& through) {
  constexpr double kExact = 1e-9, kLinear = 1e-6, kRankless = 1e-10, kRough = 0.01;
  constexpr double kWorthwhile = 0.1;
  first_ = first;
  const Index p = index(ports_), inputs = index(ports_ + others_);
  // Without any step before: the answer at the beginning, and what an input changes.
  thetas_.assign(1, MatrixXd::Zero(p, index(columns(0))));
  thetas_[0].middleCols(p, inputs) = first.slopes;
  thetas_[0].middleCols(p, p) -= through;
  lags_ = 0;
  misfit_ = std::numeric_limits<double>::infinity();
  for (std::size_t lags = 1; lags <= kMostLags && misfit_ > kExact; ++lags) {
    std::size_t rows = 0;
    for (const auto& run : runs) rows += run.size() > lags ? run.size() - lags : 0;
    const std::size_t count = columns(lags);
    if (rows < count + 1) break;
    MatrixXd matrix(index(rows), index(count)), right(index(rows), p);
    Index at = 0;
    VectorXd row(index(count));
    for (const auto& run : runs) {
      for (std::size_t n = lags; n < run.size(); ++n, ++at) {
        row.head(p) = run[n].begin;
        row.segment(p, inputs) = run[n].inputs;
        fill(
            lags, [&](std::size_t lag) -> const PortStep& { return run[n - lag]; }, row);
        matrix.row(at) = row;
        right.row(at) = run[n].mean - run[n].begin;
      }
    }
    VectorXd scales = matrix.cwiseAbs().colwise().maxCoeff();
    for (double& own : scales) own = own > 0.0 ? own : 1.0;
    matrix *= scales.cwiseInverse().asDiagonal();
    // What goes beyond the slopes of the first step; of a fit that is not exact, without what is below its error.
    MatrixXd base = MatrixXd::Zero(index(count), p);
    base.topRows(p + inputs) = thetas_[0].leftCols(p + inputs).transpose();
    base = (scales.asDiagonal() * base).eval();
    const MatrixXd beyond = right - matrix * base;
    const double largest = right.cwiseAbs().maxCoeff();
    MatrixXd scaled;
    double misfit = 0.0;
    for (double threshold = kRankless;; threshold = std::min(misfit, kRough)) {
      Eigen::CompleteOrthogonalDecomposition<MatrixXd> solver;
      solver.setThreshold(threshold);
      solver.compute(matrix);
      scaled = base + solver.solve(beyond);
      const double error = (matrix * scaled - right).cwiseAbs().maxCoeff();
      misfit = largest > 0.0 ? error / largest : 0.0;
      if (threshold > kRankless || misfit <= kLinear) break;
    }
    if (!scaled.allFinite()) break;
    thetas_.emplace_back((scales.cwiseInverse().asDiagonal() * scaled).transpose());
    if (misfit < kWorthwhile * misfit_ || lags == 1) {
      misfit_ = misfit;
      lags_ = lags;
    }
  }
  begin();
}

void Forecast::begin() {
  steps_ = 0;
  secant_.setZero();
  largest_.setZero();
  plain_ = by_secant_ = size_ = 0.0;
  next_ = first_;
  keep_passive();
}

/// By the answer at the beginning as it was, whatever was foretold of it.
void Forecast::learn(const PortStep& step) {
  constexpr double kKept = 0.8;    // of what was missed before
  constexpr double kDecay = 0.95;  // of the largest input
  constexpr double kSmall = 0.01;  // squares of inputs from which little is learnt
  const Index p = index(ports_);
  const MatrixXd& theta = thetas_[lags_];
  const auto u = step.inputs.head(p);
  row_.head(p) = step.begin;
  row_.segment(p, step.inputs.size()) = step.inputs;
  miss_ = step.mean - step.begin;
  miss_.noalias() -= theta * row_.head(theta.cols());
  plain_ = kKept * plain_ + miss_.squaredNorm();
  miss_.noalias() -= secant_ * u;
  by_secant_ = kKept * by_secant_ + miss_.squaredNorm();
  largest_ = u.cwiseAbs().cwiseMax(kDecay * largest_);
  for (Index j = 0; j < p; ++j) scaled_[j] = largest_[j] > 0.0 ? u[j] / largest_[j] : 0.0;
  const double square = scaled_.squaredNorm() + kSmall;
  for (Index j = 0; j < p; ++j) {
    if (largest_[j] > 0.0) secant_.col(j) += miss_ * (scaled_[j] / (square * largest_[j]));
  }
}

void Forecast::take(const PortStep& step, const MatrixXd& through) {
  size_ = std::max(size_, step.mean.norm());
  if (is_settled()) learn(step);
  past_[steps_ % kMostLags] = step;
  ++steps_;
  foretell(through);
}

void Forecast::foretell(const MatrixXd& through) {
  const std::size_t lags = std::min(steps_, lags_);
  const MatrixXd& theta = thetas_[lags];
  const Index p = index(ports_), inputs = index(ports_ + others_);
  const PortStep& last = past_[(steps_ - 1) % kMostLags];
  next_.at = last.inputs;
  row_.head(p) = last.end;
  row_.segment(p, inputs) = last.inputs;
  fill(
      lags, [&](std::size_t lag) -> const PortStep& { return past_[(steps_ - lag) % kMostLags]; },
      row_);
  next_.y.noalias() = theta * row_.head(theta.cols());
  next_.y += last.end;
  constexpr double kBetter = 0.5, kRounding = 1e-9;
  const bool is_beyond_rounding = plain_ > kRounding * kRounding * size_ * size_;
  const bool by_secant = is_settled() && is_beyond_rounding && by_secant_ < kBetter * plain_;
  if (by_secant) next_.y.noalias() += secant_ * last.inputs.head(p);
  next_.slopes = theta.middleCols(p, inputs);
  next_.slopes.leftCols(p) += through;
  if (by_secant) next_.slopes.leftCols(p) += secant_;
  next_.slopes.leftCols(p).noalias() += theta.leftCols(p) * through;
  keep_passive();
}

void Forecast::keep_passive() {
  const Index p = index(ports_);
  auto slopes = next_.slopes.leftCols(p);
  if (!slopes.allFinite()) return;
  const MatrixXd symmetric = 0.5 * (slopes + slopes.transpose());
  eigen_.compute(symmetric);
  if (eigen_.eigenvalues().minCoeff() >= 0.0) return;
  slopes += eigen_.eigenvectors() * (-eigen_.eigenvalues()).cwiseMax(0.0).asDiagonal() *
            eigen_.eigenvectors().transpose();
}

double available_energy(const MatrixXd& Y, const VectorXd& y, double h) {
  constexpr double kSmall = 1e-9;
  if (!Y.allFinite() || !y.allFinite()) return 0.0;
  const Eigen::SelfAdjointEigenSolver<MatrixXd> eigen(0.5 * (Y + Y.transpose()));
  const double most = eigen.eigenvalues().maxCoeff();
  double sum = 0.0;
  for (Index k = 0; k < y.size(); ++k) {
    const double value = eigen.eigenvalues()[k];
    const double share = eigen.eigenvectors().col(k).dot(y);
    if (value > kSmall * most && value > 0.0) sum += 0.25 * h * share * share / value;
  }
  return sum;
}

}  // namespace portwave::fmi
