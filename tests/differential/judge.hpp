#pragma once

// One case: the engine's run against the reference, and against the laws that its own trajectory
// must obey.

#include <string>
#include <vector>

#include "differential/account.hpp"
#include "differential/engine_run.hpp"
#include "differential/network.hpp"
#include "differential/reference.hpp"

namespace portwave::differential {

/// What can be wrong with a case.
enum class Defect {
  refused,      ///< a sound network was not accepted
  failed,       ///< a step was not made
  missed,       ///< steps that missed the tolerance
  state,        ///< states off the reference
  port,         ///< efforts or flows off the reference
  balance,      ///< energies of a step do not add up
  created,      ///< H > H₀ + supply
  ledger,       ///< the engine's account is not that of its trajectory
  verdict,      ///< a passive network is called violated
  conditional,  ///< a passive network is not called holds
  guard,        ///< guarded and unguarded runs differ
  control,      ///< an active part that created energy was not noticed
};
inline constexpr int kDefects = 12;
const char* to_string(Defect defect);

struct Finding {
  Defect defect;
  std::string text;
};

/// What the reference says of a case, before the engine has run.
struct Expectation {
  Course course;
  bool well_posed = true;
  std::string why_not;
  std::vector<double>
      island_energy;        ///< the most that is stored, supplied and exchanged in a step [J]
  std::vector<int> island;  ///< by part
  /// By state and port: what an error is measured by, and what is allowed.
  Vector state_scale, state_tolerance;
  Vector effort_scale, effort_tolerance, flow_scale, flow_tolerance;
};

/// Allowed is C·(what residuals of the tolerance τ do to the reference + what rounding does to it)
/// + a share of the scale.
struct Tolerances {
  double tau = 1e-10;
  double residuals = 300.0;  ///< C of the response to noise of size τ in the junctions
  double rounding = 300.0;   ///< C of the response to rounding
  double floor = 1e-11;      ///< share of the scale
  /// Energies: in units of ε of the sums of |products|, and as a share of what the island stores
  /// and exchanges in a step: of the law H ≤ H₀ + supply and the ledger, and of the balance of one
  /// part.
  double energy_terms = 64.0;
  double energy_share = 1e-11;
  double balance_share = 1e-10;
  /// A part that creates more than this share of what it stores and exchanges in a step is to be
  /// noticed.
  double creation = 1e-4;
};

Expectation expect(const Network& network, const Tolerances& tolerances = {});

/// Everything that is wrong with a run. `unguarded` may be null.
std::vector<Finding> judge(const Network& network, const Expectation& expectation,
                           const EngineRun& run, const EngineRun* unguarded,
                           const Tolerances& tolerances = {});

/// Of an active network: the largest share of what a part stores and exchanges in a step that it
/// created in it, beyond rounding.
double created_share(const Account& account);

/// Largest error in units of what is allowed, over the steps that both have: of states or of
/// efforts and flows.
double state_error(const Expectation& expectation, const Course& course, const Course& other);

struct Result {
  bool skipped = false;
  std::string why_skipped;
  std::vector<Finding> findings;
  bool visibly_active = false;  ///< a control that has to be noticed
  EngineRun run;
};
/// All of it.
Result run_case(const Network& network, const Tolerances& tolerances = {});

}  // namespace portwave::differential
