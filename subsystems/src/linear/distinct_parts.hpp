#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave {

/// The parts of a batch that differ in anything that step maps depend on: one example of each class of equal
/// parts with equal impedances and tags.
class DistinctParts {
 public:
  /// `impedance` of port j of lane l is at [j · stride + l].
  DistinctParts(std::span<const LinearPortHamiltonian* const> lanes,
                std::span<const unsigned char> tag_of_lane, const double* impedance, int ports,
                int stride);

  std::vector<const LinearPortHamiltonian*> parts;
  std::vector<unsigned char> tags;  ///< of `parts`
  std::vector<int> of_lane;         ///< which of them each lane has

  /// One for each of its ports.
  const double* impedance(std::size_t part) const { return impedances_.data() + part * ports_; }

 private:
  std::size_t ports_;
  std::vector<double> impedances_;
};

}  // namespace portwave
