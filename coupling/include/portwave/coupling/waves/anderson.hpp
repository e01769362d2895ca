#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/waves/island_sums.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/subsystems/base/aligned.hpp"

namespace portwave {

/// Safeguarded Anderson acceleration (type II) of one island's inner iteration within a macro-step:
/// the decisions, without the waves.
///
/// With the gaps g = P S(u) − u of the last evaluations, weights w, Σw = 1, minimise |Σ wᵢgᵢ| (with
/// a Tikhonov term); the plain update is then applied to Σ wᵢuᵢ and Σ wᵢS(uᵢ), to which it is
/// linear. The evaluation at such a trial counts towards K. It stands when its gap has fallen to
/// `kRequired` of that of the last evaluation that stands; else the plain update of that one is
/// taken. After `kMaxRejections` of these the memory is cleared and the next `kRest` updates are plain; then
/// it starts again. At most that share of the evaluations is lost; the others are as good as plain ones, as a
/// rule where S is affine, though no theorem says so. Memory does not reach across steps, so a step depends
/// on nothing but its beginning.
/// Source   Walker & Ni, SIAM J. Numer. Anal. 49 (2011).
class AndersonSequence {
 public:
  static constexpr int kMaxSlots = kMaxAcceleration + 2;
  static constexpr double kRequired = 0.99;
  static constexpr int kMaxRejections = 2;
  static constexpr int kRest = 10;

  void begin(int memory);

  /// Slot for the waves of the evaluation in progress.
  int slot() const { return slot_; }
  /// Takes in the evaluation kept in `slot()`: its ⟨g, gₛ⟩ with slot s, for all s, and |g|². Decides the next
  /// update.
  void judge(std::span<const double> products, double square);
  /// Whether the last evaluation stands.
  bool stands() const { return stands_; }
  /// Slot of the last evaluation that stands.
  int base() const { return kept_[static_cast<std::size_t>(count_ - 1)]; }
  /// Whether the next update starts from the last evaluation as it is.
  bool plain() const { return plain_; }
  /// Otherwise: slots and weights of the combination from which it starts.
  struct Term {
    int slot;
    double weight;
  };
  std::span<const Term> terms() const {
    return {terms_.data(), static_cast<std::size_t>(term_count_)};
  }
  int rejections() const { return rejections_; }
  /// Another update continues from the last evaluation, which stands.
  void abandon() { plain_ = stands_ = !(trial_ = false); }
  /// Whether the evaluation in progress is at such a trial. It may fail: given a gap that is no
  /// number it is rejected like any other.
  bool on_trial() const { return trial_; }

 private:
  double& product(int i, int j) {
    return gram_[static_cast<std::size_t>(i) * kMaxSlots + static_cast<std::size_t>(j)];
  }
  void keep(std::span<const double> products, double square);
  void choose_slot();
  bool find_weights();

  int memory_ = 0;
  int slot_ = 0;
  int count_ = 0;                      // of kept_
  std::array<int, kMaxSlots> kept_{};  // slots, oldest first
  std::array<double, kMaxSlots * kMaxSlots> gram_{};
  std::array<Term, kMaxSlots> terms_{};
  int term_count_ = 0;
  bool plain_ = true;
  bool trial_ = false;  // the evaluation in progress is at an accelerated iterate
  bool stands_ = true;
  int rejections_ = 0;  // in this step
  int failures_ = 0;    // since the last clearing
  int rest_ = 0;        // plain updates still to come
};

/// The kept waves of a system's accelerated iterations, by island. Different lanes may be kept,
/// measured and combined by different threads, different islands judged by different threads.
///
/// With several processes each may measure some lanes; as IslandSums they receive the sums of the others.
class Acceleration final : public IslandSums {
 public:
  Acceleration(const WaveDiscretisation& waves, int memory);
  Acceleration(const WaveDiscretisation&& waves, int memory) = delete;

  int slots() const { return slots_; }
  /// A new macro-step.
  void begin();
  AndersonSequence& sequence(int island) { return sequences_[static_cast<std::size_t>(island)]; }

  double* u(int slot) { return u_[static_cast<std::size_t>(slot)].data(); }
  double* b(int slot) { return b_[static_cast<std::size_t>(slot)].data(); }
  double* shadow(int slot) { return shadow_[static_cast<std::size_t>(slot)].data(); }

  /// Products of the gap of these lanes with all that is kept.
  void measure(int batch, LaneRange lanes, const double* u, const double* exchanged);
  // As IslandSums.
  int sums() const override { return slots_; }
  int maxima() const override { return 0; }
  std::span<const std::span<double>> terms() override { return products_; }
  void form(int chunk, double* values) const override;
  void take(int island, const double* values) override;
  /// Sums them up in part order and decides; `square` is |g|².
  void judge(int island, double square);
  std::size_t bytes() const;

 private:
  const WaveDiscretisation& waves_;
  int memory_;
  int slots_;
  StaggeredMemory memory_of_waves_;
  std::vector<std::span<double>> u_, b_, shadow_, products_;  // by slot
  std::vector<AndersonSequence> sequences_;
  struct Taken {
    std::array<double, AndersonSequence::kMaxSlots> products{};
    bool is_taken = false;
  };
  std::vector<Taken> taken_;  // by island; empty where nothing ever was
};

}  // namespace portwave
