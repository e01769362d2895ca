#include "waves/undetermined_waves.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace portwave {
namespace {

/// What solves make of them, at least.
constexpr double kAmplified = 1e10;

double length(std::span<const double> v) {
  double square = 0.0;
  for (const double x : v) square += x * x;
  return std::sqrt(square);
}

void scale(std::span<double> v, double by) {
  for (double& x : v) x *= by;
}

/// −1 to 1, the same every time.
double arbitrary(std::uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<double>(static_cast<std::int64_t>(state)) * 0x1p-63;
}

}  // namespace

void UndeterminedWaves::find(std::span<const int> offsets, const Solve& solve) {
  count_ = 0;
  if (offsets.empty()) return;
  const std::size_t n = offsets.size();
  const auto reach = static_cast<std::size_t>(*std::ranges::max_element(offsets)) + 1;
  gap_.resize(reach);
  change_.resize(reach);
  wave_.resize(n);
  const auto amplify = [&] {
    for (std::size_t i = 0; i < n; ++i) gap_[static_cast<std::size_t>(offsets[i])] = wave_[i];
    solve(gap_.data(), change_.data());
    for (std::size_t i = 0; i < n; ++i) wave_[i] = change_[static_cast<std::size_t>(offsets[i])];
    deflate(wave_.data());
    const double own = length(wave_);
    if (own > 0.0 && std::isfinite(own)) scale(wave_, 1.0 / own);
    return own;
  };
  std::uint64_t state = 1;
  while (count_ < n) {
    for (double& x : wave_) x = arbitrary(state);
    deflate(wave_.data());
    scale(wave_, 1.0 / length(wave_));
    amplify();
    const double gain = amplify();
    if (!(gain > kAmplified) || !std::isfinite(gain)) return;
    if (all_.size() == count_) all_.emplace_back();
    all_[count_] = wave_;
    ++count_;
  }
}

void UndeterminedWaves::deflate(double* wave) const {
  for (std::size_t k = 0; k < count_; ++k) {
    double along = 0.0;
    for (std::size_t i = 0; i < all_[k].size(); ++i) along += all_[k][i] * wave[i];
    for (std::size_t i = 0; i < all_[k].size(); ++i) wave[i] -= along * all_[k][i];
  }
}

double UndeterminedWaves::settle(std::span<const int> offsets, double most, double* change) const {
  for (std::size_t k = 0; k < count_; ++k) {
    const std::vector<double>& z = all_[k];
    double along = 0.0;
    for (std::size_t i = 0; i < z.size(); ++i) along += z[i] * change[offsets[i]];
    if (!(std::abs(along) <= most)) continue;
    for (std::size_t i = 0; i < z.size(); ++i) change[offsets[i]] -= along * z[i];
  }
  double square = 0.0;
  for (const int offset : offsets) square += change[offset] * change[offset];
  return square;
}

}  // namespace portwave
