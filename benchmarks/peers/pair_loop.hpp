#pragma once

// The Duffing–linear pair (arXiv 2603.16424) written out by hand, K inner iterations a step.

#include <memory>

namespace portwave::bench {

struct PairSetting {
  double step_s = 0.01;
  double impedance_Ns_per_m = 0.4;
};

class PairLoop {
 public:
  virtual ~PairLoop() = default;
  virtual void step(int iterations) = 0;
  virtual double q1() const = 0;
  virtual double q2() const = 0;
};

using PairFactory = std::unique_ptr<PairLoop>(const PairSetting& setting);

/// Newton with a division, from the frozen velocity, in every port solve: what one writes first.
[[gnu::visibility("default")]] PairFactory plain_pair;
/// Every port solve starts at the root of the last one: its cubic, slope and curvature are
/// evaluated while the waves are under way, the reciprocal of the slope is refined instead of
/// divided for.
[[gnu::visibility("default")]] PairFactory warm_pair;
/// The root as a polynomial of third degree in the incident wave, its coefficients frozen with the
/// step; the commit is converged by Newton. The shortest dependency chain we know.
[[gnu::visibility("default")]] PairFactory series_pair;

}  // namespace portwave::bench
