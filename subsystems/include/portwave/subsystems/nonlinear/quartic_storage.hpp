#pragma once

#include <vector>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A term ¼ c x⁴ of a storage.
struct QuarticTerm {
  int state = 0;
  double coefficient = 0.0;  ///< c
};

/// For subsystems whose storage is a quadratic form and terms of the fourth degree in single states,
///   H = ½xᵀ∇²H(0)x + Σ ¼ cᵢ xᵢ⁴,
/// and that give `hessian`. A method that steps many of them alike then needs no call for each.
class QuarticStorage {
 public:
  virtual ~QuarticStorage() = default;
  virtual std::vector<QuarticTerm> quartic_terms() const = 0;
};

}  // namespace portwave
