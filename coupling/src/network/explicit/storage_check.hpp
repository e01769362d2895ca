#pragma once

#include <optional>
#include <span>
#include <vector>

#include "network/explicit/network_form.hpp"

namespace portwave {

/// Holds what parts store against the quadratic energies of the form of their network, which were found at a few places:
/// a method that steps the form keeps its account by it, and would not see a kink between these places.
class StorageCheck {
 public:
  /// The network must outlive it.
  explicit StorageCheck(const NetworkForm& network);

  bool empty() const { return parts_.empty(); }
  /// The part whose energy is farthest from that of the form, where it is beyond rounding in the states `x` of the whole;
  /// −1: none. Takes one or two evaluations of H of each part, and no memory.
  int part_astray(std::span<const double> x);

 private:
  struct Own {
    int part = -1, first = 0;
    std::vector<int> states = {};                ///< numbers in the part, of the quadratic ones
    std::vector<double> start = {}, slope = {};  ///< all states and ∂H/∂x at the start
    bool is_all = true;                          ///< all states are quadratic
    double start_J = 0.0;                        ///< H there, in that case
  };
  /// How far the energy is astray, in what rounding and the search for the form explain.
  double astray(const Own& own, const double* x);

  const NetworkForm& network_;
  std::vector<Own> parts_;
  std::vector<double> reference_, moved_;  ///< scratch
};

}  // namespace portwave
