#include "portwave/coupling/waves/anderson.hpp"

#include <algorithm>
#include <cmath>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

/// Relative to the normal equations scaled to a unit diagonal.
constexpr double kTikhonov = 1e-13;
/// Combinations with larger weights amplify the rounding in the waves.
constexpr double kLargestWeight = 1e5;

}  // namespace

void AndersonSequence::begin(int memory) {
  memory_ = memory;
  slot_ = 0;
  count_ = 0;
  term_count_ = 0;
  plain_ = true;
  trial_ = false;
  stands_ = true;
  rejections_ = failures_ = rest_ = 0;
}

void AndersonSequence::judge(std::span<const double> products, double square) {
  if (trial_) {
    trial_ = false;
    const double before = product(base(), base());
    if (!(square <= kRequired * kRequired * before)) {  // a NaN falls here
      stands_ = false;
      ++rejections_;
      if (++failures_ == kMaxRejections) {
        kept_[0] = base();
        count_ = 1;
        failures_ = 0;
        rest_ = kRest;
      }
      plain_ = false;  // the arrays hold the rejected trial
      term_count_ = 1;
      terms_[0] = {base(), 1.0};
      return;
    }
  }
  stands_ = true;
  keep(products, square);
  choose_slot();
  plain_ = true;
  if (rest_ > 0) {
    --rest_;
  } else if (find_weights()) {
    plain_ = false;
    trial_ = true;
  }
}

void AndersonSequence::keep(std::span<const double> products, double square) {
  if (count_ == memory_ + 1) {
    std::move(kept_.begin() + 1, kept_.begin() + count_, kept_.begin());
    --count_;
  }
  for (int i = 0; i < count_; ++i) {
    const int other = kept_[at(i)];
    product(slot_, other) = product(other, slot_) = products[at(other)];
  }
  product(slot_, slot_) = square;
  kept_[at(count_++)] = slot_;
}

/// One slot more than the kept evaluations and the trial.
void AndersonSequence::choose_slot() {
  for (int slot = 0;; ++slot) {
    if (std::find(kept_.begin(), kept_.begin() + count_, slot) == kept_.begin() + count_) {
      slot_ = slot;
      return;
    }
  }
}

/// minimises |g_b + Σ γᵢ(gᵢ − g_b)|² by Cholesky; the newest come first, and as many are taken as
/// are independent.
bool AndersonSequence::find_weights() {
  const int unknowns = count_ - 1;
  const int b = base();
  if (unknowns < 1) return false;
  std::array<double, kMaxSlots * kMaxSlots> L{};
  std::array<double, kMaxSlots> rhs{}, scale{}, gamma{};
  const double own = product(b, b);
  int used = 0;
  for (; used < unknowns; ++used) {
    const int i = kept_[at(unknowns - 1 - used)];
    const double square = product(i, i) - 2.0 * product(i, b) + own;
    // Cancellation leaves this much rounding.
    if (!(square > 1e-13 * (product(i, i) + own))) break;
    scale[at(used)] = 1.0 / std::sqrt(square);
    for (int c = 0; c <= used; ++c) {
      const int j = kept_[at(unknowns - 1 - c)];
      double sum = product(i, j) - product(i, b) - product(j, b) + own;
      sum *= scale[at(used)] * scale[at(c)];
      if (c == used) sum = 1.0 + kTikhonov;
      for (int k = 0; k < c; ++k) sum -= L[at(used * kMaxSlots + k)] * L[at(c * kMaxSlots + k)];
      if (c < used) {
        L[at(used * kMaxSlots + c)] = sum / L[at(c * kMaxSlots + c)];
      } else {
        L[at(used * kMaxSlots + used)] = sum;
      }
    }
    const double pivot = L[at(used * kMaxSlots + used)];
    if (!(pivot > 1e-12)) break;
    L[at(used * kMaxSlots + used)] = std::sqrt(pivot);
    double value = (own - product(i, b)) * scale[at(used)];
    for (int k = 0; k < used; ++k) value -= L[at(used * kMaxSlots + k)] * rhs[at(k)];
    rhs[at(used)] = value / L[at(used * kMaxSlots + used)];
  }
  if (used == 0) return false;
  double rest = 1.0, size = 0.0;
  for (int r = used - 1; r >= 0; --r) {
    double value = rhs[at(r)];
    for (int k = r + 1; k < used; ++k) value -= L[at(k * kMaxSlots + r)] * gamma[at(k)];
    gamma[at(r)] = value / L[at(r * kMaxSlots + r)];
  }
  term_count_ = 0;
  for (int r = 0; r < used; ++r) {
    const double weight = gamma[at(r)] * scale[at(r)];
    terms_[at(++term_count_)] = {kept_[at(unknowns - 1 - r)], weight};
    rest -= weight;
    size = std::max(size, std::abs(weight));
  }
  terms_[0] = {b, rest};
  ++term_count_;
  return std::max(size, std::abs(rest)) <= kLargestWeight;
}

Acceleration::Acceleration(const WaveDiscretisation& waves, int memory)
    : waves_(waves),
      memory_(memory),
      slots_(memory + 2),
      memory_of_waves_({{3 * slots_, at(waves.wave_size())}, {slots_, at(waves.entry_count())}}),
      sequences_(at(waves.reduction().island_count())) {
  for (int slot = 0; slot < slots_; ++slot) {
    for (auto* v : {&u_, &b_, &shadow_}) v->push_back(memory_of_waves_.take(at(waves.wave_size())));
    products_.push_back(memory_of_waves_.take(at(waves.entry_count())));
  }
}

void Acceleration::begin() {
  for (AndersonSequence& sequence : sequences_) sequence.begin(memory_);
}

void Acceleration::measure(int batch, LaneRange lanes, const double* u, const double* exchanged) {
  const BatchSlot& own = waves_.batch(batch);
  const int ports = own.batch->wave_size(), stride = own.batch->stride();
  for (int slot = 0; slot < slots_; ++slot) {
    const double* kept_u = u_[at(slot)].data();
    const double* kept_shadow = shadow_[at(slot)].data();
    double* out = products_[at(slot)].data() + own.entry;
    for (int l = lanes.first; l < lanes.last; ++l) {
      double sum = 0.0;
      for (int j = 0; j < ports; ++j) {
        const int w = own.wave + j * stride + l;
        sum += (exchanged[w] - u[w]) * (kept_shadow[w] - kept_u[w]);
      }
      out[l] = sum;
    }
  }
}

void Acceleration::judge(int island, double square) {
  if (!taken_.empty() && taken_[at(island)].is_taken) {
    return sequences_[at(island)].judge(taken_[at(island)].products, square);
  }
  std::array<double, AndersonSequence::kMaxSlots> products{};
  for (int slot = 0; slot < slots_; ++slot) {
    products[at(slot)] = waves_.reduction().sum(island, products_[at(slot)].data());
  }
  sequences_[at(island)].judge(products, square);
}

void Acceleration::form(int chunk, double* values) const {
  for (int slot = 0; slot < slots_; ++slot) {
    values[slot] = waves_.reduction().sum_of_chunk(chunk, products_[at(slot)].data());
  }
}

void Acceleration::take(int island, const double* values) {
  if (taken_.empty()) taken_.resize(sequences_.size());
  std::copy_n(values, slots_, taken_[at(island)].products.begin());
  taken_[at(island)].is_taken = true;
}

std::size_t Acceleration::bytes() const {
  return memory_of_waves_.bytes() + sequences_.capacity() * sizeof(AndersonSequence);
}

}  // namespace portwave
