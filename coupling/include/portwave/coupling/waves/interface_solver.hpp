#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/subsystems/base/for_each.hpp"

namespace portwave {

class StateArchive;

/// The interface update of WaveUpdate::interface, island by island:
///   u ← u + (I − P D)⁻¹ (P S(u) − u),   D = S′ part by part.
///
/// If all parts of an island are affine one update is exact: two evaluations of S, or three
/// if the first leaves more than rounding. Otherwise it is a quasi-Newton iteration that keeps its factors
/// over the steps. They are renewed at the last iterate that stands when updates like the last one would not
/// reach the target within seven in total; and, for some steps after that, at the first evaluation already.
/// A trial whose gap is not smaller does not stand, nor does one at which a port solve fails: then D is
/// renewed at the last one that does. If that does not help, the iteration goes on from the trial, with D of
/// there: past the bend of a diode or a friction Newton's method finds its way within a few updates, if it may
/// leave the way down. If none of 8 has a smaller gap, it returns, the step is halved, and after 4 of these
/// u ← u + ½(P S(u) − u) takes its place once, which never enlarges the gap where S is nonexpansive.
///
/// An island may be in use from the first evaluation of every step on, or be engaged within one;
/// both permanently and deterministically: the solver depends on the waves alone. One thread at a time may
/// call for one island, different threads for different ones.
/// Cost: a solve: one multiplication and addition per entry of the factors. Renewing
/// D: at most 2·p evaluations of nonlinear parts with at most p scalar ports, on one thread, and an LU.
/// Memory: the factors, up to 1 GiB per island, and seven wave arrays. Steps allocate only when D is
/// renewed or an island is engaged for the first time.
///
/// Whoever evaluates S also writes u, P S(u) and the gap (`trial`), and forms the next iterate of its own waves
/// (`next`). One thread alone only solves, with the help of others (`share_with`), and decides.
class InterfaceSolver {
 public:
  /// `target`: of the residual |P S(u) − u|/|P S(u)|, to decide when to renew D.
  explicit InterfaceSolver(const WaveDiscretisation& waves, double target = 1e-10);
  ~InterfaceSolver();
  InterfaceSolver(const InterfaceSolver&) = delete;
  InterfaceSolver& operator=(const InterfaceSolver&) = delete;

  /// Large solves are made by `each` from now on, which may be called from several threads at once and stays
  /// where it is. It makes no difference to their bits.
  void share_with(const ForEach& each) { each_ = &each; }

  /// From the next step on an island takes this update in every step, or no longer. Between steps.
  /// False where its factors would not fit.
  bool use(int island, bool always);
  /// Whether an island does.
  bool is_used(int island) const { return flags_[at(island)].used; }
  /// Step maps and junctions have changed. Between steps. Linear islands are factorised at once.
  void take_over_maps();
  /// The same of one island alone.
  void take_over_maps(int island);
  /// Whether the derivatives of nonlinear parts stay when one part of their island changes.
  enum class Derivatives { renewed, kept };
  /// The step map of one part has changed. Between steps. The factors of its island are made again in the next
  /// step that uses them, unless derivatives stay and the part is nonlinear: whether they will do is then seen by the
  /// updates. Other islands keep theirs. Returns whether the equation has another pattern then, which is to be analysed.
  bool take_over_part(int part, Derivatives others = Derivatives::renewed);

  /// A new macro-step.
  void begin();
  /// Discards the step that has begun, at whatever evaluation each island was: data kept from step to step
  /// are as before it. The previous D is saved where it is renewed; its factors are rebuilt on demand.
  void revoke();
  /// From the next update on, for the rest of the step. False, without effect, if the factors do not fit or
  /// memory runs out.
  bool engage(int island);
  bool engaged(int island) const { return flags_[at(island)].engaged; }
  /// Whether an engaged island gets to its solution from any waves by one update.
  bool is_affine(int island) const;
  /// Whether the next iterate is in u().
  bool active(int island) const { return flags_[at(island)].active; }
  /// Whether the last evaluation stands; and whether the one in progress may fail without harm.
  bool stands(int island) const { return flags_[at(island)].stands; }
  bool on_trial(int island) const { return flags_[at(island)].trial; }

  /// Where an evaluation of an engaged island is to be written before it is judged, by wave. Different threads may
  /// write different waves.
  struct Evaluation {
    double* u;
    double* exchanged;  ///< P S(u)
    double* gap;        ///< P S(u) − u
    void take(std::size_t wave, double incident, double answer) const {
      u[wave] = incident;
      exchanged[wave] = answer;
      gap[wave] = answer - incident;
    }
    /// Of `count` waves from `first` on.
    void take(std::size_t first, int count, const double* incident, const double* answer) const {
      std::copy_n(incident, count, u + first);
      std::copy_n(answer, count, exchanged + first);
      for (int i = 0; i < count; ++i)
        gap[first + static_cast<std::size_t>(i)] = answer[i] - incident[i];
    }
  };
  Evaluation trial(int island) { return trial_of(*islands_[at(island)]); }
  /// Writes all of it. Arrays are the whole system's.
  void measure(int island, const double* u, const double* exchanged);
  /// Takes in an evaluation of an engaged island, with |P S(u) − u|² and |P S(u)|². False: it does not stand.
  bool accept(int island, double gap_square, double size);
  /// Limit on the cost of an update: u ← u + ½(P S(u) − u) costs nothing.
  enum class Effort { average, solve, renew };
  /// Makes the next iterate, at a cost of at most `most`. `record` is frozen. Returns the effort spent.
  Effort advance(int island, const double* record, Effort most = Effort::renew);
  /// Between steps: renews D of a nonlinear island at these waves, or solves with the existing factors. False
  /// if no factors are available.
  bool rehearse(int island, const double* record, const double* u, const double* exchanged,
                Effort effort);

  /// The next iterate of an active island: base + damping · change, by wave. Neighbours may read it at one another's
  /// waves: it may lie where the next evaluation is written, so nobody may write there before its neighbours have read.
  struct Update {
    const double *base, *change;
    double damping;
    double of(std::size_t wave) const {
      return damping == 0.0 ? base[wave] : base[wave] + damping * change[wave];
    }
    /// Of `count` waves from `first` on.
    void put(std::size_t first, int count, double* u) const {
      if (damping == 0.0) {
        std::copy_n(base + first, count, u);
      } else {
        for (int i = 0; i < count; ++i) {
          const std::size_t wave = first + static_cast<std::size_t>(i);
          u[i] = base[wave] + damping * change[wave];
        }
      }
    }
  };
  Update next(int island) const;
  /// P S(u) at the last evaluation that stands.
  const double* shadow(int island) const;
  /// |P S(u)|² at the first evaluation of the step from which an engaged island was updated; 0: at none yet.
  double first_size(int island) const;
  /// Evaluations of the nonlinear parts, in this step, to renew D.
  int linearisation_evaluations() const;
  std::size_t bytes() const;
  /// State carried from one step to the next, the step maps apart: the islands in use, and the D of their
  /// nonlinear parts. Factors that are not those of the D read back are rebuilt on demand.
  void archive(StateArchive& archive);

 private:
  struct Island;
  struct Networks;
  /// Data that tasks read.
  struct Flags {
    bool used = false;
    bool engaged = false;
    bool active = false;
    bool trial = false;
    bool stands = true;

    friend constexpr std::array<std::size_t, 5> archive_flags(const Flags*) {
      return {offsetof(Flags, used), offsetof(Flags, engaged), offsetof(Flags, active),
              offsetof(Flags, trial), offsetof(Flags, stands)};
    }
  };

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  Island* prepare(int island);
  bool will_do(const Island& own) const;
  Evaluation trial_of(const Island& own);
  Evaluation base_of(const Island& own);
  void update(int island, Island& own, const double* record);
  bool wander(int island, Island& own, const double* record);
  void take_base(Island& own) const;
  void renew(Island& own, const double* record, const Evaluation& at_which) const;
  void catch_up(Island& own) const;
  void solve(Island& own, const Evaluation& at_which);
  bool is_of_use(Island& own, const Evaluation& at_which, double gap_square, double size);
  void propose(int island, Island& own, double damping);

  const WaveDiscretisation& waves_;
  double target_;
  ForEach alone_;
  const ForEach* each_ = &alone_;
  std::unique_ptr<Networks> networks_;
  std::vector<Flags> flags_;
  std::vector<std::unique_ptr<Island>> islands_;  // those that have been in use
  /// An evaluation, by wave.
  struct Kept {
    AlignedVector u, exchanged, gap;
  };
  Kept kept_[2];  // of each island the last one that stands, and the last of all
  AlignedVector change_;
};

}  // namespace portwave
