#include "nonlinear/closed_part.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <Eigen/Core>

#include "base/least_terms.hpp"
#include "nonlinear/monotone_root.hpp"
#include "portwave/subsystems/base/typical_state.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {
namespace {

using Eigen::VectorXd;

/// act(row, value) for the entries of a column.
template <class Act>
void for_column(const SparseMatrix& A, int column, const Act& act) {
  const int* const counts = A.innerNonZeroPtr();  // null: compressed
  const int begin = A.outerIndexPtr()[column];
  const int end = counts == nullptr ? A.outerIndexPtr()[column + 1] : begin + counts[column];
  const int* const rows = A.innerIndexPtr();
  const double* const values = A.valuePtr();
  for (int k = begin; k < end; ++k) act(rows[k], values[k]);
}

/// As most matrices of most parts are.
bool is_empty(const SparseMatrix& A) { return A.isCompressed() && A.nonZeros() == 0; }

/// y += sign · A x, or |A| x for magnitudes.
template <bool kMagnitudes>
void add_product(const SparseMatrix& A, double sign, const VectorXd& x, VectorXd& y) {
  if (is_empty(A)) return;
  double* const out = y.data();
  const int columns = static_cast<int>(A.outerSize());
  for (int j = 0; j < columns; ++j) {
    const double factor = x.data()[j];
    for_column(A, j, [&](int row, double value) {
      out[row] += (kMagnitudes ? std::abs(value) : sign * value) * factor;
    });
  }
}

/// y += Aᵀ x, or |A|ᵀ x for magnitudes.
template <bool kMagnitudes>
void add_transposed_product(const SparseMatrix& A, const VectorXd& x, VectorXd& y) {
  if (is_empty(A)) return;
  const int columns = static_cast<int>(A.outerSize());
  for (int j = 0; j < columns; ++j) {
    double& out = y.data()[j];
    for_column(A, j, [&](int row, double value) {
      out += (kMagnitudes ? std::abs(value) : value) * x.data()[row];
    });
  }
}

void add_column(const SparseMatrix& A, int column, double sign, VectorXd& out) {
  for (SparseMatrix::InnerIterator it(A, column); it; ++it) out[it.row()] += sign * it.value();
}

/// xᵀ A y
double bilinear_form(const SparseMatrix& A, const VectorXd& x, const VectorXd& y) {
  if (is_empty(A)) return 0.0;
  double sum = 0.0;
  for (int j = 0; j < A.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(A, j); it; ++it) sum += x[it.row()] * it.value() * y[j];
  }
  return sum;
}

}  // namespace

double scaled_size(const VectorXd& F, const VectorXd& w) {
  double largest = 0.0;
  for (Eigen::Index i = 0; i < F.size(); ++i) {
    if (F[i] == 0.0) continue;
    const double ratio = std::abs(F[i]) / (w[i] + kLeastTerms);
    if (!std::isfinite(ratio)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, ratio);
  }
  return largest;
}

ClosedPart::ClosedPart(const Subsystem& part, const HiddenTerms* hidden,
                       const NumericalDissipation* damped)
    : part_(part),
      hidden_(hidden),
      damped_(damped),
      memory_(dynamic_cast<const PortMemory*>(&part)),
      slopes_(structure_slopes_of(part)),
      n_(part.signature().state_size()),
      p_(part.signature().wave_size()),
      m_(p_ + part.signature().input_size()),
      has_laws_(part.has_port_laws()),
      feeds_through_(part.structure().S.nonZeros() + part.structure().N.nonZeros() > 0),
      E_(part.linear_form().E),
      structure_(part.structure()),
      probe_structure_(part.structure()),
      input_map_(p_, p_),
      closed_(n_, n_),
      rhs_(p_),
      M_(p_, p_),
      identity_(Eigen::MatrixXd::Identity(p_, p_)),
      M_lu_(p_) {
  for (VectorXd* v :
       {&x_, &x_next_, &probe_, &slope_, &g_, &g_size_, &v_, &v_size_, &F_, &w_, &row_, &column_}) {
    v->setZero(n_);
  }
  for (VectorXd* v : {&external_, &u_, &u_size_, &y_, &y_size_}) v->setZero(m_);
  if (!part.constant_structure()) typical_ = part.typical_state();
  if (slopes_ != nullptr) turning_.setZero(n_, n_);
  if (has_laws_) laws_.resize(static_cast<std::size_t>(p_));
}

void ClosedPart::prepare(double step_s, const double* impedance) {
  ++preparation_;
  h_ = step_s_ = step_s;
  closures_ = port_closures(part_.signature(), step_s, impedance);
  structure_ = part_.structure();
  close_ports(structure_);
  if (!input_map_.allFinite()) {
    throw ConfigError("", "the implicit step is singular at this impedance");
  }
  close_loop(structure_);
  make_room();
}

void ClosedPart::prepare_open(double step_s) {
  ++preparation_;
  h_ = step_s_ = step_s;
  closures_.assign(static_cast<std::size_t>(p_), {.s = 1.0,
                                                  .alpha = 1.0,
                                                  .beta = 0.0,
                                                  .slope = 0.0,
                                                  .sign = 0.0,
                                                  .impedance = 1.0,
                                                  .effort_in = true});
  structure_ = part_.structure();
  close_ports(structure_);
  close_loop(structure_);
  make_room();
}

/// For the entries that later calls will bring.
void ClosedPart::make_room() {
  if (preparation_ > 1) return;
  const std::vector<double> x = part_.default_state();
  const auto size = static_cast<std::size_t>(n_);
  entries_.clear();
  part_.discrete_gradient_jacobian(x.data(), x.data(), entries_);
  entries_.reserve(std::max(entries_.size(), size * size));
}

void ClosedPart::freeze(const double* x, const double* input) {
  if (hidden_ != nullptr) hidden_->forget_terms();
  std::copy(x, x + n_, x_.data());
  for (int j = p_; j < m_; ++j) external_[j] = input == nullptr ? 0.0 : input[j - p_];
}

void ClosedPart::close_ports(const Structure& structure) {
  if (p_ == 0) return;
  M_.setZero();
  for (int j = 0; j < p_; ++j) {
    for (const SparseMatrix* D : {&structure.S, &structure.N}) {
      for (SparseMatrix::InnerIterator it(*D, j); it; ++it) {
        if (it.row() < p_) M_(it.row(), j) += it.value();
      }
    }
  }
  for (int i = 0; i < p_; ++i) {
    const PortClosure& port = closures_[static_cast<std::size_t>(i)];
    M_.row(i) *= port.beta;
    M_(i, i) += port.alpha;
  }
  if (p_ == 1) {  // contacts and diodes come here in every iteration
    input_map_(0, 0) = 1.0 / M_(0, 0);
    return;
  }
  M_lu_.compute(M_);
  M_lu_.solve(identity_, input_map_);
}

void ClosedPart::close_loop(const Structure& structure) {
  closed_.setZero();
  for (int k = 0; k < n_; ++k) {
    column_.setZero();
    add_column(structure.J, k, 1.0, column_);
    add_column(structure.R, k, -1.0, column_);
    closed_.col(k) = column_;
  }
  for (int l = 0; l < p_; ++l) {
    row_.setZero();
    add_column(structure.G, l, 1.0, row_);
    add_column(structure.P, l, 1.0, row_);
    row_ *= closures_[static_cast<std::size_t>(l)].beta;
    for (int j = 0; j < p_; ++j) {
      if (input_map_(j, l) == 0.0) continue;
      column_.setZero();
      add_column(structure.G, j, 1.0, column_);
      add_column(structure.P, j, -1.0, column_);
      column_ *= input_map_(j, l);
      for (int k = 0; k < n_; ++k) {
        if (row_[k] != 0.0) closed_.col(k).noalias() -= row_[k] * column_;
      }
    }
  }
}

/// The inputs at the ports where φ acts, from what the others leave of the wave relation in rhs_:
///   αu + β((S + N)u + φ(u)) = s a − β(G + P)ᵀ∇̄H, port by port.
void ClosedPart::solve_port_laws() {
  for (int j = 0; j < p_; ++j) {
    const PortClosure& port = closures_[static_cast<std::size_t>(j)];
    if (part_.has_vertical_laws()) {
      const double* const external = m_ > p_ ? external_.data() + p_ : nullptr;
      const PortLawPoint point = part_.port_law_point(j, M_(j, j), port.beta, rhs_[j], external);
      u_[j] = point.u;
      laws_[static_cast<std::size_t>(j)] = {point.y, point.slope};
      continue;
    }
    const auto law = [this, j](double u) { return port_law(j, u); };
    u_[j] =
        port.beta == 0.0 ? rhs_[j] / M_(j, j) : monotone_root(M_(j, j), port.beta, rhs_[j], law);
    laws_[static_cast<std::size_t>(j)] = law(u_[j]);
  }
}

PortLawValue ClosedPart::port_law(int port, double u) const {
  return memory_ != nullptr ? memory_->port_law_after(x_.data(), port, u) : part_.port_law(port, u);
}

/// How the inputs follow from rhs_ at the inputs of the last evaluation, to first order.
void ClosedPart::close_port_laws() {
  input_map_.setZero();
  for (int j = 0; j < p_; ++j) {
    const PortClosure& port = closures_[static_cast<std::size_t>(j)];
    input_map_(j, j) = 1.0 / (M_(j, j) + port.beta * laws_[static_cast<std::size_t>(j)].slope);
  }
}

/// v = (J − R)g + (G − P)u with u from the incident waves and y = (G + P)ᵀg + D[0; u_x]; or the
/// magnitudes of the terms of all three.
template <bool kMagnitudes>
void ClosedPart::rate(const Structure& structure, const VectorXd& g, const double* a, VectorXd& u,
                      VectorXd& y, VectorXd& v) {
  for (int j = 0; j < p_; ++j) u[j] = 0.0;
  for (int j = p_; j < m_; ++j) u[j] = kMagnitudes ? std::abs(external_[j]) : external_[j];
  y.setZero();
  add_transposed_product<kMagnitudes>(structure.G, g, y);
  add_transposed_product<kMagnitudes>(structure.P, g, y);
  add_product<kMagnitudes>(structure.S, 1.0, u, y);
  add_product<kMagnitudes>(structure.N, 1.0, u, y);
  for (int j = 0; j < p_; ++j) {
    const PortClosure& port = closures_[static_cast<std::size_t>(j)];
    rhs_[j] =
        kMagnitudes ? port.s * std::abs(a[j]) + port.beta * y[j] : port.s * a[j] - port.beta * y[j];
  }
  if (has_laws_ && !kMagnitudes) solve_port_laws();
  for (int j = 0; j < p_ && (kMagnitudes || !has_laws_); ++j) {
    for (int i = 0; i < p_; ++i) {
      u[i] += (kMagnitudes ? std::abs(input_map_(i, j)) : input_map_(i, j)) * rhs_[j];
    }
  }
  v.setZero();
  add_product<kMagnitudes>(structure.J, 1.0, g, v);
  add_product<kMagnitudes>(structure.R, -1.0, g, v);
  add_product<kMagnitudes>(structure.G, 1.0, u, v);
  add_product<kMagnitudes>(structure.P, -1.0, u, v);
}

template void ClosedPart::rate<false>(const Structure&, const VectorXd&, const double*, VectorXd&,
                                      VectorXd&, VectorXd&);

void ClosedPart::free_increment(VectorXd& dx) {
  dx.setZero();
  part_.discrete_gradient(x_.data(), x_.data(), g_.data());
  if (!part_.constant_structure()) part_.structure_over(x_.data(), dx.data(), h_, structure_);
  u_ = external_;
  u_.head(p_).setZero();
  add_product<false>(structure_.J, h_, g_, dx);
  add_product<false>(structure_.R, -h_, g_, dx);
  add_product<false>(structure_.G, h_, u_, dx);
  add_product<false>(structure_.P, -h_, u_, dx);
}

void ClosedPart::linearise(const VectorXd& dx) {
  x_next_ = x_ + dx;
  entries_.clear();
  part_.discrete_gradient_jacobian(x_.data(), x_next_.data(), entries_);
}

double ClosedPart::evaluate(const double* a, const VectorXd& dx) {
  x_next_ = x_ + dx;
  part_.discrete_gradient(x_.data(), x_next_.data(), g_.data());
  g_size_ = g_.cwiseAbs();
  for (const auto& d : entries_) {
    const double reach = std::abs(x_[d.col()]) + std::abs(x_next_[d.col()]);
    g_size_[d.row()] += std::abs(d.value()) * reach;
  }
  if (hidden_ != nullptr) hidden_->add_to_gradient(x_.data(), g_size_.data());
  return admit_gradient_terms(a, dx, close(a, dx));
}

double ClosedPart::evaluate_plainly(const double* a, const VectorXd& dx) {
  x_next_ = x_ + dx;
  part_.discrete_gradient(x_.data(), x_next_.data(), g_.data());
  g_size_ = g_.cwiseAbs();
  if (hidden_ != nullptr) hidden_->add_to_gradient(x_.data(), g_size_.data());
  return admit_gradient_terms(a, dx, close(a, dx));
}

double ClosedPart::evaluate_plainly(const double* a, const VectorXd& dx, const double* gradient) {
  x_next_ = x_ + dx;
  g_ = Eigen::Map<const VectorXd>(gradient, n_);
  g_size_ = g_.cwiseAbs();
  if (hidden_ != nullptr) hidden_->add_to_gradient(x_.data(), g_size_.data());
  const double size = close(a, dx);
  return gradients_cancel() ? admit_gradient_terms(a, dx, size) : size;
}

double ClosedPart::evaluate_coarsely(const double* a, const VectorXd& dx) {
  x_next_ = x_ + dx;
  hidden_->coarse_gradient(x_.data(), x_next_.data(), g_.data());
  g_size_ = g_.cwiseAbs();
  hidden_->add_to_gradient(x_.data(), g_size_.data());
  const double size = close(a, dx);
  return gradients_cancel() ? admit_gradient_terms(a, dx, size) : size;
}

void ClosedPart::stiffness(VectorXd& out) const {
  out.setZero();
  for (const auto& d : entries_) {
    if (d.row() == d.col()) out[d.row()] += d.value();
  }
  out = out.cwiseAbs();
}

/// F and w at Δx for the ∇̄H in g_ and its magnitudes in g_size_.
double ClosedPart::close(const double* a, const VectorXd& dx) {
  if (!part_.constant_structure()) {
    if (!slides_) part_.structure_over(x_.data(), dx.data(), h_, structure_);
    if (feeds_through_) close_ports(structure_);
  }
  rate<false>(structure_, g_, a, u_, y_, v_);
  if (has_laws_) close_port_laws();  // for the magnitudes, and for the derivative
  if (E_ == nullptr) {
    F_ = dx - h_ * v_;
  } else {
    F_ = -h_ * v_;
    add_product<false>(*E_, 1.0, dx, F_);
  }
  set_magnitude(a, dx);
  return scaled_size(F_, w_);
}

void ClosedPart::set_magnitude(const double* a, const VectorXd& dx) {
  rate<true>(structure_, g_size_, a, u_size_, y_size_, v_size_);
  column_ = dx.cwiseAbs();
  w_ = h_ * v_size_;
  if (E_ == nullptr) {
    w_ += column_;
  } else {
    add_product<true>(*E_, 1.0, column_, w_);
  }
}

/// Terms that a discrete gradient has beside its own tell where a solution cannot be made better. Far from
/// one they would only change the measure by which a way to it is found.
double ClosedPart::admit_gradient_terms(const double* a, const VectorXd& dx, double size) {
  constexpr double kNearby = 1e-9;
  if (size == 0.0 || !(size <= kNearby || gradients_cancel())) return size;
  return beside_gradient_terms(a, dx, size);
}

double ClosedPart::beside_gradient_terms(const double* a, const VectorXd& dx, double size) {
  probe_ = g_size_;
  part_.add_gradient_terms(x_.data(), x_next_.data(), g_.data(), g_size_.data());
  if (g_size_ == probe_) return size;
  set_magnitude(a, dx);
  return scaled_size(F_, w_);
}

/// A state-dependent structure adds its own derivative.
void ClosedPart::assemble_jacobian(const double* a, const VectorXd& dx, Eigen::MatrixXd& jacobian) {
  const bool constant = part_.constant_structure();
  if (!constant || has_laws_) close_loop(structure_);
  if (E_ == nullptr) {
    jacobian.setIdentity();
  } else {
    jacobian.setZero();
    for (int j = 0; j < n_; ++j) {
      for (SparseMatrix::InnerIterator it(*E_, j); it; ++it) jacobian(it.row(), j) += it.value();
    }
  }
  for (const auto& d : entries_) {
    if (d.value() == 0.0) continue;
    jacobian.col(d.col()).noalias() -= (h_ * d.value()) * closed_.col(d.row());
  }
  if (!constant) add_slopes(a, dx, jacobian);
}

void ClosedPart::wave_column(int port, VectorXd& out) {
  u_.setZero();
  u_.head(p_) = (h_ * closures_[static_cast<std::size_t>(port)].s) * input_map_.col(port);
  out.setZero();
  add_product<false>(structure_.G, 1.0, u_, out);
  add_product<false>(structure_.P, -1.0, u_, out);
}

void ClosedPart::wave_response(int port, const VectorXd& gradient, double* D) {
  y_.setZero();
  add_transposed_product<false>(structure_.G, gradient, y_);
  add_transposed_product<false>(structure_.P, gradient, y_);
  for (int j = 0; j < p_; ++j) {
    const PortClosure& own = closures_[static_cast<std::size_t>(j)];
    rhs_[j] = (j == port ? own.s : 0.0) - own.beta * y_[j];
  }
  for (int i = 0; i < p_; ++i) {
    const PortClosure& own = closures_[static_cast<std::size_t>(i)];
    const double u = input_map_.row(i).dot(rhs_);
    D[i * p_ + port] = own.slope * u + (i == port ? own.sign : 0.0);
  }
}

const StageStart* ClosedPart::stage_start() const {
  return hidden_ == nullptr || has_laws_ || n_ == 0 ? nullptr : hidden_->start(x_.data());
}

void ClosedPart::start_derivative(const StageStart& start, StageDerivative& out) const {
  const Eigen::Index n = start.hessian.rows(), p = out.in.cols(), count = n_ / n - 1;
  // Of the first stage: x itself stands before it.
  const auto for_stage = [n](const SparseMatrix& M, Eigen::Index column, const auto& act) {
    for (SparseMatrix::InnerIterator it(M, column); it; ++it) {
      if (it.row() >= n && it.row() < 2 * n) act(it.row() - n, it.value());
    }
  };
  out.E = start.turning;
  for (Eigen::Index k = 0; k < n; ++k) {
    const auto add = [&](double sign) {
      return [&, sign](Eigen::Index row, double value) {
        out.E.row(row) += (sign * value) * start.hessian.row(k);
      };
    };
    for_stage(structure_.J, n + k, add(1.0));
    for_stage(structure_.R, n + k, add(-1.0));
  }
  out.in.setZero();
  out.seen.setZero();
  for (Eigen::Index j = 0; j < p; ++j) {
    const auto add = [&](double sign) {
      return [&, sign](Eigen::Index row, double value) {
        out.in(row, j) += sign * value;
        out.seen.row(j) += value * start.hessian.row(row);
      };
    };
    for_stage(structure_.G, j, add(1.0));
    for_stage(structure_.P, j, add(-1.0));
  }
  for (Eigen::Index row = 0; row < count * p; ++row) {
    const Eigen::Index first = row / p * p;
    for (Eigen::Index l = 0; l < p; ++l) {
      out.closing(row, l) =
          input_map_(row, first + l) * closures_[static_cast<std::size_t>(first + l)].beta;
    }
  }
}

void ClosedPart::outgoing(const double* a, double* b) const {
  for (int j = 0; j < p_; ++j) {
    const PortClosure& port = closures_[static_cast<std::size_t>(j)];
    b[j] = port.slope * u_[j] + port.sign * a[j];
  }
}

void ClosedPart::outputs(double* y, double* magnitudes) {
  const auto add = [&]<bool kMagnitudes>(const VectorXd& g, const VectorXd& u, VectorXd& out) {
    out.setZero();
    add_transposed_product<kMagnitudes>(structure_.G, g, out);
    add_transposed_product<kMagnitudes>(structure_.P, g, out);
    add_product<kMagnitudes>(structure_.S, 1.0, u, out);
    add_product<kMagnitudes>(structure_.N, 1.0, u, out);
  };
  add.operator()<false>(g_, u_, y_);
  for (int j = 0; j < p_ && has_laws_; ++j) y_[j] += laws_[static_cast<std::size_t>(j)].value;
  std::copy(y_.data(), y_.data() + p_, y);
  for (int j = 0; j < m_; ++j) u_size_[j] = std::abs(u_[j]);
  add.operator()<true>(g_size_, u_size_, y_);
  for (int j = 0; j < p_ && has_laws_; ++j) {
    y_[j] += std::abs(laws_[static_cast<std::size_t>(j)].value);
  }
  std::copy(y_.data(), y_.data() + p_, magnitudes);
}

void ClosedPart::slide(const VectorXd& from, const VectorXd& to, double share) {
  part_.structure_over(x_.data(), from.data(), h_, structure_);
  part_.structure_over(x_.data(), to.data(), h_, probe_structure_);
  for (const auto matrix :
       {&Structure::J, &Structure::R, &Structure::G, &Structure::P, &Structure::S, &Structure::N}) {
    auto own = (structure_.*matrix).coeffs();
    own += share * ((probe_structure_.*matrix).coeffs() - own);
  }
  slides_ = true;
}

/// H(x⁺) − H(x): by the discrete gradient and the increment, which do not cancel where H does,
/// unless the two energies say otherwise by more than their own rounding (a gradient that H does
/// not have).
double ClosedPart::stored_change(const double* x_next, double numerical_J) {
  constexpr double kRoundOff = 16.0 * std::numeric_limits<double>::epsilon();
  const double before = part_.storage(x_.data()), after = part_.storage(x_next);
  double change = -numerical_J, terms = std::abs(before) + std::abs(after) + numerical_J;
  if (hidden_ != nullptr) terms += hidden_->of_energy(x_.data(), g_.data());
  const auto add = [&](int i, double moved, double size) {
    change += g_[i] * moved;
    terms += std::abs(g_[i]) * size;
  };
  for (int j = 0; j < n_; ++j) {
    const double moved = x_next[j] - x_[j], size = std::abs(x_next[j]) + std::abs(x_[j]);
    if (E_ == nullptr) {
      add(j, moved, size);
      continue;
    }
    for (SparseMatrix::InnerIterator it(*E_, j); it; ++it) {
      add(static_cast<int>(it.row()), it.value() * moved, std::abs(it.value()) * size);
    }
  }
  const double direct = after - before;
  return std::abs(direct - change) <= kRoundOff * terms ? change : direct;
}

StepEnergy ClosedPart::commit(const VectorXd& dx, double* x_next) {
  Eigen::Map<VectorXd>(x_next, n_) = x_ + dx;
  part_.stop_at_bounds(x_next);
  if (memory_ != nullptr) memory_->remember(u_.data(), x_next);
  y_.setZero();
  add_transposed_product<false>(structure_.G, g_, y_);
  add_transposed_product<false>(structure_.P, g_, y_);
  add_product<false>(structure_.S, 1.0, u_, y_);
  add_product<false>(structure_.N, 1.0, u_, y_);
  StepEnergy energy;
  if (damped_ != nullptr) {
    energy.numerical_dissipation_J = damped_->numerical_dissipation(x_.data(), dx.data());
  }
  energy.change_J = stored_change(x_next, energy.numerical_dissipation_J);
  for (int j = p_; j < m_; ++j) energy.external_supply_J += h_ * u_[j] * y_[j];
  energy.dissipated_J =
      energy.numerical_dissipation_J +
      h_ * (bilinear_form(structure_.R, g_, g_) + 2.0 * bilinear_form(structure_.P, g_, u_) +
            bilinear_form(structure_.S, u_, u_));
  for (int j = 0; j < p_ && has_laws_; ++j) {
    energy.dissipated_J += h_ * laws_[static_cast<std::size_t>(j)].value * u_[j];
  }
  return energy;
}

}  // namespace portwave
