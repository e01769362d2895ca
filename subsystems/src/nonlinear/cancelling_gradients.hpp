#pragma once

namespace portwave {

/// Nonlinear parts of whose equations some may hold nothing but what rounding leaves of terms that cancel, as those of
/// a body's own turn beside joints that push off one another. A solver then needs these terms
/// (Subsystem::add_gradient_terms) from its first iterate on: what an equation leaves beside its own tells nothing.
class CancellingGradients {
 public:
  virtual ~CancellingGradients() = default;
  /// Whether this one does.
  virtual bool gradients_cancel() const = 0;
};

}  // namespace portwave
