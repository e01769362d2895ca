#include "nonlinear/stage_factors.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "portwave/subsystems/base/lane_group.hpp"

namespace portwave {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Complex = std::complex<double>;

double size_of(double a) { return std::abs(a); }
double size_of(const Complex& a) { return std::abs(a.real()) + std::abs(a.imag()); }

struct Eigenvalues {
  double single = 0.0;
  Complex pair;
};

/// Of two or three rows, two of them complex: the trace, the sum of the principal minors of two rows and the
/// determinant give the characteristic polynomial, whose real root is found by halving and Newton's method.
Eigenvalues eigenvalues_of(const MatrixXd& A) {
  const Index s = A.rows();
  double trace = A.trace(), minors = 0.0;
  for (Index i = 0; i < s; ++i) {
    for (Index j = 0; j < i; ++j) minors += A(i, i) * A(j, j) - A(i, j) * A(j, i);
  }
  Eigenvalues out;
  if (s == 3) {
    const double determinant = A(0, 0) * (A(1, 1) * A(2, 2) - A(1, 2) * A(2, 1)) -
                               A(0, 1) * (A(1, 0) * A(2, 2) - A(1, 2) * A(2, 0)) +
                               A(0, 2) * (A(1, 0) * A(2, 1) - A(1, 1) * A(2, 0));
    const auto value = [&](double t) { return ((t - trace) * t + minors) * t - determinant; };
    double low = 0.0, high = trace;
    for (int k = 0; k < 200 && low < high; ++k) {
      const double middle = 0.5 * (low + high);
      if (middle == low || middle == high) break;
      (value(middle) < 0.0 ? low : high) = middle;
    }
    out.single = 0.5 * (low + high);
    minors = determinant / out.single;
    trace -= out.single;
  }
  const double half = 0.5 * trace;
  out.pair = {half, std::sqrt(std::max(0.0, minors - half * half))};
  return out;
}

/// v with (A − λ)v = 0: orthogonal to two of its rows.
template <class Scalar>
Eigen::Matrix<Scalar, Eigen::Dynamic, 1> eigenvector_of(const MatrixXd& A, Scalar value) {
  const Index s = A.rows();
  Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic> M = A.template cast<Scalar>();
  for (Index i = 0; i < s; ++i) M(i, i) -= value;
  Eigen::Matrix<Scalar, Eigen::Dynamic, 1> best(s);
  if (s == 2) {
    best << M(0, 1), -M(0, 0);
    return best;
  }
  double largest = -1.0;
  for (Index a = 0; a < 3; ++a) {
    const Index b = (a + 1) % 3;
    Eigen::Matrix<Scalar, Eigen::Dynamic, 1> v(3);
    for (Index i = 0; i < 3; ++i) {
      const Index j = (i + 1) % 3, k = (i + 2) % 3;
      v[i] = M(a, j) * M(b, k) - M(a, k) * M(b, j);
    }
    double size = 0.0;
    for (Index i = 0; i < 3; ++i) size += size_of(v[i]);
    if (size > largest) {
      largest = size;
      best = v;
    }
  }
  return best / Scalar(largest);
}

}  // namespace

SmallLu::SmallLu(Index n, bool is_complex)
    : n_(static_cast<int>(n)),
      stride_((n_ + kLaneGroup - 1) / kLaneGroup * kLaneGroup),
      is_complex_(is_complex),
      size_(static_cast<std::ptrdiff_t>(n_) * stride_),
      room_(static_cast<std::size_t>((is_complex ? 6 : 3) * size_ + 4 * stride_)),
      order_(static_cast<std::size_t>(n_)) {}

void SmallLu::factorise(Complex gain, const MatrixXd& M) {
  const auto fill = [&](double own, double one, double* to) {
    for (int j = 0; j < n_; ++j) {
      double* const column = to + static_cast<std::ptrdiff_t>(j) * stride_;
      const double* const from = M.data() + static_cast<std::ptrdiff_t>(j) * n_;
      for (int i = 0; i < n_; ++i) column[i] = -own * from[i];
      for (int i = n_; i < stride_; ++i) column[i] = 0.0;
      column[j] += one;
    }
  };
  fill(gain.real(), 1.0, array(0));
  if (!is_complex_) return small_lu::kernels().factorise(real());
  fill(gain.imag(), 0.0, array(3));
  small_lu::kernels().factorise_complex(complex());
}

small_lu::Real SmallLu::real() {
  return {.n = n_,
          .stride = stride_,
          .A = array(0),
          .L = array(1),
          .U = array(2),
          .diagonal = array(is_complex_ ? 6 : 3),
          .order = order_.data()};
}

small_lu::Complex SmallLu::complex() {
  return {.n = n_,
          .stride = stride_,
          .A = array(0),
          .A_imaginary = array(3),
          .L = array(1),
          .L_imaginary = array(4),
          .U = array(2),
          .U_imaginary = array(5),
          .diagonal = array(6),
          .diagonal_imaginary = array(6) + stride_,
          .order = order_.data()};
}

void SmallLu::solve(const double* b, const double* b_imaginary, double* x, double* x_imaginary) {
  double* const own = array(is_complex_ ? 6 : 3) + static_cast<std::ptrdiff_t>(2) * stride_;
  double* const imaginary = own + stride_;
  for (int i = 0; i < n_; ++i) own[i] = b[order_[static_cast<std::size_t>(i)]];
  if (!is_complex_) {
    small_lu::kernels().solve(real(), own);
    std::copy_n(own, n_, x);
    return;
  }
  for (int i = 0; i < n_; ++i) imaginary[i] = b_imaginary[order_[static_cast<std::size_t>(i)]];
  small_lu::kernels().solve_complex(complex(), own, imaginary);
  std::copy_n(own, n_, x);
  std::copy_n(imaginary, n_, x_imaginary);
}

namespace small_lu {

const Kernels& kernels() { return PORTWAVE_KERNELS(kSmallLu); }

}  // namespace small_lu

StageFactors::StageFactors(const MatrixXd& coupling, Index n, Index p)
    : coupling_(coupling),
      back_(coupling.rows(), coupling.rows()),
      coupling_sizes_(coupling.cwiseAbs().transpose()),
      s_(coupling.rows()),
      n_(n),
      p_(p),
      real_(s_ == 3 ? n : 0, false),
      complex_(n, true),
      port_lu_(s_ * p) {
  const Eigenvalues values = eigenvalues_of(coupling);
  single_ = values.single;
  pair_ = values.pair;
  if (s_ == 3) back_.col(0) = eigenvector_of(coupling, single_);
  const Eigen::VectorXcd pair = eigenvector_of(coupling, pair_);
  back_.col(s_ - 2) = pair.real();
  back_.col(s_ - 1) = pair.imag();
  to_ = lu_inverse(back_);
  given_.E.setZero(n, n);
  given_.in.setZero(n, p);
  given_.seen.setZero(p, n);
  given_.closing.setZero(s_ * p, p);
  port_columns_.setZero(s_ * n, s_ * p);
  port_matrix_.setZero(s_ * p, s_ * p);
  parts_.setZero(n, s_);
  mixed_.setZero(n, s_);
  port_column_.setZero(s_ * n);
  seen_.setZero(s_ * p);
  port_solution_.setZero(s_ * p);
}

bool StageFactors::factorise(double h) {
  h_ = h;
  if (!given_.E.allFinite() || !given_.closing.allFinite()) return false;
  if (s_ == 3) real_.factorise(h * single_, given_.E);
  complex_.factorise(h * pair_, given_.E);
  for (Index i = 0; i < s_; ++i) {
    for (Index l = 0; l < p_; ++l) {
      port_column_.setZero();
      for (Index j = 0; j < p_; ++j) {
        const double gain = h * given_.closing(i * p_ + j, l);
        if (gain != 0.0) port_column_.segment(i * n_, n_) += gain * given_.in.col(j);
      }
      solve_open(port_column_.data(), port_columns_.col(i * p_ + l).data());
    }
  }
  if (p_ > 0) {
    for (Index c = 0; c < s_ * p_; ++c)
      see(port_columns_.col(c).data(), port_matrix_.col(c).data());
    port_matrix_.diagonal().array() += 1.0;
    port_lu_.compute(port_matrix_);
  }
  return true;
}

/// (1 − h Ã ⊗ E)⁻¹. A pair v′ ± iv″ of eigenvectors to the values λ and λ̄ carries parts a and b with
/// (1 − hλE)(a − ib) = f_a − i f_b.
void StageFactors::solve_open(const double* F, double* x) {
  mix(F, to_, parts_.data());
  if (s_ == 3) real_.solve(parts_.data(), nullptr, parts_.data(), nullptr);
  double* const re = parts_.col(s_ - 2).data();
  double* const im = parts_.col(s_ - 1).data();
  for (Index i = 0; i < n_; ++i) im[i] = -im[i];
  complex_.solve(re, im, re, im);
  for (Index i = 0; i < n_; ++i) im[i] = -im[i];
  mix(parts_.data(), back_, x);
}

/// Column i of `out` is Σⱼ T(i, j) times column j of `in`.
void StageFactors::mix(const double* in, const MatrixXd& T, double* out) const {
  const Index n = n_;
  for (Index i = 0; i < s_; ++i) {
    double* const to = out + i * n;
    const double first = T(i, 0), second = T(i, 1);
    for (Index k = 0; k < n; ++k) to[k] = in[k] * first + in[n + k] * second;
    if (s_ < 3) continue;
    const double third = T(i, 2);
    for (Index k = 0; k < n; ++k) to[k] += in[2 * n + k] * third;
  }
}

/// (V K)(Ã ⊗ 1)x
void StageFactors::see(const double* x, double* out) const {
  const Eigen::Map<const MatrixXd> all(x, n_, s_);
  for (Index i = 0; i < s_; ++i) {
    for (Index j = 0; j < p_; ++j) {
      double sum = 0.0;
      for (Index k = 0; k < s_; ++k) {
        sum += coupling_(i, k) * given_.seen.row(j).dot(all.col(k));
      }
      out[i * p_ + j] = sum;
    }
  }
}

void StageFactors::solve(const VectorXd& F, VectorXd& x) {
  solve_open(F.data(), x.data());
  if (p_ == 0) return;
  see(x.data(), seen_.data());
  port_lu_.solve(seen_, port_solution_);
  x.noalias() -= port_columns_ * port_solution_;
}

void StageFactors::spread(const VectorXd& w, VectorXd& out) {
  mixed_.noalias() = Eigen::Map<const MatrixXd>(w.data(), n_, s_).lazyProduct(coupling_sizes_);
  Eigen::Map<MatrixXd> sum(out.data(), n_, s_);
  sum = Eigen::Map<const MatrixXd>(w.data(), n_, s_);
  for (Index i = 0; i < s_; ++i) {
    for (Index j = 0; j < n_; ++j) {
      sum.col(i) += (h_ * mixed_(j, i)) * given_.E.col(j).cwiseAbs();
    }
    for (Index l = 0; l < p_; ++l) {
      const double seen = given_.seen.row(l).cwiseAbs().dot(mixed_.col(i));
      for (Index j = 0; j < p_; ++j) {
        const double gain = h_ * std::abs(given_.closing(i * p_ + j, l)) * seen;
        if (gain != 0.0) sum.col(i) += gain * given_.in.col(j).cwiseAbs();
      }
    }
  }
}

}  // namespace portwave
