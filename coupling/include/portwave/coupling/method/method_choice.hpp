#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "portwave/coupling/method/method.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Predicted rate of the linearised iteration.
struct PredictedRate {
  double contraction = 0.0;  ///< mean factor of the residual per evaluation, until it stopped
  int evaluations = 0;       ///< to reduce the residual by 1e-10; the limit if it is not reached
  bool converges = false;    ///< it is reached within the limit
  /// Entries of the factors of I − PD: the cost of a solve. WaveUpdate::interface only.
  std::size_t factor_entries = 0;
};

/// One combination that `choose_method` examined.
struct MethodCandidate {
  WaveUpdate kind;
  double relaxation;
  ImpedanceKind impedance;
  PredictedRate rate;
  int acceleration = 0;
  /// Cost of a step's inner iteration, in plain evaluations of S, including solves, measuring and
  /// acceleration; of the islands that were examined.
  double cost = 0.0;
};

/// The result of `WaveUpdate::automatic` and `ImpedanceKind::automatic`.
struct MethodChoice {
  /// Wave coupling with kind, relaxation, impedance_kind, impedance by port and acceleration.
  CouplingMethod method;
  PredictedRate rate;
  double cost = 0.0;  ///< as of MethodCandidate, of all islands
  std::vector<MethodCandidate> candidates;
  /// Rule by island; impedance_kind is that of most ports.
  std::vector<ImpedanceKind> rules = {};
  std::string reason;  ///< one sentence, for people
};

}  // namespace portwave
