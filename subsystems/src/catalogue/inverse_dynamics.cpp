#include "portwave/subsystems/catalogue/inverse_dynamics.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include <Eigen/Cholesky>
#include <fmt/format.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave {
namespace {

[[noreturn]] void refuse(const Component& part, const std::string& why) {
  throw ConfigError("", fmt::format("inverse dynamics of {}: {}. It is for mechanisms whose last "
                                    "states are momenta, with an input for each, such as "
                                    "articulated and planar_arm",
                                    in_quotes(part.signature().type), why));
}

const Subsystem& physics_of(const Component& part) {
  const Subsystem* const own = part.port_hamiltonian();
  if (own == nullptr) refuse(part, "its equations are not known");
  return *own;
}

}  // namespace

struct InverseDynamics::Impl {
  std::shared_ptr<const Component> part;
  const Subsystem& physics;
  int nq, nv;
  Structure structure;
  Eigen::VectorXd x, g, rate, a, p;
  Eigen::MatrixXd H;
  std::vector<Eigen::Triplet<double>> entries;
  Eigen::LLT<Eigen::MatrixXd> inertia;  ///< of M⁻¹

  explicit Impl(std::shared_ptr<const Component> given)
      : part(std::move(given)),
        physics(physics_of(*part)),
        nq(physics.signature().state_size() - physics.signature().input_size()),
        nv(physics.signature().input_size()),
        structure(physics.structure()) {
    if (nv == 0 || nq < nv) refuse(*part, "it has not an input for each momentum");
    const int n = nq + nv, first = physics.signature().wave_size();
    const Eigen::MatrixXd G(structure.G - structure.P);
    Eigen::MatrixXd expected = Eigen::MatrixXd::Zero(n, nv);
    expected.bottomRows(nv).setIdentity();
    if (G.middleCols(first, nv) != expected) refuse(*part, "an input acts on other states, too");
    for (Eigen::VectorXd* own : {&x, &g, &rate}) own->setZero(n);
    for (Eigen::VectorXd* own : {&a, &p}) own->setZero(nv);
    H.setZero(n, n);
    inertia = Eigen::LLT<Eigen::MatrixXd>(nv);
    entries.reserve(static_cast<std::size_t>(n) * static_cast<std::size_t>(n));
    const std::vector<double> start = physics.default_state();
    x = Eigen::Map<const Eigen::VectorXd>(start.data(), n);
    x.tail(nv).setZero();
    if (!take_inertia()) refuse(*part, "its energy is not quadratic in them");
    physics.gradient(x.data(), g.data());
    if (g.tail(nv).cwiseAbs().maxCoeff() > 0.0) refuse(*part, "it moves where momenta are 0");
  }

  static Eigen::Map<const Eigen::VectorXd> view(std::span<const double> values, int size,
                                                const char* what) {
    if (static_cast<int>(values.size()) != size) {
      throw std::invalid_argument(fmt::format("inverse dynamics: {} must have {} numbers, got {}",
                                              what, size, values.size()));
    }
    return {values.data(), size};
  }
  static Eigen::Map<Eigen::VectorXd> view(std::span<double> values, int size) {
    (void)view(std::span<const double>(values), size, "the result");
    return {values.data(), size};
  }

  void take_hessian() {
    entries.clear();
    H.setZero();
    // ∂∇̄H/∂x⁺ is half of it where both ends meet, for parts that do not give it.
    const bool is_given = physics.hessian(x.data(), entries);
    if (!is_given) physics.discrete_gradient_jacobian(x.data(), x.data(), entries);
    for (const auto& entry : entries) H(entry.row(), entry.col()) += entry.value();
    if (!is_given) H = (H + H.transpose()).eval();
  }
  /// The factor of ∂²H/∂p² = M⁻¹ at x.
  bool take_inertia() {
    take_hessian();
    inertia.compute(H.bottomRightCorner(nv, nv));
    return inertia.info() == Eigen::Success;
  }
  void set(std::span<const double> q) {
    x.head(nq) = view(q, nq, "positions");
    x.tail(nv).setZero();
  }
  void set_moving(std::span<const double> q, std::span<const double> v) {
    set(q);
    if (!take_inertia()) throw std::runtime_error("inverse dynamics: M is not positive definite");
    p = view(v, nv, "velocities");
    inertia.solveInPlace(p);
    x.tail(nv) = p;
  }
  /// x' without inputs, at x.
  void take_rate() {
    physics.gradient(x.data(), g.data());
    if (!physics.constant_structure()) physics.structure_at(x.data(), structure);
    rate.noalias() = structure.J * g;
    rate.noalias() -= structure.R * g;
  }
};

InverseDynamics::InverseDynamics(std::shared_ptr<const Component> part)
    : impl_(std::make_unique<Impl>(std::move(part))) {}
InverseDynamics::~InverseDynamics() = default;

int InverseDynamics::positions() const { return impl_->nq; }
int InverseDynamics::velocities() const { return impl_->nv; }

/// v = ∂H/∂p, so that a = H_pq q' + H_pp p', which gives p', and τ is what p' has beside its own.
void InverseDynamics::torques(std::span<const double> q, std::span<const double> v,
                              std::span<const double> a, std::span<double> out) {
  Impl& own = *impl_;
  auto result = Impl::view(out, own.nv);
  own.set_moving(q, v);
  own.take_hessian();
  own.take_rate();
  own.a = Impl::view(a, own.nv, "accelerations");
  own.a.noalias() -= own.H.bottomLeftCorner(own.nv, own.nq) * own.rate.head(own.nq);
  own.inertia.solveInPlace(own.a);
  result = own.a - own.rate.tail(own.nv);
}

void InverseDynamics::gravity(std::span<const double> q, std::span<double> out) {
  Impl& own = *impl_;
  auto result = Impl::view(out, own.nv);
  own.set(q);
  own.take_rate();
  result = -own.rate.tail(own.nv);
}

void InverseDynamics::momenta(std::span<const double> q, std::span<const double> v,
                              std::span<double> out) {
  auto result = Impl::view(out, impl_->nv);
  impl_->set_moving(q, v);
  result = impl_->p;
}

void InverseDynamics::velocities_of(std::span<const double> q, std::span<const double> p,
                                    std::span<double> out) {
  Impl& own = *impl_;
  auto result = Impl::view(out, own.nv);
  own.set(q);
  own.x.tail(own.nv) = Impl::view(p, own.nv, "momenta");
  own.physics.gradient(own.x.data(), own.g.data());
  result = own.g.tail(own.nv);
}

}  // namespace portwave
