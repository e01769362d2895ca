#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "portwave/coupling/impedance/one_sided_decays.hpp"
#include "portwave/coupling/impedance/shared_decays.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/runtime/step/step_report.hpp"
#include "step/staged_run.hpp"

namespace portwave {

class StateArchive;

/// Decides which storages take a damped step because a one-sided part beside them changes over: dry friction
/// that begins to stick, a diode that begins to conduct, a switch that closes.
///
/// A conserving step throws a storage whose decay is far faster than the step to the other side of its rest, and
/// back in the next one. So a storage is damped in a step in which its decay becomes faster than the step
/// resolves, and in those after it until it moves smoothly again: then nothing is left that could ring, and what
/// moves in common with its surroundings, as a block does that sticks to a moving table, is conserved. A damped
/// stage is the end of the step, and others are means: so all that stores at the joint is damped together, with what
/// is tied to that, and at the ends of their steps they agree. The decay is that which its resistances have at their inputs in the step as it was attempted.
///
/// So are storages that share a stiff resistance with others, in the steps in which their motion against each other is
/// thrown across its rest (SharedDecays): two masses with a damper between them that begin apart. What they have in
/// common with others is conserved in all other steps.
/// Cost     a law per resistance and step.
class ChangeOver {
 public:
  /// Precondition: `run.may_change_over()`.
  ChangeOver(const StagedRun& run, double step_s);

  /// A step of size `step_s` was attempted from `record` into `next`, with waves `a` and `b`.
  struct Attempt {
    const WaveDiscretisation& waves;
    const double* record;
    const double* next;
    const double* a;
    const double* b;
  };
  /// The parts that are to be damped in it, and are not.
  std::span<const int> to_damp(const Attempt& step);
  /// What a step of a part with substeps, which meet the mean of what is beside them and cannot be damped, was thrown
  /// across; `resolved`: nothing.
  Resolution thrown() const;
  /// It was committed: the parts that are damped, and need not be in the next one.
  std::span<const int> to_leave(const Attempt& step);
  /// Something is to be damped: whether it is the first time. Then the batches of all `parts` are to be made for it.
  bool engage();
  void note(int part, bool damped);

  bool is_damped(int part) const { return state(part) == kDamped; }
  bool was_damped(int part) const { return state(part) >= kWas; }
  std::span<const int> parts() const { return parts_; }
  /// States were set, or an impulse acted: what was seen before says nothing.
  void forget();
  void component_changed(int part);

  /// "\"d\" and 3 others damped in 12 of 1000 steps, while one-sided parts beside them changed over"; empty if none was.
  std::string text(const System& system, std::int64_t steps) const;
  /// What is known of a storage that takes substeps.
  struct SubstepsSeen {
    double largest = 0.0;   // magnitude of its output
    double change = 0.0;    // of it in the last step, if that was stiff
    double stiff = 0.0;     // hλ then; 0: it was not
    double thrown = 0.0;    // the largest change that the step after it did not go on with
    double h_lambda = 0.0;  // in that step
    std::int64_t step = -1;
  };
  /// All that later steps depend on.
  struct Kept {
    std::vector<char> states;                     // of `parts`: 0 never damped, 1 was, 2 is
    std::vector<double> changes, bends, largest;  // by storage, then by shared one
    std::vector<char> was_stiff;
    std::int64_t steps = 0, looked_steps = 0;
    std::vector<SubstepsSeen> substeps;
    void archive(StateArchive& archive);
  };
  Kept kept() const;
  bool fits(const Kept& other) const;
  /// Precondition: it fits.
  void take(const Kept& other);

 private:
  enum State : char { kNever, kReady, kWas, kDamped };
  /// What is known of a storage.
  struct Seen {
    double change = 0.0;   // of its output, in the last step
    double bend = 0.0;     // difference of that from the one before
    double largest = 0.0;  // magnitude of its output
    bool was_stiff = false;
  };
  State state(int part) const { return states_[static_cast<std::size_t>(part)]; }
  /// Decays, with what they are in the step that was looked at.
  struct Looked {
    OneSidedDecays decays;
    std::vector<double> direct;    // by resistance
    std::vector<double> h_lambda;  // by storage

    explicit Looked(OneSidedDecays own);
  };
  void look(const Attempt& step);
  void find(const Attempt& step, Looked& own);
  void look_at_substeps(const Attempt& step);
  void look_at_shared(const Attempt& step);
  double shared_share(std::size_t loss) const;
  bool is_thrown_across(std::size_t loss) const;
  bool is_smooth(std::size_t storage) const;
  double output(const WaveDiscretisation& waves, OneSidedDecays& decays, std::size_t storage,
                const double* record);

  Looked looked_;
  SharedDecays shared_;
  // Of outputs, by storage of these: half of what the step changes, what they were, and the largest ever.
  std::vector<double> shared_change_, shared_before_, shared_largest_;
  double shared_step_s_ = 0.0;
  Looked substeps_;                          // of storages that take substeps
  std::vector<char> has_substeps_;           // by storage of these: some part that it is tied to
  std::vector<SubstepsSeen> substeps_seen_;  // likewise
  std::vector<Seen> seen_;                   // by storage
  std::vector<double> change_;               // likewise
  std::vector<double> x_;                    // scratch
  std::vector<State> states_;                // by part
  std::vector<char> needs_;                  // by part, scratch
  std::vector<int> parts_;                   // of all sets, in order
  std::vector<int> found_;
  bool is_engaged_ = false;
  int damped_parts_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t looked_steps_ = 0;
};

}  // namespace portwave
