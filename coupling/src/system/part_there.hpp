#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "portwave/coupling/system/state_constraints.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/typical_state.hpp"
#include "portwave/subsystems/matrices/sparse_rank.hpp"
#include "system/constraint_search.hpp"

namespace portwave {

/// A sum of terms, the magnitudes of these, and of what they are made of in turn.
struct TermSum {
  double value = 0.0, size = 0.0, made_of = 0.0;

  void add(double weight, const TermSum& term) {
    value += weight * term.value;
    size += std::abs(weight * term.value);
    made_of += std::abs(weight) * term.made_of;
  }
};

/// A part in a state, as constraints on states see it.
class PartThere {
  using Vector = Eigen::VectorXd;

 public:
  PartThere(const Part& placed, std::span<const double> x)
      : placed_(&placed),
        physics_(placed.port_hamiltonian()),
        descriptor_(descriptor_of(placed)),
        structure_(*physics_, x),
        ports_(physics_->signature().wave_size()) {
    move_to(Eigen::Map<const Vector>(x.data(), static_cast<Eigen::Index>(x.size())));
  }

  /// The structure stays.
  void move_to(const Vector& x) {
    x_ = x;
    if (descriptor_ != nullptr) {
      const SparseMatrix& V = descriptor_->kernel();
      if (V.cols() > 0) x_ -= V * Vector(V.transpose() * x_);
    }
    z_ = gradient(x_);
    if (descriptor_ == nullptr || descriptor_->analysis().algebraic == 0) return;
    if (rate_of_x_.size() == 0) {
      const DescriptorForm& form = descriptor_->form();
      rate_of_x_ = descriptor_rate(form.J, form.R, form.Q);
    }
    rate_ = rate_of_x_ * x_;
  }

  /// Without what lies in the kernel of E, which the structure does not see.
  const Vector& x() const { return x_; }
  /// Whether `x` is all of the state.
  bool is_as_given() const { return descriptor_ == nullptr || descriptor_->kernel().cols() == 0; }
  const Vector& z() const { return z_; }
  const Subsystem& physics() const { return *physics_; }
  int ports() const { return ports_; }

  /// y of a port with u = 0 at all of them.
  TermSum output(int port, const StateInstant& at, int part) const {
    TermSum out;
    const Structure& s = structure_.get();
    for (const SparseMatrix* M : {&s.G, &s.P}) {
      for (SparseMatrix::InnerIterator it(*M, port); it; ++it) {
        out.value += it.value() * z_[it.row()];
        out.made_of += std::abs(it.value() * z_[it.row()]);
      }
    }
    for_sources(port, [&](int input, double weight) {
      const double own = weight * at.input(part, input);
      out.value += own;
      out.made_of += std::abs(own);
    });
    out.size = std::abs(out.value);
    return out;
  }

  /// An algebraic equation with all of its unknowns and ports at 0.
  TermSum equation(int number, const StateInstant& at, int part) const {
    TermSum out;
    for (SparseMatrix::InnerIterator it(descriptor_->algebraic().equations(), number); it; ++it) {
      const double own = it.value() * rate_[it.row()];
      out.add(1.0, {own, std::abs(own), std::abs(own)});
    }
    for_equation_sources(number, [&](int input, double weight) {
      const double own = weight * at.input(part, input);
      out.add(1.0, {own, std::abs(own), std::abs(own)});
    });
    return out;
  }

  /// Calls `visit(input, weight)` for the driven external inputs in the output of a port.
  template <class Visit>
  void for_sources(int port, const Visit& visit) const {
    const Structure& s = structure_.get();
    for (int c = 0; c < s.inputs() - ports_; ++c) {
      if (!placed_->input_is_driven[at(c)]) continue;
      const double weight = s.S.coeff(port, ports_ + c) + s.N.coeff(port, ports_ + c);
      if (weight != 0.0) visit(c, weight);
    }
  }
  template <class Visit>
  void for_equation_sources(int number, const Visit& visit) const {
    const SparseMatrix& B = descriptor_->form().B;
    for (int c = 0; c < static_cast<int>(B.cols()) - ports_; ++c) {
      if (!placed_->input_is_driven[at(c)]) continue;
      double weight = 0.0;
      for (SparseMatrix::InnerIterator it(descriptor_->algebraic().equations(), number); it; ++it) {
        weight += it.value() * B.coeff(it.row(), ports_ + c);
      }
      if (weight != 0.0) visit(c, weight);
    }
  }

  /// How outputs and equations change along dx: of ∇H, to first order.
  Vector slope(const Vector& dx) const {
    if (physics_->is_linear()) return gradient(dx);
    std::vector<Eigen::Triplet<double>> entries;
    if (physics_->hessian(x_.data(), entries)) {
      Vector out = Vector::Zero(x_.size());
      for (const auto& own : entries) out[own.row()] += own.value() * dx[own.col()];
      return out;
    }
    const std::vector<double> typical = physics_->typical_state();
    double reach = 1.0;  // the shortest way that is felt in some state
    for (int i = 0; i < static_cast<int>(x_.size()); ++i) {
      if (dx[i] == 0.0) continue;
      reach = std::min(reach, difference_step(typical[at(i)], x_[i]) / std::abs(dx[i]));
    }
    return (gradient(x_ + reach * dx) - gradient(x_ - reach * dx)) / (2.0 * reach);
  }
  double output_slope(int port, const Vector& dz) const {
    double out = 0.0;
    const Structure& s = structure_.get();
    for (const SparseMatrix* M : {&s.G, &s.P}) {
      for (SparseMatrix::InnerIterator it(*M, port); it; ++it) out += it.value() * dz[it.row()];
    }
    return out;
  }
  double equation_slope(int number, const Vector& dx) const {
    const Vector rate = rate_of_x_ * dx;
    return descriptor_->algebraic().equations().col(number).dot(rate);
  }

  /// What impulses at its ports, and in its algebraic unknowns, make of its state.
  void add_jump(const PortTerm& term, int first_port, Vector& out) const {
    const Structure& s = structure_.get();
    for (SparseMatrix::InnerIterator it(s.G, term.port - first_port); it; ++it) {
      out[it.row()] += term.weight * it.value();
    }
    for (SparseMatrix::InnerIterator it(s.P, term.port - first_port); it; ++it) {
      out[it.row()] -= term.weight * it.value();
    }
  }
  void add_jump(const AlgebraicTerm& term, Vector& out) const {
    const Vector own = descriptor_->algebraic().kernel().col(term.number);
    out += term.weight * (rate_of_x_ * own);
  }
  /// Of a descriptor part: x with this Ex.
  Vector with_E(const Vector& Ex) const {
    if (physics_->linear_form().E == nullptr) return Ex;
    const SparseMatrix right = Ex.sparseView(0.0, 0.0);
    return Vector(solve_in_range(*physics_->linear_form().E, right).col(0));
  }
  /// ½ dzᵀE dx
  double energy_of(const Vector& dz, const Vector& dx) const {
    const SparseMatrix* const E = physics_->linear_form().E;
    return 0.5 * (E == nullptr ? dz.dot(dx) : dz.dot(*E * dx));
  }
  double storage() const { return physics_->storage(x_.data()); }
  double size_J() const { return 0.5 * z_.cwiseAbs().dot(x_.cwiseAbs()); }

  /// The only state that an output comes from, as "speed" of an inertia; −1 where there are several.
  int only_state(int port) const {
    const Structure& s = structure_.get();
    int only = -1;
    for (const SparseMatrix* M : {&s.G, &s.P}) {
      for (SparseMatrix::InnerIterator it(*M, port); it; ++it) {
        if (it.value() == 0.0) continue;
        if (only >= 0 && only != it.row()) return -1;
        only = static_cast<int>(it.row());
      }
    }
    const SparseMatrix* const Q = physics_->linear_form().Q;
    if (only < 0 || Q == nullptr) return -1;
    const SparseMatrix by_row = Q->transpose();
    int state = -1;
    for (SparseMatrix::InnerIterator it(by_row, only); it; ++it) {
      if (it.value() == 0.0) continue;
      if (state >= 0) return -1;
      state = static_cast<int>(it.row());
    }
    return state;
  }

 private:
  Vector gradient(const Vector& x) const {
    Vector z = Vector::Zero(x.size());
    physics_->gradient(x.data(), z.data());
    return z;
  }

  const Part* placed_;
  const Subsystem* physics_;
  const DescriptorPortHamiltonian* descriptor_;
  StructureThere structure_;
  int ports_;
  Vector x_, z_;
  SparseMatrix rate_of_x_;  // of descriptor parts with algebraic equations
  Vector rate_;
};

}  // namespace portwave
