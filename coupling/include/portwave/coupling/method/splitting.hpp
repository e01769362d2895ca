#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// How the equations of a linear system are taken apart.
enum class SplittingKind {
  strang,      ///< half a coupling flow, the local flows, half a coupling flow
  impulse,     ///< half a slow flow, m fast flows of h/m, half a slow flow
  kick_drift,  ///< kicks of momenta and drifts of positions in turn; also nonlinear springs
  taylor,      ///< Taylor series of whole islands
};

std::string_view to_string(SplittingKind kind);

/// How the coupling flow of a splitting method is solved.
enum class CouplingFlow {
  automatic,  ///< scalar where couplings are scalar and disjoint, low rank elsewhere
  scalar,     ///< a 2×2 map in closed form per coupling
  low_rank,   ///< one sparse solve in the channels of all couplings
};

std::string_view to_string(CouplingFlow flow);

/// Coupling by splitting: the flows of the coupling and of the parts in turn, without iteration; and by Taylor
/// series, which need no splitting. All parts are linear, except with `kick_drift`. SplittingMethod,
/// KickDriftMethod and TaylorMethod step it; the table in coupling/src/method/splitting.cpp lists the options as
/// scenario files have them.
struct Splitting {
  SplittingKind kind = SplittingKind::strang;
  CouplingFlow coupling_flow = CouplingFlow::automatic;
  /// Also split local flows: half the dissipation, the conservative part, half the dissipation. Not with
  /// `impulse`.
  bool split_dissipation = false;
  int factor = 10;                     ///< impulse: fast steps m ≥ 1 per macro-step
  std::vector<std::string> fast = {};  ///< impulse: names of the fast parts; the others are slow
  /// Of accuracy: 2 or 4 with `strang` and `impulse`, 4 or 6 with `kick_drift`, even and at most 40 with
  /// `taylor`. 0: the kind's default, see order_of.
  int order = 0;
};

/// The order, where none is given the default of the kind: 2, 6 with `kick_drift`, 16 with `taylor`.
int order_of(const Splitting& splitting);

}  // namespace portwave
