#pragma once

// The interface quasi-Newton method with an inverse Jacobian from a least-squares model (IQN-ILS;
// Degroote et al. 2009): finds x = H(x) from pairs (x, x̃ = H(x)).
//   r = x̃ − x,  columns V: differences of r, W: of x̃;  x ← x̃ + Wα,  α minimising |Vα + r|.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <span>
#include <utility>
#include <vector>

namespace portwave::bench {

class InterfaceQuasiNewton {
 public:
  /// `fields`: sizes of the kinds of data that x is made of, each weighed by what it has
  /// contributed to the residuals of the step so far (the "residual sum" of preCICE).
  InterfaceQuasiNewton(std::vector<std::size_t> fields, std::size_t reused_steps, double relaxation,
                       double filter)
      : fields_(std::move(fields)),
        reused_steps_(reused_steps),
        relaxation_(relaxation),
        filter_(filter) {
    for (const std::size_t size : fields_) size_ += size;
    weight_.resize(size_);
    share_.resize(fields_.size());
    for (auto* vector : {&r_, &r_before_, &after_before_, &rest_}) vector->resize(size_);
  }

  void forget() {
    columns_.clear();
    by_step_.assign(1, 0);
    begin_step();
  }

  /// Columns of the oldest steps go.
  void begin_step() {
    if (by_step_.empty() || by_step_.front() > 0) by_step_.push_front(0);
    while (by_step_.size() > reused_steps_ + 1) {
      for (std::size_t i = 0; i < by_step_.back(); ++i) recycle(columns_.size() - 1);
      by_step_.pop_back();
    }
    first_ = true;
    std::ranges::fill(share_, 0.0);
  }

  /// x ← the next guess; `after` = H(x).
  void next(std::span<double> x, std::span<const double> after) {
    for (std::size_t i = 0; i < size_; ++i) r_[i] = after[i] - x[i];
    if (!first_) add_column(after);
    first_ = false;
    std::ranges::copy(r_, r_before_.begin());
    std::ranges::copy(after, after_before_.begin());
    weigh();
    if (!decompose()) {
      for (std::size_t i = 0; i < size_; ++i) x[i] += relaxation_ * r_[i];
      return;
    }
    std::ranges::copy(after, x.begin());
    for (std::size_t c = used_.size(); c-- > 0;) {  // R α = −Qᵀ r, from the last one
      double alpha = used_[c].along_r;
      for (std::size_t d = c + 1; d < used_.size(); ++d) alpha -= used_[d].r[c] * used_[d].alpha;
      used_[c].alpha = alpha / used_[c].r[c];
      const std::vector<double>& w = columns_[used_[c].column].w;
      for (std::size_t i = 0; i < size_; ++i) x[i] += used_[c].alpha * w[i];
    }
  }

 private:
  struct Column {
    std::vector<double> v, w;
  };
  struct Used {
    std::size_t column = 0;
    std::vector<double> q;  // direction, weighted
    std::vector<double> r;  // column of R
    double along_r = 0.0, alpha = 0.0;
  };

  void recycle(std::size_t column) {
    spare_.push_back(std::move(columns_[column]));
    columns_.erase(columns_.begin() + static_cast<std::ptrdiff_t>(column));
  }

  void add_column(std::span<const double> after) {
    Column column;
    if (!spare_.empty()) {
      column = std::move(spare_.back());
      spare_.pop_back();
    }
    column.v.resize(size_);
    column.w.resize(size_);
    for (std::size_t i = 0; i < size_; ++i) {
      column.v[i] = r_[i] - r_before_[i];
      column.w[i] = after[i] - after_before_[i];
    }
    columns_.push_front(std::move(column));
    ++by_step_.front();
  }

  void weigh() {
    double all = 0.0;
    for (const double r : r_) all += r * r;
    std::size_t at = 0;
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      double own = 0.0;
      for (std::size_t i = at; i < at + fields_[f]; ++i) own += r_[i] * r_[i];
      if (all > 0.0) share_[f] += std::sqrt(own / all);
      const double weight = share_[f] > 0.0 ? 1.0 / share_[f] : 1.0;
      for (const std::size_t end = at + fields_[f]; at < end; ++at) weight_[at] = weight;
    }
  }

  /// In four sums, which the compiler can keep in one register.
  static double dot(const std::vector<double>& a, const std::vector<double>& b) {
    const double *x = a.data(), *y = b.data();
    const std::size_t size = a.size();
    double sum[4] = {};
    std::size_t i = 0;
    for (; i + 4 <= size; i += 4) {
      for (std::size_t l = 0; l < 4; ++l) sum[l] += x[i + l] * y[i + l];
    }
    for (; i < size; ++i) sum[0] += x[i] * y[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }

  /// Q and R of the columns, the newest first, without those that the filter leaves out, and −Qᵀr.
  /// False when there are none.
  bool decompose() {
    std::size_t count = 0;
    for (std::size_t i = 0; i < size_; ++i) rest_[i] = -weight_[i] * r_[i];
    for (std::size_t c = 0; c < columns_.size() && count < size_; ++c) {
      if (count == pool_.size()) pool_.emplace_back();
      Used& used = pool_[count];
      used.column = c;
      used.q.resize(size_);
      used.r.assign(count + 1, 0.0);
      for (std::size_t i = 0; i < size_; ++i) used.q[i] = weight_[i] * columns_[c].v[i];
      const double whole = dot(used.q, used.q);
      for (std::size_t d = 0; d < count; ++d) {
        used.r[d] = dot(pool_[d].q, used.q);
        double* __restrict q = used.q.data();
        const double* __restrict other = pool_[d].q.data();
        for (std::size_t i = 0; i < size_; ++i) q[i] -= used.r[d] * other[i];
      }
      const double left = dot(used.q, used.q);
      if (!(left > 0.0) || left < filter_ * filter_ * whole) continue;
      used.r[count] = std::sqrt(left);
      for (double& q : used.q) q /= used.r[count];
      used.along_r = dot(used.q, rest_);
      ++count;
    }
    used_ = std::span(pool_.data(), count);
    return count > 0;
  }

  std::vector<std::size_t> fields_;
  std::size_t size_ = 0, reused_steps_;
  double relaxation_, filter_;
  bool first_ = true;
  std::deque<Column> columns_;       // the newest first
  std::deque<std::size_t> by_step_;  // how many of them, the present step first
  std::vector<Column> spare_;
  std::vector<double> r_, r_before_, after_before_, weight_, share_, rest_;
  std::vector<Used> pool_;
  std::span<Used> used_;
};

}  // namespace portwave::bench
