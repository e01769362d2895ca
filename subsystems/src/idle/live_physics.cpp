#include "idle/live_physics.hpp"

#include <utility>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {

LivePhysics::LivePhysics(std::shared_ptr<const Component> given, LiveColumns columns,
                         NewtonOptions options)
    : Subsystem(columns.signature()),
      given_(std::move(given)),
      physics_(*given_->port_hamiltonian()),
      columns_(std::move(columns)),
      options_(options),
      all_columns_(physics_.structure()) {
  columns_.take(physics_.structure(), structure_);
}

/// A second thread that asks at the same time takes a structure of its own.
template <class Fill>
void LivePhysics::take(const Fill& fill, Structure& out) const {
  if (taken_.exchange(true, std::memory_order_acquire)) {
    Structure own = physics_.structure();
    fill(own);
    return columns_.take(own, out);
  }
  struct Return {
    std::atomic<bool>& taken;
    ~Return() { taken.store(false, std::memory_order_release); }
  } const give_back{taken_};  // also where a callback throws
  fill(all_columns_);
  columns_.take(all_columns_, out);
}

void LivePhysics::structure_at(const double* x_mid, Structure& out) const {
  take([&](Structure& all) { physics_.structure_at(x_mid, all); }, out);
}

void LivePhysics::structure_over(const double* x, const double* dx, double step_s,
                                 Structure& out) const {
  take([&](Structure& all) { physics_.structure_over(x, dx, step_s, all); }, out);
}

void LivePhysics::damped_structure_over(const double* x, const double* dx, double step_s,
                                        double theta, Structure& out) const {
  take(
      [&](Structure& all) { portwave::damped_structure_over(physics_, x, dx, step_s, theta, all); },
      out);
}

PortLawValue LivePhysics::port_law(int scalar_port, double u) const {
  return physics_.port_law(columns_.ports()[at(scalar_port)], u);
}

PortLawPoint LivePhysics::port_law_point(int scalar_port, double k, double beta, double r,
                                         const double* external) const {
  return physics_.port_law_point(columns_.ports()[at(scalar_port)], k, beta, r, external);
}

PortBranch LivePhysics::port_branch(int scalar_port, const double* external) const {
  return physics_.port_branch(columns_.ports()[at(scalar_port)], external);
}

std::unique_ptr<StepBatch> LivePhysics::make_batch(std::span<const Component* const> parts) const {
  return make_newton_batch(port_hamiltonian_parts(parts), options_);
}

}  // namespace portwave
