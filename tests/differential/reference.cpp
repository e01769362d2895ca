#include "differential/reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>

#include <Eigen/Dense>
#include <Eigen/SparseLU>

#include "differential/random.hpp"

namespace portwave::differential {
namespace {

template <class T>
using MatrixOf = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
template <class T>
using VectorOf = Eigen::Matrix<T, Eigen::Dynamic, 1>;

/// Ax = b, factorised once, rows and columns scaled by powers of two.
template <class T>
class Factors {
 public:
  explicit Factors(std::vector<Eigen::Triplet<T>> entries, int n)
      : row_(VectorOf<T>::Ones(n)), column_(row_) {
    for (int pass = 0; pass < 8; ++pass) {
      VectorOf<T> rows = VectorOf<T>::Zero(n), columns = rows;
      for (const auto& t : entries) {
        const T size = std::abs(t.value()) * row_[t.row()] * column_[t.col()];
        rows[t.row()] = std::max(rows[t.row()], size);
        columns[t.col()] = std::max(columns[t.col()], size);
      }
      for (int i = 0; i < n; ++i) {
        row_[i] *= half_power(rows[i]);
        column_[i] *= half_power(columns[i]);
      }
    }
    for (auto& t : entries) {
      t = {t.row(), t.col(), t.value() * row_[t.row()] * column_[t.col()]};
    }
    if (n <= 150) {
      MatrixOf<T> A = MatrixOf<T>::Zero(n, n);
      for (const auto& t : entries) A(t.row(), t.col()) += t.value();
      dense_ = std::make_unique<Eigen::PartialPivLU<MatrixOf<T>>>(A);
      quality_ = n == 0 ? T(1) : dense_->rcond();
    } else {
      Eigen::SparseMatrix<T> A(n, n);
      A.setFromTriplets(entries.begin(), entries.end());
      sparse_ = std::make_unique<Eigen::SparseLU<Eigen::SparseMatrix<T>>>(A);
      quality_ = sparse_->info() == Eigen::Success ? T(1e-6) : T(0);
    }
  }

  VectorOf<T> solve(VectorOf<T> b) const {
    if (b.size() == 0) return b;
    b = b.cwiseProduct(row_).eval();
    b = dense_ ? VectorOf<T>(dense_->solve(b)) : VectorOf<T>(sparse_->solve(b));
    return b.cwiseProduct(column_);
  }
  T quality() const { return std::isfinite(static_cast<double>(quality_)) ? quality_ : T(0); }

 private:
  static T half_power(T size) {
    if (!(size > T(0)) || !std::isfinite(size)) return T(1);
    return std::ldexp(T(1),
                      -static_cast<int>(std::lround(0.5 * std::log2(static_cast<double>(size)))));
  }

  VectorOf<T> row_, column_;
  std::unique_ptr<Eigen::PartialPivLU<MatrixOf<T>>> dense_;
  std::unique_ptr<Eigen::SparseLU<Eigen::SparseMatrix<T>>> sparse_;
  T quality_ = T(0);
};

/// Unknowns (δ, e, f), δ = x_mid − xⁿ:
///   (2E/h − (J − R)Q)δ − (G − P)u = (J − R)Qxⁿ + (G − P)ū,
///   y − (G + P)ᵀQδ − (S + N)u     = (G + P)ᵀQxⁿ + (S + N)ū,
///   E_J e + F_J f                 = 0.
/// x⁺ = x + δ + Πδ, Π onto (ker E)^⊥.
template <class T>
class Midpoint {
 public:
  explicit Midpoint(const Network& network)
      : network_(network), n_(network.states()), p_(network.ports()), size_(n_ + 2 * p_) {
    std::vector<Eigen::Triplet<T>> entries;
    const T h = static_cast<T>(network.step_s);
    int state = 0, port = 0;
    for (const PartData& part : network.parts) {
      Blocks b;
      b.state = state;
      b.port = port;
      const MatrixOf<T> Q = part.Q.cast<T>();
      const MatrixOf<T> JR = part.J.cast<T>() - part.R.cast<T>();
      const MatrixOf<T> GmP = part.G.cast<T>() - part.P.cast<T>();
      const MatrixOf<T> GpP = part.G.cast<T>() + part.P.cast<T>();
      const MatrixOf<T> SN = part.S.cast<T>() + part.N.cast<T>();
      const int n = part.states(), p = part.ports(), m = part.inputs();
      b.rate = JR * Q;
      b.output = GpP.transpose().topRows(p) * Q;
      b.drive_rate = GmP.rightCols(m - p);
      b.drive_output = SN.topRightCorner(p, m - p);
      if (part.descriptor) b.projector = projector(part).cast<T>();
      const MatrixOf<T> lhs = (T(2) / h) * part.E.cast<T>() - b.rate;
      for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) add(entries, state + i, state + j, lhs(i, j));
        for (int j = 0; j < p; ++j)
          add(entries, state + i, input_column(part, port, j), -GmP(i, j));
      }
      for (int j = 0; j < p; ++j) {
        add(entries, n_ + port + j, output_column(part, port, j), T(1));
        for (int i = 0; i < n; ++i) add(entries, n_ + port + j, state + i, -b.output(j, i));
        for (int l = 0; l < p; ++l)
          add(entries, n_ + port + j, input_column(part, port, l), -SN(j, l));
      }
      state += n;
      port += p;
      blocks_.push_back(std::move(b));
    }
    int row = n_ + p_;
    for (const JointData& joint : network.joints) {
      Matrix E, F;
      kernel_of(network, joint, E, F);
      for (Eigen::Index i = 0; i < E.rows(); ++i, ++row) {
        for (Eigen::Index j = 0; j < E.cols(); ++j) {
          const int number = network.port_number(joint.ports[static_cast<std::size_t>(j)]);
          add(entries, row, n_ + number, static_cast<T>(E(i, j)));
          add(entries, row, n_ + p_ + number, static_cast<T>(F(i, j)));
          if (E(i, j) != 0.0 || F(i, j) != 0.0) {
            joint_terms_.push_back({row, number, E(i, j), F(i, j)});
          }
        }
      }
    }
    factors_ = std::make_unique<Factors<T>>(std::move(entries), size_);
  }

  T quality() const { return factors_->quality(); }

  Course run(const Noise* noise) const {
    Course course;
    Random random("noise", network_.seed);
    VectorOf<T> x(n_);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      x.segment(blocks_[i].state, network_.parts[i].states()) = network_.parts[i].start.cast<T>();
    }
    const LongVector none = LongVector::Zero(p_);
    course.x.push_back(x.template cast<long double>());
    course.e.push_back(none);
    course.f.push_back(none);
    std::vector<T> disturbance;  // δe, δf by port
    if (noise && noise->tolerance > 0.0) disturbance = sizes_of(*noise);
    for (int step = 0; step < network_.steps; ++step) {
      VectorOf<T> rhs = VectorOf<T>::Zero(size_);
      const double t = network_.step_s * (step + 0.5);
      for (std::size_t i = 0; i < blocks_.size(); ++i) {
        const PartData& part = network_.parts[i];
        const Blocks& b = blocks_[i];
        const int n = part.states(), p = part.ports();
        const auto own = x.segment(b.state, n);
        rhs.segment(b.state, n) = b.rate * own;
        if (p > 0) rhs.segment(n_ + b.port, p) = b.output * own;
        for (std::size_t k = 0; k < part.drives.size(); ++k) {
          const T u = static_cast<T>(part.drives[k].in_step(t, network_.step_s));
          rhs.segment(b.state, n) += u * b.drive_rate.col(static_cast<Eigen::Index>(k));
          if (p > 0)
            rhs.segment(n_ + b.port, p) += u * b.drive_output.col(static_cast<Eigen::Index>(k));
        }
      }
      if (!disturbance.empty()) {
        std::vector<T> sample(disturbance.size());
        for (std::size_t k = 0; k < sample.size(); ++k) {
          sample[k] = disturbance[k] * static_cast<T>(random.uniform(-1.0, 1.0));
        }
        for (const Term& term : joint_terms_) {
          const auto j = static_cast<std::size_t>(term.port);
          rhs[term.row] +=
              static_cast<T>(term.E) * sample[2 * j] + static_cast<T>(term.F) * sample[2 * j + 1];
        }
      }
      const VectorOf<T> z = factors_->solve(std::move(rhs));
      for (std::size_t i = 0; i < blocks_.size(); ++i) {
        const Blocks& b = blocks_[i];
        const int n = network_.parts[i].states();
        const VectorOf<T> delta = z.segment(b.state, n);
        x.segment(b.state, n) += delta;
        x.segment(b.state, n) += b.projector.size() > 0 ? VectorOf<T>(b.projector * delta) : delta;
      }
      if (noise && noise->rounding > 0.0) {
        for (int k = 0; k < n_; ++k) {
          x[k] *= T(1) + static_cast<T>(noise->rounding * random.uniform(-1.0, 1.0));
        }
      }
      course.x.push_back(x.template cast<long double>());
      course.e.push_back(z.segment(n_, p_).template cast<long double>());
      course.f.push_back(z.segment(n_ + p_, p_).template cast<long double>());
    }
    return course;
  }

 private:
  struct Blocks {
    int state = 0, port = 0;
    MatrixOf<T> rate, output, drive_rate, drive_output, projector;
  };
  struct Term {
    int row, port;
    double E, F;
  };

  static void add(std::vector<Eigen::Triplet<T>>& entries, int row, int column, T value) {
    if (value != T(0)) entries.emplace_back(row, column, value);
  }
  int input_column(const PartData& part, int first, int j) const {
    return n_ + first + j + (part.effort_in[static_cast<std::size_t>(j)] ? 0 : p_);
  }
  int output_column(const PartData& part, int first, int j) const {
    return n_ + first + j + (part.effort_in[static_cast<std::size_t>(j)] ? p_ : 0);
  }
  std::vector<T> sizes_of(const Noise& noise) const {
    std::vector<T> sizes(2 * static_cast<std::size_t>(p_), T(0));
    const std::vector<int> island = network_.islands();
    std::size_t j = 0;
    for (std::size_t i = 0; i < network_.parts.size(); ++i) {
      for (int k = 0; k < network_.parts[i].ports(); ++k, ++j) {
        const double energy = noise.island_energy[static_cast<std::size_t>(island[i])];
        const double gamma = noise.impedance[j];
        if (!(gamma > 0.0)) continue;
        sizes[2 * j] =
            static_cast<T>(noise.tolerance * std::sqrt(energy * gamma / network_.step_s));
        sizes[2 * j + 1] =
            static_cast<T>(noise.tolerance * std::sqrt(energy / gamma / network_.step_s));
      }
    }
    return sizes;
  }

  const Network& network_;
  int n_, p_, size_;
  std::vector<Blocks> blocks_;
  std::vector<Term> joint_terms_;
  std::unique_ptr<Factors<T>> factors_;
};

}  // namespace

MatrixOf<long double> projector(const PartData& part) {
  const MatrixOf<long double> E = part.E.cast<long double>();
  const Eigen::JacobiSVD<MatrixOf<long double>> svd(E, Eigen::ComputeFullV);
  const auto& sigma = svd.singularValues();
  MatrixOf<long double> result = MatrixOf<long double>::Zero(E.rows(), E.cols());
  for (Eigen::Index k = 0; k < sigma.size(); ++k) {
    if (sigma[k] > 1e-15L * sigma[0])
      result += svd.matrixV().col(k) * svd.matrixV().col(k).transpose();
  }
  return result;
}

Course run_reference(const Network& network, StepQuality* quality, const Noise* noise) {
  const Midpoint<long double> midpoint(network);
  if (quality) quality->reciprocal_condition = static_cast<double>(midpoint.quality());
  return midpoint.run(noise);
}

Course run_reference_in_double(const Network& network) {
  return Midpoint<double>(network).run(nullptr);
}

std::vector<double> port_impedances(const Network& network) {
  std::vector<double> result;
  for (const PartData& part : network.parts) {
    using M = MatrixOf<long double>;
    const int p = part.ports();
    const M Q = part.Q.cast<long double>();
    const M lhs = (2.0L / network.step_s) * part.E.cast<long double>() -
                  (part.J.cast<long double>() - part.R.cast<long double>()) * Q;
    const M drive = (part.G.cast<long double>() - part.P.cast<long double>()).leftCols(p);
    const M delta = lhs.partialPivLu().solve(drive);
    const M response =
        (part.G.cast<long double>() + part.P.cast<long double>()).leftCols(p).transpose() * Q *
            delta +
        (part.S.cast<long double>() + part.N.cast<long double>()).topLeftCorner(p, p);
    for (int j = 0; j < p; ++j) {
      const auto y = static_cast<double>(response(j, j));
      result.push_back(part.effort_in[static_cast<std::size_t>(j)] ? 1.0 / y : y);
      if (!std::isfinite(result.back())) result.back() = 0.0;
    }
  }
  return result;
}

}  // namespace portwave::differential
