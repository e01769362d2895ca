#pragma once

// Partitioned implicit coupling with interface quasi-Newton acceleration (IQN-ILS) on a chain that
// is cut into pieces. Written from the published descriptions alone:
//   Degroote, Bathe & Vierendeels, Computers & Structures 87 (2009): IQN-ILS;
//   Mehl et al., Computers & Mathematics with Applications 71 (2016): parallel coupling;
//   Haelterman et al., Computers & Structures 171 (2016): filtering of nearly dependent columns;
//   Chourdakis et al., Open Research Europe 2:51 (2022): preCICE v2, which couples this way.

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace portwave::bench {

/// A row of equal masses, joined by springs.
struct Piece {
  std::size_t masses = 5;  ///< ≥ 1; ≥ 3 of pieces that are cut through masses
  double mass_kg = 0.3;
  double stiffness_N_per_m = 50;           ///< between the masses
  double ground_stiffness_N_per_m = 5;     ///< each mass to ground
  double cubic_stiffness_N_per_m3 = 0;     ///< of the same springs: force k q + k₃ q³
  double damping_Ns_per_m = 0.1;           ///< each mass to ground
  double coupling_stiffness_N_per_m = 50;  ///< of the springs that an even piece has at its cuts
};

/// Where the chain is cut.
enum class CutAt {
  spring,  ///< an even piece has a spring there, an odd one the mass that it hangs on
  mass,    ///< through a mass: each side keeps a part of it, and the two move alike
};

/// Pieces in a row, counted from 0, both far ends free. Even pieces are one participant, odd ones
/// the other: even ones are given velocities at their cuts and answer with forces, odd ones the
/// other way round.
struct CutChain {
  std::vector<Piece> pieces;
  CutAt cut = CutAt::spring;
  std::vector<double> q, v;  ///< initial positions [m] and velocities [m/s], piece by piece

  std::size_t cuts() const { return pieces.size() - 1; }
};

struct PartitionedOptions {
  /// One participant after the other, accelerating the velocities; else both at once, accelerating
  /// velocities and forces.
  bool serial = true;
  bool quasi_newton = true;      ///< else constant relaxation alone
  std::size_t reused_steps = 0;  ///< time steps whose columns are kept
  double relaxation = 0.5;       ///< where there is no column to go by
  double filter = 1e-2;  ///< columns of which less than this is new to the newer ones are left out
  double tolerance = 1e-8;  ///< |x̃ − x| ≤ tolerance |x̃|, of all velocities, and of all forces
  int most_iterations = 100;
};

/// A participant takes an implicit midpoint step of its pieces at every call, from the state at the
/// beginning of the step; of the cubic springs the mean of the force over the line from q to q⁺.
class PartitionedChain {
 public:
  virtual ~PartitionedChain() = default;
  virtual void restart() = 0;
  /// Calls of either participant. A step that does not converge ends with what it has.
  virtual int step() = 0;
  virtual bool converged() const = 0;  ///< the last step
  /// Piece by piece; not finite where the iteration went beyond all numbers.
  virtual void read(std::span<double> q, std::span<double> v) const = 0;
};

[[gnu::visibility("default")]] std::unique_ptr<PartitionedChain> partitioned_chain(
    const CutChain& chain, double step_s, const PartitionedOptions& options);

}  // namespace portwave::bench
