#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ensemble/chunk.hpp"
#include "parallel/executor.hpp"
#include "parallel/island_watch.hpp"
#include "portwave/coupling/energy/guard.hpp"
#include "portwave/coupling/energy/island_ledger.hpp"
#include "portwave/coupling/system/step_clock.hpp"
#include "portwave/subsystems/base/staggered.hpp"
#include "step/extrapolated_start.hpp"
#include "step/staged_run.hpp"

namespace portwave {

/// Replicas side by side in the lanes of common batches: a system of as many islands, all in one
/// island group, and the macro-step of wave coupling for all of them at once. What is decided in it
/// is decided island by island, so that a replica has the bits that it has alone.
///
/// A replica that fails is taken out, and the step is taken anew without it. Its lanes cannot be
/// left out: they are set to rest before every step, and what becomes of them is ignored.
class LaneChunk final : public Chunk {
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
  InnerUpdate update() const;
  bool is_checked() const;
  StepArrays arrays(std::span<double> record, std::span<double> next, std::span<double> b,
                    std::span<double> b_next, std::span<double> a);
  StepArrays arrays() { return arrays(record_, next_, b_, b_next_, a_next_); }
  CommittedStep committed() const {
    return {record_.data(), next_.data(), a_next_.data(), b_next_.data()};
  }

  void check_states(const double* states);
  void check_joints(const double* states);
  void prepare_interface();
  bool attempt();
  bool freeze();
  void rest();
  bool fail_at(const StepResult& result);
  bool recommit(PhaseStatus& failure);
  bool is_finite();
  bool keep_within_tanks();
  void accept();
  void count();
  void fail(int part, int iteration, StepFault fault, const std::string& detail);
  void take_out(int replica, std::string text);

  System system_;
  StagedRun run_;
  int replicas_;
  int parts_;  // of a replica
  WaveDiscretisation waves_;
  StaggeredMemory memory_;
  std::span<double> record_, next_;
  std::span<double> b_, b_next_;
  std::span<double> a_, a_next_;
  std::span<double> u_, b_trial_;
  AlignedVector input_, start_;
  std::vector<double> settings_;
  std::vector<IslandOutcome> outcomes_;
  std::unique_ptr<IslandLedger> ledger_;
  InterfaceResidual residual_;
  std::unique_ptr<PassivityGuard> guard_;
  std::unique_ptr<Acceleration> acceleration_;
  std::unique_ptr<InterfaceSolver> interface_;
  std::unique_ptr<ExtrapolatedStart> extrapolated_;
  IslandWatch watch_;
  std::unique_ptr<Executor> executor_;
  StepClock clock_;
  bool revocable_ = false;  // the interface solver is in a step that has not been accepted
  bool stale_ = false;      // the record has seen port solves of a step that failed
  bool has_tolerance_ = false;

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
