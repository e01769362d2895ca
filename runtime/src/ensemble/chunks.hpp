#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "parallel/executors/executor.hpp"
#include "portwave/coupling/energy/certificate.hpp"
#include "portwave/coupling/energy/ledger.hpp"
#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/coupling/system/state_constraints.hpp"
#include "portwave/runtime/ensemble/ensemble.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "step/staged_run.hpp"
#include "step/waves/macro_step.hpp"
#include "step/waves/tuner.hpp"

namespace portwave {

/// The first state of a part that is not finite, in words; empty: all are.
std::string not_finite(const Part& part, std::span<const double> state);

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

  /// The state of one replica; NaN if it has failed.
  virtual void read_state(int replica, double* out) const = 0;

  /// A part of one replica, as of the next run; and another component for it. The present run goes on with the
  /// parts that it has.
  virtual const Part& part(int replica, int part) const = 0;
  virtual void set_component(int replica, int part, std::shared_ptr<const Component> component) = 0;

  virtual int failures() const = 0;
  virtual bool all_failed() const = 0;
  virtual ReplicaStatus status(int replica) const = 0;
  virtual Certificate certificate(int replica) const = 0;
  virtual EnergyTotals energy(int replica) const = 0;
};

/// Replicas side by side in the lanes of common batches: a system of as many islands, all in one
/// island group, and the macro-step of wave coupling for all of them at once. Every decision is made island
/// by island, so that a replica has the bits that it has alone.
///
/// A replica that fails is taken out, and the step starts again without it. Its lanes cannot be left out:
/// they are set to rest before every step, and their results are ignored.
class LaneChunk final : public Chunk, private MacroStep::Failures {
 public:
  /// `system`: `replicas` alike systems of one island each, gathered. `options`: of the gathered
  /// system, the method resolved and impedances given by port and stage. `follows`: how impedances were chosen, and of
  /// one replica the system and options, where they follow the state; else null.
  struct Following {
    const Tuner* like;
    const System* one;
    StepperOptions options;
  };
  LaneChunk(System system, int replicas, const StepperOptions& options,
            std::unique_ptr<const Following> follows = nullptr);

  void begin(const double* states) override;
  void step(const double* settings) override;
  void read_states(double* out, std::size_t distance) const override;

  void read_state(int replica, double* out) const override;
  const Part& part(int replica, int part) const override {
    return system_.parts()[at(replica * parts_ + part)];
  }
  void set_component(int replica, int part, std::shared_ptr<const Component> component) override {
    left_.push_back(this->part(replica, part).component);
    exchange_component(system_, replica * parts_ + part, std::move(component));
  }
  /// Whether it has to be built again for the next run, from this system.
  bool is_out_of_date() const { return !left_.empty(); }
  System take_system() { return std::move(system_); }

  int failures() const override { return replicas_ - alive_; }
  bool all_failed() const override { return alive_ == 0; }
  ReplicaStatus status(int replica) const override;
  Certificate certificate(int replica) const override;
  EnergyTotals energy(int replica) const override;

 private:
  const WaveCoupling& method() const { return run_.options().method.waves(); }
  int replica_of(int part) const { return part / parts_; }
  bool is_checked() const;
  void check_states(const double* states);
  void check_joints(const double* states);
  void let_jump(const StateConstraints::Odds& odds);
  bool attempt();
  void follow(const double* states);
  void retune();
  void set_impedance(std::span<const int> replicas);
  void take_over_maps(std::span<const int> replicas);
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
  std::vector<MissedTolerance> missed_;  // with a tolerance
  struct Resting {
    int part;
    std::vector<double> state;
  };
  std::vector<Resting> resting_;  // parts of replicas that have failed
  std::vector<char> ignored_;     // by part

  /// A replica whose impedances follow its state.
  struct Follower {
    Follower(System own, const Following& how)
        : system(std::move(own)),
          run(system, how.options),
          tuner(run.stepped(), how.options.step_s, *how.like) {}
    System system;
    StagedRun run;
    Tuner tuner;
  };
  std::unique_ptr<const Following> follows_;
  std::vector<std::unique_ptr<Follower>> followers_;    // of the present run
  std::vector<double> wanted_, left_impedance_;         // of all replicas, by port and by wave
  std::vector<double> looked_at_;                       // a state
  std::vector<int> tuned_;                              // replicas
  std::vector<std::shared_ptr<const Component>> left_;  // that batches still refer to
};

/// One replica by itself, with its own Stepper, which is rebuilt for every run.
class SoloChunk final : public Chunk {
 public:
  SoloChunk(System system, const StepperOptions& options);

  void begin(const double* states) override;
  void step(const double* settings) override;
  void read_states(double* out, std::size_t distance) const override;

  void read_state(int /*replica*/, double* out) const override { read_states(out, 0); }
  const Part& part(int /*replica*/, int part) const override { return given_.parts()[at(part)]; }
  void set_component(int /*replica*/, int part,
                     std::shared_ptr<const Component> component) override {
    exchange_component(given_, part, std::move(component));
  }
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
