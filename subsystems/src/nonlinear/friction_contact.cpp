#include "nonlinear/friction_contact.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

FrictionContact::FrictionContact(Signature signature, FrictionContactLaw law)
    : Subsystem(std::move(signature)),
      law_(std::move(law)),
      face_(law_.normal, -1.0),
      structure_(
          Structure::zero(static_cast<int>(law_.B.rows()), static_cast<int>(law_.B.cols()))) {
  const auto ports = static_cast<int>(law_.B.cols());
  for (int j = 0; j < ports; ++j) {
    for (int i = 0; i < static_cast<int>(law_.B.rows()); ++i) {
      if (law_.B(i, j) != 0.0) structure_.G.insert(i, j) = law_.B(i, j);
    }
    for (int i = 0; i < ports; ++i) structure_.S.insert(i, j) = 0.0;
  }
}

double FrictionContact::height(const double* x) const {
  double sum = 0.0;
  for (Eigen::Index i = 0; i < law_.n.size(); ++i) sum += law_.n[i] * x[i];
  return sum;
}

double FrictionContact::grip(double speed) const {
  const double share = speed / law_.creep_speed;
  return law_.friction * (share > 0.0 ? std::tanh(share) / speed : 1.0 / law_.creep_speed);
}

/// Where it just touches, over the origin.
std::vector<double> FrictionContact::default_state() const {
  std::vector<double> x(at(signature().state_size()));
  for (int i = 0; i < signature().state_size(); ++i) {
    x[at(i)] = law_.normal.gap == 0.0 ? 0.0 : -law_.normal.gap * law_.n[i];
  }
  return x;
}

std::vector<double> FrictionContact::typical_state() const {
  return std::vector<double>(at(signature().state_size()), law_.normal.reach);
}

void FrictionContact::gradient(const double* x, double* g) const {
  Eigen::Map<Eigen::VectorXd>(g, law_.n.size()) = face_.force(height(x)) * law_.n;
}

void FrictionContact::discrete_gradient(const double* x, const double* y, double* g) const {
  Eigen::Map<Eigen::VectorXd>(g, law_.n.size()) = face_.mean_force(height(x), height(y)) * law_.n;
}

void FrictionContact::add_normal_products(double factor,
                                          std::vector<Eigen::Triplet<double>>& out) const {
  const auto size = static_cast<int>(law_.n.size());
  for (int j = 0; j < size; ++j) {
    for (int i = 0; i < size; ++i) out.emplace_back(i, j, factor * law_.n[i] * law_.n[j]);
  }
}

void FrictionContact::discrete_gradient_jacobian(
    const double* x, const double* y, std::vector<Eigen::Triplet<double>>& jacobian) const {
  add_normal_products(face_.mean_slope(height(x), height(y)), jacobian);
}

bool FrictionContact::hessian(const double* x, std::vector<Eigen::Triplet<double>>& hessian) const {
  add_normal_products(face_.slope(height(x)), hessian);
  return true;
}

/// A level is one of a single state: only where the normal is an axis.
std::vector<StateLevel> FrictionContact::state_levels() const {
  for (int i = 0; i < signature().state_size(); ++i) {
    if (std::abs(law_.n[i]) != 1.0) continue;
    const double level = law_.normal.gap == 0.0 ? 0.0 : -law_.normal.gap * law_.n[i];
    if (law_.n[i] > 0.0) return {{i, level, "opens", "closes"}};
    return {{i, level, "closes", "opens"}};
  }
  return {};
}

void FrictionContact::structure_at(const double* x_mid, Structure& out) const {
  const double force = std::abs(face_.force(height(x_mid)));
  set_resistance(law_.normal.damping * force, force * grip(0.0), out);
}

void FrictionContact::structure_over(const double* x, const double* dx, double step_s,
                                     Structure& out) const {
  damped_structure_over(x, dx, step_s, 0.0, out);
}

void FrictionContact::damped_structure_over(const double* x, const double* dx, double step_s,
                                            double theta, Structure& out) const {
  const Eigen::Map<const Eigen::VectorXd> moved(dx, law_.n.size());
  const double from = height(x), along = height(dx);
  const double resistance = face_.resistance_over(from, along, step_s, theta);
  const double elastic = std::abs(face_.force_over(from, from + along, theta));
  const double force = std::max(0.0, elastic - resistance * along / step_s);
  const double slip = (moved - along * law_.n).stableNorm() / step_s;
  set_resistance(resistance, force * grip(slip), out);
}

/// Bᵀ(r nnᵀ + σ(I − nnᵀ))B.
void FrictionContact::set_resistance(double normal, double tangential, Structure& out) const {
  const auto ports = static_cast<int>(law_.B.cols());
  for (int j = 0; j < ports; ++j) {
    const double nj = law_.n.dot(law_.B.col(j));
    for (int i = 0; i < ports; ++i) {
      const double ni = law_.n.dot(law_.B.col(i));
      out.S.coeffRef(i, j) =
          normal * (ni * nj) + tangential * (law_.B.col(i).dot(law_.B.col(j)) - ni * nj);
    }
  }
}

std::string FrictionContact::batch_key() const {
  return fmt::format("friction_contact/{}/{}", law_.B.rows(), law_.B.cols());
}

std::unique_ptr<StepBatch> FrictionContact::make_batch(
    std::span<const Component* const> parts) const {
  return make_friction_contact_batch(port_hamiltonian_parts(parts), gauss_stages(1));
}

}  // namespace portwave
