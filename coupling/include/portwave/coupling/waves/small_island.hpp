#pragma once

#include <memory>
#include <span>
#include <vector>

#include "portwave/coupling/method/update_rule.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The inner iteration of whole islands of few parts, from P bⁿ to â, as one call: their waves lie in
/// registers or side by side in a small array, each part is solved by itself, and none of a step's
/// arrays is touched in between. Solving eight lanes side by side pays only if most are filled: two parts in
/// a lane group leave six lanes idle, and wide loads wait for the single waves that junctions have just
/// stored.
///
///   two parts of one port, one junction   in registers from the first evaluation to the last
///   up to kMostWaves waves otherwise      in a small array, one pass over parts and junctions each;
///                                         of each batch of hardening springs one part at most
///
/// Every value comes from the same operations in the same order as in StepBatch::inexact_scatter
/// and CompiledJunctions::update, and so is the same to the last bit.
///
/// Shapes         parts whose port solve is of a known form (PortSolves): dense linear
///                ones, staged or not, and masses on hardening springs; junctions of any form.
/// Cost           set-up allocates; an iteration allocates nothing.
/// Thread-safety  one thread at a time.
class SmallIsland {
 public:
  static constexpr int kMostWaves = 16;
  /// Number of lanes of a batch above which solving them side by side is better.
  static constexpr int kMostLanes = 4;

  struct Lanes {
    int batch;
    LaneRange range;
  };

  /// An object for these lanes, which are those of whole islands with the given junctions, on one record.
  /// Null if they are too many or of other shapes. `numbers` is scratch: −1 for every offset of the wave
  /// vector, left so. It becomes stale with WaveDiscretisation::set_impedance.
  static std::unique_ptr<SmallIsland> of(const WaveDiscretisation& waves,
                                         std::span<const Lanes> lanes,
                                         std::span<const int> junctions, double* record,
                                         std::vector<int>& numbers);
  virtual ~SmallIsland() = default;
  SmallIsland(const SmallIsland&) = delete;
  SmallIsland& operator=(const SmallIsland&) = delete;

  /// â into `a` after this many evaluations of S, ≥ 0, from u⁰ = P b. Both are arrays of all waves.
  /// False when a port solve fails: then nothing was done, and the caller repeats the step part by part
  /// to find the failing part.
  virtual bool iterate(const InnerUpdate& update, int evaluations, const double* b, double* a) = 0;

 protected:
  SmallIsland() = default;
};

}  // namespace portwave
