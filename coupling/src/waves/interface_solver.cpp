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
/// Ports whose squares make one sum, and ports whose loop is worth several threads.
constexpr std::size_t kBlock = 2048, kWorthSharing = 4 * kBlock;

/// Σ of `square` over [first, last), as four sums that do not wait for one another.
template <class Square>
double sum_of(std::size_t first, std::size_t last, const Square& square) {
  double sums[4] = {};
  std::size_t i = first;
  for (; i + 4 <= last; i += 4) {
    for (std::size_t k = 0; k < 4; ++k) sums[k] += square(i + k);
  }
  for (; i < last; ++i) sums[0] += square(i);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

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
        equation(waves.system(), networks, island) {
    for (const int port : networks.of[static_cast<std::size_t>(island)].ports) {
      offsets.push_back(waves.wave_of_port(port));
    }
    for (std::size_t port = 0; condensed != nullptr && port < waves.system().scalar_ports().size();
         ++port) {
      impedance.push_back(0.0);
    }
    gap.resize(offsets.size());
    change.resize(offsets.size());
    sums.resize(blocks());
    fits = parts.is_possible() &&
           (condensed != nullptr ||
            equation.expected_entries(waves.interconnection()) <= InterfaceEquation::kMostEntries);
  }

  bool factorise(const WaveDiscretisation& waves, const ForEach& each,
                 double shift = InterfaceEquation::kShift) {
    const auto D = [&](int part) { return parts.of(part); };
    if (condensed == nullptr) {
      const auto changes = [&](int part) {
        return waves.batch(waves.slot(part).batch).affine == nullptr;
      };
      const bool is_new = !std::exchange(is_known, true);
      if (is_new) ready = equation.factorise(waves.interconnection(), D, changes, each);
      if (!is_new || shift != InterfaceEquation::kShift) ready = equation.renew(D, shift, each);
    } else {
      for (std::size_t port = 0; port < impedance.size(); ++port) {
        impedance[port] = waves.impedance()[at(waves.wave_of_port(static_cast<int>(port)))];
      }
      ready = condensed->factorise(waves.interconnection(), impedance, waves.step_s(), D, shift);
    }
    is_behind = shift != InterfaceEquation::kShift;
    has_changed = false;
    return ready;
  }

  /// change = (I − PD)⁻¹ gap
  void solve(const ForEach& each) {
    if (condensed != nullptr) {
      condensed->solve(gap.data(), change.data());
    } else {
      equation.solve(gap.data(), change.data(), each);
    }
  }

  std::size_t blocks() const { return (offsets.size() + kBlock - 1) / kBlock; }
  /// act(first, last) for all ports, on several threads where they are many.
  template <class Act>
  void for_ports(const ForEach& each, const Act& act) const {
    if (offsets.size() < kWorthSharing) return act(0, offsets.size());
    each(static_cast<int>(blocks()), [&](int block) {
      const std::size_t first = kBlock * static_cast<std::size_t>(block);
      act(first, std::min(first + kBlock, offsets.size()));
    });
  }
  /// Σ square_of(port), with the same bits on however many threads.
  template <class Square>
  double sum(const ForEach& each, const Square& square_of) const {
    const auto of_block = [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; i += kBlock) {
        sums[i / kBlock] = sum_of(i, std::min(i + kBlock, last), square_of);
      }
    };
    for_ports(each, of_block);
    double all = 0.0;
    for (const double own : sums) all += own;
    return all;
  }

  /// |gap|², |change|²
  struct Squares {
    double gap = 0.0;
    double change = 0.0;
  };
  Squares squares(const ForEach& each) const {
    const auto of = [&](const std::vector<double>& values) {
      const double* const v = values.data();
      return sum(each, [v](std::size_t i) { return v[i] * v[i]; });
    };
    return {of(gap), of(change)};
  }

  std::unique_ptr<CondensedEquation> condensed;  // in place of `equation`, where it can be
  std::vector<double> impedance;                 // by scalar port, for `condensed`
  PartLinearisation parts;
  InterfaceEquation equation;
  std::vector<int> offsets;  // of its ports
  std::vector<double> gap, change;
  Accuracy accuracy = Accuracy::rough;  // of the next D
  mutable std::vector<double> sums;  // scratch: of blocks of ports
  bool fits = false;
  bool is_known = false;  // the pattern of the equation, with the step maps there are
  bool ready = false;     // there are factors
  bool is_behind =
      false;  // they are not those of D: it was read back, or shifted by more, or changed
  bool has_changed = false;  // a part has: a solve takes an LU first
  int eager = 0;             // steps in which D is renewed at the first evaluation
  int evaluations = 0;       // of the nonlinear parts, in this step
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
  for (AlignedVector* array : {&u_, &base_, &shadow_}) {
    array->assign(at(waves.wave_size()), 0.0);
  }
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
  for (std::size_t i = 0; i < islands_.size(); ++i) {
    if (islands_[i] == nullptr) continue;
    Island& own = *islands_[i];
    own.ready = own.is_known = false;
    own.parts.take_affine();
    if (flags_[i].used && own.fits && own.parts.is_affine()) own.factorise(waves_, alone_);
  }
}

void InterfaceSolver::take_over_part(int part, Derivatives others) {
  Island* const own = islands_[at(waves_.system().island_of_part(part))].get();
  if (own == nullptr) return;
  const int width = waves_.batch(waves_.slot(part).batch).batch->wave_size();
  if (width == 0) return;  // all its ports are idle: it is in no equation
  if (others == Derivatives::kept && !own->parts.is_affine()) {
    // Whether old derivatives will do is seen by the updates, as when the state moves on. Affine parts take an LU.
    if (waves_.batch(waves_.slot(part).batch).affine == nullptr) return;
    own->is_behind = own->has_changed = own->ready;
  } else {
    own->ready = false;
  }
  if (own->condensed != nullptr) {
    own->parts.take_affine();
    return;
  }
  const auto entries = std::span(own->parts.of(part), at(width * width));
  const std::vector<double> before(entries.begin(), entries.end());
  own->parts.take_affine(part);
  // What is an entry follows from the parts that there are, not from those that were.
  const auto is_zero = [](double value) { return value == 0.0; };
  own->is_known = own->is_known && std::ranges::equal(before, entries, {}, is_zero, is_zero);
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

bool InterfaceSolver::accept(int island, double gap_square) {
  Flags& flags = flags_[at(island)];
  Island& own = *islands_[at(island)];
  own.trial_before = own.trial_last;
  own.trial_last = own.trial_square;
  own.trial_square = gap_square;
  const bool wanders = own.wandered > 0 && own.halvings == 0;
  const double most = wanders ? kWorthTheWay * own.square : own.square;
  const bool is_worse = own.is_far_out || !(gap_square <= most);  // a NaN, too
  flags.stands = !(flags.trial && is_worse);
  if (!flags.stands) return false;
  own.before = own.square;
  own.square = gap_square;
  return true;
}

InterfaceSolver::Effort InterfaceSolver::advance(int island, const double* record, const double* u,
                                                 const double* exchanged, Effort most) {
  Island& own = *islands_[at(island)];
  const int renewals = own.evaluations;
  const bool stands = flags_[at(island)].stands;
  if (stands) take_base(own, u, exchanged);
  if (most == Effort::renew) {
    update(island, own, record, u, exchanged);
  } else {
    // Without time for more, a failed trial is not repeated in another way.
    const bool may_solve = most == Effort::solve && own.ready && !own.has_changed && stands;
    own.reaches = 0;
    propose(island, own, !may_solve ? -1.0 : own.is_rounding ? 0.0 : 1.0);
  }
  if (own.evaluations > renewals) return Effort::renew;
  return flags_[at(island)].trial || own.parts.is_affine() ? Effort::solve : Effort::average;
}

bool InterfaceSolver::rehearse(int island, const double* record, const double* u,
                               const double* exchanged, Effort effort) {
  Island* const own = prepare(island);
  if (own == nullptr) return false;
  take_base(*own, u, exchanged);
  if (effort == Effort::renew) {
    if (own->parts.is_affine()) return false;
    own->accuracy = Accuracy::by_differences;
    renew(*own, record, u, exchanged);
    own->is_renewed = false;
    return own->ready;
  }
  if (!own->ready) return false;
  own->solve(*each_);
  return true;
}

/// The next iterate, at any cost.
void InterfaceSolver::update(int island, Island& own, const double* record, const double* u,
                             const double* exchanged) {
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
    if (!own.ready || is_slow || is_eager) renew(own, record, u, exchanged);
    return propose(island, own, 1.0);
  }
  own.eager = kEagerSteps;
  if (own.halvings == 0 && (own.fresh || own.wandered > 0)) {
    if (wander(island, own, record, u, exchanged)) return;
  }
  if (!own.fresh) {
    for (std::size_t i = 0; i < own.offsets.size(); ++i) {
      const std::size_t w = at(own.offsets[i]);
      own.gap[i] = shadow_[w] - base_[w];
    }
    own.accuracy = Accuracy::by_differences;
    renew(own, record, base_.data(), shadow_.data());
    if (own.fresh && own.wandered == 0) return propose(island, own, 1.0);
  }
  ++own.halvings;
  propose(island, own, own.halvings <= kMostHalvings ? std::ldexp(1.0, -own.halvings) : -1.0);
}

/// A full update from a trial that does not stand. False: it has wandered for too long, or cannot from there.
bool InterfaceSolver::wander(int island, Island& own, const double* record, const double* u,
                             const double* exchanged) {
  // Between two pieces of a friction Newton's method goes to and fro.
  constexpr double kSame = 1e-2;
  const bool is_circle = own.wandered >= 2 &&
                         std::abs(own.trial_square - own.trial_before) <= kSame * own.trial_square;
  if (own.wandered >= own.most_wandered || is_circle || !std::isfinite(own.trial_square)) {
    own.most_wandered /= 2;  // where that led nowhere shorter updates are to have their turn
    return false;
  }
  ++own.wandered;
  for (std::size_t i = 0; i < own.offsets.size(); ++i) {
    const std::size_t w = at(own.offsets[i]);
    own.gap[i] = exchanged[w] - u[w];
  }
  own.accuracy = own.wandered > kRoughlyWandered ? Accuracy::by_differences : Accuracy::rough;
  renew(own, record, u, exchanged);
  const bool is_sound = std::exchange(own.fresh, false);  // of the base it is not
  if (!is_sound) return false;
  own.solve(*each_);
  if (!is_of_use(own, exchanged)) return false;
  for (std::size_t i = 0; i < own.offsets.size(); ++i) {
    const std::size_t w = at(own.offsets[i]);
    u_[w] = u[w] + own.change[i];
  }
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
void InterfaceSolver::take_base(Island& own, const double* u, const double* exchanged) {
  const int* const offsets = own.offsets.data();
  double *const base = base_.data(), *const shadow = shadow_.data(), *const gap = own.gap.data();
  const double size = own.sum(*each_, [=](std::size_t i) {
    const std::size_t w = at(offsets[i]);
    base[w] = u[w];
    shadow[w] = exchanged[w];
    gap[i] = exchanged[w] - u[w];
    return exchanged[w] * exchanged[w];
  });
  own.size = size;
  if (own.first_size == 0.0) own.first_size = size;
  own.is_rounding = own.square <= kRounding * kRounding * size;
  own.fresh = false;
  own.halvings = own.wandered = 0;
}

/// D and the factors at u.
void InterfaceSolver::renew(Island& own, const double* record, const double* u,
                            const double* exchanged) const {
  try {
    if (!own.is_renewed) own.parts.keep();
    own.is_renewed = true;
    const bool sound = own.parts.differentiate(record, u, exchanged, own.accuracy);
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

/// Whether the equation has no solution: parts with contradictory demands on one port, such as two
/// voltage sources in parallel. The correction is then the gap over the shift of the matrix.
bool InterfaceSolver::contradicts(const Island& own) const {
  const auto [gap, change] = own.squares(*each_);
  return change > kContradiction * kContradiction * gap;
}

/// Whether the correction for the gap at waves with this P S(u) leads on. Where the equation is nearly singular it
/// is replaced by one that leads past the next bends: what the parts ask for together on one branch each, a source
/// of a loop without a resistance say, ends where one of them leaves its branch.
bool InterfaceSolver::is_of_use(Island& own, const double* exchanged) const {
  own.is_far_out = false;
  if (own.parts.is_affine()) return !contradicts(own);
  const auto [gap, change] = own.squares(*each_);
  if (!(change > kSingular * kSingular * gap)) return true;  // so much less than of a contradiction
  const int* const offsets = own.offsets.data();
  const double size = own.sum(*each_, [=](std::size_t i) {
    const double wave = exchanged[at(offsets[i])];
    return wave * wave;
  });
  const double far = std::max(size, gap);
  if (!(change > kFar * kFar * far)) return !contradicts(own);
  if (own.reaches == 0 || own.most_wandered == 0) return false;
  --own.reaches;
  if (!own.factorise(waves_, *each_, kReachShift)) return false;
  own.solve(*each_);
  const double reach = std::sqrt(own.squares(*each_).change / far);
  if (!(reach > 0.0) || !std::isfinite(reach)) return false;
  for (double& value : own.change) value *= kReach / reach;
  own.is_far_out = true;
  return true;
}

/// u = base + damping·(I − PD)⁻¹ gap; for damping −1, and without factors, base + gap/2.
void InterfaceSolver::propose(int island, Island& own, double damping) {
  Flags& flags = flags_[at(island)];
  own.is_far_out = false;
  if (own.is_behind && damping > 0.0) catch_up(own);
  bool is_averaged = damping < 0.0 || !own.ready;
  if (!is_averaged && damping != 0.0) {
    own.solve(*each_);
    is_averaged = !is_of_use(own, shadow_.data());
    if (own.is_far_out) damping = 1.0;
  }
  if (is_averaged) {
    damping = 0.5;
    std::ranges::copy(own.gap, own.change.begin());
  }
  const int* const offsets = own.offsets.data();
  const double *const base = base_.data(), *const change = own.change.data();
  double* const u = u_.data();
  own.for_ports(*each_, [=](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      const std::size_t w = at(offsets[i]);
      u[w] = damping == 0.0 ? base[w] : base[w] + damping * change[i];
    }
  });
  ++own.updates;
  flags.active = true;
  flags.trial = !own.parts.is_affine() && !is_averaged && damping != 0.0;
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
  std::size_t sum = 3 * u_.capacity() * sizeof(double) + flags_.capacity() * sizeof(Flags);
  for (const auto& own : islands_) {
    if (own == nullptr) continue;
    sum += sizeof(Island) + own->parts.bytes() + own->equation.bytes() +
           (own->condensed != nullptr ? own->condensed->bytes() : 0) +
           own->offsets.capacity() * (sizeof(int) + 2 * sizeof(double));
  }
  return sum;
}

}  // namespace portwave
