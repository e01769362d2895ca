#pragma once

// SUNDIALS on an `Ode`, with the solvers and options that suit a system known in advance.

#include <memory>
#include <string>
#include <vector>

#include "ode.hpp"

namespace portwave::bench {

class OdeSolver {
 public:
  virtual ~OdeSolver() = default;
  /// Back to the start; not timed.
  virtual void restart() = 0;
  /// From the start to the end. Errors: std::runtime_error when SUNDIALS gives up.
  virtual void solve() = 0;
  virtual const double* state() const = 0;
  virtual long steps() const = 0;  ///< of the last solve
};

/// Relative and absolute tolerance; or, where `steps` is not 0, that many equal steps.
struct Precision {
  double relative = 0.0, absolute = 0.0;
  long steps = 0;
  /// With the loops that the installed library has, in place of ours (sundials_loops.hpp).
  bool library_loops = false;
};

enum class StageSolver {
  fixed_point,  ///< no Jacobian
  band,         ///< Newton, band LU, analytic Jacobian
  klu,          ///< the same with KLU
};

enum class Multistep { adams, bdf };

/// The Ode must outlive the solvers.
[[gnu::visibility("default")]] std::unique_ptr<OdeSolver> cvode(const Ode& ode, double end_s,
                                                                Multistep family,
                                                                StageSolver solver,
                                                                const Precision& precision);
/// A table of Runge–Kutta coefficients, by SUNDIALS's number.
struct Table {
  std::string name;
  int number;
  bool has_embedding = true;  ///< an estimate of its error, without which steps are equal
};
/// All explicit ones of the installed version.
[[gnu::visibility("default")]] std::vector<Table> explicit_tables();
[[gnu::visibility("default")]] std::unique_ptr<OdeSolver> arkode_erk(const Ode& ode, double end_s,
                                                                     const Table& table,
                                                                     const Precision& precision);
/// Diagonally implicit ones, of orders 3 to 5.
[[gnu::visibility("default")]] std::vector<Table> diagonally_implicit_tables();
[[gnu::visibility("default")]] std::unique_ptr<OdeSolver> arkode_dirk(const Ode& ode, double end_s,
                                                                      const Table& table,
                                                                      StageSolver solver,
                                                                      const Precision& precision);

}  // namespace portwave::bench
