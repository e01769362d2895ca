#pragma once

// SUNDIALS on the chain with equal blocks: x' = A x from the chain's initial state to t = end_s.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "chain.hpp"

namespace portwave::bench {

class OdePeer {
 public:
  virtual ~OdePeer() = default;
  /// Integrates anew from the start. Seconds it took, re-initialisation left out.
  virtual double solve() = 0;
  virtual void read(std::span<double> q, std::span<double> v) const = 0;
  virtual long steps() const = 0;  ///< of the last solve
};

/// CVODE, BDF, Newton, the band solver with the analytic Jacobian of (q₁, v₁, q₂, v₂, …).
[[gnu::visibility("default")]] std::unique_ptr<OdePeer> cvode_bdf(const Chain& chain, double end_s,
                                                                  double tolerance);
/// CVODE, Adams–Moulton, fixed-point iteration.
[[gnu::visibility("default")]] std::unique_ptr<OdePeer> cvode_adams(const Chain& chain,
                                                                    double end_s, double tolerance);
/// ARKODE's ERKStep with one of its explicit tables, by number (see `erk_tables`).
[[gnu::visibility("default")]] std::unique_ptr<OdePeer> arkode_erk(const Chain& chain, double end_s,
                                                                   double tolerance, int table);

struct ErkTable {
  std::string name;
  int number;
};
[[gnu::visibility("default")]] std::vector<ErkTable> erk_tables();

}  // namespace portwave::bench
