#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ensemble/chunk.hpp"
#include "parallel/executors/executor.hpp"
#include "step/macro_step.hpp"
#include "step/staged_run.hpp"

namespace portwave {

/// Replicas side by side in the lanes of common batches: a system of as many islands, all in one
/// island group, and the macro-step of wave coupling for all of them at once. Every decision is made island
/// by island, so that a replica has the bits that it has alone.
///
/// A replica that fails is taken out, and the step starts again without it. Its lanes cannot be left out:
/// they are set to rest before every step, and their results are ignored.
class LaneChunk final : public Chunk, private MacroStep::Failures {
 public:
  /// `system`: `replicas` alike systems of one island each, gathered. `options`: of the gathered
  /// system, the method resolved and impedances given by port and stage.
  LaneChunk(System system, int replicas, const StepperOptions& options);

  void begin(const double* states) override;
  void step(const double* settings) override;
  void read_states(double* out, std::size_t distance) const override;

  void read_state(int replica, double* out) const override;
  int failures() const override { return replicas_ - alive_; }
  bool all_failed() const override { return alive_ == 0; }
  ReplicaStatus status(int replica) const override;
  Certificate certificate(int replica) const override;
  EnergyTotals energy(int replica) const override;

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  const WaveCoupling& method() const { return run_.options().method.waves(); }
  int replica_of(int part) const { return part / parts_; }
  bool is_checked() const;
  void check_states(const double* states);
  void check_joints(const double* states);
  bool attempt();
  void rest();
  void note_guard();
  void count();
  // As MacroStep::Failures.
  void failed(const PhaseStatus& status, int iteration) override;
  bool is_out(int part) const override { return ignored_[at(part)] != 0; }
  void take_out(int replica, std::string text);

  System system_;
  StagedRun run_;
  int replicas_;
  int parts_;  // of a replica
  WaveDiscretisation waves_;
  Together together_;
  MacroStep step_;
  std::unique_ptr<Executor> executor_;

  int alive_ = 0;
  std::vector<ReplicaStatus> statuses_;
  std::vector<double> met_gap_J_;        // for the guard, by replica; empty without a tolerance
  std::vector<MissedTolerance> missed_;  // with a tolerance
  struct Resting {
    int part;
    std::vector<double> state;
  };
  std::vector<Resting> resting_;  // parts of replicas that have failed
  std::vector<char> ignored_;     // by part
};

}  // namespace portwave
