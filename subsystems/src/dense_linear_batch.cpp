#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <Eigen/Dense>

#include "linear_batches.hpp"
#include "linear_energy.hpp"

namespace portwave {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

/// x⁺ = x + (Φ − I)x + Ψa + Ψ_u ū,  b = σa + Cx + (D − σ)a + C_u ū, σ = ±1. Φ − I and D − σ are
/// formed as such: Φ is close to I, D often to ±1, and their rounding, the same in every step, would act
/// like a small spurious spring and damper.
struct StepMaps {
  Matrix Phi_minus_I, Psi, Psi_u, C, D_minus_sigma, C_u;
  Vector sigma;
};

StepMaps step_maps(const LinearPortHamiltonian& part, const std::vector<PortClosure>& closures,
                   double h) {
  const Eigen::Index n = part.signature().state_size();
  const auto p = static_cast<Eigen::Index>(closures.size());
  const Eigen::Index q = part.signature().input_size();
  const Structure& st = part.structure();
  const Vector d = energy_scaling(part.Q());
  const Vector d_inv = d.cwiseInverse();

  const Matrix Q = d_inv.asDiagonal() * Matrix(part.Q()) * d_inv.asDiagonal();
  const Matrix A = d.asDiagonal() * Matrix(st.J - st.R) * d.asDiagonal();
  const Matrix B = d.asDiagonal() * Matrix(st.G - st.P);
  const Matrix Cy = Matrix((st.G + st.P).transpose()) * d.asDiagonal();
  const Matrix Dy = Matrix(st.S + st.N);

  Vector alpha(p), beta(p), s(p);
  for (Eigen::Index j = 0; j < p; ++j) {
    const PortClosure& c = closures[static_cast<std::size_t>(j)];
    alpha[j] = c.alpha;
    beta[j] = c.beta;
    s[j] = c.s;
  }
  // αu + βy = s a with y = Cy Qx + Dy u  ⇒  u = M⁻¹(s a − β(Cy Qx + Dy_ext ū)).
  Matrix M = beta.asDiagonal() * Dy.topLeftCorner(p, p);
  M.diagonal() += alpha;
  const Matrix M_inv = p > 0 ? Matrix(M.partialPivLu().inverse()) : Matrix(0, 0);
  const Matrix K = M_inv * beta.asDiagonal();
  const Matrix CyQ = Cy.topRows(p) * Q;
  const Matrix Dx = Dy.topRightCorner(p, q);

  // (2/h)(x_mid − x) = A Q x_mid + B u + B_ext ū, solved for x_mid − x.
  const Matrix flow = A * Q - B.leftCols(p) * K * CyQ;
  Matrix lhs = -flow;
  lhs.diagonal().array() += 2.0 / h;
  Matrix rhs(n, n + p + q);
  rhs << flow, B.leftCols(p) * M_inv * s.asDiagonal(), B.rightCols(q) - B.leftCols(p) * K * Dx;
  Matrix mid(n, n + p + q);
  if (n > 0) {
    const Eigen::PartialPivLU<Matrix> lu(lhs);
    mid = lu.solve(rhs);
    mid += lu.solve(rhs - lhs * mid);  // one refinement: energy balances are tested to round-off
  }
  if (!mid.allFinite()) throw ConfigError("", "the implicit step is singular at this step size");
  const Matrix Xa = mid.middleCols(n, p), Xu = mid.rightCols(q);
  const Matrix X = Matrix::Identity(n, n) + mid.leftCols(n);

  StepMaps maps;
  maps.Phi_minus_I = d_inv.asDiagonal() * (2.0 * mid.leftCols(n)) * d.asDiagonal();
  maps.Psi = d_inv.asDiagonal() * (2.0 * Xa);
  maps.Psi_u = d_inv.asDiagonal() * (2.0 * Xu);

  // u and y as functions of (x̂, a, ū).
  Matrix z_mid(n, n + p + q);
  z_mid << X, Xa, Xu;
  Matrix u = -K * (CyQ * z_mid);
  u.middleCols(n, p) += M_inv * s.asDiagonal();
  u.rightCols(q) -= K * Dx;
  Matrix y = CyQ * z_mid + Dy.topLeftCorner(p, p) * u;
  y.rightCols(q) += Dx;
  Matrix b(p, n + p + q);
  maps.sigma.resize(p);
  Eigen::RowVectorXd row;
  for (Eigen::Index j = 0; j < p; ++j) {
    maps.sigma[j] =
        outgoing_row(closures[static_cast<std::size_t>(j)], u.row(j), y.row(j), n + j, row);
    b.row(j) = row;
  }
  maps.C = b.leftCols(n) * d.asDiagonal();
  maps.D_minus_sigma = b.middleCols(n, p);
  maps.C_u = b.rightCols(q);
  return maps;
}

/// Parts of equal shape with dense step maps. Matrices row-major, one block per lane.
class DenseLinearBatch final : public StepBatch {
 public:
  explicit DenseLinearBatch(std::span<const Subsystem* const> parts)
      : StepBatch(static_cast<int>(parts.size()), parts[0]->signature().state_size(),
                  parts[0]->signature().wave_size(), parts[0]->signature().input_size()) {
    for (const Subsystem* part : parts) {
      parts_.push_back(dynamic_cast<const LinearPortHamiltonian*>(part));
    }
    const auto count = static_cast<std::size_t>(lanes());
    n_ = static_cast<std::size_t>(state_size());
    p_ = static_cast<std::size_t>(wave_size());
    q_ = static_cast<std::size_t>(input_size());
    phi_minus_i_.resize(count * n_ * n_);
    psi_.resize(count * n_ * p_);
    psi_u_.resize(count * n_ * q_);
    c_.resize(count * p_ * n_);
    d_.resize(count * p_ * p_);
    d_minus_sigma_.resize(count * p_ * p_);
    sigma_.resize(count * p_);
    c_u_.resize(count * p_ * q_);
    b0_.resize(count * p_);
    frozen_.resize(count);
    scratch_.resize(count * (n_ + p_ + q_));
  }

  void prepare(double step_s, const double* impedance) override {
    energy_.clear();
    for (int l = 0; l < lanes(); ++l) {
      const auto lane = static_cast<std::size_t>(l);
      const LinearPortHamiltonian& part = *parts_[lane];
      auto closures = port_closures(part.signature(), step_s, impedance + lane * p_);
      const StepMaps maps = step_maps(part, closures, step_s);
      store(maps.Phi_minus_I, phi_minus_i_, lane);
      store(maps.Psi, psi_, lane);
      store(maps.Psi_u, psi_u_, lane);
      store(maps.C, c_, lane);
      store(maps.D_minus_sigma, d_minus_sigma_, lane);
      store(maps.D_minus_sigma + Matrix(maps.sigma.asDiagonal()), d_, lane);
      store(maps.sigma, sigma_, lane);
      store(maps.C_u, c_u_, lane);
      energy_.emplace_back(part, std::move(closures), step_s);
    }
  }

  void freeze(LaneRange range, const double* x, const double* input) override {
    for (int l = range.first; l < range.last; ++l) {
      const auto lane = static_cast<std::size_t>(l);
      frozen_[lane] = {x + lane * n_, input == nullptr ? nullptr : input + lane * q_};
      const double* c = c_.data() + lane * p_ * n_;
      const double* xl = x + lane * n_;
      double* b0 = b0_.data() + lane * p_;
      for (std::size_t i = 0; i < p_; ++i) {
        double sum = 0.0;
        for (std::size_t j = 0; j < n_; ++j) sum += c[i * n_ + j] * xl[j];
        b0[i] = sum;
      }
      if (input != nullptr) add_product(c_u_, lane, p_, q_, frozen_[lane].input, b0);
    }
  }

  LaneStatus scatter(LaneRange range, const double* a, double* b) override {
    scatter_lanes(range, a, b);
    return {};
  }

  LaneStatus advance(LaneRange range, const double* a, double* x_next, double* b,
                     StepEnergy* energy) override {
    scatter_lanes(range, a, b);
    for (int l = range.first; l < range.last; ++l) {
      const auto lane = static_cast<std::size_t>(l);
      const auto [x, input] = frozen_[lane];
      const double* al = a + lane * p_;
      double* next = x_next + lane * n_;
      std::fill(next, next + n_, 0.0);
      add_product(phi_minus_i_, lane, n_, n_, x, next);
      add_product(psi_, lane, n_, p_, al, next);
      if (input != nullptr) add_product(psi_u_, lane, n_, q_, input, next);
      for (std::size_t i = 0; i < n_; ++i) next[i] += x[i];
      energy[lane] = energy_[lane].book(x, next, al, b + lane * p_, input,
                                        scratch_.data() + lane * (n_ + p_ + q_));
    }
    return {};
  }

  const double* affine_matrix(int lane) const override {
    return d_.data() + static_cast<std::size_t>(lane) * p_ * p_;
  }
  const double* affine_offset(int lane) const override {
    return b0_.data() + static_cast<std::size_t>(lane) * p_;
  }

 private:
  struct Frozen {
    const double* x = nullptr;
    const double* input = nullptr;  // null: no external input
  };

  static void store(const Matrix& m, std::vector<double>& out, std::size_t lane) {
    const auto size = static_cast<std::size_t>(m.size());
    Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
        out.data() + lane * size, m.rows(), m.cols()) = m;
  }

  static void add_product(const std::vector<double>& matrices, std::size_t lane, std::size_t rows,
                          std::size_t columns, const double* v, double* out) {
    const double* m = matrices.data() + lane * rows * columns;
    for (std::size_t i = 0; i < rows; ++i) {
      double sum = out[i];
      for (std::size_t j = 0; j < columns; ++j) sum += m[i * columns + j] * v[j];
      out[i] = sum;
    }
  }

  void scatter_lanes(LaneRange range, const double* a, double* b) const {
    const auto first = static_cast<std::size_t>(range.first);
    const auto last = static_cast<std::size_t>(range.last);
    const double* d = d_minus_sigma_.data();
    const double* sigma = sigma_.data();
    const double* b0 = b0_.data();
    if (p_ == 1) {
      for (std::size_t l = first; l < last; ++l) b[l] = sigma[l] * a[l] + (b0[l] + d[l] * a[l]);
    } else if (p_ == 2) {
      for (std::size_t l = first; l < last; ++l) {
        const double a0 = a[2 * l], a1 = a[2 * l + 1];
        b[2 * l] = sigma[2 * l] * a0 + (b0[2 * l] + d[4 * l] * a0 + d[4 * l + 1] * a1);
        b[2 * l + 1] =
            sigma[2 * l + 1] * a1 + (b0[2 * l + 1] + d[4 * l + 2] * a0 + d[4 * l + 3] * a1);
      }
    } else {
      for (std::size_t l = first; l < last; ++l) {
        double* bl = b + l * p_;
        for (std::size_t i = 0; i < p_; ++i) bl[i] = b0[l * p_ + i];
        add_product(d_minus_sigma_, l, p_, p_, a + l * p_, bl);
        for (std::size_t i = 0; i < p_; ++i) bl[i] += sigma[l * p_ + i] * a[l * p_ + i];
      }
    }
  }

  std::vector<const LinearPortHamiltonian*> parts_;
  std::size_t n_ = 0, p_ = 0, q_ = 0;
  std::vector<double> phi_minus_i_, psi_, psi_u_, c_, d_minus_sigma_, sigma_, c_u_;
  std::vector<double> d_;  // D, for those who ask
  std::vector<LinearEnergy> energy_;
  std::vector<double> b0_;       // set by freeze
  std::vector<double> scratch_;  // energy book, one stretch per lane
  std::vector<Frozen> frozen_;   // set by freeze
};

}  // namespace

std::unique_ptr<StepBatch> make_dense_linear_batch(std::span<const Subsystem* const> parts) {
  return std::make_unique<DenseLinearBatch>(parts);
}

}  // namespace portwave
