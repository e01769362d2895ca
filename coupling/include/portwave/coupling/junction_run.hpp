#pragma once

namespace portwave {

/// How the hot path holds a junction.
enum class JunctionForm {
  swap,        ///< a₁ = b₂, a₂ = b₁
  reflection,  ///< P = sign (2nnᵀ − I)
  dense,       ///< P and (2I − P)⁻¹ as matrices
};

/// Junctions of one form and arity, `count` of them. Position k of junction i touches the place
/// places[k] + i where they lie side by side (`contiguous`), places[k·count + i] elsewhere.
struct JunctionRun {
  JunctionForm form = JunctionForm::swap;
  bool contiguous = false;
  bool shared = false;  ///< reflection: one normal for all
  int arity = 0;
  int count = 0;
  double sign = 1.0;
  int places = 0;  ///< begin in the program's places
  int values = 0;  ///< begin in its values: n_k of junction i at [k·count + i], or at [k] if shared;
                   ///< dense: per junction P, then the resolvent, row-major
};

}  // namespace portwave
