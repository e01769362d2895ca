#pragma once

namespace portwave {

/// A committed step: records in the layout of the discretisation, and waves.
struct CommittedStep {
  const double* record = nullptr;  ///< frozen at xⁿ; null: roundings of the states are not known
  const double* next = nullptr;    ///< xⁿ⁺¹
  const double* a = nullptr;
  const double* b = nullptr;
};

}  // namespace portwave
