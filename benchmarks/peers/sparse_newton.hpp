#pragma once

#include <cstddef>
#include <memory>

namespace portwave::bench {

/// What one writes by hand for the friction ring: the midpoint rule for the whole system by Newton's method, with
/// Eigen's SparseLU, whose symbolic factorisation is kept. Cell i has the numbers at `cells` + 11 i, in the order of
/// Cell (friction_ring.hpp).
class [[gnu::visibility("default")]] SparseNewton {
 public:
  SparseNewton(const double* cells, std::size_t count, double step_s);
  ~SparseNewton();

  /// Newton until a correction is below 1e-10 of the states.
  void step();
  /// Newton steps of the last step.
  int iterations() const;
  /// 5 by cell: velocity, elongation of the spring, position and velocity of the oscillator, elongation of its
  /// coupling.
  const double* state() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace portwave::bench
