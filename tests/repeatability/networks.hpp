#pragma once

// Random networks whose inner iterations are not all alike: nonlinear parts at large amplitudes, several
// islands, parts that are solved in different ways, port solves that fail at a trial.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "portwave/coupling/system/system.hpp"

namespace portwave::repeatability {

/// Random numbers that are the same on every platform (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed, std::string_view purpose = {});

  std::uint64_t bits();
  double uniform(double from, double to);
  double logarithmic(double from, double to);
  int integer(int from, int to);
  bool chance(double probability) { return uniform(0.0, 1.0) < probability; }
  template <class T>
  const T& one_of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(integer(0, static_cast<int>(all.size()) - 1))];
  }

 private:
  std::uint64_t state_;
};

/// Duffing nodes that differ by two decades, at large amplitudes, some of which are struck now and then: the
/// update that suits the start does not end every step.
System struck_grid(int rows, int columns, std::uint64_t seed);

/// Which external inputs of a line are driven.
enum class Drive { none, first, last, all, settable };

/// Parts that the lines below are made of, by the batch that steps them; `all`: a line of each.
enum class LineKind { dense, sparse, descriptor, duffing, newton, all };

/// A line of so many parts of a kind, all a little different.
System driven_line(LineKind kind, int parts, Drive drive, int substeps, std::uint64_t seed);

/// The kinds of network that cases are drawn from.
const std::vector<std::string>& families();

/// What a network is like, for those who choose its method.
struct Traits {
  int parts = 0;
  int most_stages = 3;
  bool is_linear = false;
};

/// The network of a family and a seed. Errors: std::invalid_argument for another family.
System make_network(const std::string& family, std::uint64_t seed, Traits* traits = nullptr);

}  // namespace portwave::repeatability
