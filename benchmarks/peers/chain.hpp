#pragma once

// The chain of the peer benchmarks: blocks of five masses in a row, both far ends free. Plain
// numbers, seen by the engine's side and by the peers alike.

#include <cmath>
#include <cstddef>
#include <vector>

namespace portwave::bench {

inline constexpr std::size_t kMasses = 5;  ///< per block

struct Block {
  double mass_kg = 0.3;
  double stiffness_N_per_m = 50;           ///< between the masses of the block
  double coupling_stiffness_N_per_m = 50;  ///< to the first mass of the next block
  double damping_Ns_per_m = 0.1;           ///< each mass to ground
};

/// Fractional part of (i + 1) √prime: spread evenly over [0, 1), the same everywhere.
inline double evenly(std::size_t i, double prime) {
  const double x = static_cast<double>(i + 1) * std::sqrt(prime);
  return x - std::floor(x);
}

struct Chain {
  std::vector<Block> blocks;
  std::vector<double> q, v;  ///< initial positions [m] and velocities [m/s], mass by mass

  std::size_t masses() const { return blocks.size() * kMasses; }
  const Block& block_of(std::size_t mass) const { return blocks[mass / kMasses]; }
  /// Of the spring between a mass and the next one; 0 behind the last mass.
  double spring_after(std::size_t mass) const {
    if (mass + 1 >= masses()) return 0.0;
    const Block& block = block_of(mass);
    return (mass + 1) % kMasses == 0 ? block.coupling_stiffness_N_per_m : block.stiffness_N_per_m;
  }
};

/// All blocks alike, at rest; every mass displaced by up to 0.1 m. (A chain that is nearly all at
/// rest would measure how fast a processor handles denormal numbers.)
inline Chain equal_chain(std::size_t blocks) {
  Chain chain;
  chain.blocks.assign(blocks, Block{});
  chain.v.assign(chain.masses(), 0.0);
  for (std::size_t i = 0; i < chain.masses(); ++i) chain.q.push_back(0.2 * evenly(i, 2) - 0.1);
  return chain;
}

/// The same with every parameter of every block varied by up to 20 %.
inline Chain varied_chain(std::size_t blocks) {
  Chain chain = equal_chain(blocks);
  for (std::size_t i = 0; i < blocks; ++i) {
    Block& block = chain.blocks[i];
    block.mass_kg *= 0.8 + 0.4 * evenly(i, 3);
    block.stiffness_N_per_m *= 0.8 + 0.4 * evenly(i, 5);
    block.coupling_stiffness_N_per_m *= 0.8 + 0.4 * evenly(i, 7);
    block.damping_Ns_per_m *= 0.8 + 0.4 * evenly(i, 11);
  }
  return chain;
}

}  // namespace portwave::bench
