#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"

namespace portwave::testing {

/// A part at whose ports nothing acts: no efforts where it takes efforts, no flows where it takes
/// flows. Its ports are left out; it needs S = N = 0.
class WithoutPorts final : public Subsystem {
 public:
  explicit WithoutPorts(std::shared_ptr<const Component> part)
      : Subsystem(cut(part->signature())),
        component_(std::move(part)),
        part_(*component_->port_hamiltonian()),
        structure_(cut(part_.structure())) {}

  std::vector<double> default_state() const override { return part_.default_state(); }
  std::vector<double> typical_state() const override { return part_.typical_state(); }
  double storage(const double* x) const override { return part_.storage(x); }
  void gradient(const double* x, double* g) const override { part_.gradient(x, g); }
  void discrete_gradient(const double* x, const double* x_next, double* g) const override {
    part_.discrete_gradient(x, x_next, g);
  }
  void discrete_gradient_jacobian(const double* x, const double* x_next,
                                  std::vector<Eigen::Triplet<double>>& jacobian) const override {
    part_.discrete_gradient_jacobian(x, x_next, jacobian);
  }
  bool hessian(const double* x, std::vector<Eigen::Triplet<double>>& hessian) const override {
    return part_.hessian(x, hessian);
  }
  bool constant_structure() const override { return part_.constant_structure(); }
  const Structure& structure() const override { return structure_; }
  void structure_at(const double* x_mid, Structure& out) const override {
    Structure whole = part_.structure();
    part_.structure_at(x_mid, whole);
    out = cut(whole);
  }
  void stop_at_bounds(double* x_next) const override { part_.stop_at_bounds(x_next); }

 private:
  static Signature cut(Signature signature) {
    signature.ports.clear();
    return signature;
  }
  Structure cut(const Structure& whole) const {
    const int inputs = signature().input_size();
    Structure out = Structure::zero(whole.states(), inputs);
    out.J = whole.J;
    out.R = whole.R;
    out.G = whole.G.rightCols(inputs);
    return out;
  }

  std::shared_ptr<const Component> component_;
  const Subsystem& part_;
  Structure structure_;
};

/// The state after so many steps without any inputs, each of so many Gauss stages.
inline std::vector<double> move_freely(std::shared_ptr<const Component> part, int stages,
                                       double step_s, int steps, std::vector<double> x) {
  std::shared_ptr<const Component> alone = std::make_shared<WithoutPorts>(std::move(part));
  if (stages > 1) alone = staged_part(alone, stages);
  const Component* const parts[] = {alone.get()};
  const std::unique_ptr<StepBatch> batch = alone->make_batch(parts);
  batch->prepare(step_s, nullptr);
  AlignedVector record(batch->record_size()), next(batch->record_size());
  batch->set_state(0, x.data(), record.data());
  for (int step = 0; step < steps; ++step) {
    batch->freeze({0, 1}, record.data(), nullptr);
    if (!batch->advance({0, 1}, record.data(), nullptr, next.data(), nullptr, {}).ok()) {
      throw std::runtime_error("a step did not converge");
    }
    record.swap(next);
  }
  batch->get_state(0, record.data(), x.data());
  return x;
}

}  // namespace portwave::testing
