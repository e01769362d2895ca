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
      past_(kKept, PortStep(ports, others)),
      row_(index(columns(kMostLags))),
      before_(row_.size()),
      told_(index(ports)),
      miss_(index(ports)),
      moved_(index(ports)),
      plainly_(ports),
      by_differences_(ports),
      eigen_(index(ports)) {}

Forecast::Misses::Misses(std::size_t ports)
    : secant(index(ports), index(ports)), largest(index(ports)), scaled(index(ports)) {}

void Forecast::Misses::begin() {
  secant.setZero();
  largest.setZero();
  plain = by_secant = 0.0;
}

bool Forecast::Misses::is_better_by_secant() const {
  constexpr double kBetter = 0.5;
  return by_secant < kBetter * plain;
}

void Forecast::Misses::learn(VectorXd& missed, const VectorXd& moved, double least) {
  constexpr double kForgotten = 0.8;  // of what was missed before, this much counts
  constexpr double kDecay = 0.95;     // of the largest move
  constexpr double kSmall = 0.01;     // squares of moves from which little is learnt
  plain = kForgotten * plain + missed.squaredNorm();
  missed.noalias() -= secant * moved;
  by_secant = kForgotten * by_secant + missed.squaredNorm();
  if (moved.norm() <= least) return;
  largest = moved.cwiseAbs().cwiseMax(kDecay * largest);
  for (Index j = 0; j < moved.size(); ++j)
    scaled[j] = largest[j] > 0.0 ? moved[j] / largest[j] : 0.0;
  const double square = scaled.squaredNorm() + kSmall;
  for (Index j = 0; j < moved.size(); ++j) {
    if (largest[j] > 0.0) secant.col(j) += missed * (scaled[j] / (square * largest[j]));
  }
}

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
  constexpr double kExact = 1e-9, kRankless = 1e-10, kRough = 0.01;
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
  bend_ = 0.0;
  double largest_jump = 0.0, off = 0.0;
  for (const auto& run : runs) {
    for (std::size_t n = 1; n < run.size(); ++n) {
      const VectorXd jump = run[n].begin - run[n - 1].end;
      const VectorXd moved = (run[n].inputs - run[n - 1].inputs).head(p);
      largest_jump = std::max(largest_jump, jump.norm());
      off = std::max(off, (jump - through * moved).norm());
    }
  }
  if (through.norm() > 0.0 && largest_jump > 0.0) bend_ = off / largest_jump;
  if (misfit_ > kUseless) {
    lags_ = 0;
    thetas_.resize(1);
  }
  begin();
}

bool Forecast::is_linear() const {
  constexpr double kStraight = 1e-4;  // slopes at once are differences of small moves
  return misfit_ <= kLinear && bend_ <= kStraight;
}

void Forecast::begin() {
  steps_ = 0;
  bent_ = false;
  plainly_.begin();
  by_differences_.begin();
  size_ = 0.0;
  next_ = first_;
  keep_passive();
}

/// The mean of a step by differences from the one before, past(1).
void Forecast::tell_by_differences(const VectorXd& begin, const VectorXd& inputs) {
  const Index p = index(ports_);
  const PortStep& last = past(1);
  const std::size_t lags = std::min(steps_ - 1, lags_);
  const MatrixXd& theta = thetas_[lags];
  row_.head(p) = begin - last.begin;
  row_.segment(p, inputs.size()) = inputs - last.inputs;
  fill(
      lags, [&](std::size_t lag) -> const PortStep& { return past(lag); }, row_);
  fill(
      lags, [&](std::size_t lag) -> const PortStep& { return past(lag + 1); }, before_);
  const Index at = p + inputs.size();
  row_.segment(at, theta.cols() - at) -= before_.segment(at, theta.cols() - at);
  told_ = begin + last.mean - last.begin;
  told_.noalias() += theta * row_.head(theta.cols());
}

/// By the answer at the beginning as it was, whatever was foretold of it.
void Forecast::learn(const PortStep& step) {
  constexpr double kBent = 1e-3;       // of what a first step answers
  constexpr double kLeastMove = 1e-6;  // of the inputs
  const Index p = index(ports_);
  if (steps_ == 0) {
    miss_ = step.mean - first_.y;
    miss_.noalias() -= first_.slopes * (step.inputs - first_.at);
    bent_ = miss_.norm() > kBent * size_;
    return;
  }
  if (is_settled()) {
    const MatrixXd& theta = thetas_[lags_];
    row_.head(p) = step.begin;
    row_.segment(p, step.inputs.size()) = step.inputs;
    fill(
        lags_, [&](std::size_t lag) -> const PortStep& { return past(lag); }, row_);
    miss_ = step.mean - step.begin;
    miss_.noalias() -= theta * row_.head(theta.cols());
    moved_ = step.inputs.head(p);
    plainly_.learn(miss_, moved_, 0.0);
  }
  if (!bent_ && steps_ <= lags_) return;
  tell_by_differences(step.begin, step.inputs);
  miss_ = step.mean - told_;
  moved_ = step.inputs.head(p) - past(1).inputs.head(p);
  by_differences_.learn(miss_, moved_, kLeastMove * step.inputs.head(p).norm());
  const bool is_off = plainly_.plain > kLinear * kLinear * size_ * size_;
  bent_ = bent_ || (is_off && by_differences_.plain <= plainly_.least());
}

void Forecast::take(const PortStep& step, const MatrixXd& through, double least) {
  size_ = std::max({size_, step.mean.norm(), least});
  learn(step);
  past_[steps_ % kKept] = step;
  ++steps_;
  foretell(through);
}

void Forecast::foretell(const MatrixXd& through) {
  constexpr double kRounding = 1e-9;
  const Index p = index(ports_), inputs = index(ports_ + others_);
  const PortStep& last = past(1);
  next_.at = last.inputs;
  const std::size_t lags = std::min(bent_ ? steps_ - 1 : steps_, lags_);
  const MatrixXd& theta = thetas_[lags];
  const Misses& missed = bent_ ? by_differences_ : plainly_;
  const bool is_beyond_rounding = missed.plain > kRounding * kRounding * size_ * size_;
  const bool by_secant = is_settled() && is_beyond_rounding && missed.is_better_by_secant();
  if (bent_) {
    tell_by_differences(last.end, last.inputs);
    next_.y = told_;
  } else {
    row_.head(p) = last.end;
    row_.segment(p, inputs) = last.inputs;
    fill(
        lags, [&](std::size_t lag) -> const PortStep& { return past(lag); }, row_);
    next_.y.noalias() = theta * row_.head(theta.cols());
    next_.y += last.end;
    if (by_secant) next_.y.noalias() += missed.secant * last.inputs.head(p);
  }
  next_.slopes = theta.middleCols(p, inputs);
  next_.slopes.leftCols(p) += through;
  if (by_secant) next_.slopes.leftCols(p) += missed.secant;
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

double least_response(const MatrixXd& Y) {
  if (!Y.allFinite() || Y.norm() == 0.0) return 0.0;
  const Eigen::SelfAdjointEigenSolver<MatrixXd> eigen(0.5 * (Y + Y.transpose()));
  return eigen.eigenvalues().minCoeff() / Y.norm();
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
