#include "sparse_newton.hpp"

#include <cmath>
#include <vector>

#include <Eigen/SparseLU>

namespace portwave::bench {
namespace {

using Matrix = Eigen::SparseMatrix<double>;
using Vector = Eigen::VectorXd;

constexpr int kStates = 5, kNumbers = 11;
constexpr double kTolerance = 1e-10;
constexpr int kMostIterations = 30;

}  // namespace

struct SparseNewton::Impl {
  Impl(const double* cells, std::size_t count, double step_s)
      : numbers(cells, cells + kNumbers * count),
        n(static_cast<int>(count)),
        h(step_s),
        x(Vector::Zero(kStates * n)),
        next(x),
        residual(x) {
    for (int i = 0; i < n; ++i)
      x[kStates * i] = numbers[kNumbers * static_cast<std::size_t>(i) + 3];
    next = x;
    evaluate(true);
    solver.analyzePattern(jacobian);
  }

  /// The residual at `next`, and its Jacobian: its entries lie where they did before.
  void evaluate(bool is_first) {
    std::size_t entry = 0;
    triplets.resize(is_first ? 0 : triplets.size());
    const auto add = [&](int row, int column, double value) {
      if (is_first) {
        triplets.emplace_back(row, column, value);
      } else {
        *places[entry++] += value;
      }
    };
    if (!is_first) std::fill(jacobian.valuePtr(), jacobian.valuePtr() + jacobian.nonZeros(), 0.0);
    residual.setZero();
    const auto mid = [&](int k) { return 0.5 * (x[k] + next[k]); };
    for (int i = 0; i < n; ++i) {
      const double* const c = numbers.data() + kNumbers * static_cast<std::size_t>(i);
      const double m = c[0], k = c[1], damping = c[2], md = c[4], k1 = c[5], k3 = c[6], k12 = c[7],
                   c12 = c[8], friction = c[9], creep = c[10];
      const int own = kStates * i, left = kStates * ((i + n - 1) % n);
      const int v = own, d = own + 1, q = own + 2, w = own + 3, s = own + 4;
      const double force = k * mid(d) + damping * (mid(v) - mid(left));
      const double effort = k12 * mid(s) + c12 * (mid(v) - mid(w));
      const double slide = std::tanh(mid(v) / creep);
      residual[v] += m * (next[v] - x[v]) / h + force + effort + friction * slide;
      residual[left] -= force;
      residual[d] = (next[d] - x[d]) / h - mid(v) + mid(left);
      residual[q] = (next[q] - x[q]) / h - mid(w);
      const double sum = x[q] + next[q], squares = x[q] * x[q] + next[q] * next[q];
      residual[w] = md * (next[w] - x[w]) / h + k1 * mid(q) + 0.25 * k3 * sum * squares - effort;
      residual[s] = (next[s] - x[s]) / h - mid(v) + mid(w);

      add(v, v, m / h + 0.5 * (damping + c12 + friction / creep * (1.0 - slide * slide)));
      add(v, d, 0.5 * k);
      add(v, left, -0.5 * damping);
      add(v, s, 0.5 * k12);
      add(v, w, -0.5 * c12);
      add(left, v, -0.5 * damping);
      add(left, d, -0.5 * k);
      add(left, left, 0.5 * damping);
      add(d, d, 1.0 / h);
      add(d, v, -0.5);
      add(d, left, 0.5);
      add(q, q, 1.0 / h);
      add(q, w, -0.5);
      add(w, w, md / h + 0.5 * c12);
      add(w, q, 0.5 * k1 + 0.25 * k3 * (squares + 2.0 * sum * next[q]));
      add(w, s, -0.5 * k12);
      add(w, v, -0.5 * c12);
      add(s, s, 1.0 / h);
      add(s, v, -0.5);
      add(s, w, 0.5);
    }
    if (!is_first) return;
    jacobian.resize(kStates * n, kStates * n);
    jacobian.setFromTriplets(triplets.begin(), triplets.end());
    jacobian.makeCompressed();
    for (const auto& own : triplets) places.push_back(&jacobian.coeffRef(own.row(), own.col()));
  }

  std::vector<double> numbers;
  int n;
  double h;
  int iterations = 0;
  Vector x, next, residual;
  std::vector<Eigen::Triplet<double>> triplets;
  std::vector<double*> places;
  Matrix jacobian;
  Eigen::SparseLU<Matrix, Eigen::COLAMDOrdering<int>> solver;
};

SparseNewton::SparseNewton(const double* cells, std::size_t count, double step_s)
    : impl_(std::make_unique<Impl>(cells, count, step_s)) {}

SparseNewton::~SparseNewton() = default;

void SparseNewton::step() {
  Impl& own = *impl_;
  own.next = own.x;
  for (own.iterations = 1; own.iterations <= kMostIterations; ++own.iterations) {
    own.evaluate(false);
    own.solver.factorize(own.jacobian);
    const Vector change = own.solver.solve(own.residual);
    own.next -= change;
    if (change.norm() <= kTolerance * own.next.norm()) break;
  }
  own.x = own.next;
}

int SparseNewton::iterations() const { return impl_->iterations; }

const double* SparseNewton::state() const { return impl_->x.data(); }

}  // namespace portwave::bench
