#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ensemble/chunk.hpp"

namespace portwave {

/// One replica by itself, with its own Stepper, which is rebuilt for every run.
class SoloChunk final : public Chunk {
 public:
  SoloChunk(System system, const StepperOptions& options);

  void begin(const double* states) override;
  void step(const double* settings) override;
  void read_states(double* out, std::size_t distance) const override;

  void read_state(int /*replica*/, double* out) const override { read_states(out, 0); }
  int failures() const override { return status_.failed ? 1 : 0; }
  bool all_failed() const override { return status_.failed; }
  ReplicaStatus status(int replica) const override;
  Certificate certificate(int replica) const override;
  EnergyTotals energy(int replica) const override;

  /// Null where it could not start.
  const Stepper* stepper() const { return stepper_ ? &*stepper_ : nullptr; }

 private:
  System given_;
  StepperOptions options_;
  std::vector<bool> is_driven_;   // by settable input: by the signal graph
  std::optional<System> system_;  // from the states of the run
  std::optional<Stepper> stepper_;
  std::int64_t steps_ = 0;  // of options_.step_s
  ReplicaStatus status_;
};

}  // namespace portwave
