#include "portwave/coupling/waves/interface_solver.hpp"

#include <algorithm>
#include <cmath>
#include <new>
#include <span>
#include <utility>

#include "portwave/subsystems/base/state_archive.hpp"
#include "waves/condensed_equation.hpp"
#include "waves/interface_equation.hpp"
#include "waves/part_linearisation.hpp"
#include "waves/undetermined_waves.hpp"

namespace portwave {
namespace {

/// Updates within which a step should end.
constexpr int kMostUpdates = 7;
/// Steps that renew D at their first evaluation, after one in which it had to be renewed.
constexpr int kEagerSteps = 16;
constexpr int kMostHalvings = 4;
/// Updates with what parts tell of their slopes that leave more of the gap squared are followed by one with
/// differences.
constexpr double kTooRough = 0.1;
/// So many updates from trials that do not stand take what parts tell.
constexpr int kRoughlyWandered = 2;
/// Updates from one trial to the next without a smaller gap.
constexpr int kMostWandered = 8;
/// What such an update must leave of the gap squared, so that going round in circles is no way.
constexpr double kWorthTheWay = 0.25;
/// A correction this many times the gap can only be that of an equation without a solution: the
/// matrix is shifted by 1e-14.
constexpr double kContradiction = 1e11;
/// A correction this many times the gap, and this many times the waves, is that of an equation that is singular
/// or nearly so: a loop of closed switches and conducting diodes, say, none of which stays so.
constexpr double kSingular = 1e6;
constexpr double kFar = 4.0;
/// Such a correction is found with this shift, beside which errors of D are small, so that its sign is right, and
/// leads this many times the waves away, past the bends on its way.
constexpr double kReachShift = 1e-6;
constexpr double kReach = 1e3;
constexpr int kMostReaches = 3;
/// Relative to the waves: a gap of this size is rounding.
constexpr double kRounding = 1e-14;
using Accuracy = PartLinearisation::Accuracy;

}  // namespace

struct InterfaceSolver::Networks {
  explicit Networks(const System& system) : islands(system) {}
  IslandNetworks islands;
};

struct InterfaceSolver::Island {
  Island(const WaveDiscretisation& waves, const IslandNetworks& networks, int island)
      : condensed(CondensedEquation::of(waves.system(), networks, island)),
        parts(waves,
              condensed != nullptr
                  ? condensed->other_parts()
                  : std::span<const int>(networks.of[static_cast<std::size_t>(island)].parts)),
        offsets(offsets_of(waves, networks.of[static_cast<std::size_t>(island)].ports)),
        equation(waves.system(), networks, island, offsets) {
    if (condensed != nullptr) {
      impedance.assign(waves.system().scalar_ports().size(), 0.0);
      local_gap.resize(offsets.size());
      local_change.resize(offsets.size());
    }
    fits = parts.is_possible() &&
           (condensed != nullptr ||
            equation.expected_entries(waves.interconnection()) <= InterfaceEquation::kMostEntries);
  }

  static std::vector<int> offsets_of(const WaveDiscretisation& waves,
                                     const std::vector<int>& ports) {
    std::vector<int> out;
    for (const int port : ports) out.push_back(waves.wave_of_port(port));
    return out;
  }

  bool factorise(const WaveDiscretisation& waves, const ForEach& each,
                 double shift = InterfaceEquation::kShift) {
    const auto D = [&](int part) { return parts.of(part); };
    if (condensed == nullptr) {
      const auto changes = [&](int part) {
        return waves.batch(waves.slot(part).batch).affine == nullptr;
      };
      const bool is_new = !std::exchange(is_known, true);
      if (is_new)
        ready = equation.factorise(waves.interconnection(), D, changes, each, keeps_zeros);
      if (!is_new || shift != InterfaceEquation::kShift) ready = equation.renew(D, shift, each);
    } else {
      for (std::size_t port = 0; port < impedance.size(); ++port) {
        impedance[port] = waves.impedance()[at(waves.wave_of_port(static_cast<int>(port)))];
      }
      ready = condensed->factorise(waves.interconnection(), impedance, waves.step_s(), D, shift);
    }
    is_behind = shift != InterfaceEquation::kShift;
    has_changed = false;
    ++factorisations;
    undetermined.forget();
    if (ready && !is_behind && !parts.is_affine() && condensed == nullptr &&
        equation.smallest_pivot() < UndeterminedWaves::kSmallPivot) {
      undetermined.find(
          offsets, [&](const double* gap, double* change) { equation.solve(gap, change, each); });
    }
    return ready;
  }

  /// change = (I − PD)⁻¹ gap, by wave; returns |change|².
  double solve(const double* gap, double* change, const ForEach& each) {
    if (condensed == nullptr) return equation.solve(gap, change, each);
    for (std::size_t i = 0; i < offsets.size(); ++i) local_gap[i] = gap[offsets[i]];
    condensed->solve(local_gap.data(), local_change.data(), each);
    double sum = 0.0;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      change[offsets[i]] = local_change[i];
      sum += local_change[i] * local_change[i];
    }
    return sum;
  }

  std::unique_ptr<CondensedEquation> condensed;  // in place of `equation`, where it can be
  std::vector<double> impedance;                 // by scalar port, for `condensed`
  std::vector<double> local_gap, local_change;   // scratch, likewise
  PartLinearisation parts;
  std::vector<int> offsets;  // of its ports
  InterfaceEquation equation;
  UndeterminedWaves undetermined;       // with the factors there are, of parts that are not affine
  Accuracy accuracy = Accuracy::rough;  // of the next D
  double change_square = 0.0;           // |(I − PD)⁻¹ gap|² of the last solve
  bool fits = false;
  bool is_known = false;  // the pattern of the equation, with the step maps there are
  bool keeps_zeros =
      false;           // zeros of D are entries of it, since a part that was exchanged had others
  bool ready = false;  // there are factors
  bool is_behind =
      false;  // they are not those of D: it was read back, or shifted by more, or changed
  bool has_changed = false;  // a part has: a solve takes an LU first
  int eager = 0;             // steps in which D is renewed at the first evaluation
  int evaluations = 0;       // of the nonlinear parts, in this step
  int factorisations = 0;    // in all
  int standing = 0;          // which of the two evaluations that are kept stands
  // The next iterate: from which of them, whether along its gap or its change, and how far.
  int from = 0;
  bool along_gap = false;
  double damping = 0.0;
  // At the last evaluation that stands:
  double square = 0.0;       // |gap|²
  double before = 0.0;       // that of the one before
  double size = 0.0;         // |P S(u)|²
  double first_size = 0.0;   // the same at the first one of the step; 0: there is none yet
  bool is_rounding = false;  // the gap is no more than that
  bool fresh = false;        // D was taken there
  int updates = 0;           // tried in this step
  int halvings = 0;
  int wandered = 0;                   // updates since, from trials that do not stand
  int most_wandered = kMostWandered;  // in this step, from now on
  bool is_far_out = false;            // the trial in progress is no more than a way past bends
  int reaches = 0;                    // such trials that may still be made in this step
  double trial_square = 0.0, trial_last = 0.0, trial_before = 0.0;  // |gap|² of the last trials
  double trial_size = 0.0;                                          // |P S(u)|² of the last one
  // As it was before this step.
  struct {
    int eager = 0;
    bool ready = false;
  } kept;
  bool is_renewed = false;  // D, in this step
};

InterfaceSolver::InterfaceSolver(const WaveDiscretisation& waves, double target)
    : waves_(waves),
      target_(target),
      networks_(std::make_unique<Networks>(waves.system())),
      flags_(at(waves.system().island_count())),
      islands_(flags_.size()) {
  const std::size_t size = at(waves.wave_size());
  for (Kept& kept : kept_) kept = {AlignedVector(size), AlignedVector(size), AlignedVector(size)};
  change_.assign(size, 0.0);
}

InterfaceSolver::~InterfaceSolver() = default;

InterfaceSolver::Island* InterfaceSolver::prepare(int island) {
  std::unique_ptr<Island>& own = islands_[at(island)];
  if (own == nullptr) {
    own = std::make_unique<Island>(waves_, networks_->islands, island);
  }
  if (!own->fits) return nullptr;
  if (!own->ready && own->parts.is_affine()) own->factorise(waves_, alone_);
  return own.get();
}

bool InterfaceSolver::use(int island, bool always) {
  flags_[at(island)].used = always && prepare(island) != nullptr;
  return flags_[at(island)].used == always;
}

void InterfaceSolver::take_over_maps() {
  for (std::size_t i = 0; i < islands_.size(); ++i) take_over_maps(static_cast<int>(i));
}

void InterfaceSolver::take_over_maps(int island) {
  if (islands_[at(island)] == nullptr) return;
  Island& own = *islands_[at(island)];
  own.ready = own.is_known = false;
  own.parts.take_affine();
  if (is_used(island) && own.fits && own.parts.is_affine()) own.factorise(waves_, alone_);
}

bool InterfaceSolver::take_over_part(int part, Derivatives others) {
  Island* const own = islands_[at(waves_.system().island_of_part(part))].get();
  if (own == nullptr) return false;
  const int width = waves_.batch(waves_.slot(part).batch).batch->wave_size();
  if (width == 0) return false;  // all its ports are idle: it is in no equation
  if (others == Derivatives::kept && !own->parts.is_affine()) {
    // Whether old derivatives will do is seen by the updates, as when the state moves on. Affine parts take an LU.
    if (waves_.batch(waves_.slot(part).batch).affine == nullptr) return false;
    own->is_behind = own->has_changed = own->ready;
  } else {
    own->ready = false;
  }
  if (own->condensed != nullptr) {
    own->parts.take_affine();
    return false;
  }
  const auto entries = std::span(own->parts.of(part), at(width * width));
  const std::vector<double> before(entries.begin(), entries.end());
  own->parts.take_affine(part);
  if (!own->is_known || own->equation.fits(part, before.data(), entries.data())) return false;
  // What is an entry follows from the parts that there are, not from those that were, until one is exchanged for
  // another pattern: the next change of its kind shall find its places.
  own->is_known = false;
  own->keeps_zeros = own->keeps_zeros || others == Derivatives::kept;
  return true;
}

void InterfaceSolver::revoke() {
  for (const std::unique_ptr<Island>& own : islands_) {
    if (own == nullptr || own->parts.is_affine()) continue;
    own->eager = own->kept.eager;
    if (!own->is_renewed) continue;
    own->parts.go_back();
    own->ready = own->is_behind = own->kept.ready;
    own->is_renewed = false;
  }
}

void InterfaceSolver::begin() {
  for (std::size_t i = 0; i < flags_.size(); ++i) {
    flags_[i] = {.used = flags_[i].used};
    if (Island* const own = islands_[i].get(); own != nullptr) {
      own->evaluations = 0;
      own->kept = {own->eager, own->ready};
      own->is_renewed = false;
    }
    if (flags_[i].used) engage(static_cast<int>(i));
  }
}

bool InterfaceSolver::engage(int island) {
  try {
    Island* own = prepare(island);
    if (own == nullptr) return false;
    own->updates = 0;
    own->most_wandered = kMostWandered;
    own->reaches = kMostReaches;
    own->is_far_out = false;
    own->first_size = 0.0;
  } catch (const std::bad_alloc&) {
    return false;
  }
  flags_[at(island)].engaged = true;
  return true;
}

bool InterfaceSolver::is_affine(int island) const {
  return engaged(island) && islands_[at(island)]->parts.is_affine();
}

InterfaceSolver::Evaluation InterfaceSolver::base_of(const Island& own) {
  Kept& kept = kept_[own.standing];
  return {kept.u.data(), kept.exchanged.data(), kept.gap.data()};
}

InterfaceSolver::Evaluation InterfaceSolver::trial_of(const Island& own) {
  Kept& kept = kept_[1 - own.standing];
  return {kept.u.data(), kept.exchanged.data(), kept.gap.data()};
}

void InterfaceSolver::measure(int island, const double* u, const double* exchanged) {
  const Island& own = *islands_[at(island)];
  const Evaluation trial = trial_of(own);
  for (const int offset : own.offsets) trial.take(at(offset), u[offset], exchanged[offset]);
}

bool InterfaceSolver::accept(int island, double gap_square, double size) {
  Flags& flags = flags_[at(island)];
  Island& own = *islands_[at(island)];
  own.trial_before = own.trial_last;
  own.trial_last = own.trial_square;
  own.trial_square = gap_square;
  own.trial_size = size;
  const bool wanders = own.wandered > 0 && own.halvings == 0;
  const double most = wanders ? kWorthTheWay * own.square : own.square;
  const bool is_worse = own.is_far_out || !(gap_square <= most);  // a NaN, too
  flags.stands = !(flags.trial && is_worse);
  // Where an island stops here, its further evaluations, beside others of its task, are at the same waves.
  own.from = 1 - own.standing;
  own.damping = 0.0;
  if (!flags.stands) return false;
  own.before = own.square;
  own.square = gap_square;
  own.standing = 1 - own.standing;
  return true;
}

InterfaceSolver::Effort InterfaceSolver::advance(int island, const double* record, Effort most) {
  Island& own = *islands_[at(island)];
  const int renewals = own.evaluations;
  const int factorised = own.factorisations;
  const bool stands = flags_[at(island)].stands;
  if (stands) take_base(own);
  if (most == Effort::renew) {
    update(island, own, record);
  } else {
    // Without time for more, a failed trial is not repeated in another way.
    const bool may_solve = most == Effort::solve && own.ready && !own.has_changed && stands;
    own.reaches = 0;
    propose(island, own, !may_solve ? -1.0 : own.is_rounding ? 0.0 : 1.0);
  }
  // Derivatives may cost no evaluations, and an LU may be all that a change asks for: not what a solve usually takes.
  if (own.evaluations > renewals || own.factorisations > factorised) return Effort::renew;
  return flags_[at(island)].trial || own.parts.is_affine() ? Effort::solve : Effort::average;
}

bool InterfaceSolver::rehearse(int island, const double* record, const double* u,
                               const double* exchanged, Effort effort) {
  Island* const own = prepare(island);
  if (own == nullptr) return false;
  if (effort == Effort::renew ? own->parts.is_affine() : !own->ready) return false;
  measure(island, u, exchanged);
  own->standing = 1 - own->standing;
  if (effort == Effort::renew) {
    own->accuracy = Accuracy::by_differences;
    own->equation.expect_changes();
    renew(*own, record, base_of(*own));
    own->is_renewed = false;
    return own->ready;
  }
  solve(*own, base_of(*own));
  return true;
}

/// The next iterate, at any cost.
void InterfaceSolver::update(int island, Island& own, const double* record) {
  if (flags_[at(island)].stands) {
    if (own.parts.is_affine()) return propose(island, own, 1.0);
    if (own.is_rounding) return propose(island, own, 0.0);
    const bool is_slow = own.updates > 0 && !will_do(own);
    const bool is_eager = own.updates == 0 && own.eager > 0;
    if (is_eager) --own.eager;
    if (is_slow) own.eager = kEagerSteps;
    const bool is_too_rough = is_slow && own.parts.is_rough() && own.is_renewed &&
                              !(own.square <= kTooRough * own.before);
    own.accuracy = is_too_rough ? Accuracy::by_differences : Accuracy::rough;
    if (!own.ready || is_slow || is_eager) renew(own, record, base_of(own));
    return propose(island, own, 1.0);
  }
  own.eager = kEagerSteps;
  if (own.halvings == 0 && (own.fresh || own.wandered > 0)) {
    if (wander(island, own, record)) return;
  }
  if (!own.fresh) {
    own.accuracy = Accuracy::by_differences;
    renew(own, record, base_of(own));
    if (own.fresh && own.wandered == 0) return propose(island, own, 1.0);
  }
  ++own.halvings;
  propose(island, own, own.halvings <= kMostHalvings ? std::ldexp(1.0, -own.halvings) : -1.0);
}

/// A full update from a trial that does not stand. False: it has wandered for too long, or cannot from there.
bool InterfaceSolver::wander(int island, Island& own, const double* record) {
  // Between two pieces of a friction Newton's method goes to and fro.
  constexpr double kSame = 1e-2;
  const bool is_circle = own.wandered >= 2 &&
                         std::abs(own.trial_square - own.trial_before) <= kSame * own.trial_square;
  if (own.wandered >= own.most_wandered || is_circle || !std::isfinite(own.trial_square)) {
    own.most_wandered /= 2;  // where that led nowhere shorter updates are to have their turn
    return false;
  }
  ++own.wandered;
  own.accuracy = own.wandered > kRoughlyWandered ? Accuracy::by_differences : Accuracy::rough;
  renew(own, record, trial_of(own));
  const bool is_sound = std::exchange(own.fresh, false);  // of the base it is not
  if (!is_sound) return false;
  solve(own, trial_of(own));
  if (!is_of_use(own, trial_of(own), own.trial_square, own.trial_size)) return false;
  own.from = 1 - own.standing;
  own.along_gap = false;
  own.damping = 1.0;
  ++own.updates;
  flags_[at(island)].active = flags_[at(island)].trial = true;
  return true;
}

/// Whether updates as good as the last one reach the target in time, with a margin.
bool InterfaceSolver::will_do(const Island& own) const {
  constexpr double kToSpare = 1e-2;  // of the square
  double square = own.square;
  for (int left = std::max(kMostUpdates - own.updates, 1); left > 0; --left) {
    square *= own.square / own.before;
  }
  return square <= kToSpare * target_ * target_ * own.size;
}

/// The next update starts from the last evaluation.
void InterfaceSolver::take_base(Island& own) const {
  own.size = own.trial_size;
  if (own.first_size == 0.0) own.first_size = own.size;
  own.is_rounding = own.square <= kRounding * kRounding * own.size;
  own.fresh = false;
  own.halvings = own.wandered = 0;
}

/// D and the factors at an evaluation.
void InterfaceSolver::renew(Island& own, const double* record, const Evaluation& at_which) const {
  try {
    if (!own.is_renewed) own.parts.keep();
    own.is_renewed = true;
    const bool sound =
        own.parts.differentiate(record, at_which.u, at_which.exchanged, own.accuracy);
    own.evaluations += own.parts.evaluations();
    own.fresh = own.factorise(waves_, *each_) && sound;
  } catch (const std::bad_alloc&) {
    own.ready = own.fresh = false;
  }
}

/// The factors of the D that was read back.
void InterfaceSolver::catch_up(Island& own) const {
  try {
    own.factorise(waves_, *each_);
  } catch (const std::bad_alloc&) {
    own.ready = false;
  }
}

/// The correction for the gap of an evaluation.
void InterfaceSolver::solve(Island& own, const Evaluation& at_which) {
  own.change_square = own.solve(at_which.gap, change_.data(), *each_);
  if (own.undetermined.empty()) return;
  double square = 0.0;
  for (const int offset : own.offsets) square += at_which.u[offset] * at_which.u[offset];
  own.change_square = own.undetermined.settle(own.offsets, std::sqrt(square), change_.data());
}

/// Whether the correction leads on, for a gap with this square at waves with this |P S(u)|². It does not where the
/// equation has no solution: parts with contradictory demands on one port, such as two voltage sources in parallel.
/// The correction is then the gap over the shift of the matrix. Where the equation is nearly singular it
/// is replaced by one that leads past the next bends: what the parts ask for together on one branch each, a source
/// of a loop without a resistance say, ends where one of them leaves its branch.
bool InterfaceSolver::is_of_use(Island& own, const Evaluation& at_which, double gap_square,
                                double size) {
  own.is_far_out = false;
  const bool contradicts = own.change_square > kContradiction * kContradiction * gap_square;
  if (own.parts.is_affine()) return !contradicts;
  if (!(own.change_square > kSingular * kSingular * gap_square)) return true;
  const double far = std::max(size, gap_square);
  if (!(own.change_square > kFar * kFar * far)) return !contradicts;
  if (own.reaches == 0 || own.most_wandered == 0) return false;
  --own.reaches;
  if (!own.factorise(waves_, *each_, kReachShift)) return false;
  solve(own, at_which);
  const double reach = std::sqrt(own.change_square / far);
  if (!(reach > 0.0) || !std::isfinite(reach)) return false;
  for (const int offset : own.offsets) change_[at(offset)] *= kReach / reach;
  own.is_far_out = true;
  return true;
}

/// u = base + damping·(I − PD)⁻¹ gap; for damping −1, and without factors, base + gap/2.
void InterfaceSolver::propose(int island, Island& own, double damping) {
  Flags& flags = flags_[at(island)];
  own.is_far_out = false;
  if (own.is_behind && damping > 0.0) catch_up(own);
  own.along_gap = damping < 0.0 || !own.ready;
  if (!own.along_gap && damping != 0.0) {
    solve(own, base_of(own));
    own.along_gap = !is_of_use(own, base_of(own), own.square, own.size);
    if (own.is_far_out) damping = 1.0;
  }
  own.from = own.standing;
  own.damping = own.along_gap ? 0.5 : damping;
  ++own.updates;
  flags.active = true;
  flags.trial = !own.parts.is_affine() && !own.along_gap && damping != 0.0;
}

InterfaceSolver::Update InterfaceSolver::next(int island) const {
  const Island& own = *islands_[at(island)];
  const Kept& kept = kept_[own.from];
  return {kept.u.data(), own.along_gap ? kept.gap.data() : change_.data(), own.damping};
}

const double* InterfaceSolver::shadow(int island) const {
  return kept_[islands_[at(island)]->standing].exchanged.data();
}

double InterfaceSolver::first_size(int island) const {
  const Island* const own = islands_[at(island)].get();
  return own != nullptr && engaged(island) ? own->first_size : 0.0;
}

int InterfaceSolver::linearisation_evaluations() const {
  int most = 0;
  for (const auto& own : islands_) {
    if (own != nullptr) most = std::max(most, own->evaluations);
  }
  return most;
}

void InterfaceSolver::archive(StateArchive& archive) {
  for (std::size_t i = 0; i < flags_.size(); ++i) {
    archive.value(flags_[i]);
    bool is_there = islands_[i] != nullptr;
    archive.value(is_there);
    const Flags& flags = flags_[i];
    const bool is_asked = flags.used || flags.engaged || flags.active || flags.trial;
    archive.expect(is_there || !is_asked, "which islands take the interface update");
    if (!is_there) {
      islands_[i].reset();
      continue;
    }
    if (islands_[i] == nullptr) prepare(static_cast<int>(i));
    Island& own = *islands_[i];
    archive.expect(own.fits || !is_asked, "which islands take the interface update");
    const bool kept_zeros = own.keeps_zeros;
    archive.value(own.keeps_zeros);
    if (own.keeps_zeros != kept_zeros) own.ready = own.is_known = false;
    if (own.parts.is_affine()) continue;  // what there is follows from the step maps
    const bool has_factors = own.ready && !own.is_behind;
    if (archive.reads()) own.is_behind = true;  // also where the bytes end here
    archive.values(own.ready, own.eager, own.evaluations);
    archive.expect(own.eager >= 0 && own.eager <= kEagerSteps,
                   "the number of steps that renew a derivative");
    archive.expect(own.evaluations >= 0, "the number of evaluations");
    const bool is_same = own.parts.archive(archive);
    if (archive.reads()) own.is_behind = own.ready && !(has_factors && is_same);
  }
}

std::size_t InterfaceSolver::bytes() const {
  std::size_t sum = 7 * change_.capacity() * sizeof(double) + flags_.capacity() * sizeof(Flags);
  for (const auto& own : islands_) {
    if (own == nullptr) continue;
    sum += sizeof(Island) + own->parts.bytes() + own->equation.bytes() +
           (own->condensed != nullptr ? own->condensed->bytes() : 0) +
           own->offsets.capacity() * sizeof(int) + 2 * own->local_gap.capacity() * sizeof(double);
  }
  return sum;
}

}  // namespace portwave
