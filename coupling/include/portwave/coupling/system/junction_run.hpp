#pragma once

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// How the hot path holds a junction.
enum class JunctionForm {
  swap,        ///< a₁ = b₂, a₂ = b₁
  reflection,  ///< P = sign (2nnᵀ − I)
  dense,       ///< P and (2I − P)⁻¹ as matrices
};

struct JunctionRun;

/// The loops over a run: a = P b, and the steps of u (`work` has arity doubles; only dense runs
/// use it).
using ExchangeLoop = void (*)(const JunctionRun& run, const int* offsets, const double* values,
                              const double* b, double* a);
using UpdateLoop = void (*)(const JunctionRun& run, const int* offsets, const double* values,
                            double relaxation, const double* b, double* u, double* work);

/// Junctions of one form and arity, `count` of them. Position k of junction i touches the offset
/// offsets[k] + i where they lie side by side (`contiguous`), offsets[k·count + i] elsewhere.
struct JunctionRun {
  ExchangeLoop exchange = nullptr;
  UpdateLoop average = nullptr;  ///< u += ω (P b − u)
  UpdateLoop resolve = nullptr;  ///< u += ω (2I − P)⁻¹(P b − u)
  JunctionForm form = JunctionForm::swap;
  bool contiguous = false;
  bool shared = false;  ///< reflection: one normal for all
  int arity = 0;
  int count = 0;
  double sign = 1.0;
  int offsets = 0;  ///< begin in CompiledJunctions' offsets
  int values = 0;  ///< begin in its values: n_k of junction i at [k·count + i], or at [k] if shared
      ///< (two ports: P₁₁ and P₁₂ in place of the normal), arity × count doubles either way;
      ///< dense: per junction P, then the resolvent, row-major
  int work = 0;  ///< begin in its work
};

}  // namespace portwave
