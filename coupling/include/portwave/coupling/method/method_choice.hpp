#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "portwave/coupling/method/method.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// What the linearised iteration promises.
struct PredictedRate {
  double contraction = 0.0;  ///< mean factor of the residual per evaluation, until it stopped
  int evaluations = 0;       ///< to reduce the residual by 1e-10; the limit if it is not reached
  bool converges = false;    ///< it is reached within the limit
  /// Entries of the factors of I − PD: what a solve costs. WaveUpdate::interface only.
  std::size_t factor_entries = 0;
};

/// One combination that `choose_method` looked at.
struct MethodCandidate {
  WaveUpdate kind;
  double relaxation;
  ImpedanceKind impedance;
  PredictedRate rate;
  int acceleration = 0;
  /// What a step's inner iteration costs by it, in plain evaluations of S: solves, measuring and
  /// acceleration included; of the islands that were looked at.
  double cost = 0.0;
};

/// What `WaveUpdate::automatic` and `ImpedanceKind::automatic` come to.
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
