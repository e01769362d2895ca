#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "portwave/coupling/energy/certificate.hpp"
#include "portwave/coupling/energy/ledger.hpp"
#include "portwave/runtime/ensemble/ensemble.hpp"

namespace portwave {

/// Some replicas that are stepped together, on one thread at a time. Replicas are counted from the
/// first of the chunk.
class Chunk {
 public:
  virtual ~Chunk() = default;

  /// A run begins from these states, [replicas × n]. Earlier failures are cleared.
  virtual void begin(const double* states) = 0;
  /// One macro-step with these settable inputs, [replicas × m]. `status` reports replicas that fail, which
  /// take no further part.
  virtual void step(const double* settings) = 0;
  /// The state of replica r, n doubles, at out + r·distance; NaN for one that has failed.
  virtual void read_states(double* out, std::size_t distance) const = 0;

  /// The status of one replica.
  virtual void read_state(int replica, double* out) const = 0;

  virtual int failures() const = 0;
  virtual bool all_failed() const = 0;
  virtual ReplicaStatus status(int replica) const = 0;
  virtual Certificate certificate(int replica) const = 0;
  virtual EnergyTotals energy(int replica) const = 0;
};

}  // namespace portwave
