#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <Eigen/Core>

#include "portwave/coupling/network/condensed.hpp"
#include "portwave/runtime/scenario/scenario.hpp"

namespace portwave {

/// A run of one method from the initial state, of which every measurement makes its own.
class OrderRun {
 public:
  virtual ~OrderRun() = default;
  virtual void step(std::int64_t steps) = 0;
  /// x of the condensed system; without one the states of all parts.
  virtual Eigen::VectorXd state() const = 0;
  /// Pairs of a multiplication and an addition per step.
  virtual std::optional<double> operations() const { return std::nullopt; }
  virtual std::optional<double> operations_sparse() const { return std::nullopt; }
  virtual std::int64_t missed() const { return 0; }  ///< steps whose iteration did not converge
};

/// What runs are made of.
struct OrderSetting {
  const Scenario& scenario;
  const CondensedSystem* system;  ///< null: a part is not linear
  const Eigen::VectorXd& start;
  int threads = 1;
};

/// Whether there are algebraic equations: E is singular.
bool is_algebraic(const CondensedSystem& system);

/// A = E⁻¹(J − R)Q and E⁻¹B, dense.
struct DenseForm {
  Eigen::MatrixXd A;
  Eigen::MatrixXd B;
};
/// Nothing where E is singular, or where there are more than `most` states.
std::optional<DenseForm> dense_form(const CondensedSystem& system, int most);

/// One dense step map of the midpoint rule. Precondition, as of the next: there is a condensed system.
std::unique_ptr<OrderRun> dense_midpoint(const OrderSetting& setting, const DenseForm& form,
                                         double step_s);
/// One sparse LU of the implicit step, monolithic.
std::unique_ptr<OrderRun> sparse_collocation(const OrderSetting& setting, Integrator integrator,
                                             double step_s);
/// A method of scenario files. Errors: ConfigError where it does not apply.
std::unique_ptr<OrderRun> coupled_run(const OrderSetting& setting, MethodKind kind, double step_s);

/// Waves with as many Gauss stages as the parts allow, converged to rounding: the reference of nonlinear systems.
std::unique_ptr<OrderRun> fine_waves(const OrderSetting& setting, int stages, double step_s);

/// The method of that kind: the scenario's own with its options, others with theirs by default.
CouplingMethod method_of_kind(const Scenario& scenario, MethodKind kind, double step_s);

}  // namespace portwave
