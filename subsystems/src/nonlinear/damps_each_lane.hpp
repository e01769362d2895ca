#pragma once

namespace portwave {

/// Facet of batches that may damp a lane for a step, and the others not: asked for by dynamic_cast.
class DampsEachLane {
 public:
  virtual bool damps_each_lane() const = 0;

 protected:
  ~DampsEachLane() = default;
};

}  // namespace portwave
