#include "quasi_newton_coupling.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "interface_quasi_newton.hpp"

namespace portwave::bench {
namespace {

enum class End {
  free,
  spring,  ///< given the velocity of the spring's free end, answers with the force it exerts there
  moved,  ///< given the velocity of the end mass, answers with the force it exerts on its neighbour
  pushed,  ///< given the force on the end mass, answers with its velocity
};

/// Implicit midpoint of one piece, in the mean velocities w of a step:
///   (2M/h + R + hK/2) w = 2M v/h − K q + forces,  tridiagonal, factorised once; by Newton where
/// there are cubic springs.
class PieceStep {
 public:
  PieceStep(const Piece& piece, double h, std::array<End, 2> ends)
      : piece_(piece), h_(h), ends_(ends), size_(piece.masses), end_{0, size_ - 1} {
    if (size_ < (std::ranges::count(ends, End::moved) > 0 ? 3 : 1)) {
      throw std::invalid_argument("a piece has too few masses");
    }
    off_ = -0.5 * h * piece.stiffness_N_per_m;
    diagonal_.assign(size_, 2.0 * piece.mass_kg / h + piece.damping_Ns_per_m +
                                0.5 * h * piece.ground_stiffness_N_per_m - 2.0 * off_);
    for (std::size_t side = 0; side < 2; ++side) {
      diagonal_[end_[side]] += off_;
      if (ends[side] == End::spring) diagonal_[end_[side]] += half_spring();
    }
    first_ = ends[0] == End::moved ? 1 : 0;
    last_ = ends[1] == End::moved ? size_ - 2 : size_ - 1;
    for (auto* vector : {&inverse_pivot_, &base_, &forces_, &slope_, &w_}) vector->resize(size_);
    factorise();
  }

  void start(std::span<const double> q, std::span<const double> v,
             std::array<double, 2> elongation) {
    q_.assign(q.begin(), q.end());
    v_.assign(v.begin(), v.end());
    elongation_ = elongation;
  }

  /// Right-hand side of the step that begins.
  void begin() {
    const double k = piece_.stiffness_N_per_m;
    for (std::size_t i = 0; i < size_; ++i) {
      base_[i] = 2.0 * piece_.mass_kg / h_ * v_[i] - piece_.ground_stiffness_N_per_m * q_[i];
      if (i > 0) base_[i] -= k * (q_[i] - q_[i - 1]);
      if (i + 1 < size_) base_[i] -= k * (q_[i] - q_[i + 1]);
    }
    w_ = v_;  // where Newton begins
    for (std::size_t side = 0; side < 2; ++side) {
      if (ends_[side] != End::spring) continue;
      base_[end_[side]] += piece_.coupling_stiffness_N_per_m * elongation_[side];
    }
  }

  /// Left and right: what is given at the ends; what they answer.
  std::array<double, 2> evaluate(std::array<double, 2> given) {
    given_ = given;
    std::ranges::copy(base_, forces_.begin());
    for (std::size_t side = 0; side < 2; ++side) {
      const double in = given[side];
      if (ends_[side] == End::pushed) forces_[end_[side]] += in;
      if (ends_[side] == End::spring) forces_[end_[side]] += half_spring() * in;
      if (ends_[side] == End::moved) forces_[inner(side)] -= off_ * in;
    }
    if (piece_.cubic_stiffness_N_per_m3 == 0.0) {
      std::ranges::copy(forces_, w_.begin());
      substitute();
    } else {
      newton();
    }
    return {answer(0), answer(1)};
  }

  /// Keeps the last evaluation.
  void commit() {
    for (std::size_t i = 0; i < size_; ++i) {
      q_[i] += h_ * w_[i];
      v_[i] = 2.0 * w_[i] - v_[i];
    }
    for (std::size_t side = 0; side < 2; ++side) {
      elongation_[side] += h_ * (given_[side] - w_[end_[side]]);  // of a spring only
    }
  }

  double velocity(std::size_t side) const { return v_[end_[side]]; }
  std::span<const double> q() const { return q_; }
  std::span<const double> v() const { return v_; }

 private:
  double half_spring() const { return 0.5 * h_ * piece_.coupling_stiffness_N_per_m; }
  std::size_t inner(std::size_t side) const { return side == 0 ? 1 : size_ - 2; }

  /// Of the tridiagonal matrix and the slope of the cubic forces.
  void factorise() {
    for (std::size_t i = first_; i <= last_; ++i) {
      const double before = i > first_ ? off_ * off_ * inverse_pivot_[i - 1] : 0.0;
      inverse_pivot_[i] = 1.0 / (diagonal_[i] + slope_[i] - before);
    }
  }

  void substitute() {
    for (std::size_t i = first_ + 1; i <= last_; ++i) {
      w_[i] -= off_ * inverse_pivot_[i - 1] * w_[i - 1];
    }
    w_[last_] *= inverse_pivot_[last_];
    for (std::size_t i = last_; i-- > first_;) {
      w_[i] = (w_[i] - off_ * w_[i + 1]) * inverse_pivot_[i];
    }
  }

  /// ¼ k₃ (q³ + q² q⁺ + q q⁺² + q⁺³),  q⁺ = q + h w.
  double cubic(std::size_t i) const {
    const double q = q_[i], next = q + h_ * w_[i];
    return 0.25 * piece_.cubic_stiffness_N_per_m3 * (q + next) * (q * q + next * next);
  }

  void newton() {
    constexpr int kMost = 50;
    for (int n = 0; n < kMost; ++n) {
      double change = 0.0, size = 0.0;
      before_ = w_;
      for (std::size_t i = first_; i <= last_; ++i) {
        const double q = q_[i], next = q + h_ * w_[i];
        slope_[i] = 0.25 * piece_.cubic_stiffness_N_per_m3 * h_ *
                    (q * q + 2.0 * q * next + 3.0 * next * next);
      }
      for (std::size_t i = first_; i <= last_; ++i) {
        w_[i] = forces_[i] - cubic(i) + slope_[i] * before_[i];
      }
      factorise();
      substitute();
      for (std::size_t i = first_; i <= last_; ++i) {
        change = std::max(change, std::abs(w_[i] - before_[i]));
        size = std::max(size, std::abs(w_[i]));
      }
      if (!(change > 1e-14 * size)) return;
      // What is left is of second order in the change.
      if (n > 0 && change < 1e-9 * size) return;
    }
  }

  double answer(std::size_t side) {
    const std::size_t end = end_[side];
    switch (ends_[side]) {
      case End::free:
        return 0.0;
      case End::pushed:
        return w_[end];
      case End::spring:
        return -(piece_.coupling_stiffness_N_per_m * elongation_[side] +
                 half_spring() * (given_[side] - w_[end]));
      case End::moved:
        w_[end] = given_[side];
        return base_[end] - diagonal_[end] * w_[end] - off_ * w_[inner(side)] - cubic(end);
    }
    return 0.0;
  }

  Piece piece_;
  double h_, off_ = 0.0;
  std::array<End, 2> ends_;
  std::size_t size_, first_ = 0, last_ = 0;
  std::array<std::size_t, 2> end_;
  std::array<double, 2> elongation_{}, given_{};
  std::vector<double> diagonal_, inverse_pivot_, base_, forces_, slope_, w_, before_, q_, v_;
};

/// |x̃ − x| ≤ tolerance |x̃|.
bool agree(std::span<const double> x, std::span<const double> after, double tolerance) {
  double change = 0.0, size = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    change += (after[i] - x[i]) * (after[i] - x[i]);
    size += after[i] * after[i];
  }
  return std::sqrt(change) <= tolerance * std::sqrt(size);
}

class Partitioned final : public PartitionedChain {
 public:
  Partitioned(const CutChain& chain, double h, const PartitionedOptions& options)
      : chain_(chain),
        options_(options),
        cuts_(chain.cuts()),
        acceleration_(options.serial ? std::vector{cuts_} : std::vector{cuts_, cuts_},
                      options.reused_steps, options.relaxation, options.filter) {
    const End even = chain.cut == CutAt::spring ? End::spring : End::moved;
    for (std::size_t p = 0; p <= cuts_; ++p) {
      const End own = p % 2 == 0 ? even : End::pushed;
      pieces_.emplace_back(chain.pieces[p], h,
                           std::array{p > 0 ? own : End::free, p < cuts_ ? own : End::free});
    }
    x_.resize(2 * cuts_);
    after_.resize(2 * cuts_);
    restart();
  }

  void restart() override {
    std::vector<std::size_t> first = {0};
    for (const Piece& piece : chain_.pieces) first.push_back(first.back() + piece.masses);
    const std::span q = chain_.q, v = chain_.v;
    for (std::size_t p = 0; p <= cuts_; ++p) {
      const std::size_t begin = first[p], end = first[p + 1];
      pieces_[p].start(
          q.subspan(begin, end - begin), v.subspan(begin, end - begin),
          {p > 0 ? q[begin - 1] - q[begin] : 0.0, p < cuts_ ? q[end] - q[end - 1] : 0.0});
    }
    for (std::size_t c = 0; c < cuts_; ++c) {
      x_[c] = c % 2 == 0 ? pieces_[c + 1].velocity(0) : pieces_[c].velocity(1);
      x_[cuts_ + c] = 0.0;
    }
    finite_ = true;
    acceleration_.forget();
  }

  int step() override {
    converged_ = false;
    if (!finite_) return options_.most_iterations;
    for (PieceStep& piece : pieces_) piece.begin();
    acceleration_.begin_step();
    int calls = 0;
    while (calls < options_.most_iterations) {
      evaluate();
      ++calls;
      const std::span x = x_, after = after_;
      converged_ =
          agree(x.first(cuts_), after.first(cuts_), options_.tolerance) &&
          (options_.serial || agree(x.subspan(cuts_), after.subspan(cuts_), options_.tolerance));
      if (converged_) break;
      finite_ = std::ranges::all_of(after_, [](double value) { return std::abs(value) < 1e150; });
      if (!finite_) return options_.most_iterations;
      accelerate();
    }
    for (PieceStep& piece : pieces_) piece.commit();
    x_ = after_;
    return calls;
  }

  bool converged() const override { return converged_; }

  void read(std::span<double> q, std::span<double> v) const override {
    std::size_t at = 0;
    for (const PieceStep& piece : pieces_) {
      std::ranges::copy(piece.q(), q.begin() + static_cast<std::ptrdiff_t>(at));
      std::ranges::copy(piece.v(), v.begin() + static_cast<std::ptrdiff_t>(at));
      at += piece.q().size();
    }
    if (!finite_) std::ranges::fill(q, HUGE_VAL);
  }

 private:
  /// x̃ = H(x): velocities, then forces.
  void evaluate() {
    call(0, x_.data(), after_.data() + cuts_);
    call(1, (options_.serial ? after_ : x_).data() + cuts_, after_.data());
  }

  /// Every second piece, from `first` on.
  void call(std::size_t first, const double* in, double* out) {
    for (std::size_t p = first; p <= cuts_; p += 2) {
      const auto [left, right] =
          pieces_[p].evaluate({p > 0 ? in[p - 1] : 0.0, p < cuts_ ? in[p] : 0.0});
      if (p > 0) out[p - 1] = left;
      if (p < cuts_) out[p] = right;
    }
  }

  void accelerate() {
    const std::size_t size = options_.serial ? cuts_ : 2 * cuts_;
    const std::span x = std::span(x_).first(size), after = std::span(after_).first(size);
    if (options_.quasi_newton) return acceleration_.next(x, after);
    for (std::size_t i = 0; i < size; ++i) x[i] += options_.relaxation * (after[i] - x[i]);
  }

  CutChain chain_;
  PartitionedOptions options_;
  std::size_t cuts_;
  InterfaceQuasiNewton acceleration_;
  std::vector<PieceStep> pieces_;
  std::vector<double> x_, after_;  // velocities by cut, then forces by cut
  bool converged_ = false, finite_ = true;
};

}  // namespace

std::unique_ptr<PartitionedChain> partitioned_chain(const CutChain& chain, double step_s,
                                                    const PartitionedOptions& options) {
  return std::make_unique<Partitioned>(chain, step_s, options);
}

}  // namespace portwave::bench
