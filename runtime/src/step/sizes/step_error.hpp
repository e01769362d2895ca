#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "step/sizes/part_kinds.hpp"

namespace portwave {

/// Whether damped stages let die what is infinitely fast: with θ from one half on, of which one stage leaves a third
/// after each step.
inline bool lets_die(const StageRule& rule) {
  return rule.damping * (4.0 * rule.count - 2.0) >= 0.5;
}
/// Whether a state of a part whose other states are judged dies: what it does in a step is no error.
inline bool dies_alone(const StageRule& rule, int state) {
  return rule.conserved != 0 && lets_die(rule) && rule.damps(state);
}

class StateArchive;

/// Estimates the error of a step of s Gauss stages from its stages and those of the two steps before
/// it: the distance of their rates from one polynomial.
///
/// The rates ẋ at 2s + 1 stages, the latest, make a divided difference D, and the estimate is
/// Cₛ (2s)! h²ˢ⁺¹ D, Cₛ = (s!)²/((2s)! (2s + 1)!). Were the rates those of the solution, D would be
/// x⁽²ˢ⁺¹⁾/(2s)!, and the estimate the local error of Gauss collocation on linear equations. So it is
/// for one stage. With more stages the rates themselves are off by O(hˢ⁺¹), and that, which cancels
/// at the end of a step, is most of D: the estimate goes with hˢ⁺² and is an upper one, of the size
/// that local errors of a run add up to rather than of one. A kink or a jump that the step does not
/// know of shows in it undiminished.
/// Damped steps have local errors of h²ˢ. With one stage two rates make the estimate, ½h²ẍ; with two the one
/// above has the right power, and a factor; with three it is an upper one as it is.
///
/// It is measured in energy, so that states of all units count alike and a drift that stores none
/// does not: with e a part's local error, the energy ½ eᵀ∇²H e beside the largest ½(x − x⁰)ᵀ∇²H
/// (x − x⁰) that any part of its kind in its island has had so far, or a millionth of what any part
/// there has had, whichever is more. Attempts of a first step count for that too, unless they contradict one
/// another: a motion that begins as a power of time has an error that is a constant share of it, however
/// short the step. For parts that are not quadratic both are increments of ∇H. The effect of roundings of
/// states and of the inner iteration is no error. A state that stores no energy is not judged; the states
/// that it moves are, unless an input does so directly.
/// Cost: a few passes over the states, on one thread. Allocates at construction only.
class StepErrorEstimate {
 public:
  /// The 2s + 1 stages out of three steps (two out of two for one damped stage) for an estimate: all of the last two and one before, or all of the
  /// first two and one after. Only the second choice sees the first of all steps.
  /// The third one has the first stage of the step before the last two instead of its last one.
  enum class Window { latest, earliest, latest_but_one };
  /// The treatment of parts whose batches have another number of stages, or take substeps: there are none, or
  /// they are not judged.
  enum class OtherParts { none, left_out };
  /// Whether steps of parts that ideal diodes bind or free have errors: their rates jump then, like those of others.
  enum class IdealParts { without_errors, judged };

  /// `record`: the initial states. `waves`: prepared with StageIncrements::kept; must outlive it.
  /// `rule`: of the parts of its system; damped if any of them is.
  StepErrorEstimate(const WaveDiscretisation& waves, const StageRule& rule, const double* record,
                    OtherParts others = OtherParts::none,
                    IdealParts ideal = IdealParts::without_errors);

  /// From now on every kind of parts is measured beside its own motion, down to kLeastShareOfPart: no error is what
  /// states and the waves at a part's own joints round, whatever waves there are elsewhere. Allocates.
  void judge_parts();

  /// The power of the step size in the estimate.
  static int power(const StageRule& rule) {
    return rule.count == 1 && rule.is_damped() ? 2 : rule.count + 2;
  }

  /// The stages of the parts that are judged.
  const StageRule& rule() const { return stages_; }

  /// Takes in the step that `a` made of `record` into `next`. It becomes the latest with `accept`;
  /// another one taken before that takes its place.
  void take(const double* record, const double* a, const double* next);
  /// The estimate for the step that was taken, as an amplitude: √ of the largest share of energy.
  /// Empty where fewer than two steps went before it. `a`: its incident waves.
  std::optional<double> error(const double* next, const double* a, Window window = Window::latest);
  /// Likewise for steps that choose their size. Where a diode or dry friction changes over, the rates of a step have a
  /// kink, for which the one divided difference may be 0 by chance: there it is the larger one of two.
  std::optional<double> error_of_laws(const double* next, const double* a);
  /// Calls found(part, kind, energy_J) with the error of every part that has one, in the step that was
  /// taken. Nothing where fewer than two steps went before it, or a callback throws.
  template <class Found>
  void for_each_error(const double* next, const double* a, Window window, const Found& found);
  /// Likewise the errors of states within the step before the one taken, when that step was the first and
  /// `state_at` has its own stages only: seen by the stages of the step taken.
  double error_between(const double* next, const double* a);
  void accept(const double* next);
  /// Continues from a step that was only tried, towards the estimate of another one; until `forget`.
  void go_on();
  /// Earlier steps say nothing about the next one.
  void forget() { known_steps_ = 0; }
  /// Sets the steps so far aside for some that are only tried, and takes them back.
  void set_aside();
  void take_back();

  /// The part with the largest share in the error that was found last; −1: none.
  int worst_part() const { return worst_part_; }

  /// √ of the largest share of energy in the difference of the states of two records, `next` being
  /// the better one.
  double distance(const double* other, const double* next, const double* a);
  /// Likewise of all that moves from `record` to `next`, in the scales of the error found last.
  double motion(const double* record, const double* next);

  /// The smallest energy, of parts of a kind, used in a comparison so far [J]; 0 if nothing has moved
  /// yet.
  double smallest_scale_J() const;

  // Its knowledge of kinds of parts, and of the step taken.
  std::size_t kinds() const { return kinds_.size(); }
  int kind_of(int part) const { return kind_of_part_[static_cast<std::size_t>(part)]; }
  /// The largest energy of motion, so far, that parts of this kind are compared with [J].
  double scale_J(int kind) const { return kinds_[static_cast<std::size_t>(kind)].scale_J; }
  /// Damped parts are left out, unless they have several stages beside nonlinear parts: these may overshoot.
  bool is_judged(int part) const { return told(part).is_judged; }
  /// By state of a part: not 0 where it is damped for itself (dies_alone).
  const char* dying(int part) const {
    told(part);
    return dies_.data() + first_state_[static_cast<std::size_t>(part)];
  }
  /// h ẋ of a state at a stage: of the step that was taken, and of the one before it.
  double taken_rate(int part, int stage, int state) const { return rate(0, part, stage, state); }
  /// Increments of the step this many steps before it, up to 2.
  double rate(int back, int part, int stage, int state) const;
  double last_rate(int part, int stage, int state) const { return rate(1, part, stage, state); }
  /// All √bᵢ h ẋᵢ of the step taken; the row in it of the first state of a part at a stage, and the distance
  /// to its next row.
  std::span<const double> taken() const { return steps_[0].increments; }
  std::pair<std::size_t, int> place_of(int part, int stage) const;
  /// Errors are measured beside what is stored in `record` as well, not beside motion since the start alone.
  void start_beside_stored(const double* record);
  bool has_estimate() const { return known_steps_ >= 2; }
  /// The estimate that `for_each_error` has formed, of one state.
  double estimate_of(int part, int state) const { return difference_[offset(part, state)]; }
  /// ½ eᵀ∇²H e of a motion of one state from its initial value [J]; 0: it stores none, or is no state of its own
  /// (E ≠ 1). Allocates.
  double energy_of_motion(int part, int state, double size) const;
  /// The largest energy of motion in the island of a part, so far [J].
  double island_J(int part) const {
    return island_J_[static_cast<std::size_t>(waves_.system().island_of_part(part))];
  }
  /// ½ eᵀ∇²H e of a part [J]; and 0 where round-off explains e, `error`.
  double energy_of(int part, const double* next, const double* e);
  double energy_of_error(int part, const double* next, const double* e);

  /// A state within the step accepted last, which led to x: at θ, from 0 at its start to 1. By the polynomial
  /// through the rates at the stages of this step and the one before it, moved so that it meets both ends: of
  /// order s + 2, and s + 1 if there was none before.
  void state_at(int part, const double* x, double theta, double* out) const;
  /// Likewise one state of the step that was taken in, which leads to `x`.
  double taken_at(int part, int state, double x, double theta) const;

  std::size_t bytes() const;
  void archive(StateArchive& archive);
  /// Its scales for comparison, without the steps that it has seen.
  void archive_scales(StateArchive& archive);

 private:
  /// The stages of a step: increments √bᵢ h ẋᵢ as StepBatch gives them, batch after batch.
  struct Step {
    AlignedVector increments;
    double step_s = 0.0;
  };
  /// Steps that `set_aside` keeps.
  struct Aside {
    std::array<Step, 2> steps;
    int known = 0;
    bool has_before = false;
  };
  /// Parts that are measured alike: those of one kind in one island.
  /// What is asked of a part in every step, kept with the component that told it: a part may be given another.
  struct Told {
    std::shared_ptr<const Component> component;
    const Subsystem* physics = nullptr;
    LinearForm form;
    int states = 0;
    bool is_diagonal = false;  // the part is linear with such a Q, in diagonal_, and no E
    bool is_judged = false;
  };
  struct Kind {
    double scale_J = 0.0;  // largest so far
    double next_J = 0.0;   // with the step that was taken
    int island = 0;
  };

  const Told& told(int part) const {
    const std::shared_ptr<const Component>& now =
        waves_.system().parts()[static_cast<std::size_t>(part)].component;
    if (now != told_[static_cast<std::size_t>(part)].component) ask(part);
    return told_[static_cast<std::size_t>(part)];
  }
  void ask(int part) const;
  std::size_t offset(int part, int row) const;
  bool form_difference(Window window);
  bool is_node(Window window, int back, int stage) const;
  void measure_waves(const double* a);
  double error_of_part(int part, const double* next);
  double weight(Window window, int back, int stage) const;
  double polynomial(const Step& step, int part, int state, double x, double theta) const;
  void form_dense_weights(double theta) const;
  double integral_of_lagrange(const std::array<double, 2 * kMostStages>& nodes, int node,
                              double from, double to) const;
  double energy_between(int part, const double* x, const double* e);
  double floor_J(int part, const double* x, const double* e);
  double wave_energy(int part, const double* a) const;
  double waves_around_J(int part) const;
  double least_share() const {
    return magnitudes_.empty() ? kLeastShareOfMotion : kLeastShareOfPart;
  }
  void measure_motion(const double* next);
  double motion_J(int part, const double* record);
  void measure_attempts(const double* other, const double* next);
  bool is_motion_due() const;
  double share(const double* next, const double* a, bool measure);

  const WaveDiscretisation& waves_;
  bool has_laws_ = false;           // some part has port laws
  std::vector<char> is_nonlinear_;  // by island: some part is
  const StageRule stages_;
  const bool is_first_order_;              // one damped stage
  std::vector<char> batch_tells_;          // the increments of the stages of a step
  std::vector<std::size_t> batch_offset_;  // in a Step's increments
  std::vector<std::size_t> first_state_;   // by part, in initial_ and difference_
  std::array<Step, 3> steps_;              // [0]: taken, then latest first
  Aside aside_;
  int known_steps_ = 0;      // accepted ones of steps_
  bool has_before_ = false;  // steps_[2] led to steps_[1]
  std::int64_t accepted_ = 0;
  int worst_part_ = -1;
  mutable std::vector<Told> told_;        // by part
  mutable std::vector<double> diagonal_;  // of the Q of parts, like initial_
  mutable std::vector<char> dies_;        // whether a state is damped for itself, like initial_
  std::vector<double> initial_, difference_;
  std::vector<int> kind_of_part_;
  std::vector<Kind> kinds_;
  std::vector<double> island_J_;       // the largest of its kinds, attempts that agree included
  std::vector<double> next_island_J_;  // with the step that was taken
  std::vector<double> attempt_J_, apart_J_;  // of attempts that are compared, and their difference
  std::vector<double> before_J_;             // scratch
  std::vector<double> wave_J_;               // the largest ½|a|² of a part in a step, by island
  std::vector<double> magnitudes_;           // of waves, where parts are judged; else empty
  std::vector<double> x_, other_, moved_, gradient_, gradient_other_;  // scratch of a part
  /// Weights of the rates of the last two steps, for a state within the last one; `theta` is its place.
  struct DenseWeights {
    double theta = -1.0, last_s = 0.0, before_s = 0.0;
    std::array<double, 2 * kMostStages> weights = {};
  };
  mutable DenseWeights dense_;
};

template <class Found>
void StepErrorEstimate::for_each_error(const double* next, const double* a, Window window,
                                       const Found& found) {
  if (!form_difference(window)) return;
  measure_waves(a);
  for (int part = 0; part < static_cast<int>(kind_of_part_.size()); ++part) {
    const double energy_J = error_of_part(part, next);
    if (energy_J > 0.0) found(part, kind_of(part), energy_J);
  }
}

}  // namespace portwave
