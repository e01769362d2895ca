#include "study/order_runs.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <Eigen/Core>
#include <fmt/format.h>

#include "parallel/threads/parallel_for_each.hpp"
#include "portwave/coupling/network/collocation.hpp"
#include "portwave/coupling/network/dynamic_iteration.hpp"
#include "portwave/coupling/network/network_model.hpp"
#include "portwave/coupling/network/splitting.hpp"
#include "portwave/runtime/parallel/arena.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"

namespace portwave {
namespace {

Eigen::VectorXd vector_of(std::span<const double> values) {
  return Eigen::Map<const Eigen::VectorXd>(values.data(), static_cast<Eigen::Index>(values.size()));
}

/// x⁺ = Φx + Ψu(t + h/2)
class DenseMidpoint final : public OrderRun {
 public:
  DenseMidpoint(const OrderSetting& setting, const DenseForm& form, double step_s)
      : system_(*setting.system), step_s_(step_s), x_(setting.start), u_(form.B.cols()) {
    const Eigen::MatrixXd half = 0.5 * step_s * form.A;
    const Eigen::MatrixXd identity = Eigen::MatrixXd::Identity(half.rows(), half.cols());
    step_map_ = lu_solve(identity - half, identity + half);
    input_map_ = step_s * lu_solve(identity - half, form.B);
  }

  void step(std::int64_t steps) override {
    for (std::int64_t n = 0; n < steps; ++n, ++index_) {
      next_.noalias() = step_map_ * x_;
      if (u_.size() > 0) {
        system_.sample(system_.start_s() + (static_cast<double>(index_) + 0.5) * step_s_,
                       u_.data());
        next_.noalias() += input_map_ * u_;
      }
      x_.swap(next_);
    }
  }
  Eigen::VectorXd state() const override { return x_; }
  std::optional<double> operations() const override {
    return static_cast<double>(step_map_.size() + input_map_.size());
  }

 private:
  const CondensedSystem& system_;
  double step_s_;
  std::int64_t index_ = 0;
  Eigen::MatrixXd step_map_;
  Eigen::MatrixXd input_map_;
  Eigen::VectorXd x_, next_, u_;
};

class SparseCollocation final : public OrderRun {
 public:
  SparseCollocation(const OrderSetting& setting, Integrator integrator, double step_s)
      : reference_(*setting.system, step_s, integrator) {}

  void step(std::int64_t steps) override {
    for (std::int64_t n = 0; n < steps; ++n) reference_.step();
  }
  Eigen::VectorXd state() const override { return vector_of(reference_.state()); }
  std::optional<double> operations_sparse() const override { return reference_.operations(); }

 private:
  CollocationReference reference_;
};

/// What SplittingMethod steps, which counts its operations.
bool is_second_order_splitting(const Splitting& splitting) {
  const bool is_split =
      splitting.kind == SplittingKind::strang || splitting.kind == SplittingKind::impulse;
  return is_split && order_of(splitting) == 2;
}

/// Splitting and dynamic iteration, without ledger.
class NetworkRun final : public OrderRun {
 public:
  NetworkRun(const OrderSetting& setting, double step_s, const CouplingMethod& method)
      : each_(setting.threads > 1 ? make_team_for_each(threads_allowed(setting.threads))
                                  : std::make_unique<ForEach>()) {
    const auto* const options = method.as<Splitting>();
    if (options == nullptr || !is_second_order_splitting(*options) || setting.system == nullptr) {
      if (setting.system == nullptr) {
        model_ =
            make_network_model(setting.scenario.system, setting.scenario.options.start_s, method);
        method_ = model_->make_method(step_s, method, /*ledger=*/false);
      } else {
        method_ = make_network_method(*setting.system, step_s, method, /*ledger=*/false);
      }
      return;
    }
    auto splitting = std::make_unique<SplittingMethod>(*setting.system, step_s, *options, false);
    operations_ = splitting->operations();
    method_ = std::move(splitting);
  }

  void step(std::int64_t steps) override {
    for (std::int64_t n = 0; n < steps; ++n) method_->step(*each_);
  }
  Eigen::VectorXd state() const override { return vector_of(method_->state()); }
  std::optional<double> operations() const override {
    return operations_ ? std::optional(operations_->dense) : std::nullopt;
  }
  std::optional<double> operations_sparse() const override {
    return operations_ ? std::optional(operations_->sparse) : std::nullopt;
  }

 private:
  std::unique_ptr<ForEach> each_;
  std::optional<OperationCounts> operations_;
  std::unique_ptr<NetworkModel> model_;  ///< of a nonlinear system
  std::unique_ptr<NetworkMethod> method_;
};

/// Wave coupling, without ledger but for the guard's.
class WaveRun final : public OrderRun {
 public:
  WaveRun(const OrderSetting& setting, double step_s, const CouplingMethod& method)
      : system_(setting.system),
        parts_(static_cast<int>(setting.scenario.system.parts().size())),
        size_(setting.start.size()),
        stepper_(setting.scenario.system, {.step_s = step_s,
                                           .start_s = setting.scenario.options.start_s,
                                           .start = Start::refuse,
                                           .method = method,
                                           .certify = Certify::none,
                                           .threads = setting.threads}) {}

  void step(std::int64_t steps) override { stepper_.step(steps); }
  Eigen::VectorXd state() const override {
    Eigen::VectorXd x(size_);
    if (system_ == nullptr) {
      Eigen::Index first = 0;
      for (int part = 0; part < parts_; ++part) {
        const Eigen::VectorXd own = vector_of(stepper_.state(part));
        x.segment(first, own.size()) = own;
        first += own.size();
      }
      return x;
    }
    for (const CondensedBlock& block : system_->blocks()) {
      x.segment(block.first, block.size) = vector_of(stepper_.state(block.part));
    }
    return x;
  }
  std::int64_t missed() const override { return stepper_.iterations().not_converged; }

 private:
  const CondensedSystem* system_;
  int parts_;
  Eigen::Index size_;
  Stepper stepper_;
};

}  // namespace

bool is_algebraic(const CondensedSystem& system) { return system.analysis().algebraic > 0; }

std::optional<DenseForm> dense_form(const CondensedSystem& system, int most) {
  if (system.size() > most || is_algebraic(system)) return std::nullopt;
  const Eigen::MatrixXd structure =
      Eigen::MatrixXd(system.J_local() + system.J_coupling() - system.R());
  DenseForm form{structure * Eigen::MatrixXd(system.Q()), Eigen::MatrixXd(system.B())};
  if (!system.has_descriptor()) return form;
  const Eigen::MatrixXd E(system.E());
  return DenseForm{pivoted_solve(E, form.A), pivoted_solve(E, form.B)};
}

std::unique_ptr<OrderRun> dense_midpoint(const OrderSetting& setting, const DenseForm& form,
                                         double step_s) {
  return std::make_unique<DenseMidpoint>(setting, form, step_s);
}

std::unique_ptr<OrderRun> sparse_collocation(const OrderSetting& setting, Integrator integrator,
                                             double step_s) {
  return std::make_unique<SparseCollocation>(setting, integrator, step_s);
}

std::unique_ptr<OrderRun> fine_waves(const OrderSetting& setting, int stages, double step_s) {
  return std::make_unique<WaveRun>(setting, step_s,
                                   CouplingMethod(WaveCoupling::automatic_with_stages(stages)));
}

CouplingMethod method_of_kind(const Scenario& scenario, MethodKind kind, double step_s) {
  const CouplingMethod& own = scenario.options.method;
  if (kind != own.kind()) {
    if (kind.couples_by_waves()) {
      return CouplingMethod(WaveCoupling::automatic()).with_kind(kind);
    }
    CouplingMethod method = CouplingMethod::of_kind(kind);
    if (auto* const dynamic = method.as<DynamicIteration>(); dynamic != nullptr) {
      dynamic->iterations = WaveCoupling::automatic().iterations;
      dynamic->tolerance = WaveCoupling::automatic().tolerance;
    }
    return method;
  }
  CouplingMethod method = own;
  auto* const dynamic = method.as<DynamicIteration>();
  if (dynamic == nullptr) return method;
  const double window_s = dynamic->window_steps * scenario.options.step_s;
  const double steps = std::max(1.0, std::round(window_s / step_s));
  if (steps > kMostSubsteps) {
    throw ConfigError(
        "/method/window_steps",
        fmt::format("a window of {:g} s is {:g} steps of {:g} s; at most {} are taken", window_s,
                    steps, step_s, kMostSubsteps));
  }
  dynamic->window_steps = static_cast<int>(steps);
  return method;
}

std::unique_ptr<OrderRun> coupled_run(const OrderSetting& setting, MethodKind kind, double step_s) {
  const CouplingMethod method = method_of_kind(setting.scenario, kind, step_s);
  if (kind.couples_by_waves()) return std::make_unique<WaveRun>(setting, step_s, method);
  return std::make_unique<NetworkRun>(setting, step_s, method);
}

}  // namespace portwave
