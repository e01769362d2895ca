#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "parallel/wave_sums.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "step/sizes/step_error.hpp"

namespace portwave {

class StateArchive;

/// Looks for motion that the steps of a run do not resolve (docs/concepts/step-size.md). Three signs of it:
///
///   jumps       the estimate of the local error of a step reaches a share of all motion. Steps
///               that conserve energy throw a stiff decay to the other side of its rest;
///   damped      steps that do not conserve take energy from what oscillates, step after step;
///   alternates  rates of a state, efforts or flows of a port alternate from one step (two stages: from
///               one stage) to the next, many times in a row: the remainder of such a decay, or states
///               that violate a constraint. Resolved motion turns more slowly.
///
/// It examines the first steps of a run, some after a change by the user or a sudden change of energy, some
/// before every power of two, and some in every few thousand, one after another. An exception of a part's callback here ends the
/// examination.
/// Cost: a pass over states and ports, and in some of these steps what StepErrorEstimate costs.
/// Allocates at construction only.
class ResolutionWatch {
 public:
  /// `record`: the initial states.
  ResolutionWatch(const WaveDiscretisation& waves, const StageRule& rule, const double* record,
                  int ports);

  /// Whether it will examine step `step`, beside those requested by `note_energy`.
  bool wants(std::int64_t step) const { return step < closely_until_ || wants_always(step); }
  /// The same without requests.
  static bool wants_always(std::int64_t step) {
    if (step < kAtStart) return true;
    const auto end =
        step < kEvery
            ? static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(step + 1)))
            : (step / kEvery + 1) * kEvery;
    return step >= end - kBurst;
  }
  /// Reasons to look closely; from kSource on, the number of an input that has changed.
  enum Cause { kOutside, kEnergy, kEfforts, kFlows, kSource };
  /// Something has changed before step `step`: it and some after it are examined. The more often that
  /// happens for one cause, the less effect it has.
  void look_closely(std::int64_t step, int cause);
  /// How many inputs may be causes, and a damped part in an island where energy may swing, −1: there is none.
  void expect(std::size_t inputs, int damped_part);
  /// The states were set from outside: earlier ones say nothing about them.
  void forget();
  /// The energies of step `step`: a sudden change of energy, efforts or flows is examined.
  void note_energy(std::int64_t step, const StepLedger& energy, const WaveSums::Sums& waves);

  /// Step `step`, which `a` made of `record` into `next`, not accepted yet.
  void look(std::int64_t step, const double* record, const double* a, const double* next);
  /// In place of `look`, of a step within which a displacement jumps: its rates have no bound, and are no motion.
  void pass_over(std::int64_t step);
  /// After `look`: the waves of the step. `wave`: where those of a port are, stage by stage; −1 at ports
  /// without waves.
  void look_at_ports(const double* a, const double* b, std::span<const int> wave,
                     std::span<const double> weight);

  Resolution value() const;
  std::size_t bytes() const;
  void archive(StateArchive& archive);

 private:
  /// Consecutive steps, out of how many; and the minimum distance after a change.
  static constexpr std::int64_t kBurst = 18, kEvery = 2048, kAtStart = 64;
  /// Consecutive changes of direction.
  static constexpr int kAlternations = 14;

  /// A number that is followed from step to step.
  struct Sequence {
    double last = 0.0;    // value
    double change = 0.0;  // of it, before
    std::int32_t known = 0, alternations = 0;

    /// True where it has alternated often enough.
    bool take(double value);
  };
  struct Finding {
    double energy_J = 0.0;
    double h_lambda = 0.0;
    std::int64_t step = -1;
    int part = -1;
  };

  void archive_motion(StateArchive& archive);
  void forget_motion();
  bool is_estimated(std::int64_t step) const;
  bool dies(int part, int state) const;
  void follow(std::int64_t step, const double* record, const double* a, const double* next);
  /// Damped steps took too much, of all energy or beside what resistances took.
  bool is_damped_away() const;
  void note_bounces(const double* next);
  void note_largest(const double* record);
  void note_states(std::int64_t step, const double* next, bool is_estimated);
  void consider_states(Resolution& out) const;
  void follow_states(std::int64_t step, const double* next);
  void note_alternation(std::int64_t step, int part, const double* next);
  /// `of_all`: the largest effort or flow of all ports.
  void note_port(const Sequence& own, double largest, double of_all, int port, bool of_flow);
  double h_lambda(int part, const double* next);

  const WaveDiscretisation& waves_;
  const StageRule& stages_;  // without damping
  StepErrorEstimate estimate_;
  std::vector<std::size_t> first_state_;  // by part, in states_
  std::vector<Sequence> states_;          // by part
  /// Location of the rates of a part's states, at its last stage.
  struct Rates {
    std::size_t offset, first_state;
    int stride, states, part;
  };
  std::vector<Rates> rates_;  // of the parts that are judged
  struct Port {
    Sequence effort, flow;
    double largest_effort = 0.0, largest_flow = 0.0;
  };
  std::vector<Port> ports_;
  std::vector<double> scratch_, sums_, differences_;
  std::vector<Finding> jumps_, alternates_;  // by kind of part
  /// A state beside its own motion: parts may have a fast state with little energy beside a slow one with much.
  struct OwnMotion {
    double largest = 0.0;
    double error = 0.0, alternation = 0.0;  ///< the largest of those that were a share of `largest`
    std::int64_t step = -1;
  };
  std::vector<OwnMotion> own_;  // like states_
  struct {
    double share = 0.0;
    std::int64_t step = -1;
    int port = -1;
    bool of_flow = false;
  } port_;
  std::int64_t closely_until_ = kAtStart, closely_from_ = 0, last_seen_ = -1, looks_ = 0;
  /// Of a cause: the first step in which it is heeded again, and how many follow before the next.
  struct Patience {
    std::int64_t from = 0, steps = 2 * kBurst;
  };
  std::vector<Patience> patience_;
  std::int64_t begun_ = 0;  // the first step of those on end
  bool follows_ = false;    // the step before was examined
  std::uint64_t mark_ = 0;  // of what examined steps change (StateArchive::section)
  double step_s_ = 0.0;
  /// A sum over the network that may change suddenly.
  struct Usual {
    double value = 0.0, largest = 0.0;
    bool is_sudden(double now);
  };
  Usual turned_over_, efforts_, flows_;
  double largest_J_ = 0.0, waves_J_ = 0.0;  // stored; of the waves of a step
  int damped_part_ = -1;
  /// What damped steps took while they took about as much as in the step before, and all that was moved.
  double damped_J_ = 0.0, last_damped_J_ = 0.0, moved_J_ = 0.0;
  /// What resistances took.
  double dissipated_J_ = 0.0;
  std::int64_t damped_at_ = -1;
};

}  // namespace portwave
