#pragma once

// The local propagators of the chain's blocks alone, x⁺ = Φx + Ψa with given incident waves a: what
// a macro-step has to do at the very least.

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "chain.hpp"

namespace portwave::bench {

inline constexpr std::size_t kBlockStates = 2 * kMasses + 1;  ///< q₁, v₁, …, q₅, v₅, elongation
inline constexpr std::size_t kBlockPorts = 2;                 ///< left (mass), right (spring)

class BlockPropagators {
 public:
  virtual ~BlockPropagators() = default;
  virtual void step() = 0;
  virtual void set_wave(std::size_t block, std::size_t port, double a) = 0;
  virtual double position(std::size_t mass) const = 0;
  virtual double velocity(std::size_t mass) const = 0;
};

/// Blocks eight side by side. `shared`: one set of coefficients for all (those of the first block),
/// else one per block. `impedance`: left and right of every block. The last block has a mass end.
[[gnu::visibility("default")]] std::unique_ptr<BlockPropagators> block_propagators(
    const Chain& chain, std::span<const double> impedance, double step_s, bool shared);

}  // namespace portwave::bench
