#pragma once

#include <span>
#include <vector>

#include "network/explicit/network_form.hpp"
#include "portwave/coupling/network/network_trials.hpp"
#include "portwave/subsystems/base/aligned.hpp"

namespace portwave {

/// Measures differences of states in energy, part by part: ½eᵀ∇²H e. Curvature that is negative somewhere, as in a
/// double well, counts by its size, and does not cancel any other; gradients by callback count by their increments.
/// Cost: a few operations per state, four gradients per part by callback.
class MotionEnergies {
 public:
  /// The network must outlive it.
  explicit MotionEnergies(const NetworkForm& network);

  /// Of a step to `x`. One entry for each part with states.
  void measure(std::span<const double> x, std::span<const double> error,
               std::span<const double> start, std::span<NetworkTrials::Energies> by_block);

 private:
  struct Block {
    int part = 0, first = 0, size = 0;
    bool by_callback = false;
    int first_tie = 0, last_tie = 0;
  };
  /// An entry of ∇²H beside its diagonal.
  struct Tie {
    int row = 0, column = 0;
    double value = 0.0;
  };

  void add_callback(const Block& block, const double* x, const double* error, const double* start,
                    NetworkTrials::Energies& out);

  const NetworkForm& network_;
  std::vector<Block> blocks_;
  AlignedVector stiffness_, cubic_;  ///< |∇²H| is stiffness + cubic·x² on its diagonal
  std::vector<Tie> ties_;
  std::vector<double> x_, gradient_, gradient_there_;  // scratch of a part
};

}  // namespace portwave
