#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "portwave/subsystems/descriptor/second_order.hpp"
#include "portwave/subsystems/matrices/condensed_factors.hpp"

namespace portwave {

/// A of a step size, with its interior eliminated.
struct CondensedStep {
  CondensedFactors factors;
  SparseMatrix boundary;  ///< Σ = A, rows in the order of the boundary, where there is no interior
  Eigen::VectorXd diagonal;  ///< of Σ

  bool has_interior() const { return factors.interior() > 0; }
};

/// A second-order part, condensed to the coordinates T that its ports act on, its boundary. A midpoint
/// step with forces e at the ports has the velocity v_mid = v + δ in its middle,
///   A δ = r + B_p e,   A = 2M/h + D + hK/2,   r = B_u ū − K(q + hv/2) − Dv,   y = B_pᵀ v_mid,
/// and with the interior eliminated Σ δ_T = r_T − Y L⁻¹r_I + B_T e. What a step costs is one pass through
/// the factors, whatever the number of ports, and the coupling needs Σ alone.
/// Thread safety  const functions may be called from several threads.
class CondensedForm {
 public:
  /// `form` has passed `validate`; `ports`: the first columns of B. Null where it is of no use: D is not
  /// symmetric, or the ports act on many more coordinates than there are ports.
  /// `damping`: that of the form, if it is known.
  static std::shared_ptr<const CondensedForm> of(
      std::shared_ptr<const SecondOrderForm> form, int ports,
      std::optional<ProportionalDamping> damping = std::nullopt);

  const SecondOrderForm& form() const { return *form_; }
  /// Where D = aM + bK.
  const std::optional<ProportionalDamping>& damping() const { return damping_; }
  int coordinates() const { return static_cast<int>(form_->M.rows()); }
  int ports() const { return static_cast<int>(at_boundary_.cols()); }
  /// Coordinates.
  const std::vector<int>& boundary() const { return boundary_; }
  /// B_T, rows in the order of the boundary.
  const SparseMatrix& at_boundary() const { return at_boundary_; }
  /// The place in the boundary of the coordinate that a port moves with; −1: it acts on several, or not
  /// with a factor of 1.
  int place_of_port(int port) const { return places_[static_cast<std::size_t>(port)]; }
  /// A.
  SparseMatrix step_matrix(double step_s) const;
  /// Its factors; those of the last step size are kept for the next who asks.
  /// Errors: ConfigError where A is not positive definite.
  std::shared_ptr<const CondensedStep> step(double step_s) const;

 private:
  explicit CondensedForm(std::shared_ptr<const SecondOrderForm> form) : form_(std::move(form)) {}

  std::shared_ptr<const SecondOrderForm> form_;
  std::optional<ProportionalDamping> damping_;
  std::vector<int> boundary_, places_;
  SparseMatrix at_boundary_;
  mutable std::mutex mutex_;
  mutable double step_s_ = 0.0;
  mutable std::shared_ptr<const CondensedStep> step_;
};

}  // namespace portwave
