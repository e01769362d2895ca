#include "network/explicit/taylor/taylor_polynomial.hpp"

#include <cmath>
#include <cstddef>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {

TaylorSeries::TaylorSeries(const LinearNetwork& network, const TaylorScheme& scheme)
    : network_(network), scheme_(scheme) {
  SparseMatrix A = network.A;
  A.prune([&network](Eigen::Index i, Eigen::Index, double) {
    return network.is_dead[at(static_cast<int>(i))] == 0;
  });
  rate_ = A * network.hessian;
  steady_ = A * Eigen::Map<const Eigen::VectorXd>(network.constant.data(), network.hessian.rows());
  for (Eigen::VectorXd* own : {&w_, &next_}) own->resize(network.size());
  powers_.resize(scheme.inputs.points(), static_cast<Eigen::Index>(network.inputs.size()));
}

void TaylorSeries::begin(const Eigen::VectorXd& x, double start_s, double step_s) {
  for (int k = 0; k < static_cast<int>(network_.inputs.size()); ++k) {
    sample_powers(network_, k, scheme_.inputs, start_s, step_s, powers_.col(k).data());
  }
  w_ = x;
  step_s_ = step_s;
  number_ = 0;
}

void TaylorSeries::next() {
  next_.noalias() = rate_ * w_;
  if (number_ == 0) next_ += steady_;
  if (number_ < powers_.rows()) next_ += network_.B * powers_.row(number_).transpose();
  w_ = step_s_ / (number_ + 1) * next_;
  ++number_;
}

void TaylorPolynomial::pass_through(std::span<const double> start, std::span<const double> end,
                                    double start_s, double step_s) {
  const auto n = static_cast<Eigen::Index>(network_.size());
  terms_.resize(n, order_ + 2);
  series_.begin(Eigen::Map<const Eigen::VectorXd>(start.data(), n), start_s, step_s);
  terms_.col(0) = series_.term();
  terms_.col(order_ + 1) = Eigen::Map<const Eigen::VectorXd>(end.data(), n) - series_.term();
  for (int k = 1; k <= order_; ++k) {
    series_.next();
    terms_.col(k) = series_.term();
    terms_.col(order_ + 1) -= series_.term();
  }
  end_.assign(end.begin(), end.end());
}

void TaylorPolynomial::state(int first, double share, std::span<double> state) const {
  for (std::size_t i = 0; i < state.size(); ++i) {
    const auto own = static_cast<Eigen::Index>(at(first) + i);
    if (network_.is_dead[at(first) + i] != 0) {
      const double from = terms_(own, 0), to = end_[at(first) + i], ratio = to / from;
      state[i] = ratio > 0.0 ? from * std::pow(ratio, share) : from + share * (to - from);
      continue;
    }
    double value = terms_(own, order_ + 1);
    for (int k = order_; k >= 0; --k) value = terms_(own, k) + share * value;
    state[i] = value;
  }
}

}  // namespace portwave
