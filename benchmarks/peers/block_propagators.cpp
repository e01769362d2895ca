#include "block_propagators.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

namespace portwave::bench {
namespace {

constexpr std::size_t kLanes = 8, kIn = kBlockStates + kBlockPorts;
using Half [[gnu::vector_size(32)]] = double;

using Column = std::array<double, kIn>;  // x, then a

/// One midpoint step of one block: tridiagonal in the mean velocities.
std::array<double, kBlockStates> local_step(const Block& block, bool spring_end, double left,
                                            double right, double h, const Column& in) {
  const double k = block.stiffness_N_per_m, kc = spring_end ? block.coupling_stiffness_N_per_m : 0;
  const double s_left = std::sqrt(2.0 * left / h), s_right = std::sqrt(2.0 * right / h);
  const double a_left = in[kBlockStates], a_right = in[kBlockStates + 1];
  const double delta = in[kBlockStates - 1], kappa = 0.5 * h * kc;
  const auto q = [&](std::size_t i) { return in[2 * i]; };
  const auto v = [&](std::size_t i) { return in[2 * i + 1]; };
  std::array<double, kMasses> diagonal{}, rhs{};
  const double off = -0.5 * h * k;
  for (std::size_t i = 0; i < kMasses; ++i) {
    const double springs = (i > 0 ? 1.0 : 0.0) + (i + 1 < kMasses ? 1.0 : 0.0);
    diagonal[i] = 2.0 * block.mass_kg / h + block.damping_Ns_per_m - springs * off;
    rhs[i] = 2.0 * block.mass_kg / h * v(i);
    if (i > 0) rhs[i] -= k * (q(i) - q(i - 1));
    if (i + 1 < kMasses) rhs[i] -= k * (q(i) - q(i + 1));
  }
  // Left: force −e, e = s a + γw. Right, a spring: u = (s a − k_c δ + κw)/(κ + γ), e = s a − γu; a
  // mass (f = −w): force −e, e = s a + γw.
  diagonal[0] += left;
  rhs[0] -= s_left * a_left;
  const std::size_t end = kMasses - 1;
  if (spring_end) {
    diagonal[end] += right * kappa / (kappa + right);
    rhs[end] += s_right * a_right - right * (s_right * a_right - kc * delta) / (kappa + right);
  } else {
    diagonal[end] += right;
    rhs[end] -= s_right * a_right;
  }
  for (std::size_t i = 1; i < kMasses; ++i) {
    const double factor = off / diagonal[i - 1];
    diagonal[i] -= factor * off;
    rhs[i] -= factor * rhs[i - 1];
  }
  std::array<double, kMasses> w{};
  for (std::size_t i = kMasses; i-- > 0;) {
    w[i] = (rhs[i] - (i + 1 < kMasses ? off * w[i + 1] : 0.0)) / diagonal[i];
  }
  std::array<double, kBlockStates> out{};
  for (std::size_t i = 0; i < kMasses; ++i) {
    out[2 * i] = q(i) + h * w[i];
    out[2 * i + 1] = 2.0 * w[i] - v(i);
  }
  if (spring_end) {
    const double u = (s_right * a_right - kc * delta + kappa * w[end]) / (kappa + right);
    out[kBlockStates - 1] = delta + h * (u - w[end]);
  }
  return out;
}

/// Doubles on whole cache lines.
class Lines {
 public:
  explicit Lines(std::size_t size) : data_(static_cast<double*>(std::aligned_alloc(64, size * 8))) {
    if (data_ == nullptr) throw std::bad_alloc();
    std::memset(data_, 0, size * 8);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  ~Lines() { std::free(data_); }
  double* data() const { return data_; }

 private:
  double* data_;
};

// One vector at a time: GCC 12 copies structures of vectors through the stack.
Half load(const double* p) {
  Half value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
void store(double* p, Half value) { std::memcpy(p, &value, sizeof value); }

/// Rows [kRow, kRow + kRows) of one group, all columns: accumulators stay in registers.
template <bool kShared, std::size_t kRow, std::size_t kRows>
[[gnu::always_inline]] inline void rows(const double* map, const double* x, double* next) {
  Half low[kRows] = {}, high[kRows] = {};
  for (std::size_t j = 0; j < kIn; ++j) {
    const Half in_low = load(x + j * kLanes), in_high = load(x + j * kLanes + kLanes / 2);
    for (std::size_t r = 0; r < kRows; ++r) {
      const std::size_t entry = j * kBlockStates + kRow + r;
      if constexpr (kShared) {
        low[r] += map[entry] * in_low;
        high[r] += map[entry] * in_high;
      } else {
        low[r] += load(map + entry * kLanes) * in_low;
        high[r] += load(map + entry * kLanes + kLanes / 2) * in_high;
      }
    }
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    store(next + (kRow + r) * kLanes, low[r]);
    store(next + (kRow + r) * kLanes + kLanes / 2, high[r]);
  }
}

/// A group: kIn rows of eight, x and then a, twice: now and next.
template <bool kShared>
class Propagators final : public BlockPropagators {
 public:
  Propagators(const Chain& chain, std::span<const double> impedance, double h)
      : blocks_(chain.blocks.size()),
        groups_((blocks_ + kLanes - 1) / kLanes),
        now_(groups_ * kGroup),
        next_(groups_ * kGroup),
        maps_(kShared ? (kMap + 7) / 8 * 8 : groups_ * kMap * kLanes) {
    for (std::size_t b = 0; b < blocks_; ++b) {
      for (std::size_t i = 0; i < kMasses; ++i) {
        *place(b, 2 * i) = chain.q[b * kMasses + i];
        *place(b, 2 * i + 1) = chain.v[b * kMasses + i];
      }
      const bool spring_end = b + 1 < blocks_;
      if (spring_end) {
        *place(b, kBlockStates - 1) = chain.q[(b + 1) * kMasses] - chain.q[(b + 1) * kMasses - 1];
      }
      if (kShared && b > 0) continue;
      for (std::size_t j = 0; j < kIn; ++j) {
        Column unit{};
        unit[j] = 1.0;
        const auto column = local_step(chain.blocks[b], spring_end, impedance[2 * b],
                                       impedance[2 * b + 1], h, unit);
        for (std::size_t i = 0; i < kBlockStates; ++i) {
          const std::size_t entry = j * kBlockStates + i;
          maps_.data()[kShared ? entry : (b / kLanes * kMap + entry) * kLanes + b % kLanes] =
              column[i];
        }
      }
    }
  }

  void step() override {
    // x and next change places; a is read from the place where x is now.
    double* x = flipped_ ? next_.data() : now_.data();
    double* y = flipped_ ? now_.data() : next_.data();
    const double* map = maps_.data();
    for (std::size_t g = 0; g < groups_; ++g) {
      rows<kShared, 0, 4>(map, x, y);
      rows<kShared, 4, 4>(map, x, y);
      rows<kShared, 8, 3>(map, x, y);
      x += kGroup;
      y += kGroup;
      if (!kShared) map += kMap * kLanes;
    }
    flipped_ = !flipped_;
  }

  void set_wave(std::size_t block, std::size_t port, double a) override {
    for (const Lines* lines : {&now_, &next_}) {
      lines->data()[at(block, kBlockStates + port)] = a;
    }
  }
  double position(std::size_t mass) const override {
    return current()[at(mass / kMasses, 2 * (mass % kMasses))];
  }
  double velocity(std::size_t mass) const override {
    return current()[at(mass / kMasses, 2 * (mass % kMasses) + 1)];
  }

 private:
  static constexpr std::size_t kGroup = kIn * kLanes, kMap = kIn * kBlockStates;
  static std::size_t at(std::size_t block, std::size_t row) {
    return block / kLanes * kGroup + row * kLanes + block % kLanes;
  }
  double* place(std::size_t block, std::size_t row) { return now_.data() + at(block, row); }
  const double* current() const { return flipped_ ? next_.data() : now_.data(); }

  std::size_t blocks_, groups_;
  bool flipped_ = false;
  Lines now_, next_, maps_;
};

}  // namespace

std::unique_ptr<BlockPropagators> block_propagators(const Chain& chain,
                                                    std::span<const double> impedance,
                                                    double step_s, bool shared) {
  if (shared) return std::make_unique<Propagators<true>>(chain, impedance, step_s);
  return std::make_unique<Propagators<false>>(chain, impedance, step_s);
}

}  // namespace portwave::bench
